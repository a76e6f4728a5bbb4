//! Results of reads that answer identical calls, for backends without an engine: the same check that an engine makes (D20, D40).

use std::collections::VecDeque;
use std::sync::Arc;

use polis_domain::{CallResult, EffectClass, ToolCall, canonical};
use polis_engine::{REUSED_NOTE, is_recallable, take_fresh};
use polis_ports::ToolSpec;

/// Most results that are remembered.
const MOST_RESULTS: usize = 128;

/// What reads have returned since the last write. Ask [`CallMemory::recall`] before each call and tell [`CallMemory::note`] after
/// it; begin anew with each run.
#[derive(Debug, Clone, Default)]
pub struct CallMemory {
    results: VecDeque<((Arc<str>, String), CallResult)>,
}

impl CallMemory {
    /// The result of an identical read that was made before, unless the model says why it needs a new one.
    pub fn recall(&self, call: &ToolCall, tools: &[ToolSpec]) -> Option<CallResult> {
        let spec = tools.iter().find(|tool| tool.name == call.name)?;
        let wants_new = take_fresh(&call.arguments).is_some_and(|(_, why)| why.is_some());
        let key = key(call).filter(|_| is_recallable(spec) && !wants_new)?;
        let (_, result) = self.results.iter().find(|(known, _)| *known == key)?;
        Some(CallResult { note: Some(REUSED_NOTE.into()), ..result.clone() })
    }

    /// Remembers what a read returned. Anything else may have written, so nothing from before it counts any more.
    pub fn note(&mut self, call: &ToolCall, tools: &[ToolSpec], result: &CallResult) {
        let spec = tools.iter().find(|tool| tool.name == call.name);
        if spec.is_none_or(|spec| spec.class != EffectClass::Read) {
            self.results.clear();
            return;
        }
        let Some(key) = key(call).filter(|_| spec.is_some_and(is_recallable) && !result.is_error) else { return };
        self.results.retain(|(known, _)| *known != key);
        if self.results.len() >= MOST_RESULTS {
            self.results.pop_front();
        }
        self.results.push_back((key, result.clone()));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.results.clear();
    }
}

/// A call without the argument that is not meant for the tool.
pub(super) fn without_fresh(call: &ToolCall) -> ToolCall {
    match take_fresh(&call.arguments) {
        Some((arguments, _)) => ToolCall { arguments, ..call.clone() },
        None => call.clone(),
    }
}

fn key(call: &ToolCall) -> Option<(Arc<str>, String)> {
    Some((call.name.clone(), canonical(&without_fresh(call).arguments)?))
}
