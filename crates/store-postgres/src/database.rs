//! A handle of a log's database for what is stored beside the log. It has connections of its own, so that a large content holds no
//! read of the log up, and ends with the log.

use std::sync::Arc;

use polis_ports::LogError;
use tokio::runtime::Handle;

use crate::error::stopped;
use crate::pool::Pool;

/// Runs work on the threads of a log.
#[derive(Clone)]
pub(crate) struct Database {
    runtime: Handle,
    pool: Arc<Pool>,
}

impl Database {
    pub(crate) fn new(runtime: Handle, pool: Arc<Pool>) -> Self {
        Self { runtime, pool }
    }

    /// Runs a piece of work to its end, also if the caller goes away.
    pub(crate) async fn run<T, F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LogError>> + Send + 'static,
    {
        self.runtime.spawn(work(self.pool.clone())).await.map_err(|_| stopped())?
    }

    /// The same for a caller that blocks.
    pub(crate) fn block_on<T, F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        let work = work(self.pool.clone());
        self.runtime.spawn(async move {
            // A caller that went away does not need it.
            let _ = done.send(work.await);
        });
        wait.recv().map_err(|_| stopped())
    }

    /// Begins a piece of work that nobody waits for.
    pub(crate) fn begin<F>(&self, work: impl FnOnce(Arc<Pool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime.spawn(work(self.pool.clone()));
    }
}
