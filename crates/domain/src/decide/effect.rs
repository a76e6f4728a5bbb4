//! Effects: declared before they happen, ended once, never repeated without permission.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::budget::Allowance;
use super::draft::{Draft, Start};
use super::{budget, message, terminate};
use crate::spine::{OpenEffect, OpenKind, Spine, Stage, Turn};
use crate::{
    AgentId, Allowed, Always, Attempt, Call, Changed, Effect, EffectClass, EffectId, Event, Failure, FailureCode,
    LastingApproval, Matching, Origin, Outcome, PersonId, ReadTool, Refusal, ReplyTo, Resolution, Review, Ruling, Source,
    Spent, Task, TaskId, Timestamp, ToolList, TurnId, Verdict, Wanted,
};

/// A turn declares effects. A refusal is logged as an event, so that a second run of the turn gets the same refusal.
pub(super) fn declare(draft: &mut Draft<'_>, id: TurnId, n: u32, effects: Vec<Effect>) -> Result<(), Refusal> {
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
                declare_one(draft, turn, id, effect)?;
            }
            Err(refusal) => {
                draft.push(Some(&turn.thread), Event::EffectRefused { id, failure: refusal.clone().into() });
                message::report_loop(draft, turn, &refusal);
            }
        }
    }
    Ok(())
}

fn check(draft: &Draft<'_>, turn: &Turn, id: EffectId, effect: &Effect) -> Result<(), Refusal> {
    match effect {
        Effect::Tool(_) | Effect::Approval { .. } | Effect::Sleep { .. } | Effect::Keep(_) => Ok(()),
        Effect::Model { reserve, .. } => budget::check_call(draft, *reserve),
        Effect::Grant { .. } => Err(Refusal::NotYours),
        Effect::Terminate { agent, children, .. } => terminate::check(draft, &turn.agent, agent, *children),
        Effect::Ask { envelope, .. } => {
            if envelope.to.is_user() {
                return Err(Refusal::ToUser);
            }
            message::check_envelope(envelope, &turn.agent, turn.hops + 1, Some(id))?;
            message::check_task(turn, &envelope.task_id)?;
            message::check(draft, envelope)?;
            message::check_chain(draft, turn, envelope)?;
            check_for_cycle(draft, &turn.agent, &envelope.to)
        }
        Effect::Unit { thread, task, .. } => {
            message::check_task(turn, &task.id)?;
            let head = draft.spine.threads.get(thread).ok_or_else(|| Refusal::UnknownThread(thread.clone()))?;
            if head.agent != turn.agent {
                Err(Refusal::NotYourThread(thread.clone()))
            } else if head.place.is_none() {
                // Turns in a main thread are started by the inbox only, which assumes that no unit runs there.
                Err(Refusal::NotASubThread(thread.clone()))
            } else if draft.is_busy(thread) {
                Err(Refusal::ThreadBusy(thread.clone()))
            } else {
                Ok(())
            }
        }
    }
}

/// Refuses an ask that would close a cycle of waits, in which no agent could go on before a timeout (D31).
///
/// The search starts at the asked agent and follows what each agent's open turn waits for, through units in sub-threads as
/// well ([`waits_of`]). If it reaches the asker, the ask would close a cycle, and the refusal names it. An agent that is
/// visited twice is not followed again, so the search ends even if it meets a cycle that does not contain the asker.
///
/// Only inbox turns count, because an agent has one at a time and an ask waits in its inbox until that turn ends. A turn that
/// waits for a person or a timer is no edge: it goes on by itself. Checking when the ask is declared is enough. A cycle can
/// only be closed by a new wait, and commands are decided one at a time, so two asks cannot close a cycle together. Several
/// asks of one command start at the same agent, so one of them cannot be the missing edge of another's cycle. The other wait
/// on an agent, a termination, is not checked: it has a deadline at which it is forced.
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

/// The agents that a turn and its units wait for: those they ask, and children they terminate.
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

fn declare_one(draft: &mut Draft<'_>, turn: &Turn, id: EffectId, effect: Effect) -> Result<(), Refusal> {
    let (effect, permit) = match effect {
        Effect::Model { model, request, reserve, tools, aside, purpose } => match budget::permit(draft, turn, reserve) {
            Allowance::May(permit) => {
                (Effect::Model { model, request, reserve, tools: tools.map(|list| named(draft, list)), aside, purpose }, permit)
            }
            Allowance::Ask(lacking) => {
                let calls = draft.spine.activities.get(&turn.task).map(|effort| effort.calls.clone()).unwrap_or_default();
                (Effect::Grant { lacking, calls }, None)
            }
            Allowance::Later => return Err(Refusal::BudgetBusy),
        },
        Effect::Tool(mut call) => {
            // The definition is logged once, in `ToolPinned`, not with every call.
            let definition = call.definition.take();
            match rule(draft, turn, call, definition.as_ref()) {
                Ok(effect) => {
                    if let Effect::Tool(call) = &effect {
                        pin(draft, call, definition);
                    }
                    (effect, None)
                }
                Err(failure) => {
                    draft.push(Some(&turn.thread), Event::EffectRefused { id, failure });
                    return Ok(());
                }
            }
        }
        effect => (effect, None),
    };
    draft.push(Some(&turn.thread), Event::EffectStarted { id, effect: effect.clone(), permit });
    match effect {
        Effect::Ask { envelope, .. } => message::wake_receiver(draft, &envelope),
        Effect::Terminate { agent, children, reason, .. } => {
            terminate::dismiss(draft, &turn.agent, &agent, children, &reason, Some(id));
        }
        Effect::Unit { thread, behaviour, task } => {
            let reply_to = ReplyTo::Effect(id);
            let agent = turn.agent.clone();
            let origin = Origin::Unit(id);
            let task = Task { hops: turn.hops, ..task };
            let version = draft.spine.versions.of_unit(&turn.behaviour, turn.version, &behaviour);
            draft.start(Start { agent, thread, behaviour, version, task, origin, reply_to, message: None });
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

/// Decides a call: it is made, replaced by an approval, or refused.
fn rule(draft: &Draft<'_>, turn: &Turn, mut call: Box<Call>, definition: Option<&Arc<str>>) -> Result<Effect, Failure> {
    let why = match std::mem::take(&mut call.ruling) {
        Ruling::Stop(why) => return Err(Failure::new(FailureCode::RepeatedCall, why)),
        Ruling::Refuse(failure) => return Err(failure),
        Ruling::Deny(why) => {
            return Err(Failure::new("policy_denied", format!("this call of {} is forbidden by a rule: {why}", call.tool)));
        }
        Ruling::Person(question) => {
            return Ok(Effect::Approval {
                question: question.text,
                details: Value::Null,
                call: Some(call),
                deadline: question.patience_ms.map(|ms| Timestamp(draft.at.0.saturating_add(ms))),
                wanted: question.wanted,
                change: None,
            });
        }
        Ruling::Approved => return Ok(permitted(call, Ruling::Approved)),
        Ruling::AskEach(why) => AskReason::Each(why),
        Ruling::Ask(why) if draft.spine.is_allowed(&call, &turn.agent, &turn.task) => AskReason::Granted(why),
        Ruling::Ask(why) => AskReason::Once(why),
        Ruling::Allow => AskReason::Nothing,
    };
    let outside = draft.spine.trails.exposes(&turn.agent, &turn.task, &call.flow);
    let pinned = draft.pin(&call.tool).filter(|pin| call.identity.as_ref().is_some_and(|now| *now != pin.identity));
    let changed = pinned.map(|pin| Changed { before: pin.definition.clone(), after: definition.cloned().unwrap_or_default() });
    match why {
        AskReason::Nothing if outside.is_empty() && changed.is_none() => {
            call.from = reusable_result(draft, turn, &call);
            Ok(permitted(call, Ruling::Allow))
        }
        AskReason::Granted(_) if outside.is_empty() && changed.is_none() => Ok(permitted(call, Ruling::Approved)),
        why => Ok(approval_of(draft.spine, turn, call, why, outside, changed)),
    }
}

/// Whether and why a person is asked about a call.
enum AskReason {
    /// Policy allows it.
    Nothing,
    /// Policy asks, but a lasting approval covers it.
    Granted(String),
    /// Policy asks; the person may give a lasting approval.
    Once(String),
    /// Policy asks about every call.
    Each(String),
}

/// The approval that replaces a call.
fn approval_of(
    spine: &Spine,
    turn: &Turn,
    mut call: Box<Call>,
    why: AskReason,
    outside: Vec<Arc<str>>,
    changed: Option<Changed>,
) -> Effect {
    let (why, each) = match why {
        AskReason::Nothing => (String::new(), false),
        AskReason::Granted(why) | AskReason::Once(why) => (why, false),
        AskReason::Each(why) => (why, true),
    };
    // A lasting approval must not cover what injected instructions may want.
    let each = each || !outside.is_empty();
    let mut question = format!("May {} use {}? {why}", spine.shown_name(&turn.agent), call.tool).trim_end().to_owned();
    if !outside.is_empty() {
        let harm = match (call.flow.sends, call.flow.destroys) {
            (true, true) => "send data out or destroy something",
            (true, false) => "send data out",
            (false, _) => "destroy something",
        };
        question
            .push_str(&format!(" It can {harm}, and this conversation has read content from outside: {}.", outside.join(", ")));
    }
    if changed.is_some() {
        question.push_str(" Its server has changed this tool since it was last used.");
    }
    call.ruling = if each { Ruling::AskEach(why) } else { Ruling::Allow };
    let always = (!each).then(|| Matching::proposed(&call.arguments));
    let covers = always.as_ref().map(|matching| format!("{} where {matching}", call.tool)).unwrap_or_default();
    let reads = if each { Vec::new() } else { call.reads.iter().map(|read| read.tool.clone()).collect() };
    let review = Review { outside, changed, always, covers, reads };
    Effect::Approval {
        question,
        details: serde_json::to_value(review).unwrap_or_default(),
        call: Some(call),
        deadline: None,
        wanted: Wanted::Agreement,
        change: None,
    }
}

/// The effect of a call that is made.
fn permitted(mut call: Box<Call>, ruling: Ruling) -> Effect {
    call.ruling = ruling;
    call.reads.clear();
    Effect::Tool(call)
}

/// Pins the definition of a tool at its first use, and when a person has approved a change.
fn pin(draft: &mut Draft<'_>, call: &Call, definition: Option<Arc<str>>) {
    let (Some(identity), Some(definition)) = (&call.identity, definition) else { return };
    if draft.pin(&call.tool).is_none_or(|pin| pin.identity != *identity) {
        draft.push(None, Event::ToolPinned { tool: call.tool.clone(), identity: identity.clone(), definition });
    }
}

/// The earlier result that answers a call, so that it need not be made (D20).
fn reusable_result(draft: &Draft<'_>, turn: &Turn, call: &Call) -> Option<Source> {
    let reuse_ms = draft.spine.limits.reuse_ms;
    let key = call.key.filter(|_| reuse_ms > 0 && call.fresh.is_none() && call.class == EffectClass::Read)?;
    if draft.has_write() {
        return None;
    }
    let after = Timestamp(draft.at.0.saturating_sub(reuse_ms));
    draft.spine.reusable.find(&turn.task, key, after).cloned()
}

/// A tool list for the log, without its names if the log already has them.
fn named(draft: &Draft<'_>, list: Arc<ToolList>) -> Arc<ToolList> {
    let is_known = draft.spine.tool_lists.contains(&list.digest);
    if is_known { Arc::new(ToolList { digest: list.digest, names: Vec::new() }) } else { list }
}

/// A turn retries a model call.
pub(super) fn retry(draft: &mut Draft<'_>, id: EffectId, attempt: Attempt, spent: Spent) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    match draft.effect(id)? {
        OpenEffect { stage: Stage::Working, kind: OpenKind::Model(_), .. } => {
            draft.push_of(id, Event::EffectRetried { id, attempt, spent });
            Ok(())
        }
        _ => Err(Refusal::NotWaiting(id)),
    }
}

/// A turn reports a result. A second report for the same effect is refused: the first one counts.
pub(super) fn end(draft: &mut Draft<'_>, id: EffectId, outcome: Outcome, spent: Option<Spent>) -> Result<(), Refusal> {
    let open = draft.effect(id)?;
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
    draft.push_of(id, Event::EffectEnded { id, outcome, spent: spent.filter(|_| is_model) });
    Ok(())
}

pub(super) fn doubt(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    match draft.effect(id)? {
        OpenEffect { stage: Stage::Working | Stage::Cleared, kind: OpenKind::Tool(EffectClass::Write), own: false, .. } => {
            draft.push_of(id, Event::EffectDoubted { id });
            Ok(())
        }
        _ => Err(Refusal::NotWaiting(id)),
    }
}

pub(super) fn restart(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    draft.turn(id.turn)?;
    if draft.effect(id)?.stage != Stage::Cleared {
        return Err(Refusal::NotWaiting(id));
    }
    draft.push_of(id, Event::EffectRestarted { id });
    Ok(())
}

/// A person answers an approval or resolves a doubt.
pub(super) fn resolve(draft: &mut Draft<'_>, id: EffectId, resolution: Resolution) -> Result<(), Refusal> {
    let resolution = match resolution {
        Resolution::Outcome(Outcome::Verdict(verdict)) => {
            Resolution::Outcome(Outcome::Verdict(Verdict { by: draft.person.clone(), ..verdict }))
        }
        other => other,
    };
    match (draft.effect(id)?, resolution) {
        (OpenEffect { kind: OpenKind::Approval(standing), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            check_answer(draft, &Wanted::Agreement, &verdict)?;
            if standing.is_none() && verdict.always.is_some() {
                return Err(Refusal::BadAnswer("it is asked about each time; say it without `always`".to_owned()));
            }
            if !verdict.approved && (verdict.always.is_some() || verdict.arguments.is_some()) {
                return Err(Refusal::BadAnswer("`always` and `arguments` go with a yes".to_owned()));
            }
            if verdict.always.is_none() && verdict.matching.is_some() {
                return Err(Refusal::BadAnswer("`where` says which calls `always` covers; say `always` with it".to_owned()));
            }
            if let (Some(standing), Some(always), true) = (standing, verdict.always, verdict.approved) {
                remember(draft, id, standing, always, &verdict)?;
            }
            draft.conclude(id, Outcome::Verdict(verdict));
        }
        (OpenEffect { kind: OpenKind::Question(wanted), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            let verdict = wanted.with_defaults(verdict);
            check_answer(draft, wanted, &verdict)?;
            draft.conclude(id, Outcome::Verdict(verdict));
        }
        (OpenEffect { kind: OpenKind::Grant(scopes), .. }, Resolution::Outcome(Outcome::Verdict(verdict))) => {
            if verdict.always.is_some() || verdict.matching.is_some() || verdict.arguments.is_some() {
                return Err(Refusal::BadAnswer("a budget is granted with a yes, or not with a no; say no more".to_owned()));
            }
            // One decision answers all requests for the same accounts.
            let granted = scopes.clone();
            let waits = |open: &OpenEffect| match &open.kind {
                OpenKind::Grant(scopes) => verdict.approved && scopes.iter().all(|scope| granted.contains(scope)),
                _ => false,
            };
            let turns = draft.spine.turns.iter();
            let others: Vec<EffectId> = turns
                .flat_map(|(turn, state)| {
                    state.open.iter().filter(|open| waits(open)).map(|open| EffectId { turn: *turn, n: open.n })
                })
                .filter(|other| *other != id)
                .collect();
            if verdict.approved {
                budget::grant(draft, scopes);
            }
            for other in others {
                draft.conclude(other, Outcome::Verdict(verdict.clone()));
            }
            draft.conclude(id, Outcome::Verdict(verdict));
        }
        (OpenEffect { stage: Stage::InDoubt, .. }, Resolution::Outcome(outcome @ Outcome::Result(_))) => {
            draft.conclude(id, outcome);
        }
        (OpenEffect { stage: Stage::InDoubt, .. }, Resolution::Again) => {
            let by = draft.person.clone();
            draft.push_of(id, Event::EffectCleared { id, by });
        }
        _ => return Err(Refusal::NotWaiting(id)),
    }
    Ok(())
}

/// Checks that a person's answer has the requested form and is not too long.
pub(super) fn check_answer(draft: &Draft<'_>, wanted: &Wanted, verdict: &Verdict) -> Result<(), Refusal> {
    message::check_text(draft, &verdict.reason)?;
    if let Some(answer) = &verdict.answer {
        message::check_text(draft, &answer.to_string())?;
    }
    wanted.check(verdict).map_err(Refusal::BadAnswer)
}

/// Records a lasting approval.
fn remember(
    draft: &mut Draft<'_>,
    id: EffectId,
    standing: &LastingApproval,
    always: Always,
    verdict: &Verdict,
) -> Result<(), Refusal> {
    let person = asker(draft, id);
    if always == Always::Reads {
        if standing.reads.is_empty() || verdict.matching.is_some() {
            let why = "`always: reads` is for servers that say which of their tools only read, and takes no `where`";
            return Err(Refusal::BadAnswer(why.to_owned()));
        }
        for ReadTool { tool, identity } in standing.reads.clone() {
            let identity = Some(identity);
            draft.push(
                None,
                Event::ToolAllowed {
                    allowed: Allowed { tool, agent: None, person: person.clone(), task: None, matching: None, identity },
                },
            );
        }
        return Ok(());
    }
    let meant = verdict.arguments.as_ref().map(|arguments| Matching::proposed(arguments));
    let matching = verdict.matching.clone().or(meant).unwrap_or_else(|| standing.matching.clone());
    let (agent, task) = reach(draft, id, always);
    let (tool, identity) = (standing.tool.clone(), standing.identity.clone());
    draft.push(None, Event::ToolAllowed { allowed: Allowed { tool, agent, person, task, matching: Some(matching), identity } });
    Ok(())
}

/// Records a lasting approval for a server to call models (MCP sampling).
pub(super) fn allow_sampling(draft: &mut Draft<'_>, id: EffectId, what: Arc<str>, verdict: &Verdict) -> Result<(), Refusal> {
    let Some(always) = verdict.always.filter(|_| verdict.approved) else { return Ok(()) };
    if always == Always::Reads || verdict.matching.is_some() {
        return Err(Refusal::BadAnswer("`always` is `agent`, `task` or `tool` here, without `where`".to_owned()));
    }
    let (agent, task) = reach(draft, id, always);
    let (person, identity) = (asker(draft, id), None);
    draft.push(None, Event::ToolAllowed { allowed: Allowed { tool: what, agent, person, task, matching: None, identity } });
    Ok(())
}

/// The person whose agent asks. A lasting approval covers no agents of others.
fn asker(draft: &Draft<'_>, id: EffectId) -> Option<PersonId> {
    draft.spine.turns.get(&id.turn).and_then(|turn| draft.spine.person(&turn.agent)).cloned()
}

fn reach(draft: &Draft<'_>, id: EffectId, always: Always) -> (Option<AgentId>, Option<TaskId>) {
    let turn = draft.spine.turns.get(&id.turn);
    let agent = turn.filter(|_| always == Always::Agent).map(|turn| turn.agent.clone());
    let task = turn.filter(|_| always == Always::Task).map(|turn| turn.task.clone());
    (agent, task)
}

/// The deadline of a wait has passed.
pub(super) fn expire(draft: &mut Draft<'_>, id: EffectId) -> Result<(), Refusal> {
    let open = draft.effect(id)?;
    let due = open.stage == Stage::Waiting && open.deadline.is_some_and(|deadline| deadline <= draft.at);
    if !due {
        return Err(Refusal::NotWaiting(id));
    }
    let outcome = match &open.kind {
        OpenKind::Terminate(agent) => {
            terminate::force(draft, agent);
            return Ok(());
        }
        OpenKind::Sleep => Outcome::Slept,
        _ => Outcome::Failed(Failure::new(FailureCode::TimedOut, "nobody answered in time")),
    };
    draft.conclude(id, outcome);
    Ok(())
}
