//! The laws that can be judged from the state and the events at hand, without a memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use polis_domain::*;
use serde_json::Value;

use crate::invariants::{Before, Law};

/// Ends a law that does not hold with what is wrong.
macro_rules! law {
    ($holds:expr, $($broken:tt)+) => {
        if !$holds {
            return Err(format!($($broken)+));
        }
    };
}
pub(crate) use law;

pub(crate) fn only_the_named_turn(owed: &BTreeMap<TurnId, Owed>, recorded: &Recorded, spine: &Spine) -> Law {
    let now: BTreeMap<_, _> = outstanding(spine).collect();
    let mut changed = owed.keys().chain(now.keys()).filter(|id| owed.get(id) != now.get(id));
    let other = changed.find(|id| recorded.turn() != Some(**id));
    law!(other.is_none(), "{other:?} changed");
    Ok(())
}

pub(crate) fn texts(recorded: &Recorded, spine: &Spine) -> Law {
    let text = match &recorded.event {
        Event::TurnStarted { message: Some(_), task, .. } => &*task.message,
        Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => &message.text,
        Event::MessageUpdated { patch, .. } => patch.text.as_deref().unwrap_or_default(),
        // What the person is told in the end may be the words of a failure; those are ours.
        Event::MessageSent { envelope, by: None } if envelope.to.is_user() => "",
        event => event.envelope().map_or("", |envelope| &envelope.payload.text),
    };
    let limit = spine.limits.text_bytes;
    law!(text.len() <= limit, "{} bytes, {limit} are allowed", text.len());
    Ok(())
}

pub(crate) fn from_user_to_user(recorded: &Recorded) -> Law {
    let talks = |envelope: &Envelope| envelope.from.is_user() && envelope.to.is_user();
    law!(!recorded.event.envelope().is_some_and(|envelope| talks(envelope)), "{:?}", recorded.event);
    Ok(())
}

/// A sub-thread is named in the message that holds it.
pub(crate) fn links_show(fold: &Thread, spine: &Spine) -> Law {
    let links = spine.threads.get(&fold.id).map(|head| &head.links);
    for (index, slot, child) in
        links.into_iter().flatten().flat_map(|(index, at)| at.iter().map(move |(slot, child)| (index, slot, child)))
    {
        let message = fold.messages.get(*index as usize);
        let found = message.and_then(|message| {
            let mut keys = slot.keys();
            let first = message.meta.get(keys.next()?)?;
            keys.try_fold(first, |meta, key| meta.get(key))
        });
        let named = found.and_then(|found| found.get("id")).and_then(Value::as_str);
        law!(named == Some(child.as_str()), "message {index} of `{}` shows {named:?} at {slot}, not `{child}`", fold.id);
    }
    Ok(())
}

pub(crate) fn agreement(spine: &Spine) -> Law {
    for (id, turn) in &spine.turns {
        let head = spine.threads.get(&turn.thread);
        let held = head.is_some_and(|head| head.turn == Some(*id) && head.agent == turn.agent);
        law!(held, "turn {id} is open, but not in its thread `{}`", turn.thread);
        let is_main = turn.thread == turn.agent.main_thread();
        law!(is_main == (turn.origin == Origin::Inbox), "turn {id} of {:?} is in `{}`", turn.origin, turn.thread);
        law!(!is_main || spine.agents[&turn.agent].turn == Some(*id), "{} does not know turn {id}", turn.agent);
    }
    for (thread, head) in &spine.threads {
        let known = head.turn.is_none_or(|id| spine.turns.get(&id).is_some_and(|turn| turn.thread == *thread));
        law!(known, "`{thread}` believes in turn {:?}", head.turn);
    }
    for (name, agent) in &spine.agents {
        let known = agent.turn.is_none_or(|id| spine.turns.get(&id).is_some_and(|turn| turn.agent == *name));
        law!(known, "{name} believes in turn {:?}", agent.turn);
    }
    Ok(())
}

pub(crate) fn places(spine: &Spine) -> Law {
    for (id, head) in &spine.threads {
        let (main, path) = spine.address(id);
        law!(spine.resolve(&main, &path).as_ref() == Some(id), "{main}.{path} is not `{id}`");
        // Between the two events of an opening a sub-thread hangs nowhere yet; it has no messages and no turn.
        let hangs = head.place.is_some() || head.messages == 0 && head.turn.is_none();
        law!(hangs || *id == head.agent.main_thread(), "`{id}` hangs nowhere");
        let Some(place) = head.place.as_deref() else { continue };
        law!(main == head.agent.main_thread(), "`{id}` of {} hangs below `{main}`", head.agent);
        let Some(parent) = spine.threads.get(&place.parent) else { return Err(format!("`{id}` has no parent")) };
        law!(parent.agent == head.agent && place.index < parent.messages, "`{id}` hangs in nothing");
        let here = parent.links.get(&place.index).into_iter().flatten();
        let times = here.filter(|(slot, child)| *slot == place.slot && child == id).count();
        law!(times == 1, "the parent of `{id}` names it {times} times");
    }
    for (index, (_, child)) in
        spine.threads.values().flat_map(|head| &head.links).flat_map(|(index, at)| at.iter().map(move |it| (index, it)))
    {
        let place = spine.threads.get(child).and_then(|head| head.place.as_deref());
        law!(place.is_some_and(|place| place.index == *index), "`{child}` does not know where it hangs");
    }
    Ok(())
}

/// No turn waits, through asks and units, for itself.
pub(crate) fn no_circle(spine: &Spine) -> Law {
    let waits_for = |id: &TurnId| {
        let open = spine.turns.get(id).map_or(&[][..], |turn| &turn.open);
        open.iter().filter_map(|open| match &open.kind {
            OpenKind::Ask(agent) => spine.agents[agent].turn,
            OpenKind::Unit(thread) => spine.threads[thread].turn,
            OpenKind::Model(_) | OpenKind::Tool(_) | OpenKind::Keep => None,
            OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_) | OpenKind::Sleep => None,
            // It has an end of its own: the deadline.
            OpenKind::Terminate(_) => None,
        })
    };
    for top in spine.turns.keys() {
        let (mut seen, mut next) = (BTreeSet::new(), waits_for(top).collect::<Vec<_>>());
        while let Some(id) = next.pop() {
            law!(id != *top, "turn {top} waits for itself");
            if seen.insert(id) {
                next.extend(waits_for(&id));
            }
        }
    }
    Ok(())
}

pub(crate) fn weights(spine: &Spine) -> Law {
    let limits = &spine.limits;
    for (name, inbox) in spine.agents.iter().filter_map(|(name, agent)| Some((name, agent.inbox.as_ref()?))) {
        law!(!inbox.entries.is_empty(), "{name} keeps an empty inbox");
        let bytes: usize = inbox.entries.iter().map(InboxEntry::bytes).sum();
        law!(inbox.bytes == bytes, "the inbox of {name} has {bytes} bytes and says {}", inbox.bytes);
        let envelopes = || inbox.entries.iter().filter(|due| matches!(due, InboxEntry::Envelope(_)));
        let (count, bytes) = (envelopes().count(), envelopes().map(InboxEntry::bytes).sum::<usize>());
        let fits = count <= limits.inbox_entries && bytes <= limits.inbox_bytes;
        law!(fits, "{count} messages of {bytes} bytes wait for {name}");
    }
    Ok(())
}

pub(crate) fn granted(events: &[Recorded]) -> Law {
    law!(!events.is_empty(), "it left none");
    Ok(())
}

pub(crate) fn idle(spine: &Spine) -> Law {
    let left = spine.agents.iter().find(|(_, agent)| agent.turn.is_none() && agent.inbox.is_some());
    law!(left.is_none(), "{:?}", left);
    Ok(())
}

pub(crate) fn journal(before: &Before, events: &[Recorded]) -> Law {
    let last: BTreeMap<_, _> = events.iter().filter_map(|recorded| Some((recorded.event.effect()?, recorded))).collect();
    for (id, recorded) in last {
        let own = before.turns.get(&id.turn).map(|(thread, _)| thread);
        law!(recorded.thread.as_ref() == own, "the last of {id} is under {:?}, not {own:?}", recorded.thread);
    }
    Ok(())
}

pub(crate) fn rightly_moved(before: &Before, command: &Command, events: &[Recorded]) -> Law {
    let (Command::End { id, .. }
    | Command::Doubt { id }
    | Command::Restart { id }
    | Command::Resolve { id, .. }
    | Command::Expire { id }) = command
    else {
        return Ok(());
    };
    let Some(open) = before.open.get(id) else { return Err(format!("{id} was not open")) };
    let write = open.kind == OpenKind::Tool(EffectClass::Write);
    let right = match command {
        Command::End { .. } => open.stage == Stage::Working,
        Command::Doubt { .. } => matches!(open.stage, Stage::Working | Stage::Cleared) && write,
        Command::Restart { .. } => open.stage == Stage::Cleared && write,
        Command::Resolve { .. } => {
            let asks = matches!(open.kind, OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_));
            open.stage == Stage::InDoubt || asks
        }
        _ => open.deadline.is_some_and(|deadline| events.iter().all(|recorded| recorded.at >= deadline)),
    };
    law!(right, "{open:?}");
    Ok(())
}

pub(crate) fn owed_to_user(spine: &Spine) -> BTreeMap<TaskId, usize> {
    let mut owed = BTreeMap::new();
    let turns = spine.turns.values().map(|turn| (turn.reply_to, &turn.task));
    let inboxes = spine.agents.values().filter_map(|agent| agent.inbox.as_ref());
    let waiting = inboxes.flat_map(|inbox| &inbox.entries).map(|due| (due.reply_to(), due.task()));
    for (_, task) in turns.chain(waiting).filter(|(reply_to, _)| *reply_to == ReplyTo::User) {
        *owed.entry(task.clone()).or_default() += 1;
    }
    owed
}

pub(crate) fn told_once(before: &Before, command: &Command, events: &[Recorded], spine: &Spine) -> Law {
    let after = owed_to_user(spine);
    let envelopes = || events.iter().filter_map(|recorded| recorded.event.envelope());
    let tasks: BTreeSet<_> =
        before.owed_to_user.keys().chain(after.keys()).chain(envelopes().map(|envelope| &envelope.task_id)).collect();
    for task in tasks {
        let of_task = || envelopes().filter(|envelope| envelope.task_id == *task);
        let asked = of_task().filter(|envelope| envelope.reply_to == ReplyTo::User).count();
        let told = of_task().filter(|envelope| envelope.to.is_user() && envelope.kind != MessageKind::Message).count();
        let owed = before.owed_to_user.get(task).unwrap_or(&0) + asked;
        let still = *after.get(task).unwrap_or(&0);
        let taken = events.iter().filter_map(|recorded| match &recorded.event {
            Event::MessagesTaken { envelopes, .. } => Some(envelopes),
            _ => None,
        });
        let joined = taken.flatten().filter(|envelope| envelope.task_id == *task && envelope.reply_to == ReplyTo::User).count();
        law!(joined == 0 || still > 0, "what was said about {task} was taken in, and nobody will answer it");
        let ended = owed - joined - still;
        // Who calls off several requests of one task hears of it once.
        let once = matches!(
            command,
            Command::Cancel { .. } | Command::Terminate { .. } | Command::EraseConversation { .. } | Command::Expire { .. }
        );
        let expected = if once { ended.min(1) } else { ended };
        law!(told == expected, "{ended} requests of {task} ended and the person was told {told} times");
    }
    Ok(())
}

pub(crate) fn waits_are_held(spine: &Spine) -> Law {
    let turns = spine.turns.values().map(|turn| turn.reply_to);
    let inboxes = spine.agents.values().filter_map(|agent| agent.inbox.as_ref());
    let waiting = inboxes.flat_map(|inbox| &inbox.entries).map(InboxEntry::reply_to);
    let mut held = HashMap::<EffectId, usize>::new();
    for reply_to in turns.chain(waiting) {
        if let ReplyTo::Effect(id) = reply_to {
            *held.entry(id).or_default() += 1;
        }
    }
    for (turn, open) in spine.turns.iter().flat_map(|(id, turn)| turn.open.iter().map(move |open| (*id, open))) {
        let times = held.get(&EffectId { turn, n: open.n }).copied().unwrap_or_default();
        let expected = usize::from(matches!(open.kind, OpenKind::Ask(_) | OpenKind::Unit(_)));
        law!(times == expected, "{turn}.{} ({:?}) will be answered {times} times", open.n, open.kind);
    }
    Ok(())
}

/// Who is gone has left nothing behind: no turn, no child, no account of a wait.
pub(crate) fn gone_for_good(spine: &Spine) -> Law {
    for (id, agent) in &spine.agents {
        law!(!spine.terminated.contains_key(id), "{id} is gone and yet there");
        let parent = agent.parent.as_ref();
        law!(parent.is_none_or(|parent| spine.agents.contains_key(parent)), "{id} has lost its parent {parent:?}");
    }
    let orphan = spine.turns.iter().find(|(_, turn)| !spine.agents.contains_key(&turn.agent));
    law!(orphan.is_none(), "{orphan:?} has no agent");
    Ok(())
}

pub(crate) fn contexts(recorded: &Recorded, spine: &Spine) -> Law {
    let Some(head) = recorded.thread.as_ref().and_then(|thread| spine.threads.get(thread)) else { return Ok(()) };
    let cuts = head.context.as_ref().map(|context| &context.cuts[..]).unwrap_or_default();
    law!(cuts.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{cuts:?}");
    law!(cuts.iter().all(|(_, from)| *from > 0 && *from <= head.messages), "{cuts:?} of {} messages", head.messages);
    let top = cuts.last().map(|(seq, _)| *seq);
    match &recorded.event {
        Event::ContextCompressed { .. } => law!(top == Some(recorded.seq), "{top:?} holds"),
        Event::ContextRestored { to, .. } => law!(top == *to, "{top:?} holds and not {to:?}"),
        _ => {}
    }
    Ok(())
}

/// Who has been sent away and has nothing to do is gone.
pub(crate) fn nobody_lingers(spine: &Spine) -> Law {
    for (id, agent) in spine.agents.iter().filter(|(_, agent)| agent.turn.is_none()) {
        let Some(leaving) = &agent.termination else { continue };
        law!(!leaving.detach && !spine.children(id).is_empty(), "{id} has nothing to do and stays");
    }
    Ok(())
}

/// Agents make no more agents than they may (P21).
pub(crate) fn room(events: &[Recorded], spine: &Spine) -> Law {
    let made = |recorded: &&Recorded| matches!(recorded.event, Event::AgentSpawned { by: Some(_), .. });
    for recorded in events.iter().filter(made) {
        let Event::AgentSpawned { agent, parent: Some(parent), .. } = &recorded.event else { continue };
        let limits = &spine.limits;
        law!(spine.depth(agent) <= limits.depth, "{agent} is {} deep", spine.depth(agent));
        // Root and every agent with a parent; the agents of conversations have none.
        let agents = 1 + spine.agents.values().filter(|agent| agent.parent.is_some()).count();
        law!(agents <= limits.agents, "there are {agents} agents");
        law!(spine.children(parent).len() <= limits.children, "{parent} has too many children");
        let recent = spine.spawned.iter().filter(|at| at.0 + 60_000 > recorded.at.0).count();
        law!(recent <= limits.spawns_a_minute, "{recent} within a minute");
    }
    Ok(())
}

pub(crate) fn few_effects(spine: &Spine) -> Law {
    let limit = spine.limits.open_effects;
    let many = spine.turns.iter().find(|(_, turn)| turn.open.len() > limit);
    law!(many.is_none(), "{many:?}");
    Ok(())
}

/// What a call has asked is open only while the call itself runs, in a turn that does.
pub(crate) fn calls_ask_while_they_run(spine: &Spine) -> Law {
    for id in spine.inquiries.keys() {
        let runs = spine.open_effect(id.call).is_some_and(|open| {
            open.stage == Stage::Working
                && matches!(open.kind, OpenKind::Tool(_))
                && spine.turns[&id.call.turn].parked().is_none()
        });
        law!(runs, "{id} is open and its call does not run");
    }
    Ok(())
}

/// Whether nobody waits for the result of a turn, nor for what its agent queued after it.
pub(crate) fn is_unawaited(turn: &Turn, spine: &Spine) -> bool {
    let entries = spine.agents[&turn.agent].inbox.iter().flat_map(|inbox| &inbox.entries);
    let mut queued = entries.take_while(|due| matches!(due, InboxEntry::FollowUp { .. }));
    turn.reply_to == ReplyTo::Nobody && queued.all(|due| due.reply_to() == ReplyTo::Nobody)
}

/// Each failed turn that nobody waits for is dead-lettered, and one message says so: to an agent that is not below the one that
/// failed, or to the person. Nobody is notified once the person knows that the agents were stopped.
pub(crate) fn unawaited_failures(before: &Before, events: &[Recorded], spine: &Spine) -> Law {
    for recorded in events {
        let Event::TurnSettled { turn, settlement: Settlement::Failed(failure), .. } = &recorded.event else { continue };
        let Some(agent) = before.unawaited.get(turn) else { continue };
        let dead = |recorded: &&Recorded| matches!(&recorded.event, Event::MessageDeadLettered { turn: given_up, .. } if given_up == turn);
        law!(events.iter().filter(dead).count() == 1, "turn {turn} failed and is no dead letter");
        let reports = |envelope: &&Envelope| {
            let to_agent = envelope.kind == MessageKind::Failure(failure.clone());
            let to_user = envelope.to.is_user() && envelope.payload.meta.get(Payload::FAILURE).is_some();
            envelope.from == *agent && (to_agent || to_user)
        };
        let envelopes = events.iter().filter_map(|recorded| recorded.event.envelope());
        let reports: Vec<_> = envelopes.map(|envelope| &**envelope).filter(reports).collect();
        let is_stopped = before.stopped.contains(&before.turns[turn].1);
        law!(reports.len() == usize::from(!is_stopped), "the failure of turn {turn} was reported {} times", reports.len());
        let Some(report) = reports.first() else { continue };
        let is_below = spine.with_ancestors(&report.to).any(|above| above == agent);
        law!(!is_below, "the failure of {agent} was reported to {}, which is below it", report.to);
    }
    Ok(())
}
