//! The bed of tasks: whole requests over files, tools, several agents, long conversations and plans, done by scripted models of
//! three kinds. A model uses only what its requests show. So what the runtime does not show costs calls, or success where a fact
//! can be had only once.

mod conversations;
mod files;
mod meter;
mod mistakes;
mod model;
mod run;
mod task;
mod team;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use tokio::task::JoinSet;

use crate::figures::{Figures, Goal};
use crate::world;
use mistakes::Kind;
use run::Outcome;
use task::{Area, Task};

/// Tasks that run at the same time.
const AT_ONCE: usize = 8;

/// The figures of one kind of model over some tasks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Totals {
    tasks: usize,
    succeeded: usize,
    empty_handed: usize,
    calls: usize,
    sent: usize,
    cached: usize,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.tasks += 1;
        self.succeeded += usize::from(outcome.faults.is_empty());
        self.empty_handed += outcome.empty_handed.len();
        self.calls += outcome.calls;
        self.sent += outcome.sent;
        self.cached += outcome.cached;
    }

    fn cached_share(&self) -> f64 {
        self.cached as f64 / self.sent.max(1) as f64
    }
}

/// All tasks.
fn tasks() -> Vec<Task> {
    [files::files(), files::tools(), team::agents(), conversations::conversations(), team::plans()]
        .into_iter()
        .flatten()
        .collect()
}

/// What a kind of model makes of all tasks, in their order.
fn outcomes(kind: Kind) -> Result<Vec<(Arc<Task>, Outcome)>> {
    world::runtime()?.block_on(async {
        let mut waiting = tasks().into_iter().map(Arc::new).enumerate();
        let mut running = JoinSet::new();
        let mut done = BTreeMap::new();
        loop {
            for (place, task) in waiting.by_ref().take(AT_ONCE - running.len()) {
                running.spawn(async move { (place, task.clone(), run::run(task, kind).await) });
            }
            let Some(ended) = running.join_next().await else { break };
            let (place, task, outcome) = ended?;
            done.insert(place, (task, outcome?));
        }
        Ok(done.into_values().collect())
    })
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    println!("model   area           tasks  done  empty-handed  model calls  characters  cached");
    for kind in Kind::ALL {
        let outcomes = outcomes(kind)?;
        let mut areas = BTreeMap::<Area, Totals>::new();
        let mut all = Totals::default();
        for (task, outcome) in &outcomes {
            areas.entry(task.area).or_default().add(outcome);
            all.add(outcome);
            let problems = outcome.faults.iter().chain(&outcome.empty_handed);
            problems.for_each(|what| eprintln!("  {} {}: {what}", kind.name(), task.name));
        }
        for (area, totals) in &areas {
            println!("{}", row(kind, &format!("{area:?}").to_lowercase(), totals));
        }
        println!("{}", row(kind, "all", &all));
        let share = all.succeeded as f64 / all.tasks.max(1) as f64;
        let detail = format!("{} of {} tasks, {} model calls", all.succeeded, all.tasks, all.calls);
        let (name, goal) = match kind {
            Kind::Good => ("tasks, good model: share done", 1.0),
            Kind::Sloppy => ("tasks, sloppy model: share done", 0.9),
            Kind::Weak => ("tasks, weak model: share done", 0.5),
        };
        figures.add(name, share, Goal::AtLeast(goal), detail);
        if let (Kind::Good, Some((task, outcome))) = (kind, outcomes.first()) {
            let detail = format!("system message, tools and messages of the task `{}`", task.name);
            figures.add("tasks: characters of a first request", outcome.first as f64, Goal::AtMost(8_000.0), detail);
        }
        if kind == Kind::Weak {
            let detail = "requests that failed, or whose answer has neither a fact nor what was done".to_owned();
            figures.add("tasks, weak model: empty-handed", all.empty_handed as f64, Goal::AtMost(0.0), detail);
        }
    }
    Ok(())
}

fn row(kind: Kind, area: &str, totals: &Totals) -> String {
    let Totals { tasks, succeeded, empty_handed, calls, sent, .. } = totals;
    let cached = totals.cached_share() * 100.0;
    let name = kind.name();
    format!("{name:7} {area:13} {tasks:>6} {succeeded:>5} {empty_handed:>13} {calls:>12} {sent:>11} {cached:>5.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the figures of a kind of model may be at most, and at least. They are close to what was measured, so that a change which
    /// shows models less, or more than they need, is noticed.
    struct Limits {
        succeeded: usize,
        calls: usize,
        sent: usize,
        cached_share: f64,
    }

    fn check(kind: Kind, limits: &Limits) {
        let outcomes = outcomes(kind).unwrap();
        let mut all = Totals::default();
        outcomes.iter().for_each(|(_, outcome)| all.add(outcome));
        let problem = |(task, outcome): &(Arc<Task>, Outcome)| {
            let problems: Vec<&String> = outcome.empty_handed.iter().chain(&outcome.faults).collect();
            (!problems.is_empty()).then(|| format!("{}: {problems:?}", task.name))
        };
        let problems: Vec<String> = outcomes.iter().filter_map(problem).collect();
        assert_eq!(all.empty_handed, 0, "{problems:#?}");
        assert!(all.succeeded >= limits.succeeded, "{all:?} {problems:#?}");
        assert!(all.calls <= limits.calls && all.sent <= limits.sent, "{all:?}");
        assert!(all.cached_share() >= limits.cached_share, "{all:?}");
    }

    #[test]
    fn there_are_at_least_sixty_tasks_with_names_of_their_own() {
        let names: std::collections::BTreeSet<String> = tasks().into_iter().map(|task| task.name).collect();
        assert_eq!(names.len(), tasks().len());
        assert!(names.len() >= 60, "{}", names.len());
    }

    #[test]
    fn a_good_model_does_every_task() {
        check(Kind::Good, &Limits { succeeded: tasks().len(), calls: 700, sent: 8_000_000, cached_share: 0.8 });
    }

    #[test]
    fn a_sloppy_model_does_nearly_every_task() {
        check(Kind::Sloppy, &Limits { succeeded: 67, calls: 880, sent: 10_000_000, cached_share: 0.8 });
    }

    #[test]
    fn a_weak_model_never_ends_empty_handed() {
        check(Kind::Weak, &Limits { succeeded: 48, calls: 3_200, sent: 60_000_000, cached_share: 0.9 });
    }
}
