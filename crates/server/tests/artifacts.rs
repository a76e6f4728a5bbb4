//! Contents over HTTP: listed in pages, downloaded without being able to act, sent by a person.

use polis_domain::{Artifact, ArtifactId};
use polis_ports::Hasher;
use polis_testkit::Op;
use serde_json::json;

use crate::support::{ARTIFACT_BYTES, Reply, Rig};

async fn upload(rig: &Rig, name: &str, kind: &str, content: &[u8]) -> Reply {
    rig.ask("POST", &format!("/api/artifacts?name={name}"), &[("content-type", kind)], content.to_vec()).await
}

async fn download(rig: &Rig, id: &ArtifactId, headers: &[(&str, &str)]) -> Reply {
    rig.ask("GET", &format!("/api/artifacts/{id}"), headers, Vec::new()).await
}

fn header(reply: &Reply, name: &str) -> String {
    reply.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn what_agents_keep_is_listed_in_pages_and_downloaded() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Keep("one".into()), Op::Keep("two".into()), Op::Keep("three".into()), Op::Keep("one".into())]).await;
    let all = rig.get("/api/artifacts").await.ok();
    assert_eq!((all["last"].clone(), all["artifacts"].as_array().unwrap().len()), (json!(3), 3));
    let second = &rig.get("/api/artifacts?after=1&limit=1").await.ok()["artifacts"];
    let id = Hasher::id_of(b"two");
    assert_eq!(second[0]["id"], json!(id));
    assert_eq!(second[0]["n"], json!(2));
    assert_eq!(
        (&second[0]["name"], &second[0]["mediaType"], &second[0]["bytes"]),
        (&json!("kept.txt"), &json!("text/plain"), &json!(3))
    );
    assert_eq!((&second[0]["agent"], second.as_array().unwrap().len()), (&json!("root"), 1));
    let reply = download(&rig, &id, &[]).await;
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"two".as_slice()));
    assert_eq!(header(&reply, "etag"), format!("\"{id}\""));
    assert_eq!(header(&reply, "content-disposition"), "inline; filename=\"kept.txt\"; filename*=UTF-8''kept.txt");
    assert_eq!(rig.get("/api/artifacts?limit=x").await.problem(), (400, "bad_query".to_owned()));
    rig.stop().await;
}

#[tokio::test]
async fn what_could_act_is_downloaded_and_everything_is_sandboxed() {
    let rig = Rig::start().await;
    let kinds = [
        "text/html",
        "image/svg+xml",
        "application/pdf",
        "text/javascript",
        "application/xml",
        "strange",
        "TEXT/HTML; charset=utf-8",
    ];
    for kind in kinds.into_iter().chain(["text/plain; charset=utf-8", "image/png"]) {
        let sent = upload(&rig, "x%22.html", kind, format!("<script>{kind}</script>").as_bytes()).await.ok();
        // Named by a message, as a model's own would be.
        let said = rig.post("/api/submit", json!({ "conversation": "root", "text": "[]", "artifacts": [sent] })).await.ok();
        rig.ending(&said["taskId"].as_str().unwrap().into()).await;
        let reply = rig.get(&format!("/api/artifacts/{}", sent["id"].as_str().unwrap())).await;
        let policy = header(&reply, "content-security-policy");
        assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{kind}: {policy}");
        assert_eq!(header(&reply, "x-content-type-options"), "nosniff");
        let is_shown = ["text/plain; charset=utf-8", "image/png"].contains(&kind);
        assert_eq!(header(&reply, "content-disposition").starts_with("inline;"), is_shown, "{kind}");
        let want = if kind == "strange" { "application/octet-stream" } else { kind };
        assert_eq!(reply.content_type, want);
    }
    rig.stop().await;
}

#[tokio::test]
async fn parts_and_what_the_reader_has_already_are_answered_so() {
    let rig = Rig::start().await;
    let content: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    let id: ArtifactId = upload(&rig, "a", "", &content).await.ok()["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(download(&rig, &id, &[]).await.body, content);
    let part = download(&rig, &id, &[("range", "bytes=1000-1009")]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &content[1000..1010]));
    assert_eq!(header(&part, "content-range"), "bytes 1000-1009/700000");
    let end = download(&rig, &id, &[("range", "bytes=-300000")]).await;
    assert_eq!((end.status, end.body.as_slice()), (206, &content[400_000..]));
    assert_eq!(download(&rig, &id, &[("range", "bytes=700000-")]).await.status, 416);
    assert_eq!(download(&rig, &id, &[("range", "bytes=0-1"), ("if-range", "\"other\"")]).await.status, 200);
    let etag = format!("\"{id}\"");
    let known = download(&rig, &id, &[("if-none-match", &etag)]).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    rig.stop().await;
}

#[tokio::test]
async fn what_a_person_sends_is_named_by_the_log_when_a_message_brings_it() {
    let rig = Rig::start().await;
    let sent = upload(&rig, "%E6%8A%A5%E5%91%8A.csv", "text/csv", b"a,b\n1,2\n").await.ok();
    let artifact: Artifact = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!((&*artifact.name, &*artifact.media_type, artifact.bytes), ("报告.csv", "text/csv", 8));
    assert_eq!(rig.get("/api/artifacts").await.ok()["last"], json!(0), "nothing names it yet");
    let said = rig.post("/api/send", json!({ "agentId": "root", "text": "[]", "artifacts": [sent] })).await.ok();
    rig.ending(&said["taskId"].as_str().unwrap().into()).await;
    let listed = rig.get("/api/artifacts").await.ok();
    assert_eq!((&listed["artifacts"][0]["id"], &listed["artifacts"][0]["task"]), (&json!(artifact.id), &said["taskId"]));
    let thread = rig.get("/api/threads/root").await.ok();
    assert_eq!(thread["messages"][0]["meta"]["artifacts"][0]["name"], json!("报告.csv"));
    let bare = json!({ "text": "[]", "artifacts": [{ "id": artifact.id }] });
    rig.post("/api/submit", bare).await.ok();
    assert_eq!(rig.get("/api/artifacts").await.ok()["last"], json!(1), "its name is known");
    rig.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_with_a_code_and_damage_is_not_served() {
    let rig = Rig::start().await;
    let unknown = Hasher::id_of(b"unknown");
    let get = async |id: &str| rig.get(&format!("/api/artifacts/{id}")).await.problem();
    assert_eq!(get(&unknown.to_string()).await, (404, "unknown_artifact".to_owned()));
    for bad in ["x", "..%2F..%2Ftoken", &"A".repeat(64)] {
        assert_eq!(get(bad).await, (400, "bad_artifact_id".to_owned()), "{bad}");
    }
    let submit = async |id: String| {
        rig.post("/api/submit", json!({ "conversation": "root", "text": "x", "artifacts": [{ "id": id }] })).await.problem()
    };
    let before = rig.last();
    assert_eq!(submit(unknown.to_string()).await, (404, "unknown_artifact".to_owned()));
    assert_eq!(submit("x".to_owned()).await, (400, "bad_artifact_id".to_owned()));
    assert_eq!(rig.last(), before, "nothing was said");
    let large = vec![0; ARTIFACT_BYTES as usize + 1];
    assert_eq!(upload(&rig, "a", "", &large).await.problem(), (413, "artifact_too_large".to_owned()));
    let nameless = rig.ask("POST", "/api/artifacts", &[], b"x".to_vec()).await;
    assert_eq!(nameless.problem(), (400, "bad_query".to_owned()));
    let id: ArtifactId = upload(&rig, "a", "", b"good").await.ok()["id"].as_str().unwrap().parse().unwrap();
    rig.artifacts.spoil(id);
    assert_eq!(get(&id.to_string()).await, (500, "artifact_damaged".to_owned()));
    rig.stop().await;
}
