//! What goes wrong in a run, drawn from a seed.

use std::time::Duration;

use polis_domain::mix;
use polis_testkit::link::Passage;

/// One thing that goes wrong, and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// `kill -9`; at the end another process takes its place.
    Kill,
    /// The process is stopped with SIGSTOP, and goes on at the end.
    Pause,
    /// The node and the database do not hear of each other.
    Database(Passage),
    /// The other nodes do not reach this one.
    Peers(Passage),
    /// No node reaches another one.
    AllPeers(Passage),
    /// The clock of the node jumps by so many seconds. It stays there.
    Clock(i64),
    /// The disk of the database is full.
    FullDisk,
}

/// Which node a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    /// The one that owns this society, by its number.
    Owner(usize),
    Node(usize),
}

/// A fault, whom it hits and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) fault: Fault,
    pub(super) victim: Victim,
    pub(super) lasts: Duration,
}

/// The names of faults in `POLIS_TEST_FAULTS`.
pub(super) const NAMES: [&str; 7] = ["kill", "pause", "database", "peers", "mesh", "clock", "disk"];

/// Faults without end. The same seed gives the same ones.
pub(super) struct Schedule {
    state: u64,
    names: Vec<String>,
    lease: Duration,
    /// What comes next of a round, in which each kind comes once.
    round: Vec<String>,
}

impl Schedule {
    /// Faults of these names.
    pub(super) fn new(seed: u64, names: &[&str], lease: Duration) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert!(!names.is_empty() && names.iter().all(|name| NAMES.contains(&&**name)), "faults are some of {NAMES:?}");
        Self { state: mix(seed), names, lease, round: Vec::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state = mix(self.state.wrapping_add(1));
        self.state % limit
    }

    fn passage(&mut self) -> Passage {
        if self.below(2) == 0 { Passage::Cut } else { Passage::Held }
    }

    pub(super) fn next(&mut self) -> Step {
        if self.round.is_empty() {
            self.round = self.names.clone();
        }
        let at = self.below(self.round.len() as u64) as usize;
        let name = self.round.swap_remove(at);
        // Most faults are worst for an owner.
        let victim = match self.below(4) {
            0 => Victim::Node(self.below(3) as usize),
            n => Victim::Owner(n as usize % 2),
        };
        // What is to cost a lease lasts longer than it.
        let long = self.lease + Duration::from_millis(500 + self.below(1_500));
        let short = Duration::from_millis(500 + self.below(1_500));
        let either = if self.below(3) == 0 { short } else { long };
        let (fault, lasts) = match &*name {
            "kill" => (Fault::Kill, short),
            "pause" => (Fault::Pause, long),
            "database" => (Fault::Database(self.passage()), either),
            "peers" => (Fault::Peers(self.passage()), either),
            "mesh" => (Fault::AllPeers(self.passage()), either),
            "clock" => (Fault::Clock([-86_400, -60, 60, 86_400][self.below(4) as usize]), short),
            _ => (Fault::FullDisk, short),
        };
        Step { fault, victim, lasts }
    }
}

#[test]
fn a_seed_draws_the_same_faults_again_and_each_kind_in_each_round() {
    let draw = |seed| {
        let mut schedule = Schedule::new(seed, &NAMES, Duration::from_secs(3));
        (0..70).map(|_| schedule.next()).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    for round in draw(7).chunks(NAMES.len()) {
        let kinds: std::collections::BTreeSet<_> =
            round.iter().map(|step| format!("{:?}", step.fault).split('(').next().unwrap().to_owned()).collect();
        assert_eq!(kinds.len(), NAMES.len());
    }
}
