//! Being asked to stop: the first time gently, the second time at once.

use tokio_util::sync::CancellationToken;

use crate::out;
use crate::trouble::Exit;

/// Watches for SIGINT and SIGTERM. The token is cancelled by the first; a second one ends the program on the spot.
pub(crate) fn watch() -> CancellationToken {
    let stop = CancellationToken::new();
    let told = stop.clone();
    // It lives as long as the program does.
    tokio::spawn(async move {
        next().await;
        out::note("polis: stopping; once more stops at once");
        told.cancel();
        next().await;
        std::process::exit(Exit::Stopped.code().into());
    });
    stop
}

#[cfg(unix)]
async fn next() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn next() {
    let _ = tokio::signal::ctrl_c().await;
}
