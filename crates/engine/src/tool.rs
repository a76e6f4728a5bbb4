//! Tools that act on the society itself: the turn that calls one does it, by its own effects.

use std::future::Future;
use std::pin::Pin;

use polis_domain::CallResult;
use polis_ports::ToolSpec;

use crate::Turn;

/// A tool that is done by the turn that calls it. Whatever it does is an effect of that turn, so it is as durable as the turn:
/// after a crash it is run again up to where it was, and it is never in doubt, whatever its class says.
///
/// Write `async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult`. Like a handler, it must depend on the turn and
/// its arguments alone.
pub trait TurnTool: Send + Sync + 'static {
    /// What models are told of it.
    fn spec(&self) -> ToolSpec;

    /// Does it. A failure is a result that tells of it.
    fn call(&self, turn: &mut Turn, arguments: &str) -> impl Future<Output = CallResult> + Send;
}

type Results<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

/// [`TurnTool`] behind a pointer.
pub(crate) trait AnyTurnTool: Send + Sync {
    fn spec(&self) -> ToolSpec;
    fn call<'a>(&'a self, turn: &'a mut Turn, arguments: &'a str) -> Results<'a>;
}

impl<T: TurnTool> AnyTurnTool for T {
    fn spec(&self) -> ToolSpec {
        TurnTool::spec(self)
    }

    fn call<'a>(&'a self, turn: &'a mut Turn, arguments: &'a str) -> Results<'a> {
        Box::pin(TurnTool::call(self, turn, arguments))
    }
}
