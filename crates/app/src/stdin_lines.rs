//! Lines that a person types, read in parallel with everything else.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use tokio::sync::mpsc;

use crate::line_editor::{LineEditor, Prompt};
use crate::out;

/// Longest line that is read as one.
const MAX_BYTES: u64 = 1 << 20;

/// Lines that may be typed ahead.
const AHEAD: usize = 64;

/// The lines of stdin.
pub(crate) struct StdinLines {
    lines: mpsc::Receiver<Line>,
    /// Edits them, at the terminal of a chat.
    editor: Option<LineEditor>,
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
        Self { lines, editor: None }
    }

    /// The same at a terminal, where lines are edited and remembered in a file.
    pub(crate) fn edited(history: PathBuf) -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        match LineEditor::start(history, sender) {
            Some(editor) => Self { lines, editor: Some(editor) },
            None => Self::start(),
        }
    }

    /// The next line after a prompt; none when there are no more.
    pub(crate) async fn prompt(&mut self, prompt: &str) -> Option<Line> {
        self.prompted(Prompt { text: prompt.to_owned(), is_kept: false }).await
    }

    /// The same for a line that goes into the history.
    pub(crate) async fn prompt_kept(&mut self, prompt: &str) -> Option<Line> {
        self.prompted(Prompt { text: prompt.to_owned(), is_kept: true }).await
    }

    async fn prompted(&mut self, prompt: Prompt) -> Option<Line> {
        match &self.editor {
            Some(editor) => editor.prompt(prompt),
            None => out::prompt(&prompt.text),
        }
        self.next().await
    }

    /// The next line; none when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        self.lines.recv().await
    }
}
