//! Handlers that are there: the two steps in which a main agent starts a sub-thread, so that a person sees something at once.

use std::sync::Arc;

use polis_domain::{Failure, Response, Sender, SubThreadRequest, Task};

use crate::text::{CONTINUE, WAIT};
use crate::{StateHandler, SubThreadAgent, SubThreads, Turn};

/// The first step: a placeholder message, and a task that goes on with the second step (R088-R091).
///
/// ```
/// # use polis_engine::{ExecuteSubThread, Phases, PrepareSubThread, SubThreadAgent};
/// fn phases(agent: impl SubThreadAgent) -> Phases {
///     Phases::new()
///         .on("prepare_subthread", PrepareSubThread::default())
///         .then("execute_subthread")
///         .on("execute_subthread", ExecuteSubThread::of(agent))
///         .then("prepare_subthread")
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct PrepareSubThread {
    /// What the placeholder says; `None` for a word about waiting in the language of the request.
    pub placeholder: Option<Arc<str>>,
}

impl StateHandler for PrepareSubThread {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let query = turn.task().message.clone();
        let placeholder = self.placeholder.as_deref().unwrap_or_else(|| WAIT.to(&query));
        let mut response = Response::new(placeholder);
        let task = Task::action(turn.task().id.clone(), "ContinueProcessing", CONTINUE.to(&query))
            .with_meta("originalQuery", &*query)
            .with_meta("timestamp", turn.now().0);
        response.add_next_task(task);
        Ok(response)
    }
}

/// The second step: a sub-thread in the placeholder, which then shows what came of it (R092-R097).
#[derive(Clone)]
pub struct ExecuteSubThread {
    sub_threads: SubThreads,
}

impl ExecuteSubThread {
    /// Runs this agent in the sub-thread.
    pub fn of(agent: impl SubThreadAgent) -> Self {
        Self { sub_threads: SubThreads::new().with("", agent) }
    }
}

impl StateHandler for ExecuteSubThread {
    fn sub_threads(&self) -> SubThreads {
        self.sub_threads.clone()
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let original = turn.task().meta.get("originalQuery").and_then(|query| query.as_str());
        let query: Arc<str> = original.map_or_else(|| turn.task().message.clone(), Into::into);
        let mut request = SubThreadRequest::new("", query);
        if let Some((_, last)) = turn.recent(1).await?.pop()
            && last.sender == Sender::Bot
            && !last.meta.contains_key("_thread")
        {
            request = request.in_message(last.id);
        }
        Ok(turn.run_sub_thread(request).await?.into())
    }
}
