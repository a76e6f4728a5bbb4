//! `[retention]`: old conversations are erased by a server, and a log that is too long takes no new requests.

use std::thread::sleep;
use std::time::Duration;

use polis_domain::Event;
use serde_json::json;

use super::support::Home;

#[test]
fn a_server_erases_old_conversations_that_are_not_pinned() {
    let home = Home::new();
    let [old, pinned, deleted] = ["what is 2 + 3?", "what is 4 + 5?", "what is 6 + 7?"].map(|text| {
        let done = home.polis(&["run", text]);
        let conversation = done.conversation();
        done.ok();
        conversation
    });
    home.polis(&["conversations", "pin", &pinned]).ok();
    home.polis(&["conversations", "delete", "--yes", &deleted]).ok();
    sleep(Duration::from_millis(1_100));
    home.write("polis.toml", "[retention]\ndelete_after = \"1s\"\n");
    let served = home.serve(&[]);
    for conversation in [&old, &deleted] {
        served.until(|recorded| matches!(&recorded.event, Event::ErasureDone { agent, .. } if agent.as_str() == conversation));
    }
    let (_, listed) = served.get("/api/conversations");
    served.stop();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["conversations"][0]["id"], json!(pinned));
    let log = home.polis(&["log", "--json"]).ok();
    assert!(log.contains("what is 4 + 5?") && !log.contains("what is 2 + 3?") && !log.contains("what is 6 + 7?"));
}

/// Text that cannot be packed.
fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit((state >> 33) as u32 % 36, 36).unwrap()
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn a_log_that_is_too_long_takes_no_new_requests_and_finishes_those_that_are_open() {
    let home = Home::new();
    let set = |most: &str| {
        let settings = format!("[retention]\nmax_log_mb = {most}\n\n[[policy]]\ntool = \"write_*\"\nthen = \"ask\"\n");
        home.write("polis.toml", &settings);
    };
    set("1000");
    assert!(home.polis(&["doctor"]).stdout.contains("ok   quota"));
    let served = home.serve(&[]);
    let (status, open) = served.post("/api/submit", &json!({ "text": "write a.txt: hello" }));
    assert_eq!(status, 200, "{open}");
    let task = open["taskId"].as_str().unwrap();
    let approval = loop {
        let (_, waiting) = served.get("/api/approvals");
        match waiting["approvals"][0]["id"].as_str() {
            Some(id) => break id.to_owned(),
            None => sleep(Duration::from_millis(20)),
        }
    };
    for seed in 0..30 {
        assert_eq!(served.post("/api/submit", &json!({ "text": noise(60_000, seed) })).0, 200);
    }
    served.stop();

    set("1");
    let doctor = home.polis(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("BAD  quota"), "{}", doctor.stdout);
    home.polis(&["run", "what is 2 + 2?"]).fails(1, "quota_exceeded");
    let served = home.serve(&[]);
    for (target, body) in
        [("/api/submit", json!({ "text": "hello" })), ("/api/send", json!({ "agentId": "root", "text": "hello" }))]
    {
        let (status, answer) = served.post(target, &body);
        assert_eq!((status, &answer["code"]), (507, &json!("quota_exceeded")), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains("polis archive"), "{answer}");
    }
    let (status, answer) = served.post(&format!("/api/approvals/{approval}"), &json!({ "approved": true }));
    assert_eq!(status, 200, "{answer}");
    let done = loop {
        let (_, request) = served.get(&format!("/api/tasks/{task}"));
        match request["status"].as_str() {
            Some("running" | "waiting") => sleep(Duration::from_millis(20)),
            _ => break request,
        }
    };
    assert_eq!(done["status"], "done", "{done}");
    assert!(home.path().join("a.txt").exists());
    served.stop();
    set("1000");
    home.polis(&["run", "what is 2 + 2?"]).ok();
}
