//! Acts: all or nothing, in one's own threads only, with names and places that are free.

use polis_domain::*;
use serde_json::json;

use crate::support::*;

/// Agent `a` is in turn 8 and has one message, the message's.
#[track_caller]
fn check_acts(acts: Vec<Act>, expected: Vec<Said>) -> Society {
    check(vec![submit("a", "go")], act(effect(8, 0), acts), Ok(expected))
}

/// The whole batch is refused for the reason given, and leaves nothing but that.
#[track_caller]
fn check_refused(acts: Vec<Act>, refusal: Refusal) {
    let society = check_acts(acts, vec![under("a", refused(effect(8, 0), refusal))]);
    assert_eq!(society.thread("a").messages.len(), 1);
    assert_eq!((society.spine.threads.len(), society.spine.agents.len()), (1, 4));
}

fn opened(child: &str, parent: &str) -> Said {
    let event = Event::ThreadOpened {
        by: effect(8, 0),
        agent: "a".into(),
        parent: parent.into(),
        settings: Settings::default(),
        meta: Meta::new(),
    };
    under(child, event)
}

fn linked(parent: &str, slot: &str, child: &str) -> Said {
    let slot = MetaPath::new(slot).expect("a slot of the case");
    under(parent, Event::ThreadLinked { by: effect(8, 0), index: 0, slot, child: child.into(), held: None })
}

#[test]
fn a_batch_across_nested_threads_is_one_effect_that_ends_in_the_turns_own_thread() {
    let by = effect(8, 0);
    let acts = vec![
        open("a", "meta._thread", "s"),
        add("s", "first"),
        open("s", "meta.threads.deep", "n"),
        add("n", "deep"),
        add("s", "second"),
    ];
    let added = |thread, index, text| under(thread, Event::MessageAdded { by, index, message: bot(text).into() });
    let expected = vec![
        opened("s", "a"),
        linked("a", "meta._thread", "s"),
        added("s", 0, "first"),
        opened("n", "s"),
        linked("s", "meta.threads.deep", "n"),
        added("n", 0, "deep"),
        added("s", 1, "second"),
        under("a", Event::Acted { id: by }),
    ];
    let society = check_acts(acts, expected);
    let path: SubThreadPath = "messages[0].meta._thread.messages[0].meta.threads.deep".parse().unwrap();
    assert_eq!(society.spine.resolve(&"a".into(), &path), Some("n".into()));
    assert_eq!(society.spine.address(&"n".into()), ("a".into(), path));
    assert_eq!(society.thread("s").messages[0].meta.get("threads"), Some(&json!({ "deep": { "id": "n" } })));
}

#[test]
fn an_act_without_changes_is_still_marked() {
    check_acts(vec![], vec![under("a", Event::Acted { id: effect(8, 0) })]);
}

#[test]
fn a_batch_with_one_bad_act_changes_nothing() {
    let no_such = Refusal::NoSuchMessage { thread: "a".into(), index: 2 };
    let update = Act::UpdateMessage { thread: "a".into(), index: 2, patch: MessagePatch::default() };
    check_refused(vec![add("a", "one"), open("a", "meta._thread", "s"), update], no_such);
    let spawn = |agent: &str, role: &str| Act::Spawn { agent: agent.into(), role: role.into() };
    check_refused(vec![spawn("d", "worker"), spawn("e", "nothing")], Refusal::UnknownRole("nothing".into()));
    let send = Act::Send { envelope: envelope("a", "b", "").into() };
    check_refused(vec![Act::Send { envelope: envelope("a", "b", "hi").into() }, send], Refusal::EmptyText);
}

#[test]
fn a_turn_writes_its_own_agents_threads_only() {
    let given = || vec![submit("b", "go"), submit("a", "go")];
    let id = effect(10, 0);
    let foreign = || Ok(vec![under("a", refused(id, Refusal::NotYourThread("b".into())))]);
    for act_ in [add("b", "hi"), suggest("b", "review"), open("b", "meta._thread", "s")] {
        check(given(), act(id, vec![act_]), foreign());
    }
    check(given(), begin(id, vec![unit("b")]), foreign());
    let unknown = Refusal::UnknownThread("nowhere".into());
    check(given(), act(id, vec![add("nowhere", "hi")]), Ok(vec![under("a", refused(id, unknown))]));
}

#[test]
fn a_name_is_given_once_to_an_agent_or_a_sub_thread() {
    let spawn = |name: &str| Act::Spawn { agent: name.into(), role: "worker".into() };
    let taken = |name: &str| Refusal::NameTaken(name.to_owned());
    check_refused(vec![open("a", "meta._thread", "a")], taken("a"));
    check_refused(vec![open("a", "meta._thread", "b")], taken("b"));
    check_refused(vec![open("a", "meta.one", "s"), open("a", "meta.two", "s")], taken("s"));
    check_refused(vec![spawn("s"), spawn("s")], taken("s"));
    check_refused(vec![spawn("s"), open("a", "meta._thread", "s")], taken("s"));
    check_refused(vec![open("a", "meta._thread", "s"), spawn("s")], taken("s"));
    check_refused(vec![spawn("user")], taken("user"));
    let given = vec![submit("a", "go"), act(effect(8, 0), vec![open("a", "meta._thread", "s")])];
    let spawn = Command::Spawn { agent: "s".into(), role: "worker".into(), parent: AgentId::root() };
    check(given, spawn, Err(taken("s")));
}

#[test]
fn a_place_in_a_message_holds_one_sub_thread_and_none_inside_it() {
    let taken = || Refusal::SlotTaken { thread: "a".into(), index: 0 };
    check_refused(vec![open("a", "meta.x", "s"), open("a", "meta.x", "u")], taken());
    check_refused(vec![open("a", "meta.x", "s"), open("a", "meta.x.y", "u")], taken());
    check_refused(vec![open("a", "meta.x.y", "s"), open("a", "meta.x", "u")], taken());
    let given = vec![submit("a", "go"), act(effect(8, 0), vec![open("a", "meta.x.y", "s")])];
    let id = effect(8, 1);
    check(given, act(id, vec![open("a", "meta.x", "u")]), Ok(vec![under("a", refused(id, taken()))]));

    let neighbours = vec![open("a", "meta.x.y", "s"), open("a", "meta.x.z", "u")];
    let expected = vec![opened("s", "a"), linked("a", "meta.x.y", "s"), opened("u", "a"), linked("a", "meta.x.z", "u")];
    check_acts(neighbours, expected);
}

#[test]
fn a_unit_runs_in_an_idle_sub_thread_only() {
    let given = || vec![submit("a", "go"), act(effect(8, 0), vec![open("a", "meta._thread", "s")])];
    let id = effect(8, 1);
    let main = Refusal::NotASubThread("a".into());
    check(given(), begin(id, vec![unit("a")]), Ok(vec![under("a", refused(id, main.clone()))]));
    let busy = [given(), vec![begin(id, vec![unit("s")])]].concat();
    let second = effect(8, 2);
    let refusal = Refusal::ThreadBusy("s".into());
    check(busy.clone(), begin(second, vec![unit("s")]), Ok(vec![under("a", refused(second, refusal))]));

    // One that nobody waited for ends with its turn.
    let called_off = Failure::new("cancelled", "the turn that it was a part of has ended");
    let expected = vec![
        under("s", settled(turn(12), Settlement::Cancelled(called_off.clone()), 0)),
        under("a", ended(id, Outcome::Failed(called_off))),
        under("a", settled(turn(8), Settlement::Done, 1)),
        told(16, "a", MessageKind::Answer, "done"),
    ];
    check(busy, settle(turn(8), "done"), Ok(expected));
}
