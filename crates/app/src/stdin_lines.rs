//! Lines that a person types, read in parallel with everything else.

use std::io::{self, BufRead, Read};

use tokio::sync::mpsc;

/// Longest line that is read as one.
const MAX_BYTES: u64 = 1 << 20;

/// Lines that may be typed ahead.
const AHEAD: usize = 64;

/// The lines of stdin.
pub(crate) struct StdinLines {
    lines: mpsc::Receiver<Line>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// It is not UTF-8.
    Garbled,
}

impl StdinLines {
    /// Begins to read. Nothing can interrupt reading from a terminal, so a thread does it that the program's end takes along.
    pub(crate) fn start() -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut bytes = Vec::new();
                match stdin.by_ref().take(MAX_BYTES).read_until(b'\n', &mut bytes) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let line = String::from_utf8(bytes)
                    .map_or(Line::Garbled, |text| Line::Text(text.trim_end_matches(['\r', '\n']).to_owned()));
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// The next line; none when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        self.lines.recv().await
    }
}
