//! Phases: suggested, then applied before the next task; each thread has its own (R038-R052).

use polis_domain::{Event, Failure, Phase, Response, Task};
use polis_engine::{Agent, Cast, Phases, StateHandler, Turn};
use serde_json::{Map, json};

use crate::bed::{Bed, answer};

/// Says where it is.
struct Reports;

impl StateHandler for Reports {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.phase().as_str()))
    }
}

/// Goes its own way whatever the configuration says.
struct Wilful;

impl StateHandler for Wilful {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.suggest_phase(phase("completed")).await?;
        Ok(Response::new(turn.phase().as_str()))
    }
}

/// Goes where nobody is.
struct Leaves;

impl StateHandler for Leaves {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.phase().as_str()).to_phase(phase("nowhere")))
    }
}

fn phase(name: &str) -> Phase {
    Phase::new(name).unwrap()
}

fn bed(agent: Phases) -> Bed {
    Bed { cast: Cast::new().with("programmed", agent), ..Bed::new() }
}

async fn say(society: &polis_engine::Society, meta: Map<String, serde_json::Value>) -> Result<String, String> {
    let sent = society.send_with_meta("root".into(), "next", None, meta).await.unwrap();
    answer(society, &sent).await
}

#[tokio::test(start_paused = true)]
async fn a_suggested_phase_is_applied_before_the_next_task() {
    let agent = Phases::new()
        .on("initial_phase", Reports)
        .then("drafting")
        .on("drafting", Reports)
        .then("completed")
        .on("completed", Reports);
    let bed = bed(agent);
    let society = bed.open().await;
    for expected in ["initial_phase", "drafting", "completed", "completed"] {
        assert_eq!(say(&society, Map::new()).await.unwrap(), expected);
    }
    let applied = bed.events().iter().filter(|recorded| matches!(recorded.event, Event::PhaseApplied { .. })).count();
    assert_eq!(applied, 2);
}

#[tokio::test(start_paused = true)]
async fn a_retry_drops_the_suggestion_and_stays_in_its_phase() {
    let agent = Phases::new().on("initial_phase", Reports).then("drafting").on("drafting", Reports);
    let society = bed(agent).open().await;
    assert_eq!(say(&society, Map::new()).await.unwrap(), "initial_phase");
    let retry = Map::from_iter([("_ui_action".to_owned(), json!("retry"))]);
    assert_eq!(say(&society, retry).await.unwrap(), "initial_phase");
    assert_eq!(say(&society, Map::new()).await.unwrap(), "drafting");
}

#[tokio::test(start_paused = true)]
async fn a_phase_without_a_handler_is_an_error_that_names_it() {
    let agent = Phases::new().on("initial_phase", Leaves);
    let society = bed(agent).open().await;
    say(&society, Map::new()).await.unwrap();
    let sent = society.submit("next").await.unwrap();
    let envelope = society.answer(&sent).await.unwrap();
    assert!(envelope.payload.text.starts_with("找不到 nowhere 阶段处理器"), "{}", envelope.payload.text);
    assert_eq!(answer(&society, &sent).await.unwrap_err(), "no_handler");
}

#[tokio::test(start_paused = true)]
async fn a_handlers_own_suggestion_stands_against_the_configured_one() {
    let agent = Phases::new().on("initial_phase", Wilful).then("drafting").on("drafting", Reports).on("completed", Reports);
    let bed = bed(agent);
    let society = bed.open().await;
    say(&society, Map::new()).await.unwrap();
    assert_eq!(say(&society, Map::new()).await.unwrap(), "completed");
    let suggested = bed.events().iter().filter(|recorded| matches!(recorded.event, Event::PhaseSuggested { .. })).count();
    assert_eq!(suggested, 1);
}

/// Opens a sub-thread while its own thread is in another phase, and tells both.
struct Parent;

impl Agent for Parent {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if !turn.path().is_main() {
            turn.suggest_phase(phase("completed")).await?;
            return Ok(Response::new(turn.phase().as_str()));
        }
        if turn.phase().as_str() == "initial_phase" {
            turn.suggest_phase(phase("delegating")).await?;
            return Ok(Response::new("ready"));
        }
        let main = turn.path();
        let placeholder = turn.say("…").await?;
        let sub = turn.open_sub_thread(&main, &placeholder.id).await?;
        let mut phases = vec![turn.phase().to_string()];
        for _ in 0..2 {
            let task = Task::action(turn.task().id.clone(), "ProcessSubThread", "");
            phases.push(turn.run_unit(&sub, &"programmed".into(), task).await?.to_string());
        }
        let settings = turn.thread_settings(&main).await?;
        phases.push(format!("{:?}", settings.phase_update_suggestion));
        Ok(Response::new(phases.join(" ")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_thread_starts_in_its_own_first_phase_and_never_touches_its_parents() {
    let bed = Bed { cast: Cast::new().with("programmed", Parent), ..Bed::new() };
    let society = bed.open().await;
    assert_eq!(say(&society, Map::new()).await.unwrap(), "ready");
    assert_eq!(say(&society, Map::new()).await.unwrap(), "delegating initial_phase completed None");
}
