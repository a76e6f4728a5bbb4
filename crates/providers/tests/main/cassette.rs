//! Recorded models: what is recorded is replayed as it was, and nothing else is.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, future};
use polis_domain::{EffectClass, Finish, ToolCall, Usage};
use polis_ports::{
    ChatMessage, Citation, Delta, Effort, Format, Media, MediaKind, Model, ModelError, ModelRequest, ModelSettings, ToolChoice,
    ToolSpec, VendorCall, VendorTool,
};
use polis_providers::{CassetteError, Recorder, Replayer};
use serde_json::json;
use tempfile::TempDir;

use crate::script::{Part, Script, all, saying};

fn tape(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("tape.jsonl")
}

fn asking(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ChatMessage::user(text)], ..ModelRequest::default() }
}

async fn record(file: &Path, parts: Vec<Part>, requests: &[ModelRequest]) {
    let recorder = Recorder::open(Script::new(parts), file).unwrap();
    for request in requests {
        let _ = all(&recorder, request.clone()).await;
    }
}

/// A request in which everything is set.
fn full() -> ModelRequest {
    let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: "{\"at\":1}".into() };
    ModelRequest {
        model: "v/m".into(),
        system: "Be brief.\nBe kind.".into(),
        purpose: "".into(),
        messages: vec![
            ChatMessage::User {
                text: "what is this?".into(),
                media: vec![
                    Media::Inline { media_type: "image/png".into(), name: "".into(), data: "PICTURE".into() },
                    Media::Url("https://example.com/a.png".into()),
                ],
            },
            ChatMessage::Assistant {
                text: "".into(),
                reasoning: "hm".into(),
                tool_calls: vec![call],
                echo: Some(Arc::new(json!([{ "signature": "s" }]))),
            },
            ChatMessage::Tool {
                call_id: "c1".into(),
                name: "look".into(),
                content: "a cat".into(),
                is_error: true,
                media: vec![],
            },
        ],
        vendor_tools: vec![VendorTool::WebSearch],
        tools: Arc::new([ToolSpec {
            name: "look".into(),
            description: "Looks.".into(),
            parameters: json!({ "type": "object", "properties": { "at": { "type": "integer" } } }),
            class: EffectClass::Read,
            volatile: false,
        }]),
        tool_choice: ToolChoice::Named("look".into()),
        one_call: true,
        format: Some(Arc::new(Format { name: "shape".to_owned(), schema: json!({ "type": "object" }) })),
        settings: ModelSettings {
            temperature: Some(0.2),
            max_tokens: Some(99),
            effort: Some(Effort::Low),
            stop: vec!["END".into()],
            ..ModelSettings::default()
        },
        takes_effort: false,
        asker: "root".into(),
        effect: None,
        aside: false,
    }
}

#[tokio::test]
async fn deltas_and_errors_come_back_exactly_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let every = vec![
        Delta::Model("v/m".into()),
        Delta::Reasoning("hm".to_owned()),
        Delta::Content("你".to_owned()),
        Delta::Content("好\n".to_owned()),
        Delta::ToolCall { index: 0, id: Some("a".into()), name: Some("look".into()), arguments: "{".to_owned() },
        Delta::ToolCall { index: 0, id: None, name: None, arguments: "}".to_owned() },
        Delta::Echo(Arc::new(json!({ "k": [1, 2.5] }))),
        Delta::VendorCall(VendorCall::new(VendorTool::WebSearch, "q")),
        Delta::Citation(Citation::new("t", "https://a")),
        Delta::Usage(Usage { input_tokens: 1, output_tokens: 2, cost_nanos: 3, ..Usage::default() }),
        Delta::Done(Finish::Other("odd".to_owned())),
    ];
    let wait = Some(Duration::from_millis(1_500));
    let errors = || {
        [
            ModelError::Throttled { reason: "slow".to_owned(), retry_after: wait },
            ModelError::Rejected { reason: "no".to_owned() },
            ModelError::Failed { reason: "oh".to_owned(), retry_after: None },
            ModelError::Resting { vendor: "v".into(), failures: 3, retry_after: Duration::from_secs(9) },
            ModelError::Cut { reason: "cut".to_owned() },
            ModelError::Unreachable("nobody".into()),
        ]
    };
    let broken = || Part::Break(vec![Delta::Content("ha".to_owned())], ModelError::Cut { reason: "there".to_owned() });
    let short = || Part::Say(vec![Delta::Content("no end".to_owned())]);
    let parts = || [Part::Say(every.clone()), broken(), short()].into_iter().chain(errors().map(Part::Refuse));

    let recorder = Recorder::open(Script::new(parts()), &tape(&folder)).unwrap();
    let mut recorded = Vec::new();
    for number in 0..parts().count() {
        recorded.push(all(&recorder, asking(&number.to_string())).await);
    }
    let replayer = Replayer::open(&tape(&folder)).unwrap();
    assert_eq!(replayer.unused().len(), recorded.len());
    assert_eq!(replayer.unused()[0], "line 2: user: 0");
    // The order of different requests does not matter.
    for number in (0..parts().count()).rev() {
        assert_eq!(all(&replayer, asking(&number.to_string())).await, recorded[number], "{number}");
    }
    assert_eq!(replayer.unused(), [""; 0]);
    for (number, want) in errors().into_iter().enumerate() {
        let replayer = Replayer::open(&tape(&folder)).unwrap();
        let got = replayer.stream(asking(&(number + 3).to_string())).await.err().unwrap();
        assert_eq!((got.code(), got.retry_after(), got.to_string()), (want.code(), want.retry_after(), want.to_string()));
    }
}

#[tokio::test]
async fn the_same_request_is_answered_in_order_and_not_once_more() {
    let folder = tempfile::tempdir().unwrap();
    record(&tape(&folder), vec![saying(&["one"]), saying(&["two"])], &[asking("x"), asking("x")]).await;
    let replayer = Replayer::open(&tape(&folder)).unwrap();
    for want in ["one", "two"] {
        assert_eq!(all(&replayer, asking("x")).await.unwrap()[0], Ok(Delta::Content(want.to_owned())));
    }
    let refused = all(&replayer, asking("x")).await.unwrap_err();
    assert!(refused.ends_with("tape.jsonl has this request 2 times, and it was asked once more: user: x"), "{refused}");
}

#[tokio::test]
async fn many_at_once_get_each_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let requests: Vec<_> = texts.iter().map(|text| asking(text)).collect();
    record(&tape(&folder), texts.iter().map(|text| saying(&[text])).collect(), &requests).await;
    let replayer = Arc::new(Replayer::open(&tape(&folder)).unwrap());
    let asked = requests.into_iter().rev().map(|request| {
        let replayer = replayer.clone();
        tokio::spawn(async move { all(&*replayer, request).await.unwrap() })
    });
    for (got, want) in future::join_all(asked).await.into_iter().zip(texts.iter().rev()) {
        assert_eq!(got.unwrap()[0], Ok(Delta::Content(want.clone())));
    }
    assert_eq!(replayer.unused(), [""; 0]);
}

#[tokio::test]
async fn who_asks_and_what_repeating_means_are_no_part_of_a_request_and_everything_else_is() {
    type Change = fn(&mut ModelRequest);
    let folder = tempfile::tempdir().unwrap();
    record(&tape(&folder), vec![saying(&["yes"])], &[full()]).await;
    let same: [Change; 2] = [
        |request| request.asker = "somebody".into(),
        |request| {
            let class = EffectClass::Write;
            request.tools = request.tools.iter().map(|tool| ToolSpec { class, ..tool.clone() }).collect();
        },
    ];
    for change in same {
        let replayer = Replayer::open(&tape(&folder)).unwrap();
        let mut request = full();
        change(&mut request);
        assert!(all(&replayer, request).await.is_ok());
    }
    let others: &[(Change, &str)] = &[
        (|request| request.model = "v/n".into(), "- model: v/m\n+ model: v/n"),
        (|request| request.system = "Be brief.\nBe rude.".into(), "-     Be kind.\n+     Be rude."),
        (|request| request.settings.temperature = None, "- temperature: 0.2"),
        (|request| request.settings.max_tokens = Some(100), "- max_tokens: 99\n+ max_tokens: 100"),
        (|request| request.settings.effort = Some(Effort::High), "- effort: low\n+ effort: high"),
        (|request| request.settings.stop.push("!".into()), "- stop: END\n+ stop: END | !"),
        (|request| request.settings.seed = Some(7), "+ seed: 7"),
        (|request| request.format = None, "- format shape: {"),
        (|request| request.messages.push(ChatMessage::user("more")), "+ user: more"),
        (
            |request| {
                let data = "ANOTHER".into();
                request.messages[0] = ChatMessage::User {
                    text: "what is this?".into(),
                    media: vec![Media::Inline { media_type: "image/png".into(), name: "".into(), data }],
                };
            },
            "+   media: image/png digest:",
        ),
        (
            |request| {
                let ChatMessage::Tool { is_error, .. } = &mut request.messages[2] else { panic!() };
                *is_error = false;
            },
            "- error of look (c1): a cat\n+ result of look (c1): a cat",
        ),
        (
            |request| {
                let parameters = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
                request.tools =
                    request.tools.iter().map(|tool| ToolSpec { parameters: parameters.clone(), ..tool.clone() }).collect();
            },
            "-           \"type\": \"integer\"\n+           \"type\": \"string\"",
        ),
    ];
    for (change, want) in others {
        let replayer = Replayer::open(&tape(&folder)).unwrap();
        let mut request = full();
        change(&mut request);
        let error = replayer.stream(request).await.err().unwrap();
        assert!(matches!(&error, ModelError::Rejected { reason } if reason.contains(want)), "{want}: {error}");
    }
}

#[tokio::test]
async fn a_replay_shows_media_only_where_the_recorded_model_was_shown_some() {
    let folder = tempfile::tempdir().unwrap();
    record(&tape(&folder), vec![saying(&["yes"])], &[full()]).await;
    let replayer = Replayer::open(&tape(&folder)).unwrap();
    let takes = || [MediaKind::Image, MediaKind::Audio].map(|kind| replayer.description("v/m").capabilities.takes(kind));
    assert_eq!(takes(), [None, Some(false)]);
    assert!(replayer.description("v/m").capabilities.has_vendor_tool(VendorTool::WebSearch));
    all(&replayer, full()).await.unwrap();
    assert_eq!(takes(), [Some(false), Some(false)]);
}

#[tokio::test]
async fn the_nearest_request_is_shown_with_the_line_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let conversation = |end: &str| {
        let mut request = asking("tell me of the oak");
        request.messages.extend([ChatMessage::assistant("It is old."), ChatMessage::user(end)]);
        request
    };
    let requests = [asking("something else"), conversation("how old?"), asking("a third thing")];
    record(&tape(&folder), (0..3).map(|_| saying(&["ok"])).collect(), &requests).await;
    let replayer = Replayer::open(&tape(&folder)).unwrap();
    let refused = all(&replayer, conversation("how tall?")).await.unwrap_err();
    let diff = "the nearest is in line 3 (- recorded, + asked):\n  user: tell me of the oak\n  assistant: It is old.\n- user: how old?\n+ user: how tall?";
    assert!(refused.ends_with(diff), "{refused}");
    assert_eq!(replayer.unused().len(), 3);
}

#[tokio::test]
async fn what_was_dropped_half_way_is_recorded_as_such_and_a_later_try_is_preferred() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [Part::Hang(vec![Delta::Content("ha".to_owned())]), saying(&["whole"])];
    let recorder = Recorder::open(Script::new(parts), &tape(&folder)).unwrap();
    let mut stream = recorder.stream(asking("x")).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    let text = std::fs::read_to_string(tape(&folder)).unwrap();
    assert!(text.ends_with("\"deltas\":[{\"content\":\"ha\"}],\"end\":\"dropped\"}\n"), "{text}");

    let replayer = Replayer::open(&tape(&folder)).unwrap();
    assert_eq!(replayer.unused(), [""; 0]);
    let cut = Err("the reply was interrupted: the recording of this reply is incomplete".to_owned());
    assert_eq!(all(&replayer, asking("x")).await.unwrap(), [Ok(Delta::Content("ha".to_owned())), cut]);

    all(&recorder, asking("x")).await.unwrap();
    let replayer = Replayer::open(&tape(&folder)).unwrap();
    assert_eq!(all(&replayer, asking("x")).await.unwrap()[0], Ok(Delta::Content("whole".to_owned())));
}

#[tokio::test]
async fn an_interaction_is_in_the_file_as_soon_as_its_reply_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::open(Script::new([saying(&["hi"])]), &tape(&folder)).unwrap();
    let mut stream = recorder.stream(asking("x")).await.unwrap();
    while !matches!(stream.next().await, Some(Ok(Delta::Done(_)))) {}
    assert_eq!(Replayer::open(&tape(&folder)).unwrap().unused(), ["line 2: user: x"]);
    drop(stream);
    assert_eq!(std::fs::read_to_string(tape(&folder)).unwrap().lines().count(), 2);
    assert_eq!(recorder.description("m").window, Some(2_048));
}

#[tokio::test]
async fn pictures_are_there_as_digests_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = full();
    request
        .messages
        .push(ChatMessage::User { text: "".into(), media: vec![Media::Url("data:image/png;base64,DATAURL".into())] });
    record(&tape(&folder), vec![saying(&["a cat"])], &[request.clone()]).await;
    let text = std::fs::read_to_string(tape(&folder)).unwrap();
    assert!(!text.contains("PICTURE") && !text.contains("DATAURL") && text.contains("https://example.com/a.png"), "{text}");
    assert!(all(&Replayer::open(&tape(&folder)).unwrap(), request).await.is_ok());
}

#[tokio::test]
async fn a_cassette_goes_on_where_it_ended_and_half_a_line_at_its_end_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    record(&tape(&folder), vec![saying(&["one"])], &[asking("1")]).await;
    let mut text = std::fs::read_to_string(tape(&folder)).unwrap();
    text.push_str("{\"request\":{\"mess");
    std::fs::write(tape(&folder), text).unwrap();
    assert_eq!(Replayer::open(&tape(&folder)).unwrap().unused(), ["line 2: user: 1"]);
    record(&tape(&folder), vec![saying(&["two"])], &[asking("2")]).await;
    assert_eq!(Replayer::open(&tape(&folder)).unwrap().unused(), ["line 2: user: 1", "line 3: user: 2"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_cassette_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    record(&tape(&folder), Vec::new(), &[]).await;
    assert_eq!(std::fs::metadata(tape(&folder)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_no_cassette_is_refused_with_the_line_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (text, want) in [
        ("my notes\n", "line 1: this is not a cassette: it does not begin with {\"cassette\":1}"),
        ("my notes", "line 1: this is not a cassette: it does not begin with {\"cassette\":1}"),
        ("{\"cassette\":2}\n", "line 1: it has version 2, but this Polis reads version 1"),
        ("{\"cassette\":1}\n\nnot json\n", "line 3: expected ident at line 1 column 2"),
    ] {
        std::fs::write(tape(&folder), text).unwrap();
        let said = |error: CassetteError| error.to_string();
        let replaying = said(Replayer::open(&tape(&folder)).unwrap_err());
        let recording = said(Recorder::open(Script::new([]), &tape(&folder)).err().unwrap());
        assert!(replaying.ends_with(want) && recording == replaying, "{replaying} / {recording}");
        assert_eq!(std::fs::read_to_string(tape(&folder)).unwrap(), text);
    }
    std::fs::remove_file(tape(&folder)).unwrap();
    assert!(matches!(Replayer::open(&tape(&folder)), Err(CassetteError::Io { .. })));
}
