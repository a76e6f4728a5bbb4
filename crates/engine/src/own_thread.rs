//! Running a society on a thread of its own.

use std::future::Future;

use polis_ports::LogError;

/// Runs a society on a new thread with its own runtime, until it has ended.
pub(crate) fn run_on_own_thread(life: impl Future<Output = ()> + Send + 'static) -> Result<(), LogError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LogError::Failed(error.into()))?;
    let live = move || {
        // Spawned, because each wake-up of the future that `block_on` polls is a system call, even from its own thread.
        let ended = runtime.block_on(async { tokio::spawn(life).await });
        // A blocking tool is not waited for. If it writes, the call is in doubt at the next opening.
        runtime.shutdown_background();
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            std::panic::resume_unwind(panic);
        }
    };
    let thread = std::thread::Builder::new().name("society".to_owned()).spawn(live);
    thread.map(drop).map_err(|error| LogError::Failed(error.into()))
}
