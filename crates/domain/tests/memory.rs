//! Memories: whose they are, how many there may be, and which texts have to be removed from the store.

use polis_domain::*;

use crate::commands::Chooser;
use crate::support::*;

/// Commands about memories for random societies.
impl Chooser<'_> {
    pub(crate) fn memory_id(&mut self) -> MemoryId {
        self.pick(&["m1", "m2", "m3", "m4"]).to_string().into()
    }

    pub(crate) fn new_memory(&mut self, agent: &AgentId) -> NewMemory {
        let kinds = [MemoryScopeKind::Person, MemoryScopeKind::Role, MemoryScopeKind::Society];
        let kind = *self.pick(&kinds);
        let scope = self.spine.memory_scope(agent, kind);
        let bytes = *self.pick(&[0, 5, 5, 5, MAX_MEMORY_BYTES + 1]);
        NewMemory { id: self.memory_id(), scope, text: format!("t{}", self.roll(1_000)).into(), bytes }
    }

    pub(crate) fn change_memories(&mut self) -> Command {
        let change = match self.roll(8) {
            0..3 => MemoryCommand::Keep(self.new_memory(&AgentId::root())),
            3 => MemoryCommand::Edit { id: self.memory_id(), text: format!("t{}", self.roll(1_000)).into(), bytes: 4 },
            4 => MemoryCommand::Erase { ids: vec![self.memory_id()] },
            7 => MemoryCommand::Switch { enabled: self.roll(3) > 0 },
            5 => MemoryCommand::ConfirmRemoved { texts: self.spine.memories.removing().cloned().collect() },
            _ => {
                let agent = Some(AgentId::root());
                let spent = Spent { tokens: 3, requests: 1, ..Spent::default() };
                MemoryCommand::Book(MemoryChange::Embedded { model: "e".into(), texts: 1, spent, agent })
            }
        };
        Command::ChangeMemories { change }
    }
}

fn scope(person: &str) -> MemoryScope {
    MemoryScope::Person(person.into())
}

fn new(id: &str, scope: MemoryScope, text: &str) -> NewMemory {
    NewMemory { id: id.into(), scope, text: text.into(), bytes: 5 }
}

fn by(person: &str, change: MemoryCommand) -> Command {
    Command::By { person: person.into(), command: Box::new(Command::ChangeMemories { change }) }
}

fn texts(society: &Society) -> Vec<String> {
    society.spine.memories.removing().map(ToString::to_string).collect()
}

#[test]
fn a_person_finds_their_own_memories_and_those_of_the_society() {
    let mut society = Society::found(Limits::default());
    let role = MemoryScope::Role { person: "ann".into(), role: "worker".into() };
    for new in [
        new("a", scope("ann"), "1"),
        new("b", scope("bob"), "2"),
        new("c", role, "3"),
        new("d", MemoryScope::Society, "4"),
        new("e", MemoryScope::Role { person: "bob".into(), role: "worker".into() }, "5"),
    ] {
        society.command(Command::ChangeMemories { change: MemoryCommand::Keep(new) }, NOON).unwrap();
    }
    let of =
        |person: &str| society.spine.memories.of_person(&person.into()).map(|memory| memory.id.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (of("ann"), of("bob"), of("cat")),
        (["a", "c", "d"].map(String::from).to_vec(), ["b", "e", "d"].map(String::from).to_vec(), vec!["d".to_owned()],)
    );
    let edit = MemoryCommand::Edit { id: "a".into(), text: "9".into(), bytes: 3 };
    assert_eq!(society.command(by("bob", edit), NOON).unwrap_err(), Refusal::UnknownMemory("a".into()));
    let erase = MemoryCommand::Erase { ids: vec!["a".into()] };
    assert_eq!(society.command(by("bob", erase), NOON).unwrap_err(), Refusal::UnknownMemory("a".into()));
}

#[test]
fn the_texts_of_edited_and_erased_memories_are_to_be_removed_until_that_is_confirmed() {
    let mut society = Society::found(Limits::default());
    let keep = MemoryCommand::Keep(new("a", scope("ann"), "1"));
    society.command(Command::ChangeMemories { change: keep }, NOON).unwrap();
    assert_eq!(texts(&society), Vec::<String>::new());
    let edit = MemoryCommand::Edit { id: "a".into(), text: "2".into(), bytes: 3 };
    society.command(by("ann", edit), Timestamp(NOON.0 + 5)).unwrap();
    assert_eq!(texts(&society), ["1"]);
    let memory = society.spine.memories.find(&"ann".into(), &"a".into()).unwrap();
    assert_eq!((memory.kept_at, memory.edited_at), (NOON, Some(Timestamp(NOON.0 + 5))));
    society.command(by("ann", MemoryCommand::Erase { ids: vec!["a".into()] }), NOON).unwrap();
    assert_eq!(texts(&society), ["1", "2"]);
    society.restart();
    let confirm = MemoryCommand::ConfirmRemoved { texts: vec!["1".into(), "2".into()] };
    society.command(Command::ChangeMemories { change: confirm }, NOON).unwrap();
    assert_eq!(texts(&society), Vec::<String>::new());
    society.assert_replays();
}

#[test]
fn a_scope_has_a_limit_and_a_text_too() {
    let mut society = Society::found(Limits { memories: 1, ..Limits::default() });
    let mut keep = |new| society.command(Command::ChangeMemories { change: MemoryCommand::Keep(new) }, NOON).map(drop);
    assert_eq!(keep(NewMemory { bytes: 0, ..new("a", scope("ann"), "1") }), Err(Refusal::EmptyText));
    let long = NewMemory { bytes: MAX_MEMORY_BYTES + 1, ..new("a", scope("ann"), "1") };
    assert_eq!(keep(long), Err(Refusal::TextTooLong { bytes: MAX_MEMORY_BYTES + 1, limit: MAX_MEMORY_BYTES }));
    assert_eq!(keep(new("a", scope("ann"), "1")), Ok(()));
    assert_eq!(keep(new("b", scope("ann"), "2")), Err(Refusal::TooManyMemories { limit: 1 }));
    assert_eq!(keep(new("b", scope("bob"), "2")), Ok(()));
}
