//! The properties of the documents that are matters of law, each over random organisations (P1, P2, P6, P7, P8, P13).

use std::collections::BTreeSet;
use std::sync::Arc;

use polis_domain::*;
use proptest::prelude::*;

use crate::support::*;

/// Agents `g0`, `g1` … whose parents are those of these numbers, or root.
fn tree(parents: &[usize]) -> Society {
    let mut society = Society::found(Limits::default());
    for (i, parent) in parents.iter().enumerate() {
        let parent = if i == 0 { AgentId::root() } else { above(i, *parent) };
        society.command(Command::Spawn { agent: name(i), role: "worker".into(), parent }, NOON).unwrap();
    }
    society
}

fn above(i: usize, parent: usize) -> AgentId {
    match parent % (i + 1) {
        0 => AgentId::root(),
        one => name(one - 1),
    }
}

fn name(i: usize) -> AgentId {
    format!("g{i}").as_str().into()
}

fn everybody(society: &Society) -> Vec<AgentId> {
    let mut all: Vec<_> = society.spine.agents.keys().cloned().collect();
    all.sort();
    all
}

fn is_below(society: &Society, agent: &AgentId, top: &AgentId) -> bool {
    let parent = |id: &AgentId| society.spine.agents.get(id)?.parent.clone();
    std::iter::successors(Some(agent.clone()), parent).any(|id| id == *top)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// P1, P2: a person's message is taken for whoever is there, never for the person, and lands with its receiver alone.
    #[test]
    fn a_persons_message_reaches_whoever_is_there_and_never_the_person(parents in tree_shape(), who in any::<usize>(), kind in 0..3) {
        let mut society = tree(&parents);
        let all = everybody(&society);
        let to = match kind {
            0 => AgentId::user(),
            1 => AgentId::from("nobody"),
            _ => all[who % all.len()].clone(),
        };
        let sent = society.command(submit(to.as_str(), "hello"), NOON);
        match kind {
            0 => prop_assert_eq!(sent, Err(Refusal::ToUser)),
            1 => prop_assert_eq!(sent, Err(Refusal::UnknownAgent(to))),
            _ => {
                let sent = sent.unwrap();
                let envelopes: Vec<_> = sent.iter().filter_map(|(_, event)| event.envelope()).collect();
                prop_assert_eq!(envelopes.len(), 1);
                prop_assert!(envelopes[0].to == to && envelopes[0].from.is_user());
                let taken = matches!(&sent[1].1, Event::TurnStarted { agent, .. } if *agent == to);
                prop_assert!(taken, "it goes straight to its receiver");
            }
        }
    }

    /// P6: whoever is sent away is out of the registry with everybody below, has nothing left, and the record says so for good.
    #[test]
    fn who_is_sent_away_is_gone_with_everybody_below_and_stays_on_record(parents in tree_shape(), who in any::<usize>()) {
        let mut society = tree(&parents);
        let target = name(who % parents.len());
        let family: BTreeSet<_> = everybody(&society).into_iter().filter(|agent| is_below(&society, agent, &target)).collect();
        let (agent, reason) = (target.clone(), "enough".to_owned());
        society.command(Command::Terminate { agent, children: Children::Cascade, reason, now: false }, NOON).unwrap();
        let gone: BTreeSet<_> = society.spine.terminated.keys().cloned().collect();
        prop_assert_eq!(&gone, &family);
        prop_assert!(family.iter().all(|agent| !society.spine.agents.contains_key(agent)));
        let org = Org::of(&Spine::from_iter(&society.log));
        let recorded: BTreeSet<_> = org.terminations.iter().map(|gone| gone.agent_id.clone()).collect();
        prop_assert_eq!(recorded, family);
        prop_assert_eq!(society.command(submit(target.as_str(), "hello"), NOON), Err(Refusal::Terminating(target)));
    }

    /// P7: of all agents only its parent can send an agent away.
    #[test]
    fn only_a_parent_sends_an_agent_away(parents in tree_shape(), caller in any::<usize>(), target in any::<usize>()) {
        let mut society = tree(&parents);
        let all = everybody(&society);
        let (caller, target) = (all[caller % all.len()].clone(), name(target % parents.len()));
        let is_parent = society.spine.agents[&target].parent.as_ref() == Some(&caller);
        society.command(submit(caller.as_str(), "go"), NOON).unwrap();
        let (turn, _) = society.spine.turns.iter().next().unwrap();
        let id = EffectId { turn: *turn, n: 0 };
        let (agent, deadline) = (target.clone(), Timestamp(9_000));
        let command = Effect::Terminate { agent, children: Children::Cascade, reason: String::new(), deadline };
        let events = society.command(begin(id, vec![command]), NOON).unwrap();
        let refused = events.iter().any(|(_, event)| matches!(event, Event::EffectRefused { failure, .. } if &*failure.code == "not_your_child"));
        prop_assert_eq!(refused, !is_parent);
        prop_assert_eq!(society.spine.terminated.contains_key(&target), is_parent);
    }

    /// P8: everything that was queued is worked off before an agent goes.
    #[test]
    fn what_is_queued_is_done_before_an_agent_goes(envelopes in 0_usize..12, more in 0_usize..4) {
        let mut society = four_agents();
        for n in 0..envelopes {
            let envelope = Envelope { id: format!("m{n}").into(), ..(*personal("a", &format!("number {n}"))).clone() };
            society.command(Command::Send { envelope: Arc::new(envelope) }, NOON).unwrap();
        }
        let goes = Command::Terminate { agent: "a".into(), children: Children::Cascade, reason: String::new(), now: false };
        society.command(goes, NOON).unwrap();
        for n in 0..more {
            let envelope = Envelope { id: format!("late{n}").into(), ..(*personal("a", "late")).clone() };
            prop_assert_eq!(society.command(Command::Send { envelope: Arc::new(envelope) }, NOON), Err(Refusal::Terminating("a".into())));
        }
        let mut done = Vec::new();
        while let Some((id, _)) = society.spine.turns.iter().next() {
            prop_assert!(!society.spine.terminated.contains_key(&AgentId::from("a")));
            let id = *id;
            done.extend(society.log.iter().find_map(|recorded| match &recorded.event {
                Event::TurnStarted { task, .. } if TurnId(recorded.seq) == id => Some(task.message.to_string()),
                _ => None,
            }));
            society.command(settle(id, "done"), NOON).unwrap();
        }
        let sent: Vec<_> = (0..envelopes).map(|n| format!("number {n}")).collect();
        prop_assert_eq!(done, sent);
        prop_assert!(society.spine.terminated.contains_key(&AgentId::from("a")));
    }

    /// P13: an organisation is read back from its document as it was, and a document that does not hold together is refused.
    #[test]
    fn an_organisation_is_read_back_as_it_was(parents in tree_shape(), broken in 0_usize..5, which in any::<usize>()) {
        let society = tree(&parents);
        let written = serde_json::to_string(&Org::of(&society.spine)).unwrap();
        let mut read: Org = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(&read, &Org::of(&society.spine));
        let place = 1 + which % parents.len();
        let sound = broken == 0;
        match broken {
            0 => {}
            1 => read.agents[place].parent_agent_id = Some("nobody".into()),
            2 => read.agents[place].role_id = "nothing".into(),
            3 => read.agents[place].parent_agent_id = Some(read.agents[place].id.clone()),
            _ => read.agents.push(read.agents[place].clone()),
        }
        let mut other = Society::found(Limits::default());
        let imported = other.command(Command::Import { org: Box::new(read), root: false }, NOON);
        prop_assert_eq!(imported.is_ok(), sound, "{:?}", imported);
        let names = if sound { everybody(&society) } else { vec![AgentId::root()] };
        prop_assert_eq!(everybody(&other), names, "all of it or nothing");
    }
}

fn tree_shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 1..12)
}
