//! Forks: up to one the past is the same, and after it nothing is (P19).

use std::collections::BTreeSet;

use polis_domain::*;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::commands::Chooser;
use crate::random::{Steps, societies};
use crate::support::{NOON, Society};

/// Goes on with a society; gives the time when it is done.
fn live(society: &mut Society, steps: &Steps, mut now: Timestamp) -> Timestamp {
    for (command, seed) in steps {
        let (command, at) = Chooser::new(&society.spine, now, *seed).choose(*command);
        now = at;
        let _ = society.command(command, now);
    }
    now
}

/// The ids that came from the seed.
fn drawn(log: &[Recorded]) -> BTreeSet<String> {
    let id = |recorded: &Recorded| match &recorded.event {
        Event::TurnStarted { message: Some(id), .. } => Some(id.to_string()),
        event => event.envelope().map(|envelope| envelope.id.to_string()),
    };
    let is_drawn = |id: &String| id.rsplit('_').next().is_some_and(|tail| tail.len() == 36);
    log.iter().filter_map(id).filter(is_drawn).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fork_equals_the_other_up_to_its_place_and_shares_nothing_after((limits, steps) in societies(), at in any::<Index>()) {
        // Two societies each: a part of the steps is enough.
        let steps = &steps[..steps.len().min(60)];
        let (before, after) = steps.split_at(at.index(steps.len() + 1));
        let (mut ours, mut theirs) = (Society::found(limits), Society::found(limits));
        let now = live(&mut ours, &before.to_vec(), NOON);
        live(&mut theirs, &before.to_vec(), NOON);
        let shared = ours.log.len();
        let open = ours.spine.turns.clone();
        theirs.command(Command::Fork { from: "main".into(), seed: 99, request: None }, now).unwrap();
        prop_assert_eq!(&theirs.spine.turns, &open, "what was open is owed in both");
        live(&mut ours, &after.to_vec(), now);
        live(&mut theirs, &after.to_vec(), now);
        prop_assert_eq!(&ours.log[..shared], &theirs.log[..shared]);
        // A message that was sent before the fork may be read after it, in both.
        let before = drawn(&ours.log[..shared]);
        let both: BTreeSet<_> = drawn(&ours.log[shared..]).intersection(&drawn(&theirs.log[shared..])).cloned().collect();
        let both: Vec<_> = both.difference(&before).cloned().collect();
        prop_assert_eq!(both, Vec::<String>::new());
        ours.assert_replays();
        theirs.assert_replays();
        prop_assert_eq!(theirs.spine.seed_at(Seq(shared as u64)), ours.spine.seed);
        prop_assert_eq!(theirs.spine.seed_at(Seq(shared as u64 + 1)), 99);
    }
}
