//! Conversations: many lines of talk at once, each an agent of its own.

use std::sync::Arc;

use polis_domain::*;

use crate::commands::Chooser;
use crate::support::*;

/// Commands about conversations for random societies.
impl Chooser<'_> {
    pub(crate) fn change_conversation(&mut self) -> Command {
        let settings = ConversationSettings { model: Some("m".into()), ..ConversationSettings::default() };
        let change = ConversationChange {
            title: Some(self.text().into()).filter(|_| self.one_in(2)),
            pinned: Some(self.one_in(2)),
            archived: Some(self.one_in(2)),
            settings: Some(settings).filter(|_| self.one_in(2)),
        };
        Command::ChangeConversation { agent: self.agent(), change }
    }

    pub(crate) fn erase_conversation(&mut self) -> Command {
        let erasing: Vec<_> = self.spine.erasing.keys().cloned().collect();
        if !erasing.is_empty() && self.one_in(2) {
            return Command::ConfirmErased { agent: erasing[0].clone(), artifacts: Vec::new() };
        }
        let going = self.spine.agents.iter().filter(|(_, agent)| agent.conversation.is_some()).map(|(id, _)| id);
        let ended = self.spine.terminated.iter().filter(|(_, gone)| gone.person.is_some()).map(|(id, _)| id);
        let mut agents: Vec<_> = going.chain(ended).cloned().collect();
        agents.sort();
        let agent = self.try_pick(&agents).cloned().unwrap_or_else(AgentId::root);
        Command::EraseConversation { agent, artifacts: Vec::new(), unused_since: None }
    }

    pub(crate) fn start_conversation(&mut self) -> Command {
        let agent = self.agent_name();
        let messages = (0..self.roll(3)).map(|_| Arc::new(self.message())).collect();
        let conversation = NewConversation {
            agent: agent.clone(),
            role: Some(self.role()).filter(|_| !self.one_in(4)),
            person: self.pick(&["owner", "ann"]).to_string().into(),
            title: self.text().into(),
            settings: ConversationSettings::default(),
            messages,
        };
        let to = if self.one_in(20) { self.agent() } else { agent };
        let envelope = Envelope { reply_to: ReplyTo::User, ..self.envelope(AgentId::user(), to) };
        let envelope = Some(Arc::new(envelope)).filter(|_| !self.one_in(4));
        Command::StartConversation { conversation: Box::new(conversation), envelope }
    }
}

fn new(agent: &str) -> NewConversation {
    NewConversation {
        agent: agent.into(),
        role: Some("worker".into()),
        person: "ann".into(),
        title: "a trip".into(),
        settings: ConversationSettings::default(),
        messages: Vec::new(),
    }
}

fn start(conversation: NewConversation, envelope: Option<Arc<Envelope>>) -> Command {
    Command::StartConversation { conversation: Box::new(conversation), envelope }
}

fn started_event(conversation: &NewConversation) -> Said {
    let NewConversation { agent, role, person, title, settings, messages } = conversation.clone();
    let (thread, role) = (agent.as_str().to_owned(), role.unwrap());
    under(&thread, Event::ConversationStarted { agent, role, person, title, settings, messages })
}

#[test]
fn a_conversation_starts_with_its_first_message_in_one_append() {
    let (talk, first) = (new("talk"), personal("talk", "hello"));
    let sent = under("task:t", Event::MessageSent { envelope: first.clone(), by: None });
    let expected = vec![started_event(&talk), sent, started(&first, 0)];
    let society = check(vec![], start(talk, Some(first)), Ok(expected));
    let conversation = society.spine.conversation(&"talk".into()).unwrap();
    assert_eq!((conversation.person.as_str(), &*conversation.title, conversation.active), ("ann", "a trip", Seq(8)));
}

#[test]
fn a_conversation_works_while_another_waits() {
    let waiting = vec![start(new("one"), Some(personal("one", "hello"))), submit("root", "and you")];
    let other = personal("two", "hello");
    let sent = under("task:t", Event::MessageSent { envelope: other.clone(), by: None });
    let expected = vec![started_event(&new("two")), sent, started(&other, 0)];
    check(waiting, start(new("two"), Some(other)), Ok(expected));
}

#[test]
fn what_was_said_before_is_the_beginning_of_its_thread() {
    let said = |id: &str, sender, text: &str| {
        Arc::new(Message { id: id.into(), sender, text: text.to_owned(), timestamp: NOON, meta: Meta::new() })
    };
    let messages = vec![said("x", Sender::User, "2 + 2?"), said("y", Sender::Bot, "4")];
    let talk = NewConversation { messages: messages.clone(), ..new("talk") };
    let first = personal("talk", "and 3 + 3?");
    let mut society = four_agents();
    society.command(start(talk, Some(first)), NOON).unwrap();
    let thread = society.thread("talk");
    let texts: Vec<_> = thread.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["2 + 2?", "4", "and 3 + 3?"]);
    assert_eq!(society.spine.threads[&"talk".into()].messages, 3);
    let small = Limits { inbox_bytes: 5, ..Limits::default() };
    let long = NewConversation { messages, ..new("talk") };
    check_in(four_agents_within(small), vec![], start(long, None), Err(Refusal::TextTooLong { bytes: 7, limit: 5 }));
}

#[test]
fn a_conversation_without_a_role_has_that_of_root() {
    let mut society = four_agents();
    society.command(start(NewConversation { role: None, ..new("talk") }, None), NOON).unwrap();
    let role = |agent: &str| society.spine.agents[&agent.into()].role.clone();
    assert_eq!(role("talk"), role("root"));
}

#[test]
fn a_conversation_that_cannot_start_changes_nothing() {
    let refused = |conversation: NewConversation, refusal| check(vec![], start(conversation, None), Err(refusal));
    refused(new("a"), Refusal::NameTaken("a".to_owned()));
    refused(new("user"), Refusal::NameTaken("user".to_owned()));
    refused(new("no name"), Refusal::BadName("no name".to_owned()));
    refused(NewConversation { role: Some("nobody".into()), ..new("talk") }, Refusal::UnknownRole("nobody".into()));
    refused(NewConversation { title: " ".into(), ..new("talk") }, Refusal::BadTitle(" ".to_owned()));
    refused(NewConversation { person: "a b".into(), ..new("talk") }, Refusal::BadName("a b".to_owned()));
    check(vec![], start(new("talk"), Some(personal("a", "hi"))), Err(Refusal::UnknownAgent("a".into())));
    check(vec![], start(new("talk"), Some(personal("talk", " "))), Err(Refusal::EmptyText));
}

#[test]
fn a_conversation_is_renamed_pinned_archived_and_taken_up_again() {
    let settings = ConversationSettings { model: Some("m".into()), ..ConversationSettings::default() };
    let change = ConversationChange {
        title: Some("to Rome".into()),
        pinned: Some(true),
        archived: Some(true),
        settings: Some(settings.clone()),
    };
    let changed = under("talk", Event::ConversationChanged { agent: "talk".into(), change: change.clone() });
    let command =
        |agent: &str, change: &ConversationChange| Command::ChangeConversation { agent: agent.into(), change: change.clone() };
    let given = vec![start(new("talk"), None)];
    let mut society = check(given, command("talk", &change), Ok(vec![changed]));
    let now = society.spine.conversation(&"talk".into()).unwrap().clone();
    assert_eq!((&*now.title, now.pinned, now.archived, now.settings.as_deref()), ("to Rome", true, true, Some(&settings)));

    let unset = ConversationChange { settings: Some(ConversationSettings::default()), ..ConversationChange::default() };
    society.command(command("talk", &unset), NOON).unwrap();
    society.command(submit("talk", "still there?"), NOON).unwrap();
    let now = society.spine.conversation(&"talk".into()).unwrap();
    assert_eq!((&*now.title, now.pinned, now.archived, &now.settings), ("to Rome", true, false, &None));

    check(vec![], command("a", &change), Err(Refusal::UnknownConversation("a".into())));
    let nameless = ConversationChange { title: Some("".into()), ..ConversationChange::default() };
    check(vec![start(new("talk"), None)], command("talk", &nameless), Err(Refusal::BadTitle(String::new())));
}

#[test]
fn a_conversation_that_is_used_is_not_erased_for_its_age() {
    let erase = |unused_since| Command::EraseConversation { agent: "talk".into(), artifacts: Vec::new(), unused_since };
    let (noon, later) = (Some(NOON), Some(Timestamp(NOON.0 + 1)));
    let in_use = Err(Refusal::ConversationInUse("talk".into()));
    let asked = vec![start(new("talk"), Some(personal("talk", "hello")))];
    // It has a message since, and an open request.
    check(vec![start(new("talk"), None)], erase(noon), in_use.clone());
    check(asked.clone(), erase(later), in_use.clone());
    let change = ConversationChange { pinned: Some(true), ..ConversationChange::default() };
    let pin = Command::ChangeConversation { agent: "talk".into(), change };
    check(vec![start(new("talk"), None), pin], erase(later), in_use);
    for (given, command) in [(vec![start(new("talk"), None)], erase(later)), (asked, erase(None))] {
        let mut society = four_agents();
        given.into_iter().for_each(|command| drop(society.command(command, NOON).unwrap()));
        let events = society.command(command, NOON).unwrap();
        assert!(events.iter().any(|(_, event)| matches!(event, Event::ConversationErased { .. })), "{events:?}");
    }
}

#[test]
fn conversations_take_no_room_of_agents_and_are_no_holders_of_their_role() {
    let limits = Limits { agents: 5, ..Limits::default() };
    let mut society = four_agents_within(limits);
    for name in ["one", "two", "three"] {
        society.command(start(new(name), None), NOON).unwrap();
    }
    society.command(submit("one", "go"), NOON).unwrap();
    let turn = society.spine.agents[&"one".into()].turn.unwrap();
    let spawn_act = |agent: &str| Act::Spawn { agent: agent.into(), role: "worker".into() };
    let made = society.command(act(EffectId { turn, n: 0 }, vec![spawn_act("helper")]), NOON).unwrap();
    assert!(matches!(made[0].1, Event::AgentSpawned { .. }), "{made:?}");
    let none = society.command(act(EffectId { turn, n: 1 }, vec![spawn_act("another")]), NOON).unwrap();
    assert!(matches!(none[0].1, Event::EffectRefused { .. }), "{none:?}");
    assert_eq!(society.spine.top(&"helper".into()).as_str(), "one");
    assert_eq!(society.spine.top(&"a".into()).as_str(), "root");
    let rare = Command::CreateRole { role: role("rare") };
    society.command(rare, NOON).unwrap();
    society.command(start(NewConversation { role: Some("rare".into()), ..new("four") }, None), NOON).unwrap();
    assert_eq!(society.spine.addressee("rare", |_| true), None);
    assert_eq!(society.spine.addressee("four", |_| true), Some(&"four".into()));
}

#[test]
fn a_deleted_conversation_is_listed_no_more_and_its_name_is_not_used_again() {
    let delete = Command::Terminate { agent: "talk".into(), children: Children::Cascade, reason: String::new(), now: true };
    let detach = Command::Terminate { agent: "talk".into(), children: Children::Detach, reason: String::new(), now: true };
    let mut society = four_agents();
    society.command(start(new("talk"), Some(personal("talk", "hello"))), NOON).unwrap();
    assert_eq!(society.command(detach, NOON), Err(Refusal::NoParent("talk".into())));
    society.command(delete, NOON).unwrap();
    assert_eq!(society.spine.conversations.len(), 1, "only root's is left");
    let exported = Org::of(&society.spine);
    let names: Vec<_> = exported.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(
        (names, exported.terminations.len()),
        (vec!["root", "a", "b", "c"], 0),
        "a conversation is no part of the organisation"
    );
    assert_eq!(society.command(start(new("talk"), None), NOON), Err(Refusal::NameTaken("talk".to_owned())));
    society.assert_replays();
}

#[test]
fn agents_of_one_conversation_do_not_reach_those_of_another() {
    let mut society = four_agents();
    for (name, person) in [("three", "ann"), ("two", "owner"), ("one", "owner")] {
        let conversation = NewConversation { person: person.into(), ..new(name) };
        society.command(start(conversation, Some(personal(name, "go"))), NOON).unwrap();
    }
    let turn_of = |society: &Society, agent: &str| society.spine.agents[&agent.into()].turn.unwrap();
    let one = turn_of(&society, "one");
    for (n, to) in (0..).zip(["two", "root"]) {
        let id = EffectId { turn: one, n };
        let told = society.command(ask(id, "one", to), NOON).unwrap();
        assert_eq!(told, [under("one", refused(id, Refusal::UnknownAgent(to.into())))]);
    }
    // The agents below root are shared by the conversations of their person; they may write back to whom they work for.
    let id = EffectId { turn: turn_of(&society, "three"), n: 0 };
    let told = society.command(ask(id, "three", "a"), NOON).unwrap();
    assert_eq!(told, [under("three", refused(id, Refusal::UnknownAgent("a".into())))], "it works for another person");
    society.command(ask(EffectId { turn: one, n: 2 }, "one", "a"), NOON).unwrap();
    let a = turn_of(&society, "a");
    let back = |n, to: &str| {
        let envelope = Envelope { hops: 2, ..envelope("a", to, "by the way") };
        act(EffectId { turn: a, n }, vec![Act::Send { envelope: Arc::new(envelope) }])
    };
    let sent = society.command(back(0, "one"), NOON).unwrap();
    assert!(matches!(sent[0].1, Event::MessageSent { .. }), "{sent:?}");
    let refusal = society.command(back(1, "two"), NOON).unwrap();
    assert_eq!(refusal, [under("a", refused(EffectId { turn: a, n: 1 }, Refusal::UnknownAgent("two".into())))]);
}

#[test]
fn a_role_that_an_agent_created_belongs_to_its_person() {
    let mut society = four_agents();
    for (name, person) in [("hers", "ann"), ("his", "bob")] {
        let conversation = NewConversation { person: person.into(), ..new(name) };
        society.command(start(conversation, Some(personal(name, "go"))), NOON).unwrap();
    }
    let turn = society.spine.agents[&"hers".into()].turn.unwrap();
    let created = act(EffectId { turn, n: 0 }, vec![Act::CreateRole { role: role("payroll") }]);
    society.command(created, NOON).unwrap();
    let sees = |person: &str, name: &str| Visibility::Person(person.into()).role(&society.spine, &name.into());
    assert_eq!((sees("ann", "payroll"), sees("bob", "payroll")), (true, false));
    assert_eq!((sees("ann", "worker"), sees("bob", "worker")), (true, true), "what a person created is shared");
    let other = NewConversation { person: "bob".into(), role: Some("payroll".into()), ..new("next") };
    assert_eq!(society.command(start(other, None), NOON), Err(Refusal::UnknownRole("payroll".into())));
}
