//! Being asked to stop: the first time gently, the second time at once.

use tokio_util::sync::CancellationToken;

use crate::error::Exit;
use crate::out;

/// Watches for SIGINT and SIGTERM, from this moment on. The token is cancelled by the first; a second one ends the program on
/// the spot.
pub(crate) fn watch() -> CancellationToken {
    let stop = CancellationToken::new();
    let token = stop.clone();
    let mut signals = Signals::new();
    // It lives as long as the program does.
    tokio::spawn(async move {
        signals.next().await;
        out::note("polis: stopping; press Ctrl-C again to stop immediately");
        token.cancel();
        signals.next().await;
        std::process::exit(Exit::Stopped.code().into());
    });
    stop
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

    async fn next(&mut self) {
        async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = one(&mut self.interrupt) => {}
            () = one(&mut self.terminate) => {}
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

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
