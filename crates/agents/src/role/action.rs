//! Actions and tools by name (R329, R355).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use polis_domain::Failure;
use polis_engine::Turn;
use serde_json::{Map, Value};

/// The action that asks another agent.
pub const REQUEST_COLLABORATION: &str = "RequestCollaboration";

/// The action that does what a step says with the model and tools.
pub const WORK: &str = "Work";

/// The action that goes on with the whole conversation: the simple strategy.
pub const CONVERSE: &str = "Converse";

/// The tool that keeps plans, by the name that roles have for it.
pub const PLAN_TOOL: &str = "PlanTool";

/// Something that an agent can do by name. Like a handler, it must depend on the turn and its parameters alone.
///
/// Write `async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<String, Failure>`.
pub trait Action: Send + Sync + 'static {
    /// Does it, and says what came of it.
    fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> impl Future<Output = Result<String, Failure>> + Send;
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<String, Failure>> + Send + 'a>>;

/// [`Action`] behind a pointer.
pub(super) trait AnyAction: Send + Sync {
    fn run<'a>(&'a self, turn: &'a mut Turn, params: &'a Map<String, Value>) -> Done<'a>;
}

impl<A: Action> AnyAction for A {
    fn run<'a>(&'a self, turn: &'a mut Turn, params: &'a Map<String, Value>) -> Done<'a> {
        Box::pin(Action::run(self, turn, params))
    }
}

/// The actions of a role. Three are always there: [`REQUEST_COLLABORATION`], [`WORK`] and [`CONVERSE`].
#[derive(Clone)]
pub struct Actions {
    by_name: BTreeMap<Arc<str>, Entry>,
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Entry {
    RequestCollaboration,
    Work,
    Converse,
    Own(Arc<dyn AnyAction>),
}

impl Default for Actions {
    fn default() -> Self {
        let own = [(REQUEST_COLLABORATION, Entry::RequestCollaboration), (WORK, Entry::Work), (CONVERSE, Entry::Converse)];
        Self { by_name: own.into_iter().map(|(name, entry)| (name.into(), entry)).collect() }
    }
}

impl Actions {
    /// The same actions with one more. It takes the place of any other of its name.
    pub fn with(mut self, name: &str, action: impl Action) -> Self {
        self.by_name.insert(name.into(), Entry::Own(Arc::new(action)));
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.by_name.keys().map(|name| &**name).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        self.by_name.get(name).cloned()
    }
}
