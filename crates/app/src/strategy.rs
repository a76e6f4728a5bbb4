//! Root's code: it converses, or has a workflow do what is asked, as the request's meta says.

use polis_agents::Converse;
use polis_agents::workflow::Workflow;
use polis_domain::{Failure, Response, SubThreadRequest};
use polis_engine::{Agent, SubThreads, Turn};

/// The key of a task's meta that says how to go about it.
const STRATEGY: &str = "strategy";

/// The strategy that plans, does and verifies.
pub(crate) const WORKFLOW: &str = "workflow";

/// Converses unless a request wants it otherwise.
pub(crate) struct Chosen {
    converse: Converse,
    workflow: Workflow,
}

impl Chosen {
    pub(crate) fn new(workflow: Workflow) -> Self {
        Self { converse: Converse::default(), workflow }
    }
}

impl Agent for Chosen {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with(WORKFLOW, self.workflow.clone())
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if turn.task().meta.get(STRATEGY).is_none_or(|strategy| strategy != WORKFLOW) {
            return self.converse.execute_task(turn).await;
        }
        let message = turn.task().message.clone();
        let result = turn.run_sub_thread(SubThreadRequest::new(WORKFLOW, message)).await?;
        match result.failure {
            Some(failure) => Err(failure),
            None => Ok(result.into()),
        }
    }
}
