//! Random societies: whatever they are asked, every law holds, and the log from zero is the live state.

use std::cell::RefCell;
use std::collections::BTreeSet;

use polis_domain::*;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::commands::{Chooser, CommandKind, commands, limits};
use crate::support::{NOON, Society};

pub(crate) type Steps = Vec<(CommandKind, u64)>;

pub(crate) fn societies() -> impl Strategy<Value = (Limits, Steps)> {
    (limits(), prop::collection::vec((commands(), any::<u64>()), 0..=240))
}

/// Lives one society; gives the names of the events and refusals that occurred.
fn live(limits: Limits, steps: Steps) -> BTreeSet<String> {
    let mut society = Society::found(limits);
    let mut now = NOON;
    let mut seen = BTreeSet::new();
    for (command, seed) in steps {
        let (command, at) = Chooser::new(&society.spine, now, seed).choose(command);
        now = at;
        match society.command(command, now) {
            Ok(events) => seen.extend(events.iter().flat_map(|(_, event)| names(event))),
            Err(refusal) => drop(seen.insert(refusal.code().to_owned())),
        }
        if seed % 32 == 0 {
            society.assert_replays();
            society.restart();
        }
    }
    society.assert_replays();
    society.assert_erases();
    seen
}

fn names(event: &Event) -> Vec<String> {
    let written = serde_json::to_value(event).expect("an event can be written");
    let name = written.as_str().or_else(|| written.as_object()?.keys().next().map(String::as_str));
    let name = name.expect("an event has a name").to_owned();
    match event {
        Event::EffectRefused { failure, .. } => vec![name, failure.code.to_string()],
        Event::TurnSettled { settlement: Settlement::Failed(failure), .. } => vec![name, failure.code.to_string()],
        Event::EffectStarted { effect: Effect::Tool(call), .. } if call.from.is_some() => {
            vec![name, "answeredFromLog".to_owned()]
        }
        Event::MemoryChanged { change, .. } => {
            let kind = match change {
                MemoryChange::Kept { .. } => "kept",
                MemoryChange::Erased { .. } => "erased",
                MemoryChange::TextsRemoved { .. } => "textsRemoved",
                MemoryChange::Switched { .. } => "switched",
                MemoryChange::Embedded { .. } => "embedded",
            };
            vec![name, kind.to_owned()]
        }
        Event::MessageDeadLettered { crashed, .. } => {
            vec![name, if *crashed { "crashedLetter" } else { "failedLetter" }.to_owned()]
        }
        Event::MessageSent { envelope, by: None } if !envelope.from.is_user() => {
            let notice = match (&envelope.kind, envelope.reply_to) {
                (MessageKind::Failure(_), ReplyTo::User) => "noticeToTop",
                (MessageKind::Failure(_), _) if !envelope.to.is_user() => "noticeToAgent",
                (MessageKind::Message, _) if envelope.payload.meta.get(Payload::FAILURE).is_some() => "noticeToPerson",
                _ => "",
            };
            vec![name, notice.to_owned()]
        }
        _ => vec![name],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_law_holds_after_every_event_and_the_log_from_zero_is_the_live_state((limits, steps) in societies()) {
        live(limits, steps);
    }
}

#[test]
fn random_societies_meet_every_event_and_every_refusal() {
    let config = ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let seen = RefCell::new(BTreeSet::new());
    let ran = runner.run(&societies(), |(limits, steps)| {
        seen.borrow_mut().extend(live(limits, steps));
        Ok(())
    });
    ran.unwrap();
    let events = [
        "societyFounded roleCreated agentSpawned messageSent inboxCleared turnStarted effectStarted effectEnded effectDoubted",
        "effectCleared effectRestarted effectRefused acted messageAdded messageUpdated settingsUpdated phaseSuggested",
        "phaseApplied suggestionDropped threadOpened threadLinked turnRested turnParked turnResumed turnSettled budgetsSet budgetGranted",
        "effectRetried toolAllowed callInquired callAnswered",
        "effectRetried toolAllowed agentDismissed agentTerminated contextCompressed contextRestored contextKept",
        "turnCrashed turnRevived messageDeadLettered crashedLetter failedLetter noticeToAgent noticeToTop noticeToPerson",
        "effectRetried toolAllowed planSet answeredFromLog roleChanged requestDone conversationStarted conversationChanged conversationErased erasureDone",
        "memoryChanged kept erased textsRemoved embedded",
    ];
    let refusals = [
        "already_founded to_user unknown_agent unknown_role name_taken bad_name unknown_task turn_not_open not_parked not_open",
        "not_waiting out_of_order text_too_long empty_text busy too_many_effects would_deadlock unknown_thread not_your_thread",
        "thread_busy no_such_message slot_taken foreign_task false_sender not_a_sub_thread budget_busy call_too_large not_yours policy_denied repeated_call",
        "bad_answer budget_exhausted",
        "too_many_hops message_loop too_many_turns same_role done_before key_reused",
        "leaving not_your_child has_children root_stays no_parent unknown_conversation too_many_agents nothing_to_compress nothing_to_restore",
        "unknown_memory too_many_memories erased_already conversation_busy",
    ];
    let expected = events.into_iter().chain(refusals).flat_map(str::split_whitespace);
    let missing: Vec<_> = expected.filter(|name| !seen.borrow().contains(*name) && *name != "societyFounded").collect();
    assert_eq!(missing, Vec::<&str>::new());
}
