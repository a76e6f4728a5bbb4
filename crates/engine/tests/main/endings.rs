//! How sub-threads end: in a phase of their own, by a panic between units, with a result that is too long (R064, R067, R131).

use polis_domain::{Failure, Phase};
use polis_engine::{Cast, ExecuteSubThread, Phases, Progress, SubThreadAgent, Turn, Units};
use polis_testkit::crash;

use crate::sub_threads::{Bare, Does, Mutters, model, run, thread};

/// Panics where it is told to.
#[derive(Clone)]
struct ClumsyAgent(&'static str);

impl SubThreadAgent for ClumsyAgent {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", Bare).with_handler(Mutters).then("completed")
    }

    async fn next_unit(&self, progress: &Progress, _: &mut Turn) -> Result<Phase, Failure> {
        assert!(self.0 != "next_unit", "stumbled");
        Ok(progress.next.clone())
    }

    async fn summarize(&self, _: &Progress, _: &mut Turn) -> Result<String, Failure> {
        assert!(self.0 != "summarize", "stumbled");
        Ok("x".repeat(300_000))
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_panics_between_units_fails_alone() {
    for place in ["next_unit", "summarize"] {
        let (society, told) = run(ClumsyAgent(place)).await;
        assert_eq!(told, "This came to nothing: the agent's code panicked: stumbled (panicked)", "{place}");
        assert_eq!(thread(&society, "").await.messages[1].text, told, "the placeholder tells of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_long_for_a_message_is_a_failure_that_says_so() {
    let (society, told) = run(ClumsyAgent("nowhere")).await;
    assert!(told.starts_with("This came to nothing: ") && told.ends_with("(text_too_long)"), "{told}");
    assert_eq!(thread(&society, "").await.messages[1].text, told, "the placeholder tells of it");
    let cast = Cast::new().with("root", Phases::new().on("initial_phase", ExecuteSubThread::of(ClumsyAgent("nowhere"))));
    crash::at_every_commit(&cast, model, &["q"]).await.unwrap();
}

/// Ends where it says.
#[derive(Clone)]
struct ShippingAgent;

impl SubThreadAgent for ShippingAgent {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", Bare).with_handler(Mutters).then("shipped")
    }

    fn is_terminal(&self, phase: &Phase) -> bool {
        phase.as_str() == "shipped"
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_may_lead_to_whatever_end_its_agent_has() {
    let (society, told) = run(ShippingAgent).await;
    assert_eq!(told, "initial_phase mutters");
    assert_eq!(thread(&society, "messages[1].meta._thread").await.phase().as_str(), "shipped");
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_of_it_has_fifty_interactions_at_most() {
    let endless = Units::new().on("initial_phase", Does).with_handler(Mutters).then("initial_phase");
    let (society, told) = run(endless).await;
    assert!(told.contains("not done after 50 interactions"), "{told}");
    assert_eq!(thread(&society, "messages[1].meta._thread").await.messages.len(), 100);
}
