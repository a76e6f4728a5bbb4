//! The queue in front of the writer: in order of arrival, and bounded in jobs and bytes.

use polis_ports::LogError;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};

use std::sync::Arc;

use crate::error::stopped;

/// How much may be queued or under way; beyond it callers wait.
const KIB: u32 = 64 * 1024;

/// How many jobs may be queued.
const JOBS: usize = 16 * 1024;

/// The space that a job takes until it is dropped.
pub(crate) type Space = OwnedSemaphorePermit;

/// Where callers put jobs.
pub(crate) struct Queue<Job> {
    /// Held while a job waits for space, so that no later job gets in before it.
    entrance: Mutex<mpsc::Sender<(Job, Space)>>,
    space: Arc<Semaphore>,
}

impl<Job> Queue<Job> {
    pub(crate) fn new() -> (Self, mpsc::Receiver<(Job, Space)>) {
        let (sender, receiver) = mpsc::channel(JOBS);
        (Self { entrance: Mutex::new(sender), space: Arc::new(Semaphore::new(KIB as usize)) }, receiver)
    }

    /// Adds a job once there is space for it and for all jobs before it.
    pub(crate) async fn push(&self, job: Job, bytes: usize) -> Result<(), LogError> {
        let kib = u32::try_from(1 + bytes / 1024).unwrap_or(KIB).min(KIB);
        let sender = self.entrance.lock().await;
        let space = self.space.clone().acquire_many_owned(kib).await.map_err(|_| stopped())?;
        sender.send((job, space)).await.map_err(|_| stopped())
    }
}
