//! Real replies that public projects recorded, where they lie beside the project: read whole, in chunks and with CRLF.

use std::io::Write;
use std::path::Path;

use polis_domain::{Finish, Reply, Usage};
use polis_ports::ModelError;
use polis_providers::Dialect;
use serde_json::{Value, json};

use crate::server::{answer_in, chunks, head, response};

#[tokio::test]
async fn recorded_openai_chat_replies_are_read_right() {
    check("recorded_openai_chat_replies_are_read_right", Dialect::OpenAiChat, "openai.chat", 17).await;
}

#[tokio::test]
async fn recorded_openai_responses_are_read_right() {
    check("recorded_openai_responses_are_read_right", Dialect::OpenAiResponses, "openai.responses", 14).await;
}

#[tokio::test]
async fn recorded_anthropic_messages_are_read_right() {
    check("recorded_anthropic_messages_are_read_right", Dialect::Anthropic, "anthropic.messages", 16).await;
}

#[tokio::test]
async fn recorded_gemini_replies_are_read_right() {
    check("recorded_gemini_replies_are_read_right", Dialect::Gemini, "gemini.generate", 13).await;
}

#[tokio::test]
async fn recorded_ollama_replies_are_read_right() {
    check("recorded_ollama_replies_are_read_right", Dialect::Ollama, "ollama.chat", 8).await;
}

async fn check(test: &str, dialect: Dialect, name: &str, count: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/recordings");
    let Ok(index) = std::fs::read(folder.join("index.json")) else {
        let _ = writeln!(std::io::stderr(), "skipped: {test}: there are no recordings at ../shared/recordings");
        return;
    };
    let index: Value = serde_json::from_slice(&index).unwrap();
    let mut read = 0;
    for item in index["items"].as_array().unwrap().iter().filter(|item| item["dialect"] == name) {
        let body = std::fs::read(folder.join(item["file"].as_str().unwrap())).unwrap();
        let (status, media) = (item["http_status"].as_u64().unwrap() as u16, item["content_type"].as_str().unwrap());
        let crlf = String::from_utf8(body.clone()).unwrap().replace('\n', "\r\n").into_bytes();
        let mut seed = read as u64;
        let random = [head(status, media, ""), in_random_pieces(&body, &mut seed), b"0\r\n\r\n".to_vec()].concat();
        let mut replies = Vec::new();
        for response in [
            response(status, media, &body, usize::MAX),
            response(status, media, &body, 1),
            response(status, media, &crlf, 3),
            response(status, "application/octet-stream", &body, 1000),
            random,
        ] {
            let got = answer_in(dialect, response).await;
            compare(dialect, item, &got);
            replies.extend(got);
        }
        assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "{}", item["id"]);
        read += 1;
    }
    assert!(read >= count, "only {read} recordings");
}

fn compare(dialect: Dialect, item: &Value, got: &Result<Reply, ModelError>) {
    let (id, expect) = (&item["id"], &item["expect"]);
    if let Some(message) = expect["error"]["message"].as_str() {
        let error = got.as_ref().unwrap_err();
        let start: String = message.chars().take(400).collect();
        assert!(matches!(&error, ModelError::Rejected { reason } if reason.contains(&start)), "{id}: {error}");
        return;
    }
    let got = got.as_ref().unwrap_or_else(|error| panic!("{id}: {error}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = (got.text.as_str(), got.reasoning.as_str());
    let refused = text(&expect["refusal"]);
    assert_eq!(said, (&*(text(&expect["text"]) + &refused), &*text(&expect["reasoning"])), "{id}");
    let calls = expect["tool_calls"].as_array().unwrap();
    assert_eq!(got.tool_calls.len(), calls.len(), "{id}");
    for (call, want) in got.tool_calls.iter().zip(calls) {
        assert_eq!(&*call.name, want["name"], "{id}");
        // Where the vendor gives no id, we make one.
        assert!(if want["id"].is_null() { !call.id.is_empty() } else { want["id"] == *call.id }, "{id}: {}", call.id);
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(arguments) => assert_eq!(arguments, want["arguments"], "{id}"),
            Err(_) => assert_eq!(json!(call.arguments), json!(text(&want["arguments_raw"])), "{id}"),
        }
    }
    assert_eq!((&got.finish, got.usage), (&finish(expect), usage(dialect, &expect["usage"], got.usage)), "{id}");
    if expect["has_signature"] == true {
        let echo = got.echo.as_ref().unwrap_or_else(|| panic!("{id}: nothing to send back")).to_string();
        assert!(echo.contains("ignature"), "{id}: {echo}");
    }
}

fn finish(expect: &Value) -> Finish {
    let has_calls = expect["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    match expect["finish_reason"].as_str().unwrap() {
        "stop" | "end_turn" | "STOP" | "completed" if has_calls => Finish::ToolCalls,
        "stop" | "end_turn" | "STOP" | "completed" => Finish::Stop,
        "tool_calls" | "tool_use" => Finish::ToolCalls,
        "length" => Finish::Length,
        "incomplete" if expect["incomplete_reason"] == "max_output_tokens" => Finish::Length,
        other => panic!("{other}"),
    }
}

/// The vendor's counts in our terms: all input in one sum, and all output in another. What was not noted is as we found it.
fn usage(dialect: Dialect, counted: &Value, found: Usage) -> Usage {
    let noted = |name: &str, found| counted.get(name).map_or(found, |tokens| tokens.as_u64().unwrap_or_default());
    let tokens = |name: &str| noted(name, 0);
    let (input, output) = (tokens("input_tokens"), tokens("output_tokens"));
    let cached_tokens = tokens("cached_input_tokens");
    let cache_write_tokens = noted("cache_creation_input_tokens", found.cache_write_tokens);
    let reasoning_tokens = noted("reasoning_tokens", found.reasoning_tokens);
    let (input_tokens, output_tokens) = match dialect {
        Dialect::Anthropic => (input + cached_tokens + cache_write_tokens, output),
        Dialect::Gemini => (tokens("total_tokens") - output - reasoning_tokens, output + reasoning_tokens),
        Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Ollama | Dialect::Bedrock | Dialect::Vertex => {
            (input, output)
        }
    };
    Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens, ..Usage::default() }
}

fn in_random_pieces(mut body: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, rest) = body.split_at((1 + (*seed >> 33) as usize % 40).min(body.len()));
        pieces.extend(chunks(piece, usize::MAX));
        body = rest;
    }
    pieces
}
