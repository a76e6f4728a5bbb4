//! What the program means to do: flags, then `POLIS_*`, then `polis.toml`, then defaults. Keys never come from the file.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use polis_providers::vendors::VENDORS;
use serde::Deserialize;
use toml::Spanned;

use crate::cli::{Command, Typed, With};
use crate::trouble::Trouble;

const FILE: &str = "polis.toml";
const DATA: &str = ".polis";
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

/// Everything that was decided about how to run.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// A running polis to talk to.
    pub(crate) url: Option<String>,
    /// `vendor/name`; none takes the first vendor with a key.
    pub(crate) model: Option<String>,
    pub(crate) workspace: PathBuf,
    pub(crate) listen: SocketAddr,
    /// Models that have no tools of their own.
    pub(crate) emulated_tools: Vec<String>,
    /// The cassette, if there is one.
    pub(crate) tape: Option<Tape>,
    /// The files that a later start may read its configuration from.
    pub(crate) files: Vec<PathBuf>,
    /// Addresses of vendors, by the variable that would set them.
    base_urls: BTreeMap<String, String>,
}

/// What a cassette is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tape {
    Record(PathBuf),
    Replay(PathBuf),
}

/// What `polis.toml` may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    model: Option<String>,
    listen: Option<String>,
    workspace: Option<PathBuf>,
    #[serde(default)]
    emulated_tools: Vec<String>,
    #[serde(default)]
    providers: BTreeMap<Spanned<String>, Provider>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    base_url: Option<String>,
}

impl Config {
    /// Puts together what was typed, the environment and the file.
    pub(crate) fn resolve(typed: &Typed) -> Result<Self, Trouble> {
        let data = typed.data.clone().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| DATA.into());
        let written = read_file(typed.config.as_deref(), &data)?;
        let with = typed.command.with();
        let flag = |pick: fn(&With) -> Option<String>| with.and_then(pick).filter(|value| !value.trim().is_empty());
        let listen = match &typed.command {
            Command::Serve(serve) => serve.listen.clone().filter(|listen| !listen.trim().is_empty()),
            _ => None,
        };
        let listen = listen.or(written.listen).map_or(Ok(LISTEN), |text| parse_listen(&text))?;
        let path = |pick: fn(&With) -> &Option<PathBuf>| {
            with.and_then(|with| pick(with).clone()).filter(|path| !path.as_os_str().is_empty())
        };
        let (record, replay) = (path(|with| &with.record), path(|with| &with.replay));
        let files = typed.config.iter().chain(&record).chain(&replay).cloned().chain([PathBuf::from(FILE)]).collect();
        Ok(Self {
            data,
            tape: record.map(Tape::Record).or(replay.map(Tape::Replay)),
            files,
            url: typed.url.clone().filter(|url| !url.trim().is_empty()),
            model: flag(|with| with.model.clone()).or(written.model),
            workspace: path(|with| &with.workspace).or(written.workspace).unwrap_or_else(|| ".".into()),
            listen,
            emulated_tools: written.emulated_tools,
            base_urls: written
                .providers
                .into_iter()
                .filter_map(|(name, it)| Some((variable(name.get_ref())?, it.base_url?)))
                .collect(),
        })
    }

    /// An environment variable, or what the file says in its place.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let set = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        set.or_else(|| self.base_urls.get(name).cloned())
    }

    /// How to call the program again on the same data.
    pub(crate) fn again(&self, command: &str) -> String {
        if self.data == Path::new(DATA) || std::env::var_os("POLIS_DATA").is_some_and(|dir| dir == self.data) {
            return format!("polis {command}");
        }
        format!("polis --data {} {command}", self.data.display())
    }
}

fn read_file(named: Option<&Path>, data: &Path) -> Result<Written, Trouble> {
    let in_data = data.join(FILE);
    let candidates = match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => vec![path],
        None => vec![Path::new(FILE), &in_data],
    };
    for path in &candidates {
        match std::fs::read_to_string(path) {
            Ok(text) => return parse(&text, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {}
            Err(error) => {
                let message = format!("the configuration {} cannot be read: {error}", path.display());
                return Err(Trouble::usage("bad_config", message));
            }
        }
    }
    Ok(Written::default())
}

/// The error names the place and never quotes the line: somebody may have written a key there.
fn parse(text: &str, path: &Path) -> Result<Written, Trouble> {
    let bad = |at: usize, what: String| {
        let before = &text[..at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Trouble::usage("bad_config", format!("{} line {line}, column {column}: {what}", path.display()))
    };
    let written: Written =
        toml::from_str(text).map_err(|error| bad(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    for name in written.providers.keys() {
        if variable(name.get_ref()).is_none() {
            let known: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).collect();
            let what = format!("unknown provider `{}`, expected one of {}", name.get_ref(), known.join(", "));
            return Err(bad(name.span().start, what));
        }
    }
    Ok(written)
}

/// The variable that sets a vendor's address.
fn variable(name: &str) -> Option<String> {
    let vendor = VENDORS.iter().find(|vendor| vendor.name == name || vendor.aliases.contains(&name));
    vendor.map(polis_providers::vendors::Vendor::base_url_variable)
}

fn parse_listen(text: &str) -> Result<SocketAddr, Trouble> {
    let numeric = match text.trim().strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.trim().to_owned(),
    };
    numeric.parse().map_err(|_| {
        Trouble::usage("bad_listen", format!("`{text}` is no address to listen on; write for example 127.0.0.1:3000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, Path::new("polis.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_place_and_without_its_line() {
        let said = error("model = \"offline\"\n\n[providers.openai]\n  api_key = \"sk-secret\"\n");
        assert!(said.contains("polis.toml line 4, column 3: unknown field `api_key`"), "{said}");
        assert!(!said.contains("sk-secret"), "{said}");
        assert!(error("modle = 1\n").contains("line 1, column 1: unknown field `modle`"));
        assert!(error("a = \n").contains("line 1, column"));
        let said = error("[providers.opnai]\nbase_url = \"http://127.0.0.1\"\n");
        assert!(said.contains("line 1, column 12: unknown provider `opnai`, expected one of openai"), "{said}");
    }

    #[test]
    fn an_address_of_a_vendor_stands_in_for_its_variable() {
        let written = parse("[providers.qwen]\nbase_url = \"http://h/v1\"\n", Path::new("x")).unwrap();
        let named: Vec<_> = written.providers.keys().map(|name| variable(name.get_ref())).collect();
        assert_eq!(named, [Some("DASHSCOPE_BASE_URL".to_owned())]);
    }

    #[test]
    fn an_address_to_listen_on_is_read() {
        assert_eq!(parse_listen("127.0.0.1:0").unwrap().port(), 0);
        assert_eq!(parse_listen("localhost:81").unwrap().to_string(), "127.0.0.1:81");
        assert!(parse_listen("3000").is_err());
    }
}
