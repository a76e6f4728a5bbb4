//! Real replies that public projects recorded, where they lie beside the project: read whole, in pieces and with CRLF.

use std::path::Path;

use polis_domain::{Finish, Reply, ToolCall, Usage};
use polis_ports::ModelError;
use serde_json::Value;

use crate::server::{Server, Step, ask, chunks, head, response};

#[tokio::test]
async fn recorded_replies_are_read_as_a_correct_client_reads_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/recordings");
    let Ok(index) = std::fs::read(folder.join("index.json")) else {
        println!("skipped: there are no recordings at ../shared/recordings");
        return;
    };
    let index: Value = serde_json::from_slice(&index).unwrap();
    let mut read = 0;
    for item in index["items"].as_array().unwrap().iter().filter(|item| item["dialect"] == "openai.chat") {
        let body = std::fs::read(folder.join(item["file"].as_str().unwrap())).unwrap();
        let (status, media) = (item["http_status"].as_u64().unwrap() as u16, item["content_type"].as_str().unwrap());
        let crlf = String::from_utf8(body.clone()).unwrap().replace('\n', "\r\n").into_bytes();
        let mut seed = read as u64;
        let random = [head(status, media, ""), in_random_pieces(&body, &mut seed), b"0\r\n\r\n".to_vec()].concat();
        for response in [
            response(status, media, &body, usize::MAX),
            response(status, media, &body, 1),
            response(status, media, if media.contains("event-stream") { &crlf } else { &body }, 3),
            random,
        ] {
            let server = Server::start(vec![Step::Send(response), Step::Close]).await;
            compare(item, ask(&server.model()).await);
        }
        read += 1;
    }
    assert!(read > 10, "only {read} recordings");
}

fn compare(item: &Value, got: Result<Reply, ModelError>) {
    let (id, expect) = (&item["id"], &item["expect"]);
    if let Some(message) = expect["error"]["message"].as_str() {
        let error = got.unwrap_err();
        assert!(matches!(&error, ModelError::Rejected { reason } if reason.contains(message)), "{id}: {error}");
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |call: &Value| ToolCall {
        id: text(&call["id"]).into(),
        name: text(&call["name"]).into(),
        arguments: text(&call["arguments_raw"]).into(),
    };
    let tokens = |name: &str| expect["usage"][name].as_u64().unwrap_or_default();
    let want = Reply {
        text: text(&expect["text"]),
        reasoning: text(&expect["reasoning"]),
        tool_calls: expect["tool_calls"].as_array().unwrap().iter().map(call).collect(),
        finish: match expect["finish_reason"].as_str().unwrap() {
            "stop" => Finish::Stop,
            "tool_calls" => Finish::ToolCalls,
            "length" => Finish::Length,
            other => panic!("{id}: {other}"),
        },
        usage: Usage {
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
            cached_tokens: tokens("cached_input_tokens"),
            reasoning_tokens: tokens("reasoning_tokens"),
            ..Usage::default()
        },
        ..Reply::default()
    };
    assert_eq!(got.unwrap_or_else(|error| panic!("{id}: {error}")), want, "{id}");
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
