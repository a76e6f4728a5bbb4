//! What comes back when the provider fails: a typed error that says what to do, never a short answer.

use std::time::Duration;

use polis_domain::{EffectClass, Finish};
use polis_ports::{ChatMessage, Format, Media, MediaKind, Model, ModelError, ModelRequest, ToolChoice, ToolSpec};

use crate::server::{SSE, Seen, Server, Step, answer_to, ask, chunks, cut_place, events, head, hello, response};

const HI: &str = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

/// What the caller does about an error, and what it is told.
fn told(error: &ModelError) -> String {
    format!("{}: {error}", error.code())
}

#[tokio::test]
async fn an_error_names_the_model_and_the_address() {
    let said = br#"{"error":{"message":"no such model"}}"#;
    let within = events(&[HI, r#"{"error":{"message":"no such model"}}"#]);
    for (sent, want) in [
        (response(404, "application/json", said, 99), "the provider rejects the request: 404 Not Found: no such model"),
        (response(200, SSE, within.as_bytes(), 99), "the provider failed: no such model"),
    ] {
        let server = Server::start(vec![Step::Send(sent)]).await;
        let error = ask(&server.model()).await.unwrap_err().to_string();
        assert_eq!(error, format!("{want} (test/small at {})", server.base_url));
    }
}

#[tokio::test]
async fn a_server_that_refuses_stream_options_is_not_sent_them_again() {
    let said = br#"{"error":{"message":"Unknown parameter: stream_options"}}"#;
    let mut server = Server::start(vec![Step::Send(response(400, "application/json", said, 99))]).await;
    let model = server.model();
    let codes = [ask(&model).await.unwrap_err().code(), ask(&model).await.unwrap_err().code()];
    assert_eq!(codes, ["model_adapted", "model_rejected"]);
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        if let Seen::Request { body, .. } = server.seen().await {
            bodies.push(body.contains("stream_options"));
        }
    }
    assert_eq!(bodies, [true, false]);
}

async fn check(what: &str, response: Vec<u8>, want: &str) {
    let error = answer_to(response).await.expect_err(what);
    assert_eq!(told(&error), want, "{what}");
}

#[tokio::test]
async fn a_status_says_whether_to_wait_to_try_again_or_to_give_up() {
    let said = br#"{"error":{"message":"so it is","type":"t"}}"#;
    let answer = |status| response(status, "application/json", said, 99);
    for status in [400, 401, 403, 404, 422] {
        let want = format!("model_rejected: the provider rejects the request: {status} {}: so it is", phrase(status));
        check("rejected", answer(status), &want).await;
    }
    for status in [408, 409, 425, 500, 502, 503, 529] {
        let want = format!("model_failed: the provider failed: {status} {}: so it is", phrase(status));
        check("failed", answer(status), &want).await;
    }
    check(
        "moved",
        [&head(302, "text/html", "location: https://there/v1\r\n")[..], b"0\r\n\r\n"].concat(),
        "model_rejected: the provider rejects the request: 302 Found: it moved to https://there/v1; set the base URL to that",
    )
    .await;
}

#[tokio::test]
async fn a_refused_shape_is_an_attempt_and_every_later_one_describes_it_in_words() {
    let said = br#"{"error":{"message":"Unrecognized request argument supplied: response_format"}}"#;
    let mut server = Server::start(vec![Step::Send(response(400, "application/json", said, 99))]).await;
    let model = server.model();
    let format = Format { name: "answer".into(), schema: serde_json::json!({ "type": "object" }) };
    let shaped = ModelRequest { format: Some(format.into()), ..hello() };
    let mut codes = Vec::new();
    for request in [shaped.clone(), shaped.clone(), shaped, hello()] {
        codes.push(model.stream(request).await.err().unwrap().code());
    }
    assert_eq!(codes, ["model_adapted", "model_rejected", "model_rejected", "model_rejected"]);
    let mut bodies = Vec::new();
    while bodies.len() < 4 {
        if let Seen::Request { body, .. } = server.seen().await {
            bodies.push((body.contains("\"response_format\""), body.contains("fits this JSON schema")));
        }
    }
    assert_eq!(bodies, [(true, false), (false, true), (false, true), (false, false)]);
}

#[tokio::test]
async fn a_refused_picture_is_an_attempt_and_every_later_one_names_it_in_words() {
    let picture = Media::Inline { media_type: "image/png".into(), name: "cat.png".into(), data: "QUJD".into() };
    let message = ChatMessage::User { text: "look".into(), media: vec![picture] };
    let showing = ModelRequest { messages: vec![message], ..ModelRequest::default() };
    // Whether the model takes no pictures at all, or not this one.
    for (status, said, takes) in [
        (400, "messages[0]: unknown variant `image_url`, expected `text`", Some(false)),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", Some(false)),
        (400, "You uploaded an unsupported image. Please make sure your image is valid.", None),
        (413, "Request Entity Too Large", None),
    ] {
        let said = serde_json::json!({ "error": { "message": said } }).to_string();
        let mut server = Server::start(vec![Step::Send(response(status, "application/json", said.as_bytes(), 999))]).await;
        let model = server.model();
        let first = model.stream(showing.clone()).await.err().unwrap().code();
        assert_eq!(first, "model_adapted", "{said}");
        assert!(model.stream(showing.clone()).await.is_err());
        assert_eq!(model.description("test/small").capabilities.takes(MediaKind::Image), takes, "{said}");
        assert_eq!(model.description("other").capabilities.takes(MediaKind::Image), None);
        let mut bodies = Vec::new();
        while bodies.len() < 2 {
            if let Seen::Request { body, .. } = server.seen().await {
                bodies.push((body.contains("QUJD"), body.contains("[not shown: cat.png (image/png, 3 bytes)")));
            }
        }
        assert_eq!(bodies, [(true, false), (false, true)], "{said}");
    }
}

#[tokio::test]
async fn a_refused_choice_of_tools_is_an_attempt_and_later_ones_go_without() {
    let said = br#"{"error":{"message":"this model does not support this tool_choice"}}"#;
    let mut server = Server::start(vec![Step::Send(response(400, "application/json", said, 99))]).await;
    let model = server.model();
    let tool = ToolSpec {
        name: "f".into(),
        description: String::new(),
        parameters: serde_json::json!({}),
        class: EffectClass::Read,
        volatile: false,
    };
    let choosing = ModelRequest { tools: [tool].into(), tool_choice: ToolChoice::Required, ..hello() };
    let mut codes = Vec::new();
    for request in [choosing.clone(), choosing] {
        codes.push(model.stream(request).await.err().unwrap().code());
    }
    assert_eq!(codes, ["model_adapted", "model_rejected"]);
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        if let Seen::Request { body, .. } = server.seen().await {
            bodies.push(body.contains("\"tool_choice\""));
        }
    }
    assert_eq!(bodies, [true, false]);
}

#[tokio::test]
async fn a_shape_that_is_wrong_is_told_to_whoever_wrote_it() {
    let said = br#"{"error":{"message":"Invalid schema for response_format 'answer': no type"}}"#;
    let mut server = Server::start(vec![Step::Send(response(400, "application/json", said, 99))]).await;
    let format = Format { name: "answer".into(), schema: serde_json::json!({}) };
    let shaped = ModelRequest { format: Some(format.into()), ..hello() };
    let model = server.model();
    for _ in 0..2 {
        let error = model.stream(shaped.clone()).await.err().unwrap();
        assert!(error.to_string().contains("Invalid schema"), "{error}");
    }
    let mut bodies = Vec::new();
    while bodies.len() < 2 {
        if let Seen::Request { body, .. } = server.seen().await {
            bodies.push(body.contains("\"response_format\""));
        }
    }
    assert_eq!(bodies, [true, true], "it is asked once each time, as it was");
}

fn phrase(status: u16) -> &'static str {
    polis_http::StatusCode::from_u16(status).unwrap().canonical_reason().unwrap_or("<unknown status code>")
}

#[tokio::test]
async fn a_provider_that_throttles_says_for_how_long() {
    for (header, want) in [("retry-after: 7\r\n", Some(Duration::from_secs(7))), ("", None)] {
        let response = [&head(429, "application/json", header)[..], b"0\r\n\r\n"].concat();
        match answer_to(response).await {
            Err(ModelError::Throttled { retry_after, .. }) => assert_eq!(retry_after, want),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_a_provider_says_is_found_shortened_and_freed_of_the_key() {
    let cases = [
        (r#"{"error":"plain"}"#, "plain"),
        (r#"{"object":"error","message":"older"}"#, "older"),
        (r#"{"object":"error","message":{"detail":[{"msg":"extra"}]}}"#, "extra"),
        (r#"{"detail":"fast"}"#, "fast"),
        (r#"{"odd":1}"#, r#"{"odd":1}"#),
        ("  no json ", "no json"),
        ("your key sk-secret is bad", "your key *** is bad"),
    ];
    for (body, want) in cases {
        let want = format!("model_rejected: the provider rejects the request: 400 Bad Request: {want}");
        check(body, response(400, "application/json", body.as_bytes(), 99), &want).await;
    }
    check("nothing", response(400, "text/plain", b"", 9), "model_rejected: the provider rejects the request: 400 Bad Request")
        .await;
    let long = answer_to(response(400, "text/plain", "长".repeat(9000).as_bytes(), 999)).await.unwrap_err().to_string();
    assert!(long.ends_with("长…") && long.chars().count() < 600, "{long}");
}

#[tokio::test]
async fn an_error_inside_a_stream_that_began_well_is_an_error() {
    let cases = [
        (r#"{"error":{"message":"busy","code":429}}"#, "model_throttled: the provider asks us to slow down: busy"),
        (
            r#"{"error":{"message":"busy","type":"rate_limit_error"}}"#,
            "model_throttled: the provider asks us to slow down: busy",
        ),
        (
            r#"{"error":{"message":"over","code":"529"},"choices":[{"finish_reason":"error"}]}"#,
            "model_failed: the provider failed: over",
        ),
        (r#"{"error":{"message":"oh","type":"server_error"}}"#, "model_failed: the provider failed: oh"),
        (r#"{"error":{"message":"who"}}"#, "model_failed: the provider failed: who"),
        (r#"{"error":"sk-secret"}"#, "model_failed: the provider failed: ***"),
        (
            r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
            "model_rejected: the provider rejects the request: no",
        ),
        (r#"{"error":{"message":"no","code":400}}"#, "model_rejected: the provider rejects the request: no"),
        (r#"{"code":"InvalidParameter","message":"no"}"#, "model_rejected: the provider rejects the request: no"),
        (
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}"#,
            "model_failed: the provider failed: it reported an error without details",
        ),
    ];
    for (chunk, want) in cases {
        check(chunk, response(200, SSE, events(&[HI, chunk, STOP, "[DONE]"]).as_bytes(), 999), want).await;
        check(chunk, response(200, "application/json", chunk.as_bytes(), 999), want).await;
    }
    let named = format!("{}event: error\ndata: {{\"odd\":1}}\n\n", events(&[HI]));
    check("event: error", response(200, SSE, named.as_bytes(), 99), "model_failed: the provider failed: {\"odd\":1}").await;
}

#[tokio::test]
async fn what_nobody_can_read_is_an_error() {
    let broken = answer_to(response(200, SSE, events(&[HI, "{broken", STOP]).as_bytes(), 99)).await.unwrap_err();
    assert!(told(&broken).starts_with("model_failed: the provider failed: a chunk cannot be read"), "{broken}");
    assert!(told(&broken).ends_with(": {broken"), "what came is told: {broken}");
    let deep = "[".repeat(100_000);
    let deep = answer_to(response(200, SSE, events(&[&deep]).as_bytes(), 9999)).await.unwrap_err();
    assert_eq!(deep.code(), "model_failed");
    let endless = "x".repeat(9 << 20);
    let endless = answer_to(response(200, SSE, endless.as_bytes(), 9999)).await.unwrap_err();
    assert_eq!(endless.code(), "model_failed");
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_is_whole_or_cut_and_never_short() {
    let body = events(&[
        HI,
        r#"{"choices":[{"delta":{"content":" 你"}}]}"#,
        STOP,
        r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
        "[DONE]",
    ]);
    let stop_ends = body.find(STOP).unwrap() + STOP.len();
    for cut in 0..body.len() {
        // With an HTTP error at the cut, and with a body that just ends there.
        let broken = [head(200, SSE, ""), chunks(&body.as_bytes()[..cut], 16)].concat();
        let ended = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &body.as_bytes()[..cut]].concat();
        for response in [broken, ended] {
            match answer_to(response).await {
                Ok(reply) => {
                    assert_eq!((reply.text.as_str(), reply.finish), ("hi 你", Finish::Stop), "cut at {cut}");
                    assert!(cut >= stop_ends, "cut at {cut}");
                }
                Err(ModelError::Cut { .. }) => assert!(cut < stop_ends, "cut at {cut}"),
                Err(other) => panic!("cut at {cut}: {other}"),
            }
        }
    }
}

#[tokio::test]
async fn a_reply_that_stands_still_is_cut() {
    let begun = [head(200, SSE, ""), chunks(events(&[HI]).as_bytes(), 99)].concat();
    let server = Server::start(vec![Step::Send(begun), Step::Hang, Step::Close]).await;
    let error = ask(&server.model_with(|options| options.idle_timeout = Duration::from_millis(30))).await.unwrap_err();
    assert_eq!(told(&cut_place(error)), "model_cut: the reply was interrupted: no data for 0.03 s");
}

#[tokio::test]
async fn a_reply_that_never_begins_is_cut() {
    for begun in [Vec::new(), head(200, SSE, "")] {
        let server = Server::start(vec![Step::Send(begun), Step::Hang, Step::Close]).await;
        let model = server.model_with(|options| options.first_timeout = Duration::from_millis(30));
        assert_eq!(
            told(&cut_place(ask(&model).await.unwrap_err())),
            "model_cut: the reply was interrupted: no data for 0.03 s"
        );
    }
}

#[tokio::test]
async fn a_provider_that_keeps_silent_after_the_reply_does_not_spoil_it() {
    let whole = [head(200, SSE, ""), chunks(events(&[HI, STOP]).as_bytes(), 99)].concat();
    for tail in ["", "data: [DONE]\n\n"] {
        let response = [&whole[..], &chunks(tail.as_bytes(), 99)].concat();
        let server = Server::start(vec![Step::Send(response), Step::Hang, Step::Close]).await;
        let model = server.model_with(|options| options.idle_timeout = Duration::from_millis(30));
        assert_eq!(ask(&model).await.unwrap().text, "hi");
    }
}

#[tokio::test]
async fn where_nothing_listens_nothing_can_be_reached() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(vec![]).await;
    let model = server.model_with(|options| options.base_url = format!("http://{nobody}/v1"));
    let error = model.stream(hello()).await.err().unwrap();
    assert!(matches!(error, ModelError::Unreachable(_)), "{error}");
    assert!(error.to_string().contains(&format!("nothing answers at http://{nobody}/v1; check the address")), "{error}");
}

#[tokio::test]
async fn a_connection_that_closes_without_a_word_is_cut() {
    let server = Server::start(vec![Step::Close]).await;
    assert_eq!(ask(&server.model()).await.unwrap_err().code(), "model_cut");
}

#[tokio::test]
async fn no_error_and_no_description_of_a_model_holds_the_key() {
    let server = Server::start(vec![Step::Close]).await;
    let model = server.model();
    let error = ask(&model).await.unwrap_err();
    let text = format!("{model:?} {error:?} {error}");
    assert!(!text.contains("secret"), "{text}");
}
