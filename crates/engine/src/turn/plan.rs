//! The plan in the settings of the turn's own thread.

use polis_domain::{Act, Event, Failure, PLAN, Plan, Settings};
use polis_ports::ThreadRange;
use serde::Deserialize;

use super::Turn;

/// Events that are read at first to find a plan.
const NEWEST: usize = 64;

impl Turn {
    /// The plan of the turn's own thread, empty if there is none. The cost grows with the events since it was set.
    pub async fn plan(&mut self) -> Plan {
        let thread = self.start.thread.clone();
        let mut newest = NEWEST;
        loop {
            let range = ThreadRange { newest, ..ThreadRange::through(self.committed_position().await) };
            let events = self.read(&thread, range).await;
            let found = events.iter().rev().find_map(|recorded| match &recorded.event {
                Event::PlanSet { plan, .. } => Some(plan.clone()),
                Event::SettingsUpdated { settings, .. } | Event::ThreadOpened { settings, .. } => Some(plan_of(settings)),
                _ => None,
            });
            match found {
                Some(plan) => return plan,
                None if events.len() < newest => return Plan::default(),
                None => newest = newest.saturating_mul(4),
            }
        }
    }

    /// Sets the plan of the turn's own thread. It becomes part of the thread's settings.
    pub async fn set_plan(&mut self, plan: Plan) -> Result<(), Failure> {
        let thread = self.start.thread.clone();
        self.act(vec![Act::SetPlan { thread, plan }]).await.map(drop)
    }
}

fn plan_of(settings: &Settings) -> Plan {
    settings.rest.get(PLAN).and_then(|plan| Plan::deserialize(plan).ok()).unwrap_or_default()
}
