//! Each property is broken once in the history of a real society, and the checker must say so.

use std::sync::{Arc, Mutex};

use polis_domain::{CallResult, SocietyId, Timestamp};
use polis_engine::{Cast, Ports};

use super::*;
use crate::{MemoryLog, Op, Program, ProgrammedAgent, ScriptedTools, open};

/// A history of three requests, each of which writes.
async fn sound() -> History {
    let effects = Arc::new(Mutex::new(Vec::new()));
    let done = effects.clone();
    let tools = ScriptedTools::new().with("add", EffectClass::Write, move |arguments, _| {
        let id = serde_json::from_str::<Value>(arguments).unwrap()["id"].as_str().unwrap().to_owned();
        done.lock().unwrap().push(id.clone());
        CallResult::good(format!("added {id}"))
    });
    let society = open(Cast::new().with("root", ProgrammedAgent), Ports::new(MemoryLog::new()).with_tools(tools)).await;
    let mut commands = Vec::new();
    let mut sent = Vec::new();
    for n in 0..3 {
        let id = format!("{{\"id\":\"{n}\"}}");
        let text = Program(vec![Op::Say(n.to_string()), Op::Call(vec![("add".to_owned(), id)])]).text();
        let told = society.submit(&text).await.unwrap();
        let acknowledged = Acknowledged {
            at: Duration::from_millis(10 * n + 5),
            task: told.task_id.clone(),
            agent: told.to.clone(),
            seq: told.seq,
        };
        commands.push(Command { text, sent: Duration::from_millis(10 * n), acknowledged: vec![acknowledged] });
        sent.push(told);
    }
    for told in &sent {
        society.answer(told).await.unwrap();
    }
    let log: Vec<Recorded> = society.log().read(&SocietyId::from("main"), Seq(0), usize::MAX).await.unwrap();
    let late = Duration::from_secs(1);
    let events = log.iter().cloned().map(|recorded| (late, recorded)).collect();
    let observations = vec![Observations { client: "ann".to_owned(), after: 0, events }];
    let a = Some("a".to_owned());
    let claim =
        Write { writer: "a".to_owned(), owner: [None, a.clone()], is_leased: [false, true], epoch: [0, 1], head: [0, 0] };
    let half = log.len() as u64 / 2;
    let first = Write { owner: [a.clone(), a.clone()], is_leased: [true; 2], epoch: [1; 2], head: [0, half], ..claim.clone() };
    let taken = Write {
        writer: "b".to_owned(),
        owner: [a, Some("b".to_owned())],
        is_leased: [false, true],
        epoch: [1, 2],
        head: [half, half],
    };
    let rest = Write {
        owner: [Some("b".to_owned()), Some("b".to_owned())],
        is_leased: [true; 2],
        epoch: [2; 2],
        head: [half, log.len() as u64],
        ..taken.clone()
    };
    let effects = effects.lock().unwrap().clone();
    History { log, commands, observations, effects, writes: vec![claim, first, taken, rest] }
}

/// Breaks a sound history; gives what the checker says.
async fn broken(act: impl FnOnce(&mut History)) -> String {
    let mut history = sound().await;
    act(&mut history);
    history.check().unwrap_err().join("\n")
}

/// Like [`broken`] where clients have seen nothing, so that only the log speaks.
async fn broken_log(act: impl FnOnce(&mut Vec<Recorded>)) -> String {
    broken(|history| {
        history.observations.clear();
        act(&mut history.log);
    })
    .await
}

fn place(log: &[Recorded], wanted: impl Fn(&Event) -> bool) -> usize {
    log.iter().position(|recorded| wanted(&recorded.event)).unwrap()
}

fn last_place(log: &[Recorded], wanted: impl Fn(&Event) -> bool) -> usize {
    log.iter().rposition(|recorded| wanted(&recorded.event)).unwrap()
}

/// Exchanges two events, each of which gets the position of the other.
fn exchange(log: &mut [Recorded], one: usize, other: usize) {
    log.swap(one, other);
    let seq = log[one].seq;
    log[one].seq = log[other].seq;
    log[other].seq = seq;
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::TurnStarted { .. })
}

fn is_intent(event: &Event) -> bool {
    matches!(event, Event::EffectStarted { effect: Effect::Tool(_), .. })
}

#[tokio::test(start_paused = true)]
async fn a_sound_history_is_accepted() {
    let summary = sound().await.check().unwrap();
    assert_eq!((summary.acknowledged, summary.effects, summary.doubted, summary.takeovers), (3, 3, 0, 1));
    assert_eq!(summary.events, summary.observed);
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_log_and_a_lost_repeated_or_foreign_command_are_refused() {
    let gap = broken_log(|log| drop(log.remove(4))).await;
    assert!(gap.contains("the log has event 6 at position 5"), "{gap}");
    let lost = broken(|history| {
        let never = Command { text: "never".to_owned(), ..history.commands[0].clone() };
        history.commands.push(never);
    })
    .await;
    assert!(lost.contains("`never` was acknowledged and is not in the log"), "{lost}");
    let twice = broken_log(|log| {
        let at = place(log, |event| matches!(event, Event::MessageSent { .. }));
        let again = Recorded { seq: Seq(log.len() as u64 + 1), ..log[at].clone() };
        log.push(again);
    })
    .await;
    assert!(twice.contains("is in the log 2 times"), "{twice}");
    let foreign = broken(|history| drop(history.commands.remove(1))).await;
    assert!(foreign.contains("is in the log and nobody sent it"), "{foreign}");
    let elsewhere = broken(|history| history.commands[2].acknowledged[0].seq.0 += 1).await;
    assert!(elsewhere.contains("and is elsewhere"), "{elsewhere}");
    // A command that nobody acknowledged may be there or not.
    let mut history = sound().await;
    history.commands[2].acknowledged.clear();
    history.commands.push(Command { text: "lost".to_owned(), sent: Duration::ZERO, acknowledged: Vec::new() });
    assert_eq!(history.check().unwrap().acknowledged, 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_before_what_was_known_when_it_was_sent_is_refused() {
    let told = broken(|history| {
        history.commands[0].sent = Duration::from_millis(50);
        history.commands[0].acknowledged[0].at = Duration::from_millis(51);
    })
    .await;
    assert!(told.contains("was known before it was sent"), "{told}");
    let seen = broken(|history| {
        history.observations[0].events.iter_mut().for_each(|(at, _)| *at = Duration::ZERO);
        history.commands[1].sent = Duration::from_millis(1);
    })
    .await;
    assert!(seen.contains("was known before it was sent"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_a_gap_a_double_another_event_or_an_early_end_is_refused() {
    let of = |act: fn(&mut Vec<(Duration, Recorded)>)| broken(move |history| act(&mut history.observations[0].events));
    let gap = of(|events| drop(events.remove(3))).await;
    assert!(gap.contains("ann saw event 5 after event 3"), "{gap}");
    let double = of(|events| events.insert(3, events[2].clone())).await;
    assert!(double.contains("ann saw event 3 after event 3"), "{double}");
    let other = of(|events| events[3].1.at = Timestamp(1)).await;
    assert!(other.contains("ann saw another event 4 than the log has"), "{other}");
    let more = of(|events| {
        let (at, last) = events.last().unwrap().clone();
        events.push((at, Recorded { seq: last.seq.next(), ..last }));
    })
    .await;
    assert!(more.contains("which the log does not have"), "{more}");
    let end = of(|events| drop(events.pop())).await;
    assert!(end.contains("ann saw nothing after"), "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_happened_twice_unannounced_or_not_at_all_is_refused() {
    let twice = broken(|history| history.effects.push("1".to_owned())).await;
    assert!(twice.contains("a write happened 2 times: 1"), "{twice}");
    let unannounced = broken(|history| history.effects.push("9".to_owned())).await;
    assert!(unannounced.contains("a write happened without an intent in the log: 9"), "{unannounced}");
    let missing = broken(|history| history.effects.retain(|id| id != "2")).await;
    assert!(missing.contains("the result of a write that did not happen: 2"), "{missing}");
}

#[tokio::test(start_paused = true)]
async fn messages_out_of_order_two_turns_at_once_and_missing_or_repeated_answers_are_refused() {
    let order = broken_log(|log| {
        let (first, last) = (place(log, is_start), last_place(log, is_start));
        exchange(log, first, last);
    })
    .await;
    assert!(order.contains("came before it"), "{order}");
    let parallel = broken_log(|log| {
        let settled = place(log, |event| matches!(event, Event::TurnSettled { .. }));
        let next = settled + log[settled..].iter().position(|recorded| is_start(&recorded.event)).unwrap();
        exchange(log, settled, next);
    })
    .await;
    assert!(parallel.contains("has two turns"), "{parallel}");
    let endless = broken_log(|log| {
        let settled = last_place(log, |event| matches!(event, Event::TurnSettled { .. }));
        log.truncate(settled);
    })
    .await;
    assert!(endless.contains("never ended") && endless.contains("was answered 0 times"), "{endless}");
    let again = broken_log(|log| {
        let is_answer = |event: &Event| event.envelope().is_some_and(|envelope| envelope.kind == MessageKind::Answer);
        let answer = Recorded { seq: Seq(log.len() as u64 + 1), ..log[place(log, is_answer)].clone() };
        log.push(answer);
    })
    .await;
    assert!(again.contains("was answered 2 times"), "{again}");
    let untaken = broken_log(|log| {
        let start = last_place(log, is_start);
        log.truncate(start);
    })
    .await;
    assert!(untaken.contains("1 messages to root were never taken"), "{untaken}");
    assert!(place(&sound().await.log, is_intent) > 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_by_another_than_the_owner_or_under_an_older_epoch_is_refused() {
    let of = |act: fn(&mut Vec<Write>)| broken(move |history| act(&mut history.writes));
    let foreign = of(|writes| writes[3].writer = "a".to_owned()).await;
    assert!(foreign.contains("a wrote without a lease") && foreign.contains("the owner is b"), "{foreign}");
    let late = of(|writes| writes[1].is_leased[1] = false).await;
    assert!(late.contains("a wrote without a lease"), "{late}");
    let fell = of(|writes| writes[3].epoch = [1, 1]).await;
    assert!(fell.contains("the epoch fell to 1") && fell.contains("two nodes own the society"), "{fell}");
    let robbed = of(|writes| writes[2].is_leased[0] = true).await;
    assert!(robbed.contains("b took the society from a, whose lease had not ended"), "{robbed}");
    let torn = of(|writes| writes[3].head[0] += 1).await;
    assert!(torn.contains("which is not the end of the write before it"), "{torn}");
}
