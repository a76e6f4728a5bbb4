//! What must hold at the end of every run, whatever happened in between.

use std::collections::{BTreeMap, BTreeSet};

use polis_domain::{
    Account, CodeVersion, EffectClass, Event, MessageId, MessageKind, Origin, Recorded, ReplyTo, Settlement, Spine, TaskId,
    TurnId,
};

use super::Plan;
use crate::{ProgrammedAgent, expected};

/// Checks a finished run against its plan and against what the world saw.
pub fn check(
    plan: &Plan,
    log: &[Recorded],
    ledger: &[(EffectClass, String)],
    accepted: &BTreeMap<usize, (MessageId, TaskId)>,
) -> Result<(), String> {
    no_gap(log)?;
    nothing_left(log)?;
    nothing_accepted_is_missing(log, accepted)?;
    no_write_twice(ledger)?;
    one_answer_each(plan, log, accepted)?;
    first_come_first_served(log)?;
    no_budget_is_exceeded(log)?;
    failures_are_reported(log)?;
    versions_are_kept(log)?;
    one_result_each(log)
}

/// A unit has the version of the turn that opened it, whatever is newest meanwhile; a turn from an inbox has the newest.
fn versions_are_kept(log: &[Recorded]) -> Result<(), String> {
    let (mut newest, mut begun) = (CodeVersion::FIRST, BTreeMap::new());
    for recorded in log {
        match &recorded.event {
            Event::VersionsSet { versions } => newest = versions.newest(&ProgrammedAgent::NAME.into()),
            Event::TurnStarted { version, origin, .. } => {
                let expected = match origin {
                    Origin::Inbox => Some(&newest),
                    Origin::Unit(id) => begun.get(&id.turn),
                };
                if expected != Some(version) {
                    return Err(format!("turn {} has version {version} instead of {expected:?}", recorded.seq));
                }
                begun.insert(TurnId(recorded.seq), *version);
            }
            _ => {}
        }
    }
    Ok(())
}

fn no_gap(log: &[Recorded]) -> Result<(), String> {
    let gap = (1..).zip(log).find(|(place, recorded)| recorded.seq.0 != *place);
    gap.map_or(Ok(()), |(place, recorded)| Err(format!("event {} stands at place {place}", recorded.seq)))
}

fn nothing_left(log: &[Recorded]) -> Result<(), String> {
    let spine = Spine::from_iter(log);
    if spine.turns.is_empty() && spine.pending() == 0 {
        return Ok(());
    }
    Err(format!("{} turns are open and {} messages wait at the end", spine.turns.len(), spine.pending()))
}

/// P15.
fn nothing_accepted_is_missing(log: &[Recorded], accepted: &BTreeMap<usize, (MessageId, TaskId)>) -> Result<(), String> {
    for (i, (id, _)) in accepted {
        let times = log.iter().filter(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.id == *id)).count();
        if times != 1 {
            return Err(format!("an accepted message is missing or doubled: request {i} is in the log {times} times"));
        }
    }
    Ok(())
}

/// P16.
fn no_write_twice(ledger: &[(EffectClass, String)]) -> Result<(), String> {
    let mut done = BTreeSet::new();
    let twice = ledger.iter().find(|(class, key)| *class == EffectClass::Write && !done.insert(key));
    twice.map_or(Ok(()), |(_, key)| Err(format!("a write happened twice: {key}")))
}

fn one_answer_each(plan: &Plan, log: &[Recorded], accepted: &BTreeMap<usize, (MessageId, TaskId)>) -> Result<(), String> {
    for (i, (_, task)) in accepted {
        let ends = |recorded: &&Recorded| {
            matches!(&recorded.event, Event::MessageSent { envelope, .. }
            if envelope.task_id == *task && envelope.to.is_user() && envelope.kind != MessageKind::Message
                && *envelope.payload.text != *ProgrammedAgent::NOTED)
        };
        let answers: Vec<_> = log.iter().filter(ends).filter_map(|recorded| recorded.event.envelope()).collect();
        let [answer] = answers.as_slice() else {
            return Err(format!("request {i} has {} answers", answers.len()));
        };
        if !plan.is_comparable() {
            continue;
        }
        let answered = match &answer.kind {
            MessageKind::Failure(failure) => Err(failure.code.to_string()),
            MessageKind::Answer | MessageKind::Message => Ok(answer.payload.text.to_string()),
        };
        let expected_answer = expected(&plan.submissions[*i].program);
        if answered != expected_answer {
            return Err(format!("request {i} was answered {answered:?} instead of {expected_answer:?}"));
        }
    }
    Ok(())
}

/// P17: an agent takes messages in the order in which they were sent.
fn first_come_first_served(log: &[Recorded]) -> Result<(), String> {
    let mut sent = BTreeMap::<&str, Vec<&MessageId>>::new();
    for recorded in log {
        if let Some(envelope) = recorded.event.envelope() {
            sent.entry(envelope.to.as_str()).or_default().push(&envelope.id);
        }
        if let Event::TurnStarted { agent, origin: Origin::Inbox, message: Some(id), .. } = &recorded.event
            && let Some(waiting) = sent.get_mut(agent.as_str())
        {
            match waiting.iter().position(|waits| *waits == id) {
                // Those before it were taken out by a cancel.
                Some(place) => waiting.drain(..=place).for_each(drop),
                None => return Err(format!("`{agent}` took message {id} out of turn")),
            }
        }
    }
    Ok(())
}

/// P20: by no more than one reply.
fn no_budget_is_exceeded(log: &[Recorded]) -> Result<(), String> {
    let reply = u64::from(ProgrammedAgent::REPLY_TOKENS) + 1;
    let mut spine = Spine::default();
    for recorded in log {
        spine.evolve(recorded);
        for (scope, account) in &spine.ledger {
            let over = |spent: u64, limit: Option<u64>, granted: u64, one: u64| {
                limit.is_some_and(|limit| spent > limit.saturating_add(granted).saturating_add(one))
            };
            let (budget, Account { spent, granted, .. }) = (spine.budgets.of(scope), account);
            if over(spent.tokens, budget.tokens, granted.tokens, reply) {
                return Err(format!("a budget is exceeded by more than one reply: {scope} at event {}", recorded.seq));
            }
        }
    }
    Ok(())
}

/// A failure that nobody waits for is a dead letter, and one notice follows it.
fn failures_are_reported(log: &[Recorded]) -> Result<(), String> {
    let mut unawaited = BTreeMap::new();
    for (recorded, next) in log.iter().zip(log.iter().skip(1).map(Some).chain([None])) {
        match &recorded.event {
            Event::TurnStarted { reply_to: ReplyTo::Nobody, agent, .. } => {
                unawaited.insert(TurnId(recorded.seq), agent);
            }
            Event::MessageDeadLettered { turn, .. } => {
                let notice = next.and_then(|next| next.event.envelope());
                let agent = unawaited.remove(turn);
                if agent.is_some() && notice.map(|notice| &notice.from) != agent {
                    return Err(format!("nobody was notified that turn {turn} failed"));
                }
            }
            Event::TurnSettled { turn, settlement: Settlement::Failed(_), .. } if unawaited.contains_key(turn) => {
                return Err(format!("turn {turn} failed, nobody waited for it, and it is no dead letter"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn one_result_each(log: &[Recorded]) -> Result<(), String> {
    let mut ended = BTreeSet::new();
    let twice = log.iter().find_map(|recorded| match &recorded.event {
        Event::EffectEnded { id, .. } if !ended.insert(*id) => Some(*id),
        _ => None,
    });
    twice.map_or(Ok(()), |id| Err(format!("effect {id} has two results")))
}
