//! Failures that nobody waits for: who is notified, and that a failure only moves up.

use std::sync::Arc;

use polis_domain::*;

use crate::support::*;

fn broken() -> Failure {
    Failure::new("model_rejected", "status 400")
}

fn fail(turn: TurnId) -> Command {
    Command::Settle { turn, result: TurnResult::Failed(broken()) }
}

/// Root, and below it `a`, below that `kid`.
fn family() -> Society {
    let mut society = four_agents();
    let spawn = Command::Spawn { agent: "kid".into(), role: "worker".into(), parent: "a".into() };
    society.command(spawn, NOON).unwrap();
    society
}

impl Society {
    #[track_caller]
    fn run(&mut self, command: Command) -> Vec<Event> {
        self.command(command, NOON).unwrap().into_iter().map(|(_, event)| event).collect()
    }

    fn turn_of(&self, agent: &str) -> TurnId {
        self.spine.agents[&agent.into()].turn.unwrap()
    }

    /// The open turn of an agent sends a message that it does not wait for.
    #[track_caller]
    fn send(&mut self, from: &str, to: &str, text: &str) {
        let id = self.turn_of(from);
        let turn = &self.spine.turns[&id];
        let (n, hops, task_id) = (turn.next, turn.hops + 1, turn.task.clone());
        let unsent = envelope(from, to, text);
        let id_of = format!("{}:{n}:{id}", unsent.id).into();
        let envelope = Arc::new(Envelope { id: id_of, hops, task_id, ..unsent });
        let events = self.run(act(EffectId { turn: id, n }, vec![Act::Send { envelope }]));
        assert!(!events.iter().any(|event| matches!(event, Event::EffectRefused { .. })), "{events:?}");
    }

    /// The open turn of an agent fails; who is notified.
    #[track_caller]
    fn fails(&mut self, agent: &str) -> Arc<Envelope> {
        let events = self.run(fail(self.turn_of(agent)));
        let mut sent = events.iter().filter_map(|event| event.envelope()).filter(|envelope| envelope.from == agent.into());
        let notice = sent.next().expect("somebody is notified").clone();
        assert_eq!(sent.next(), None, "and nobody else");
        self.assert_replays();
        notice
    }

    #[track_caller]
    fn ends(&mut self, agent: &str) {
        self.run(settle(self.turn_of(agent), "done"));
    }

    fn handled(&self) -> Vec<(&str, bool)> {
        self.spine.dead_letters.iter().map(|dead| (dead.agent.as_str(), dead.handled)).collect()
    }
}

#[test]
fn the_sender_is_notified_of_a_failure_that_nobody_waits_for() {
    let mut society = family();
    society.run(submit("a", "go"));
    society.send("a", "kid", "count the words");
    let kid = society.turn_of("kid");
    let events = society.run(fail(kid));
    let dead =
        Event::MessageDeadLettered { agent: "kid".into(), task: "t".into(), turn: kid, failure: broken(), crashed: false };
    let notice = events[1].envelope().unwrap();
    assert_eq!((notice.from.as_str(), notice.to.as_str(), notice.hops), ("kid", "a", 2));
    assert_eq!((&notice.kind, notice.reply_to), (&MessageKind::Failure(broken()), ReplyTo::Nobody));
    assert_eq!(notice.payload.meta.get(Task::FROM).unwrap(), "kid");
    assert_eq!(
        &*notice.payload.text,
        "`kid` failed: status 400 (model_rejected). Nobody waited for its result; the message is a dead letter. It was asked: \
         count the words"
    );
    assert_eq!(
        (&events[0], &events[2..]),
        (&dead, &[settled(kid, Settlement::Failed(broken()), 1)][..]),
        "one append has it all"
    );
    assert_eq!(society.spine.agents[&"kid".into()].dead_letters, 0, "a failure is no crash");
}

#[test]
fn an_agent_that_people_talk_to_answers_them_about_the_failure() {
    let mut society = four_agents();
    society.run(submit("root", "go"));
    society.send("root", "a", "do it");
    society.ends("root");
    let notice = society.fails("a");
    assert_eq!((notice.to.as_str(), notice.reply_to), ("root", ReplyTo::User));
    let events = society.run(settle(society.turn_of("root"), "a failed"));
    let told = events.iter().find_map(Event::envelope).unwrap();
    assert_eq!((told.to.is_user(), &told.kind, &*told.payload.text), (true, &MessageKind::Answer, "a failed"));
}

#[test]
fn a_failure_on_a_notice_moves_up_and_never_back() {
    let mut society = family();
    society.run(submit("root", "go"));
    society.send("root", "a", "do it");
    society.ends("root");
    society.send("a", "kid", "do a part");
    society.ends("a");
    assert_eq!(society.fails("kid").to.as_str(), "a");
    assert_eq!(society.fails("a").to.as_str(), "root");
    let events = society.run(fail(society.turn_of("root")));
    let told = events.iter().find_map(Event::envelope).unwrap();
    assert_eq!((told.to.is_user(), &told.kind), (true, &MessageKind::Failure(broken())));
    assert!(society.spine.turns.is_empty() && society.spine.pending() == 0);
    assert_eq!(society.handled(), [("kid", false), ("a", false)]);
}

#[test]
fn a_peer_that_sent_the_message_is_notified_and_not_the_parent() {
    let mut society = family();
    society.run(submit("b", "go"));
    society.send("b", "kid", "do it");
    society.ends("b");
    assert_eq!(society.fails("kid").to.as_str(), "b");
    assert_eq!(society.fails("b").to.as_str(), "root", "its parent, and not back to the one that failed first");
}

#[test]
fn a_message_from_below_fails_upwards() {
    let mut society = family();
    society.run(submit("kid", "go"));
    society.send("kid", "a", "here is my part");
    assert_eq!(society.fails("a").to.as_str(), "root");
    society.ends("kid");
    society.ends("root");
    // People talk to root: there is nobody above it but them.
    society.run(submit("kid", "go on"));
    society.send("kid", "root", "here is my part");
    let told = society.fails("root");
    assert_eq!((told.to.is_user(), &told.kind), (true, &MessageKind::Message), "it does not end the request");
    assert_eq!(told.payload.meta.get(Payload::FAILURE).unwrap()["code"], "model_rejected");
}

#[test]
fn whoever_is_above_a_terminated_sender_is_notified_and_at_last_the_person() {
    let mut society = family();
    society.run(submit("b", "go"));
    society.send("b", "kid", "do it");
    society.ends("b");
    let leave = |agent: &str| Command::Terminate {
        agent: agent.into(),
        children: Children::Cascade,
        reason: String::new(),
        now: false,
    };
    society.run(leave("b"));
    assert_eq!(society.fails("kid").to.as_str(), "root");
    society.ends("root");

    let mut society = four_agents_within(Limits { turns_per_task: 2, ..Limits::default() });
    society.run(submit("b", "go"));
    society.send("b", "c", "do it");
    let told = society.fails("c");
    assert!(told.to.is_user(), "agents have had their turns for this request: {told:?}");
    assert!(!society.spine.activities[&"t".into()].is_reported, "a later loop is still reported");
}

#[test]
fn the_conversation_that_a_request_came_from_is_notified_and_not_root() {
    let mut society = family();
    let conversation = NewConversation {
        agent: "talk".into(),
        role: Some("worker".into()),
        person: PersonId::owner(),
        title: "talk".into(),
        settings: ConversationSettings::default(),
        messages: Vec::new(),
    };
    let start = Command::StartConversation { conversation: Box::new(conversation), envelope: Some(personal("talk", "go")) };
    society.run(start);
    society.send("talk", "a", "do it");
    society.ends("talk");
    society.send("a", "kid", "do a part");
    society.ends("a");
    society.fails("kid");
    let notice = society.fails("a");
    assert_eq!((notice.to.as_str(), notice.reply_to), ("talk", ReplyTo::User), "root serves somebody else");
}

#[test]
fn a_follow_up_that_fails_is_reported_to_the_sender_of_the_first_message() {
    let mut society = family();
    society.run(submit("a", "go"));
    society.send("a", "kid", "do it in steps");
    let kid = society.turn_of("kid");
    society.run(settle_with(kid, "", vec![next("second")]));
    let notice = society.fails("kid");
    assert_eq!(notice.to.as_str(), "a");
    assert!(notice.payload.text.ends_with("It was asked: do it in steps"), "{}", notice.payload.text);
}

#[test]
fn whoever_waits_gets_the_failure_and_nothing_is_dead_lettered() {
    let mut society = family();
    society.run(submit("a", "go"));
    let id = EffectId { turn: society.turn_of("a"), n: 0 };
    society.run(ask(id, "a", "kid"));
    let events = society.run(fail(society.turn_of("kid")));
    assert_eq!(events[1..], [ended(id, Outcome::Failed(broken()))]);
    assert_eq!(society.handled(), []);
}

#[test]
fn a_dead_letter_is_handled_by_later_work_of_the_agent_or_a_word_of_the_person() {
    let mut society = family();
    society.run(submit("a", "go"));
    society.send("a", "kid", "do it");
    society.fails("kid");
    assert_eq!(society.handled(), [("kid", false)]);
    society.send("a", "kid", "do it again");
    society.ends("kid");
    assert_eq!(society.handled(), [("kid", true)]);
    society.send("a", "kid", "and more");
    society.fails("kid");
    assert_eq!(society.handled(), [("kid", true), ("kid", false)]);
    society.ends("a");
    society.ends("a");
    assert_eq!(society.handled(), [("kid", true), ("kid", false)], "other agents have done nothing of it");
    let again = Envelope { id: "again".into(), ..Envelope::clone(&personal("a", "once more")) };
    society.run(Command::Send { envelope: again.into() });
    assert_eq!(society.handled(), [("kid", true), ("kid", true)]);
}
