//! Agents that are sent away: their work is done first, over a crash too, and what is too late is told.

use std::time::Duration;

use polis_domain::{AgentId, Children, Event, OpenKind};
use polis_testkit::{Op, Program};

use crate::bed::{Bed, answer, ask, call, open_effect, spawn, submit};

fn terminated(bed: &Bed) -> Vec<String> {
    let gone = |event: Event| match event {
        Event::AgentTerminated { agent } => Some(agent.to_string()),
        _ => None,
    };
    bed.events().into_iter().filter_map(|recorded| gone(recorded.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_parent_waits_until_its_child_has_done_what_waits_over_a_crash() {
    let mut bed = Bed::new();
    bed.options.max_lingering = 0;
    let first = bed.open().await;
    let slow = Program(vec![Op::Sleep(5_000), call("mark", "child")]);
    let sent = submit(&first, vec![Op::Spawn("child".into()), Op::Sleep(1_000), Op::Terminate("child".into(), 60_000)]).await;
    open_effect(&first, |kind, _| *kind == OpenKind::Sleep).await;
    first.send("child".into(), &slow.text(), None).await.unwrap();
    open_effect(&first, |kind, _| matches!(kind, OpenKind::Terminate(_))).await;
    let refused = first.send("child".into(), "more", None).await.unwrap_err();
    assert_eq!(refused.code(), "leaving");
    first.stop(Duration::ZERO).await;
    assert_eq!((bed.writes(), terminated(&bed).len()), (0, 0), "it is still at it");

    let second = bed.open().await;
    assert_eq!(answer(&second, &sent).await.unwrap(), "spawned slept gone");
    assert_eq!((bed.writes(), terminated(&bed)), (1, vec!["child".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_goes_undone_and_whoever_waits_is_told() {
    let bed = Bed::new();
    let society = bed.open().await;
    let ops = vec![Op::Spawn("child".into()), Op::Sleep(1_000), Op::Terminate("child".into(), 2_000)];
    let sent = submit(&society, ops).await;
    open_effect(&society, |kind, _| *kind == OpenKind::Sleep).await;
    let slow = society.send("child".into(), &Program(vec![Op::Sleep(3_600_000)]).text(), None).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "spawned slept gone");
    assert_eq!(answer(&society, &slow).await, Err("terminated".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn only_a_parent_may_and_a_person_may_always() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a", "b"]).await;
    let rude = Program(vec![Op::Terminate("b".into(), 1_000)]);
    let ops = vec![Op::Ask { agent: "a".into(), program: rude, patience_ms: 10_000 }];
    assert_eq!(ask(&society, ops).await.unwrap(), "[!not_your_child]");
    society.terminate("b".into(), Children::Cascade, "enough", false).await.unwrap();
    assert_eq!(terminated(&bed), ["b"]);
    let root = society.terminate(AgentId::root(), Children::Cascade, "", true).await.unwrap_err();
    assert_eq!(root.code(), "root_stays");
}
