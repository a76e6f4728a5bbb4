//! How anybody writes an agent: an [`Agent`] executes tasks, a [`StateHandler`] makes the bot message of a phase.
//!
//! Everything has a default: an agent says what is its own and nothing else. What runs is ordinary async code; every effect
//! goes through the turn, so that it can be run again after a crash.

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
/// The usual agent says which handler serves which phase, and no more:
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
    /// The handlers, one for each phase. Asked once, when the agent is registered.
    fn phases(&self) -> Phases {
        Phases::new()
    }

    /// The sub-threads that the agent itself runs, whatever the phase. Asked once.
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    /// What the page offers to a person who talks to this agent (R034). Asked once.
    fn operations(&self) -> Vec<Operation> {
        Vec::new()
    }

    /// What the model is told about the agent whenever [`Turn::generate`] asks it (R037): the role's prompt.
    ///
    /// Write `async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure>`.
    fn system_prompt(&self, turn: &mut Turn) -> impl Future<Output = Result<Arc<str>, Failure>> + Send {
        async { Ok(turn.role().map(|role| role.prompt.clone()).unwrap_or_default()) }
    }

    /// Does what the turn's task asks and responds: by the handler of the phase, see [`Turn::handle_by_phase`].
    ///
    /// Write `async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure>`.
    fn execute_task(&self, turn: &mut Turn) -> impl Future<Output = Result<Response, Failure>> + Send {
        turn.handle_by_phase()
    }

    /// Whether it is one that runs in sub-threads. [`crate::SubThreadAgent`] answers this; nobody else need.
    #[doc(hidden)]
    fn as_sub_thread(self: Arc<Self>) -> Option<Arc<dyn AnySubThreadAgent>> {
        None
    }
}

/// Makes the bot message of one phase, and nothing else (R047): what is stored, and which phase is next, is seen to.
pub trait StateHandler: Send + Sync + 'static {
    /// The sub-threads that the handler runs. Asked once, when the agent is registered.
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
/// A new thread stands in `initial_phase`; where no handler has that name, the first one serves it. Where a thread ends is
/// `completed`; a handler for it is needed only if the conversation goes on.
#[derive(Default, Clone)]
pub struct Phases {
    pub(crate) steps: Vec<PhaseStep>,
}

/// A handler and what is said about it.
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

    /// One more phase, and who makes its bot message. It suggests no other phase unless [`Phases::then`] follows (R045).
    pub fn on(mut self, phase: &str, handler: impl StateHandler) -> Self {
        self.steps.push(PhaseStep { phase: phase.into(), next: None, handler: Arc::new(handler) });
        self
    }

    /// What follows the phase just named: suggested when its handler is done, unless it has suggested one itself (D04).
    pub fn then(mut self, next: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.next = Some(next.into());
        }
        self
    }
}

/// An agent that is its phases and nothing else.
impl Agent for Phases {
    fn phases(&self) -> Phases {
        self.clone()
    }
}

/// Something that a person can have an agent do with one touch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its name, for programs.
    pub name: Arc<str>,
    /// Its name, for people.
    pub label: Arc<str>,
    /// What is then said to the agent.
    pub message: Arc<str>,
    /// What goes with it into the task's meta, such as `_ui_action`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Its label and what is said in other languages, by their short names such as `zh`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub translations: BTreeMap<Arc<str>, OperationWords>,
}

/// The words of an operation in another language.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationWords {
    /// Its name, for people.
    pub label: Arc<str>,
    /// What is then said to the agent.
    pub message: Arc<str>,
}

impl Operation {
    /// An operation that says this to the agent.
    pub fn new(name: impl Into<Arc<str>>, label: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        let (name, label, message) = (name.into(), label.into(), message.into());
        Self { name, label, message, meta: Map::new(), translations: BTreeMap::new() }
    }

    /// The same operation with its words in another language.
    pub fn translated(mut self, language: &str, label: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        self.translations.insert(language.into(), OperationWords { label: label.into(), message: message.into() });
        self
    }

    /// The same operation with one more entry for the task's meta.
    pub fn with_meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }
}
