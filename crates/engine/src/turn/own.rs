//! Calls that the turn does itself, by effects of its own.

use polis_domain::{Call, CallResult, Effect, Outcome};

use super::Turn;
use super::call::{refused, result_of};

impl Turn {
    /// States a call, does it, and reports its result. On a second run it is done again, so that its effects are found in the
    /// journal one after another; what the log says of its result counts.
    pub(super) async fn call_own(&mut self, call: Call) -> CallResult {
        let Some(tool) = self.seat.shared.cast.find_tool(&call.tool) else { return refused("there is no such tool") };
        let Some(entry) = self.state(vec![Effect::Tool(call.clone())]).await.pop() else { return refused("it was not stated") };
        match entry.stated() {
            Some((Effect::Approval { .. }, _)) => return self.call_if_agreed(&entry, call).await,
            Some(_) => {}
            None => {
                let result = self.result(&entry).map_or_else(|| refused("the call has no result"), result_of);
                return self.told(&entry, &call, result);
            }
        }
        let result = tool.call(self, &call.arguments).await;
        let result = match self.result(&entry) {
            Some(logged) => result_of(logged),
            None => {
                self.report(entry.id, Outcome::Result(result.clone()), None).await;
                result
            }
        };
        self.told(&entry, &call, result)
    }
}
