//! One request from beginning to end, by the agents that ship: root founds two roles, they work together, one is late and the
//! policy takes over, the person is answered, root sends everybody away. It is stopped after every commit, forked at each tenth
//! event and replayed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polis_agents::role::{RoleParts, Sop, Sops};
use polis_agents::society::with_society_tools;
use polis_agents::{PlanTool, RoleAgent, root_role};
use polis_domain::{Event, MessageKind, Org, OrgStatus, Outcome, Plan, Recorded, Seq, SocietyId, Spine, StepStatus, Timestamp};
use polis_engine::{Branch, Cast, Options, Ports, Sent, Society, fork, replay};
use polis_ports::{ChatMessage, Log, ModelRequest};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, crash};
use serde_json::{Value, json};

const REQUEST: &str = "Have somebody write about bees and somebody else check it.";

const ANSWER: &str = "Bees. They fly; I checked it myself.";

/// How the writer works, whoever asks it.
const PROCEDURE: &str = "---\nname: article\nwhen: write about {what}\nroles: [writer]\n---\n\
                         1. draft {what}\n\
                         2. @checker Name a source about {what}. (within 1 hour)\n\
                         3. @checker Check the draft about {what}. (within 5 minutes; if it fails: do it yourself)\n\
                         4. put it together\n";

fn cast() -> Cast {
    let sop = Sop::read(PROCEDURE).unwrap();
    let parts = RoleParts::new("role").with_sops(Sops::default().with(sop));
    with_society_tools(Cast::new().with("root", RoleAgent { parts }).with_tool(PlanTool), "root")
}

/// What root does, one reply after another.
fn founding() -> Vec<Vec<(&'static str, Value)>> {
    let role = |name: &str| ("create_role", json!({ "name": name, "rolePrompt": "Do what you are asked." }));
    let agent = |name: &str| ("spawn_agent", json!({ "roleId": name, "agentId": name }));
    let asked = json!({ "requests": [{ "to": "writer", "text": "Please write about bees." }], "timeoutSeconds": 3600 });
    let away = |name: &str| ("terminate_agent", json!({ "agentId": name, "reason": "done", "patienceSeconds": 3600 }));
    vec![
        vec![("list_agents", json!({}))],
        vec![role("Writer"), role("Checker")],
        vec![agent("writer"), agent("checker")],
        vec![("request_collaboration", asked)],
        vec![away("writer"), away("checker")],
    ]
}

fn script(request: &ModelRequest) -> ScriptedReply {
    let name = request.system.split("Your name here is `").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or("root");
    let said = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => Some(text.to_string()),
        _ => None,
    };
    let last = request.messages.iter().rev().find_map(said).unwrap_or_default();
    let rounds = request.messages.iter().filter(|message| matches!(message, ChatMessage::Assistant { .. })).count();
    match (name, &*last) {
        ("root", _) => match founding().get(rounds) {
            Some(calls) => calls.iter().enumerate().fold(ScriptedReply::default(), |line, (n, (tool, arguments))| {
                line.and_call(&format!("c{rounds}.{n}"), tool, &arguments.to_string())
            }),
            None => ScriptedReply::text(ANSWER),
        },
        ("writer", "draft bees") => ScriptedReply::text("Bees fly."),
        ("writer", text) if text.starts_with("Check") => ScriptedReply::text("checked by the writer"),
        ("writer", "put it together") => ScriptedReply::text("Bees. They fly."),
        // Too late for whoever asks, and soon enough to be there before it is sent away.
        ("checker", text) if text.contains("Check the draft") => ScriptedReply::text("late").after(Duration::from_secs(1_200)),
        // What was done so far is told as well, so that the source is named there too.
        ("checker", text) if text.contains("Name a source") => ScriptedReply::text("a book about bees"),
        other => panic!("nobody expects {other:?}"),
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::new(script)
}

async fn open(log: &Arc<MemoryLog>, name: &str, model: ScriptedModel) -> Society {
    let clock = Arc::new(ManualClock::at(Timestamp(1_700_000_000_000)));
    let ports = Ports { log: log.clone(), clock, ..Ports::new(MemoryLog::new()).with_model(model) };
    Society::open(name.into(), ports, cast(), Options::new(1, root_role("root"))).await.unwrap()
}

fn events(log: &MemoryLog, name: &str) -> Vec<Recorded> {
    log.events(&name.into()).iter().map(|recorded| Recorded::clone(recorded)).collect()
}

/// Waits for the answer of a society that was asked, or asks it; checks how it ended; gives how often the model was asked.
async fn finish(log: &Arc<MemoryLog>, name: &str) -> usize {
    let model = model();
    let asked = model.counter();
    let society = open(log, name, model).await;
    let sent = events(log, name).into_iter().find_map(|recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } if envelope.from.is_user() => Some(Sent {
            message_id: envelope.id.clone(),
            to: envelope.to.clone(),
            task_id: envelope.task_id.clone(),
            seq: recorded.seq,
        }),
        _ => None,
    });
    let sent = match sent {
        Some(sent) => sent,
        None => society.submit(REQUEST).await.unwrap(),
    };
    let envelope = society.answer(&sent).await.unwrap();
    assert_eq!((&envelope.kind, &*envelope.payload.text), (&MessageKind::Answer, ANSWER), "{name}");
    let org = society.look_with_terminated(Org::of).await.unwrap();
    let gone: Vec<_> =
        org.agents.iter().filter(|agent| agent.status == OrgStatus::Terminated).map(|agent| agent.id.as_str()).collect();
    assert_eq!(gone, ["checker", "writer"], "{name}");
    assert_eq!(org.agents.len(), 3, "{name}");
    society.stop(Duration::ZERO).await;
    assert!(Spine::from_iter(&events(log, name)).turns.is_empty(), "{name}");
    asked.load(Ordering::Relaxed)
}

fn replies(log: &[Recorded]) -> usize {
    let is_reply = |recorded: &&Recorded| matches!(&recorded.event, Event::EffectEnded { outcome: Outcome::Reply(_), .. });
    log.iter().filter(is_reply).count()
}

/// Runs the past of a society again: nothing is asked, and everything is as it was.
async fn replayed(log: &Arc<MemoryLog>, name: &str) {
    let model = model();
    let asked = model.counter();
    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model) };
    let replayed = replay(&SocietyId::from(name), &ports, &cast()).await.unwrap();
    assert!(replayed.divergences.is_empty(), "{name}: {:#?}", replayed.divergences);
    assert_eq!((asked.load(Ordering::Relaxed), replayed.open), (0, 0), "{name}");
    assert!(replayed.turns >= 4, "{name}: {}", replayed.turns);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_needs_two_roles_is_answered_and_everybody_is_sent_away() {
    let log = Arc::new(MemoryLog::new());
    assert_eq!(finish(&log, "main").await, replies(&events(&log, "main")));
    let plans = events(&log, "main").into_iter().filter_map(|recorded| match recorded.event {
        Event::PlanSet { plan, .. } => Some(plan),
        _ => None,
    });
    let plan: Plan = plans.last().unwrap();
    let steps: Vec<_> =
        plan.steps.iter().map(|step| (step.status, step.target.as_deref(), step.result.as_deref().unwrap())).collect();
    let done = StepStatus::Completed;
    let own = None;
    assert_eq!(
        steps,
        [
            (done, own, "Bees fly."),
            (done, Some("checker"), "a book about bees"),
            (done, own, "checked by the writer"),
            (done, own, "Bees. They fly."),
        ]
    );
    let timed_out = |recorded: &Recorded| matches!(&recorded.event, Event::EffectEnded { outcome: Outcome::Failed(failure), .. } if &*failure.code == "timed_out");
    assert_eq!(events(&log, "main").iter().filter(|recorded| timed_out(recorded)).count(), 1);
    let late = |recorded: &Recorded| matches!(&recorded.event, Event::TurnSettled { message: Some(message), .. } if message.text == "late");
    assert!(events(&log, "main").iter().any(late), "what came too late is in the log and changed nothing");
    replayed(&log, "main").await;
}

#[tokio::test(start_paused = true)]
async fn a_walk_that_is_stopped_after_every_commit_tells_the_same_story() {
    let survived = crash::at_every_commit(&cast(), model, &[REQUEST]).await.unwrap();
    let spawned = survived.log.iter().filter(|recorded| matches!(recorded.event, Event::AgentSpawned { .. })).count();
    assert_eq!(spawned, 3);
    assert!(survived.stops > 35, "{}", survived.stops);
}

#[tokio::test(start_paused = true)]
async fn a_walk_that_is_forked_at_each_tenth_event_ends_well_in_both() {
    let whole = Arc::new(MemoryLog::new());
    finish(&whole, "main").await;
    let all = whole.events(&"main".into());
    let clock = ManualClock::at(Timestamp(1_700_000_000_000));
    let mut forks = 0;
    for at in (10..all.len() as u64).step_by(10) {
        let end = whole.whole(&"main".into(), Seq(at)).await.unwrap();
        let log = Arc::new(MemoryLog::new());
        log.append(&"main".into(), Seq(0), &all[..end.0 as usize]).await.unwrap();
        let branch = Branch { from: "main".into(), at: None, to: "other".into(), aside: None, request: None };
        let forked = fork(&*log, &clock, &branch, at).await.unwrap();
        assert_eq!((forked.at, forked.in_doubt), (end, 0));
        let before = replies(&events(&log, "main"));
        for name in ["other", "main"] {
            let asked = finish(&log, name).await;
            let after = events(&log, name);
            assert_eq!(asked, replies(&after) - before, "what the model said before the fork at {at} is not asked again");
            assert_eq!(after[..end.0 as usize], events(&whole, "main")[..end.0 as usize]);
            replayed(&log, name).await;
        }
        forks += 1;
    }
    assert!(forks >= 7, "{forks}");
}
