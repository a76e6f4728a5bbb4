//! Random societies, translated to AG-UI runs: each keeps the rules of the protocol, live and on replay.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{CallResult, Effect, EffectClass, Event as LogEvent, Failure, Finish, Response, Ruling, Seq};
use polis_engine::{Agent, Cast, LocalLive, Options, Ports, Society, SystemClock, Turn, WatchEvent};
use polis_ports::{ChatMessage, Delta, DeltaStream, Model, ModelError, ModelRequest};
use polis_testkit::{MemoryArtifacts, MemoryLog, Op, Program, ProgrammedAgent, ScriptedTools, worker_role};
use serde_json::json;

use super::event::{Body, Event, Outcome};
use super::run::{Run, RunContext, waiting};
use super::verifier::Verifier;
use crate::HostSettings;
use crate::state::SocietyState;
use polis_api::Pending;

/// Does what its task says, or talks with the model and calls what it asks for.
struct Talker;

impl Agent for Talker {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if &*turn.task().message == "notes" {
            turn.model(ModelRequest { aside: true, ..ModelRequest::from("write notes") }).await?;
            return Ok(Response::new(turn.model("answer".into()).await?.text));
        }
        if !turn.task().message.starts_with("talk") {
            return ProgrammedAgent.execute_task(turn).await;
        }
        let mut messages = vec![ChatMessage::user(turn.task().message.clone())];
        loop {
            let request = ModelRequest { messages: messages.clone(), tools: turn.tools(), ..ModelRequest::default() };
            let reply = turn.model(request).await?;
            if reply.tool_calls.is_empty() {
                return Ok(Response::new(reply.text));
            }
            let results = turn.call_tools(reply.tool_calls.clone()).await;
            messages.push(ChatMessage::said(&reply));
            messages.extend(reply.tool_calls.iter().zip(&results).map(|(call, result)| ChatMessage::result(call, result)));
        }
    }
}

/// Speaks in small chunks, thinks aloud, and asks for tools the first time.
struct Piecemeal;

#[async_trait::async_trait]
impl Model for Piecemeal {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let is_talk = matches!(request.messages.first(), Some(ChatMessage::User { text, .. }) if &**text == "talk");
        let is_first = !request.messages.iter().any(|message| matches!(message, ChatMessage::Tool { .. }));
        let mut deltas = vec![Delta::Reasoning("let ".to_owned()), Delta::Reasoning("me see".to_owned())];
        deltas.extend(["a ", "thought", "!"].map(|chunk| Delta::Content(chunk.to_owned())));
        if is_first && !request.tools.is_empty() {
            for (index, tool) in (0..).zip(["note", "guarded"]) {
                let (id, name) = (Some(format!("c{index}").into()), Some(tool.into()));
                deltas.push(Delta::ToolCall { index, id, name, arguments: "{\"a\"".to_owned() });
                deltas.push(Delta::ToolCall { index, id: None, name: None, arguments: ":1}".to_owned() });
            }
            deltas.push(Delta::Done(Finish::ToolCalls));
        } else {
            deltas.push(Delta::Done(Finish::Stop));
        }
        // Whoever watches is to hear each chunk before the whole is in the log.
        let pause = if is_talk { 20 } else { 0 };
        Ok(Box::pin(futures_util::stream::iter(deltas).then(move |delta| async move {
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
            Ok(delta)
        })))
    }
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = polis_domain::mix(self.0);
        self.0 % sides
    }
}

fn program(dice: &mut Dice, depth: u32) -> Program {
    let length = 1 + dice.roll(3);
    Program((0..length).map(|_| op(dice, depth)).collect())
}

fn op(dice: &mut Dice, depth: u32) -> Op {
    let deeper = depth < 3;
    match dice.roll(if deeper { 13 } else { 10 }) {
        0 => Op::Say("working".to_owned()),
        1 | 2 => Op::Think("hm".to_owned()),
        3 => Op::Call(vec![("note".to_owned(), "{}".to_owned()), ("note".to_owned(), "{\"b\":2}".to_owned())]),
        4 => Op::Call(vec![("guarded".to_owned(), "{}".to_owned())]),
        5 => Op::Approve("may I?".to_owned()),
        6 => Op::Tell("by the way".to_owned()),
        7 => Op::Keep("kept".to_owned()),
        8 if dice.roll(4) == 0 => Op::Fail("odd".to_owned()),
        8 => Op::Sleep(1),
        9 => Op::Think("again".to_owned()),
        10 => Op::Units((0..1 + dice.roll(2)).map(|_| program(dice, depth + 1)).collect()),
        11 => Op::Ask { agent: format!("helper{depth}"), program: program(dice, depth + 1), patience_ms: 60_000 },
        _ => Op::Then(program(dice, depth + 1)),
    }
}

async fn society() -> SocietyState {
    let tools = ScriptedTools::new()
        .with("note", EffectClass::Idempotent, |_, _| CallResult::good("noted"))
        .with("guarded", EffectClass::Write, |_, _| CallResult::good("done"))
        .ruled(|tool, _| if tool == "guarded" { Ruling::Ask("it is guarded".to_owned()) } else { Ruling::Allow });
    let ports = Ports {
        log: Arc::new(MemoryLog::new()),
        model: Arc::new(Piecemeal),
        toolbox: Arc::new(tools),
        live: Arc::new(LocalLive::default()),
        clock: Arc::new(SystemClock),
        artifacts: Arc::new(MemoryArtifacts::limited(1 << 20)),
        memory_texts: Arc::new(polis_ports::NoMemoryTexts),
        embedder: None,
    };
    let cast = Cast::new().with(ProgrammedAgent::NAME, Talker);
    let society = Society::open("main".into(), ports, cast, Options::new(7, worker_role())).await.unwrap();
    for depth in 0..3 {
        society.spawn(format!("helper{depth}").into(), worker_role().id, "root".into()).await.unwrap();
    }
    SocietyState::new(society, HostSettings { model: "scripted/one".to_owned(), is_offline: true, ..HostSettings::default() })
}

fn names(run: &str) -> RunContext {
    RunContext { thread: "t".into(), run: run.into(), ..RunContext::default() }
}

/// Hears a run to its end and checks every event of it.
async fn heard(mut run: Run, about: &str) -> Vec<Event> {
    let mut verifier = Verifier::default();
    let mut events = Vec::new();
    let follow = async {
        while let Some(event) = run.next().await {
            let told = verifier.check(&event);
            events.push(event);
            assert_eq!(told, Ok(()), "{about}: {:#?}", &events[events.len().saturating_sub(12)..]);
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), follow).await.unwrap_or_else(|_| panic!("{about}: it never ends"));
    assert!(verifier.is_over(), "{about}: no end in {events:#?}");
    events
}

fn texts(events: &[Event]) -> Vec<String> {
    let mut texts: Vec<(Arc<str>, String)> = Vec::new();
    for event in events.iter().filter(|event| event.subagent_run_id.is_none()) {
        match &event.body {
            Body::TextMessageStart { message_id, .. } => texts.push((message_id.clone(), String::new())),
            Body::TextMessageContent { message_id, delta } => {
                let known = texts.iter_mut().find(|(id, _)| id == message_id).unwrap();
                known.1.push_str(delta);
            }
            _ => {}
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

fn calls(events: &[Event]) -> BTreeSet<Arc<str>> {
    let call = |event: &Event| match &event.body {
        Body::ToolCallStart { tool_call_id, .. } => Some(tool_call_id.clone()),
        _ => None,
    };
    events.iter().filter_map(call).collect()
}

/// Runs a request to its end, answering whatever is asked; gives what was told in each run.
async fn whole(state: &SocietyState, text: &str, dice: &mut Dice, about: &str) -> (polis_domain::TaskId, Seq, Vec<Vec<Event>>) {
    let task = state.society.new_task();
    let run = Run::listen(state, &task, &names("r0")).await.unwrap();
    // It listens before anything is said, so that it hears every chunk.
    let (first, sent) = tokio::join!(heard(run, about), state.society.send("root".into(), text, Some(task.clone())));
    let sent = sent.unwrap();
    let mut runs = vec![first];
    while matches!(&runs.last().unwrap().last().unwrap().body, Body::RunFinished { outcome: Outcome::Interrupt { .. }, .. }) {
        let mut run = Run::listen(state, &task, &names(&format!("r{}", runs.len()))).await.unwrap();
        run.catch_up().await.unwrap();
        for approval in waiting(state, &task).await.unwrap() {
            assert!(matches!(approval.pending, Pending::Approval { .. }));
            let word = json!({ "approved": dice.roll(3) > 0, "reason": "so it is" });
            polis_api::local::settle(&state.society, &approval.id, serde_json::from_value(word).unwrap()).await.unwrap();
        }
        runs.push(heard(run, about).await);
        assert!(runs.len() < 60, "{about}: it asks for ever");
    }
    (task, sent.seq, runs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_of_random_societies_keep_the_rules_and_are_told_alike_again() {
    let mut subagents = 0;
    let mut interrupts = 0;
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let state = society().await;
        let text = program(&mut dice, 0).text();
        let about = format!("seed {seed}: {text}");
        let (task, from, runs) = whole(&state, &text, &mut dice, &about).await;
        interrupts += runs.len() - 1;
        let told: Vec<Event> = runs.into_iter().flatten().collect();
        subagents += told.iter().filter(|event| matches!(event.body, Body::SubagentStarted { .. })).count();
        let again = heard(Run::replay(&state, &task, &names("again"), from, Vec::new()).await.unwrap(), &about).await;
        assert_eq!(texts(&told), texts(&again), "{about}");
        assert_eq!(calls(&told), calls(&again), "{about}");
        let envelopes = state.society.messages(&task).await.unwrap();
        let answer = &envelopes.last().unwrap().1;
        match &told.last().unwrap().body {
            Body::RunFinished { outcome: Outcome::Success { .. }, .. } => {
                assert_eq!(texts(&told).last().map(|text| text.trim()), Some(answer.payload.text.trim()), "{about}");
            }
            Body::RunError { code, .. } => assert_eq!(code.as_deref(), Some("odd"), "{about}"),
            other => panic!("{about}: {other:?}"),
        }
    }
    assert!(subagents > 30 && interrupts > 10, "{subagents} sub-agents, {interrupts} interrupts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_is_told_chunk_by_chunk_with_its_reasoning_and_calls() {
    let state = society().await;
    let (_, _, runs) = whole(&state, "talk", &mut Dice(1), "talk").await;
    let [first, second] = &runs[..] else { panic!("{runs:#?}") };
    let told = |events: &[Event], name: &str| {
        let kinds = events.iter().map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind == name).count()
    };
    assert_eq!(texts(first), ["a thought!"]);
    assert_eq!(told(first, "TEXT_MESSAGE_CONTENT"), 3, "as it comes, not at the end");
    assert_eq!((told(first, "REASONING_MESSAGE_CONTENT"), told(first, "TOOL_CALL_ARGS")), (2, 4));
    assert_eq!((told(first, "TOOL_CALL_RESULT"), told(second, "TOOL_CALL_RESULT")), (1, 1));
    assert_eq!(told(second, "TOOL_CALL_START"), 0, "a call that a person was asked about is not told twice");
    let Body::RunFinished { outcome: Outcome::Interrupt { interrupts }, .. } = &first.last().unwrap().body else { panic!() };
    let asked = interrupts[0].tool_call_id.clone().unwrap();
    let answered = |event: &Event| matches!(&event.body, Body::ToolCallResult { tool_call_id, .. } if *tool_call_id == asked);
    assert!(second.iter().any(answered), "its result has the name of the call in the first run");
    assert_eq!(texts(second), ["a thought!"], "the answer is not said twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_turn_asks_a_model_for_itself_alone_is_told_to_nobody() {
    let state = society().await;
    let mut watch = state.society.watch(Seq(0));
    let (task, from, runs) = whole(&state, "notes", &mut Dice(1), "notes").await;
    assert_eq!(texts(&runs[0]), ["a thought!"], "the answer, and not what was noted before it");
    let thoughts =
        |events: &[Event]| events.iter().filter(|event| matches!(event.body, Body::ReasoningMessageStart { .. })).count();
    assert_eq!(thoughts(&runs[0]), 1);
    let again = heard(Run::replay(&state, &task, &names("again"), from, Vec::new()).await.unwrap(), "again").await;
    assert_eq!((texts(&again), thoughts(&again)), (texts(&runs[0]), 1));
    let Body::RunFinished { usage, .. } = &again.last().unwrap().body else { panic!("{again:#?}") };
    let asked: Vec<_> = usage.iter().map(|usage| usage.total_tokens).collect();
    let (mut heard, mut asides) = (Vec::new(), Vec::new());
    while let Ok(Some(seen)) = watch.next().await {
        match seen {
            WatchEvent::Event(recorded) => {
                if let LogEvent::EffectStarted { id, effect: Effect::Model { aside: true, .. }, .. } = &recorded.event {
                    asides.push(*id);
                }
            }
            WatchEvent::Delta(delta) => {
                heard.push(delta.effect);
                if matches!(delta.delta, Delta::Done(_)) && !asides.contains(&delta.effect) {
                    break;
                }
            }
            WatchEvent::Step(_) => {}
        }
    }
    assert_eq!(asides.len(), 1);
    assert!(!heard.is_empty() && !heard.contains(&asides[0]), "no watcher hears its chunks either");
    assert!(asked.iter().sum::<u64>() > 0, "what it cost counts");
}

#[test]
fn the_verifier_knows_a_wrong_stream() {
    let start = |thread: &str| {
        Event::new(Body::RunStarted {
            thread_id: thread.into(),
            run_id: "r".into(),
            protocol_version: "1.0".to_owned(),
            parent_run_id: None,
        })
    };
    let finish = || {
        Event::new(Body::RunFinished {
            thread_id: "t".into(),
            run_id: "r".into(),
            result: None,
            outcome: Outcome::Cancelled,
            usage: Vec::new(),
        })
    };
    let text = |owner: Option<&str>| Event {
        subagent_run_id: owner.map(Into::into),
        ..Event::new(Body::TextMessageStart { message_id: "m".into(), role: super::event::Role::Assistant, name: None })
    };
    let end = || Event::new(Body::TextMessageEnd { message_id: "m".into() });
    let wrong = |events: &[Event]| {
        let mut verifier = Verifier::default();
        events.iter().any(|event| verifier.check(event).is_err())
    };
    assert!(!wrong(&[start("t"), text(None), end(), finish()]));
    assert!(wrong(&[text(None)]));
    assert!(wrong(&[start("t"), text(None), finish()]));
    assert!(wrong(&[start("t"), end()]));
    assert!(wrong(&[start("t"), text(Some("a")), end(), text(Some("b"))]));
    assert!(wrong(&[start("t"), finish(), end()]));
}
