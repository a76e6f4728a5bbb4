//! A society that can be killed at any event: `kill_target DIR`. The crash tests run it again and again.
//!
//! `kill_target DIR deep` has a call wait for a person three levels deep, says `waits` in DIR and does no more; with
//! `APPROVE=ARGUMENTS` it agrees to the call with these arguments and goes on to the end.
//!
//! `kill_target DIR memory` has an agent remember two things and forget one of them.
//!
//! `SOCIETY=NAME` lives another society than `main`, such as a fork of it.
//!
//! It dies as [`KillGate`] says. The world outside is two files in DIR: `ledger`, a line each time that a tool is really done, and `accepted`, a line for each
//! request that was acknowledged.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polis_agents::memory::with_memory_tools;
use polis_agents::{Converse, PlanTool};
use polis_domain::{
    CallResult, EffectClass, EffectId, Event, MessageKind, OpenKind, Outcome, Recorded, Resolution, Role, Ruling, Seq,
    SocietyId, Spine, Verdict,
};
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_ports::{CallContext, ChatMessage, Log, LogError};
use polis_store_local::{ArtifactLimits, LocalArtifacts, LocalLog, LocalMemoryTexts};
use polis_testkit::kill::KillGate;
use polis_testkit::{GatedLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, ScriptedTools, worker_role, world};

fn main() -> anyhow::Result<()> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: kill_target DIR"))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if std::env::args().nth(2).is_some_and(|mode| mode == "deep") {
        return runtime.block_on(wait_deep(&dir));
    }
    if std::env::args().nth(2).is_some_and(|mode| mode == "memory") {
        return runtime.block_on(remember(&dir));
    }
    runtime.block_on(live(dir))
}

async fn live(dir: PathBuf) -> anyhow::Result<()> {
    let log = LocalLog::open(&dir.join("data"))?;
    let log: Arc<dyn Log> = Arc::new(GatedLog { log: Arc::new(log), gate: KillGate::from_environment() });
    let ledger = dir.join("ledger");
    let done = ledger.clone();
    let ports = Ports {
        log: log.clone(),
        model: Arc::new(ScriptedModel::new(|request| ScriptedReply::text(&world::model_reply(request)))),
        toolbox: Arc::new(world::tools(move |class, key| note(&ledger, &format!("{class:?} {key}")))),
        live: Arc::new(LocalLive::default()),
        clock: Arc::new(SystemClock),
        artifacts: Arc::new(LocalArtifacts::open(&dir.join("data"), ArtifactLimits::default())?),
        memory_texts: Arc::new(polis_ports::NoMemoryTexts),
        embedder: None,
    };
    let society = Society::open(name(), ports, cast(), options()).await?;
    for program in programs() {
        let text = program.text();
        if !has_request(&*log, &text).await? {
            let sent = society.submit(&text).await?;
            note(&dir.join("accepted"), sent.message_id.as_str());
        }
    }
    loop {
        let was_done = |key: &str| fs::read_to_string(&done).is_ok_and(|ledger| ledger.lines().any(|line| line.ends_with(key)));
        world::resolve_open_decisions(&society, was_done).await;
        if is_done(&*log, programs().len()).await? {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}

/// The society that is lived.
fn name() -> SocietyId {
    std::env::var("SOCIETY").unwrap_or_else(|_| "main".to_owned()).into()
}

fn cast() -> Cast {
    Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent).with_tool(PlanTool)
}

fn options() -> Options {
    Options::new(u64::from(std::process::id()), worker_role())
}

/// One request, three levels deep a call that a person is asked about. What is really done stands in `ledger`.
async fn wait_deep(dir: &Path) -> anyhow::Result<()> {
    let log = LocalLog::open(&dir.join("data"))?;
    let log: Arc<dyn Log> = Arc::new(GatedLog { log: Arc::new(log), gate: KillGate::from_environment() });
    let ledger = dir.join("ledger");
    let mark = move |arguments: &str, _: &CallContext| {
        note(&ledger, arguments);
        CallResult::good("marked")
    };
    let tools = ScriptedTools::new().with("mark", EffectClass::Write, mark).ruled(|_, _| Ruling::Ask("It is dear.".to_owned()));
    let ports = Ports {
        log: log.clone(),
        model: Arc::new(ScriptedModel::saying("yes")),
        toolbox: Arc::new(tools),
        live: Arc::new(LocalLive::default()),
        clock: Arc::new(SystemClock),
        artifacts: Arc::new(LocalArtifacts::open(&dir.join("data"), ArtifactLimits::default())?),
        memory_texts: Arc::new(polis_ports::NoMemoryTexts),
        embedder: None,
    };
    let society = Society::open("main".into(), ports, cast(), options()).await?;
    let marks = Program(vec![Op::Call(vec![("mark".to_owned(), r#"{"text":"planned"}"#.to_owned())])]);
    let deep = (0..3).fold(marks, |below, _| Program(vec![Op::Units(vec![below])]));
    if !has_request(&*log, &deep.text()).await? {
        society.submit(&deep.text()).await?;
    }
    let asked = |spine: &Spine| {
        let open = spine.turns.iter().flat_map(|(turn, state)| state.open.iter().map(|open| (*turn, open)));
        let mut asked = open.filter(|(_, open)| matches!(open.kind, OpenKind::Approval(Some(_))));
        asked.next().map(|(turn, open)| EffectId { turn, n: open.n })
    };
    let id = loop {
        match society.look(asked).await? {
            Some(id) => break id,
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    };
    let Ok(arguments) = std::env::var("APPROVE") else {
        note(&dir.join("waits"), &id.to_string());
        return std::future::pending().await;
    };
    let verdict = Verdict { arguments: Some(arguments.into()), ..Verdict::yes() };
    society.resolve(id, Resolution::Outcome(Outcome::Verdict(verdict))).await?;
    while !is_done(&*log, 1).await? {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}

/// One request: two things are remembered, the second is forgotten, and what is left is recalled.
async fn remember(dir: &Path) -> anyhow::Result<()> {
    let data = dir.join("data");
    let log = LocalLog::open(&data)?;
    let log: Arc<dyn Log> = Arc::new(GatedLog { log: Arc::new(log), gate: KillGate::from_environment() });
    let model = ScriptedModel::new(|request| {
        let results = request.messages.iter().filter_map(|message| match message {
            ChatMessage::Tool { content, .. } => serde_json::from_str::<serde_json::Value>(content).ok(),
            ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
        });
        let results: Vec<_> = results.collect();
        match results.len() {
            0 => ScriptedReply::call("c0", "remember", r#"{"text":"tea, please"}"#),
            1 => ScriptedReply::call("c1", "remember", r#"{"text":"the code word is osprey"}"#),
            2 => {
                let id = serde_json::json!({ "memoryId": results[1]["memoryId"] });
                ScriptedReply::call("c2", "forget", &id.to_string())
            }
            3 => ScriptedReply::call("c3", "recall", "{}"),
            _ => ScriptedReply::text(&results[3].to_string()),
        }
    });
    let ports = Ports {
        log: log.clone(),
        memory_texts: Arc::new(LocalMemoryTexts::new(&data)),
        ..Ports::new(polis_testkit::MemoryLog::new()).with_model(model)
    };
    let cast = with_memory_tools(Cast::new().with("root", Converse::default()));
    let options = Options::new(u64::from(std::process::id()), Role::new("root", "root"));
    let society = Society::open(name(), ports, cast, options).await?;
    if !has_request(&*log, "go").await? {
        society.submit("go").await?;
    }
    while !is_done(&*log, 1).await? {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}

/// Five agents, three levels of sub-threads, tools of all three effects, waits of every kind, a follow-up.
fn programs() -> Vec<Program> {
    let call = |tool: &str, argument: &str| (tool.to_owned(), argument.to_owned());
    let ask = |agent: &str, ops: Vec<Op>| Op::Ask { agent: agent.to_owned(), program: Program(ops), patience_ms: 600_000 };
    let leaf = vec![
        Op::Say("deepest".into()),
        Op::Keep("a leaf".into()),
        Op::Call(vec![call("stamp", "leaf")]),
        Op::Think("leaf".into()),
    ];
    let middle = vec![Op::Units(vec![Program(leaf)]), Op::Call(vec![call("mark", "middle")])];
    let top = vec![Op::Say("draft".into()), Op::Units(vec![Program(middle), Program(vec![Op::Say("aside".into())])])];
    let found = (1..=4).map(|n| Op::Spawn(format!("a{n}")));
    let first = found.chain([
        Op::Call(vec![call("look", r#"{"n":1}"#)]),
        Op::Call(vec![call("plan", r#"{"steps":[{"text":"look"},{"text":"mark"}]}"#), call("look", r#"{ "n": 1 }"#)]),
        ask(
            "a1",
            vec![Op::Call(vec![
                call("look", r#"{"n": 1.0}"#),
                call("look", "facts"),
                call("stamp", "facts"),
                call("mark", "facts"),
            ])],
        ),
        ask("a2", vec![Op::Units(vec![Program(top)])]),
        ask("a3", vec![Op::Sleep(3), Op::Approve("may I?".into()), ask("a4", vec![Op::Call(vec![call("mark", "archive")])])]),
        Op::Tell("nearly there".into()),
        Op::Keep("a report".into()),
        Op::Phase("finishing".into()),
        Op::Then(Program(vec![
            Op::Call(vec![call("plan", r#"{"step":2,"status":"in_progress"}"#)]),
            Op::Think("the end".into()),
            Op::Call(vec![call("mark", "end")]),
        ])),
    ]);
    vec![Program(first.collect()), Program(vec![Op::Say("second request".into())])]
}

fn note(file: &Path, line: &str) {
    let written = OpenOptions::new().create(true).append(true).open(file).and_then(|mut file| writeln!(file, "{line}"));
    written.expect("the world keeps notes");
}

async fn events(log: &dyn Log) -> Result<Vec<Recorded>, LogError> {
    log.read(&name(), Seq(0), usize::MAX).await
}

async fn has_request(log: &dyn Log, text: &str) -> Result<bool, LogError> {
    let asks = |recorded: &Recorded| matches!(&recorded.event, Event::MessageSent { envelope, .. } if envelope.from.is_user() && &*envelope.payload.text == text);
    Ok(events(log).await?.iter().any(asks))
}

async fn is_done(log: &dyn Log, requests: usize) -> Result<bool, LogError> {
    let ends = |recorded: &&Recorded| matches!(&recorded.event, Event::MessageSent { envelope, .. } if envelope.to.is_user() && envelope.kind != MessageKind::Message);
    let events = events(log).await?;
    Ok(events.iter().filter(ends).count() == requests && Spine::from_iter(&events).turns.is_empty())
}
