//! Messages: who may write to whom, and how much may wait.

use std::sync::Arc;

use polis_domain::*;
use serde_json::json;

use crate::support::*;

#[test]
fn nothing_can_be_asked_of_a_society_before_it_is_founded_and_it_is_founded_once() {
    assert_eq!(decide(&Spine::default(), submit("root", "hi"), NOON), Err(Refusal::NotFounded));
    let found = Command::Found { seed: 1, limits: Limits::default(), role: role("other") };
    check(vec![], found, Err(Refusal::AlreadyFounded));
}

#[test]
fn a_message_to_an_idle_agent_starts_its_turn_and_a_busy_one_gets_to_it_later() {
    let (first, second) = (personal("a", "one"), personal("a", "two"));
    let sent = |envelope: &Arc<Envelope>| under("task:t", Event::MessageSent { envelope: envelope.clone(), by: None });
    check(vec![], submit("a", "one"), Ok(vec![sent(&first), started(&first, 0)]));
    check(vec![submit("a", "one")], submit("a", "two"), Ok(vec![sent(&second)]));
    let told = told(11, "a", MessageKind::Answer, "done");
    let settled = under("a", settled(turn(8), Settlement::Done, 1));
    check(vec![submit("a", "one"), submit("a", "two")], settle(turn(8), "done"), Ok(vec![settled, told, started(&second, 1)]));
}

#[test]
fn nobody_orders_the_person_about() {
    check(vec![], submit("user", "hi"), Err(Refusal::ToUser));
    assert!(Refusal::ToUser.to_string().starts_with("不能向用户端点发送消息"), "the words of the specification (R157)");
    let id = effect(8, 0);
    check(vec![submit("a", "go")], ask(id, "a", "user"), Ok(vec![under("a", refused(id, Refusal::ToUser))]));
}

#[test]
fn an_agent_that_does_not_exist_gets_no_message() {
    check(vec![], submit("nobody", "hi"), Err(Refusal::UnknownAgent("nobody".into())));
    let id = effect(8, 0);
    let unknown = vec![under("a", refused(id, Refusal::UnknownAgent("nobody".into())))];
    check(vec![submit("a", "go")], ask(id, "a", "nobody"), Ok(unknown.clone()));
    let send = Act::Send { envelope: Arc::new(envelope("a", "nobody", "hi")) };
    check(vec![submit("a", "go")], act(id, vec![send]), Ok(unknown));
}

#[test]
fn a_message_in_a_false_name_is_refused() {
    let outside =
        |envelope: Envelope| check(vec![submit("a", "go")], Command::Send { envelope: Arc::new(envelope) }, false_sender());
    fn false_sender() -> Result<Vec<Said>, Refusal> {
        Err(Refusal::FalseSender("x".into()))
    }
    let id = effect(8, 0);
    let x = |envelope: Envelope| Envelope { id: "x".into(), ..envelope };
    outside(x(envelope("a", "b", "not from outside")));
    outside(x(Envelope { reply_to: ReplyTo::Effect(id), ..envelope("user", "b", "nobody asked") }));
    outside(x(Envelope { kind: MessageKind::Answer, ..envelope("user", "b", "nobody asked") }));

    let inside = |envelope: Envelope| {
        let expected = under("a", refused(id, Refusal::FalseSender("x".into())));
        check(vec![submit("a", "go")], act(id, vec![Act::Send { envelope: Arc::new(envelope) }]), Ok(vec![expected]));
    };
    inside(x(envelope("b", "c", "not from b")));
    inside(x(envelope("user", "user", "talking to oneself")));
    inside(x(Envelope { reply_to: ReplyTo::Effect(effect(8, 0)), ..envelope("a", "b", "an ask in disguise") }));
    inside(x(Envelope { kind: MessageKind::Answer, ..envelope("a", "user", "a second answer") }));

    let asking = Effect::Ask { envelope: Arc::new(x(envelope("a", "b", "nobody would hear the answer"))), deadline: None };
    let expected = under("a", refused(id, Refusal::FalseSender("x".into())));
    check(vec![submit("a", "go")], begin(id, vec![asking]), Ok(vec![expected]));
}

#[test]
fn what_a_turn_starts_belongs_to_its_own_request() {
    let id = effect(8, 0);
    let foreign = || vec![under("a", refused(id, Refusal::ForeignTask("u".into())))];
    let other = |reply_to| Arc::new(Envelope { task_id: "u".into(), reply_to, ..envelope("a", "b", "x") });
    let given = || vec![submit("a", "go")];
    check(given(), act(id, vec![Act::Send { envelope: other(ReplyTo::Nobody) }]), Ok(foreign()));
    let asking = Effect::Ask { envelope: other(ReplyTo::Effect(id)), deadline: None };
    check(given(), begin(id, vec![asking]), Ok(foreign()));

    let Effect::Unit { thread, behaviour, task } = unit("s") else { unreachable!("it is a unit") };
    let unit = Effect::Unit { thread, behaviour, task: Task { id: "u".into(), ..task } };
    let opened = vec![submit("a", "go"), act(id, vec![open("a", "meta._thread", "s")])];
    let expected = under("a", refused(effect(8, 1), Refusal::ForeignTask("u".into())));
    check(opened, begin(effect(8, 1), vec![unit]), Ok(vec![expected]));

    let failure = Failure::from(Refusal::ForeignTask("u".into()));
    let ends = vec![
        under("a", settled(turn(8), Settlement::Failed(failure.clone()), 1)),
        told(10, "a", MessageKind::Failure(failure.clone()), &failure.message),
    ];
    check(given(), settle_with(turn(8), "on it", vec![Task { id: "u".into(), ..next("more") }]), Ok(ends));
}

#[test]
fn a_full_inbox_and_a_long_or_empty_text_are_refused_with_a_code() {
    let limits = Limits { text_bytes: 8, inbox_entries: 2, inbox_bytes: 10, open_effects: 2, ..Limits::default() };
    let check = |given: &[&str], text: &str, refusal: Refusal| {
        let given = given.iter().map(|text| submit("a", text)).collect();
        check_in(four_agents_within(limits), given, submit("a", text), Err(refusal));
    };
    check(&[], "", Refusal::EmptyText);
    check(&[], " \n\t", Refusal::EmptyText);
    check(&[], "too long!", Refusal::TextTooLong { bytes: 9, limit: 8 });
    check(&["taken", "1", "2"], "3", Refusal::Busy("a".into()));
    check(&["taken", "12345678"], "123", Refusal::Busy("a".into()));
}

#[test]
fn a_request_has_a_plain_name() {
    for name in ["", "../../etc", "a\0b\n", "a b"] {
        let envelope = Envelope { task_id: name.into(), ..envelope("user", "a", "hi") };
        check(vec![], Command::Send { envelope: Arc::new(envelope) }, Err(Refusal::BadName(name.to_owned())));
    }
}

#[test]
fn a_number_comes_back_from_the_log_as_it_went_in() {
    let mut society = four_agents();
    let payload = Payload { text: "hi".into(), meta: json!({ "n": 125.67056174389201 }).as_object().unwrap().clone().into() };
    for _ in 0..2 {
        let id = format!("m{}", society.log.len()).into();
        let envelope = Envelope { id, payload: payload.clone(), ..envelope("user", "a", "") };
        society.command(Command::Send { envelope: Arc::new(envelope) }, NOON).unwrap();
    }
    society.assert_replays();
}
