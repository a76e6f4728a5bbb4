//! Says on stderr that something takes its time, until it is done.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::out;

/// How long nothing is said.
const FIRST: Duration = Duration::from_secs(1);

/// How much longer each pause is than the one before.
const SLOWER: u32 = 3;

/// Reports on stderr that the command still runs, until it is dropped. A thread does it, because the work may keep all others busy.
#[must_use]
pub(crate) struct Patience {
    _is_over: Sender<()>,
}

impl Patience {
    /// Begins to wait.
    pub(crate) fn start(what: &'static str) -> Self {
        Self::with(FIRST, move |waited| out::note(&format!("polis: {what} ({} s)", waited.as_secs())))
    }

    fn with(first: Duration, say: impl Fn(Duration) + Send + 'static) -> Self {
        let (sender, is_over) = mpsc::channel();
        thread::spawn(move || {
            let (began, mut pause) = (Instant::now(), first);
            while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                say(began.elapsed());
                pause *= SLOWER;
            }
        });
        Self { _is_over: sender }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_until_the_work_is_done() {
        let (sender, said) = mpsc::channel();
        let patience = Patience::with(Duration::from_millis(1), move |_| sender.send(()).unwrap_or_default());
        said.recv().unwrap();
        said.recv().unwrap();
        drop(patience);
        // The thread has ended when nothing can be said any more.
        while said.recv().is_ok() {}
    }
}
