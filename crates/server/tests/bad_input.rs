//! Bad input: each gets a clear error with a code, and nothing changes.

use polis_server::route_table;
use polis_testkit::{Op, Program};
use serde_json::json;

use crate::support::Rig;

/// A request, what is wrong with it, and what must come back.
struct Case {
    method: &'static str,
    target: String,
    content_type: &'static str,
    body: Vec<u8>,
    want: (u16, &'static str),
}

fn post(target: &str, body: impl Into<Vec<u8>>, status: u16, code: &'static str) -> Case {
    Case {
        method: "POST",
        target: target.to_owned(),
        content_type: "application/json",
        body: body.into(),
        want: (status, code),
    }
}

fn get(target: &str, status: u16, code: &'static str) -> Case {
    Case { method: "GET", target: target.to_owned(), content_type: "", body: Vec::new(), want: (status, code) }
}

fn cases() -> Vec<Case> {
    let nested = |depth: usize| format!("{{\"text\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "a".repeat(bytes));
    vec![
        // Unknown names.
        post("/api/send", r#"{"agentId":"nobody","text":"x"}"#, 404, "unknown_agent"),
        post("/api/send", r#"{"agentId":"user","text":"x"}"#, 400, "to_user"),
        post("/api/tasks/none/cancel", "", 404, "unknown_task"),
        get("/api/tasks/none", 404, "unknown_task"),
        get("/api/messages/none", 404, "unknown_task"),
        get("/api/messages/root", 404, "unknown_task"),
        get("/api/threads/none", 404, "unknown_thread"),
        get("/api/threads/root?path=messages%5B7%5D.meta._thread", 404, "unknown_thread"),
        get("/nothing", 404, "not_found"),
        Case { method: "DELETE", ..get("/api/agents", 405, "method_not_allowed") },
        // Addresses that cannot be read.
        get("/api/threads/root?path=messages%5B1%5D", 400, "bad_path"),
        get("/api/threads/root?path=messages%5Bx%5D.meta._thread", 400, "bad_path"),
        get("/api/threads/root?tree=perhaps", 400, "bad_query"),
        get("/api/threads/root?paht=x", 400, "bad_query"),
        get("/api/threads/%ff", 400, "bad_url"),
        get("/api/messages/none?direction=sideways", 400, "bad_query"),
        get("/api/events?after=x", 400, "bad_query"),
        get("/api/events?after=999999", 409, "ahead_of_log"),
        get("/api/log?after=-1", 400, "bad_query"),
        post("/api/approvals/x", "{}", 400, "bad_json"),
        post("/api/approvals/x", r#"{"approved":true}"#, 400, "bad_id"),
        post("/api/approvals/999.0", r#"{"approved":true}"#, 409, "not_open"),
        post("/api/approvals/999", r#"{"outcome":"again"}"#, 409, "turn_not_open"),
        post("/api/approvals/999", r#"{"approved":true}"#, 409, "not_waiting"),
        post("/api/approvals/999.0", r#"{"approved":true,"outcome":"done"}"#, 400, "bad_json"),
        // Bodies that cannot be read.
        post("/api/submit", "", 400, "bad_json"),
        post("/api/submit", "{", 400, "bad_json"),
        post("/api/submit", "[]", 400, "bad_json"),
        post("/api/fork", "[null,null]", 400, "bad_json"),
        post("/api/societies", r#"["arr"]"#, 400, "bad_json"),
        post("/api/submit", r#"{"text":7}"#, 400, "bad_json"),
        post("/api/submit", r#"{"text":"x","txet":"y"}"#, 400, "bad_json"),
        post("/api/submit", r#"{"text":"\ud800"}"#, 400, "bad_json"),
        post("/api/submit", b"{\"text\":\"\xff\xfe\"}".to_vec(), 400, "invalid_utf8"),
        post("/api/submit", b"\xef\xbb\xbf{\"text\":\"x\"}".to_vec(), 400, "bad_json"),
        post("/api/submit", nested(64), 400, "bad_json"),
        post("/api/submit", nested(100_000), 400, "bad_json"),
        post("/api/submit", r#"{"text":""}"#, 400, "empty_text"),
        post("/api/submit", text(256 * 1024 + 1), 413, "text_too_long"),
        post("/api/submit", text(1 << 20), 413, "body_too_large"),
        post("/api/submit", text(8 << 20), 413, "body_too_large"),
        post("/api/submit", text(17 << 20), 413, "body_too_large"),
        Case { content_type: "text/plain", ..post("/api/submit", r#"{"text":"x"}"#, 415, "unsupported_media_type") },
        Case { content_type: "", ..post("/api/submit", r#"{"text":"x"}"#, 415, "unsupported_media_type") },
        Case {
            content_type: "application/x-www-form-urlencoded",
            ..post("/api/tasks/t/cancel", "", 415, "unsupported_media_type")
        },
    ]
}

#[tokio::test]
async fn bad_input_gets_a_clear_error_with_a_code_and_nothing_changes() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Think("x".into())]).await;
    let last = rig.last();
    for case in cases() {
        let said = String::from_utf8_lossy(&case.body[..case.body.len().min(80)]).into_owned();
        let what = format!("{} {} {said}", case.method, case.target);
        let headers = [("content-type", case.content_type)];
        let headers = if case.content_type.is_empty() { &headers[..0] } else { &headers[..] };
        let reply = rig.ask(case.method, &case.target, headers, case.body).await;
        assert_eq!(reply.problem(), (case.want.0, case.want.1.to_owned()), "{what}");
        assert_eq!(rig.last(), last, "{what}");
    }
    assert_eq!(rig.ask("GET", "/api/events", &[("last-event-id", "x")], Vec::new()).await.problem().1, "bad_query");
}

#[tokio::test]
async fn a_broken_path_is_told_with_its_place() {
    let rig = Rig::start().await;
    let reply = rig.get("/api/threads/root?path=messages%5B1%5D.mata._thread").await;
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`meta` expected at byte 12"), "{detail}");
}

#[tokio::test]
async fn a_full_inbox_is_told_to_come_back() {
    let rig = Rig::start().await;
    rig.post("/api/submit", json!({ "conversation": "root", "text": Program(vec![Op::Approve("wait".into())]).text() }))
        .await
        .ok();
    let reply = loop {
        let reply = rig.post("/api/submit", json!({ "conversation": "root", "text": "a".repeat(256 * 1024) })).await;
        if reply.status != 200 {
            break reply;
        }
    };
    assert_eq!(reply.problem(), (429, "busy".to_owned()));
    assert!(reply.retry_after.is_some());
}

#[tokio::test]
async fn every_write_wants_json() {
    let rig = Rig::start().await;
    // What a person sends along is of any kind.
    for route in route_table().filter(|route| route.method == "POST" && route.is_plain) {
        let target = route.path.replace("{id}", "1.0");
        let reply = rig.ask("POST", &target, &[("content-type", "text/plain")], b"{}".to_vec()).await;
        assert_eq!(reply.problem(), (415, "unsupported_media_type".to_owned()), "{route:?}");
    }
}
