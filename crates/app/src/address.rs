//! Addresses of conversations as people type them.

use polis_domain::{AgentId, SubThreadPath, ThreadId};

use crate::error::CliError;
use crate::terminal_language::one_language;

/// A thread and the way down from it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) main: ThreadId,
    pub(crate) path: SubThreadPath,
}

impl Address {
    /// Reads `root`, `root.messages[3].meta._thread`, or a path alone, which begins at root.
    pub(crate) fn read(text: &str) -> Result<Self, CliError> {
        let (main, path) = match text.find(".messages[") {
            _ if text.starts_with("messages[") => (AgentId::ROOT, text),
            Some(dot) => (&text[..dot], &text[dot + 1..]),
            None => (text, ""),
        };
        let path =
            path.parse().map_err(|bad: polis_domain::BadPath| CliError::usage("bad_path", one_language(&bad.to_string())))?;
        if main.is_empty() || main.contains(['[', ']']) {
            let message = format!("`{text}` is not an address; write for example root or root.messages[3].meta._thread");
            return Err(CliError::usage("bad_path", message));
        }
        Ok(Self { main: main.into(), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_thread_and_a_path() {
        let read = |text| {
            Address::read(text).map(|address| (address.main.to_string(), address.path.to_string())).map_err(|bad| bad.code)
        };
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(read("root"), pair("root", ""));
        assert_eq!(read("a.b.messages[3].meta._thread"), pair("a.b", "messages[3].meta._thread"));
        assert_eq!(
            read("messages[0].meta.x.messages[1].meta._thread"),
            pair("root", "messages[0].meta.x.messages[1].meta._thread")
        );
        for bad in ["", "root.messages[x].meta._thread", "root.messages[1]", "root[1]"] {
            assert_eq!(read(bad), Err("bad_path".into()), "{bad}");
        }
    }
}
