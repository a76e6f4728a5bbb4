//! Calls that the turn does itself, by effects of its own.

use std::sync::Arc;

use polis_domain::{Call, CallResult, Effect, EffectClass, EffectId, Outcome};

use super::Turn;
use super::call::{refused, result_of};
use super::journal::Entry;

impl Turn {
    /// States a call, does it, and reports its result. On a second run it is done again, so that its effects are found in the
    /// journal one after another; what the log says of its result counts.
    pub(super) async fn call_own(&mut self, call: Call) -> CallResult {
        let Some(tool) = self.start.shared.cast.find_tool(&call.tool) else { return refused("there is no such tool") };
        let Some(entry) = self.state(vec![Effect::Tool(Box::new(call.clone()))]).await.pop() else {
            return refused("it was not stated");
        };
        match entry.stated() {
            Some((Effect::Approval { .. }, _)) => return self.call_if_agreed(&entry, call).await,
            Some(_) => {}
            None => {
                let result = self.result(&entry).map_or_else(|| refused("the call has no result"), result_of);
                return self.annotate(&entry, &call, result);
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
        self.annotate(&entry, &call, result)
    }

    /// A value that depends on more than the log, such as what stands in a file: worked out once, noted under this name, and
    /// the same in a second run. No value is nothing to note, and stays none in a second run that goes on.
    pub async fn once(&mut self, name: &str, value: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        let call = Call {
            call_id: name.into(),
            tool: name.into(),
            arguments: "{}".into(),
            class: EffectClass::Read,
            own: true,
            ..Call::default()
        };
        let is_this =
            |entry: &Entry| matches!(entry.stated(), Some((Effect::Tool(usage_meta), _)) if usage_meta.is_same(&call));
        let value: Arc<str> = match self.journal.peek(EffectId { turn: self.start.id, n: self.n }) {
            Some(entry) if !is_this(entry) => return None,
            Some(entry) if entry.end().is_some() => "".into(),
            _ => value()?.into(),
        };
        let entry = self.state(vec![Effect::Tool(Box::new(call))]).await.pop()?;
        match self.result(&entry) {
            Some(logged) => Some(result_of(logged).content),
            None => {
                self.report(entry.id, Outcome::Result(CallResult::good(value.clone())), None).await;
                Some(value)
            }
        }
    }
}
