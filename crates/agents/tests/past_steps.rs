//! What a model is shown of earlier turns: the calls that it made with their results, and turns that ended without an answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use polis_agents::{ContextLimits, Converse};
use polis_domain::{
    CallResult, Effect, EffectClass, Event, MessageKind, Outcome, Resolution, Role, Ruling, Sender, SubThreadPath, Target,
    ThreadId, Timestamp, Verdict,
};
use polis_engine::{Cast, LocalLive, Options, Ports, Sent, Society};
use polis_ports::{ChatMessage, Delta, DeltaStream, Model, ModelError, ModelRequest};
use polis_testkit::{ManualClock, MemoryArtifacts, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};

type Asked = Arc<Mutex<Vec<ModelRequest>>>;

/// What the model says to the newest message of the person, and the results that it has in this turn.
type Script = fn(&str, &[&str]) -> ScriptedReply;

fn tools() -> ScriptedTools {
    ScriptedTools::new()
        .with("look", EffectClass::Read, |arguments, _| CallResult::good(format!("seen {arguments}")))
        .with("long", EffectClass::Read, |arguments, _| CallResult::good(format!("{arguments} {}", "x".repeat(9_000))))
        .with("get_artifact", EffectClass::Read, |_, _| CallResult::good(""))
        .with("write", EffectClass::Write, |_, _| CallResult::good("written"))
        .ruled(|tool, _| if tool == "write" { Ruling::Ask("may it?".to_owned()) } else { Ruling::Allow })
}

fn turn_of(request: &ModelRequest) -> (&str, Vec<&str>) {
    let asked = |message: &ChatMessage| matches!(message, ChatMessage::User { .. });
    let last = request.messages.iter().rposition(asked).unwrap();
    let ChatMessage::User { text, .. } = &request.messages[last] else { unreachable!() };
    (
        text,
        request.messages[last..]
            .iter()
            .filter_map(|message| match message {
                ChatMessage::Tool { content, .. } => Some(&**content),
                ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
            })
            .collect(),
    )
}

async fn open_with(model: impl Model + 'static, log: Arc<MemoryLog>, context: ContextLimits) -> Society {
    let ports = Ports {
        log,
        clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
        toolbox: Arc::new(tools()),
        live: Arc::new(LocalLive::remembering()),
        model: Arc::new(model),
        ..Ports::new(MemoryLog::new()).with_artifacts(MemoryArtifacts::default())
    };
    let cast = Cast::new().with("converse", Converse { context, ..Converse::default() });
    Society::open("main".into(), ports, cast, Options::new(7, Role::new("root", "converse"))).await.unwrap()
}

fn scripted(script: Script) -> (ScriptedModel, Asked) {
    let asked = Asked::default();
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| {
        heard.lock().unwrap().push(request.clone());
        if request.system.starts_with("Summarise") {
            return ScriptedReply::text("notes");
        }
        let (text, results) = turn_of(request);
        script(text, &results)
    });
    (model, asked)
}

async fn open(script: Script) -> (Society, Asked) {
    let (model, asked) = scripted(script);
    (open_with(model, Arc::new(MemoryLog::new()), ContextLimits::default()).await, asked)
}

async fn say(society: &Society, text: &str) {
    let sent = society.submit(text).await.unwrap();
    let answer = society.answer(&sent).await.unwrap();
    assert_eq!(answer.kind, MessageKind::Answer, "{:?}", answer.payload.text);
}

/// A line for each message: who, what was said, and which calls.
fn lines(request: &ModelRequest) -> Vec<String> {
    let line = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => format!("user: {text}"),
        ChatMessage::Assistant { text, tool_calls, .. } => {
            let calls = tool_calls.iter().map(|call| format!(" {}={}{}", call.id, call.name, call.arguments));
            format!("assistant: {text}{}", calls.collect::<String>())
        }
        ChatMessage::Tool { call_id, content, is_error, .. } => format!("tool {call_id} {is_error}: {content}"),
    };
    request.messages.iter().map(line).collect()
}

fn last(asked: &Asked) -> ModelRequest {
    asked.lock().unwrap().last().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn calls_and_results_of_earlier_turns_are_shown_as_they_were() {
    let (society, asked) = open(|text, results| match (text, results.len()) {
        ("first", 0) => {
            let reply = ScriptedReply::text("let me see").reasoning("hm").and_call("1", "look", r#"{"at":"a"}"#);
            reply.and_call("2", "absent", "{}").and_call("3", "look", "not json")
        }
        ("first", 3) => ScriptedReply::call("1", "look", r#"{"at":"b"}"#),
        _ => ScriptedReply::text("done"),
    })
    .await;
    say(&society, "first").await;
    let in_turn = last(&asked);
    say(&society, "second").await;
    let shown = lines(&last(&asked));
    assert_eq!(shown[..in_turn.messages.len()], lines(&in_turn));
    assert_eq!(shown[in_turn.messages.len()..], ["assistant: done", "user: second"]);
    assert!(shown.contains(&r#"tool 1 false: seen {"at":"b"}"#.to_owned()), "{shown:?}");
    let reasons = |message: &ChatMessage| matches!(message, ChatMessage::Assistant { reasoning, .. } if !reasoning.is_empty());
    assert!(in_turn.messages.iter().any(reasons) && !last(&asked).messages.iter().any(reasons), "thoughts are of one turn");
}

/// The calls that wait for the person.
async fn waiting(society: &Society) -> polis_domain::EffectId {
    let mut watch = society.watch(polis_domain::Seq(0));
    loop {
        let recorded = watch.next_event().await.unwrap().unwrap();
        if let Event::EffectStarted { id, effect: Effect::Approval { .. }, .. } = &recorded.event {
            return *id;
        }
    }
}

async fn decide(society: &Society, verdict: Verdict) {
    let id = waiting(society).await;
    society.resolve(id, Resolution::Outcome(Outcome::Verdict(verdict))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_person_decided_about_a_call_is_shown_as_its_result() {
    let script: Script = |text, results| match (text, results.len()) {
        ("write", 0) => ScriptedReply::call("w", "write", r#"{"to":"a"}"#),
        _ => ScriptedReply::text("done"),
    };
    let no = Verdict::no("not there");
    let yes = Verdict::yes();
    let other = Verdict { arguments: Some(r#"{"to":"b"}"#.into()), ..yes.clone() };
    let cases = [
        (no, "tool w true: not made: the person said no: not there"),
        (yes, "tool w false: written"),
        (other, r#"tool w false: [polis] The person changed the arguments. What was called: {"to":"b"}"#),
    ];
    for (verdict, expected) in cases {
        let (society, asked) = open(script).await;
        let sent = society.submit("write").await.unwrap();
        decide(&society, verdict).await;
        society.answer(&sent).await.unwrap();
        say(&society, "second").await;
        let shown = lines(&last(&asked));
        assert_eq!(shown[1], r#"assistant:  w=write{"to":"a"}"#);
        assert!(shown[2].starts_with(expected), "{shown:?}");
        assert_eq!(shown[3..], ["assistant: done", "user: second"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_failed_leaves_a_note() {
    let (society, asked) = open(|text, results| match (text, results.len()) {
        ("first", 0) => ScriptedReply::call("1", "look", "{}"),
        ("first", _) => ScriptedReply::error(ModelError::Rejected { reason: "on holiday".to_owned() }),
        _ => ScriptedReply::text("done"),
    })
    .await;
    let sent = society.submit("first").await.unwrap();
    assert!(matches!(society.answer(&sent).await.unwrap().kind, MessageKind::Failure(_)));
    say(&society, "second").await;
    let shown = lines(&last(&asked));
    assert_eq!(shown[..3], ["user: first", "assistant:  1=look{}", "tool 1 false: seen {}"]);
    assert!(shown[3].starts_with("user: [polis] Your turn failed here") && shown[3].contains("on holiday"), "{shown:?}");
    assert_eq!(shown[4..], ["user: second"]);
}

/// Says half of something and no more, unless it is asked a second question.
struct Stalling(Asked);

#[async_trait]
impl Model for Stalling {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let is_second = turn_of(&request).0 == "second";
        self.0.lock().unwrap().push(request);
        if is_second {
            let whole = [Delta::Content("done".to_owned()), Delta::Done(polis_domain::Finish::Stop)];
            return Ok(Box::pin(stream::iter(whole.map(Ok))));
        }
        let half = [Delta::Reasoning("hm".to_owned()), Delta::Content("half ".to_owned()), Delta::Content("of it".to_owned())];
        Ok(Box::pin(stream::iter(half.map(Ok)).chain(stream::pending())))
    }
}

/// Waits until the model has said something.
async fn half_said(society: &Society, sent: &Sent) {
    let mut watch = society.watch(sent.seq);
    loop {
        let frame = watch.next().await.unwrap().unwrap();
        if matches!(&frame, polis_engine::WatchEvent::Delta(streamed) if matches!(&streamed.delta, Delta::Content(text) if text.ends_with("it")))
        {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_reply_had_said_stays_in_the_conversation() {
    let asked = Asked::default();
    let society = open_with(Stalling(asked.clone()), Arc::new(MemoryLog::new()), ContextLimits::default()).await;
    let sent = society.submit("first").await.unwrap();
    half_said(&society, &sent).await;
    society.cancel(Target::Task(sent.task_id.clone()), "the person pressed Ctrl-C").await.unwrap();
    let thread = society.thread(&ThreadId::from("root"), &SubThreadPath::main()).await.unwrap();
    let kept = thread.messages.last().unwrap();
    assert_eq!((kept.sender, &*kept.text), (Sender::Bot, "half of it"));
    assert!(kept.meta.contains_key("stopped"));
    say(&society, "second").await;
    let note = "user: [polis] Your turn was stopped here, before you had answered: the person pressed Ctrl-C. What its calls did \
                is done.";
    assert_eq!(lines(&last(&asked)), ["user: first", "assistant: half of it", note, "user: second"]);
}

#[tokio::test(start_paused = true)]
async fn old_results_are_shortened_and_can_be_read_again() {
    let log = Arc::new(MemoryLog::new());
    let script: Script = |text, results| match results.len() {
        0 => ScriptedReply::call("1", "long", &format!("{{\"of\":\"{text}\"}}")),
        _ => ScriptedReply::text("done"),
    };
    let (model, asked) = scripted(script);
    let society = open_with(model, log.clone(), ContextLimits::default()).await;
    let mut starts = Vec::new();
    for n in 0..8 {
        say(&society, &format!("{n}")).await;
        let first = |request: &&ModelRequest| turn_of(request) == (&*n.to_string(), Vec::new());
        starts.push(lines(asked.lock().unwrap().iter().find(first).unwrap()));
    }
    let whole = |shown: &[String]| shown.iter().filter(|line| line.len() > 9_000).count();
    let counts: Vec<_> = starts.iter().map(|shown| whole(shown)).collect();
    assert_eq!(counts, [0, 1, 2, 3, 1, 2, 3, 1], "half of them are given up at a time");
    let is_prefix = |pair: &[Vec<String>]| pair[1].starts_with(&pair[0]);
    let stable: Vec<_> = starts.windows(2).map(is_prefix).collect();
    assert_eq!(stable, [true, true, true, false, true, true, false], "the beginning changes only then");
    let shortened = starts[7].iter().find(|line| line.contains("more bytes; get_artifact")).unwrap();
    let kept = society.look(|spine| spine.artifacts.entries().len()).await.unwrap();
    assert_eq!(kept, 6, "each is kept once");
    let id = shortened.split("the id ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let content = society.artifacts().read(&id, 0, 20).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&content.bytes), r#"{"of":"0"} xxxxxxxxx"#);
    // A second run of a turn comes to the same.
    society.stop(Duration::from_secs(1)).await;
    let (model, again) = scripted(script);
    let society = open_with(model, log, ContextLimits::default()).await;
    say(&society, "8").await;
    let asked = lines(&again.lock().unwrap()[0]);
    assert!(asked.starts_with(&starts[7]), "{}", asked.len());
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_made_of_calls_in_words() {
    let (model, asked) = scripted(|_, results| match results.len() {
        0 => ScriptedReply::call("1", "look", "{}"),
        _ => ScriptedReply::text("done"),
    });
    let context = ContextLimits { max_context_messages: 6, keep_recent_count: 2, compress: true };
    let society = open_with(model, Arc::new(MemoryLog::new()), context).await;
    for n in 0..4 {
        say(&society, &format!("{n}")).await;
    }
    let asked = asked.lock().unwrap();
    let summary = asked.iter().find(|request| request.system.starts_with("Summarise")).unwrap();
    let shown = lines(summary);
    assert_eq!(shown[..3], ["user: 0", "assistant: [called look with {}: seen {}]", "assistant: done"]);
    assert_eq!(shown.last().unwrap(), "user: Now write the notes.");
    let after = lines(asked.last().unwrap());
    assert_eq!(after[..2], ["user: [历史摘要] notes", "user: 2"], "what is summed up is not shown: {after:?}");
}
