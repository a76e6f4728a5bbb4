//! Replies and errors that differ from their dialect's description, byte for byte as servers send them.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use polis_domain::{Finish, Reply, ToolCall, Usage};
use polis_ports::{Model, ModelError};
use polis_providers::{ApiKey, Dialect};

use crate::fixtures::FIXTURES;
use crate::server::{SSE, Seen, Server, Step, answer_in, answer_to, ask, chunks, events, head, hello, response};

const DONE: &str = "[DONE]";
const JSON: &str = "application/json";

fn text(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

fn called(arguments: &str) -> Reply {
    let call = ToolCall { id: "a".into(), name: "f".into(), arguments: arguments.into() };
    Reply { tool_calls: vec![call], finish: Finish::ToolCalls, ..Reply::default() }
}

async fn streamed(data: &[&str]) -> Result<Reply, ModelError> {
    answer_to(response(200, SSE, events(data).as_bytes(), usize::MAX)).await
}

async fn whole(body: &str) -> Result<Reply, ModelError> {
    answer_to(response(200, JSON, body.as_bytes(), usize::MAX)).await
}

/// The error to a response, as its code and its words.
async fn refused(response: Vec<u8>) -> String {
    let error = answer_to(response).await.unwrap_err();
    format!("{}: {error}", error.code())
}

const HI: &str = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}"#;

#[tokio::test]
async fn a_whole_reply_without_a_reason_to_stop_is_used() {
    assert_eq!(streamed(&[HI, DONE]).await.unwrap(), text("hi"));
    assert_eq!(streamed(&[HI]).await.unwrap(), text("hi"), "the body is complete");
    let empty = r#"{"choices":[{"delta":{"content":""},"finish_reason":""}]}"#;
    assert_eq!(streamed(&[HI, empty, DONE]).await.unwrap(), text("hi"));
    let call = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}},"finish_reason":null}}]}}"#
        )
    };
    assert_eq!(streamed(&[&call("{}"), DONE]).await.unwrap(), called("{}"));
    assert_eq!(streamed(&[&call(""), DONE]).await.unwrap(), called(""));
    assert_eq!(streamed(&[&call("{}")]).await.unwrap(), called("{}"));
    let cortex = r#"{"choices":[{"message":{"content":"4"},"finish_reason":""}],"usage":{"prompt_tokens":3}}"#;
    let want = Reply { usage: Usage { input_tokens: 3, ..Usage::default() }, ..text("4") };
    assert_eq!(whole(cortex).await.unwrap(), want);
    let unframed = [b"HTTP/1.1 200 OK\r\n\r\n", cortex.as_bytes()].concat();
    assert_eq!(answer_to(unframed).await.unwrap(), want, "the object is complete");
}

#[tokio::test]
async fn a_reply_that_may_be_torn_is_never_used() {
    let torn = r#"{"choices":[{"delta":{"content":"I will.","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#;
    let named = r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}}]}"#;
    for data in [&[torn, DONE][..], &[torn], &[HI, named], &[DONE], &[r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#, DONE]] {
        assert_eq!(streamed(data).await.unwrap_err().code(), "model_cut", "{data:?}");
    }
    let begun = events(&[HI]);
    let lost = [head(200, SSE, ""), chunks(begun.as_bytes(), 999)].concat();
    assert_eq!(answer_to(lost).await.unwrap_err().code(), "model_cut", "the last chunk is missing");
    let short = format!("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{begun}");
    assert_eq!(answer_to(short.into()).await.unwrap_err().code(), "model_cut", "bytes are missing");
    let unframed = format!("HTTP/1.1 200 OK\r\n\r\n{begun}");
    assert_eq!(answer_to(unframed.into()).await.unwrap_err().code(), "model_cut", "nobody can tell");
    let half = format!("{begun}data: {{\"choi");
    assert_eq!(answer_to(response(200, SSE, half.as_bytes(), 999)).await.unwrap_err().code(), "model_cut", "half an event");
}

#[tokio::test]
async fn a_response_that_is_called_complete_is_completed() {
    let body = r#"{"object":"response","status":"complete","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#;
    let got = answer_in(Dialect::OpenAiResponses, response(200, JSON, body.as_bytes(), 99)).await;
    assert_eq!(got.unwrap(), text("hi"));
}

#[tokio::test]
async fn a_message_with_an_end_and_no_reason_is_used_unless_a_call_is_torn() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let ask = async |data: &[&str]| answer_in(Dialect::Anthropic, response(200, SSE, events(data).as_bytes(), 999)).await;
    assert_eq!(ask(&[start, stop]).await.unwrap(), text("hi"));
    let whole = r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":null}"#;
    assert_eq!(answer_in(Dialect::Anthropic, response(200, JSON, whole.as_bytes(), 999)).await.unwrap(), text("hi"));
    let call = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let torn = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#;
    assert_eq!(ask(&[start, call, torn, stop]).await.unwrap_err().code(), "model_cut");
    assert_eq!(ask(&[start]).await.unwrap_err().code(), "model_cut", "the text has no end");
}

/// The body is complete, and nothing in it says that the reply is.
#[tokio::test]
async fn a_complete_body_without_the_mark_of_an_end_is_used_if_all_in_it_is_whole() {
    let ask = async |dialect, data: &[&str]| {
        let body = match dialect {
            Dialect::Ollama => data.iter().map(|line| format!("{line}\n")).collect(),
            _ => events(data),
        };
        let complete = answer_in(dialect, response(200, SSE, body.as_bytes(), 999)).await;
        let lost = answer_in(dialect, [head(200, SSE, ""), chunks(body.as_bytes(), 999)].concat()).await;
        assert_eq!(lost.unwrap_err().code(), "model_cut", "{dialect:?}: the last chunk is missing");
        complete.map_err(|error| error.code())
    };
    let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };

    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":3}}}"#;
    let begun = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#;
    let stopped = r#"{"type":"content_block_stop","index":0}"#;
    let call = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let arguments = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    let over = r#"{"type":"content_block_stop","index":1}"#;
    let thought = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#;
    let want = Reply { usage: usage(3, 0), ..text("hi") };
    assert_eq!(ask(Dialect::Anthropic, &[start, begun, stopped]).await.unwrap(), want);
    let want = Reply { text: "hi".to_owned(), ..called("{}") };
    assert_eq!(ask(Dialect::Anthropic, &[begun, stopped, call, arguments, over]).await.unwrap(), want);
    for torn in [&[begun, stopped, call, arguments][..], &[begun], &[thought, stopped], &[start]] {
        assert_eq!(ask(Dialect::Anthropic, torn).await, Err("model_cut"), "{torn:?}");
    }

    let said = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}"#;
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]}}]}"#;
    let thought = r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#;
    let want = Reply { usage: usage(3, 1), ..text("hi") };
    assert_eq!(ask(Dialect::Gemini, &[said]).await.unwrap(), want);
    assert_eq!(ask(Dialect::Gemini, &[call]).await.unwrap(), called("{}"));
    assert_eq!(ask(Dialect::Gemini, &[thought]).await, Err("model_cut"));

    let said = r#"{"message":{"role":"assistant","content":"hi"},"done":false}"#;
    let call = r#"{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]},"done":false}"#;
    let thought = r#"{"message":{"thinking":"hm"},"done":false}"#;
    assert_eq!(ask(Dialect::Ollama, &[said]).await.unwrap(), text("hi"));
    assert_eq!(ask(Dialect::Ollama, &[call]).await.unwrap(), called("{}"));
    assert_eq!(ask(Dialect::Ollama, &[thought]).await, Err("model_cut"));

    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}"#;
    let said = r#"{"type":"response.output_text.delta","output_index":0,"delta":"hi"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}"#;
    let call = r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}"#;
    let called_whole = r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}}"#;
    assert_eq!(ask(Dialect::OpenAiResponses, &[added, said, done]).await.unwrap(), text("hi"));
    assert_eq!(ask(Dialect::OpenAiResponses, &[call, called_whole]).await.unwrap(), called("{}"));
    for torn in [&[added, said][..], &[added, said, done, call], &[said]] {
        assert_eq!(ask(Dialect::OpenAiResponses, torn).await, Err("model_cut"), "{torn:?}");
    }
}

#[tokio::test]
async fn a_second_message_within_a_reply_is_an_error() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":1}}}"#;
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let torn =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"value\":\"Spark"}}"#;
    let rest = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    let body = events(&[start, call, torn, start, rest, stop, r#"{"type":"message_stop"}"#]);
    let error = answer_in(Dialect::Anthropic, response(200, SSE, body.as_bytes(), 999)).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider failed: a second message began within the reply");
    let twice = events(&[start, start, rest, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#]);
    let got = answer_in(Dialect::Anthropic, response(200, SSE, twice.as_bytes(), 999)).await.unwrap();
    assert_eq!(got.text, "hi", "nothing had begun");
}

/// Every number of every fixture, written as a fraction and as a text.
#[tokio::test]
async fn numbers_of_another_kind_are_read() {
    for fixture in FIXTURES {
        for write in [|_: &str, digits: &str| format!("{digits}.0"), |_: &str, digits: &str| format!("\"{digits}\"")] {
            let body = rewrite_numbers(fixture.body, write);
            assert_ne!(body, fixture.body);
            let got = answer_in(fixture.dialect, response(200, fixture.media, body.as_bytes(), 999)).await;
            let mut got = got.unwrap_or_else(|error| panic!("{:?}: {error}\n{body}", fixture.dialect));
            got.model = "test/small".into();
            let want = fixture.reply();
            assert_eq!((&got.text, &got.usage, &got.finish), (&want.text, &want.usage, &want.finish), "{body}");
            assert_eq!(got.tool_calls.len(), want.tool_calls.len(), "{body}");
        }
        let body = rewrite_numbers(fixture.body, |_, _| "-1".to_owned());
        let got = answer_in(fixture.dialect, response(200, fixture.media, body.as_bytes(), 999)).await;
        assert_eq!(got.map(|reply| reply.usage).map_err(|error| error.to_string()), Ok(Usage::default()), "{body}");
    }
}

/// Every count of every fixture, written as no number that a parser takes.
#[tokio::test]
async fn a_count_that_is_no_number_costs_nothing_but_itself() {
    let many = "9".repeat(400);
    for fixture in FIXTURES {
        for number in ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "18446744073709551616", &many] {
            let write = |key: &str, digits: &str| if key.ends_with("index") { digits.to_owned() } else { number.to_owned() };
            let body = rewrite_numbers(fixture.body, write);
            let got = answer_in(fixture.dialect, response(200, fixture.media, body.as_bytes(), 999)).await;
            let got = got.unwrap_or_else(|error| panic!("{:?}: {error}\n{body}", fixture.dialect));
            let want = fixture.reply();
            let said = |reply: &Reply| (reply.text.clone(), reply.reasoning.clone(), reply.finish.clone());
            assert_eq!((said(&got), got.usage), (said(&want), Usage::default()), "{body}");
            let names = |reply: &Reply| reply.tool_calls.iter().map(|call| call.name.to_string()).collect::<Vec<_>>();
            assert_eq!(names(&got), names(&want), "{body}");
        }
    }
    let message = r#"{"choices":[{"message":{"content":1e400},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e400}}"#;
    assert_eq!(whole(message).await.unwrap(), text("1e400"));
}

/// The numbers that stand outside of strings and after a key, written in another way; those in escaped JSON stay.
fn rewrite_numbers(body: &str, write: impl Fn(&str, &str) -> String) -> String {
    let (mut out, mut rest) = (String::new(), body);
    while let Some(at) = rest.find("\":") {
        let (head, tail) = rest.split_at(at + 2);
        out.push_str(head);
        let digits: &str = &tail[..tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())];
        let is_escaped = head.ends_with("\\\":");
        if digits.is_empty() || is_escaped {
            out.push_str(digits);
        } else {
            let key = head[..at].rsplit('"').next().unwrap_or_default();
            out.push_str(&write(key, digits));
        }
        rest = &tail[digits.len()..];
    }
    out + rest
}

#[tokio::test]
async fn thoughts_in_tags_are_reasoning_however_they_are_cut() {
    let body = |said: &str| {
        let written: Vec<String> =
            said.chars().map(|c| serde_json::json!({ "choices": [{ "delta": { "content": c } }] }).to_string()).collect();
        written
            .iter()
            .map(String::as_str)
            .chain([r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, DONE])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (said, reasoning, answer) in [
        ("<think> Let me reason… </think>\n\nThe answer is 4.", " Let me reason… ", "The answer is 4."),
        ("Write `<think>` first.\n<think>x</think>", "", "Write `<think>` first.\n<think>x</think>"),
        ("<think>for ever</thi", "for ever</thi", ""),
        ("a <", "", "a <"),
        ("<t", "", "<t"),
    ] {
        let want = Reply { reasoning: reasoning.to_owned(), ..text(answer) };
        let data = body(said);
        assert_eq!(streamed(&data.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap(), want, "{said}");
        let message = serde_json::json!({ "choices": [{ "message": { "content": said }, "finish_reason": "stop" }] });
        assert_eq!(whole(&message.to_string()).await.unwrap(), want, "{said}");
        let line = serde_json::json!({ "message": { "content": said }, "done": true });
        let ollama = answer_in(Dialect::Ollama, response(200, JSON, line.to_string().as_bytes(), 999)).await;
        assert_eq!(ollama.unwrap(), want, "{said}");
    }
}

#[tokio::test]
async fn reasoning_that_comes_only_in_details_is_read_and_a_repeated_beginning_once() {
    let chunk = |said: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"reasoning_details":[{{"type":"reasoning.text","index":0,"text":"{said}"}}]}}}}]}}"#
        )
    };
    for pieces in [["Let me reason", " about", " it"], ["Let me reason", "Let me reason about", "Let me reason about it"]] {
        let data = pieces.map(chunk);
        let stop = r#"{"choices":[{"delta":{"content":"4"},"finish_reason":"stop"}]}"#;
        let reply = streamed(&[&data[0], &data[1], &data[2], stop, DONE]).await.unwrap();
        assert_eq!((reply.reasoning.as_str(), reply.text.as_str()), ("Let me reason about it", "4"));
        assert_eq!(reply.echo.unwrap()["items"][0]["text"], "Let me reason about it");
    }
}

#[tokio::test]
async fn only_the_first_choice_is_read() {
    let two = &[
        r#"{"choices":[{"index":0,"delta":{"content":"Tide"}},{"index":1,"delta":{"content":"x"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"y"}}]}"#,
        r#"{"choices":[{"index":"0","delta":{"content":"haven"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        DONE,
    ];
    assert_eq!(streamed(two).await.unwrap(), text("Tidehaven"));
}

#[tokio::test]
async fn a_message_beside_an_empty_chunk_is_read_once() {
    let perplexity = r#"{"choices":[{"index":0,"message":{"content":"1 2 3"},"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#;
    assert_eq!(whole(perplexity).await.unwrap(), text("1 2 3"));
    let stream = &[
        r#"{"choices":[{"index":0,"message":{"content":"1"},"delta":{"content":"1"}}]}"#,
        r#"{"choices":[{"index":0,"message":{"content":"1 2"},"delta":{"content":" 2"}}]}"#,
        r#"{"choices":[{"index":0,"message":{"content":"1 2"},"delta":{"content":""},"finish_reason":"stop"}]}"#,
        DONE,
    ];
    assert_eq!(streamed(stream).await.unwrap(), text("1 2"));
}

#[tokio::test]
async fn an_error_with_status_200_keeps_its_words() {
    for (body, want) in [
        (
            r#"{"base_resp":{"status_code":1004,"status_msg":"login fail"}}"#,
            "model_rejected: the provider rejects the request: login fail (1004)",
        ),
        (
            r#"{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#,
            "model_throttled: the provider asks us to slow down: rate limit (1002)",
        ),
        (
            r#"{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}"#,
            "model_failed: the provider failed: unknown error (1000)",
        ),
        (
            r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            "model_rejected: the provider rejects the request: the account has no credit left: insufficient balance (1008)",
        ),
        (r#"{"detail":"Not authenticated"}"#, "model_rejected: the provider rejects the request: Not authenticated"),
        (r#"{"detail":"worker died"}"#, "model_failed: the provider failed: worker died"),
        (r#"{"detail":[{"msg":"field required"}]}"#, "model_failed: the provider failed: field required"),
        (r#"{"code":500,"msg":"busy"}"#, "model_failed: the provider failed: busy"),
        (
            r#"{"code":1113,"message":"余额不足"}"#,
            "model_rejected: the provider rejects the request: the account has no credit left: 余额不足",
        ),
        ("", "model_failed: the provider failed: the answer is empty"),
        (" \n", "model_cut: the reply was interrupted: the provider closed the connection before the reply was whole"),
    ] {
        assert_eq!(refused(response(200, JSON, body.as_bytes(), 999)).await, want, "{body}");
        if body.starts_with('{') {
            assert_eq!(refused(response(200, SSE, events(&[body, DONE]).as_bytes(), 999)).await, want, "{body}");
        }
    }
    let none = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n".to_vec();
    assert_eq!(refused(none).await, "model_failed: the provider failed: the answer is empty");
    let fine =
        r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"base_resp":{"status_code":0,"status_msg":""}}"#;
    assert_eq!(whole(fine).await.unwrap(), text("hi"));
    for dialect in [Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama, Dialect::OpenAiResponses] {
        let error = answer_in(dialect, response(200, JSON, br#"{"detail":"worker died"}"#, 99)).await.unwrap_err();
        assert_eq!(error.to_string(), "the provider failed: worker died", "{dialect:?}");
    }
}

#[tokio::test]
async fn an_error_in_a_field_of_its_own_keeps_its_words() {
    let body = "error: {\"error\":{\"code\":500,\"message\":\"failed to decode\",\"type\":\"server_error\"}}\n\n";
    assert_eq!(refused(response(200, SSE, body.as_bytes(), 7)).await, "model_failed: the provider failed: failed to decode");
    let late = format!("{}{body}", events(&[HI]));
    assert_eq!(refused(response(200, SSE, late.as_bytes(), 7)).await, "model_failed: the provider failed: failed to decode");
}

#[tokio::test]
async fn an_account_without_credit_is_not_asked_again() {
    let no_credit = "model_rejected: the provider rejects the request: the account has no credit left: ";
    for (status, body, words) in [
        (429, r#"{"error":{"message":"You exceeded your quota","type":"insufficient_quota"}}"#, "You exceeded your quota"),
        (429, r#"{"error":{"code":"1113","message":"余额不足或无可用资源包"}}"#, "余额不足或无可用资源包"),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "Insufficient Balance"),
        (402, "", ""),
        (400, r#"{"error":{"message":"Your credit balance is too low"}}"#, "Your credit balance is too low"),
    ] {
        let got = refused(response(status, JSON, body.as_bytes(), 999)).await;
        assert!(got.starts_with(no_credit) && got.ends_with(words), "{got}");
    }
    let gemini = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details.","details":[{"retryDelay":"7s"}]}}"#;
    assert!(refused(response(429, JSON, gemini.as_bytes(), 999)).await.starts_with("model_throttled"), "a limit per minute");
}

#[tokio::test]
async fn a_compressed_answer_that_nobody_asked_for_is_read() {
    let body = events(&[HI, DONE]);
    let packed = |encoding: &str| {
        let bytes = body.as_bytes();
        match encoding {
            "gzip" | "" => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
                gzip.write_all(bytes).unwrap();
                gzip.finish().unwrap()
            }
            "deflate" => {
                let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
                zlib.write_all(bytes).unwrap();
                zlib.finish().unwrap()
            }
            _ => {
                let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
                bare.write_all(bytes).unwrap();
                bare.finish().unwrap()
            }
        }
    };
    for (encoding, name) in [("gzip", "gzip"), ("", "identity"), ("deflate", "deflate"), ("bare", "deflate")] {
        for size in [1, 7, 9999] {
            let head = head(200, SSE, &format!("content-encoding: {name}\r\n"));
            let sent = [head, chunks(&packed(encoding), size), b"0\r\n\r\n".to_vec()].concat();
            assert_eq!(answer_to(sent).await.unwrap(), text("hi"), "{encoding} by {size}");
        }
    }
    let gzip = packed("gzip");
    let half = [head(200, SSE, ""), chunks(&gzip[..gzip.len() / 2], 999), b"0\r\n\r\n".to_vec()].concat();
    assert_eq!(answer_to(half).await.unwrap_err().code(), "model_cut");
    let error = [head(400, JSON, ""), chunks(&packed_error(), 999), b"0\r\n\r\n".to_vec()].concat();
    assert!(refused(error).await.ends_with(": no such model"));
    let unknown = [head(200, SSE, "content-encoding: zstd\r\n"), chunks(b"\x28\xb5", 9), b"0\r\n\r\n".to_vec()].concat();
    let want = "model_rejected: the provider rejects the request: the answer is compressed with zstd, which was not asked for and cannot be read; a proxy may have done it";
    assert_eq!(refused(unknown).await, want);
    let mut server = Server::start(vec![Step::Send(response(200, SSE, body.as_bytes(), 99))]).await;
    ask(&server.model()).await.unwrap();
    server.seen().await;
    let Seen::Request { head, .. } = server.seen().await else { panic!("no request") };
    assert!(head.contains("accept-encoding: identity"), "{head}");
}

/// The events of `HI` and `DONE`.
const BROTLI: &str = "1b5200902c0aecd660951b5d262ac6286fd778424a91adbd5460e9cb2eb4b4d611f9ea1b201e70d1af95f486581e707326acd7840c406cddd25227231fdd5389732b517a2359e76103";

/// Zeros of 65 MiB.
const BROTLI_OF_ZEROS: &str = "cfffff7ff82700e2b14020f7fe9ffffffff04f00c4610180eefd3fffffffe19f0088c32200ddfb7ffeffffc33f0110870500baf7fff5fffff82700e2b00040f7fe01";

#[tokio::test]
async fn an_answer_in_brotli_is_read_and_one_that_grows_without_end_is_not() {
    let answer =
        |bytes: &[u8], size| [head(200, SSE, "content-encoding: br\r\n"), chunks(bytes, size), b"0\r\n\r\n".to_vec()].concat();
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let whole = bytes(BROTLI);
    for size in [1, 7, 9999] {
        assert_eq!(answer_to(answer(&whole, size)).await.unwrap(), text("hi"), "by {size}");
    }
    assert_eq!(answer_to(answer(&whole[..whole.len() / 2], 999)).await.unwrap_err().code(), "model_cut");
    let error = answer_to(answer(&bytes(BROTLI_OF_ZEROS), 9999)).await.unwrap_err();
    assert!(error.to_string().contains("it has more than 67108864 bytes"), "{error}");
    // A window of 1 GiB.
    let error = answer_to(answer(b"\x11\x1e", 9)).await.unwrap_err();
    assert!(error.to_string().contains("cannot be decompressed"), "{error}");
}

fn packed_error() -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(br#"{"error":{"message":"no such model"}}"#).unwrap();
    gzip.finish().unwrap()
}

#[tokio::test]
async fn a_short_key_is_not_cut_out_of_what_a_provider_says() {
    let server =
        Server::start(vec![Step::Send(response(400, JSON, br#"{"error":{"message":"bad request"}}"#, 99)), Step::Close]).await;
    let model = server.model_with(|options| options.key = Some(ApiKey::new("e").unwrap()));
    let error = model.stream(hello()).await.err().unwrap();
    assert!(error.to_string().contains(": bad request ("), "{error}");
}
