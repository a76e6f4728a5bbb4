//! Waiting for a person: exit status 3, what to do, and doing it.

use std::path::Path;
use std::sync::Arc;

use polis_domain::{Effect, Event, Seq};
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_ports::NoArtifacts;
use polis_store_local::LocalLog;
use polis_testkit::{Op, Program, ProgrammedAgent, ScriptedModel, ScriptedTools, worker_role};

use super::support::Home;

/// A society whose root has asked a person, and was then stopped. Gives the question's id and its task.
fn begun(data: &Path) -> (String, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ports = Ports {
            log: Arc::new(LocalLog::open(data).unwrap()),
            model: Arc::new(ScriptedModel::saying("")),
            toolbox: Arc::new(ScriptedTools::new()),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(SystemClock),
            artifacts: Arc::new(NoArtifacts),
            memory_texts: Arc::new(polis_ports::NoMemoryTexts),
            embedder: None,
        };
        let cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent);
        let society = Society::open("main".into(), ports, cast, Options::new(1, worker_role())).await.unwrap();
        let sent = society.submit(&Program(vec![Op::Approve("may I sing?".into())]).text()).await.unwrap();
        let mut watch = society.watch(Seq(0));
        let id = loop {
            let recorded = watch.next_event().await.unwrap().unwrap();
            if let Event::EffectStarted { id, effect: Effect::Approval { .. }, .. } = recorded.event {
                break id;
            }
        };
        society.stop(std::time::Duration::from_secs(30)).await;
        (id.to_string(), sent.task_id.to_string())
    })
}

#[test]
fn a_run_that_must_wait_for_a_person_says_what_to_do_and_ends_with_3() {
    let home = Home::new();
    let (id, task) = begun(&home.data());
    // Root cannot turn to this before its older question is answered.
    let done = home.polis(&["run", "--conversation", "root", "hello"]);
    assert_eq!(done.code, 3, "{}", done.stderr);
    for said in [&format!("{id}  root asks: may I sing?"), &format!("polis approve {id}"), &format!("polis deny {id} [reason]")]
    {
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    assert_eq!(done.stdout, "");
    let listed = home.polis(&["approvals"]).ok();
    assert_eq!(listed, format!("{id}  root asks: may I sing?\n"));
    for command in ["wait", "attach"] {
        let done = home.polis(&[command, &task]);
        assert_eq!(done.code, 3, "{}", done.stderr);
        assert!(done.stderr.contains(&format!("polis approve {id}")), "{}", done.stderr);
    }
    home.polis(&["result", &task]).fails(3, "still_open");

    home.polis(&["approve", "1.1"]).fails(1, "not_open");
    home.polis(&["approve", &id, "--again"]).fails(1, "not_waiting");
    // The code that asked is not part of the program, so the answer leads to a turn that stands still.
    let answered = home.polis(&["deny", &id, "not", "now"]);
    assert_eq!(answered.code, 3, "{}", answered.stderr);
    assert!(
        answered.stderr.contains("no_behaviour") && answered.stderr.contains(&format!("polis cancel {task}")),
        "{}",
        answered.stderr
    );
    let verdict = |event: &Event| matches!(event, Event::EffectEnded { outcome: polis_domain::Outcome::Verdict(verdict), .. } if verdict.reason == "not now");
    assert!(home.log().iter().any(|recorded| verdict(&recorded.event)));

    home.polis(&["cancel", &task, "no", "more"]).ok();
    assert!(home.polis(&["approvals"]).ok().is_empty());
    home.polis(&["cancel", &task]).fails(1, "unknown_task");
}

#[test]
fn approvals_can_be_given_for_a_whole_run() {
    let home = Home::new();
    begun(&home.data());
    // Only those of the run itself: what others asked stays with the person.
    for agree in ["all", "never"] {
        let done = home.polis(&["run", "--conversation", "root", "--approve", agree, "hello"]);
        assert_eq!(done.code, 3, "{}", done.stderr);
        assert_eq!(home.polis(&["approvals"]).ok().lines().count(), 1);
    }
}

#[test]
fn a_word_to_an_agent_waits_in_the_log_until_the_society_works() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    let before = home.last().0;
    let sent = home.polis(&["send", "root", "and", "now?", "--json"]);
    assert!(sent.stderr.contains("no society is running"), "{}", sent.stderr);
    let sent: serde_json::Value = serde_json::from_str(&sent.ok()).unwrap();
    assert_eq!(home.last().0, before + 2, "a message, and the turn that is owed");
    let served = home.serve(&[]);
    let task = sent["taskId"].as_str().unwrap();
    served.until(|recorded| {
        super::support::is_ending(recorded) && recorded.thread == Some(polis_domain::TaskId::from(task).thread())
    });
}
