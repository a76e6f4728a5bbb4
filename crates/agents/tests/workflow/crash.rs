//! Stopped after every commit: the same story, and no reply paid twice.

use polis_agents::workflow::{AgentWorkflowEngine, Language, PromptManager};
use polis_domain::Event;
use polis_testkit::crash::at_every_commit;

use super::bed::{Asked, Team, cast, engine, open, plan, role, team, unsatisfied, verified};
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn a_workflow_that_is_killed_at_any_commit_comes_to_the_same_end() {
    // Without tools, since the society of the harness has none: the calls fail, and that is told.
    let team = Team {
        planner: Arc::new(|heard| match heard.first.contains("- Look again") {
            true => plan(&[("c", 1, &["a"])]),
            false => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        }),
        verifier: Arc::new(|heard| match (heard.first.contains("(c)"), heard.replies) {
            (false, _) => unsatisfied("Look again", &[("a", true, &["m1"]), ("b", false, &[])]),
            (true, 0) => verified("All.", &[("a", &[]), ("c", &["m3"])]),
            (true, _) => verified("All.", &[("a", &["m1"]), ("c", &["m3"])]),
        }),
        ..team()
    };
    let survived = at_every_commit(&cast(engine()), || team.model(&Asked::default()), &["a and b?"]).await.unwrap();
    assert!(survived.commits > 40, "{}", survived.commits);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_is_told_what_the_first_was_told_whatever_the_files_say_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("executor.md");
    std::fs::write(&file, "We sell tea.").unwrap();
    let engine = || AgentWorkflowEngine::new(PromptManager::new(Language::En).with_folder(folder.path()));
    let bed = open(&team(), engine()).await;
    bed.ask("a and b?").await;
    let whole = bed.log.events(&"main".into());
    std::fs::write(&file, "We sell coffee.").unwrap();
    for end in 1..whole.len() {
        // Stopped where an executor is under way.
        let log = Arc::new(polis_testkit::MemoryLog::new());
        let before: Vec<_> = whole[..end].to_vec();
        let is_between = before.iter().any(|recorded| matches!(&recorded.event, Event::ThreadOpened { meta, .. } if meta.get("workflow").is_some_and(|order| order["agent"] == "executor")));
        if !is_between {
            continue;
        }
        polis_ports::Log::append(&*log, &"main".into(), polis_domain::Seq(0), &before).await.unwrap();
        let asked = Asked::default();
        let ports = polis_engine::Ports {
            log: log.clone(),
            toolbox: Arc::new(super::bed::tools()),
            ..polis_engine::Ports::new(polis_testkit::MemoryLog::new()).with_model(team().model(&asked))
        };
        let society = polis_testkit::open(cast(engine()), ports).await;
        while society.look(|spine| !spine.turns.is_empty()).await.unwrap() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let parked = log.events(&"main".into()).iter().any(|recorded| matches!(recorded.event, Event::TurnParked { .. }));
        assert!(!parked, "stopped after event {end}");
        let executor = asked.lock().unwrap().iter().find(|request| role(request) == "executor").map(|request| request.system.clone());
        if let Some(system) = executor {
            let is_first = whole[..end].iter().filter(|recorded| matches!(&recorded.event, Event::ThreadOpened { .. })).count() < 4;
            assert!(!is_first || system.contains("We sell tea."), "stopped after event {end}");
        }
    }
}
