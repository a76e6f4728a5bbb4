//! Tools that run inside the turn that calls them and act on the society by its effects.

use std::future::Future;
use std::pin::Pin;

use polis_domain::{CallResult, Flow, PersonId};
use polis_ports::ToolSpec;

use crate::Turn;

/// A tool that runs inside the turn that calls it. Everything it does is an effect of that turn, so it is as durable as the
/// turn: after a crash it is run again up to where it was, and it is never in doubt, whatever its class is.
///
/// Write `async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult`. Like a handler, it must depend on the turn and
/// its arguments alone.
pub trait TurnTool: Send + Sync + 'static {
    /// The description for models.
    fn spec(&self) -> ToolSpec;

    /// Whether models find it by [`crate::FindTools`] where they have many tools.
    fn is_deferred(&self) -> bool {
        false
    }

    /// Whether it only reads: it has no effects, so a second run takes its result from the log and does not run it.
    fn is_query(&self) -> bool {
        false
    }

    /// What a call does with content, from the person that the agent works for and the arguments; none if nothing is tracked.
    fn flow(&self) -> Option<fn(&PersonId, &str) -> Flow> {
        None
    }

    /// Runs the tool. A failure is an error result.
    fn call(&self, turn: &mut Turn, arguments: &str) -> impl Future<Output = CallResult> + Send;
}

type Results<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

/// [`TurnTool`] behind a pointer.
pub(crate) trait AnyTurnTool: Send + Sync {
    fn spec(&self) -> ToolSpec;
    fn is_deferred(&self) -> bool;
    fn is_query(&self) -> bool;
    fn flow(&self) -> Option<fn(&PersonId, &str) -> Flow>;
    fn call<'a>(&'a self, turn: &'a mut Turn, arguments: &'a str) -> Results<'a>;
}

impl<T: TurnTool> AnyTurnTool for T {
    fn spec(&self) -> ToolSpec {
        TurnTool::spec(self)
    }

    fn is_deferred(&self) -> bool {
        TurnTool::is_deferred(self)
    }

    fn is_query(&self) -> bool {
        TurnTool::is_query(self)
    }

    fn flow(&self) -> Option<fn(&PersonId, &str) -> Flow> {
        TurnTool::flow(self)
    }

    fn call<'a>(&'a self, turn: &'a mut Turn, arguments: &'a str) -> Results<'a> {
        Box::pin(TurnTool::call(self, turn, arguments))
    }
}
