//! Tool calls for models that have none, against a model that writes what the test wants, cut anywhere.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{EffectClass, Finish, Reply, ToolCall, Usage};
use polis_ports::{ChatMessage, Delta, Format, Model, ModelError, ModelRequest, ToolChoice, ToolSpec, collect};
use polis_providers::EmulatedTools;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::script::{Part, Script, all, saying};

fn with_tools() -> ModelRequest {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let tool = ToolSpec {
        name: "read".into(),
        description: "Reads.".to_owned(),
        parameters,
        class: EffectClass::Read,
        volatile: false,
    };
    ModelRequest { messages: vec![ChatMessage::user("read a")], tools: Arc::new([tool]), ..ModelRequest::default() }
}

fn pieces(pieces: &[&str], finish: Finish) -> Part {
    let content = pieces.iter().map(|piece| Delta::Content((*piece).to_owned()));
    Part::Say(content.chain([Delta::Done(finish)]).collect())
}

async fn reply_to(part: Part) -> Result<Reply, ModelError> {
    collect(EmulatedTools::new(Script::new([part])).stream(with_tools()).await?).await
}

async fn check(written: &str, want: Result<Reply, &str>) {
    let got = reply_to(saying(&[written])).await.map_err(|error| error.to_string());
    match (got, want) {
        (Err(got), Err(want)) => assert!(got.contains(want), "{written}: {got}"),
        (got, want) => assert_eq!(got, want.map_err(str::to_owned), "{written}"),
    }
}

fn said(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

fn called(arguments: &str) -> Reply {
    let call = ToolCall { id: "emulated_1".into(), name: "read".into(), arguments: arguments.into() };
    Reply { tool_calls: vec![call], finish: Finish::ToolCalls, ..Reply::default() }
}

#[tokio::test]
async fn an_answer_streams_while_it_is_written() {
    let model =
        EmulatedTools::new(Script::new([saying(&["{\"ans", "wer\": \"The ", "oak\\", "n\\u4f", "60 is ", "old.\"", "}"])]));
    let got = all(&model, with_tools()).await.unwrap();
    let content = ["The ", "oak", "\n", "你 is ", "old."].map(|text| Ok(Delta::Content(text.to_owned())));
    assert_eq!(got, content.into_iter().chain([Ok(Delta::Done(Finish::Stop))]).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_call_becomes_an_ordinary_call_with_an_id_that_is_the_same_each_time() {
    let written = "{\"name\": \"read\", \"parameters\": {\"path\": \"a {b} \\\"c\\\"\"}}";
    for _ in 0..2 {
        check(written, Ok(called("{\"path\": \"a {b} \\\"c\\\"\"}"))).await;
    }
    // No other call of the conversation has it.
    let mut request = with_tools();
    let earlier = ToolCall { id: "emulated_3".into(), name: "read".into(), arguments: "{}".into() };
    request.messages.extend([
        ChatMessage::Assistant { text: "".into(), reasoning: "".into(), tool_calls: vec![earlier], echo: None },
        ChatMessage::Tool {
            call_id: "emulated_3".into(),
            name: "read".into(),
            content: "A".into(),
            is_error: false,
            media: vec![],
        },
    ]);
    let reply = collect(EmulatedTools::new(Script::new([saying(&[written])])).stream(request).await.unwrap()).await.unwrap();
    assert_eq!(&*reply.tool_calls[0].id, "emulated_4");
}

#[tokio::test]
async fn what_is_trivially_wrong_is_mended() {
    check("```json\n{\"answer\": \"hi\"}\n```", Ok(said("hi"))).await;
    check("Sure {as you like}, {} and {\"example\": 1}: {\"answer\": \"hi\"} Bye {\"answer\": \"no\"}", Ok(said("hi"))).await;
    check("{\"answer\":\"hi\",}", Ok(said("hi"))).await;
    check("{\"answer\": \"hi\"", Ok(said("hi"))).await;
    check("{\"answer\": \"two\nlines\"}", Ok(said("two\nlines"))).await;
    check("{\"answer\": 42}", Ok(said("42"))).await;
    check("{\"answer\": {\"n\": [1, \"}\"]}}", Ok(said("{\"n\": [1, \"}\"]}"))).await;
    check("{\"answer\": \"\\ud83d\\ude00 \\ud83d. \\ud83d\\n\\/\"}", Ok(said("😀 \u{fffd}. \u{fffd}\n/"))).await;
    check("{\"name\": \"read\", \"parameters\": {\"path\": \"a,}\",},}", Ok(called("{\"path\": \"a,}\"}"))).await;
    check("{\"parameters\": {\"path\": \"a\"}, \"note\": [1, {}], \"name\": \"read\"}", Ok(called("{\"path\": \"a\"}"))).await;
    check("{\"name\": \"read\", \"parameters\": \"{\\\"path\\\": \\\"a\\\"}\"}", Ok(called("{\"path\": \"a\"}"))).await;
    check("{\"name\": \"read\"}", Ok(called("{}"))).await;
    for form in ["{\"tool\":\"read\",\"arguments\":{\"path\":\"a\"}}", "{\"function\":\"read\",\"args\":{\"path\":\"a\"}}"] {
        check(form, Ok(called("{\"path\":\"a\"}"))).await;
    }
}

#[tokio::test]
async fn what_stands_in_thoughts_is_never_a_call() {
    let call = "{\"name\":\"read\",\"parameters\":{\"path\":\"a\"}}";
    let answer = "{\"answer\":\"no\"}";
    for (open, close) in [
        ("<think>", "</think>"),
        ("\n <thinking>", "</thinking>\n"),
        ("<reasoning>", "</reasoning>"),
        ("<Think>", "</Think>"),
        ("<think>", "</think><think></think>"),
    ] {
        let thought = format!("a < b, so I could do {call} but no");
        let want = Reply { reasoning: thought.clone(), ..said("no") };
        let written = format!("{open}{thought}{close}{answer}");
        check(&written, Ok(want.clone())).await;
        let one_by_one: Vec<String> = written.chars().map(String::from).collect();
        let one_by_one: Vec<&str> = one_by_one.iter().map(String::as_str).collect();
        assert_eq!(reply_to(saying(&one_by_one)).await.unwrap(), want);
        check(&format!("{open}{thought}"), Err("stopped in its thoughts")).await;
        check(&format!("{open}{thought}{close}{call}"), Ok(Reply { reasoning: thought, ..called("{\"path\":\"a\"}") })).await;
    }
    let cut = reply_to(pieces(&[&format!("<think>{call}")], Finish::Length)).await.unwrap_err();
    assert_eq!(cut.code(), "model_cut");
    check(&format!("I could do {call} but no</think>{answer}"), Err("the call stands among its thoughts")).await;
    // Only before the form; in it they are text.
    check("{\"answer\":\"<think>a</think>\"}", Ok(said("<think>a</think>"))).await;
    check("<b> {\"answer\":\"hi\"}", Ok(said("hi"))).await;
}

#[tokio::test]
async fn what_is_not_whole_or_not_readable_is_an_error_and_never_a_call() {
    for (written, want) in [
        ("", "it is no JSON: ``"),
        (" \n", "it is no JSON"),
        ("{\"tool\": \"read\", \"path\": \"a\"}", "the parameters stand beside the name"),
        ("{\"action\": \"read\", \"path\": \"a\"}", "it names no tool and gives no answer"),
        ("```json\n{ \"function\": \"read\"", "stopped before its reply was whole"),
        ("{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}", "stopped before its reply was whole"),
        ("{\"name\": \"read\", \"parameters\": {\"path\": \"a", "stopped before its reply was whole"),
        ("{\"name\": \"read\", \"para", "stopped before its reply was whole"),
        ("{\"answer\": \"hi", "stopped before its reply was whole"),
        ("{\"name\": \"read\", \"parameters\": {path: 1}}", "the parameters are no JSON object"),
        ("{\"name\": \"read\", \"parameters\": [1]}", "the parameters are no JSON object"),
        ("{\"name\": \"\", \"parameters\": {}}", "the tool has no name"),
        ("{\"name\": 7, \"parameters\": {}}", "the tool has no name"),
        ("{\"parameters\": {}}", "it names no tool and gives no answer"),
        ("{\"name\" \"read\"}", "it is no JSON"),
        ("{\"name\": 5], \"parameters\": {}}", "it is no JSON"),
        ("{\"answer\": \"\\uzzzz\"}", "it is no JSON"),
    ] {
        check(written, Err(want)).await;
    }
}

#[tokio::test]
async fn plain_text_is_the_answer_unless_a_call_or_json_is_wanted() {
    for written in ["hi", "I will read the file.", "fn main() { let a = [1]; }", "Use <b>, or {x}.", "好的。"] {
        check(written, Ok(said(written))).await;
        let cut = reply_to(pieces(&[written], Finish::Length)).await.unwrap();
        assert_eq!(cut, Reply { finish: Finish::Length, ..said(written) });
    }
    check("<think>hm</think>\n\nhi\n", Ok(Reply { reasoning: "hm".to_owned(), ..said("hi") })).await;
    let ask = async |written: &str, request| {
        let reply = collect(EmulatedTools::new(Script::new([saying(&[written])])).stream(request).await.unwrap()).await;
        reply.map(|reply| reply.text).map_err(|error| error.code())
    };
    let must_call = || ModelRequest { tool_choice: ToolChoice::Required, ..with_tools() };
    assert_eq!(ask("hi", must_call()).await, Err("model_failed"));
    let format = Format { name: "n".to_owned(), schema: json!({ "type": "object" }) };
    let shaped = || ModelRequest { format: Some(Arc::new(format.clone())), ..with_tools() };
    assert_eq!(ask("hi", shaped()).await, Err("model_failed"));
    assert_eq!(ask("```json\n{\"n\": 1}\n```", shaped()).await, Ok("{\"n\": 1}".to_owned()));
}

#[tokio::test]
async fn a_model_that_refuses_tools_gets_them_in_words_from_then_on() {
    for reason in [
        "400 Bad Request: registry.ollama.ai/library/gemma3:1b does not support tools",
        "400 Bad Request: Tool calling is not supported for this model",
        "400 Bad Request: \"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        "404 Not Found: No endpoints found that support tool use.",
        "`tools` is not supported with this model",
        "This model doesn't support function calling",
    ] {
        let refusal = || ModelError::Rejected { reason: reason.to_owned() };
        for refused in [Part::Refuse(refusal()), Part::Break(Vec::new(), refusal())] {
            let script = Script::new([refused, saying(&["hi"]), saying(&["other"])]);
            let model = EmulatedTools::where_refused(script.clone());
            let named = |name: &str| ModelRequest { model: name.into(), ..with_tools() };
            let ask = async |name| collect(model.stream(named(name)).await?).await;
            let error = ask("v/small").await.unwrap_err();
            assert_eq!(error.code(), "model_adapted", "{reason}");
            assert!(error.to_string().contains("v/small takes no tools, so they are described in words"), "{error}");
            assert_eq!(ask("v/small").await.unwrap().text, "hi");
            assert_eq!(ask("v/large").await.unwrap().text, "other");
            let asked = script.asked.lock().unwrap();
            assert_eq!(asked.iter().map(|request| request.tools.is_empty()).collect::<Vec<_>>(), [false, true, false]);
        }
    }
}

#[tokio::test]
async fn what_is_not_about_tools_as_such_stays_a_refusal() {
    for reason in
        ["Invalid schema for function 'read': 'oneOf' is not supported", "this region is not supported", "no such tool"]
    {
        let script = Script::new([Part::Refuse(ModelError::Rejected { reason: reason.to_owned() })]);
        let error = EmulatedTools::where_refused(script).stream(with_tools()).await.err().unwrap();
        assert_eq!(error.code(), "model_rejected", "{reason}");
    }
    let bare = ModelRequest { tools: Arc::default(), ..with_tools() };
    let script = Script::new([Part::Refuse(ModelError::Rejected { reason: "does not support tools".to_owned() })]);
    let error = EmulatedTools::where_refused(script).stream(bare).await.err().unwrap();
    assert_eq!(error.code(), "model_rejected", "it has no tools");
}

#[tokio::test]
async fn a_reply_that_runs_into_the_token_limit_is_a_short_answer_but_no_call() {
    let cut = reply_to(pieces(&["{\"answer\": \"The oak"], Finish::Length)).await.unwrap();
    assert_eq!(cut, Reply { finish: Finish::Length, ..said("The oak") });
    for written in
        ["{\"name\": \"read\", \"parameters\": {\"path\": \"a", "{\"name\": \"read\", \"parameters\": {}", "{\"na", ""]
    {
        let error = reply_to(pieces(&[written], Finish::Length)).await.unwrap_err();
        assert!(matches!(&error, ModelError::Cut { reason } if reason.contains("token limit")), "{written}: {error}");
    }
    let whole = reply_to(pieces(&["{\"answer\": \"hi\"}"], Finish::Length)).await.unwrap();
    assert_eq!(whole, said("hi"));
}

#[tokio::test]
async fn a_model_that_writes_blanks_for_ever_is_stopped() {
    let blanks = " \n".repeat(50);
    let endless = ["{\"name\": \"read\", \"parameters\": {", &blanks, &blanks].map(|text| Delta::Content(text.to_owned()));
    let reply = tokio::time::timeout(Duration::from_secs(10), reply_to(Part::Hang(endless.to_vec()))).await;
    let error = reply.expect("it should have been stopped by now").unwrap_err();
    assert!(matches!(&error, ModelError::Cut { reason } if reason.contains("nothing but blanks")), "{error}");
    // In a text they are part of it.
    check(&format!("{{\"answer\": \"a{}b\"}}", " ".repeat(500)), Ok(said(&format!("a{}b", " ".repeat(500))))).await;
}

#[tokio::test]
async fn the_rest_passes_as_it_is() {
    let error = || ModelError::Unreachable("nobody".into());
    let refused = reply_to(Part::Refuse(error())).await.unwrap_err();
    assert_eq!(refused.code(), "model_unreachable");
    let broken = reply_to(Part::Break(vec![Delta::Content("{\"answer\": \"h".to_owned())], error())).await.unwrap_err();
    assert_eq!(broken.code(), "model_unreachable");
    let open = reply_to(Part::Say(vec![Delta::Content("{\"answer\": \"hi\"}".to_owned())])).await.unwrap_err();
    assert_eq!(open.code(), "model_cut");
    let refusal = reply_to(pieces(&["I will not."], Finish::Refusal)).await.unwrap();
    assert_eq!(refusal, Reply { finish: Finish::Refusal, ..said("I will not.") });
    let usage = Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() };
    let deltas =
        [Delta::Model("v/m".into()), Delta::Reasoning("hm".to_owned()), Delta::Content("{\"answer\": \"hi\"}".to_owned())];
    let deltas = deltas.into_iter().chain([Delta::Usage(usage), Delta::Done(Finish::Stop)]).collect();
    let reply = reply_to(Part::Say(deltas)).await.unwrap();
    assert_eq!(reply, Reply { model: "v/m".into(), reasoning: "hm".to_owned(), usage, ..said("hi") });
}

#[tokio::test]
async fn only_the_models_that_are_meant_are_asked_this_way() {
    let script = Script::new([saying(&["plain"]), saying(&["{\"answer\": \"hi\"}"]), saying(&["no form"])]);
    let model = EmulatedTools::only(script.clone(), ["ollama/smollm2*"]);
    let named = |name: &str| ModelRequest { model: name.into(), ..with_tools() };
    let text = async |request| collect(model.stream(request).await.unwrap()).await.unwrap().text;
    assert_eq!(text(named("ollama/qwen3")).await, "plain");
    assert_eq!(text(named("ollama/smollm2:135m")).await, "hi");
    let bare = ModelRequest { tools: Arc::default(), ..named("ollama/smollm2:135m") };
    assert_eq!(text(bare.clone()).await, "no form");
    let asked = script.asked.lock().unwrap();
    assert_eq!(asked[0], named("ollama/qwen3"));
    assert!(asked[1].tools.is_empty() && asked[1].format.is_some() && asked[1].settings.max_tokens.is_some());
    assert_eq!(asked[2], bare);
    assert_eq!(model.description("ollama/smollm2:135m").window, Some(2_048));
    assert!(model.estimate(&named("ollama/smollm2")).output_tokens > 0, "the bound of the reply counts");
}

/// JSON as models write it: compact or laid out, characters as they are or escaped, with something around it.
fn written(form: &Value, laid_out: bool, escaped: bool, around: (&str, &str)) -> String {
    let json = if laid_out { serde_json::to_string_pretty(form) } else { serde_json::to_string(form) }.unwrap();
    let escape = |c: char| -> String {
        if c.is_ascii() {
            c.to_string()
        } else {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    };
    let json = if escaped { json.chars().map(escape).collect() } else { json };
    format!("{}{json}{}", around.0, around.1)
}

fn cut(text: &str, sizes: &[usize]) -> Vec<Delta> {
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut deltas) = (0, Vec::new());
    for size in sizes.iter().cycle() {
        if at >= chars.len() {
            break;
        }
        let end = (at + size).min(chars.len());
        deltas.push(Delta::Content(chars[at..end].iter().collect()));
        at = end;
    }
    deltas.push(Delta::Done(Finish::Stop));
    deltas
}

fn any_reply(deltas: Vec<Delta>) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(reply_to(Part::Say(deltas))).unwrap()
}

proptest! {
    #[test]
    fn an_answer_is_the_same_however_it_is_written_and_cut(
        text in any::<String>(),
        laid_out: bool,
        escaped: bool,
        around in prop::sample::select(vec![("", ""), ("```json\n", "\n```"), ("Here {it} is: ", " Bye.")]),
        sizes in prop::collection::vec(1..6usize, 1..8),
    ) {
        let form = written(&json!({ "answer": text }), laid_out, escaped, around);
        prop_assert_eq!(any_reply(cut(&form, &sizes)), said(&text));
    }

    #[test]
    fn a_call_is_the_same_however_it_is_written_and_cut(
        path in any::<String>(),
        list in prop::collection::vec(any::<i32>(), 0..4),
        laid_out: bool,
        escaped: bool,
        sizes in prop::collection::vec(1..6usize, 1..8),
    ) {
        let parameters = json!({ "path": path, "list": list, "deep": { "er": [{ "path": path }] } });
        let form = written(&json!({ "name": "read", "parameters": parameters }), laid_out, escaped, ("", ""));
        let reply = any_reply(cut(&form, &sizes));
        prop_assert_eq!(serde_json::from_str::<Value>(&reply.tool_calls[0].arguments).unwrap(), parameters);
        prop_assert_eq!(reply.finish, Finish::ToolCalls);
    }

    #[test]
    fn a_call_that_is_cut_short_anywhere_is_never_made(path in any::<String>(), at in any::<prop::sample::Index>()) {
        let form = written(&json!({ "name": "read", "parameters": { "path": path } }), false, false, ("", ""));
        let cuts: Vec<usize> = form.char_indices().map(|(at, _)| at).collect();
        let part = pieces(&[&form[..cuts[at.index(cuts.len())]]], Finish::Stop);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert!(runtime.block_on(reply_to(part)).is_err());
    }
}
