//! What an agent did in earlier turns of a thread, so that a model can be shown it again: the calls that it made with their
//! results, what it was told about its environment, and turns that ended without an answer.

use std::sync::Arc;

use crate::{
    CallResult, Effect, EffectId, Event, Failure, Messages, Outcome, Recorded, Sender, Settlement, ToolCall, TurnId, Verdict,
};

/// The name under which a turn logs what it tells the model about its environment.
pub const ENVIRONMENT: &str = "_environment";

/// The name under which a turn notes what sub-threads did for the answer that it has just shown.
pub const WORK_NOTE: &str = "_work";

/// Something that happened in a turn between two messages of its thread.
#[derive(Debug, Clone, PartialEq)]
pub struct PastStep {
    /// The turn that it happened in.
    pub turn: TurnId,
    /// The index of the message that follows it.
    pub before: u32,
    /// What happened.
    pub kind: PastStepKind,
}

/// What happened in a step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum PastStepKind {
    /// The model wanted tools to be called.
    Calls {
        /// What it said with the calls.
        text: Arc<str>,
        /// The calls with their results.
        calls: Vec<(ToolCall, CallResult)>,
    },
    /// The turn failed or was cancelled.
    Ended(Failure),
    /// The model was told this about its environment.
    Environment(Arc<str>),
    /// Sub-threads did this for the message that follows.
    Work(Arc<str>),
}

/// The messages of a thread and the steps between them, folded from its events.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The messages.
    pub messages: Messages,
    /// The steps, oldest first.
    pub steps: Vec<PastStep>,
    /// The model call that is open.
    asked: Option<EffectId>,
    /// The calls of the last reply, until the next one is asked for.
    open: Option<OpenCalls>,
    /// The index of the newest turn's own message, until that turn has done something.
    own_index: Option<u32>,
    /// The effect that logs the environment.
    environment: Option<EffectId>,
    /// The effect that notes the work of sub-threads.
    work: Option<EffectId>,
}

#[derive(Debug, Clone)]
struct OpenCalls {
    turn: TurnId,
    before: u32,
    text: Arc<str>,
    calls: Vec<OpenCall>,
}

#[derive(Debug, Clone)]
struct OpenCall {
    call: ToolCall,
    /// The last effect that was started or refused for it.
    effect: Option<EffectId>,
    /// The arguments that a person set instead.
    changed: Option<Arc<str>>,
    result: Option<CallResult>,
}

impl History {
    /// Applies an event of the thread.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::TurnStarted { index, .. } => {
                self.close();
                self.own_index = Some(*index);
            }
            Event::EffectStarted { id, effect, .. } => self.start(*id, effect),
            Event::EffectEnded { id, outcome: Outcome::Reply(reply), .. } if self.asked == Some(*id) => {
                let before = self.messages.next_index();
                if let (Some(before), false) = (before, reply.tool_calls.is_empty()) {
                    let open = |call: &ToolCall| OpenCall { call: call.clone(), effect: None, changed: None, result: None };
                    let calls = reply.tool_calls.iter().map(open).collect();
                    self.open = Some(OpenCalls { turn: id.turn, before, text: reply.text.as_str().into(), calls });
                }
            }
            Event::EffectEnded { id, outcome: Outcome::Result(result), .. } if self.environment == Some(*id) => {
                self.environment = None;
                // It stands before the turn's own message, unless the turn has already worked.
                if let Some(before) = self.own_index.or_else(|| self.messages.next_index()) {
                    let kind = PastStepKind::Environment(result.content.clone());
                    self.steps.push(PastStep { turn: id.turn, before, kind });
                }
            }
            Event::EffectEnded { id, outcome: Outcome::Result(result), .. } if self.work == Some(*id) => {
                self.close();
                self.work = None;
                // The answer stands in the message that was added when the work began.
                let newest = self.messages.indexed().next_back();
                let answer = newest.filter(|(_, message)| message.sender == Sender::Bot).map(|(index, _)| index);
                if let Some(before) = answer.or_else(|| self.messages.next_index()) {
                    self.steps.push(PastStep { turn: id.turn, before, kind: PastStepKind::Work(result.content.clone()) });
                }
            }
            Event::EffectEnded { id, outcome, .. } => self.end(*id, outcome),
            Event::EffectRefused { id, failure } => {
                let unstarted = self.open.as_mut().and_then(|open| open.calls.iter_mut().find(|call| call.effect.is_none()));
                if let Some(call) = unstarted {
                    (call.effect, call.result) = (Some(*id), Some(CallResult::failed(failure.to_string())));
                }
            }
            Event::TurnSettled { .. } => self.close(),
            _ => {}
        }
        self.messages.apply(recorded);
        if let Event::TurnSettled { turn, settlement: Settlement::Failed(failure) | Settlement::Cancelled(failure), .. } =
            &recorded.event
            && let Some(before) = self.messages.next_index()
        {
            self.steps.push(PastStep { turn: *turn, before, kind: PastStepKind::Ended(failure.clone()) });
        }
    }

    fn start(&mut self, id: EffectId, effect: &Effect) {
        match effect {
            Effect::Model { aside: false, .. } => {
                self.close();
                self.asked = Some(id);
                self.own_index = None;
            }
            Effect::Tool(call) if call.is_environment() => match &*call.call_id {
                ENVIRONMENT => self.environment = Some(id),
                WORK_NOTE => self.work = Some(id),
                _ => {}
            },
            Effect::Tool(call) | Effect::Approval { call: Some(call), .. } => {
                let Some(open) = &mut self.open else { return };
                let of_this = |open: &OpenCall| open.call.id == call.call_id && open.result.is_none();
                // A call that was agreed to is started for the second time.
                let is_new = |open: &OpenCall| of_this(open) && open.effect.is_none();
                let place = open.calls.iter().position(is_new).or_else(|| open.calls.iter().position(of_this));
                if let Some(place) = place {
                    open.calls[place].effect = Some(id);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, id: EffectId, outcome: &Outcome) {
        let of_this = |open: &&mut OpenCall| open.effect == Some(id);
        let Some(open) = self.open.as_mut().and_then(|open| open.calls.iter_mut().find(of_this)) else { return };
        match outcome {
            Outcome::Result(result) => open.result = Some(CallResult { changed: open.changed.take(), ..result.clone() }),
            Outcome::Failed(failure) => open.result = Some(CallResult::failed(failure.to_string())),
            // The call that was agreed to follows.
            Outcome::Verdict(Verdict { approved: true, answer: None, arguments, .. }) => open.changed.clone_from(arguments),
            Outcome::Verdict(verdict) => open.result = Some(decided(verdict)),
            Outcome::Reply(_) | Outcome::Answer(_) | Outcome::Slept | Outcome::Kept(_) => {}
        }
    }

    /// The calls of the last reply are all made.
    fn close(&mut self) {
        self.asked = None;
        let Some(OpenCalls { turn, before, text, calls }) = self.open.take() else { return };
        let closed = |open: OpenCall| {
            let result = open.result.unwrap_or_else(|| CallResult::failed("no result: the turn ended first"));
            (open.call, result)
        };
        let kind = PastStepKind::Calls { text, calls: calls.into_iter().map(closed).collect() };
        self.steps.push(PastStep { turn, before, kind });
    }
}

/// The result of a call that a person answered in its place, or declined.
fn decided(verdict: &Verdict) -> CallResult {
    verdict.result().unwrap_or_else(|| match verdict.reason.trim() {
        "" => CallResult::failed("not made: the person said no"),
        reason => CallResult::failed(format!("not made: the person said no: {reason}")),
    })
}
