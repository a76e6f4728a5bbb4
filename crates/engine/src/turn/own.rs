//! Calls of [`crate::TurnTool`]s, which run inside the turn and act by its effects.

use std::ops::RangeInclusive;
use std::sync::Arc;

use polis_domain::{Call, CallResult, ENVIRONMENT, Effect, EffectClass, EffectId, Flow, Outcome, PersonId, ToolCall};

use super::Turn;
use super::call::{refused, result_of};
use super::journal::Entry;

impl Turn {
    /// States a call, runs the tool inside this turn, and reports its result. A second run runs the tool again: its effects
    /// come from the journal, and a logged result wins over the new one.
    pub(super) async fn call_own(&mut self, mut call: Call) -> CallResult {
        let Some(tool) = self.start.shared.cast.find_tool(&call.tool) else { return refused("there is no such tool") };
        if let Some(flow) = tool.flow() {
            let agent = self.agent().clone();
            let person = self.look(move |spine| spine.remembering_person(&agent)).await;
            call.flow = flow(&person.unwrap_or_else(PersonId::owner), &call.arguments);
        }
        let Some(entry) = self.declare(vec![Effect::Tool(Box::new(call.clone()))]).await.pop() else {
            return refused("it was not stated");
        };
        match entry.declared() {
            Some((Effect::Approval { .. }, _)) => return self.call_if_agreed(&entry, call).await,
            Some(_) => {}
            None => {
                let result = self.result(&entry).map_or_else(|| refused("the call has no result"), result_of);
                return self.annotate(&entry, &call, result);
            }
        }
        if tool.is_query()
            && entry.end().is_some()
            && let Some(logged) = self.result(&entry)
        {
            return self.annotate(&entry, &call, result_of(logged));
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

    /// Notes that a call of a model was answered by the code of the turn itself, so that later turns see its result.
    pub async fn note_call(&mut self, call: &ToolCall, result: CallResult) {
        let call = Call {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            class: EffectClass::Read,
            own: true,
            ..Call::default()
        };
        let Some(entry) = self.declare(vec![Effect::Tool(Box::new(call))]).await.pop() else { return };
        if self.result(&entry).is_none() {
            self.report(entry.id, Outcome::Result(result), None).await;
        }
    }

    /// The version of a piece of code that this turn follows, so that a handler can change shape while turns are open:
    ///
    /// ```text
    /// if turn.version("outline", 1..=2).await >= 2 {
    ///     turn.generate("check the outline").await?;
    /// }
    /// ```
    ///
    /// A turn that comes here for the first time logs the newest version and keeps it. One that was past this point before the code
    /// had versions follows the oldest. A version that the code no longer has parks the turn as diverged: drop one from the range
    /// only when no open turn follows it (`polis check --against`).
    pub async fn version(&mut self, name: &str, supported: RangeInclusive<u32>) -> u32 {
        let logged = self.once(&format!("version:{name}"), || Some(supported.end().to_string())).await;
        let version = logged.as_ref().map_or(Some(*supported.start()), |logged| logged.parse().ok());
        match version.filter(|version| supported.contains(version)) {
            Some(version) => version,
            None => self.park_diverged(self.n - 1, &format!("`{name}` in versions {supported:?}")).await,
        }
    }

    /// A value from outside the log, such as the content of a file. It is computed once, logged under this name, and the same
    /// in a second run. `None` is not logged, and stays `None` in a second run that got further.
    pub async fn once(&mut self, name: &str, value: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        self.once_with_flow(name, Flow::default(), value).await
    }

    /// Like [`Turn::once`], for a value whose content comes from places that policies care about.
    pub async fn once_with_flow(&mut self, name: &str, flow: Flow, value: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        self.log_once(Call { flow, call_id: name.into(), tool: name.into(), ..Call::default() }, value).await
    }

    /// Like [`Turn::once`], for what only models and later runs need: user interfaces do not show it.
    pub async fn note(&mut self, name: &str, value: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        self.log_once(Call { call_id: name.into(), tool: ENVIRONMENT.into(), ..Call::default() }, value).await
    }

    async fn log_once(&mut self, call: Call, value: impl FnOnce() -> Option<String>) -> Option<Arc<str>> {
        let call = Call { arguments: "{}".into(), class: EffectClass::Read, own: true, ..call };
        let is_this = |entry: &Entry| matches!(entry.declared(), Some((Effect::Tool(logged), _)) if logged.is_same(&call));
        let value: Arc<str> = match self.journal.peek(EffectId { turn: self.start.id, n: self.n }) {
            Some(entry) if !is_this(entry) => return None,
            Some(entry) if entry.end().is_some() => "".into(),
            _ => value()?.into(),
        };
        let entry = self.declare(vec![Effect::Tool(Box::new(call))]).await.pop()?;
        match self.result(&entry) {
            Some(logged) => Some(result_of(logged).content),
            None => {
                self.report(entry.id, Outcome::Result(CallResult::good(value.clone())), None).await;
                Some(value)
            }
        }
    }
}
