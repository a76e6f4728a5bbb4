//! What each dialect makes of replies that are whole, refused, held back, too long or wrong; and what it sends.

use polis_domain::{Finish, Reply, ToolCall, Usage};
use polis_ports::ModelError;
use polis_providers::{Dialect, vendors};
use serde_json::Value;

use crate::fixtures::FIXTURES;
use crate::server::{SSE, Seen, Server, Step, answer_in, ask, events, response};

async fn whole(dialect: Dialect, body: &str) -> Result<Reply, ModelError> {
    answer_in(dialect, response(200, "application/json", body.as_bytes(), 7)).await
}

async fn streamed(dialect: Dialect, data: &[&str]) -> Result<Reply, ModelError> {
    answer_in(dialect, response(200, SSE, events(data).as_bytes(), usize::MAX)).await
}

fn text(text: &str, finish: Finish) -> Reply {
    Reply { text: text.to_owned(), finish, ..Reply::default() }
}

#[tokio::test]
async fn every_fixture_is_read_right_in_chunks_of_any_size() {
    for fixture in FIXTURES {
        for body in [fixture.body.to_owned(), fixture.body.replace('\n', "\r\n"), fixture.body.trim_end().to_owned()] {
            for size in [1, 2, 3, 5, 64, usize::MAX] {
                let got = answer_in(fixture.dialect, response(200, fixture.media, body.as_bytes(), size)).await;
                let want = Reply { model: "".into(), ..fixture.reply() };
                assert_eq!(got.unwrap(), want, "{:?} in chunks of {size}", fixture.dialect);
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_in_every_dialect() {
    let call = ToolCall { id: "a".into(), name: "f".into(), arguments: "{\"x\":1}".into() };
    let want = |input_tokens, output_tokens| Reply {
        reasoning: "hm".to_owned(),
        tool_calls: vec![call.clone()],
        usage: Usage { input_tokens, output_tokens, ..Usage::default() },
        ..text("hi", Finish::ToolCalls)
    };
    let cases = [
        (
            Dialect::OpenAiChat,
            r#"{"choices":[{"message":{"content":"hi","reasoning_content":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":2,"output_tokens":3}}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":2,"output_tokens":3}}"#,
        ),
        (
            Dialect::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"hi"},{"functionCall":{"id":"a","name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":2,"candidatesTokenCount":3}}"#,
        ),
        (
            Dialect::Ollama,
            r#"{"message":{"content":"hi","thinking":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]},"done":true,"done_reason":"stop","prompt_eval_count":2,"eval_count":3}"#,
        ),
    ];
    for (dialect, body) in cases {
        let got = whole(dialect, body).await.unwrap();
        assert_eq!(Reply { echo: None, ..got }, want(2, 3), "{dialect:?}");
    }
    // Gemini without `alt=sse` sends an array.
    let list = r#"[{"candidates":[{"content":{"parts":[{"text":"h"}]}}]},
{"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}]"#;
    assert_eq!(whole(Dialect::Gemini, list).await.unwrap(), text("hi", Finish::Stop));
}

#[tokio::test]
async fn every_reason_to_stop_has_its_name_in_every_dialect() {
    let other = |word: &str| Finish::Other(word.to_owned());
    type Words = Vec<(&'static str, Finish)>;
    let cases: Vec<(Dialect, &str, Words)> = vec![
        (
            Dialect::Anthropic,
            r#"{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"WORD"}"#,
            vec![
                ("end_turn", Finish::Stop),
                ("stop_sequence", Finish::Stop),
                ("max_tokens", Finish::Length),
                ("model_context_window_exceeded", Finish::Length),
                ("refusal", Finish::Refusal),
                ("pause_turn", Finish::Paused),
            ],
        ),
        (
            Dialect::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"WORD"}]}"#,
            vec![
                ("STOP", Finish::Stop),
                ("MAX_TOKENS", Finish::Length),
                ("SAFETY", Finish::ContentFilter),
                ("RECITATION", Finish::ContentFilter),
                ("LANGUAGE", other("LANGUAGE")),
            ],
        ),
        (
            Dialect::Ollama,
            r#"{"message":{"content":"x"},"done":true,"done_reason":"WORD"}"#,
            vec![("stop", Finish::Stop), ("length", Finish::Length), ("load", other("load")), ("", Finish::Stop)],
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"WORD"},"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}"#,
            vec![("max_output_tokens", Finish::Length), ("content_filter", Finish::ContentFilter), ("new", other("new"))],
        ),
        (
            Dialect::OpenAiChat,
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"WORD"}]}"#,
            vec![("stop", Finish::Stop), ("refusal", Finish::Refusal), ("content_filter", Finish::ContentFilter)],
        ),
    ];
    for (dialect, body, words) in cases {
        for (word, finish) in words {
            let got = whole(dialect, &body.replace("WORD", word)).await.unwrap();
            assert_eq!(Reply { usage: Usage::default(), ..got }, text("x", finish), "{dialect:?} {word}");
        }
    }
}

#[tokio::test]
async fn a_refusal_says_so_and_its_words_are_the_text() {
    let refused = text("I will not", Finish::Refusal);
    let streamed_refusal = streamed(
        Dialect::OpenAiResponses,
        &[
            r#"{"type":"response.refusal.delta","delta":"I will"}"#,
            r#"{"type":"response.refusal.delta","delta":" not"}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
        ],
    );
    assert_eq!(streamed_refusal.await.unwrap(), refused);
    let body = r#"{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I will not"}]}]}"#;
    assert_eq!(whole(Dialect::OpenAiResponses, body).await.unwrap(), refused);
    let body = r#"{"choices":[{"message":{"content":null,"refusal":"I will not"},"finish_reason":"stop"}]}"#;
    assert_eq!(whole(Dialect::OpenAiChat, body).await.unwrap(), refused);
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}"#;
    let held = whole(Dialect::Gemini, blocked).await.unwrap();
    assert_eq!((held.finish, held.usage.input_tokens), (Finish::ContentFilter, 4));
}

#[tokio::test]
async fn errors_inside_a_stream_that_began_well_say_what_to_do() {
    let cases = [
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"overloaded_error","message":"so"}}"#, "model_failed"),
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"api_error","message":"so"}}"#, "model_failed"),
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"rate_limit_error","message":"so"}}"#, "model_throttled"),
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"invalid_request_error","message":"so"}}"#, "model_rejected"),
        (Dialect::Anthropic, r#"{"type":"error","error":{"type":"request_too_large","message":"so"}}"#, "model_rejected"),
        (Dialect::Gemini, r#"{"error":{"code":503,"message":"so","status":"UNAVAILABLE"}}"#, "model_failed"),
        (Dialect::Gemini, r#"{"error":{"code":429,"message":"so","status":"RESOURCE_EXHAUSTED"}}"#, "model_throttled"),
        (Dialect::Gemini, r#"{"error":{"code":400,"message":"so","status":"INVALID_ARGUMENT"}}"#, "model_rejected"),
        (Dialect::Gemini, r#"{"error":{"message":"so","status":"RESOURCE_EXHAUSTED"}}"#, "model_throttled"),
        (
            Dialect::Gemini,
            r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"so"}]}"#,
            "model_failed",
        ),
        (Dialect::OpenAiResponses, r#"{"type":"error","code":"rate_limit_exceeded","message":"so"}"#, "model_throttled"),
        (Dialect::OpenAiResponses, r#"{"type":"error","error":{"type":"server_error","message":"so"}}"#, "model_failed"),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"so"}}}"#,
            "model_failed",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"so"}}}"#,
            "model_throttled",
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"so"}}}"#,
            "model_rejected",
        ),
        (Dialect::OpenAiResponses, r#"{"type":"response.cancelled","response":{"status":"cancelled so"}}"#, "model_failed"),
        (Dialect::Ollama, r#"{"error":"so"}"#, "model_failed"),
    ];
    for (dialect, event, code) in cases {
        let name = serde_json::from_str::<Value>(event).unwrap()["type"].as_str().unwrap_or_default().to_owned();
        let named = format!("event: {name}\ndata: {event}\n\n");
        for body in [events(&[event]), named, event.to_owned()] {
            let error = answer_in(dialect, response(200, SSE, body.as_bytes(), 99)).await.unwrap_err();
            assert_eq!(error.code(), code, "{dialect:?} {body}: {error}");
            assert!(error.to_string().contains("so"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_call_without_arguments_or_id_gets_them() {
    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":null}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let cases = [
        (Dialect::Anthropic, anthropic.to_vec(), "a"),
        (
            Dialect::Gemini,
            vec![
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}],"responseId":"r"}"#,
            ],
            "call_r_0",
        ),
        (
            Dialect::Ollama,
            vec![r#"{"created_at":"2026-01-02T03:04:05Z","message":{"tool_calls":[{"function":{"name":"f"}}]},"done":true}"#],
            "call_20260102030405_0",
        ),
        (
            Dialect::OpenAiChat,
            vec![
                r#"{"id":"c","choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
            ],
            "call_c_0",
        ),
    ];
    for (dialect, data, id) in cases {
        let call = ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into() };
        let got = streamed(dialect, &data).await.unwrap();
        assert_eq!((got.tool_calls, got.finish), (vec![call], Finish::ToolCalls), "{dialect:?}");
    }
}

#[tokio::test]
async fn reasoning_that_openrouter_wants_back_is_put_together() {
    let data = [
        r#"{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","format":"f"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","index":0,"text":"b","signature":"s"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"e"}]},"finish_reason":"stop"}]}"#,
    ];
    let got = streamed(Dialect::OpenAiChat, &data).await.unwrap();
    let want = serde_json::json!({ "dialect": "openai_chat", "items": [
        { "type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s" },
        { "type": "reasoning.encrypted", "index": 1, "data": "e" },
    ] });
    assert_eq!((got.reasoning.as_str(), got.echo.as_deref()), ("ab", Some(&want)));
}

#[tokio::test]
async fn output_that_a_vendor_counts_beside_its_reasoning_is_added_up() {
    let usage = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"cached_tokens":4,"completion_tokens_details":{"reasoning_tokens":7}}}"#;
    let got = streamed(Dialect::OpenAiChat, &[usage]).await.unwrap().usage;
    assert_eq!((got.input_tokens, got.output_tokens, got.reasoning_tokens, got.cached_tokens), (10, 12, 7, 4));
}

#[tokio::test]
async fn every_dialect_has_its_own_path_and_way_to_show_the_key() {
    let cases: [(Dialect, &str, &[&str]); 5] = [
        (Dialect::OpenAiChat, "POST /v1/chat/completions HTTP/1.1", &["authorization: Bearer sk-secret"]),
        (Dialect::OpenAiResponses, "POST /v1/responses HTTP/1.1", &["authorization: Bearer sk-secret"]),
        (Dialect::Anthropic, "POST /v1/messages HTTP/1.1", &["x-api-key: sk-secret", "anthropic-version: 2023-06-01"]),
        (Dialect::Gemini, "POST /v1/models/small:streamGenerateContent?alt=sse HTTP/1.1", &["x-goog-api-key: sk-secret"]),
        (Dialect::Ollama, "POST /api/chat HTTP/1.1", &["authorization: Bearer sk-secret", "accept: application/x-ndjson"]),
    ];
    for (dialect, line, headers) in cases {
        let mut server = Server::start(vec![Step::Close]).await;
        let model = server.model_with(|options| options.dialect = dialect);
        assert_eq!(ask(&model).await.unwrap_err().code(), "model_cut");
        assert!(!format!("{model:?}").contains("secret"));
        assert_eq!(server.seen().await, Seen::Connected);
        let Seen::Request { head, .. } = server.seen().await else { panic!("no request") };
        assert_eq!(head.lines().next(), Some(line));
        for header in headers {
            assert!(head.lines().any(|other| other == *header), "{dialect:?}: {header} is not in {head}");
        }
    }
}

#[test]
fn every_vendor_of_the_specification_is_in_the_table() {
    let names = ["openai", "anthropic", "gemini", "ollama", "deepseek", "dashscope", "moonshot", "zhipu", "mistral", "groq"];
    let more = ["openrouter", "vllm", "llamacpp", "openai-compatible", "openai-responses"];
    for name in names.into_iter().chain(more) {
        assert!(vendors::VENDORS.iter().any(|vendor| vendor.name == name), "{name}");
    }
}
