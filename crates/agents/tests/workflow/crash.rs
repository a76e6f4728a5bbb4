//! Stopped after every commit: the same story, and no reply paid twice.

use std::sync::Arc;
use std::time::Duration;

use polis_agents::workflow::{AgentWorkflowEngine, Language, PlanApproval, PromptManager, WorkflowLimits};
use polis_domain::{Effect, Event, Outcome, Recorded, Resolution, Seq, Verdict};
use polis_engine::{Ports, Society};
use polis_ports::{Log, ModelRequest};
use polis_testkit::crash::{CommitEnds, at_every_commit};
use polis_testkit::{MemoryLog, ScriptedReply};
use serde_json::json;

use super::bed::{Asked, Team, asking, cast, engine, executed, limited, plan, team, tools, unsatisfied, verified};

#[tokio::test(start_paused = true)]
async fn a_workflow_that_is_killed_at_any_commit_comes_to_the_same_end() {
    // Without tools, since the society of the harness has none: the calls fail, and that is told. The second todo takes longer, so
    // that the first ends first in every run.
    let executor = team().executor;
    let team = Team {
        executor: Arc::new(move |todo, heard| {
            let reply = executor(todo, heard);
            if todo == "b" { reply.after(Duration::from_secs(1)) } else { reply }
        }),
        planner: Arc::new(|heard| match heard.first.contains("- Look again") {
            true => plan(&[("c", 1, &["a"])]),
            false => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        }),
        verifier: Arc::new(|heard| match (heard.first.contains("(c)"), heard.replies) {
            (false, _) => unsatisfied("Look again", &[("a", true, &["m1"]), ("b", false, &[])]),
            (true, 0) => verified("All three.", &[("a", &[]), ("c", &["m3"])]),
            (true, _) => verified("All three.", &[("a", &["m1"]), ("c", &["m3"])]),
        }),
    };
    let survived = at_every_commit(&cast(engine()), || team.model(&Asked::default()), &["a and b?"]).await.unwrap();
    assert!(survived.stops > 40, "{}", survived.stops);
}

/// A society with its tools over a log.
async fn society(log: Arc<dyn Log>, team: &Team, engine: AgentWorkflowEngine, asked: &Asked) -> Society {
    let model = team.model(asked);
    let ports = Ports { log, toolbox: Arc::new(tools()), ..Ports::new(MemoryLog::new()).with_model(model) };
    polis_testkit::open(cast(engine), ports).await
}

/// Opens a society on the first `end` events of a log and lets it work to its end. Nothing may stand still.
async fn resumed(whole: &[Arc<Recorded>], end: Seq, team: &Team, engine: AgentWorkflowEngine) -> (Arc<MemoryLog>, Asked) {
    let (log, asked) = (Arc::new(MemoryLog::new()), Asked::default());
    log.append(&"main".into(), Seq(0), &whole[..end.0 as usize]).await.unwrap();
    let second = society(log.clone(), team, engine, &asked).await;
    let is_open = || second.look(|spine| spine.turns.values().any(|turn| !turn.is_parked()));
    while is_open().await.unwrap() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let parked = second.look(|spine| spine.turns.values().find_map(|turn| turn.parked().cloned())).await.unwrap();
    assert_eq!(parked, None, "stopped after event {end}");
    (log, asked)
}

#[tokio::test(start_paused = true)]
async fn a_second_run_is_told_what_the_first_was_told_whatever_the_files_say_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("default.md"), text).unwrap();
    let engine = || AgentWorkflowEngine::new(PromptManager::new(Language::En).with_folder(folder.path()));
    write("We sell tea.");
    let (log, ends) = (Arc::new(MemoryLog::new()), CommitEnds::default());
    let first = society(ends.of(log.clone()), &team(), engine(), &Asked::default()).await;
    polis_testkit::ask(&first, "a and b?").await.unwrap();
    let whole = log.events(&"main".into());
    write("We sell coffee.");
    for end in ends.all() {
        let (log, asked) = resumed(&whole, end, &team(), engine()).await;
        // Whoever was told about tea stays with it.
        let events = log.events(&"main".into());
        let prompts: Vec<_> = events.iter().filter_map(|recorded| prompt(&recorded.event)).collect();
        let asked = asked.lock().unwrap();
        let is_logged = |request: &ModelRequest| prompts.iter().any(|prompt| **prompt == *request.system);
        assert!(asked.iter().all(is_logged), "stopped after event {end}");
    }
}

fn prompt(event: &Event) -> Option<&str> {
    let Event::ThreadOpened { meta, .. } = event else { return None };
    meta.get("workflow")?["prompt"]["Ok"].as_str()
}

#[tokio::test(start_paused = true)]
async fn what_the_person_said_is_heard_at_the_same_place_by_a_second_run() {
    let slow = |line: ScriptedReply| line.after(Duration::from_secs(5));
    let slow = Team {
        executor: Arc::new(move |todo, heard| match heard.replies {
            0 => slow(ScriptedReply::call(&format!("call_{todo}"), "look", &json!({ "at": todo }).to_string())),
            _ => executed(todo, &format!("{todo}, {}", heard.request.messages.len())),
        }),
        planner: Arc::new(move |_| slow(plan(&[("a", 1, &[]), ("b", 2, &["a"])]))),
        ..team()
    };
    let (log, ends) = (Arc::new(MemoryLog::new()), CommitEnds::default());
    let first = society(ends.of(log.clone()), &slow, engine(), &Asked::default()).await;
    let sent = first.submit("a and b?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    first.send("root".into(), "in French please", Some(sent.task_id.clone())).await.unwrap();
    first.answer(&sent).await.unwrap();
    first.stop(Duration::ZERO).await;
    let whole = log.events(&"main".into());
    let said = whole.iter().position(
        |recorded| matches!(&recorded.event, Event::MessageSent { envelope, .. } if &*envelope.payload.text == "in French please"),
    );
    let said = said.unwrap() as u64;
    for end in ends.all().into_iter().filter(|end| end.0 > said) {
        let (log, _) = resumed(&whole, end, &slow, engine()).await;
        let after = log.events(&"main".into());
        let taken = after.iter().filter(|recorded| matches!(recorded.event, Event::MessagesTaken { .. })).count();
        assert_eq!(taken, 1, "stopped after event {end}");
        assert_eq!(texts(&after), texts(&whole), "stopped after event {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_person_said_is_heard_by_all_who_work_in_a_second_run_too() {
    let slow = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 1, &[]), ("c", 1, &["a", "b"])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("x", "look", &json!({ "at": todo }).to_string()).after(Duration::from_secs(5)),
            _ => executed(todo, &format!("{todo}, {}", heard.request.messages.len())),
        }),
        verifier: Arc::new(|_| unsatisfied("Nothing", &[])),
    };
    let once = || limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() });
    let (log, ends) = (Arc::new(MemoryLog::new()), CommitEnds::default());
    let first = society(ends.of(log.clone()), &slow, once(), &Asked::default()).await;
    let sent = first.submit("a, b and c?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    first.send("root".into(), "in French please", Some(sent.task_id.clone())).await.unwrap();
    first.answer(&sent).await.unwrap();
    first.stop(Duration::ZERO).await;
    let whole = log.events(&"main".into());
    assert_eq!(
        texts(&whole).iter().filter(|text| text.contains("in French please")).count(),
        5,
        "three todos, the verifier twice"
    );
    let said = whole.iter().find_map(|recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } if &*envelope.payload.text == "in French please" => Some(recorded.seq),
        _ => None,
    });
    for end in ends.all().into_iter().filter(|end| *end >= said.unwrap()) {
        let (log, _) = resumed(&whole, end, &slow, once()).await;
        assert_eq!(texts(&log.events(&"main".into())), texts(&whole), "stopped after event {end}");
    }
}

/// Everything that was said in any thread.
fn texts(log: &[Arc<Recorded>]) -> Vec<&str> {
    let said = log.iter().filter_map(|recorded| match &recorded.event {
        Event::MessageAdded { message, .. } => Some(&*message.text),
        _ => None,
    });
    let mut texts: Vec<_> = said.collect();
    texts.sort_unstable();
    texts
}

#[tokio::test(start_paused = true)]
async fn a_second_run_keeps_to_the_limits_of_the_first() {
    let two = Team {
        planner: Arc::new(|heard| match heard.first.contains("- Look again") {
            true => plan(&[("c", 1, &[])]),
            false => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        }),
        verifier: Arc::new(|heard| match heard.first.contains("(c)") {
            false => unsatisfied("Look again", &[("a", true, &["c1"]), ("b", true, &["c2"])]),
            true => verified("All three.", &[("a", &["c1"]), ("b", &["c2"]), ("c", &["c3"])]),
        }),
        ..team()
    };
    let (log, ends) = (Arc::new(MemoryLog::new()), CommitEnds::default());
    let first = society(ends.of(log.clone()), &two, engine(), &Asked::default()).await;
    assert_eq!(polis_testkit::ask(&first, "a and b?").await.unwrap(), "All three.");
    let whole = log.events(&"main".into());
    let planned = whole.iter().find(|recorded| prompt(&recorded.event).is_some()).unwrap().seq;
    let strict = || limited(WorkflowLimits { at_once: 1, cycles: 1, planning_rounds: 1, ..WorkflowLimits::default() });
    for end in ends.all().into_iter().filter(|end| *end >= planned) {
        let (log, _) = resumed(&whole, end, &two, strict()).await;
        assert_eq!(texts(&log.events(&"main".into())), texts(&whole), "stopped after event {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_asked_about_waits_for_a_word_whatever_is_set_up_by_then() {
    let log = Arc::new(MemoryLog::new());
    let first = society(log.clone(), &team(), asking(PlanApproval::Always), &Asked::default()).await;
    let sent = first.submit("a and b?").await.unwrap();
    let question = loop {
        let asked = log.events(&"main".into()).iter().find_map(|recorded| match &recorded.event {
            Event::EffectStarted { id, effect: Effect::Approval { .. }, .. } => Some(*id),
            _ => None,
        });
        match asked {
            Some(id) => break id,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    first.stop(Duration::ZERO).await;
    let second = society(log.clone(), &team(), asking(PlanApproval::Never), &Asked::default()).await;
    second.resolve(question, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(3_600), second.answer(&sent)).await;
    assert_eq!(&*answer.expect("it goes on").unwrap().payload.text, "a is 1 and b is 2.");
}
