//! What comes back when the provider answers, in all the ways in which providers do.

use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{Finish, Reply, ToolCall, Usage};
use polis_ports::{Delta, Model};
use tokio::sync::Notify;

use crate::server::{SSE, Seen, Server, Step, answer_to, ask, chunks, events, head, hello, response};

const DONE: &str = "[DONE]";
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn text(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

async fn check(what: &str, data: &[&str], want: Reply) {
    let got = answer_to(response(200, SSE, events(data).as_bytes(), usize::MAX)).await;
    assert_eq!(got.unwrap_or_else(|error| panic!("{what}: {error}")), want, "{what}");
}

#[tokio::test]
async fn a_reply_is_the_same_however_it_is_cut_and_however_its_lines_end() {
    let body = events(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"想"}}],"usage":null}"#,
        r#"{"choices":[{"delta":{"content":"你好 🦀"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"\"é\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":6}}}"#,
        DONE,
    ]);
    let want = Reply {
        text: "你好 🦀".to_owned(),
        reasoning: "想".to_owned(),
        tool_calls: vec![call("a", "f", "{\"x\":\"é\"}")],
        finish: Finish::ToolCalls,
        usage: Usage { input_tokens: 9, output_tokens: 8, cached_tokens: 7, reasoning_tokens: 6, ..Usage::default() },
        ..Reply::default()
    };
    let with_comments = format!("\u{FEFF}{}", body.replace("\n\n", "\n\n: keep-alive\n\n"));
    for body in [body.replace('\n', "\r\n"), body.replace('\n', "\r"), body.trim_end().to_owned(), with_comments, body] {
        for size in [1, 2, 3, 5, 64, usize::MAX] {
            let got = answer_to(response(200, SSE, body.as_bytes(), size)).await;
            assert_eq!(got.unwrap(), want, "in chunks of {size}: {body:?}");
        }
    }
}

#[tokio::test]
async fn tool_calls_are_told_apart_in_every_dialect() {
    let two = Reply {
        tool_calls: vec![call("a", "f", "{\"x\":1}"), call("b", "g", "{}")],
        finish: Finish::ToolCalls,
        ..Reply::default()
    };
    let no_index = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":null,"finish_reason":"tool_calls"}]}"#,
    ];
    check("no index", no_index, two.clone()).await;
    let ids_only = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"id":"b","function":{"name":"g","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":":1}"}},{"id":"b","function":{"name":"g","arguments":"}"}}]}}]}"#,
        r#"{"choices":[{"finish_reason":"tool_calls"}]}"#,
    ];
    check("no index, the id with every chunk, in turns", ids_only, two.clone()).await;
    let one_index = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"stop"}]}"#,
    ];
    check("the same index for all, and `stop`", one_index, two.clone()).await;
    let mixed = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"a","function":{"name":"f"}},{"index":2,"id":"b","function":{"name":"g","arguments":null}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":2,"function":{"arguments":{}}},{"index":1,"function":{"arguments":{"x":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":null},"finish_reason":"tool_calls"}]}"#,
    ];
    check("indexes from 1, in turns, arguments as objects", mixed, two.clone()).await;
    let new_ids = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"zzz","function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ];
    let renamed = Reply { tool_calls: vec![call("zzz", "f", "{\"x\":1}"), call("b", "g", "{}")], ..two.clone() };
    check("another id with every chunk", new_ids, renamed).await;
    let no_ids = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}},{"function":{"name":"g","arguments":{}}}]},"finish_reason":"tool_calls"}]}"#,
    ];
    let named = Reply { tool_calls: vec![call("call_0", "f", "{\"x\":1}"), call("call_1", "g", "{}")], ..two };
    check("neither index nor id", no_ids, named).await;
}

#[tokio::test]
async fn small_deviations_are_survived() {
    let counted = |text_: &str, input_tokens, output_tokens, cached_tokens| Reply {
        usage: Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() },
        ..text(text_)
    };
    let hi = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
    check("no [DONE]", &[hi, STOP], text("hi")).await;
    check(
        "nulls and unknown fields",
        &[
            r#"{"id":null,"new":{"a":[1]},"choices":[{"index":null,"delta":{"role":null,"content":null,"tool_calls":null,"x":1},"finish_reason":null}],"usage":null,"error":null}"#,
            r#"{"choices":null}"#,
            hi,
            r#"{"choices":[{"delta":{"content":"","reasoning":null},"finish_reason":""}]}"#,
            STOP,
            DONE,
        ],
        text("hi"),
    )
    .await;
    check(
        "usage in the choice, and twice",
        &[
            r#"{"choices":[{"delta":{"content":"hi"},"usage":{"prompt_tokens":1}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":2,"completion_tokens":3,"prompt_cache_hit_tokens":1}}]}"#,
            DONE,
        ],
        counted("hi", 2, 3, 1),
    )
    .await;
    let groq = r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":1}}}"#;
    check("usage under another name", &[hi, STOP, groq, DONE], counted("hi", 1, 0, 0)).await;
    check("usage without choices", &[hi, STOP, r#"{"usage":{"prompt_tokens":4}}"#, DONE], counted("hi", 4, 0, 0)).await;
    check(
        "the same reasoning under two names",
        &[
            r#"{"choices":[{"delta":{"reasoning":"so","reasoning_content":"so"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"","reasoning_content":" it"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":" is","reasoning_content":""}}]}"#,
            hi,
            STOP,
            DONE,
        ],
        Reply { reasoning: "so it is".to_owned(), ..text("hi") },
    )
    .await;
    check(
        "content as a list of parts",
        &[
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}]},{"type":"text","text":"hi"}]}}]}"#,
            STOP,
        ],
        Reply { reasoning: "so".to_owned(), ..text("hi") },
    )
    .await;
    check(
        "a refusal",
        &[r#"{"choices":[{"delta":{"refusal":"I will not"}}]}"#, STOP],
        Reply { finish: Finish::Refusal, ..text("I will not") },
    )
    .await;
}

#[tokio::test]
async fn every_reason_to_stop_has_its_name() {
    let cases = [
        ("stop", Finish::Stop),
        ("length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("tool_calls", Finish::ToolCalls),
        ("insufficient_system_resource", Finish::Other("insufficient_system_resource".to_owned())),
    ];
    for (word, finish) in cases {
        let last = format!(r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"{word}"}}]}}"#);
        check(word, &[&last, DONE], Reply { finish, ..text("x") }).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"message":{"content":"hi","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2}}"#;
    let got = answer_to(response(200, "application/json; charset=utf-8", body.as_bytes(), 7)).await.unwrap();
    let want = Reply {
        tool_calls: vec![call("a", "f", "{}")],
        finish: Finish::ToolCalls,
        usage: Usage { input_tokens: 2, ..Usage::default() },
        ..text("hi")
    };
    assert_eq!(got, want);
}

#[tokio::test]
async fn the_first_delta_is_given_before_the_provider_has_sent_the_second() {
    let go_on = Arc::new(Notify::new());
    let server = Server::start(vec![
        Step::Send(
            [head(200, SSE, ""), chunks(events(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#]).as_bytes(), 99)].concat(),
        ),
        Step::Wait(go_on.clone()),
        Step::Send([chunks(events(&[STOP, DONE]).as_bytes(), 99), b"0\r\n\r\n".to_vec()].concat()),
    ])
    .await;
    let mut stream = server.model().stream(hello()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Model("test/small".into()));
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Content("a".to_owned()));
    go_on.notify_one();
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Done(Finish::Stop));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn the_request_carries_the_model_the_key_and_what_was_asked() {
    let mut server = Server::start(vec![Step::Send(response(200, SSE, events(&[STOP, DONE]).as_bytes(), 99))]).await;
    ask(&server.model()).await.unwrap();
    assert_eq!(server.seen().await, Seen::Connected);
    let Seen::Request { head, body } = server.seen().await else { panic!("no request") };
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    for line in ["authorization: Bearer sk-secret", "content-type: application/json", "accept: text/event-stream"] {
        assert!(head.lines().any(|other| other == line), "{line} is not in {head}");
    }
    let want = r#"{"model":"small","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(body, want);
}

#[tokio::test]
async fn one_connection_serves_one_request_after_the_other() {
    let end = Step::Send(b"0\r\n\r\n".to_vec());
    let body = [head(200, SSE, ""), chunks(events(&[STOP, DONE]).as_bytes(), 99)].concat();
    let mut server = Server::start(vec![Step::Send(body), end]).await;
    let model = server.model();
    for _ in 0..5 {
        ask(&model).await.unwrap();
    }
    assert_eq!(server.seen().await, Seen::Connected);
    for _ in 0..5 {
        assert!(matches!(server.seen().await, Seen::Request { .. }));
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let first = chunks(events(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#]).as_bytes(), 99);
    let mut server = Server::start(vec![Step::Send([head(200, SSE, ""), first].concat()), Step::Hang, Step::Close]).await;
    let mut stream = server.model().stream(hello()).await.unwrap();
    while stream.next().await.unwrap().unwrap() != Delta::Content("a".to_owned()) {}
    assert_eq!(server.seen().await, Seen::Connected);
    assert!(matches!(server.seen().await, Seen::Request { .. }));
    drop(stream);
    assert_eq!(server.seen().await, Seen::Closed);
}

#[tokio::test]
async fn dropping_a_request_that_has_no_answer_yet_closes_the_connection() {
    let mut server = Server::start(vec![Step::Hang, Step::Close]).await;
    let model = server.model();
    {
        let asking = model.stream(hello());
        let arrived = async {
            assert_eq!(server.seen().await, Seen::Connected);
            assert!(matches!(server.seen().await, Seen::Request { .. }));
        };
        tokio::select! {
            _ = asking => panic!("nobody answered"),
            () = arrived => {}
        }
    }
    assert_eq!(server.seen().await, Seen::Closed);
}
