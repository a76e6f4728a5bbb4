//! A society on a thread of its own; what runs there is not decided here.

use std::future::Future;

use polis_ports::LogError;

/// Gives a society a thread of its own, until it has ended.
pub(crate) fn run_on_own_thread(life: impl Future<Output = ()> + Send + 'static) -> Result<(), LogError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LogError::Failed(error.into()))?;
    let live = move || {
        runtime.block_on(life);
        // A tool that blocks is not waited for: what it does is in doubt, and settled at the next start.
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("society".to_owned()).spawn(live);
    thread.map(drop).map_err(|error| LogError::Failed(error.into()))
}
