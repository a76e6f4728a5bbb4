//! A turn whose own calls fill the model's window goes on with less.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use polis_agents::Converse;
use polis_domain::{CallResult, EffectClass, MessageKind, Role};
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelError, ModelRequest, estimate_tokens};
use polis_testkit::{MemoryArtifacts, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};

/// Calls that the model makes before it answers.
const ROUNDS: usize = 12;

fn texts(request: &ModelRequest) -> Vec<String> {
    let text = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.to_string(),
        ChatMessage::Tool { content, .. } => content.to_string(),
    };
    request.messages.iter().map(text).collect()
}

fn size(request: &ModelRequest) -> u64 {
    texts(request).iter().map(|text| estimate_tokens(text)).sum()
}

/// The requests that a model answers which makes many calls with results of this length, and how many it refuses because they are
/// longer than its window, which it tells or does not.
async fn run(window: u64, is_told: bool, result_bytes: usize) -> (Vec<ModelRequest>, usize) {
    let refused = Arc::<AtomicUsize>::default();
    let count = refused.clone();
    let asked = Arc::<Mutex<Vec<ModelRequest>>>::default();
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| {
        if size(request) > window {
            count.fetch_add(1, Relaxed);
            let reason = "400: context_length_exceeded: the request is too long".to_owned();
            return ScriptedReply::error(ModelError::Rejected { reason });
        }
        let mut heard = heard.lock().unwrap();
        heard.push(request.clone());
        let calls = heard.iter().filter(|request| !request.aside).count();
        if request.aside {
            ScriptedReply::text("notes: all of it is x")
        } else if calls <= ROUNDS {
            ScriptedReply::call(&format!("c{calls}"), "look", &format!("{{\"at\":{calls}}}"))
        } else {
            ScriptedReply::text("x everywhere")
        }
    });
    let model = if is_told { model.seeing(window) } else { model };
    let tools = ScriptedTools::new()
        .with("look", EffectClass::Read, move |arguments, _| {
            CallResult::good(format!("{arguments} {}", "x ".repeat(result_bytes / 2)))
        })
        .with("get_artifact", EffectClass::Read, |_, _| CallResult::good("x"));
    let artifacts = Arc::new(MemoryArtifacts::new());
    let ports = Ports { model: Arc::new(model), toolbox: Arc::new(tools), artifacts, ..Ports::new(MemoryLog::new()) };
    let cast = Cast::new().with("converse", Converse::default());
    let society = Society::open("main".into(), ports, cast, Options::new(7, Role::new("root", "converse"))).await.unwrap();
    let sent = society.submit("look everywhere").await.unwrap();
    let answer = society.answer(&sent).await.unwrap();
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, "x everywhere"));
    let asked = asked.lock().unwrap().clone();
    (asked, refused.load(Relaxed))
}

#[tokio::test]
async fn notes_take_the_place_of_older_rounds_and_their_results_can_be_read_again() {
    let (asked, refused) = run(4_000, true, 2_000).await;
    assert_eq!(refused, 0);
    let notes: Vec<_> = asked.iter().filter(|request| request.aside).collect();
    assert!(!notes.is_empty() && notes.iter().all(|request| texts(request).last().unwrap().contains("Write notes")));
    let whole = |request: &ModelRequest| texts(request).iter().filter(|text| text.len() > 2_000).count();
    assert!(whole(notes[0]) >= 2, "they are written while the results are whole");
    assert_eq!(notes[0].tools, asked[0].tools, "the list of tools stays the same");
    let last = texts(asked.last().unwrap());
    assert_eq!(last.iter().filter(|text| text.contains("notes: all of it is x")).count(), 1, "{last:#?}");
    assert!(last[1].contains("which get_artifact reads") && last[0] == "look everywhere", "{last:#?}");
    assert!(whole(asked.last().unwrap()) >= 2, "the newest results stay");
    let first = asked[1].messages.len();
    assert_eq!(asked[2].messages[..first], asked[1].messages[..], "nothing changes before it must");
}

#[tokio::test]
async fn a_model_that_refuses_a_request_as_too_long_gets_a_shorter_one() {
    let (asked, refused) = run(4_000, false, 2_000).await;
    assert!(refused > 0 && asked.iter().all(|request| size(request) <= 4_000));
    let is_short = |text: &String| text.contains("more bytes; get_artifact with the id");
    assert!(asked.iter().any(|request| texts(request).iter().any(is_short)), "results are shortened first");
}
