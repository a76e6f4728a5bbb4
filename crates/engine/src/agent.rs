//! The traits for writing agents: an [`Agent`] executes tasks, a [`StateHandler`] makes the bot message of a phase.
//!
//! Every method has a default, so an agent implements only what differs. Handlers are ordinary async code; every effect goes
//! through the turn, so that the code can be run again after a crash.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use polis_domain::{Failure, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cast::{AnyHandler, AnySubThreadAgent};
use crate::{SubThreads, Turn};

/// Executes tasks (the documents' BaseAgent).
///
/// Most agents only say which handler serves which phase:
///
/// ```
/// use polis_engine::{Agent, Phases, StateHandler, Turn};
/// use polis_domain::{Failure, Response};
///
/// struct GreetingHandler;
/// impl StateHandler for GreetingHandler {
///     async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
///         Ok(Response::new(turn.generate("Greet the person.").await?))
///     }
/// }
///
/// struct GreetingAgent;
/// impl Agent for GreetingAgent {
///     fn phases(&self) -> Phases {
///         Phases::new().on("initial_phase", GreetingHandler).then("initial_phase")
///     }
/// }
/// ```
pub trait Agent: Send + Sync + 'static {
    /// The handlers, one for each phase. Called once, when the agent is registered.
    fn phases(&self) -> Phases {
        Phases::new()
    }

    /// The sub-threads that the agent may run in any phase. Called once, when the agent is registered.
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    /// The operations that the web page offers to a person who talks to this agent (R034). Called once, when the agent is
    /// registered.
    fn operations(&self) -> Vec<Operation> {
        Vec::new()
    }

    /// The system prompt for [`Turn::generate`] (R037). The default is the role's prompt.
    ///
    /// Write `async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure>`.
    fn system_prompt(&self, turn: &mut Turn) -> impl Future<Output = Result<Arc<str>, Failure>> + Send {
        async { Ok(turn.role().map(|role| role.prompt.clone().into()).unwrap_or_default()) }
    }

    /// Executes the turn's task and responds. The default calls the handler of the phase, see [`Turn::handle_by_phase`].
    ///
    /// Write `async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure>`.
    fn execute_task(&self, turn: &mut Turn) -> impl Future<Output = Result<Response, Failure>> + Send {
        turn.handle_by_phase()
    }

    /// The agent as a sub-thread agent, if it is one. Implemented for [`crate::SubThreadAgent`]s; others keep the default.
    #[doc(hidden)]
    fn as_sub_thread(self: Arc<Self>) -> Option<Arc<dyn AnySubThreadAgent>> {
        None
    }
}

/// Makes the bot message of one phase and nothing else (R047). The engine stores the message and applies the next phase.
pub trait StateHandler: Send + Sync + 'static {
    /// The sub-threads that the handler may run. Called once, when the agent is registered.
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    /// Makes the bot message.
    ///
    /// Write `async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure>`.
    fn handle(&self, turn: &mut Turn) -> impl Future<Output = Result<Response, Failure>> + Send;
}

/// Which handler serves which phase, and which phase follows it (R046).
///
/// A new thread is in `initial_phase`; if no handler has that name, the first one serves it. The last phase is `completed`;
/// it needs a handler only if the conversation goes on.
#[derive(Default, Clone)]
pub struct Phases {
    pub(crate) steps: Vec<PhaseStep>,
}

/// A handler, its phase, and the phase that follows.
#[derive(Clone)]
pub(crate) struct PhaseStep {
    pub(crate) phase: Arc<str>,
    pub(crate) next: Option<Arc<str>>,
    pub(crate) handler: Arc<dyn AnyHandler>,
}

impl Phases {
    /// No phases yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a phase and its handler. It suggests no next phase unless [`Phases::then`] follows (R045).
    pub fn on(mut self, phase: &str, handler: impl StateHandler) -> Self {
        self.steps.push(PhaseStep { phase: phase.into(), next: None, handler: Arc::new(handler) });
        self
    }

    /// Sets the next phase of the phase added last. It is suggested when the handler is done, unless the handler has
    /// suggested one itself (D04).
    pub fn then(mut self, next: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.next = Some(next.into());
        }
        self
    }
}

/// An agent that consists of its phases only.
impl Agent for Phases {
    fn phases(&self) -> Phases {
        self.clone()
    }
}

/// An action that a person can start with one click.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The name for programs.
    pub name: Arc<str>,
    /// The label for people.
    pub label: Arc<str>,
    /// The message that is sent to the agent.
    pub message: Arc<str>,
    /// Extra meta for the task, such as `_ui_action`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Label and message in other languages, by language code such as `zh`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub translations: BTreeMap<Arc<str>, OperationWords>,
}

/// The label and message of an operation in another language.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationWords {
    /// The label for people.
    pub label: Arc<str>,
    /// The message that is sent to the agent.
    pub message: Arc<str>,
}

impl Operation {
    /// An operation that sends `message` to the agent.
    pub fn new(name: impl Into<Arc<str>>, label: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        let (name, label, message) = (name.into(), label.into(), message.into());
        Self { name, label, message, meta: Map::new(), translations: BTreeMap::new() }
    }

    /// Adds label and message in another language.
    pub fn translated(mut self, language: &str, label: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        self.translations.insert(language.into(), OperationWords { label: label.into(), message: message.into() });
        self
    }

    /// Adds an entry to the task's meta.
    pub fn with_meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }
}
