//! Being asked to stop: the first time gently, the second time at once.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::error::Exit;
use crate::out;

/// Watches for SIGINT and SIGTERM, from this moment on. The token is cancelled by the first; a second one ends the program on
/// the spot.
pub(crate) fn watch() -> CancellationToken {
    Interrupts::watch().stop
}

/// Signals to a program that answers one request after another: Ctrl-C stops the request under way, or else the program.
#[derive(Clone)]
pub(crate) struct Interrupts {
    /// Cancelled when the program is to stop.
    pub(crate) stop: CancellationToken,
    request: Arc<Mutex<Option<CancellationToken>>>,
}

impl Interrupts {
    /// Watches for SIGINT and SIGTERM, from this moment on.
    pub(crate) fn watch() -> Self {
        let interrupts = Self { stop: CancellationToken::new(), request: Arc::default() };
        let watched = interrupts.clone();
        let mut signals = Signals::new();
        // It lives as long as the program does.
        tokio::spawn(async move {
            while let (Signal::Interrupt, Some(request)) = (signals.next().await, watched.take()) {
                request.cancel();
            }
            out::note("polis: stopping; press Ctrl-C again to stop immediately");
            watched.stop.cancel();
            signals.next().await;
            std::process::exit(Exit::Stopped.code().into());
        });
        interrupts
    }

    /// A request begins: the next Ctrl-C cancels this token and not the program's. So does whatever stops the program.
    pub(crate) fn begin_request(&self) -> CancellationToken {
        let token = self.stop.child_token();
        *self.request.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        token
    }

    /// The request has ended: the next Ctrl-C stops the program.
    pub(crate) fn end_request(&self) {
        self.take();
    }

    fn take(&self) -> Option<CancellationToken> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What came.
enum Signal {
    /// Ctrl-C.
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has it"))]
    Terminate,
}

/// Its number on Linux and macOS.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

#[cfg(unix)]
struct Signals {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// One that cannot be watched does what it does to any program.
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        // A file that may not grow any more is an error of whoever writes it, and no reason to die.
        let _ = signal(SignalKind::from_raw(SIGXFSZ));
        Self { interrupt: signal(SignalKind::interrupt()).ok(), terminate: signal(SignalKind::terminate()).ok() }
    }

    async fn next(&mut self) -> Signal {
        async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = one(&mut self.interrupt) => Signal::Interrupt,
            () = one(&mut self.terminate) => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
        Signal::Interrupt
    }
}
