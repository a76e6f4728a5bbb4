//! A society of which only the entries in use are in memory; the others are in a store, as the engine has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polis_domain::*;

use crate::support::*;

#[derive(Default)]
pub(crate) struct Paged {
    spine: Spine,
    stored: Stored,
    /// The last snapshot, the entries as they were stored with it, and the events since.
    saved: Option<(Vec<u8>, Stored, Vec<Arc<Recorded>>)>,
}

/// The entries in the store: the message that each hangs in, and its bytes.
#[derive(Default, Clone)]
struct Stored(BTreeMap<Arc<str>, (Place, Vec<u8>)>);

type Place = Option<(ThreadId, u32)>;

impl Stored {
    fn put(&mut self, entries: Vec<(Arc<str>, IdleEntry)>) {
        for (name, entry) in entries {
            let message = entry.message().map(|(thread, index)| (thread.clone(), index));
            self.0.insert(name, (message, serde_json::to_vec(&entry).unwrap()));
        }
    }

    fn get(&self, keys: &[IdleKey]) -> Vec<(Arc<str>, IdleEntry)> {
        let is_wanted = |name: &Arc<str>, message: &Place| {
            let by_message = message.as_ref().map(|(thread, index)| IdleKey::Message(thread.clone(), *index));
            keys.contains(&IdleKey::Name(name.clone())) || by_message.is_some_and(|key| keys.contains(&key))
        };
        let found = self.0.iter().filter(|(name, (message, _))| is_wanted(name, message));
        found.map(|(name, (_, body))| (name.clone(), serde_json::from_slice(body).unwrap())).collect()
    }

    /// Loads keys with all that they need; gives all keys that were asked for.
    fn load(&self, spine: &mut Spine, keys: Vec<IdleKey>) -> BTreeSet<IdleKey> {
        let (mut asked, mut found, mut keys) = (BTreeSet::new(), Vec::new(), keys);
        while !keys.is_empty() {
            found.extend(self.get(&keys));
            asked.extend(keys);
            keys = spine.missing_of(&found).into_iter().filter(|key| !asked.contains(key)).collect();
        }
        spine.load(found);
        asked
    }
}

impl Paged {
    pub(crate) fn command(&mut self, command: Command, at: Timestamp) -> Result<Vec<Arc<Recorded>>, Refusal> {
        let missing = self.spine.missing_for(&command);
        let asked = self.stored.load(&mut self.spine, missing);
        self.spine.take_misses();
        let decided = decide(&self.spine, command.clone(), at);
        let events = decided.as_deref().unwrap_or_default();
        events.iter().for_each(|recorded| self.spine.evolve(recorded));
        let unasked: Vec<_> = self.spine.take_misses().into_iter().filter(|key| !asked.contains(key)).collect();
        let needed = self.stored.get(&unasked);
        assert!(needed.is_empty(), "{command:?} needs {unasked:?}, which was not loaded");
        if let Some((_, _, since)) = &mut self.saved {
            since.extend(events.iter().cloned());
        }
        if self.spine.seq.0.is_multiple_of(3) {
            self.stored.put(self.spine.unload());
            if self.spine.seq.0.is_multiple_of(16) {
                self.saved = Some((serde_json::to_vec(&self.spine).unwrap(), self.stored.clone(), Vec::new()));
            }
        }
        decided
    }

    /// Everything in memory, after an opening from the last snapshot.
    pub(crate) fn whole(&self) -> Spine {
        let mut live = self.spine.clone();
        let everything = |stored: &Stored| stored.0.keys().cloned().map(IdleKey::Name).collect::<Vec<_>>();
        self.stored.load(&mut live, everything(&self.stored));
        if let Some((body, stored, since)) = &self.saved {
            let mut opened = Spine::read(body).unwrap();
            for recorded in since {
                let missing = opened.missing_for_event(recorded);
                stored.load(&mut opened, missing);
                opened.evolve(recorded);
            }
            stored.load(&mut opened, everything(stored));
            assert_eq!(forget(opened), forget(live.clone()), "a snapshot and the events after it are the live state");
        }
        forget(live)
    }
}

/// Without the marks that tell where something was unloaded.
fn forget(mut spine: Spine) -> Spine {
    let spent = ["owner", "ann"].map(|person| spine.unloaded_spent(&person.into()));
    assert_eq!(spent, [Spent::default(); 2], "everything is loaded");
    spine.forget_unloaded();
    spine
}

/// A conversation of ann with one settled turn, in which a sub-thread was opened.
fn talk(society: &mut Society, name: &str) {
    let conversation = NewConversation {
        agent: name.into(),
        role: Some("worker".into()),
        person: "ann".into(),
        title: "a trip".into(),
        settings: ConversationSettings::default(),
        messages: Vec::new(),
    };
    let envelope = Some(personal(name, "go"));
    let start = Command::StartConversation { conversation: Box::new(conversation), envelope };
    society.command(start, NOON).unwrap();
    let (id, _) = society.spine.turns.iter().next_back().unwrap();
    let (id, child) = (*id, format!("{name}-sub"));
    let opened = open(name, "meta._thread", &child);
    society.command(act(EffectId { turn: id, n: 0 }, vec![opened]), NOON).unwrap();
}

fn unloaded(spine: &mut Spine) -> Vec<String> {
    let mut names: Vec<_> = spine.unload().into_iter().map(|(name, _)| name.to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_conversation_leaves_memory_with_its_sub_threads_when_its_work_is_done() {
    let mut society = Society::found(Limits::default());
    talk(&mut society, "trip");
    assert_eq!(unloaded(&mut society.spine.clone()), Vec::<String>::new(), "its turn is open");
    let (id, _) = society.spine.turns.iter().next().unwrap();
    society.command(settle(*id, "done"), NOON).unwrap();
    let mut spine = society.spine.clone();
    assert_eq!(unloaded(&mut spine), ["trip", "trip-sub"]);
    let left = (spine.agents.len(), spine.threads.len(), spine.conversations.len());
    assert_eq!(left, (1, 0, 1), "root is all that is left");
    assert_eq!(unloaded(&mut spine), Vec::<String>::new());
}

#[test]
fn a_conversation_stays_while_an_agent_below_it_lives_or_an_inbox_names_it() {
    let mut society = Society::found(Limits::default());
    talk(&mut society, "trip");
    let (id, _) = society.spine.turns.iter().next().unwrap();
    let (id, spawn) = (*id, vec![Act::Spawn { agent: "helper".into(), role: "worker".into() }]);
    society.command(act(EffectId { turn: id, n: 1 }, spawn), NOON).unwrap();
    society.command(settle(id, "done"), NOON).unwrap();
    assert_eq!(unloaded(&mut society.spine.clone()), ["trip-sub"], "helper lives");
    let gone = Command::Terminate { agent: "helper".into(), children: Children::Refuse, reason: String::new(), now: true };
    society.command(gone, NOON).unwrap();
    assert_eq!(unloaded(&mut society.spine.clone()), ["helper", "trip", "trip-sub"]);
}

#[test]
fn what_a_persons_idle_conversations_have_spent_is_known() {
    let mut society = Society::found(Limits::default());
    talk(&mut society, "trip");
    let (id, _) = society.spine.turns.iter().next().unwrap();
    let id = EffectId { turn: *id, n: 1 };
    let (request, reserve) = (Digest::of(["r"]), Spent { requests: 1, ..Spent::default() });
    let model = Effect::Model { model: "m".into(), request, reserve, tools: None, aside: false, purpose: "".into() };
    society.command(begin(id, vec![model]), NOON).unwrap();
    let spent = Spent { requests: 1, tokens: 7, ..Spent::default() };
    let outcome = Outcome::Failed(Failure::new("x", "y"));
    society.command(Command::End { id, outcome, spent: Some(spent), at: NOON }, NOON).unwrap();
    society.command(settle(id.turn, "done"), NOON).unwrap();
    let mut spine = society.spine.clone();
    let entries = spine.unload();
    assert_eq!(spine.unloaded_spent(&"ann".into()).tokens, 7);
    assert_eq!(spine.unloaded_spent(&"owner".into()), Spent::default());
    spine.load(entries);
    assert_eq!(spine.unloaded_spent(&"ann".into()), Spent::default());
}

#[test]
fn a_terminated_agent_stays_while_a_call_has_a_reservation_in_its_account() {
    let mut society = Society::found(Limits::default());
    for (agent, parent) in [("above", "root"), ("below", "above")] {
        let spawn = Command::Spawn { agent: agent.into(), role: "worker".into(), parent: parent.into() };
        society.command(spawn, NOON).unwrap();
    }
    society.command(submit("below", "go"), NOON).unwrap();
    let (turn, _) = society.spine.turns.iter().next().unwrap();
    let id = EffectId { turn: *turn, n: 0 };
    let (request, reserve) = (Digest::of(["r"]), Spent { requests: 1, ..Spent::default() });
    let model = Effect::Model { model: "m".into(), request, reserve, tools: None, aside: false, purpose: "".into() };
    society.command(begin(id, vec![model]), NOON).unwrap();
    let gone = Command::Terminate { agent: "above".into(), children: Children::Detach, reason: String::new(), now: true };
    society.command(gone, NOON).unwrap();
    assert_eq!(unloaded(&mut society.spine.clone()), Vec::<String>::new(), "the call is open");
    let outcome = Outcome::Failed(Failure::new("x", "y"));
    society.command(Command::End { id, outcome, spent: Some(reserve), at: NOON }, NOON).unwrap();
    assert_eq!(unloaded(&mut society.spine.clone()), ["above"]);
}
