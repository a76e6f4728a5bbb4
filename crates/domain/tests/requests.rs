//! Requests with idempotency keys: each is done once, and a repeat finds what it did.

use polis_domain::*;

use crate::commands::Chooser;
use crate::support::*;

impl Chooser<'_> {
    /// What comes from outside may have a key, one of a few.
    pub(crate) fn with_key(&mut self, command: Command) -> Command {
        match command {
            Command::Send { .. } | Command::Cancel { .. } | Command::Resolve { .. } | Command::Terminate { .. } => {
                let key = IdempotencyKey(self.roll(6) as u128);
                let request = Request { key, fingerprint: Digest::of([["one", "other"][self.roll(2)]]) };
                Command::Once { request, command: Box::new(command) }
            }
            command => command,
        }
    }
}

fn once(key: u128, text: &str) -> Command {
    let request = Request { key: IdempotencyKey(key), fingerprint: Digest::of([text]) };
    Command::Once { request, command: Box::new(submit("a", text)) }
}

#[test]
fn a_request_with_a_key_is_done_once_and_its_effect_is_found_again() {
    let mut society = four_agents();
    let head = society.spine.seq;
    let first = society.command(once(7, "go"), NOON).unwrap();
    let count = first.len() as u64;
    assert!(matches!(first[0].1, Event::MessageSent { .. }), "{first:?}");
    let refused = society.command(once(7, "go"), NOON).unwrap_err();
    let Refusal::DoneBefore(done) = refused else { panic!("{refused}") };
    assert_eq!((done.seq, u64::from(done.events)), (Seq(head.0 + count), count - 1));
    assert_eq!(society.command(once(7, "another"), NOON), Err(Refusal::KeyReused));
    assert_eq!(society.log.len() as u64, head.0 + count, "a repeat leaves no event");
    society.restart();
    assert!(matches!(society.command(once(7, "go"), NOON), Err(Refusal::DoneBefore(_))), "also after a restart");
    society.command(once(8, "another"), NOON).unwrap();
    society.assert_replays();
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    let mut society = four_agents();
    let to_nobody = |to: &str| Command::Once {
        request: Request { key: IdempotencyKey(1), fingerprint: Digest::of(["x"]) },
        command: Box::new(submit(to, "go")),
    };
    assert!(matches!(society.command(to_nobody("nobody"), NOON), Err(Refusal::UnknownAgent(_))));
    society.command(to_nobody("a"), NOON).unwrap();
}
