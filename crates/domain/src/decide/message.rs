//! Messages: from outside, and from turns.

use std::sync::Arc;

use super::check_name;
use super::draft::Draft;
use crate::inbox::InboxEntry;
use crate::spine::Turn;
use crate::{AgentId, EffectId, Envelope, Event, Failure, MessageKind, Outcome, Payload, Refusal, ReplyTo, TaskId, ThreadId};

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
    if !draft.spawns(&envelope.to) && !draft.spine.can_reach(&turn.agent, &envelope.to, Some(&turn.task)) {
        return Err(Refusal::UnknownAgent(envelope.to.clone()));
    }
    if envelope.reply_to == ReplyTo::Nobody {
        check_pair(draft, envelope)?;
    }
    let limit = draft.spine.limits.hops;
    if envelope.hops > limit {
        return Err(Refusal::TooManyHops { limit });
    }
    check_activity(draft, &turn.task, 0)
}

/// Checks the limit of messages between two agents. It is enough to count messages that nobody waits for: every endless cycle
/// contains one, because a cycle of waits alone is refused as a deadlock.
fn check_pair(draft: &Draft<'_>, envelope: &Envelope) -> Result<(), Refusal> {
    let limit = draft.spine.limits.messages_per_pair;
    let passed = |from: &AgentId, to: &AgentId| draft.sent(&envelope.task_id, from, to);
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
    if draft.reports(&turn.task) {
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

/// Checks the limit of turns for a request, counting `more` that are about to start.
pub(super) fn check_activity(draft: &Draft<'_>, task: &TaskId, more: usize) -> Result<(), Refusal> {
    let limit = draft.spine.limits.turns_per_task;
    if draft.turns_of(task) + more >= limit as usize { Err(Refusal::TooManyTurns { limit }) } else { Ok(()) }
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
    if !draft.spawns(&envelope.to) {
        draft.agent(&envelope.to)?;
    }
    let (entries, bytes) = draft.inbox(&envelope.to);
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
    let inbox = draft.spine.agents.get(&turn.agent).and_then(|agent| agent.inbox.as_ref());
    let envelopes = inbox.into_iter().flat_map(|inbox| &inbox.entries).filter_map(|due| match due {
        InboxEntry::Envelope(envelope) => Some(envelope),
        InboxEntry::FollowUp { .. } => None,
    });
    let is_meant =
        |envelope: &Envelope| envelope.from.is_user() && envelope.task_id == turn.task && !draft.is_taken(&envelope.id);
    envelopes.filter(|envelope| is_meant(envelope)).cloned().collect()
}

/// Sends a message to the person about a task, with the usage so far.
pub(super) fn send_to_user(draft: &mut Draft<'_>, from: &AgentId, task: &TaskId, kind: MessageKind, text: Arc<str>) {
    send_payload_to_user(draft, from, task, kind, Payload::text(text));
}

/// Notifies the person of a failure that does not end the request: others may still work on it.
pub(super) fn notify_user(draft: &mut Draft<'_>, from: &AgentId, task: &TaskId, failure: &Failure, text: Arc<str>) {
    let mut payload = Payload::text(text);
    payload.meta.insert(Payload::FAILURE.to_owned(), serde_json::to_value(failure).unwrap_or_default());
    send_payload_to_user(draft, from, task, MessageKind::Message, payload);
}

fn send_payload_to_user(draft: &mut Draft<'_>, from: &AgentId, task: &TaskId, kind: MessageKind, mut payload: Payload) {
    let spent = draft.spine.ledger.get(&crate::BudgetScope::Task(task.clone())).map(|account| account.spent);
    if let Some(usage) = spent.and_then(|spent| serde_json::to_value(spent).ok()) {
        payload.meta.insert("usage".to_owned(), usage);
    }
    let envelope = Envelope {
        id: crate::unique_id("msg", draft.spine.seed, draft.at, draft.next_draw()),
        from: from.clone(),
        to: AgentId::user(),
        task_id: task.clone(),
        kind,
        payload,
        reply_to: ReplyTo::Nobody,
        person: None,
        hops: 0,
    };
    deliver(draft, Arc::new(envelope), None, None);
}

/// Notifies the sender that a message was never read. If the sender cannot take messages, only the log has it.
pub(super) fn return_to_sender(draft: &mut Draft<'_>, unread: &Envelope, failure: &Failure) {
    let start: String = unread.payload.text.chars().take(80).collect();
    let text = format!("Your message to `{}` was not read: {}. It began: {start}", unread.to, failure.message);
    let envelope = Envelope {
        id: crate::unique_id("msg", draft.spine.seed, draft.at, draft.next_draw()),
        from: unread.to.clone(),
        to: unread.from.clone(),
        task_id: unread.task_id.clone(),
        kind: MessageKind::Failure(failure.clone()),
        payload: Payload::text(text),
        reply_to: ReplyTo::Nobody,
        person: None,
        hops: unread.hops.saturating_add(1),
    };
    send_if_allowed(draft, envelope, None);
}

/// Delivers a message that `decide` itself writes, unless a limit is reached or the receiver cannot take it; says which.
pub(super) fn send_if_allowed(draft: &mut Draft<'_>, envelope: Envelope, sender: Option<&ThreadId>) -> bool {
    let fits = check(draft, &envelope).and_then(|()| check_activity(draft, &envelope.task_id, 0)).is_ok();
    let is_allowed = fits && envelope.hops <= draft.spine.limits.hops;
    if is_allowed {
        deliver(draft, Arc::new(envelope), None, sender);
    }
    is_allowed
}

/// Sends the result of a turn to the person or effect that waits for it.
pub(super) fn answer_waiter(draft: &mut Draft<'_>, turn: &Turn, answer: Result<Arc<str>, Failure>) {
    match (turn.reply_to, answer) {
        (ReplyTo::Nobody, _) => {}
        (ReplyTo::User, Ok(text)) => send_to_user(draft, &turn.agent, &turn.task, MessageKind::Answer, text),
        (ReplyTo::User, Err(failure)) => {
            let text = failure.message.as_str().into();
            send_to_user(draft, &turn.agent, &turn.task, MessageKind::Failure(failure), text);
        }
        (ReplyTo::Effect(id), Ok(text)) => draft.answer(id, Outcome::Answer(text)),
        (ReplyTo::Effect(id), Err(failure)) => draft.answer(id, Outcome::Failed(failure)),
    }
}
