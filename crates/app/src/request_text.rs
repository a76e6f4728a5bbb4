//! The text of a request: the words of the command line and, where `-` stands at their end, standard input.

use std::io::{IsTerminal, Read, stdin};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::CliError;
use crate::out;

/// More is refused as too long anyway.
const MAX_BYTES: u64 = 1 << 20;

/// The argument that stands for standard input.
const STDIN: &str = "-";

/// What a person typed as the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestText {
    words: String,
    /// Whether standard input is read. Only `-` asks for it: a pipe that nobody writes to must not hold a request up.
    pub(crate) takes_stdin: bool,
}

impl From<Vec<String>> for RequestText {
    fn from(mut words: Vec<String>) -> Self {
        let takes_stdin = words.last().is_some_and(|word| word == STDIN);
        if takes_stdin {
            words.pop();
        }
        Self { words: words.join(" "), takes_stdin }
    }
}

impl RequestText {
    /// The whole text; none if the program was stopped while it was read.
    pub(crate) async fn read(&self, stop: &CancellationToken) -> Result<Option<String>, CliError> {
        if !self.takes_stdin {
            return Ok(Some(self.words.clone()));
        }
        if stdin().is_terminal() {
            out::note("polis: type the request and end it with Ctrl-D");
        }
        let read = read_stdin();
        let bytes = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            read = read => read.unwrap_or_else(|_| Ok(Vec::new())),
        };
        let bytes = bytes.map_err(|error| CliError::new("input_failed", format!("stdin cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            CliError::new("invalid_utf8", "stdin is not UTF-8; nothing was sent, attach it with --file instead")
        })?;
        Ok(Some(self.with(&text)))
    }

    /// The words, and what was piped below them.
    fn with(&self, piped: &str) -> String {
        match (self.words.as_str(), piped.trim_end()) {
            ("", piped) => piped.to_owned(),
            (words, "") => words.to_owned(),
            (words, piped) => format!("{words}\n\n{piped}"),
        }
    }
}

/// Nothing can interrupt reading, so a thread does it that the program's end takes along.
fn read_stdin() -> oneshot::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, read) = oneshot::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdin().lock().take(MAX_BYTES).read_to_end(&mut bytes).map(|_| bytes);
        // Nobody waits for it any more when the program was stopped.
        let _ = sender.send(read);
    });
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_goes_below_the_words() {
        let text = |words: &[&str]| RequestText::from(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for (words, takes_stdin, whole) in [
            (&["sum", "up", "-"][..], true, "sum up\n\none\ntwo"),
            (&["-"], true, "one\ntwo"),
            (&["a", "-", "b"], false, "a - b\n\none\ntwo"),
        ] {
            assert_eq!(text(words).takes_stdin, takes_stdin, "{words:?}");
            assert_eq!(text(words).with("one\ntwo\n"), whole, "{words:?}");
        }
        assert_eq!(text(&["sum", "up", "-"]).with("\n"), "sum up");
    }
}
