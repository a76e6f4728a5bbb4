//! Contents outside the log: kept once, found again by a second run, reported when they are not what they were.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Artifact, Event, Failure, Outcome, Resolution, Response, Verdict};
use polis_engine::{Agent, Cast, Ports, Society, Turn};
use polis_ports::Hasher;
use polis_testkit::{MemoryArtifacts, Op, ProgrammedAgent, ScriptedTools};

use crate::bed::{Bed, answer, ask, is_approval, open_effect, parked, submit};

#[tokio::test(start_paused = true)]
async fn what_a_turn_keeps_is_named_in_the_log_and_its_content_is_not() {
    let bed = Bed::new();
    let society = bed.open().await;
    assert_eq!(ask(&society, vec![Op::Keep("a long content".into())]).await.unwrap(), "kept:a long content");
    let (listed, total) = society.listing().list(0, 10).await;
    let want = Artifact::new(Hasher::id_of(b"a long content"), "kept.txt", "text/plain", 14);
    assert_eq!((total, &listed[0].artifact, listed[0].agent.as_ref().unwrap().as_str()), (1, &want, "root"));
    assert_eq!(society.listing().find(&want.id).await, Some(want));
    let named =
        |recorded: &polis_domain::Recorded| matches!(&recorded.event, Event::EffectEnded { outcome: Outcome::Kept(_), .. });
    assert_eq!(bed.events().iter().filter(|recorded| named(recorded)).count(), 1);
    // A content that nobody has said to anybody stands in no event.
    society.stop(Duration::ZERO).await;
    let society = Society::open("main".into(), bed.ports(bed.log.clone()), hopeful(), bed.options.clone()).await.unwrap();
    society.submit("go").await.unwrap();
    open_effect(&society, is_approval).await;
    assert!(bed.artifacts.holds(&Hasher::id_of(UNSAID)));
    let log = serde_json::to_string(&bed.events()).unwrap();
    assert!(log.contains(&Hasher::id_of(UNSAID).to_string()) && !log.contains("never said"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_second_run_gets_the_same_reference_also_when_it_could_not_be_kept_now() {
    let bed = Bed::new();
    let first = bed.open().await;
    let sent = submit(&first, vec![Op::Keep("one".into()), Op::Approve("go on?".into()), Op::Keep("two".into())]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;

    let second = bed.open().await;
    second.resolve(id, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "kept:one approved kept:two");
    assert_eq!(second.listing().list(0, 10).await.1, 2);

    assert_eq!(between(1_000, 3).await, "a", "it is named in the log, so nobody keeps it again");
}

#[tokio::test(start_paused = true)]
async fn a_content_that_is_too_large_fails_alike_in_every_run() {
    assert_eq!(between(3, 1_000).await, "artifact_too_large");
}

/// What the hopeful one says that kept its content where so many bytes are allowed, and was run again where others are.
async fn between(limit: u64, then: u64) -> String {
    let bed = Bed::new();
    let small = |limit| Ports { artifacts: Arc::new(MemoryArtifacts::limited(limit)), ..bed.ports(bed.log.clone()) };
    let first = Society::open("main".into(), small(limit), hopeful(), bed.options.clone()).await.unwrap();
    let sent = first.submit("go").await.unwrap();
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    let second = Society::open("main".into(), small(then), hopeful(), bed.options.clone()).await.unwrap();
    second.resolve(id, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    answer(&second, &sent).await.unwrap()
}

fn hopeful() -> Cast {
    Cast::new().with(ProgrammedAgent::NAME, Hopeful)
}

/// What it keeps.
const UNSAID: &[u8] = b"never said";

/// Keeps what may be too large, asks, and says how it went.
struct Hopeful;

impl Agent for Hopeful {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let kept = turn.put_artifact("a", "text/plain", UNSAID).await;
        turn.approve("go on?", ().into(), None).await?;
        Ok(Response::new(kept.map_or_else(|failure| failure.code.to_string(), |artifact| artifact.name.to_string())))
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_content_is_damaged_stands_still_until_it_is_put_back() {
    let bed = Bed::new();
    let society = bed.open().await;
    ask(&society, vec![Op::Keep("precious".into())]).await.unwrap();
    let id = Hasher::id_of(b"precious");
    let cast = Cast::new().with(ProgrammedAgent::NAME, Reader);
    society.stop(Duration::ZERO).await;
    let society = Society::open("main".into(), bed.ports(bed.log.clone()), cast, bed.options.clone()).await.unwrap();
    assert_eq!(answer(&society, &society.submit(&id.to_string()).await.unwrap()).await.unwrap(), "cious of 8");
    let unknown = Hasher::id_of(b"unknown").to_string();
    assert_eq!(answer(&society, &society.submit(&unknown).await.unwrap()).await.unwrap_err(), "unknown_artifact");
    bed.artifacts.spoil(id);
    let sent = society.submit(&id.to_string()).await.unwrap();
    let (turn, why) = parked(&society).await;
    assert_eq!(&*why.code, "artifact_damaged");
    polis_ports::Artifacts::put(&*bed.artifacts, b"precious".as_slice().into()).await.unwrap();
    society.resume(turn).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "cious of 8");
}

/// Reads the artifact that its task names.
struct Reader;

impl Agent for Reader {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let id = turn.task().message.parse().map_err(|_| Failure::new("bad_id", "no id"))?;
        let window = turn.artifact(&id, 3, 99).await?;
        Ok(Response::new(format!("{} of {}", String::from_utf8_lossy(&window.bytes), window.total)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_reaches_the_store_and_its_result_names_what_it_made() {
    let bed = Bed::new();
    let tools = ScriptedTools::new().with("make", polis_domain::EffectClass::Read, |_, context| {
        let mut draft = context.artifacts.store.draft().unwrap();
        draft.write(b"made").unwrap();
        let (id, bytes) = draft.keep().unwrap();
        let made = Artifact::new(id, "made.txt", "text/plain", bytes);
        polis_domain::CallResult::good("made").with_artifacts(vec![made])
    });
    let ports = Ports { toolbox: Arc::new(tools), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    assert_eq!(ask(&society, vec![Op::Call(vec![("make".into(), "".into())])]).await.unwrap(), "made");
    assert_eq!(&*society.listing().list(0, 1).await.0[0].artifact.name, "made.txt");
}

/// Says more than a message holds.
struct Talkative;

impl Agent for Talkative {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(long_answer()))
    }
}

/// More than 256 KiB; a character may not be cut in two.
fn long_answer() -> String {
    "很长".repeat(60_000)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_for_a_message_is_kept_with_its_beginning_in_the_thread() {
    let bed = Bed::new();
    let cast = Cast::new().with(ProgrammedAgent::NAME, Talkative);
    let society = Society::open("main".into(), bed.ports(bed.log.clone()), cast.clone(), bed.options.clone()).await.unwrap();
    let said = answer(&society, &society.submit("go").await.unwrap()).await.unwrap();
    let id = Hasher::id_of(long_answer().as_bytes());
    let (beginning, note) = said.split_once("\n\n[").unwrap();
    assert!(long_answer().starts_with(beginning) && beginning.len() > 60_000 && said.len() < 70_000, "{}", said.len());
    let want = format!(
        "The text goes on: all of it is artifact {id} (answer.txt, text/plain; charset=utf-8, 360000 bytes), which get_artifact reads, and `polis artifacts get {id}`.]"
    );
    assert_eq!(note, want);
    assert!(bed.artifacts.holds(&id));
    let settled = bed.events().into_iter().find_map(|recorded| match recorded.event {
        Event::TurnSettled { message, .. } => message,
        _ => None,
    });
    let attached = Artifact::attached(&settled.unwrap().meta);
    assert_eq!(attached.iter().map(|artifact| artifact.id).collect::<Vec<_>>(), [id]);

    // Where nothing can be kept, it is refused as before.
    let bed = Bed::new();
    let ports = Ports { artifacts: Arc::new(polis_ports::NoArtifacts), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, cast, bed.options.clone()).await.unwrap();
    assert_eq!(answer(&society, &society.submit("go").await.unwrap()).await.unwrap_err(), "text_too_long");
}
