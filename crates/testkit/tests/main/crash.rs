//! The crash after every commit, tried on agents that survive it and on one that does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polis_domain::{Event, Failure, Response};
use polis_engine::{Agent, Cast, Turn};
use polis_testkit::{ScriptedModel, crash};

/// Asks the model twice; the second time about something that only this process knows, if there is such a thing.
struct Asks(Option<Arc<AtomicUsize>>);

impl Agent for Asks {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let first = turn.generate("first").await?;
        let runs = self.0.as_ref().map_or(0, |runs| runs.fetch_add(1, Ordering::Relaxed));
        Ok(Response::new(turn.generate(format!("{first} {runs}")).await?))
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::saying("said")
}

#[tokio::test(start_paused = true)]
async fn a_request_in_the_same_words_is_made_again() {
    let cast = Cast::new().with("root", Asks(None));
    let survived = crash::at_every_commit(&cast, model, &["go on", "go on"]).await.unwrap();
    let asked = survived.log.iter().filter(|recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } => envelope.from.is_user(),
        _ => false,
    });
    assert_eq!(asked.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn code_that_depends_on_its_process_is_found() {
    let cast = Cast::new().with("root", Asks(Some(Arc::default())));
    let found = crash::at_every_commit(&cast, model, &["go on"]).await.unwrap_err();
    assert!(found.contains("stopped after event") && found.contains("must follow from the log alone"), "{found}");
}
