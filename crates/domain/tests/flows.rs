//! What comes from outside and what leaves: an auditor who learns from the log alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polis_domain::*;

use crate::commands::Chooser;
use crate::invariants::Law;
use crate::laws::law;
use crate::support::*;

/// What an auditor knows of the content that requests have read. It follows no agent from request to request and no file, so
/// that a request may be more suspect than it knows, and never less.
#[derive(Default)]
pub(crate) struct Flows {
    tasks: BTreeMap<TurnId, TaskId>,
    read: BTreeMap<TaskId, Read>,
    open: BTreeMap<EffectId, Flow>,
    pins: BTreeMap<Arc<str>, Arc<str>>,
}

#[derive(Default)]
struct Read {
    outside: bool,
    private: bool,
    made: BTreeSet<Arc<str>>,
}

impl Flows {
    /// A call that nobody was asked about neither sends private data out nor destroys anything after outside content was
    /// read, and its tool is the one that was used before.
    pub(crate) fn audit(&mut self, recorded: &Recorded) -> Law {
        match &recorded.event {
            Event::TurnStarted { task, .. } => {
                self.tasks.insert(TurnId(recorded.seq), task.id.clone());
            }
            Event::ToolPinned { tool, identity, .. } => {
                self.pins.insert(tool.clone(), identity.clone());
            }
            Event::EffectStarted { id, effect: Effect::Tool(call), .. } => {
                let read = self.read.entry(self.tasks[&id.turn].clone()).or_default();
                let flow = &call.flow;
                if call.ruling == Ruling::Allow && call.from.is_none() {
                    let is_made = flow.target.as_ref().is_some_and(|target| read.made.contains(target));
                    let is_free = flow.named || flow.exempt || !read.outside;
                    law!(is_free || !flow.sends || !read.private, "{id} sends private data");
                    law!(is_free || !flow.destroys || is_made, "{id} destroys something");
                    let is_same = call.identity.iter().all(|now| self.pins.get(&call.tool).is_none_or(|pin| pin == now));
                    law!(is_same, "{id} calls a tool that has changed");
                }
                read.made.extend(flow.target.clone().filter(|_| flow.stores && !flow.destroys));
                self.open.insert(*id, flow.clone());
            }
            // Calls of one reply were written before any of them brought something.
            Event::EffectEnded { id, .. } => {
                if let Some(flow) = self.open.remove(id) {
                    let read = self.read.entry(self.tasks[&id.turn].clone()).or_default();
                    read.outside |= flow.outside.is_some();
                    read.private |= flow.private;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Chooser<'_> {
    /// Where the content of a call comes from and goes.
    pub(crate) fn flow(&mut self) -> Flow {
        Flow {
            outside: Some("a page".into()).filter(|_| self.one_in(3)),
            private: self.one_in(3),
            recalls: self.one_in(4),
            recalls_artifacts: self.one_in(8),
            file: Some(["a.txt", "b.txt"][self.roll(2)].into()).filter(|_| self.one_in(2)),
            stores: self.one_in(4),
            sends: self.one_in(2),
            destroys: self.one_in(3),
            target: Some(["a.txt", "b.txt"][self.roll(2)].into()).filter(|_| self.one_in(2)),
            named: self.one_in(8),
            exempt: self.one_in(8),
        }
    }
}

/// The agreed call of a batch pins the new definition, so the next call of that batch may not use the old one unasked.
#[test]
fn a_definition_pinned_in_a_batch_counts_for_the_rest_of_that_batch() {
    let uses = |identity: &str, ruling: Ruling| {
        let Effect::Tool(mut made) = call(EffectClass::Read) else { unreachable!() };
        made.ruling = ruling;
        (made.identity, made.definition) = (Some(identity.into()), Some(identity.into()));
        Effect::Tool(made)
    };
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    let batch = vec![uses("second", Ruling::Approved), uses("first", Ruling::Allow), uses("second", Ruling::Allow)];
    let events = society.command(begin(effect(8, 0), batch), NOON).unwrap();
    let started: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::EffectStarted { effect: Effect::Tool(_), .. } => Some("call"),
            Event::EffectStarted { effect: Effect::Approval { .. }, .. } => Some("approval"),
            _ => None,
        })
        .collect();
    assert_eq!(started, ["call", "approval", "call"]);
}
