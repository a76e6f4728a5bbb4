//! Erasing conversations: nothing of one is left, others go on, and an erasure that was interrupted ends at the next opening.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{AgentId, Event, OpenKind, Recorded, Refusal, Seq, SocietyId, Verdict};
use polis_domain::{Outcome, Resolution};
use polis_engine::{CommandError, ConversationStart, Sent, Society, replay};
use polis_ports::{Log, LogError};
use polis_testkit::{Gate, GatedLog, Op, Program};
use serde_json::Map;

use crate::bed::*;

const CANARY: &str = "Kanarienvogel-7731";

async fn converse(society: &Society, ops: Vec<Op>) -> Sent {
    society.converse(ConversationStart::default(), &Program(ops).text(), None, Map::new()).await.unwrap()
}

fn think(text: &str) -> Op {
    Op::Think(text.to_owned())
}

fn has_canary(events: &[Recorded]) -> bool {
    events.iter().any(|recorded| serde_json::to_string(recorded).unwrap().contains(CANARY))
}

fn count(events: &[Recorded], which: fn(&Event) -> bool) -> usize {
    events.iter().filter(|recorded| which(&recorded.event)).count()
}

/// A conversation that is done, another that is done, and one that waits for a person.
async fn begun(bed: &Bed) -> (AgentId, AgentId, Sent) {
    let society = bed.open().await;
    let erased = converse(&society, vec![think(CANARY), think("more")]).await;
    assert!(answer(&society, &erased).await.unwrap().contains(CANARY));
    let other = converse(&society, vec![think("another")]).await;
    answer(&society, &other).await.unwrap();
    let waiting = converse(&society, vec![Op::Approve("may I?".to_owned())]).await;
    open_effect(&society, |kind, _| matches!(kind, OpenKind::Approval(_))).await;
    society.stop(PATIENCE).await;
    (erased.to, other.to, waiting)
}

#[tokio::test(start_paused = true)]
async fn nothing_of_an_erased_conversation_is_left_and_others_go_on() {
    let bed = Bed::new();
    let (erased, other, waiting) = begun(&bed).await;
    let society = bed.open().await;
    let of_others = |events: Vec<Recorded>| {
        events.into_iter().filter(|recorded| recorded.thread.as_ref() != Some(&erased.main_thread())).collect::<Vec<_>>()
    };
    let before: Vec<_> =
        of_others(bed.events()).into_iter().filter(|recorded| !has_canary(std::slice::from_ref(recorded))).collect();
    assert!(has_canary(&bed.events()));
    assert!(society.erase_conversation(erased.clone()).await.unwrap());
    assert!(!has_canary(&bed.events()), "{:#?}", bed.events());
    let after = bed.events();
    assert!(before.iter().all(|recorded| after.contains(recorded)), "what belongs to others is as it was");
    assert!(!society.erase_conversation(erased.clone()).await.unwrap(), "nothing is left to erase");
    assert_eq!(bed.events().len(), after.len());
    let unknown = society.erase_conversation("nobody".into()).await;
    assert!(matches!(unknown, Err(CommandError::Refused(Refusal::UnknownConversation(_)))), "{unknown:?}");
    let root = society.erase_conversation(AgentId::root()).await;
    assert!(matches!(root, Err(CommandError::Refused(Refusal::RootStays))), "{root:?}");

    // The turn that waited was not disturbed, and the idle one is loaded from the new state.
    let approval = open_effect(&society, |kind, _| matches!(kind, OpenKind::Approval(_))).await;
    society.resolve(approval, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    assert!(answer(&society, &waiting).await.is_ok());
    let again = society.send(other, &Program(vec![think("once more")]).text(), None).await.unwrap();
    assert!(answer(&society, &again).await.unwrap().contains("once more"));
    society.stop(PATIENCE).await;
    let replayed = replay(&"main".into(), &bed.ports(bed.log.clone()), &bed.cast).await.unwrap();
    assert_eq!((replayed.divergences, replayed.erased), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_goes_on_is_ended_with_its_requests_and_erased() {
    let bed = Bed::new();
    let society = bed.open().await;
    let open = converse(&society, vec![think(CANARY), Op::Approve(CANARY.to_owned())]).await;
    open_effect(&society, |kind, _| matches!(kind, OpenKind::Approval(_))).await;
    assert!(society.erase_conversation(open.to.clone()).await.unwrap());
    assert!(!has_canary(&bed.events()));
    assert!(society.look(|spine| spine.turns.is_empty() && spine.erasing.is_empty()).await.unwrap());
    assert!(society.send(open.to, "are you there?", None).await.is_err());
}

/// A log that does so many more things, and then fails for good.
struct Ends(AtomicIsize);

#[async_trait]
impl Gate for Ends {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        self.is_settled()?;
        log.append(society, expected, events).await
    }

    fn is_settled(&self) -> Result<(), LogError> {
        match self.0.fetch_sub(1, Ordering::Relaxed) {
            left if left > 0 => Ok(()),
            _ => Err(LogError::Failed("the end".into())),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_erasure_that_ends_anywhere_is_done_at_the_next_opening() {
    let (mut ends, mut was_late) = (0, 0);
    for steps in 1.. {
        let bed = Bed::new();
        let (erased, _, waiting) = begun(&bed).await;
        let gate = Ends(AtomicIsize::new(isize::MAX));
        let log = Arc::new(GatedLog { log: bed.log.clone(), gate });
        let society = bed.open_on(log.clone()).await;
        log.gate.0.store(steps, Ordering::Relaxed);
        let done = society.erase_conversation(erased.clone()).await;
        society.stop(Duration::ZERO).await;
        drop(society);

        let begun = count(&bed.events(), |event| matches!(event, Event::ConversationErased { .. })) > 0;
        let society = bed.open().await;
        assert_eq!(has_canary(&bed.events()), !begun, "after {steps} steps: it is all there, or the opening has ended it");
        was_late += usize::from(begun && done.is_err());
        if begun {
            assert_eq!(count(&bed.events(), |event| matches!(event, Event::ErasureDone { .. })), 1, "after {steps} steps");
        }
        assert_eq!(society.erase_conversation(erased).await.unwrap(), !begun);
        assert!(!has_canary(&bed.events()));
        let approval = open_effect(&society, |kind, _| matches!(kind, OpenKind::Approval(_))).await;
        society.resolve(approval, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
        assert!(answer(&society, &waiting).await.is_ok(), "after {steps} steps");
        ends += 1;
        if done.is_ok() && log.gate.0.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    assert!(ends > 5 && was_late > 2, "{ends} ends, {was_late} of them after the intent");
}
