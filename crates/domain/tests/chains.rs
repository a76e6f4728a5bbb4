//! Agents do not write to each other for ever, and nothing that they write vanishes unsaid.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use polis_domain::*;
use rustc_hash::FxHashMap;

use crate::invariants::Law;
use crate::laws::law;
use crate::support::*;

/// What the log tells of chains of messages, and of the turns for each request.
#[derive(Default)]
pub(crate) struct Chains {
    hops: HashMap<TurnId, u32>,
    turns: BTreeMap<TaskId, u32>,
    tasks: HashMap<TurnId, TaskId>,
    agents: HashMap<TurnId, AgentId>,
    /// Messages without a wait since the person last wrote, by sender and receiver.
    messages: HashMap<TaskId, Sent>,
    /// Model calls by agent.
    calls: HashMap<TaskId, BTreeMap<AgentId, u32>>,
    /// Requests of whose loop the person was told.
    reported: HashSet<TaskId>,
    /// The conversation that the person wrote in last, for each request.
    conversations: BTreeMap<TaskId, AgentId>,
}

type Sent = BTreeMap<AgentId, BTreeMap<AgentId, u32>>;

impl Chains {
    pub(crate) fn audit(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        if let Some(envelope) = recorded.event.envelope() {
            self.envelope(envelope, recorded, spine)?;
        }
        match &recorded.event {
            Event::TurnStarted { task, origin, .. } => {
                let id = TurnId(recorded.seq);
                if let Origin::Unit(by) = origin {
                    law!(self.hops.get(&by.turn) == Some(&task.hops), "a unit is as far as its turn, not {}", task.hops);
                    *self.turns.entry(task.id.clone()).or_default() += 1;
                }
                law!(task.hops <= spine.limits.hops, "a turn is {} messages away from the person", task.hops);
                self.hops.insert(id, task.hops);
                self.tasks.insert(id, task.id.clone());
                let Event::TurnStarted { agent, .. } = &recorded.event else { unreachable!() };
                self.agents.insert(id, agent.clone());
            }
            Event::EffectStarted { id, effect: Effect::Model { .. }, .. } => {
                let calls = self.calls.entry(self.tasks[&id.turn].clone()).or_default();
                *calls.entry(self.agents[&id.turn].clone()).or_default() += 1;
            }
            Event::TurnSettled { turn, next, .. } if self.is_main(*turn, spine, recorded) => {
                for task in next {
                    law!(self.hops.get(turn) == Some(&task.hops), "a follow-up is as far as its turn, not {}", task.hops);
                    *self.turns.entry(task.id.clone()).or_default() += 1;
                }
                let (task, limit) = (&self.tasks[turn], spine.limits.turns_per_task);
                law!(next.is_empty() || self.turns[task] <= limit, "{task} goes on beyond {limit} turns");
            }
            _ => {}
        }
        self.activities(spine)
    }

    fn is_main(&self, turn: TurnId, spine: &Spine, recorded: &Recorded) -> bool {
        let thread = recorded.thread.as_ref().and_then(|thread| spine.threads.get(thread));
        self.tasks.contains_key(&turn) && thread.is_some_and(|head| head.place.is_none())
    }

    fn envelope(&mut self, envelope: &Envelope, recorded: &Recorded, spine: &Spine) -> Law {
        let by = recorded.event.effect().and_then(|id| self.hops.get(&id.turn));
        match by {
            Some(hops) => {
                law!(envelope.hops == hops + 1, "message {} has {} hops, its turn {hops}", envelope.id, envelope.hops)
            }
            None if envelope.from.is_user() => law!(envelope.hops == 0, "a person's message has {} hops", envelope.hops),
            None => {}
        }
        let is_written = recorded.event.effect().is_some();
        if envelope.to.is_user() {
            if envelope.kind != MessageKind::Message {
                self.calls.remove(&envelope.task_id);
            } else if !is_written && envelope.payload.meta.get(Payload::FAILURE).is_none() {
                law!(self.reported.insert(envelope.task_id.clone()), "a loop of {} is reported twice", envelope.task_id);
            }
            return Ok(());
        }
        if envelope.from.is_user() {
            self.messages.remove(&envelope.task_id);
            self.reported.remove(&envelope.task_id);
            let parent = |id: &AgentId| spine.agents.get(id)?.parent.clone();
            let top = std::iter::successors(Some(envelope.to.clone()), parent).last().unwrap();
            self.conversations.insert(envelope.task_id.clone(), top);
        } else if envelope.reply_to == ReplyTo::Nobody {
            let sent = self.messages.entry(envelope.task_id.clone()).or_default();
            *sent.entry(envelope.from.clone()).or_default().entry(envelope.to.clone()).or_default() += 1;
            let passed = |from, to| sent.get(from).and_then(|sent: &BTreeMap<AgentId, u32>| sent.get(to)).copied().unwrap_or(0);
            let (there, back) = (passed(&envelope.from, &envelope.to), passed(&envelope.to, &envelope.from));
            let between = if envelope.from == envelope.to { there } else { there + back };
            let limit = spine.limits.messages_per_pair;
            law!(!is_written || between <= limit, "{between} messages between {} and {}", envelope.from, envelope.to);
        }
        law!(envelope.hops <= spine.limits.hops, "message {} has {} hops", envelope.id, envelope.hops);
        let turns = self.turns.entry(envelope.task_id.clone()).or_default();
        *turns = if envelope.from.is_user() { 1 } else { *turns + 1 };
        let limit = spine.limits.turns_per_task;
        law!(envelope.from.is_user() || *turns <= limit, "message {} is for turn {turns} of {limit}", envelope.id);
        Ok(())
    }

    /// The spine counts what the log tells, for requests that are under way and no others.
    fn activities(&mut self, spine: &Spine) -> Law {
        let mut open = BTreeMap::<TaskId, u32>::new();
        spine.turns.values().for_each(|turn| *open.entry(turn.task.clone()).or_default() += 1);
        let inboxes = spine.agents.values().filter_map(|agent| agent.inbox.as_ref());
        inboxes.flat_map(|inbox| &inbox.entries).for_each(|due| *open.entry(due.task().clone()).or_default() += 1);
        self.turns.retain(|task, _| open.contains_key(task));
        self.messages.retain(|task, _| open.contains_key(task));
        self.calls.retain(|task, _| open.contains_key(task));
        self.reported.retain(|task| open.contains_key(task));
        self.conversations.retain(|task, _| open.contains_key(task));
        let effort = |(task, open): (TaskId, u32)| {
            let messages = self.messages.get(&task).cloned().unwrap_or_default();
            let calls = self.calls.get(&task).cloned().unwrap_or_default();
            let is_reported = self.reported.contains(&task);
            let conversation = self.conversations.get(&task).cloned();
            (task.clone(), TaskActivity { turns: self.turns[&task], open, conversation, calls, messages, is_reported })
        };
        let counted: FxHashMap<_, _> = open.into_iter().map(effort).collect();
        law!(spine.activities == counted, "{:?} is counted, {counted:?} is under way", spine.activities);
        Ok(())
    }
}

/// Whoever limits the tools of an agent limits those of everybody below it.
pub(crate) fn limiting_roles(spine: &Spine) -> Law {
    for (id, agent) in &spine.agents {
        let own = spine.limiting_roles(id);
        let Some(parent) = &agent.parent else { continue };
        let lacking = spine.limiting_roles(parent).into_iter().find(|role| !own.contains(role));
        law!(lacking.is_none(), "{parent} is held by {lacking:?} and its child {id} is not");
        let role = spine.roles.get(&agent.role).filter(|role| role.tools.is_some());
        law!(role.is_none_or(|role| own.contains(role)), "{id} is not held by its own role");
    }
    Ok(())
}

fn write(id: EffectId, from: &str, to: &str, hops: u32) -> Command {
    act(
        id,
        vec![Act::Send { envelope: Arc::new(Envelope { hops, id: format!("m{id}").into(), ..envelope(from, to, "and?") }) }],
    )
}

#[test]
fn two_agents_cannot_write_to_each_other_for_ever() {
    let mut society = four_agents_within(Limits { hops: 3, ..Limits::default() });
    society.command(submit("a", "talk to b"), NOON).unwrap();
    let (mut from, mut to) = ("a", "b");
    let mut refused = None;
    for hops in 1..9 {
        let (id, _) = society.spine.turns.iter().find(|(_, turn)| turn.agent.as_str() == from).expect("it has a turn");
        let id = *id;
        let events = society.command(write(EffectId { turn: id, n: 0 }, from, to, hops), NOON).unwrap();
        refused = events.iter().find_map(|(_, event)| match event {
            Event::EffectRefused { failure, .. } => Some((hops, failure.code.to_string())),
            _ => None,
        });
        if refused.is_some() {
            break;
        }
        society.command(settle(id, "sent"), NOON).unwrap();
        (from, to) = (to, from);
    }
    assert_eq!(refused, Some((4, "too_many_hops".to_owned())));
    society.assert_replays();
}

#[test]
fn a_request_takes_so_many_turns_and_no_more_until_the_person_writes_again() {
    let limits = Limits { turns_per_task: 3, ..Limits::default() };
    let mut society = four_agents_within(limits);
    society.command(submit("a", "go"), NOON).unwrap();
    let id = |n| effect(8, n);
    let code = |said: Vec<Said>| match &said[0].1 {
        Event::EffectRefused { failure, .. } => failure.code.to_string(),
        _ => "sent".to_owned(),
    };
    let send = |society: &mut Society, n, to| code(society.command(write(id(n), "a", to, 1), NOON).unwrap());
    assert_eq!([send(&mut society, 0, "b"), send(&mut society, 1, "c")], ["sent", "sent"]);
    assert_eq!(send(&mut society, 2, "b"), "too_many_turns");
    let settled = society.command(settle_with(id(0).turn, "on it", vec![next("more")]), NOON).unwrap();
    assert!(
        matches!(&settled[0].1, Event::TurnSettled { settlement: Settlement::Failed(failure), .. } if &*failure.code == "too_many_turns"),
        "{settled:?}"
    );
    society.command(submit("a", "go on"), NOON).unwrap();
    let effort = &society.spine.activities[&TaskId::from("t")];
    assert_eq!((effort.turns, effort.open, effort.messages.len(), effort.is_reported), (1, 3, 0, false));
}

/// The failures and the reports to the person in what happened.
fn refusals(said: &[Said]) -> (Vec<String>, Vec<String>) {
    let codes = said.iter().filter_map(|(_, event)| match event {
        Event::EffectRefused { failure, .. } => Some(failure.code.to_string()),
        _ => None,
    });
    let reports = said.iter().filter_map(|(_, event)| match event {
        Event::MessageSent { envelope, by: None } if envelope.to.is_user() && envelope.kind == MessageKind::Message => {
            Some(envelope.payload.text.to_string())
        }
        _ => None,
    });
    (codes.collect(), reports.collect())
}

#[test]
fn messages_between_two_agents_are_stopped_in_both_directions_and_reported_once() {
    let mut society = four_agents_within(Limits { messages_per_pair: 3, ..Limits::default() });
    society.command(submit("a", "talk to b"), NOON).unwrap();
    let turn_of = |society: &Society, agent: &str| {
        *society.spine.turns.iter().find(|(_, turn)| turn.agent.as_str() == agent).expect("it has a turn").0
    };
    let a = turn_of(&society, "a");
    for n in 0..2 {
        assert_eq!(refusals(&society.command(write(EffectId { turn: a, n }, "a", "b", 1), NOON).unwrap()), (vec![], vec![]));
    }
    let b = turn_of(&society, "b");
    assert_eq!(refusals(&society.command(write(EffectId { turn: b, n: 0 }, "b", "a", 2), NOON).unwrap()), (vec![], vec![]));
    let (codes, reports) = refusals(&society.command(write(EffectId { turn: a, n: 2 }, "a", "b", 1), NOON).unwrap());
    assert_eq!(codes, ["message_loop"]);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert!(report.contains("`a` and `b` have exchanged 3 messages"), "{report}");
    assert!(report.contains("a to b 2, b to a 1"), "{report}");
    let (codes, reports) = refusals(&society.command(write(EffectId { turn: b, n: 1 }, "b", "a", 2), NOON).unwrap());
    assert_eq!((codes, reports), (vec!["message_loop".to_owned()], vec![]), "the other one is told too, the person once");
    let c = refusals(&society.command(write(EffectId { turn: a, n: 3 }, "a", "c", 1), NOON).unwrap());
    assert_eq!(c, (vec![], vec![]), "others are not concerned");
    society.command(submit("a", "go on"), NOON).unwrap();
    let again = refusals(&society.command(write(EffectId { turn: a, n: 4 }, "a", "b", 1), NOON).unwrap());
    assert_eq!(again, (vec![], vec![]), "until the person writes again");
    society.assert_replays();
}

#[test]
fn questions_whose_answers_are_waited_for_do_not_count_as_messages() {
    let mut society = four_agents_within(Limits { messages_per_pair: 1, ..Limits::default() });
    society.command(submit("a", "ask b often"), NOON).unwrap();
    let a = *society.spine.turns.keys().next().unwrap();
    for n in 0..20 {
        let id = EffectId { turn: a, n };
        let name = MessageId::from(format!("m{n}"));
        let envelope = Envelope { id: name, reply_to: ReplyTo::Effect(id), ..envelope("a", "b", "help") };
        let asked = begin(id, vec![Effect::Ask { envelope: envelope.into(), deadline: None }]);
        let said = society.command(asked, NOON).unwrap();
        assert_eq!(refusals(&said), (vec![], vec![]), "{n}");
        let b = *society.spine.turns.iter().find(|(_, turn)| turn.agent.as_str() == "b").unwrap().0;
        society.command(settle(b, "here"), NOON).unwrap();
    }
    society.assert_replays();
}

#[test]
fn a_chain_of_messages_that_is_too_long_is_reported_to_the_person() {
    let mut society = four_agents_within(Limits { hops: 1, ..Limits::default() });
    society.command(submit("a", "tell b"), NOON).unwrap();
    let a = *society.spine.turns.keys().next().unwrap();
    society.command(write(EffectId { turn: a, n: 0 }, "a", "b", 1), NOON).unwrap();
    let b = *society.spine.turns.keys().last().unwrap();
    let (codes, reports) = refusals(&society.command(write(EffectId { turn: b, n: 0 }, "b", "c", 2), NOON).unwrap());
    assert_eq!((codes, reports.len()), (vec!["too_many_hops".to_owned()], 1));
    assert!(reports[0].contains("a chain of messages from agent to agent has reached 1"), "{reports:?}");
}

#[test]
fn what_an_agent_that_is_sent_away_has_not_read_comes_back_to_its_sender() {
    let mut society = four_agents();
    society.command(submit("b", "be busy"), NOON).unwrap();
    society.command(submit("a", "tell b"), NOON).unwrap();
    let a = *society.spine.turns.keys().last().unwrap();
    society.command(write(EffectId { turn: a, n: 0 }, "a", "b", 1), NOON).unwrap();
    let gone = Command::Terminate { agent: "b".into(), children: Children::Cascade, reason: String::new(), now: true };
    let events = society.command(gone, NOON).unwrap();
    let back: Vec<_> =
        events.iter().filter_map(|(_, event)| event.envelope()).filter(|envelope| !envelope.to.is_user()).collect();
    let [back] = &back[..] else { panic!("{events:?}") };
    assert_eq!((back.to.as_str(), back.from.as_str(), back.hops), ("a", "b", 2));
    assert!(back.payload.text.contains("was not read") && back.payload.text.contains("and?"), "{}", back.payload.text);
    assert!(matches!(&back.kind, MessageKind::Failure(failure) if &*failure.code == "terminated"));
    society.assert_replays();
}

#[test]
fn a_changed_role_holds_from_the_next_turn_on() {
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    let changed = Arc::new(Role::new("worker", "plain").with_prompt("work better").with_tools(["read_*"]));
    society.command(Command::ChangeRole { role: changed.clone() }, NOON).unwrap();
    let turn_of = |society: &Society| society.spine.turns.values().next().unwrap().clone();
    assert_eq!(society.spine.role_of(&turn_of(&society)), Some(&role("worker")));
    society.command(settle(turn(8), "done"), NOON).unwrap();
    society.command(submit("a", "again"), NOON).unwrap();
    assert_eq!(society.spine.role_of(&turn_of(&society)), Some(&changed));
    assert_eq!(society.command(Command::ChangeRole { role: changed.clone() }, NOON), Err(Refusal::SameRole("worker".into())));
    assert_eq!(society.spine.limiting_roles(&"a".into()), vec![changed]);
    society.assert_replays();
}

#[test]
fn children_of_an_agent_that_is_gone_still_lack_what_it_lacked() {
    let mut society = four_agents();
    let narrow = Role::new("narrow", "plain").with_tools(["read_*"]);
    society.command(Command::CreateRole { role: Arc::new(narrow.clone()) }, NOON).unwrap();
    for (agent, role, parent) in [("n", "narrow", "root"), ("w", "worker", "n")] {
        society.command(Command::Spawn { agent: agent.into(), role: role.into(), parent: parent.into() }, NOON).unwrap();
    }
    let held = |society: &Society| society.spine.limiting_roles(&"w".into());
    assert_eq!(held(&society), vec![Arc::new(narrow.clone())]);
    let gone = Command::Terminate { agent: "n".into(), children: Children::Detach, reason: String::new(), now: false };
    society.command(gone, NOON).unwrap();
    assert_eq!(society.spine.agents[&AgentId::from("w")].parent, Some(AgentId::root()));
    assert_eq!(held(&society), vec![Arc::new(narrow)]);
    society.assert_replays();
}
