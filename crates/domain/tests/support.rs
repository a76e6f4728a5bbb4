//! A society under test: each command is decided, folded, written, read back and checked against the invariants.

use std::sync::Arc;

use polis_domain::*;
use serde_json::Map;

use crate::invariants::{Before, Past};
use crate::paging::Paged;

pub(crate) const SEED: u64 = 7;
/// When everything happens, unless a case says otherwise.
pub(crate) const NOON: Timestamp = Timestamp(1_000);

/// An event and the thread that it is recorded under.
pub(crate) type Said = (Option<ThreadId>, Event);

pub(crate) struct Society {
    pub(crate) spine: Spine,
    pub(crate) log: Vec<Recorded>,
    past: Past,
    /// The same society with only a part of it in memory.
    paged: Paged,
}

impl Society {
    pub(crate) fn found(limits: Limits) -> Self {
        let mut society = Self { spine: Spine::default(), log: Vec::new(), past: Past::default(), paged: Paged::default() };
        let found = Command::Found { seed: SEED, limits, role: role("worker") };
        society.command(found, NOON).expect("founding is legal once");
        society
    }

    /// Decides one command and folds what comes of it. A broken invariant ends the test and is named.
    #[track_caller]
    pub(crate) fn command(&mut self, command: Command, at: Timestamp) -> Result<Vec<Said>, Refusal> {
        let decided = decide(&self.spine, command.clone(), at);
        assert_eq!(decided, decide(&self.spine, command.clone(), at), "to decide twice is to decide the same");
        assert_eq!(decided, self.paged.command(command.clone(), at), "a society that is partly in memory decides the same");
        let events = decided.inspect_err(|refusal| assert_code(refusal.code()))?;
        let events: Vec<Recorded> = events.into_iter().map(Arc::unwrap_or_clone).collect();
        let before = Before::of(&self.spine);
        for recorded in &events {
            let owed = self.past.owed(&self.spine);
            self.spine.evolve(recorded);
            let checked = self.past.after_event(owed, recorded, &self.spine);
            checked.unwrap_or_else(|broken| panic!("{broken}\nafter {recorded:?}\nof {command:?}"));
            assert_eq!(&read_back(recorded), recorded, "an event is read back as it was written");
        }
        let checked = self.past.after_command(&before, &command, &events, &self.spine);
        checked.unwrap_or_else(|broken| panic!("{broken}\nafter {command:?}\nwhich gave {events:#?}"));
        self.log.extend(events.iter().cloned());
        Ok(events.into_iter().map(|recorded| (recorded.thread, recorded.event)).collect())
    }

    /// The log folded from zero, and a snapshot read back, are the live state.
    #[track_caller]
    pub(crate) fn assert_replays(&self) {
        assert_eq!(Spine::from_iter(&self.log), self.spine, "the log from zero is the live state");
        let shared = self.log.iter().cloned().map(Arc::new);
        assert_eq!(Spine::from_iter(shared), self.spine, "the shared log from zero is the live state");
        assert_eq!(self.snapshot(), self.spine, "a snapshot is read back as it was written");
        assert_eq!(self.paged.whole(), self.spine, "what was unloaded is loaded as it was");
    }

    /// What an erasure of all conversations leaves of the log is read back, erased once more without a change, covered as it was, and
    /// folded to the same state but for texts.
    #[track_caller]
    pub(crate) fn assert_erases(&self) {
        let conversations: Vec<_> = self
            .log
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::ConversationStarted { agent, .. } => Some(agent.clone()),
                _ => None,
            })
            .collect();
        let (mut erasure, mut again) = (Erasure::of(conversations.clone()), Erasure::of(conversations));
        let erased = self.log.iter().map(|recorded| {
            if !erasure.covers(recorded) {
                assert!(!again.covers(recorded));
                return recorded.clone();
            }
            let erased = Recorded { event: recorded.event.redacted(), ..recorded.clone() };
            assert!(again.covers(&erased), "{recorded:?} belongs to a conversation, also without its texts");
            assert_eq!(read_back(&erased).event.redacted(), erased.event, "to erase twice is to erase once");
            erased
        });
        let erased: Vec<_> = erased.collect();
        assert_eq!(shape(&Spine::from_iter(&erased)), shape(&self.spine));
    }

    /// Goes on from a snapshot, as after a crash.
    pub(crate) fn restart(&mut self) {
        self.spine = self.snapshot();
    }

    fn snapshot(&self) -> Spine {
        let written = serde_json::to_vec(&self.spine).expect("a spine can be written");
        Spine::read(&written).expect("a spine can be read")
    }

    /// A thread as its own events tell it.
    pub(crate) fn thread(&self, id: &str) -> Thread {
        let id = ThreadId::from(id);
        let own = self.log.iter().filter(|recorded| recorded.thread.as_ref() == Some(&id));
        Thread::fold(id.clone(), own)
    }
}

/// All of a state that has no texts.
fn shape(spine: &Spine) -> impl PartialEq + std::fmt::Debug {
    let turns = spine.turns.iter().map(|(id, turn)| {
        let open: Vec<_> = turn.open.iter().map(|open| (open.n, open.stage, open.deadline)).collect();
        (*id, turn.agent.clone(), turn.task.clone(), turn.next, open, turn.is_parked())
    });
    let mut heads: Vec<_> = spine.threads.iter().map(|(id, head)| (id.clone(), head.clone())).collect();
    heads.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut agents: Vec<_> =
        spine.agents.iter().map(|(id, agent)| (id.clone(), agent.role.clone(), agent.parent.clone())).collect();
    agents.sort();
    let mut ledger: Vec<_> = spine.ledger.iter().map(|(scope, account)| (format!("{scope:?}"), *account)).collect();
    ledger.sort_by(|(one, _), (other, _)| one.cmp(other));
    let owed: Vec<_> = outstanding(spine).collect();
    (turns.collect::<Vec<_>>(), heads, agents, ledger, owed, spine.requests.clone(), spine.activities.clone())
}

fn read_back(recorded: &Recorded) -> Recorded {
    let written = serde_json::to_vec(recorded).expect("an event can be written");
    let body = serde_json::to_vec(&recorded.event).expect("an event can be written");
    let read: Recorded = serde_json::from_slice(&written).expect("an event can be read");
    assert_eq!(decode_event(EVENT_VERSION, &body).expect("its body can be read"), read.event);
    read
}

#[track_caller]
fn assert_code(code: &str) {
    let stable = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    assert!(stable, "`{code}` is not a code");
}

/// A society with the agents root, a, b and c: six events, so that the next one has number 7.
pub(crate) fn four_agents() -> Society {
    four_agents_within(Limits::default())
}

pub(crate) fn four_agents_within(limits: Limits) -> Society {
    let mut society = Society::found(limits);
    for name in ["a", "b", "c"] {
        let spawn = Command::Spawn { agent: name.into(), role: "worker".into(), parent: AgentId::root() };
        society.command(spawn, NOON).expect("names are free");
    }
    society
}

/// Does what is given, then compares what comes of the last command, whole.
#[track_caller]
pub(crate) fn check(given: Vec<Command>, command: Command, expected: Result<Vec<Said>, Refusal>) -> Society {
    check_in(four_agents(), given, command, expected)
}

#[track_caller]
pub(crate) fn check_in(
    mut society: Society,
    given: Vec<Command>,
    command: Command,
    expected: Result<Vec<Said>, Refusal>,
) -> Society {
    for command in given {
        society.command(command.clone(), NOON).unwrap_or_else(|refusal| panic!("{refusal} at {command:?}"));
    }
    assert_eq!(society.command(command, NOON), expected);
    society.assert_replays();
    society
}

pub(crate) fn role(id: &str) -> Arc<Role> {
    Arc::new(Role::new(id, "plain").with_prompt("work"))
}

pub(crate) fn turn(seq: u64) -> TurnId {
    TurnId(Seq(seq))
}

pub(crate) fn effect(seq: u64, n: u32) -> EffectId {
    EffectId { turn: turn(seq), n }
}

/// What the person writes to an agent for task `t`.
pub(crate) fn submit(to: &str, text: &str) -> Command {
    Command::Send { envelope: personal(to, text) }
}

pub(crate) fn personal(to: &str, text: &str) -> Arc<Envelope> {
    Arc::new(Envelope { from: AgentId::user(), reply_to: ReplyTo::User, ..envelope("user", to, text) })
}

/// What one agent writes to another for task `t`; nobody waits.
pub(crate) fn envelope(from: &str, to: &str, text: &str) -> Envelope {
    Envelope {
        id: format!("{from}:{to}:{text}").into(),
        from: from.into(),
        to: to.into(),
        task_id: "t".into(),
        kind: MessageKind::Message,
        payload: Payload::text(text),
        reply_to: ReplyTo::Nobody,
        person: None,
        hops: u32::from(from != "user"),
    }
}

pub(crate) fn asking(id: EffectId, from: &str, to: &str) -> Effect {
    asking_until(id, from, to, None)
}

pub(crate) fn asking_until(id: EffectId, from: &str, to: &str, deadline: Option<Timestamp>) -> Effect {
    let envelope = Envelope { reply_to: ReplyTo::Effect(id), ..envelope(from, to, "help") };
    Effect::Ask { envelope: Arc::new(envelope), deadline }
}

pub(crate) fn begin(id: EffectId, effects: Vec<Effect>) -> Command {
    Command::DeclareEffects { turn: id.turn, n: id.n, effects }
}

pub(crate) fn ask(id: EffectId, from: &str, to: &str) -> Command {
    begin(id, vec![asking(id, from, to)])
}

/// An ask by a turn that `before` messages from agent to agent led to.
pub(crate) fn ask_after(before: u32, id: EffectId, from: &str, to: &str) -> Command {
    let envelope = Envelope { reply_to: ReplyTo::Effect(id), hops: before + 1, ..envelope(from, to, "help") };
    begin(id, vec![Effect::Ask { envelope: envelope.into(), deadline: None }])
}

pub(crate) fn unit(thread: &str) -> Effect {
    let task = Task::action("t".into(), "ProcessSubThread", "do it");
    Effect::Unit { thread: thread.into(), behaviour: "unit".into(), task }
}

pub(crate) fn call(class: EffectClass) -> Effect {
    Effect::Tool(Box::new(Call {
        call_id: "c".into(),
        tool: "tool".into(),
        arguments: "{}".into(),
        class,
        ruling: Ruling::Allow,
        ..Call::default()
    }))
}

pub(crate) fn result(text: &str) -> Outcome {
    Outcome::Result(CallResult::good(text))
}

pub(crate) fn act(id: EffectId, acts: Vec<Act>) -> Command {
    Command::Act { id, acts, at: None }
}

pub(crate) fn add(thread: &str, text: &str) -> Act {
    Act::AddMessage { thread: thread.into(), message: bot(text).into() }
}

pub(crate) fn bot(text: &str) -> Message {
    Message { id: text.into(), sender: Sender::Bot, text: text.into(), timestamp: NOON, meta: Map::new().into() }
}

/// Opens a sub-thread in message 0 of a thread.
pub(crate) fn open(parent: &str, slot: &str, child: &str) -> Act {
    Act::OpenSubThread {
        parent: parent.into(),
        index: Some(0),
        slot: MetaPath::new(slot).expect("a slot of the case"),
        child: child.into(),
        settings: Settings::default(),
        meta: Map::new().into(),
        held: None,
    }
}

pub(crate) fn suggest(thread: &str, phase: &str) -> Act {
    Act::SuggestPhase { thread: thread.into(), phase: Phase::new(phase).expect("a phase of the case") }
}

pub(crate) fn settle(id: TurnId, answer: &str) -> Command {
    settle_with(id, answer, Vec::new())
}

pub(crate) fn settle_with(turn: TurnId, answer: &str, next: Vec<Task>) -> Command {
    Command::Settle { turn, result: TurnResult::Done { message: None, answer: answer.into(), next } }
}

pub(crate) fn next(name: &str) -> Task {
    Task::action("t".into(), name, name)
}

pub(crate) fn cancel(target: Target) -> Command {
    Command::Cancel { target, reason: "enough".to_owned(), said: Vec::new() }
}

pub(crate) fn enough() -> Failure {
    Failure::new("cancelled", "enough")
}

pub(crate) fn under(thread: &str, event: Event) -> Said {
    (Some(thread.into()), event)
}

/// A turn ends in a thread with `index` messages and leaves no message.
pub(crate) fn settled(turn: TurnId, settlement: Settlement, index: u32) -> Event {
    Event::TurnSettled { turn, settlement, message: None, index, next: Vec::new() }
}

pub(crate) fn ended(id: EffectId, outcome: Outcome) -> Event {
    Event::EffectEnded { id, outcome, spent: None }
}

pub(crate) fn refused(id: EffectId, refusal: Refusal) -> Event {
    Event::EffectRefused { id, failure: refusal.into() }
}

/// The message that ends task `t` for the person, as event number `seq`.
pub(crate) fn told(seq: u64, from: &str, kind: MessageKind, text: &str) -> Said {
    let id = format!("msg_{}", unique(SEED, NOON, seq - 1)).into();
    let envelope = Envelope { id, kind, hops: 0, ..envelope(from, "user", text) };
    under("task:t", Event::MessageSent { envelope: Arc::new(envelope), by: None })
}

/// An agent's turn begins in its main thread with message number `index`, which says what the message says.
pub(crate) fn started(envelope: &Envelope, index: u32) -> Said {
    let event = Event::TurnStarted {
        agent: envelope.to.clone(),
        behaviour: "plain".into(),
        version: CodeVersion::FIRST,
        phase: Phase::default(),
        task: Task {
            meta: envelope.payload.meta.clone(),
            hops: envelope.hops,
            ..Task::message("t".into(), envelope.payload.text.clone())
        },
        origin: Origin::Inbox,
        reply_to: envelope.reply_to,
        message: Some(envelope.id.clone()),
        index,
        shown: ContextState::default(),
    };
    (Some(envelope.to.main_thread()), event)
}

/// An agent's turn begins with one of its own follow-ups, which stays out of the thread.
pub(crate) fn followed(agent: &str, task: Task, reply_to: ReplyTo, index: u32) -> Said {
    let event = Event::TurnStarted {
        agent: agent.into(),
        behaviour: "plain".into(),
        version: CodeVersion::FIRST,
        phase: Phase::default(),
        task,
        origin: Origin::Inbox,
        reply_to,
        message: None,
        index,
        shown: ContextState::default(),
    };
    under(agent, event)
}
