//! Business contexts in Markdown files, with or without front matter. A file is read when it is needed, so that a change
//! counts from the next prompt on.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use polis_ports::FileGuard;

use super::{AgentType, Language};

/// Longest business context.
pub const MOST_CONTEXT_BYTES: usize = 64 * 1024;

/// A business context, and the file that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContextFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Why a file is no business context.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// It is there, but cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Longer than [`MOST_CONTEXT_BYTES`].
    #[error("{}: is longer than {MOST_CONTEXT_BYTES} bytes; keep what the agent must always know, and put the rest into files that it can read", .0.display())]
    TooLong(PathBuf),
    /// It is not UTF-8.
    #[error("{}: is no UTF-8 text; save it as UTF-8", .0.display())]
    NotText(PathBuf),
    /// The lines between `---` at its beginning are wrong.
    #[error("{}: line {line}: {what}", path.display())]
    FrontMatter {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what to write.
        what: String,
    },
}

/// The business context for an agent from a folder: `planner.zh.md` in that language, else `planner.md`, else the same for
/// `default`. A file or folder that is not there is no error, and a file that the guard does not admit is not there.
pub(super) fn read(
    folder: &Path,
    agent: &AgentType,
    language: Language,
    guard: &FileGuard,
) -> Result<Option<ContextFile>, ContextError> {
    for name in [agent.name(), "default"] {
        for file in [format!("{name}.{}.md", language.name()), format!("{name}.md")] {
            let path = folder.join(file);
            if let Some(text) = read_text(&path, guard)? {
                let text = without_front_matter(&path, &text, name, language)?;
                return Ok(Some(ContextFile { path, text }));
            }
        }
    }
    Ok(None)
}

fn read_text(path: &Path, guard: &FileGuard) -> Result<Option<String>, ContextError> {
    let unreadable = |source| ContextError::Unreadable { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    file.take(MOST_CONTEXT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if !guard.admits(path, &bytes) {
        return Ok(None);
    }
    if bytes.len() > MOST_CONTEXT_BYTES {
        return Err(ContextError::TooLong(path.to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| ContextError::NotText(path.to_owned()))
}

/// Takes `title`, `agent` and `language` off, after a look whether they fit.
fn without_front_matter(path: &Path, text: &str, name: &str, language: Language) -> Result<String, ContextError> {
    let wrong = |line: usize, what: String| ContextError::FrontMatter { path: path.to_owned(), line, what };
    let text = text.trim_start_matches('\u{FEFF}');
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Ok(text.to_owned());
    }
    for (index, line) in lines.by_ref().enumerate() {
        let number = index + 2;
        let line = line.trim();
        if line == "---" {
            return Ok(lines.collect::<Vec<_>>().join("\n"));
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(':').ok_or_else(|| wrong(number, format!("`{line}` is no `key: value`")))?;
        let value = value.trim().trim_matches(['"', '\'']);
        match key.trim() {
            "title" => {}
            "agent" if value == name => {}
            "agent" => return Err(wrong(number, format!("it is for `{value}`, but the file is named for `{name}`"))),
            "language" if Language::named(value) == Some(language) => {}
            "language" if Language::named(value).is_some() => {
                let better = format!("{name}.{value}.md");
                return Err(wrong(number, format!("it is in `{value}`; name the file `{better}`")));
            }
            "language" => return Err(wrong(number, format!("`{value}` is no language; write `en` or `zh`"))),
            other => return Err(wrong(number, format!("`{other}` is not known; write `title`, `agent` or `language`"))),
        }
    }
    Err(wrong(1, "the front matter has no second `---`".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &[u8])], language: Language) -> Result<Option<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
        let read =
            read(folder.path(), &AgentType::PLANNER, language, &FileGuard::default()).map_err(|error| error.to_string())?;
        Ok(read.map(|file| (file.path.file_name().unwrap().to_string_lossy().into_owned(), file.text)))
    }

    #[test]
    fn the_nearest_file_counts() {
        let all: &[(&str, &[u8])] =
            &[("planner.md", b"P"), ("planner.zh.md", b"Z"), ("default.md", b"D"), ("executor.md", b"E")];
        let found = |files, language| check(files, language).unwrap().map(|(name, _)| name);
        assert_eq!(found(all, Language::Zh).as_deref(), Some("planner.zh.md"));
        assert_eq!(found(all, Language::En).as_deref(), Some("planner.md"));
        assert_eq!(found(&all[2..], Language::Zh).as_deref(), Some("default.md"));
        assert_eq!(found(&all[3..], Language::En), None);
        let nowhere = Path::new("no such folder");
        assert_eq!(read(nowhere, &AgentType::PLANNER, Language::En, &FileGuard::default()).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_not_admitted_is_passed_over_for_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("planner.md"), "planted").unwrap();
        std::fs::write(folder.path().join("default.md"), "mine").unwrap();
        let guard = FileGuard::new(|path, bytes| path.ends_with("default.md") && bytes == b"mine");
        let found = read(folder.path(), &AgentType::PLANNER, Language::En, &guard).unwrap().unwrap();
        assert_eq!(found.text, "mine");
        std::fs::write(folder.path().join("default.md"), "changed").unwrap();
        assert_eq!(read(folder.path(), &AgentType::PLANNER, Language::En, &guard).unwrap(), None);
    }

    #[test]
    fn front_matter_is_taken_off() {
        for (text, body) in [
            ("# Plain\n---\nx", "# Plain\n---\nx"),
            ("---\ntitle: \"Shop\"\n# note\n\nagent: planner\nlanguage: en\n---\n# Body\n---\n", "# Body\n---"),
            ("\u{FEFF}---\r\ntitle: a: b\r\n---\r\nBody", "Body"),
            ("", ""),
        ] {
            assert_eq!(check(&[("planner.md", text.as_bytes())], Language::En).unwrap().unwrap().1, body, "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let long = vec![b'x'; MOST_CONTEXT_BYTES + 1];
        for (bytes, said) in [
            (&b"---\ntitle: x\n"[..], "planner.md: line 1: the front matter has no second `---`"),
            (b"---\ntitle\n---\n", "line 2: `title` is no `key: value`"),
            (b"---\n\nmodel: x\n---\n", "line 3: `model` is not known; write `title`, `agent` or `language`"),
            (b"---\nagent: executor\n---\n", "it is for `executor`, but the file is named for `planner`"),
            (b"---\nlanguage: fr\n---\n", "`fr` is no language; write `en` or `zh`"),
            (b"---\nlanguage: zh\n---\n", "it is in `zh`; name the file `planner.zh.md`"),
            (b"caf\xe9", "is no UTF-8 text; save it as UTF-8"),
            (&long, "is longer than 65536 bytes"),
        ] {
            let error = check(&[("planner.md", bytes)], Language::En).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(check(&[("planner.md", &long[1..])], Language::En).unwrap().unwrap().1.len(), MOST_CONTEXT_BYTES);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("planner.md")).unwrap();
        let error = read(folder.path(), &AgentType::PLANNER, Language::En, &FileGuard::default()).unwrap_err();
        assert!(error.to_string().contains("planner.md: cannot be read"), "{error}");
    }
}
