//! The pipeline is stopped after each of its commits: what is finished is never done again, neither asked nor run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use polis::domain::Outcome;
use polis::prelude::*;
use polis::{Event, Seq};
use polis_testkit::crash::at_every_commit_in;
use polis_testkit::{MemoryArtifacts, MemoryLog, ScriptedModel, ScriptedReply};

use crate::place::{Place, Watched, copy};

const REQUEST: &str = "Analyse this:\ncity,amount\nLisbon,3\nPorto,4.5\nLisbon,5\nPorto,\n";

/// Its first code fails, so that there is a second round, and another that gives way to the built-in script.
fn model() -> ScriptedModel {
    ScriptedModel::new(|request| match (request.settings.temperature, request.messages.len()) {
        (Some(0.7), 1) if request.system.contains("transforms the data") => ScriptedReply::text("```sh\nexit 3\n```"),
        (Some(0.7), _) => ScriptedReply::text("I cannot."),
        _ => ScriptedReply::text("Analysis complete: 4 records."),
    })
}

#[tokio::test]
async fn stopped_at_every_commit_it_goes_on_and_does_nothing_twice() {
    let Some(place) = Place::new("stopped_at_every_commit_it_goes_on_and_does_nothing_twice").await else { return };
    let kept = tempfile::tempdir().unwrap();
    let artifacts = MemoryArtifacts::new();
    // What the workspace was like at each commit, and how often tools were called in each life.
    let (workspace, snapshots) = (place.workspace(), kept.path().to_owned());
    let committed = move |seq: Seq| copy(&workspace, &snapshots.join(seq.0.to_string()));
    let lives = Mutex::new(Vec::new());
    let number = AtomicUsize::new(0);
    let world = |stopped: Option<Seq>| {
        let folder = match stopped {
            None => place.workspace(),
            Some(seq) => {
                let folder = kept.path().join(format!("life-{}", number.fetch_add(1, Ordering::Relaxed)));
                copy(&kept.path().join(seq.0.to_string()), &folder);
                folder
            }
        };
        let tools = Watched::new(&folder);
        lives.lock().unwrap().push((stopped, Arc::clone(&tools.calls)));
        Ports::new(MemoryLog::new()).with_artifacts(artifacts.clone()).with_tools(tools)
    };
    let survived = at_every_commit_in(&place.cast(), model, world, committed, &[REQUEST]).await.unwrap();
    let results = |after: u64| {
        let is_result = |outcome: &Outcome| matches!(outcome, Outcome::Result(_));
        let ended = survived.log.iter().skip(after as usize);
        ended.filter(|recorded| matches!(&recorded.event, Event::EffectEnded { outcome, .. } if is_result(outcome))).count()
    };
    let lives = lives.into_inner().unwrap();
    assert!(results(0) > 15 && lives.len() == survived.stops + 1, "{} results, {} lives", results(0), lives.len());
    for (stopped, calls) in lives {
        let after = stopped.unwrap_or_default().0;
        assert_eq!(calls.lock().unwrap().len(), results(after), "after event {after}");
    }
}
