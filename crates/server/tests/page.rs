//! The page as a browser gets it: open, with its policy, at each view; its files, and nothing in their place.

use serde_json::{Value, json};

use polis_domain::Event;
use polis_testkit::{Op, Program};

use crate::support::{Reply, Rig, send};

async fn get(rig: &Rig, path: &str) -> Reply {
    Reply::of(send(rig.address, "GET", path, &[], Vec::new()).await).await
}

#[tokio::test]
async fn every_view_is_the_page_also_for_whoever_has_no_token_yet() {
    let rig = Rig::start().await;
    let page = get(&rig, "/").await;
    assert_eq!((page.status, &*page.content_type), (200, "text/html; charset=utf-8"));
    for path in [
        "/chat",
        "/chat/root/t1",
        "/inbox",
        "/organisation/root",
        "/trace",
        "/gallery",
        "/settings/models",
        "/s/other/chat",
        "/s/other/trace/t1",
    ] {
        let view = get(&rig, path).await;
        assert_eq!((view.status, &view.body), (200, &page.body), "{path}");
    }
    assert_eq!(get(&rig, "/s/other/api/agents").await.problem(), (401, "unauthorized".to_owned()));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn what_the_page_names_is_there_and_what_is_missing_is_missing() {
    let rig = Rig::start().await;
    let page = String::from_utf8(get(&rig, "/").await.body).unwrap();
    let files: Vec<&str> = page.split('"').filter(|text| text.starts_with("/assets/")).collect();
    assert!(files.len() >= 2, "{page}");
    for file in files {
        let kept = get(&rig, file).await;
        assert_eq!(kept.status, 200, "{file}");
        assert!(kept.headers["cache-control"].to_str().unwrap().contains("immutable"), "{file}");
    }
    for gone in ["/assets/gone.js", "/assets/..%2findex.html", "/assets/"] {
        assert_ne!(get(&rig, gone).await.status, 200, "{gone}");
    }
}

#[tokio::test]
async fn a_browser_that_is_lost_gets_the_page_and_a_program_a_problem() {
    let rig = Rig::start().await;
    let page = get(&rig, "/").await;
    let asked =
        async |path: &str| Reply::of(send(rig.address, "GET", path, &[("accept", "text/html,*/*")], Vec::new()).await).await;
    let lost = asked("/nosuch/place").await;
    assert_eq!((lost.status, &lost.body), (404, &page.body));
    for path in ["/api/nosuch", "/v1/nosuch", "/assets/gone.js"] {
        assert_ne!(asked(path).await.body, page.body, "{path}");
    }
    assert_eq!(get(&rig, "/nosuch").await.problem(), (401, "unauthorized".to_owned()));
    assert_eq!(rig.get("/nosuch").await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn what_an_operator_has_set_is_told() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/api/policy").await.ok(), json!({ "rules": [] }));
    let societies = rig.get("/api/societies").await.ok();
    assert_eq!(societies["societies"][0]["forkedFrom"], Value::Null, "{societies}");
}

#[tokio::test]
async fn one_turn_of_a_request_can_be_called_off_and_no_other_requests() {
    let rig = Rig::start().await;
    let ask = Program(vec![Op::Approve("may I?".into())]).text();
    let task = rig.post("/api/submit", json!({ "conversation": "root", "text": ask })).await.ok()["taskId"].clone();
    let turn = rig.until(|recorded| matches!(recorded.event, Event::TurnStarted { .. })).await.seq;
    let cancel = async |task: &Value, turn: u64| {
        rig.post(&format!("/api/tasks/{}/cancel", task.as_str().unwrap()), json!({ "turn": turn })).await
    };
    assert_eq!(cancel(&task, 9_999).await.problem(), (409, "turn_not_open".to_owned()));
    assert_eq!(cancel(&json!("another"), turn.0).await.problem(), (409, "turn_not_open".to_owned()));
    assert_eq!(cancel(&task, turn.0).await.ok(), json!({ "taskId": task }));
    rig.ending(&task.as_str().unwrap().into()).await;
}
