//! Ready-made handlers: the two steps in which a main agent starts a sub-thread, so that a person sees a placeholder at once.

use std::sync::Arc;

use polis_domain::{Failure, Response, SubThreadRequest, Task};

use crate::text::{CONTINUE, WAIT};
use crate::{StateHandler, SubThreadAgent, SubThreads, Turn};

/// The first step: a placeholder message, and a task that continues with the second step (R088-R091).
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
    /// The text of the placeholder; `None` for a default in the language of the request.
    pub placeholder: Option<Arc<str>>,
}

impl StateHandler for PrepareSubThread {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let query = turn.task().message.clone();
        let placeholder = self.placeholder.as_deref().unwrap_or_else(|| WAIT.in_language_of(&query));
        let mut response = Response::new(placeholder);
        let task = Task::action(turn.task().id.clone(), "ContinueProcessing", CONTINUE.in_language_of(&query))
            .with_meta("originalQuery", &*query)
            .with_meta("timestamp", turn.now().0);
        response.add_next_task(task);
        Ok(response)
    }
}

/// The second step: a sub-thread in the placeholder, which then shows its result (R092-R097); or several in parallel.
#[derive(Clone)]
pub struct ExecuteSubThread {
    sub_threads: SubThreads,
}

impl ExecuteSubThread {
    /// Runs this agent in the sub-thread.
    pub fn of(agent: impl SubThreadAgent) -> Self {
        Self::each_of(SubThreads::new().with("", agent))
    }

    /// Gives the same request to each of these agents in parallel: the first in the placeholder, the others in new messages.
    /// A last message has all results, in this order (R086).
    ///
    /// ```
    /// # use polis_engine::{ExecuteSubThread, Phases, PrepareSubThread, SubThreadAgent, SubThreads};
    /// fn phases(sources: impl SubThreadAgent, pictures: impl SubThreadAgent) -> Phases {
    ///     let both = SubThreads::new().with("sources", sources).with("pictures", pictures);
    ///     Phases::new()
    ///         .on("prepare_subthread", PrepareSubThread::default())
    ///         .then("execute_subthread")
    ///         .on("execute_subthread", ExecuteSubThread::each_of(both))
    ///         .then("prepare_subthread")
    /// }
    /// ```
    pub fn each_of(sub_threads: SubThreads) -> Self {
        Self { sub_threads }
    }
}

impl StateHandler for ExecuteSubThread {
    fn sub_threads(&self) -> SubThreads {
        self.sub_threads.clone()
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let mut names = self.sub_threads.agents.iter().map(|(name, _)| name);
        let Some(first) = names.next() else {
            return Err(Failure::new("no_such_sub_thread", "no sub-thread is declared; give `ExecuteSubThread` one at least"));
        };
        let first = turn.prepared(first).await?;
        let others: Vec<_> = names.map(|name| SubThreadRequest { name: name.clone(), holder: None, ..first.clone() }).collect();
        if others.is_empty() {
            return Ok(turn.run_sub_thread(first).await?.into());
        }
        let requests = std::iter::once(first).chain(others).collect();
        let results = turn.run_sub_threads(requests).await?;
        let texts: Vec<_> = results.into_iter().map(|result| result.text).collect();
        Ok(Response::new(texts.join("\n\n")))
    }
}
