//! Messages: from outside, and from turns.

use std::sync::Arc;

use super::{Draft, check_name, terminate};
use crate::spine::{InboxEntry, Turn};
use crate::{AgentId, EffectId, Envelope, Event, Failure, MessageKind, Refusal, ReplyTo, TaskId, ThreadId};

/// A message from outside. It goes directly into the receiver's inbox (R158).
pub(super) fn send(draft: &mut Draft<'_>, envelope: Arc<Envelope>) -> Result<(), Refusal> {
    if envelope.to.is_user() {
        return Err(Refusal::ToUser);
    }
    check_envelope(&envelope, &AgentId::user(), 0, None)?;
    check_name(envelope.task_id.as_str())?;
    check(draft, &envelope)?;
    deliver(draft, envelope, None, None);
    Ok(())
}

/// Checks that a message names its real sender and the effect that really waits for it. Only `decide` itself sends answers.
pub(super) fn check_envelope(envelope: &Envelope, from: &AgentId, hops: u32, asks: Option<EffectId>) -> Result<(), Refusal> {
    let waits = match envelope.reply_to {
        ReplyTo::Effect(id) => Some(id),
        ReplyTo::User | ReplyTo::Nobody => None,
    };
    if envelope.from != *from || envelope.hops != hops || envelope.kind != MessageKind::Message || waits != asks {
        return Err(Refusal::FalseSender(envelope.id.clone()));
    }
    Ok(())
}

/// Checks that whatever a turn starts belongs to its own request. Otherwise a cancel would miss it, and its answer would
/// reach the wrong person.
pub(super) fn check_task(turn: &Turn, task: &TaskId) -> Result<(), Refusal> {
    if turn.task == *task { Ok(()) } else { Err(Refusal::ForeignTask(task.clone())) }
}

/// Checks the limits that keep agents from writing to each other without end: the length of chains, the messages between two
/// agents, and the turns of a request.
pub(super) fn check_chain(draft: &Draft<'_>, turn: &Turn, envelope: &Envelope) -> Result<(), Refusal> {
    if envelope.to.is_user() {
        return Ok(());
    }
    if envelope.reply_to == ReplyTo::Nobody {
        check_pair(draft, envelope)?;
    }
    let limit = draft.spine.limits.hops;
    if envelope.hops > limit {
        return Err(Refusal::TooManyHops { limit });
    }
    check_activity(draft, &turn.task, drafted(draft, &turn.task))
}

/// Checks the limit of messages between two agents. It is enough to count messages that nobody waits for: every endless cycle
/// contains one, because a cycle of waits alone is refused as a deadlock.
fn check_pair(draft: &Draft<'_>, envelope: &Envelope) -> Result<(), Refusal> {
    let limit = draft.spine.limits.messages_per_pair;
    let activity = draft.spine.activities.get(&envelope.task_id);
    let passed = |from: &AgentId, to: &AgentId| {
        let is_alike = |other: &Envelope| {
            other.from == *from && other.to == *to && other.task_id == envelope.task_id && other.reply_to == ReplyTo::Nobody
        };
        let drafted = draft.events.iter().filter_map(|recorded| recorded.event.envelope()).filter(|other| is_alike(other));
        activity.map_or(0, |activity| activity.sent(from, to)).saturating_add(drafted.count() as u32)
    };
    let (sent, mut received) = (passed(&envelope.from, &envelope.to), passed(&envelope.to, &envelope.from));
    if envelope.from == envelope.to {
        received = 0;
    }
    if sent.saturating_add(received) >= limit {
        return Err(Refusal::MessageLoop { to: envelope.to.clone(), sent, received, limit });
    }
    Ok(())
}

/// Notifies the person that messages between agents were blocked: who wrote to whom how often, and how many model calls it
/// took. Only once until they write again.
pub(super) fn report_loop(draft: &mut Draft<'_>, turn: &Turn, refusal: &Refusal) {
    let why = match refusal {
        Refusal::MessageLoop { to, limit, .. } => {
            format!("`{}` and `{to}` have exchanged {limit} messages", turn.agent)
        }
        Refusal::TooManyHops { limit } => format!("a chain of messages from agent to agent has reached {limit}"),
        Refusal::TooManyTurns { limit } => format!("agents have taken {limit} turns"),
        _ => return,
    };
    let Some(activity) = draft.spine.activities.get(&turn.task).filter(|activity| !activity.is_reported) else { return };
    let is_report = |event: &Event| {
        matches!(event, Event::MessageSent { envelope, by: None } if envelope.to.is_user() && envelope.task_id == turn.task
            && envelope.kind == MessageKind::Message)
    };
    if draft.events.iter().any(|recorded| is_report(&recorded.event)) {
        return;
    }
    let sent = activity.messages.iter().flat_map(|(from, sent)| sent.iter().map(move |(to, count)| (from, to, *count)));
    let messages = sent.map(|(from, to, count)| format!("{from} to {to} {count}")).collect::<Vec<_>>();
    let calls = activity.calls.iter().map(|(agent, calls)| format!("{agent} {calls}")).collect::<Vec<_>>();
    let list = |what: &str, items: &[String]| {
        if items.is_empty() { String::new() } else { format!(" {what}: {}.", items.join(", ")) }
    };
    let text = format!(
        "Messages between agents were stopped ({}): {why} for this request since you last wrote.{}{} Write again to let them go on, or \
         cancel the request.",
        refusal.code(),
        list("Messages sent", &messages),
        list("Model calls", &calls),
    );
    send_to_user(draft, &turn.agent, &turn.task, MessageKind::Message, text.into());
}

/// How many turns this draft adds to a request: messages to agents, and units.
fn drafted(draft: &Draft<'_>, task: &TaskId) -> usize {
    let brings = |event: &Event| match event {
        Event::TurnStarted { task: started, origin: crate::Origin::Unit(_), .. } => started.id == *task,
        event => event.envelope().is_some_and(|envelope| envelope.task_id == *task && !envelope.to.is_user()),
    };
    draft.events.iter().filter(|recorded| brings(&recorded.event)).count()
}

/// Checks the limit of turns for a request, counting `more` that are about to start.
pub(super) fn check_activity(draft: &Draft<'_>, task: &TaskId, more: usize) -> Result<(), Refusal> {
    let limit = draft.spine.limits.turns_per_task;
    let turns = draft.spine.activities.get(task).map_or(0, |activity| activity.turns as usize);
    if turns + more >= limit as usize { Err(Refusal::TooManyTurns { limit }) } else { Ok(()) }
}

/// Checks that a message has a text and that its receiver can take it.
pub(super) fn check(draft: &Draft<'_>, envelope: &Envelope) -> Result<(), Refusal> {
    let limits = &draft.spine.limits;
    check_text(draft, &envelope.payload.text)?;
    if envelope.payload.text.trim().is_empty() {
        return Err(Refusal::EmptyText);
    }
    if envelope.to.is_user() {
        return Ok(());
    }
    let agent = terminate::find_agent(draft, &envelope.to)?;
    let drafted = draft.events.iter().filter_map(|recorded| recorded.event.envelope()).filter(|other| other.to == envelope.to);
    let (mut entries, mut bytes) = drafted.fold((0, 0), |(n, bytes), other| (n + 1, bytes + other.payload.text.len()));
    if let Some(inbox) = &agent.inbox {
        entries += inbox.entries.len();
        bytes += inbox.bytes;
    }
    if entries >= limits.inbox_entries || bytes + envelope.payload.text.len() > limits.inbox_bytes {
        return Err(Refusal::Busy(envelope.to.clone()));
    }
    Ok(())
}

pub(super) fn check_text(draft: &Draft<'_>, text: &str) -> Result<(), Refusal> {
    let limit = draft.spine.limits.text_bytes;
    if text.len() > limit {
        return Err(Refusal::TextTooLong { bytes: text.len(), limit });
    }
    Ok(())
}

/// Puts a message into an inbox. Messages from and to a person are recorded under the task (R171), messages between agents
/// under the sending turn's thread.
pub(super) fn deliver(draft: &mut Draft<'_>, envelope: Arc<Envelope>, by: Option<EffectId>, sender: Option<&ThreadId>) {
    let personal = envelope.to.is_user() || envelope.from.is_user();
    let thread = if personal { Some(envelope.task_id.thread()) } else { sender.cloned() };
    draft.push(thread.as_ref(), Event::MessageSent { envelope: envelope.clone(), by });
    wake_receiver(draft, &envelope);
}

pub(super) fn wake_receiver(draft: &mut Draft<'_>, envelope: &Arc<Envelope>) {
    draft.wake(&envelope.to, &InboxEntry::Envelope(envelope.clone()));
}

/// The messages of the person about a turn's request that no turn has taken. They are available only while some turn will
/// answer the person; otherwise a message could be taken and never be answered.
pub(super) fn untaken_messages(draft: &Draft<'_>, turn: &Turn) -> Vec<Arc<Envelope>> {
    let answers = |other: &Turn| other.task == turn.task && other.reply_to == ReplyTo::User;
    if !draft.spine.turns.values().any(|other| answers(other)) {
        return Vec::new();
    }
    let is_taken = |envelope: &Envelope| {
        draft.events.iter().any(|recorded| match &recorded.event {
            Event::MessagesTaken { envelopes, .. } => envelopes.iter().any(|taken| taken.id == envelope.id),
            _ => false,
        })
    };
    let inbox = draft.spine.agents.get(&turn.agent).and_then(|agent| agent.inbox.as_ref());
    let envelopes = inbox.into_iter().flat_map(|inbox| &inbox.entries).filter_map(|due| match due {
        InboxEntry::Envelope(envelope) => Some(envelope),
        InboxEntry::FollowUp { .. } => None,
    });
    let is_meant = |envelope: &Envelope| envelope.from.is_user() && envelope.task_id == turn.task && !is_taken(envelope);
    envelopes.filter(|envelope| is_meant(envelope)).cloned().collect()
}

/// Sends a message to the person about a task, with the usage so far.
pub(super) fn send_to_user(draft: &mut Draft<'_>, from: &AgentId, task: &TaskId, kind: MessageKind, text: Arc<str>) {
    let draw = draft.spine.seq.0 + draft.events.len() as u64;
    let mut payload = crate::Payload::text(text);
    let spent = draft.spine.ledger.get(&crate::Scope::Task(task.clone())).map(|account| account.spent);
    if let Some(usage) = spent.and_then(|spent| serde_json::to_value(spent).ok()) {
        payload.meta.insert("usage".to_owned(), usage);
    }
    let envelope = Envelope {
        id: crate::unique_id("msg", draft.spine.seed, draft.at, draw),
        from: from.clone(),
        to: AgentId::user(),
        task_id: task.clone(),
        kind,
        payload,
        reply_to: ReplyTo::Nobody,
        hops: 0,
    };
    deliver(draft, Arc::new(envelope), None, None);
}

/// Notifies the sender that a message was never read. If the sender cannot take messages, only the log has it.
pub(super) fn return_to_sender(draft: &mut Draft<'_>, unread: &Envelope, failure: &Failure) {
    let draw = draft.spine.seq.0 + draft.events.len() as u64;
    let start: String = unread.payload.text.chars().take(80).collect();
    let text = format!("Your message to `{}` was not read: {}. It began: {start}", unread.to, failure.message);
    let envelope = Envelope {
        id: crate::unique_id("msg", draft.spine.seed, draft.at, draw),
        from: unread.to.clone(),
        to: unread.from.clone(),
        task_id: unread.task_id.clone(),
        kind: MessageKind::Failure(failure.clone()),
        payload: crate::Payload::text(text),
        reply_to: ReplyTo::Nobody,
        hops: unread.hops.saturating_add(1),
    };
    send_if_allowed(draft, envelope, None);
}

/// Delivers a message that `decide` itself writes, unless a limit is reached.
pub(super) fn send_if_allowed(draft: &mut Draft<'_>, envelope: Envelope, sender: Option<&ThreadId>) {
    let more = drafted(draft, &envelope.task_id);
    let fits = check(draft, &envelope).and_then(|()| check_activity(draft, &envelope.task_id, more)).is_ok();
    if fits && envelope.hops <= draft.spine.limits.hops {
        deliver(draft, Arc::new(envelope), None, sender);
    }
}
