//! Work in several rounds inside one message: a [`SubThreadAgent`] runs [`InteractionUnit`]s in a sub-thread until it is done.
//!
//! ```text
//! main thread > handler > sub-thread > SubThreadAgent > InteractionUnit(s) > handler
//! ```
//! Each unit is a durable turn of its own in the sub-thread, so a finished unit is never run again. What the agent itself
//! decides (which unit is next, the summary) is part of the turn that started the sub-thread.

use std::future::Future;
use std::sync::Arc;

use polis_domain::{Failure, Message, MessageId, Phase, Response, Sender, SubThreadPath, Thread};

use crate::cast::{AnyHandler, AnySubThreadAgent, AnyUnit};
use crate::{Agent, StateHandler, Turn};

/// The default of [`SubThreadAgent::max_interactions`].
const MAX_INTERACTIONS: usize = 50;

/// Manages one sub-thread: its units, when it is done, and its result (R056-R067). Used as a plain [`Agent`], it runs in a
/// sub-thread of a new message.
///
/// Its settings are those of its sub-thread, never those of the parent thread (D02). A failure inside it becomes a result
/// that the parent reads (R067).
pub trait SubThreadAgent: Send + Sync + 'static {
    /// The units, one for each phase (R063). Called once, when the agent is registered.
    fn units(&self) -> Units;

    /// How many units one run may execute. More is an error (R066).
    fn max_interactions(&self) -> usize {
        MAX_INTERACTIONS
    }

    /// Whether this phase is the last (R064).
    fn is_terminal(&self, phase: &Phase) -> bool {
        phase.is_terminal()
    }

    /// The system prompt for model calls. The default is the role's prompt.
    ///
    /// Write `async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure>`.
    fn system_prompt(&self, turn: &mut Turn) -> impl Future<Output = Result<Arc<str>, Failure>> + Send {
        async { Ok(turn.role().map(|role| role.prompt.clone().into()).unwrap_or_default()) }
    }

    /// The phase of the next unit (R053). The default is what the last unit suggested. If it suggested nothing,
    /// `progress.next` is the phase of the last unit, and the run ends unless this returns another phase.
    ///
    /// Write `async fn next_unit(&self, progress: &Progress, turn: &mut Turn) -> Result<Phase, Failure>`.
    fn next_unit(&self, progress: &Progress, _turn: &mut Turn) -> impl Future<Output = Result<Phase, Failure>> + Send {
        let phase = progress.next.clone();
        async { Ok(phase) }
    }

    /// The result of the sub-thread (R062). The default is the last bot message (D05).
    ///
    /// Write `async fn summarize(&self, progress: &Progress, turn: &mut Turn) -> Result<String, Failure>`.
    fn summarize(&self, progress: &Progress, _turn: &mut Turn) -> impl Future<Output = Result<String, Failure>> + Send {
        let text = progress.last_bot_text().to_owned();
        async { Ok(text) }
    }
}

/// Every sub-thread agent is also a plain agent: it works on a task in a sub-thread of a new message.
impl<S: SubThreadAgent> Agent for S {
    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        SubThreadAgent::system_prompt(self, turn).await
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.run_as_sub_thread().await
    }

    fn as_sub_thread(self: Arc<Self>) -> Option<Arc<dyn AnySubThreadAgent>> {
        Some(self)
    }
}

/// The state of a sub-thread between two units.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The finished units, in order.
    pub results: Vec<Interaction>,
    /// The sub-thread with its messages.
    pub thread: Thread,
    /// The address of the sub-thread.
    pub path: SubThreadPath,
    /// The phase that the last unit suggested, or the present phase.
    pub next: Phase,
}

impl Progress {
    /// The text of the last bot message, empty if there is none.
    pub fn last_bot_text(&self) -> &str {
        let bots = self.thread.messages.iter().rev().find(|message| message.sender == Sender::Bot);
        bots.map_or("", |message| &message.text)
    }
}

/// One round of bot and user in a sub-thread.
///
/// The unit's handler writes the bot message: an instruction, or content and what to do with it (R078). The unit then carries
/// it out and reports what happened, without making anything up (R079).
pub trait InteractionUnit: Send + Sync + 'static {
    /// The sub-threads that the unit may run. Called once, when the agent is registered.
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    /// Carries out the bot message and returns the report. Not called after the last unit (D05).
    ///
    /// Write `async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure>`.
    fn user_message(&self, _bot: &Message, turn: &mut Turn) -> impl Future<Output = Result<String, Failure>> + Send {
        let message = format!("必须由子类实现 (the unit of phase {} must say what came of it)", turn.phase());
        async { Err(Failure::new("no_user_message", message)) }
    }

    /// One whole round, see [`Turn::interact`].
    ///
    /// Write `async fn execute(&self, turn: &mut Turn) -> Result<Interaction, Failure>`.
    fn execute(&self, turn: &mut Turn) -> impl Future<Output = Result<Interaction, Failure>> + Send {
        turn.interact(self)
    }
}

/// The pair of messages that one unit added to its sub-thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// The phase of the unit.
    pub phase: Phase,
    /// The message of its handler.
    pub bot: Arc<Message>,
    /// The report of the unit; none after the last one (D05).
    pub user: Option<Arc<Message>>,
}

/// Which unit serves which phase, with its handler and the phase that follows (R068).
///
/// A sub-thread starts in `initial_phase` or, if no unit has that name, in the phase of the first one.
#[derive(Default, Clone)]
pub struct Units {
    pub(crate) steps: Vec<UnitStep>,
}

/// A unit, its phase, its handler, and the phase that follows.
#[derive(Clone)]
pub(crate) struct UnitStep {
    pub(crate) phase: Arc<str>,
    pub(crate) next: Option<Arc<str>>,
    pub(crate) handler: Option<Arc<dyn AnyHandler>>,
    pub(crate) unit: Arc<dyn AnyUnit>,
}

impl Units {
    /// No units yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a phase and its unit.
    pub fn on(mut self, phase: &str, unit: impl InteractionUnit) -> Self {
        self.steps.push(UnitStep { phase: phase.into(), next: None, handler: None, unit: Arc::new(unit) });
        self
    }

    /// Sets the handler of the unit added last.
    pub fn with_handler(mut self, handler: impl StateHandler) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.handler = Some(Arc::new(handler));
        }
        self
    }

    /// Sets the next phase of the unit added last. It overrides what the handler suggests (D04).
    pub fn then(mut self, next: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.next = Some(next.into());
        }
        self
    }
}

/// A sub-thread agent that consists of its units only.
impl SubThreadAgent for Units {
    fn units(&self) -> Units {
        self.clone()
    }
}

/// The sub-threads that a handler, unit or agent may run, by name: see [`Turn::run_sub_thread`].
#[derive(Default, Clone)]
pub struct SubThreads {
    pub(crate) agents: Vec<(Arc<str>, Arc<dyn AnySubThreadAgent>)>,
}

impl SubThreads {
    /// No sub-threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sub-thread agent under a name.
    pub fn with(mut self, name: &str, agent: impl SubThreadAgent) -> Self {
        self.agents.push((name.into(), Arc::new(agent)));
        self
    }
}

/// The result of a sub-thread. A failure is a result too (R067).
#[derive(Debug, Clone, PartialEq)]
pub struct SubThreadResult {
    /// The message that it hangs in, which has the result as its text.
    pub message: MessageId,
    /// The address of the sub-thread.
    pub path: SubThreadPath,
    /// The result, or a sentence that describes the failure.
    pub text: String,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Its messages; empty after a failure.
    pub messages: Vec<Arc<Message>>,
}

/// A silent response: the message already has the text.
impl From<SubThreadResult> for Response {
    fn from(result: SubThreadResult) -> Self {
        Self::standing_in(result.message, result.text)
    }
}
