//! Stopped after every commit: the same story, and no reply paid twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use polis_agents::workflow::{AgentWorkflowEngine, Language, PromptManager};
use polis_domain::{Event, Recorded, Seq, SocietyId};
use polis_engine::Ports;
use polis_ports::{Log, LogError};
use polis_testkit::crash::at_every_commit;
use polis_testkit::{Gate, GatedLog, MemoryLog};

use super::bed::{Asked, Team, cast, engine, plan, team, tools, unsatisfied, verified};

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

/// Notes where each commit ends.
struct Ends(Arc<Mutex<Vec<Seq>>>);

#[async_trait]
impl Gate for Ends {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        log.append(society, expected, events).await?;
        self.0.lock().unwrap().extend(events.last().map(|last| last.seq));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_run_is_told_what_the_first_was_told_whatever_the_files_say_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("default.md"), text).unwrap();
    let engine = || AgentWorkflowEngine::new(PromptManager::new(Language::En).with_folder(folder.path()));
    let society = async |log: Arc<dyn Log>, asked: &Asked| {
        let model = team().model(asked);
        let ports = Ports { log, toolbox: Arc::new(tools()), ..Ports::new(MemoryLog::new()).with_model(model) };
        polis_testkit::open(cast(engine()), ports).await
    };
    write("We sell tea.");
    let (log, ends) = (Arc::new(MemoryLog::new()), Arc::<Mutex<Vec<Seq>>>::default());
    let first = society(Arc::new(GatedLog { log: log.clone(), gate: Ends(ends.clone()) }), &Asked::default()).await;
    polis_testkit::ask(&first, "a and b?").await.unwrap();
    let whole = log.events(&"main".into());
    let ends = ends.lock().unwrap().clone();
    write("We sell coffee.");
    for end in ends {
        let before = &whole[..end.0 as usize];
        let log = Arc::new(MemoryLog::new());
        log.append(&"main".into(), Seq(0), before).await.unwrap();
        let asked = Asked::default();
        let second = society(log.clone(), &asked).await;
        let is_open = || second.look(|spine| spine.turns.values().any(|turn| turn.parked.is_none()));
        while is_open().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let parked = second.look(|spine| spine.turns.values().find_map(|turn| turn.parked.clone())).await.unwrap();
        assert_eq!(parked, None, "stopped after event {end}");
        // Whoever was told about tea stays with it.
        let orders = log.events(&"main".into()).iter().filter_map(|recorded| match &recorded.event {
            Event::ThreadOpened { meta, .. } => meta.get("workflow")?["prompt"]["Ok"].as_str().map(str::to_owned),
            _ => None,
        }).collect::<Vec<_>>();
        let asked = asked.lock().unwrap();
        assert!(asked.iter().all(|request| orders.iter().any(|prompt| **prompt == *request.system)), "stopped after event {end}");
    }
}
