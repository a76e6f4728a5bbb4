//! Work in several rounds inside one message: a [`SubThreadAgent`] runs [`InteractionUnit`]s in a sub-thread until it is done.
//!
//! ```text
//! main thread > handler > sub-thread > SubThreadAgent > InteractionUnit(s) > handler
//! ```
//! Each unit is a durable turn of its own in the sub-thread: one that is finished is never run again. What the agent itself
//! decides (which unit is next, what it all comes to) is part of the turn that started it.

use std::future::Future;
use std::sync::Arc;

use polis_domain::{Failure, Message, MessageId, Phase, Response, Sender, SubThreadPath, Thread};

use crate::cast::{AnyHandler, AnySubThreadAgent, AnyUnit};
use crate::{Agent, StateHandler, Turn};

/// Units that a sub-thread may run unless its agent says otherwise.
const MAX_INTERACTIONS: usize = 50;

/// Manages one sub-thread: its units, when it is done, and what it comes to (R056-R067). It is an [`Agent`] too, which runs
/// in a sub-thread of its own message.
///
/// Its settings are those of its sub-thread, never those of whoever started it (D02). What goes wrong in it becomes a result
/// that its parent reads (R067).
pub trait SubThreadAgent: Send + Sync + 'static {
    /// The units, one for each phase (R063). Asked once, when the agent is registered.
    fn units(&self) -> Units;

    /// How many units one run may have. One more is an error (R066).
    fn max_interactions(&self) -> usize {
        MAX_INTERACTIONS
    }

    /// Whether nothing follows this phase (R064).
    fn is_terminal(&self, phase: &Phase) -> bool {
        phase.is_terminal()
    }

    /// What the model is told about the agent: the role's prompt.
    ///
    /// Write `async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure>`.
    fn system_prompt(&self, turn: &mut Turn) -> impl Future<Output = Result<Arc<str>, Failure>> + Send {
        async { Ok(turn.role().map(|role| role.prompt.clone()).unwrap_or_default()) }
    }

    /// The phase whose unit comes next (R053): the one that the last unit suggested. Where no unit has suggested anything,
    /// it is the phase of the last one, and the run ends unless another phase is given here.
    ///
    /// Write `async fn next_unit(&self, progress: &Progress, turn: &mut Turn) -> Result<Phase, Failure>`.
    fn next_unit(&self, progress: &Progress, _turn: &mut Turn) -> impl Future<Output = Result<Phase, Failure>> + Send {
        let phase = progress.next.clone();
        async { Ok(phase) }
    }

    /// What it all comes to (R062): what the bot said last (D05).
    ///
    /// Write `async fn summarize(&self, progress: &Progress, turn: &mut Turn) -> Result<String, Failure>`.
    fn summarize(&self, progress: &Progress, _turn: &mut Turn) -> impl Future<Output = Result<String, Failure>> + Send {
        let text = progress.last_bot_text().to_owned();
        async { Ok(text) }
    }
}

/// Every sub-thread agent is a whole agent: what it is asked is worked on in a sub-thread of its own message.
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

/// Where a sub-thread stands between two units.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The units that are done, in order.
    pub results: Vec<Interaction>,
    /// The sub-thread.
    pub thread: Thread,
    /// Its address.
    pub path: SubThreadPath,
    /// The phase that is next, as far as the units say.
    pub next: Phase,
}

impl Progress {
    /// What the bot said last.
    pub fn last_bot_text(&self) -> &str {
        let bots = self.thread.messages.iter().rev().find(|message| message.sender == Sender::Bot);
        bots.map_or("", |message| &message.text)
    }
}

/// One round of bot and user in a sub-thread.
///
/// The bot message comes from the unit's handler: an instruction, or content and what to do with it (R078). The unit then
/// does it and reports; it reports only and makes nothing up (R079).
pub trait InteractionUnit: Send + Sync + 'static {
    /// The sub-threads that the unit runs. Asked once, when the agent is registered.
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    /// Does what the bot message says and reports what came of it. Not asked after the last unit (D05).
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

/// What one unit left in its sub-thread: the pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// The phase of the unit.
    pub phase: Phase,
    /// What its handler said.
    pub bot: Arc<Message>,
    /// What came of it; nothing after the last unit (D05).
    pub user: Option<Arc<Message>>,
}

/// Which unit serves which phase, who makes its bot message, and which phase follows it (R068).
///
/// A sub-thread begins in `initial_phase`, or where no unit has that name, in the phase of the first one.
#[derive(Default, Clone)]
pub struct Units {
    pub(crate) steps: Vec<UnitStep>,
}

/// A unit and what is said about it.
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

    /// One more phase and its unit.
    pub fn on(mut self, phase: &str, unit: impl InteractionUnit) -> Self {
        self.steps.push(UnitStep { phase: phase.into(), next: None, handler: None, unit: Arc::new(unit) });
        self
    }

    /// Who makes the bot message of the unit just named.
    pub fn with_handler(mut self, handler: impl StateHandler) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.handler = Some(Arc::new(handler));
        }
        self
    }

    /// The phase that the unit just named suggests when it is done, whatever its handler has suggested (D04).
    pub fn then(mut self, next: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.next = Some(next.into());
        }
        self
    }
}

/// A sub-thread agent that is its units and nothing else.
impl SubThreadAgent for Units {
    fn units(&self) -> Units {
        self.clone()
    }
}

/// The sub-threads that a handler, unit or agent runs, each under a name of its own: see [`Turn::run_sub_thread`].
#[derive(Default, Clone)]
pub struct SubThreads {
    pub(crate) agents: Vec<(Arc<str>, Arc<dyn AnySubThreadAgent>)>,
}

impl SubThreads {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more.
    pub fn with(mut self, name: &str, agent: impl SubThreadAgent) -> Self {
        self.agents.push((name.into(), Arc::new(agent)));
        self
    }
}

/// What came of a sub-thread. A failure is a result like another (R067).
#[derive(Debug, Clone, PartialEq)]
pub struct SubThreadResult {
    /// The message that it hangs in, which shows the text by now.
    pub message: MessageId,
    /// Its address.
    pub path: SubThreadPath,
    /// What it comes to; when it failed, a sentence that says so.
    pub text: String,
    /// Why it came to nothing.
    pub failure: Option<Failure>,
    /// What was said in it. Where it failed, the thread at its address says so.
    pub messages: Vec<Arc<Message>>,
}

/// A response that adds nothing: the text stands in the message already.
impl From<SubThreadResult> for Response {
    fn from(result: SubThreadResult) -> Self {
        Self::standing_in(result.message, result.text)
    }
}
