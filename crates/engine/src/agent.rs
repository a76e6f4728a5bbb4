//! How anybody writes an agent: an [`Agent`] executes tasks; [`Phased`] picks a [`StateHandler`] by the thread's phase.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use polis_domain::{Behaviour, Failure, Phase, Response};
use polis_ports::ToolSpec;
use rustc_hash::FxHashMap;

use crate::Turn;
use crate::tool::{AnyTurnTool, TurnTool};

/// Executes tasks. It is ordinary async code; every effect goes through the turn, so it can be run again after a crash.
///
/// Write `async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure>`.
pub trait Agent: Send + Sync + 'static {
    /// Does what the turn's task asks and responds.
    fn execute_task(&self, turn: &mut Turn) -> impl Future<Output = Result<Response, Failure>> + Send;
}

/// Makes the bot message of one phase.
///
/// Write `async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure>`.
pub trait StateHandler: Send + Sync + 'static {
    /// Makes the bot message.
    fn handle(&self, turn: &mut Turn) -> impl Future<Output = Result<Response, Failure>> + Send;
}

/// An agent that is a handler for each phase.
#[derive(Default)]
pub struct Phased {
    handlers: BTreeMap<Phase, (Option<Phase>, Box<dyn AnyHandler>)>,
}

/// What a phase is called and what comes after it (R046).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseConfig {
    /// The phase that the handler serves.
    pub phase: Phase,
    /// What it suggests when it is done; nothing when unset (R045).
    pub next_phase: Option<Phase>,
}

impl Phased {
    /// An agent without phases yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same agent with a handler for one more phase. When the handler is done, the next phase is suggested unless it has
    /// suggested one itself (D04).
    pub fn on(mut self, config: PhaseConfig, handler: impl StateHandler) -> Self {
        self.handlers.insert(config.phase, (config.next_phase, Box::new(handler)));
        self
    }
}

impl Agent for Phased {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let phase = turn.phase().clone();
        let Some((next, handler)) = self.handlers.get(&phase) else {
            let message = format!("找不到 {phase} 阶段处理器 (there is no handler for phase {phase}; register one)");
            return Err(Failure::new("no_handler", message));
        };
        let response = handler.handle(turn).await?;
        if let Some(next) = next.clone().filter(|_| !turn.has_suggested()) {
            turn.suggest_phase(next).await?;
        }
        Ok(response)
    }
}

/// Which code runs which behaviour.
#[derive(Default, Clone)]
pub struct Cast {
    agents: FxHashMap<Behaviour, Arc<dyn AnyAgent>>,
    tools: Vec<Arc<dyn AnyTurnTool>>,
}

impl Cast {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same cast with one more agent.
    pub fn with(mut self, behaviour: impl Into<Behaviour>, agent: impl Agent) -> Self {
        self.agents.insert(behaviour.into(), Arc::new(agent));
        self
    }

    /// The same cast with one more tool that turns do themselves. It takes the place of any other of its name.
    pub fn with_tool(mut self, tool: impl TurnTool) -> Self {
        let tool: Arc<dyn AnyTurnTool> = Arc::new(tool);
        self.tools.retain(|known| known.spec().name != tool.spec().name);
        self.tools.push(tool);
        self
    }

    /// What its tools are.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<dyn AnyTurnTool>> {
        self.tools.iter().find(|tool| &*tool.spec().name == name).cloned()
    }

    pub(crate) fn find(&self, behaviour: &Behaviour) -> Option<Arc<dyn AnyAgent>> {
        self.agents.get(behaviour).cloned()
    }
}

type Responds<'a> = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

/// [`Agent`] behind a pointer.
pub(crate) trait AnyAgent: Send + Sync {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> Responds<'a>;
}

impl<A: Agent> AnyAgent for A {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> Responds<'a> {
        Box::pin(Agent::execute_task(self, turn))
    }
}

/// [`StateHandler`] behind a pointer.
trait AnyHandler: Send + Sync {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> Responds<'a>;
}

impl<H: StateHandler> AnyHandler for H {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> Responds<'a> {
        Box::pin(StateHandler::handle(self, turn))
    }
}
