//! Asks the person at the terminal whether the folder's content is to count.

use std::io::{BufRead, IsTerminal, stderr, stdin};

use super::{CHANGED, DATA, Trust, changes, items, show};
use crate::error::CliError;
use crate::out;
use crate::{config_file, mcp_servers};

/// Most names of changed files that are written out.
const MAX_NAMES: usize = 20;

/// Whether a person is at the terminal.
pub(crate) fn is_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Shows what would take effect, and asks once. Both answers are remembered for this content.
pub(crate) fn ask(trust: &Trust) -> Result<(), CliError> {
    if let Err(error) = check(trust) {
        out::note(&format!("polis: {}; the files of this folder are ignored until that is fixed", error.message));
        return Ok(());
    }
    present(trust);
    match agreed(&format!("Trust exactly this content of {}?", place(trust))) {
        Some(true) => return trust.accept(),
        Some(false) => {
            out::note("polis: not trusted; you are not asked again until it changes. polis trust shows it again.");
            // Without a home the question comes again.
            let _ = trust.decline();
        }
        None => out::note("polis: not trusted; you will be asked again"),
    }
    Ok(())
}

/// Whether the person agrees; none for any other input.
pub(crate) fn agreed(question: &str) -> Option<bool> {
    for _ in 0..3 {
        out::prompt(&format!("{question} [y/N] "));
        let mut line = String::new();
        if stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "是" => return Some(true),
            "" | "n" | "no" | "否" => return Some(false),
            _ => {}
        }
    }
    None
}

/// Checks the settings for errors.
pub(crate) fn check(trust: &Trust) -> Result<(), CliError> {
    for name in trust.pending() {
        let Some(text) = trust.contents().files[name].bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
            continue;
        };
        let path = std::path::Path::new(name);
        if path.file_name().is_some_and(|file| file == crate::config::FILE) {
            config_file::parse(text, path)?;
        } else if path.file_name().is_some_and(|file| file == mcp_servers::FILE) {
            mcp_servers::parse(text, path)?;
        }
    }
    Ok(())
}

/// Shows the contents; if an earlier version was trusted, only the changes.
pub(crate) fn present(trust: &Trust) {
    let (now, record) = (items(trust.contents()), trust.record().unwrap_or_default());
    let pending = trust.pending();
    if !pending.is_empty() && trust.code() == CHANGED {
        out::note(&format!("polis: in {} this has changed since you trusted it:", place(trust)));
        let changed = changes(&record.shown, &now);
        changed.iter().for_each(|line| out::note(&format!("  {line}")));
        let loaded: Vec<String> =
            pending.iter().filter(|name| trust.contents().files[**name].beside).map(|name| show::visible(name)).collect();
        if !loaded.is_empty() {
            let more = if loaded.len() > MAX_NAMES { format!(" and {} more", loaded.len() - MAX_NAMES) } else { String::new() };
            out::note(&format!("  code that is new or changed: {}{more}", loaded[..loaded.len().min(MAX_NAMES)].join(", ")));
        }
        if changed.is_empty() {
            let names: Vec<String> = pending.iter().map(|name| show::visible(name)).collect();
            out::note(&format!("  {}: nothing that matters, such as a comment", names.join(", ")));
        }
    } else if !now.is_empty() {
        out::note(&format!("polis: {} has files that count only if you trust them:", place(trust)));
        now.iter().for_each(|(name, text)| out::note(&format!("  {name}: {text}")));
    }
    if trust.foreign_data() {
        out::note(&format!(
            "  {DATA}: A DATA DIRECTORY THAT YOU DID NOT CREATE: its log may hold roles, permissions and open work of another user"
        ));
    }
}

/// The folder, so that its name cannot deceive.
fn place(trust: &Trust) -> String {
    show::visible(&trust.folder().display().to_string())
}
