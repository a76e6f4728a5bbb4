//! Editing lines at a terminal, with a history that outlives the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use polis_store_local::write_private;
use rustyline::error::ReadlineError;
use rustyline::history::{History, MemHistory, SearchDirection};
use rustyline::{Config, Editor};
use tokio::sync::mpsc;

#[cfg(unix)]
use crate::out;
use crate::stdin_lines::Line;

/// Lines that the history keeps.
const HISTORY: usize = 1_000;

/// Has the terminal send pasted text as if it were typed, as usual.
#[cfg(unix)]
const END_OF_PASTES: &str = "\u{1b}[?2004l";

/// What stands before a line that is wanted.
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// Whether the line goes into the history.
    pub(crate) is_kept: bool,
}

/// The thread that edits lines. While no line is wanted the terminal is as it was, so that Ctrl-C is a signal.
pub(crate) struct LineEditor {
    prompts: Sender<Prompt>,
    /// Whether a line is being edited.
    is_editing: Arc<AtomicBool>,
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl LineEditor {
    /// Starts the thread, which the program's end takes along. None if the terminal cannot be used for it.
    pub(crate) fn start(history: PathBuf, lines: mpsc::Sender<Line>) -> Option<Self> {
        let config = Config::builder().max_history_size(HISTORY).ok()?.build();
        let mut editor = Editor::<(), MemHistory>::with_history(config.clone(), MemHistory::with_config(&config)).ok()?;
        read_history(&history, &mut editor);
        #[cfg(unix)]
        let before = rustix::termios::tcgetattr(std::io::stdin()).ok();
        let (prompts, wanted) = channel::<Prompt>();
        let is_editing = Arc::new(AtomicBool::new(false));
        let editing = is_editing.clone();
        std::thread::spawn(move || {
            for Prompt { text, is_kept } in wanted {
                let read = editor.readline(&text);
                editing.store(false, Ordering::SeqCst);
                match read {
                    Ok(text) => {
                        if is_kept && !text.trim().is_empty() && editor.add_history_entry(&text).unwrap_or(false) {
                            write_history(&history, &editor);
                        }
                        if lines.blocking_send(Line::Text(text)).is_err() {
                            return;
                        }
                    }
                    // The same as where the terminal makes a signal of it.
                    Err(ReadlineError::Interrupted) => interrupt_self(),
                    // The end of input, or a terminal that is gone.
                    Err(_) => return,
                }
            }
        });
        Some(Self {
            prompts,
            is_editing,
            #[cfg(unix)]
            before,
        })
    }

    /// Starts to edit a line. If one is being edited for a request that was given up, that one continues.
    pub(crate) fn prompt(&self, prompt: Prompt) {
        if !self.is_editing.swap(true, Ordering::SeqCst) {
            // The thread is gone at the end of input; the lines end too.
            let _ = self.prompts.send(prompt);
        }
    }
}

/// Restores the terminal if a line is being edited.
impl Drop for LineEditor {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let (true, Some(before)) = (self.is_editing.load(Ordering::SeqCst), &self.before) {
            let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, before);
            out::prompt(END_OF_PASTES);
        }
    }
}

fn interrupt_self() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    #[cfg(not(unix))]
    std::process::exit(crate::error::Exit::Stopped.code().into());
}

/// Each line of the file is a JSON text, because a line that was typed may have several. A file that cannot be read is empty.
fn read_history(path: &Path, editor: &mut Editor<(), MemHistory>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    for line in text.lines().filter_map(|line| serde_json::from_str::<String>(line).ok()) {
        let _ = editor.add_history_entry(line);
    }
}

/// A history that cannot be written is no reason to stop.
fn write_history(path: &Path, editor: &Editor<(), MemHistory>) {
    let history = editor.history();
    let line = |n| history.get(n, SearchDirection::Forward).ok().flatten();
    let lines = (0..history.len()).filter_map(line).filter_map(|found| serde_json::to_string(&found.entry).ok());
    let _ = write_private(path, &lines.collect::<Vec<_>>().join("\n"));
}
