//! Deciding commands: each gives events, or a refusal and no change.
//!
//! One file per kind of command. A [`Draft`] collects the events of one command; they are appended together or not at all.

mod act;
mod budget;
mod cancel;
mod crash;
mod effect;
mod inquiry;
mod message;
mod org;
mod terminate;
mod turn;

use std::sync::Arc;

use crate::spine::{InboxEntry, Spine, Turn};
use crate::{
    Behaviour, Command, ContextState, Event, Origin, Recorded, Refusal, ReplyTo, Task, ThreadId, Timestamp, TurnId, unique_id,
};

/// Decides one command at one time. Pure: the same arguments give the same events.
pub fn decide(spine: &Spine, command: Command, at: Timestamp) -> Result<Vec<Arc<Recorded>>, Refusal> {
    let mut draft = Draft::new(spine, at);
    let (request, command) = match command {
        Command::Once { request, command } => (Some(request), *command),
        command => (None, command),
    };
    if let Some(done) = request.and_then(|request| spine.requests.get(request.key)) {
        let is_same = request.is_some_and(|request| request.fingerprint == done.request.fingerprint);
        return Err(if is_same { Refusal::DoneBefore(*done) } else { Refusal::KeyReused });
    }
    match (spine.is_founded(), command) {
        (false, Command::Found { seed, limits, role }) => org::found(&mut draft, seed, limits, role)?,
        (true, Command::Found { .. }) => return Err(Refusal::AlreadyFounded),
        (false, _) => return Err(Refusal::NotFounded),
        (true, Command::Once { .. }) => return Err(Refusal::KeyReused),
        (true, Command::Fork { from, seed, request }) => draft.push(None, Event::SocietyForked { from, seed, request }),
        (true, Command::CreateRole { role }) => org::create_role(&mut draft, role, None)?,
        (true, Command::ChangeRole { role }) => org::change_role(&mut draft, role)?,
        (true, Command::Spawn { agent, role, parent }) => org::spawn(&mut draft, agent, role, parent, None)?,
        (true, Command::Terminate { agent, children, reason, now }) => {
            terminate::terminate(&mut draft, agent, children, reason, now)?
        }
        (true, Command::RestoreContext { thread }) => {
            draft.spine.threads.get(&thread).ok_or_else(|| Refusal::UnknownThread(thread.clone()))?;
            act::restore(&mut draft, &thread, None)?;
        }
        (true, Command::Import { org, root }) => org::import(&mut draft, &org, root)?,
        (true, Command::Send { envelope }) => message::send(&mut draft, envelope)?,
        (true, Command::Begin { turn, n, effects }) => effect::begin(&mut draft, turn, n, effects)?,
        (true, Command::SetBudgets { budgets }) => budget::set(&mut draft, budgets),
        (true, Command::Retry { id, attempt, spent }) => effect::retry(&mut draft, id, attempt, spent)?,
        (true, Command::End { id, outcome, spent, at }) => {
            draft.at = at;
            effect::end(&mut draft, id, outcome, spent)?;
        }
        (true, Command::Inquire { id, by, inquiry }) => inquiry::inquire(&mut draft, id, by, inquiry)?,
        (true, Command::Answer { id, answer, spent }) => inquiry::answer(&mut draft, id, answer, spent)?,
        (true, Command::Act { id, acts, at }) => {
            draft.at = at.unwrap_or(draft.at);
            act::act(&mut draft, id, acts)?;
        }
        (true, Command::Doubt { id }) => effect::doubt(&mut draft, id)?,
        (true, Command::Restart { id }) => effect::restart(&mut draft, id)?,
        (true, Command::Resolve { id, resolution }) => effect::resolve(&mut draft, id, resolution)?,
        (true, Command::Expire { id }) => effect::expire(&mut draft, id)?,
        (true, Command::Settle { turn, result }) => turn::settle(&mut draft, turn, result)?,
        (true, Command::Revive) => crash::revive(&mut draft)?,
        (true, Command::Rest { turn }) => turn::rest(&mut draft, turn)?,
        (true, Command::Crash { turn, failure }) => crash::crash(&mut draft, turn, failure)?,
        (true, Command::Park { turn, reason }) => turn::park(&mut draft, turn, reason)?,
        (true, Command::Resume { turn }) => turn::resume(&mut draft, turn)?,
        (true, Command::Cancel { target, reason }) => cancel::cancel(&mut draft, target, reason)?,
    }
    if let Some(request) = request {
        let events = u32::try_from(draft.events.len()).unwrap_or(u32::MAX);
        draft.push(None, Event::RequestDone { request, events });
    }
    Ok(draft.events)
}

/// The events of one command so far. The spine does not contain them yet, so rules that must see them search the draft as well.
struct Draft<'a> {
    spine: &'a Spine,
    at: Timestamp,
    events: Vec<Arc<Recorded>>,
    /// The new lengths of threads that this draft has added messages to.
    lengths: Vec<(ThreadId, u32)>,
}

impl<'a> Draft<'a> {
    fn new(spine: &'a Spine, at: Timestamp) -> Self {
        Self { spine, at, events: Vec::with_capacity(4), lengths: Vec::new() }
    }

    fn push(&mut self, thread: Option<&ThreadId>, event: Event) {
        let seq = crate::Seq(self.spine.seq.0 + self.events.len() as u64 + 1);
        self.events.push(Arc::new(Recorded { seq, at: self.at, thread: thread.cloned(), event }));
    }

    /// How many messages a thread has, counting those of this draft.
    fn length(&self, thread: &ThreadId) -> u32 {
        self.drafted_length(thread).unwrap_or_else(|| self.spine.threads.get(thread).map_or(0, |head| head.messages))
    }

    fn drafted_length(&self, thread: &ThreadId) -> Option<u32> {
        self.lengths.iter().find(|(id, _)| id == thread).map(|(_, length)| *length)
    }

    /// Reserves the index of one more message of a thread.
    fn lengthen(&mut self, thread: &ThreadId) -> u32 {
        let index = self.length(thread);
        match self.lengths.iter_mut().find(|(id, _)| id == thread) {
            Some((_, length)) => *length += 1,
            None => self.lengths.push((thread.clone(), index + 1)),
        }
        index
    }

    /// Whether this draft ends the turn.
    fn settles(&self, id: TurnId) -> bool {
        self.events.iter().any(|recorded| matches!(recorded.event, Event::TurnSettled { turn, .. } if turn == id))
    }

    /// Whether this draft opens the sub-thread.
    fn opens(&self, thread: &ThreadId) -> bool {
        let opened = |event: &Event| matches!(event, Event::ThreadOpened { .. });
        self.events.iter().any(|recorded| recorded.thread.as_ref() == Some(thread) && opened(&recorded.event))
    }

    /// Whether an agent or thread has this name. Agents and threads share one namespace, because a main thread has the name
    /// of its agent.
    fn is_named(&self, name: &str) -> bool {
        let (agent, thread) = (crate::AgentId::from(name), ThreadId::from(name));
        let spawned = |event: &Event| matches!(event, Event::AgentSpawned { agent: other, .. } if *other == agent);
        self.spine.agents.contains_key(&agent)
            || self.spine.terminated.contains_key(&agent)
            || self.spine.threads.contains_key(&thread)
            || self.opens(&thread)
            || self.events.iter().any(|recorded| spawned(&recorded.event))
    }

    fn turn(&self, id: TurnId) -> Result<&'a Turn, Refusal> {
        self.spine.turns.get(&id).filter(|turn| !turn.is_parked()).map(|turn| &**turn).ok_or(Refusal::TurnNotOpen(id))
    }

    /// Starts a turn for an inbox entry if the agent is idle; a busy agent gets to it later.
    fn wake(&mut self, agent: &crate::AgentId, due: &InboxEntry) {
        let Some(state) = self.spine.agents.get(agent) else { return };
        if state.turn.is_none_or(|turn| self.settles(turn)) && !self.starts(agent) {
            self.start_next(agent, state, due);
        }
    }

    /// Whether this draft starts an inbox turn of an agent.
    fn starts(&self, agent: &crate::AgentId) -> bool {
        self.events.iter().any(|recorded| match &recorded.event {
            Event::TurnStarted { agent: other, origin: Origin::Inbox, .. } => other == agent,
            _ => false,
        })
    }

    /// Starts a turn for the entry at the front of an agent's inbox.
    fn start_next(&mut self, agent: &crate::AgentId, state: &crate::Agent, due: &InboxEntry) {
        let Some(role) = self.spine.roles.get(&state.role) else { return };
        let (task, message) = match due {
            InboxEntry::Envelope(envelope) => {
                let task = Task::message(envelope.task_id.clone(), envelope.payload.text.clone());
                (Task { meta: envelope.payload.meta.clone(), hops: envelope.hops, ..task }, Some(envelope.id.clone()))
            }
            InboxEntry::FollowUp { task, .. } if task.skip_user_message => (task.clone(), None),
            InboxEntry::FollowUp { task, .. } => {
                let draw = self.spine.seq.0 + self.events.len() as u64;
                (task.clone(), Some(unique_id("user", self.spine.seed, self.at, draw)))
            }
        };
        let start = Start {
            agent: agent.clone(),
            thread: agent.main_thread(),
            behaviour: role.behaviour.clone(),
            task,
            origin: Origin::Inbox,
            reply_to: due.reply_to(),
            message,
        };
        self.start(start);
        crash::park_if_crashing(self, agent, state);
    }

    /// Starts a turn: first the suggested phase is applied, or dropped when the task is a retry (R038-R044).
    fn start(&mut self, start: Start) {
        let Start { agent, thread, behaviour, task, origin, reply_to, message } = start;
        // No command both suggests a phase and starts a turn in the same thread, so the spine is up to date here.
        let head = self.spine.threads.get(&thread);
        let (mut phase, suggestion) = head.map_or_else(Default::default, |head| (head.phase.clone(), head.suggestion.clone()));
        if let Some(suggested) = suggestion {
            if task.is_retry() {
                self.push(Some(&thread), Event::SuggestionDropped);
            } else {
                phase = suggested.clone();
                self.push(Some(&thread), Event::PhaseApplied { phase: suggested });
            }
        }
        // Nothing follows a turn's start in its thread within one command, so the new length need not be noted in the draft.
        let index = self.drafted_length(&thread).unwrap_or_else(|| head.map_or(0, |head| head.messages));
        let context = head.and_then(|head| head.context.as_deref());
        let shown = context
            .map(|context| ContextState { compression: context.cuts.last().map(|(seq, _)| *seq), failed: context.failed });
        let shown = shown.unwrap_or_default();
        let event = Event::TurnStarted { agent, behaviour, phase, task, origin, reply_to, message, index, shown };
        self.push(Some(&thread), event);
    }
}

/// A turn about to begin.
struct Start {
    agent: crate::AgentId,
    thread: ThreadId,
    behaviour: Behaviour,
    task: Task,
    origin: Origin,
    reply_to: ReplyTo,
    message: Option<crate::MessageId>,
}

/// Checks a name given by a person or a model. Names appear in URLs, so they must be plain.
fn check_name(name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.chars().count() > 128 || !name.chars().all(plain) {
        return Err(Refusal::BadName(name.chars().take(128).collect()));
    }
    Ok(())
}

/// Checks a name for display: one line, without control characters and without characters that change the direction of text.
fn check_title(name: &str) -> Result<(), Refusal> {
    let harmful =
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if name.trim().is_empty() || name.chars().count() > 128 || name.contains(harmful) {
        return Err(Refusal::BadTitle(name.chars().filter(|c| !harmful(*c)).take(128).collect()));
    }
    Ok(())
}
