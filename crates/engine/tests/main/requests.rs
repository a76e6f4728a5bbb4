//! Several agents asked at once: answers come in the order of the log, in memory or outside it, before a restart or after it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use polis_domain::{Event, Failure, Response, Seq};
use polis_engine::{Agent, Cast, Options, Request, Requests, Turn};
use polis_ports::Log;
use polis_testkit::{Op, Program, ProgrammedAgent, worker_role};
use serde_json::Map;

use crate::bed::{Bed, answer, spawn};

/// Asks all at once and thinks about each answer as it comes.
struct Asks;

impl Agent for Asks {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let asked = [("a", 3_000), ("b", 1_000), ("c", 60_000), ("nobody", 1), ("d", 2_000)].map(|(name, ms)| Request {
            to: name.into(),
            text: Program(vec![Op::Sleep(ms), Op::Say(name.into())]).text(),
            patience: Duration::from_secs(10),
            meta: Map::new().into(),
        });
        let mut requests = Requests::default();
        let mut words = Vec::new();
        for sent in turn.request(asked.to_vec()).await {
            match sent {
                Ok(open) => requests.push(open),
                Err(failure) => words.push(failure.code.to_string()),
            }
        }
        while let Some((_, answer)) = turn.next_answer(&mut requests).await {
            let word = answer.map_or_else(|failure| failure.code.to_string(), |text| text.to_string());
            words.push(turn.generate(&*word).await?);
        }
        assert!(requests.is_empty());
        Ok(Response::new(words.join(" ")))
    }
}

const TOLD: &str = "unknown_agent thought(slept said:b) thought(slept said:d) thought(slept said:a) thought(timed_out)";

fn bed(max_running: usize, max_lingering: usize) -> Bed {
    let mut bed = Bed::new();
    bed.cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent).with("asks", Asks);
    bed.options = Options { max_running, max_lingering, ..Options::new(7, polis_domain::Role::new("root", "asks")) };
    bed
}

#[tokio::test(start_paused = true)]
async fn answers_come_in_the_order_of_the_log_wherever_the_turn_waits() {
    for (max_running, max_lingering) in [(1, 0), (2, 1), (4_096, 0), (4_096, 1_024)] {
        let bed = bed(max_running, max_lingering);
        let society = bed.open().await;
        society.create_role(worker_role()).await.unwrap();
        spawn(&society, &["a", "b", "c", "d"]).await;
        let sent = society.submit("go").await.unwrap();
        assert_eq!(answer(&society, &sent).await.unwrap(), TOLD, "{max_running} slots and {max_lingering} to linger");
        assert_eq!(bed.thoughts.load(Ordering::Relaxed), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_several_goes_on_after_a_restart_at_any_event() {
    let whole = bed(4_096, 1_024);
    let society = whole.open().await;
    society.create_role(worker_role()).await.unwrap();
    spawn(&society, &["a", "b", "c", "d"]).await;
    let sent = society.submit("go").await.unwrap();
    answer(&society, &sent).await.unwrap();
    society.stop(Duration::from_secs(100)).await;
    let events = whole.log.events(&"main".into());
    for end in sent.seq.0 + 1..=events.len() as u64 {
        let end = whole.log.whole(&"main".into(), Seq(end)).await.unwrap();
        let bed = bed(4_096, 0);
        bed.log.append(&"main".into(), Seq(0), &events[..end.0 as usize]).await.unwrap();
        let society = bed.open().await;
        assert_eq!(answer(&society, &sent).await.unwrap(), TOLD, "stopped after {end}");
        let said = events[..end.0 as usize]
            .iter()
            .filter(|recorded| matches!(&recorded.event, Event::EffectEnded { outcome: polis_domain::Outcome::Reply(_), .. }));
        assert_eq!(bed.thoughts.load(Ordering::Relaxed), 4 - said.count(), "stopped after {end}");
    }
}
