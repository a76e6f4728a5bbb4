//! Effects: stated before they happen, ended once, never repeated unasked.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::budget::Told;
use super::{Draft, Start, budget, leave, message};
use crate::spine::{OpenEffect, OpenKind, Stage, Turn};
use crate::{
    AgentId, Allowed, Always, Attempt, Call, Effect, EffectClass, EffectId, Event, Failure, Origin, Outcome, Refusal, ReplyTo,
    Resolution, Ruling, Source, Spent, Task, Timestamp, ToolList, TurnId, Verdict, Wanted,
};

/// A turn states effects. One that is not allowed is refused in the log, so that a second run of the turn sees the same.
pub(super) fn begin(draft: &mut Draft<'_>, id: TurnId, n: u32, effects: Vec<Effect>) -> Result<(), Refusal> {
    let turn = draft.turn(id)?;
    if n != turn.next {
        return Err(Refusal::OutOfOrder { got: EffectId { turn: id, n }, expected: turn.next });
    }
    let limit = draft.spine.limits.open_effects;
    let mut open = turn.open.len();
    for (i, effect) in effects.into_iter().enumerate() {
        let id = EffectId { turn: id, n: n + i as u32 };
        let allowed = if open >= limit { Err(Refusal::TooManyEffects { limit }) } else { check(draft, turn, id, &effect) };
        match allowed {
            Ok(()) => {
                open += 1;
                state(draft, turn, id, effect)?;
            }
            Err(refusal) => draft.push(Some(&turn.thread), Event::EffectRefused { id, failure: refusal.into() }),
        }
    }
    Ok(())
}

fn check(draft: &Draft<'_>, turn: &Turn, id: EffectId, effect: &Effect) -> Result<(), Refusal> {
    match effect {
        Effect::Tool(_) | Effect::Approval { .. } | Effect::Sleep { .. } | Effect::Keep(_) => Ok(()),
        Effect::Model { reserve, .. } => budget::check_call(draft, *reserve),
        Effect::Grant { .. } => Err(Refusal::NotYours),
        Effect::Terminate { agent, children, .. } => leave::check(draft, &turn.agent, agent, *children),
        Effect::Ask { letter, .. } => {
            if letter.to.is_user() {
                return Err(Refusal::ToUser);
            }
            message::check_envelope(letter, &turn.agent, turn.hops + 1, Some(id))?;
            message::check_task(turn, &letter.task_id)?;
            message::check(draft, letter)?;
            message::check_chain(draft, turn, letter)?;
            check_for_cycle(draft, &turn.agent, &letter.to)
        }
        Effect::Unit { thread, task, .. } => {
            message::check_task(turn, &task.id)?;
            let head = draft.spine.threads.get(thread).ok_or_else(|| Refusal::UnknownThread(thread.clone()))?;
            let begun_now = draft.events.iter().any(|recorded| {
                recorded.thread.as_ref() == Some(thread) && matches!(recorded.event, Event::TurnStarted { .. })
            });
            if head.agent != turn.agent {
                Err(Refusal::NotYourThread(thread.clone()))
            } else if head.place.is_none() {
                // The inbox alone starts turns there, without asking whether one is open.
                Err(Refusal::NotASubThread(thread.clone()))
            } else if head.turn.is_some() || begun_now {
                Err(Refusal::ThreadBusy(thread.clone()))
            } else {
                Ok(())
            }
        }
    }
}

/// Refuses to close a circle of waits (D31): nobody in it could ever go on.
fn check_for_cycle(draft: &Draft<'_>, asker: &AgentId, asked: &AgentId) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    let mut paths = vec![vec![asker.clone(), asked.clone()]];
    while let Some(path) = paths.pop() {
        let Some(here) = path.last() else { continue };
        if here == asker {
            return Err(Refusal::WouldDeadlock(path));
        }
        if !seen.insert(here.clone()) {
            continue;
        }
        let turn = draft.spine.agents.get(here).and_then(|agent| agent.turn);
        for next in waits_of(draft, turn) {
            paths.push(path.iter().cloned().chain([next]).collect());
        }
    }
    Ok(())
}

/// The agents that a turn and its units wait for.
fn waits_of(draft: &Draft<'_>, turn: Option<TurnId>) -> Vec<AgentId> {
    let mut agents = Vec::new();
    let mut turns: Vec<_> = turn.into_iter().collect();
    while let Some(id) = turns.pop() {
        for open in draft.spine.turns.get(&id).map_or(&[][..], |turn| &turn.open) {
            match &open.kind {
                OpenKind::Ask(agent) | OpenKind::Terminate(agent) => agents.push(agent.clone()),
                OpenKind::Unit(thread) => turns.extend(draft.spine.threads.get(thread).and_then(|head| head.turn)),
                OpenKind::Model(_) | OpenKind::Tool(_) | OpenKind::Approval(_) => {}
                OpenKind::Question(_) | OpenKind::Grant(_) | OpenKind::Sleep | OpenKind::Keep => {}
            }
        }
    }
    agents
}

fn state(draft: &mut Draft<'_>, turn: &Turn, id: EffectId, effect: Effect) -> Result<(), Refusal> {
    let (effect, leave) = match effect {
        Effect::Model { model, request, reserve, tools, aside } => match budget::leave(draft, turn, reserve) {
            Told::May(leave) => {
                (Effect::Model { model, request, reserve, tools: tools.map(|list| named(draft, list)), aside }, leave)
            }
            Told::Ask(lacking) => (Effect::Grant { lacking }, None),
            Told::Later => return Err(Refusal::BudgetBusy),
        },
        Effect::Tool(call) => match rule(draft, turn, call) {
            Ok(effect) => (effect, None),
            Err(failure) => {
                draft.push(Some(&turn.thread), Event::EffectRefused { id, failure });
                return Ok(());
            }
        },
        effect => (effect, None),
    };
    draft.push(Some(&turn.thread), Event::EffectStarted { id, effect: effect.clone(), leave });
    match effect {
        Effect::Ask { letter, .. } => message::wake_receiver(draft, &letter),
        Effect::Terminate { agent, children, reason, .. } => {
            leave::dismiss(draft, &turn.agent, &agent, children, &reason, Some(id));
        }
        Effect::Unit { thread, behaviour, task } => {
            let reply_to = ReplyTo::Effect(id);
            let agent = turn.agent.clone();
            let origin = Origin::Unit(id);
            let task = Task { hops: turn.hops, ..task };
            draft.start(Start { agent, thread, behaviour, task, origin, reply_to, message: None });
        }
        Effect::Model { .. }
        | Effect::Tool(_)
        | Effect::Approval { .. }
        | Effect::Grant { .. }
        | Effect::Sleep { .. }
        | Effect::Keep(_) => {}
    }
    Ok(())
}

/// What becomes of a call: it is made, or a person is asked in its place, or it is refused.
fn rule(draft: &Draft<'_>, turn: &Turn, mut call: Box<Call>) -> Result<Effect, Failure> {
    match std::mem::take(&mut call.ruling) {
        Ruling::Stop(why) => Err(Failure::new("repeated_call", why)),
        Ruling::Refuse(failure) => Err(failure),
        Ruling::AskEach(why) => Ok(Effect::Approval {
            question: format!("May {} use {}? {why}", turn.agent, call.tool).trim_end().to_owned(),
            details: Value::Null,
            call: Some(ruled(call, Ruling::AskEach(why))),
            deadline: None,
            wanted: Wanted::Agreement,
            change: None,
        }),
        Ruling::Deny(why) => Err(Failure::new("policy_denied", format!("{} may not be used here: {why}", call.tool))),
        Ruling::Ask(why) if !draft.spine.is_allowed(&call.tool, &turn.agent, &turn.task) => {
            let question = format!("May {} use {}? {why}", turn.agent, call.tool);
            Ok(Effect::Approval {
                question: question.trim_end().to_owned(),
                details: Value::Null,
                call: Some(call),
                deadline: None,
                wanted: Wanted::Agreement,
                change: None,
            })
        }
        Ruling::Ask(_) => Ok(Effect::Tool(ruled(call, Ruling::Approved))),
        Ruling::Person(question) => Ok(Effect::Approval {
            question: question.text,
            details: Value::Null,
            call: Some(call),
            deadline: question.patience_ms.map(|ms| Timestamp(draft.at.0.saturating_add(ms))),
            wanted: question.wanted,
            change: None,
        }),
        Ruling::Approved => Ok(Effect::Tool(ruled(call, Ruling::Approved))),
        Ruling::Allow => {
            call.from = known(draft, turn, &call);
            Ok(Effect::Tool(call))
        }
    }
}

fn ruled(mut call: Box<Call>, ruling: Ruling) -> Box<Call> {
    call.ruling = ruling;
    call
}

/// The result that answers a call without its being made (D20).
fn known(draft: &Draft<'_>, turn: &Turn, call: &Call) -> Option<Source> {
    let reuse_ms = draft.spine.limits.reuse_ms;
    let key = call.key.filter(|_| reuse_ms > 0 && call.fresh.is_none() && call.class == EffectClass::Read)?;
    let writes = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if call.may_write());
    if draft.events.iter().any(|recorded| writes(&recorded.event)) {
        return None;
    }
    let after = Timestamp(draft.at.0.saturating_sub(reuse_ms));
    draft.spine.known.find(&turn.task, key, after).cloned()
}

/// A list of tools, without the names that the log has.
fn named(draft: &Draft<'_>, list: Arc<ToolList>) -> Arc<ToolList> {
    let is_known = draft.spine.tool_lists.contains(&list.digest);
    if is_known { Arc::new(ToolList { digest: list.digest, names: Vec::new() }) } else { list }
}

/// A turn tries its model again.
pub(super) fn retry(draft: &mut Draft<'_>, id: EffectId, attempt: Attempt, spent: Spent) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    match open(draft, id)? {
        OpenEffect { stage: Stage::Working, kind: OpenKind::Model(_), .. } => {
            push(draft, id, Event::EffectRetried { id, attempt, spent });
            Ok(())
        }
        _ => Err(Refusal::NotWaiting(id)),
    }
}

/// A turn reports. A second or late report is refused: the first one stands.
pub(super) fn end(draft: &mut Draft<'_>, id: EffectId, outcome: Outcome, spent: Option<Spent>) -> Result<(), Refusal> {
    let open = open(draft, id)?;
    let is_model = matches!(open.kind, OpenKind::Model(_));
    let fits = matches!(
        (open, &outcome),
        (OpenEffect { stage: Stage::Working, kind: OpenKind::Model(_), .. }, Outcome::Reply(_) | Outcome::Failed(_))
            | (OpenEffect { stage: Stage::Working, kind: OpenKind::Tool(_), .. }, Outcome::Result(_) | Outcome::Failed(_))
            | (OpenEffect { stage: Stage::Working, kind: OpenKind::Keep, .. }, Outcome::Kept(_) | Outcome::Failed(_))
    );
    if !fits {
        return Err(Refusal::NotWaiting(id));
    }
    push(draft, id, Event::EffectEnded { id, outcome, spent: spent.filter(|_| is_model) });
    Ok(())
}

pub(super) fn doubt(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    match open(draft, id)? {
        OpenEffect { stage: Stage::Working | Stage::Cleared, kind: OpenKind::Tool(EffectClass::Write), own: false, .. } => {
            push(draft, id, Event::EffectDoubted { id });
            Ok(())
        }
        _ => Err(Refusal::NotWaiting(id)),
    }
}

pub(super) fn restart(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    if open(draft, id)?.stage != Stage::Cleared {
        return Err(Refusal::NotWaiting(id));
    }
    push(draft, id, Event::EffectRestarted { id });
    Ok(())
}

/// A person or policy answers an approval or settles a doubt.
pub(super) fn resolve(draft: &mut Draft<'_>, id: EffectId, resolution: Resolution) -> Result<(), Refusal> {
    match (open(draft, id)?, resolution) {
        (OpenEffect { kind: OpenKind::Approval(tool), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            check_answer(draft, &Wanted::Agreement, &verdict)?;
            if tool.is_none() && verdict.always.is_some() {
                return Err(Refusal::BadAnswer("it is asked about each time; say it without `always`".to_owned()));
            }
            if let (Some(tool), Some(always), true) = (tool, verdict.always, verdict.approved) {
                remember(draft, id, tool.clone(), always);
            }
            conclude(draft, id, Outcome::Verdict(verdict));
        }
        (OpenEffect { kind: OpenKind::Question(wanted), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            check_answer(draft, wanted, &verdict)?;
            conclude(draft, id, Outcome::Verdict(verdict));
        }
        (OpenEffect { kind: OpenKind::Grant(scopes), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            if verdict.approved {
                budget::grant(draft, scopes);
            }
            conclude(draft, id, Outcome::Verdict(verdict));
        }
        (OpenEffect { stage: Stage::InDoubt, .. }, Resolution::Outcome(outcome @ Outcome::Result(_))) => {
            conclude(draft, id, outcome);
        }
        (OpenEffect { stage: Stage::InDoubt, .. }, Resolution::Again) => push(draft, id, Event::EffectCleared { id }),
        _ => return Err(Refusal::NotWaiting(id)),
    }
    Ok(())
}

/// Whether a person's word is what was asked for, and not too long.
pub(super) fn check_answer(draft: &Draft<'_>, wanted: &Wanted, verdict: &Verdict) -> Result<(), Refusal> {
    message::check_text(draft, &verdict.reason)?;
    if let Some(answer) = &verdict.answer {
        message::check_text(draft, &answer.to_string())?;
    }
    wanted.check(verdict).map_err(Refusal::BadAnswer)
}

/// Notes how far a person's word goes.
pub(super) fn remember(draft: &mut Draft<'_>, id: EffectId, tool: Arc<str>, always: Always) {
    let Some(turn) = draft.spine.turns.get(&id.turn) else { return };
    let agent = (always == Always::Agent).then(|| turn.agent.clone());
    let task = (always == Always::Task).then(|| turn.task.clone());
    draft.push(None, Event::ToolAllowed { allowed: Allowed { tool, agent, task } });
}

/// The time of a wait has come.
pub(super) fn expire(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    let open = open(draft, id)?;
    let due = open.stage == Stage::Waiting && open.deadline.is_some_and(|deadline| deadline <= draft.at);
    if !due {
        return Err(Refusal::NotWaiting(id));
    }
    let outcome = match &open.kind {
        OpenKind::Terminate(agent) => {
            leave::force(draft, agent);
            return Ok(());
        }
        OpenKind::Sleep => Outcome::Slept,
        _ => Outcome::Failed(Failure::new("timed_out", "nobody answered in time")),
    };
    conclude(draft, id, outcome);
    Ok(())
}

/// Answers a wait for a turn that ended. One that no longer waits is not disturbed (D29).
pub(super) fn answer(draft: &mut Draft<'_>, id: EffectId, outcome: Outcome) {
    let stated = |event: &Event| matches!(event, Event::EffectStarted { id: other, .. } if *other == id);
    let is_open = draft.spine.open_effect(id).is_some() || draft.events.iter().any(|recorded| stated(&recorded.event));
    if is_open && !draft.settles(id.turn) {
        conclude(draft, id, outcome);
    }
}

fn conclude(draft: &mut Draft<'_>, id: EffectId, outcome: Outcome) {
    push(draft, id, Event::EffectEnded { id, outcome, spent: None });
}

pub(super) fn push(draft: &mut Draft<'_>, id: EffectId, event: Event) {
    let thread = draft.spine.turns.get(&id.turn).map(|turn| turn.thread.clone());
    draft.push(thread.as_ref(), event);
}

pub(super) fn open<'a>(draft: &Draft<'a>, id: EffectId) -> Result<&'a OpenEffect, Refusal> {
    draft.spine.open_effect(id).ok_or(Refusal::NotOpen(id))
}
