//! Requests that happen once: a handle of a society whose command is done unless the log has it already.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use polis_domain::{AgentId, Command, Digest, DoneRequest, Event, IdempotencyKey, Recorded, Refusal, Request, Seq};

use crate::error::CommandError;
use crate::shared::Committed;
use crate::society::{Once, Sent, Society};

impl Society {
    /// A handle for one request: the one command given through it is done at most once, also across restarts. A repeat is answered
    /// with what the first one did. The newest 10,000 requests are remembered; a refused command is not, because it did nothing.
    #[must_use]
    pub fn once(&self, request: Request) -> Self {
        let mut society = self.clone();
        society.once = Some(Once { request, replayed: Arc::default() });
        society
    }

    /// The same handle without a request: what is done through it may be done again.
    #[must_use]
    pub fn unkeyed(&self) -> Self {
        let mut society = self.clone();
        society.once = None;
        society
    }

    /// Gives root a new request, unless a request with this key was given before: then that one is meant.
    pub async fn submit_once(&self, key: &str, text: &str) -> Result<Sent, CommandError> {
        let request = Request { key: IdempotencyKey::of([key]), fingerprint: Digest::of([text]) };
        self.once(request).send(AgentId::root(), text, None).await
    }

    /// Whether the command given through this handle was a repeat.
    pub fn is_replay(&self) -> bool {
        self.once.as_ref().is_some_and(|once| once.replayed.load(Ordering::Relaxed))
    }

    /// Notes that this handle's request was a repeat, where something else than a command has shown it.
    pub fn set_replay(&self) {
        self.once.iter().for_each(|once| once.replayed.store(true, Ordering::Relaxed));
    }

    /// The request of this handle.
    pub fn request(&self) -> Option<Request> {
        self.once.as_ref().map(|once| once.request)
    }

    /// What this handle's request did, if it was done before. For callers that check something before they give the command.
    pub async fn done_before(&self) -> Result<Option<Vec<Arc<Recorded>>>, CommandError> {
        let Some(Once { request, .. }) = self.once.clone() else { return Ok(None) };
        match self.look(move |spine| spine.requests.get(request.key).copied()).await? {
            Some(done) if done.request != request => Err(Refusal::KeyReused.into()),
            Some(done) => self.replay(done).await.map(Some),
            None => Ok(None),
        }
    }

    /// The command as this handle gives it.
    pub(crate) fn wrapped(&self, command: Command) -> Command {
        match &self.once {
            Some(Once { request, .. }) => Command::Once { request: *request, command: Box::new(command) },
            None => command,
        }
    }

    /// What came of a wrapped command, without what only records the request.
    pub(crate) async fn unwrapped(&self, committed: Committed) -> Committed {
        match committed {
            Err(CommandError::Refused(Refusal::DoneBefore(done))) => self.replay(done).await,
            Ok(mut events) => {
                events.pop_if(|last| matches!(last.event, Event::RequestDone { .. }));
                Ok(events)
            }
            refused => refused,
        }
    }

    /// Reads what a request did. Its events stand right before the one that recorded it.
    async fn replay(&self, done: DoneRequest) -> Committed {
        self.set_replay();
        let before = Seq(done.seq.0.saturating_sub(u64::from(done.events) + 1));
        let events = self.ports().log.read(self.id(), before, done.events as usize).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }
}
