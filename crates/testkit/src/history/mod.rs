//! A checker of histories: whether what clients were told and saw, what tools did, and what the database let nodes write agree with one
//! log of a society. It knows nothing of how the run was made.
//!
//! | property | from |
//! |---|---|
//! | the log has each position once, without a gap | the log |
//! | each acknowledged command is there once, at the position that the client was told; others at most once, and nothing else | commands |
//! | a command that was sent after something was known is later in the log than that (linearizability) | commands, observations |
//! | each client has seen a stretch of the log as it is, without a gap or double | observations |
//! | a write effect is done at most once and has its intent in the log; one whose result is in the log was done once | effects |
//! | each agent takes messages in their order, one turn at a time, and answers each request once | the log |
//! | each append follows the one before, by the owner under its lease; epochs never fall, and each has one owner | writes |

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use polis_domain::{
    AgentId, Cleared, Effect, EffectClass, Event, MessageId, MessageKind, Origin, Outcome, Recorded, Seq, TaskId, TurnId,
};
use serde_json::Value;

/// Everything that is known of a run of one society, after its last open request has ended.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The log from the first event on.
    pub log: Vec<Recorded>,
    /// What clients asked. All texts differ.
    pub commands: Vec<Command>,
    /// What each client that followed the society saw, in its order.
    pub observations: Vec<Observations>,
    /// The `id` in the arguments of each call of a tool that writes, each time that it was done. Such a tool answers `added ID`.
    pub effects: Vec<String>,
    /// What the database let nodes write to the society's row, in the order of the commits.
    pub writes: Vec<Write>,
}

/// A message of a person. Times are those of one clock.
#[derive(Debug, Clone)]
pub struct Command {
    /// The text.
    pub text: String,
    /// When it was sent for the first time.
    pub sent: Duration,
    /// What the client was told, each time it was; nothing if it never was.
    pub acknowledged: Vec<Acknowledged>,
}

/// An acknowledgement of a command.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// When it came.
    pub at: Duration,
    /// The request.
    pub task: TaskId,
    /// The agent that the message went to.
    pub agent: AgentId,
    /// The position of the message.
    pub seq: Seq,
}

/// What one client saw.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// The name of the client.
    pub client: String,
    /// The position after which it began.
    pub after: u64,
    /// The events, and when they came.
    pub events: Vec<(Duration, Recorded)>,
}

/// A change of the society's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The node that made it.
    pub writer: String,
    /// The owner before and after it; none for nobody.
    pub owner: [Option<String>; 2],
    /// Whether the lease had not ended, before and after it.
    pub is_leased: [bool; 2],
    /// The epoch before and after it.
    pub epoch: [i64; 2],
    /// The position before and after it.
    pub head: [u64; 2],
}

/// What a history has, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Events of the log.
    pub events: usize,
    /// Acknowledged commands.
    pub acknowledged: usize,
    /// Events that clients saw.
    pub observed: usize,
    /// Write effects that were done.
    pub effects: usize,
    /// Write effects that were in doubt.
    pub doubted: usize,
    /// How often the owner was another one.
    pub takeovers: usize,
}

impl History {
    /// Checks all properties.
    ///
    /// # Errors
    ///
    /// All faults, each a sentence.
    pub fn check(&self) -> Result<Summary, Vec<String>> {
        let mut faults = Vec::new();
        self.positions(&mut faults);
        self.commands(&mut faults);
        self.order(&mut faults);
        self.observed(&mut faults);
        self.effects(&mut faults);
        self.agents(&mut faults);
        self.answers(&mut faults);
        self.written(&mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let is_doubted = |recorded: &&Recorded| matches!(recorded.event, Event::EffectDoubted { .. });
        let owners = self.writes.iter().filter_map(|write| write.owner[1].as_ref());
        Ok(Summary {
            events: self.log.len(),
            acknowledged: self.commands.iter().filter(|command| !command.acknowledged.is_empty()).count(),
            observed: self.observations.iter().map(|seen| seen.events.len()).sum(),
            effects: self.effects.len(),
            doubted: self.log.iter().filter(is_doubted).count(),
            takeovers: owners.clone().zip(owners.skip(1)).filter(|(one, next)| one != next).count(),
        })
    }

    fn positions(&self, faults: &mut Vec<String>) {
        let wrong = self.log.iter().zip(1..).find(|(recorded, seq)| recorded.seq.0 != *seq);
        if let Some((recorded, seq)) = wrong {
            faults.push(format!("the log has event {} at position {seq}", recorded.seq.0));
        }
    }

    fn at(&self, seq: Seq) -> Option<&Recorded> {
        self.log.get(usize::try_from(seq.0.checked_sub(1)?).ok()?)
    }

    /// The messages of the person, by their text.
    fn said(&self) -> BTreeMap<&str, Vec<&Recorded>> {
        let mut said = BTreeMap::<_, Vec<_>>::new();
        for recorded in &self.log {
            if let Event::MessageSent { envelope, .. } = &recorded.event
                && envelope.from.is_user()
            {
                said.entry(envelope.payload.own_words()).or_default().push(recorded);
            }
        }
        said
    }

    fn commands(&self, faults: &mut Vec<String>) {
        let mut said = self.said();
        for command in &self.commands {
            let text = &command.text;
            let places = said.remove(&**text).unwrap_or_default();
            match (places.len(), command.acknowledged.is_empty()) {
                (0, false) => faults.push(format!("`{text}` was acknowledged and is not in the log")),
                (0 | 1, _) => {}
                (n, _) => faults.push(format!("`{text}` is in the log {n} times")),
            }
            for told in &command.acknowledged {
                let is_there = places.iter().any(|recorded| {
                    recorded.seq == told.seq
                        && recorded.event.envelope().is_some_and(|sent| sent.task_id == told.task && sent.to == told.agent)
                });
                if !is_there && !places.is_empty() {
                    faults.push(format!("`{text}` was acknowledged at {} and is elsewhere", told.seq.0));
                }
            }
        }
        faults.extend(said.into_keys().map(|text| format!("`{text}` is in the log and nobody sent it")));
    }

    /// What was known before a command was sent is before it in the log.
    fn order(&self, faults: &mut Vec<String>) {
        let told = self.commands.iter().flat_map(|command| command.acknowledged.iter().map(|told| (told.at, told.seq.0)));
        let seen = self.observations.iter().flat_map(|seen| seen.events.iter().map(|(at, recorded)| (*at, recorded.seq.0)));
        let mut known: Vec<(Duration, u64)> = told.chain(seen).collect();
        known.sort_unstable();
        let mut sent: Vec<&Command> = self.commands.iter().filter(|command| !command.acknowledged.is_empty()).collect();
        sent.sort_by_key(|command| command.sent);
        let (mut known, mut latest) = (known.into_iter().peekable(), 0);
        for command in sent {
            while let Some((_, seq)) = known.next_if(|(at, _)| *at < command.sent) {
                latest = latest.max(seq);
            }
            let first = command.acknowledged.iter().map(|told| told.seq.0).min().unwrap_or_default();
            if first <= latest {
                let text = &command.text;
                faults.push(format!("`{text}` is at {first}, but {latest} was known before it was sent"));
            }
        }
    }

    fn observed(&self, faults: &mut Vec<String>) {
        for Observations { client, after, events } in &self.observations {
            let mut last = *after;
            for (_, recorded) in events {
                let seq = recorded.seq.0;
                if seq != last + 1 {
                    faults.push(format!("{client} saw event {seq} after event {last}"));
                }
                last = seq;
                match self.at(recorded.seq) {
                    Some(logged) if logged == recorded => {}
                    Some(_) => faults.push(format!("{client} saw another event {seq} than the log has")),
                    None => faults.push(format!("{client} saw event {seq}, which the log does not have")),
                }
            }
            if last < self.log.len() as u64 {
                faults.push(format!("{client} saw nothing after event {last} of {}", self.log.len()));
            }
        }
    }

    fn effects(&self, faults: &mut Vec<String>) {
        let mut intended = HashMap::new();
        let mut results = BTreeSet::new();
        for recorded in &self.log {
            match &recorded.event {
                Event::EffectStarted { id, effect: Effect::Tool(call), .. } if call.class == EffectClass::Write => {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                    intended.insert(*id, arguments["id"].as_str().unwrap_or_default().to_owned());
                }
                Event::EffectEnded { id, outcome: Outcome::Result(result), .. } => {
                    let wrote = intended.get(id).filter(|wrote| *result.content == *format!("added {wrote}"));
                    results.extend(wrote.cloned());
                }
                _ => {}
            }
        }
        let mut done: BTreeMap<&str, usize> = BTreeMap::new();
        self.effects.iter().for_each(|id| *done.entry(id).or_default() += 1);
        let intended: BTreeSet<&str> = intended.values().map(String::as_str).collect();
        for (id, times) in &done {
            if *times > 1 {
                faults.push(format!("a write happened {times} times: {id}"));
            }
            if !intended.contains(id) {
                faults.push(format!("a write happened without an intent in the log: {id}"));
            }
        }
        let lost = results.iter().filter(|id| !done.contains_key(id.as_str()));
        faults.extend(lost.map(|id| format!("the log has the result of a write that did not happen: {id}")));
    }

    fn agents(&self, faults: &mut Vec<String>) {
        let mut inboxes: HashMap<&AgentId, VecDeque<(&MessageId, &TaskId)>> = HashMap::new();
        let mut running: HashMap<&AgentId, TurnId> = HashMap::new();
        for recorded in &self.log {
            let seq = recorded.seq.0;
            match &recorded.event {
                Event::TurnStarted { agent, task, origin: Origin::Inbox, .. } => {
                    if let Some(turn) = running.insert(agent, TurnId(recorded.seq)) {
                        faults.push(format!("{agent} has two turns at {seq}: {} goes on", turn.0.0));
                    }
                    let front = inboxes.get_mut(agent).and_then(VecDeque::pop_front);
                    match front {
                        Some((_, of)) if *of == task.id => {}
                        Some((_, of)) => faults.push(format!("{agent} began {} at {seq}, and {of} came before it", task.id)),
                        None => faults.push(format!("{agent} began {} at {seq}, which nobody sent", task.id)),
                    }
                }
                Event::TurnSettled { turn, .. } => running.retain(|_, running| running != turn),
                Event::MessagesTaken { agent, envelopes, .. } => {
                    let is_left = |(id, _): &(&MessageId, _)| !envelopes.iter().any(|taken| taken.id == **id);
                    inboxes.entry(agent).or_default().retain(is_left);
                }
                Event::InboxCleared { agent, of } => match of {
                    Cleared::Task(task) => inboxes.entry(agent).or_default().retain(|(_, of)| *of != task),
                    Cleared::AskedBy(_) | Cleared::Everything => inboxes.entry(agent).or_default().clear(),
                },
                event => {
                    if let Some(envelope) = event.envelope().filter(|envelope| !envelope.to.is_user()) {
                        inboxes.entry(&envelope.to).or_default().push_back((&envelope.id, &envelope.task_id));
                    }
                }
            }
        }
        for (agent, inbox) in inboxes.iter().filter(|(_, inbox)| !inbox.is_empty()) {
            faults.push(format!("{} messages to {agent} were never taken", inbox.len()));
        }
        faults.extend(running.into_iter().map(|(agent, turn)| format!("the turn {} of {agent} never ended", turn.0.0)));
    }

    /// Each request of the person ends once.
    fn answers(&self, faults: &mut Vec<String>) {
        let mut answers: HashMap<&TaskId, usize> = HashMap::new();
        for envelope in self.log.iter().filter_map(|recorded| recorded.event.envelope()) {
            if envelope.to.is_user() && envelope.kind != MessageKind::Message {
                *answers.entry(&envelope.task_id).or_default() += 1;
            }
        }
        for recorded in self.said().into_values().flatten() {
            let task = recorded.event.envelope().map(|envelope| &envelope.task_id);
            let ended = task.and_then(|task| answers.get(task)).copied().unwrap_or_default();
            if ended != 1 {
                faults.push(format!("the request at {} was answered {ended} times", recorded.seq.0));
            }
        }
    }

    fn written(&self, faults: &mut Vec<String>) {
        let mut owners: HashMap<i64, &str> = HashMap::new();
        let mut last: Option<&Write> = None;
        for write in &self.writes {
            let Write { writer, owner: [before, owner], is_leased, epoch, head } = write;
            let place = format!("at {} under epoch {}", head[1], epoch[1]);
            if epoch[1] < epoch[0] || last.is_some_and(|last| epoch[0] < last.epoch[1]) {
                faults.push(format!("the epoch fell to {} {place}", epoch[1]));
            }
            if last.is_some_and(|last| last.head[1] != head[0]) || head[1] < head[0] {
                faults.push(format!("{writer} wrote from {}, which is not the end of the write before it, {place}", head[0]));
            }
            if head[0] != head[1] && (owner.as_ref() != Some(writer) || !is_leased[1]) {
                let owner = owner.as_deref().unwrap_or("nobody");
                faults.push(format!("{writer} wrote without a lease {place}: the owner is {owner}"));
            }
            if let (Some(before), Some(owner)) = (before, owner)
                && before != owner
                && is_leased[0]
            {
                faults.push(format!("{owner} took the society from {before}, whose lease had not ended, {place}"));
            }
            if let Some(owner) = owner
                && *owners.entry(epoch[1]).or_insert(owner) != owner
            {
                faults.push(format!("two nodes own the society {place}"));
            }
            last = Some(write);
        }
    }
}
