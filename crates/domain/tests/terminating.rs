//! Agents that go: what waits is done first, children go first, and nobody waits in vain (D12, P6-P8, P21).

use polis_domain::*;

use crate::support::*;

fn spawn(agent: &str, parent: &str) -> Command {
    Command::Spawn { agent: agent.into(), role: "worker".into(), parent: parent.into() }
}

fn terminate(agent: &str, children: Children, now: bool) -> Command {
    Command::Terminate { agent: agent.into(), children, reason: "enough".to_owned(), now }
}

fn dismissed(agent: &str, caller: &str, waiter: Option<EffectId>) -> Said {
    let (caller, reason) = (caller.into(), "enough".to_owned());
    (None, Event::AgentDismissed { agent: agent.into(), caller, reason, detach: false, waiter })
}

fn gone(agent: &str) -> Said {
    (None, Event::AgentTerminated { agent: agent.into() })
}

fn terminating(agent: &str) -> Effect {
    let reason = "enough".to_owned();
    Effect::Terminate { agent: agent.into(), children: Children::Cascade, reason, deadline: Timestamp(NOON.0 + 50) }
}

#[test]
fn an_idle_agent_is_gone_at_once_and_its_name_is_not_used_again() {
    let society = check(vec![], terminate("a", Children::Cascade, false), Ok(vec![dismissed("a", "user", None), gone("a")]));
    let kept = &society.spine.terminated[&AgentId::from("a")];
    assert_eq!((kept.terminated_by.as_str(), kept.terminated_at, &*kept.reason), ("user", NOON, "enough"));
    assert!(!society.spine.agents.contains_key(&AgentId::from("a")));
    let gone = vec![terminate("a", Children::Cascade, false)];
    check(gone.clone(), submit("a", "hello"), Err(Refusal::Terminating("a".into())));
    check(gone.clone(), spawn("d", "a"), Err(Refusal::Terminating("a".into())));
    check(gone, spawn("a", "root"), Err(Refusal::NameTaken("a".to_owned())));
}

#[test]
fn what_waits_is_done_before_it_goes_and_nothing_more_is_taken_on() {
    let given = vec![submit("a", "one"), submit("a", "two"), terminate("a", Children::Cascade, false)];
    check(given.clone(), submit("a", "three"), Err(Refusal::Terminating("a".into())));
    let mut society = four_agents();
    for command in given {
        society.command(command, NOON).unwrap();
    }
    assert!(society.spine.agents[&AgentId::from("a")].termination.is_some());
    let first = society.command(settle(turn(8), "done"), NOON).unwrap();
    assert!(matches!(first.last(), Some((_, Event::TurnStarted { .. }))), "the second message has its turn: {first:?}");
    let second = *society.spine.turns.keys().next().unwrap();
    let last = society.command(settle(second, "done too"), NOON).unwrap();
    assert_eq!(last.last(), Some(&gone("a")));
    assert_eq!(last.iter().filter(|(_, event)| event.envelope().is_some_and(|envelope| envelope.to.is_user())).count(), 1);
}

#[test]
fn only_its_parent_may_send_a_child_away_and_hears_when_it_is_gone() {
    let go = vec![submit("root", "go")];
    let effect_of = |agent: &str| begin(effect(8, 0), vec![terminating(agent)]);
    let ended = under("root", ended(effect(8, 0), Outcome::Answer("a".into())));
    let started = under("root", Event::EffectStarted { id: effect(8, 0), effect: terminating("a"), permit: None });
    let expected = vec![started, dismissed("a", "root", Some(effect(8, 0))), gone("a"), ended];
    check(go, effect_of("a"), Ok(expected));
    let other = vec![submit("b", "go")];
    let expected = under("b", refused(effect(8, 0), Refusal::NotYourChild("a".into())));
    check(other.clone(), effect_of("a"), Ok(vec![expected]));
    check(other, effect_of("root"), Ok(vec![under("b", refused(effect(8, 0), Refusal::RootStays))]));
}

#[test]
fn children_go_first_or_to_the_grandparent_or_hold_their_parent_back() {
    let family = vec![spawn("d", "a"), spawn("e", "d")];
    let all = |agents: &[&str], event: fn(&str) -> Said| agents.iter().map(|agent| event(agent)).collect::<Vec<_>>();
    let expected = [all(&["e", "d", "a"], |agent| dismissed(agent, "user", None)), all(&["e", "d", "a"], gone)].concat();
    check(family.clone(), terminate("a", Children::Cascade, false), Ok(expected));
    check(family.clone(), terminate("a", Children::Refuse, false), Err(Refusal::HasChildren("a".into())));
    let mut society = four_agents();
    family.into_iter().for_each(|command| drop(society.command(command, NOON).unwrap()));
    society.command(terminate("d", Children::Detach, false), NOON).unwrap();
    assert_eq!(society.spine.agents[&AgentId::from("e")].parent, Some("a".into()));
    society.assert_replays();
}

#[test]
fn a_parent_waits_for_a_child_that_is_busy_and_at_the_deadline_it_goes_undone() {
    let mut society = four_agents();
    for command in [submit("root", "go"), submit("a", "work"), submit("a", "more")] {
        society.command(command, NOON).unwrap();
    }
    society.command(begin(effect(8, 0), vec![terminating("a")]), NOON).unwrap();
    assert!(!society.spine.turns[&turn(8)].is_owed(), "root only waits");
    let early = society.command(Command::Expire { id: effect(8, 0) }, NOON);
    assert_eq!(early, Err(Refusal::NotWaiting(effect(8, 0))));
    let late = society.command(Command::Expire { id: effect(8, 0) }, Timestamp(NOON.0 + 50)).unwrap();
    let names: Vec<_> = late.iter().map(|(_, event)| event).collect();
    assert!(matches!(names[0], Event::TurnSettled { settlement: Settlement::Cancelled(_), .. }), "{names:?}");
    assert!(matches!(names[1], Event::InboxCleared { of: Cleared::Everything, .. }), "{names:?}");
    let told = names.iter().filter_map(|event| event.envelope()).filter(|envelope| envelope.to.is_user()).count();
    assert_eq!(told, 1, "the person hears once that both were not done");
    assert!(matches!(names[names.len() - 2], Event::AgentTerminated { .. }), "{names:?}");
    assert!(matches!(names[names.len() - 1], Event::EffectEnded { outcome: Outcome::Answer(_), .. }), "{names:?}");
}

#[test]
fn agents_make_agents_within_the_limits_and_a_person_beyond() {
    let limits = Limits { depth: 2, children: 4, agents: 7, spawns_a_minute: 2, ..Limits::default() };
    let make = |seq, n, name: &str| act(effect(seq, n), vec![Act::Spawn { agent: name.into(), role: "worker".into() }]);
    let refusal = |what, limit| Refusal::TooManyAgents { what, limit };
    let root = vec![submit("root", "go")];
    let refused_at = |seq, thread: &str, n, what, limit| Ok(vec![under(thread, refused(effect(seq, n), refusal(what, limit)))]);
    let society = || four_agents_within(limits);

    let too_deep = vec![spawn("d", "a"), submit("d", "go")];
    check_in(society(), too_deep, make(9, 0, "e"), refused_at(9, "d", 0, "depth", 2));
    let one_more = [root.clone(), vec![make(8, 0, "d")]].concat();
    check_in(society(), one_more, make(8, 1, "e"), refused_at(8, "root", 1, "the number of an agent's children", 4));
    let crowd = vec![spawn("d", "a"), spawn("e", "a"), spawn("f", "b"), submit("c", "go")];
    check_in(society(), crowd, make(11, 0, "g"), refused_at(11, "c", 0, "the number of agents", 7));
    let hasty = vec![submit("a", "go"), make(8, 0, "d"), make(8, 1, "e")];
    check_in(society(), hasty.clone(), make(8, 2, "f"), refused_at(8, "a", 2, "the number made within a minute", 2));
    let mut later = society();
    hasty.into_iter().for_each(|command| drop(later.command(command, NOON).unwrap()));
    let made = later.command(make(8, 2, "f"), Timestamp(NOON.0 + 60_000)).unwrap();
    assert!(matches!(made[0].1, Event::AgentSpawned { .. }), "a minute later there is room again: {made:?}");
    later.command(spawn("g", "root"), NOON).expect("a person may always");
}

#[test]
fn children_come_to_a_grandparent_only_where_there_is_room() {
    let limits = Limits { children: 4, ..Limits::default() };
    let detach = |agent: &str| Effect::Terminate {
        agent: agent.into(),
        children: Children::Detach,
        reason: String::new(),
        deadline: Timestamp(NOON.0 + 50),
    };
    let no_room = |agent: &str| Refusal::NoRoomAbove { agent: agent.into(), parent: AgentId::root(), limit: 4 };
    // Root has a, b and c; two below a fit, three do not.
    let two = vec![spawn("d", "a"), spawn("e", "a"), submit("root", "go")];
    let mut society = four_agents_within(limits);
    two.iter().for_each(|command| drop(society.command(command.clone(), NOON).unwrap()));
    society.command(begin(effect(10, 0), vec![detach("a")]), NOON).unwrap();
    assert_eq!(society.spine.children(&AgentId::root()).len(), 4);
    let three = [vec![spawn("x", "a")], two].concat();
    let refused_at = |n| under("root", refused(effect(11, n), no_room("a")));
    check_in(four_agents_within(limits), three.clone(), begin(effect(11, 0), vec![detach("a")]), Ok(vec![refused_at(0)]));
    let by_person = check_in_ok(four_agents_within(limits), three, terminate("a", Children::Detach, false));
    assert_eq!(by_person.spine.children(&AgentId::root()).len(), 5, "a person may always");
    // One that has yet to go counts with those that it leaves behind: there is no room for one more.
    let busy = vec![spawn("d", "a"), spawn("e", "a"), submit("a", "work"), submit("root", "go")];
    let mut society = four_agents_within(limits);
    busy.into_iter().for_each(|command| drop(society.command(command, NOON).unwrap()));
    society.command(begin(effect(12, 0), vec![detach("a")]), NOON).unwrap();
    let one_more = act(effect(12, 1), vec![Act::Spawn { agent: "f".into(), role: "worker".into() }]);
    let crowded = Refusal::TooManyAgents { what: "the number of an agent's children", limit: 4 };
    assert_eq!(society.command(one_more, NOON), Ok(vec![under("root", refused(effect(12, 1), crowded))]));
    // And one that leaves nobody behind takes its own place until it has gone.
    let mut society = four_agents_within(Limits { children: 3, ..limits });
    let busy = [submit("a", "work"), submit("root", "go"), begin(effect(10, 0), vec![detach("a")])];
    busy.into_iter().for_each(|command| drop(society.command(command, NOON).unwrap()));
    let spawn = |n| act(effect(10, n), vec![Act::Spawn { agent: "f".into(), role: "worker".into() }]);
    let crowded = Refusal::TooManyAgents { what: "the number of an agent's children", limit: 3 };
    assert_eq!(society.command(spawn(1), NOON), Ok(vec![under("root", refused(effect(10, 1), crowded))]));
    society.command(settle(turn(8), "done"), NOON).unwrap();
    assert!(matches!(society.command(spawn(2), NOON).unwrap()[0].1, Event::AgentSpawned { .. }), "then there is room");
}

fn check_in_ok(mut society: Society, given: Vec<Command>, command: Command) -> Society {
    given.into_iter().chain([command]).for_each(|command| drop(society.command(command, NOON).unwrap()));
    society.assert_replays();
    society
}

#[test]
fn a_role_has_a_name_that_can_be_shown_and_is_not_the_persons() {
    let named =
        |name: &str| Command::CreateRole { role: std::sync::Arc::new(Role { name: name.into(), ..Role::clone(&role("r")) }) };
    for bad in ["", " ", "a\nb", "ev\u{1b}]0;x\u{7}il", "\u{202e}live", &"n".repeat(129)] {
        let refusal = four_agents().command(named(bad), NOON).unwrap_err();
        assert!(refusal.code() == "bad_name" && !refusal.to_string().contains(|c: char| c.is_control()), "{refusal}");
    }
    four_agents().command(named("Prüfer 审稿人"), NOON).unwrap();
    let user = Command::CreateRole { role: role("user") };
    assert_eq!(four_agents().command(user, NOON), Err(Refusal::NameTaken("user".to_owned())));
}
