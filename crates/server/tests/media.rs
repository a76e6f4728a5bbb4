//! Pictures, PDFs and audio by every way in: the model gets their bytes, the log only their names.

use std::sync::Arc;

use polis_domain::{Artifact, Event, Failure, Message, Outcome, Response, Role};
use polis_engine::{Agent, Cast, Options, Turn};
use polis_ports::{ChatMessage, MAX_MEDIA_BYTES, MAX_REQUEST_MEDIA, Media, ModelRequest};
use polis_server::{Scope, Security, Token};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::openai::{CHAT, chat, envelopes, error};
use crate::support::{ARTIFACT_BYTES, Reply, Rig, send, society, token_list};

/// `\x89PNG1` in base64.
const PNG: &str = "iVBORzE=";
/// `%PDF-` in base64.
const PDF: &str = "JVBERi0=";
/// `ID3` in base64.
const MP3: &str = "SUQz";

/// Shows a model what came with the message, and answers what the model says.
struct Seer;

impl Agent for Seer {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let (text, attached) = (turn.task().message.clone(), Artifact::attached(&turn.task().meta));
        let mut message = ChatMessage::user_with(text, &attached);
        if let ChatMessage::User { media, .. } = &mut message {
            media.extend(Media::addressed(&turn.task().meta));
        }
        let messages = vec![message];
        let reply = turn.model(ModelRequest { messages, ..ModelRequest::default() }).await?;
        Ok(Response::new(reply.text))
    }
}

/// Says what it is shown: the text, and the type and bytes of each file.
fn echo_model() -> ScriptedModel {
    ScriptedModel::new(|request| {
        let Some(ChatMessage::User { text, media }) = request.messages.last() else { panic!("{request:?}") };
        let shown = media.iter().map(|media| match media {
            Media::Inline { media_type, name, data } => format!("{name} {media_type} {data}"),
            Media::Url(url) => format!("at {url}"),
            other => panic!("{other:?}"),
        });
        let said = text.lines().last().unwrap_or_default().to_owned();
        ScriptedReply::text(&std::iter::once(said).chain(shown).collect::<Vec<_>>().join(" | "))
    })
}

async fn rig(security: Security) -> Rig {
    let cast = Cast::new().with("seer", Seer);
    let options = Options::new(7, Role::new("root", "seer"));
    Rig::cast(Arc::new(MemoryLog::new()), echo_model(), ScriptedTools::new(), security, options, cast).await
}

fn log_text(rig: &Rig) -> String {
    let events: Vec<_> = rig.log.events(&society()).iter().map(|recorded| recorded.event.clone()).collect();
    serde_json::to_string(&events).unwrap()
}

fn parts(more: &[Value]) -> Value {
    let text = json!({ "type": "text", "text": "what is this?" });
    json!({ "role": "user", "content": std::iter::once(text).chain(more.iter().cloned()).collect::<Vec<_>>() })
}

#[tokio::test]
async fn a_chat_completion_takes_pictures_files_and_audio() {
    let rig = rig(Security::default()).await;
    let asked = parts(&[
        json!({ "type": "image_url", "image_url": { "url": format!("data:image/jpeg;base64,{PNG}") } }),
        json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": format!("data:application/pdf;base64,{PDF}") } }),
        json!({ "type": "input_audio", "input_audio": { "data": MP3, "format": "mp3" } }),
    ]);
    let reply = rig.post(CHAT, chat(std::slice::from_ref(&asked))).await.ok();
    let answer = reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    // The bytes tell that the picture is another one than the client says.
    let want =
        format!("what is this? | picture.jpeg image/png {PNG} | a.pdf application/pdf {PDF} | audio.mpeg audio/mpeg {MP3}");
    assert_eq!(answer, want);
    let log = log_text(&rig);
    assert!(log.contains("picture.jpeg") && !log.contains(&format!("{PNG}\"")) && !log.contains(";base64,"), "{log}");
    // The client sends the conversation again; only what is new goes with the next message.
    let next = parts(&[json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } })]);
    let messages = [asked, json!({ "role": "assistant", "content": answer }), next];
    let reply = rig.post(CHAT, chat(&messages)).await.ok();
    let want = format!("what is this? | picture.png image/png {PNG}");
    assert_eq!(reply["choices"][0]["message"]["content"], json!(want));
    let tasks: Vec<_> = envelopes(&rig).into_iter().map(|(task, _)| task).collect();
    assert!(tasks.len() == 2 && tasks[0] == tasks[1], "it is one conversation: {tasks:?}");
    rig.stop().await;
}

#[tokio::test]
async fn a_picture_by_its_address_is_told_and_shown_in_both_endpoints() {
    let rig = rig(Security::default()).await;
    let at = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let reply = rig.post(CHAT, chat(&[parts(&[at("http://h/plain.png"), at("https://h/i.png")])])).await.ok();
    let answer = reply["choices"][0]["message"]["content"].clone();
    assert_eq!(answer, json!("[image: https://h/i.png] | at https://h/i.png"), "an address without encryption is only told");
    let content = json!([{ "type": "input_text", "text": "look" }, { "type": "input_image", "image_url": "https://h/j.png" }]);
    let body = json!({ "model": "polis", "input": [{ "role": "user", "content": content }] });
    let reply = rig.post("/v1/responses", body).await.ok();
    assert!(reply["output"].to_string().contains("[image: https://h/j.png] | at https://h/j.png"), "{reply}");
    // Where only text may be, the address is text.
    let system = json!({ "role": "system", "content": [at("https://h/logo.png")] });
    let reply = rig.post(CHAT, chat(&[system, json!({ "role": "user", "content": "hi" })])).await.ok();
    assert_eq!(reply["choices"][0]["message"]["content"], json!("hi"));
    rig.stop().await;
}

#[tokio::test]
async fn a_response_takes_pictures_and_files() {
    let rig = rig(Security::default()).await;
    let content = json!([
        { "type": "input_text", "text": "look" },
        { "type": "input_image", "image_url": format!("data:image/png;base64,{PNG}") },
        { "type": "input_file", "filename": "a.pdf", "file_data": PDF },
    ]);
    let body = json!({ "model": "polis", "input": [{ "role": "user", "content": content }] });
    let reply = rig.post("/v1/responses", body).await.ok();
    let want = format!("look | picture.png image/png {PNG} | a.pdf application/pdf {PDF}");
    assert!(reply["output"].to_string().contains(&want), "{reply}");
    let first = reply["id"].as_str().unwrap().to_owned();
    let said = rig.get(&format!("/v1/responses/{first}/input_items")).await.ok();
    let kinds: Vec<_> = said["data"][0]["content"].as_array().unwrap().iter().map(|part| part["type"].clone()).collect();
    assert_eq!(kinds, ["input_text", "input_image", "input_file"]);
    // A second answer to the first response is a branch, which begins with what was said until then.
    let ask = async |text: &str| {
        let body = json!({ "model": "polis", "input": text, "previous_response_id": first });
        rig.post("/v1/responses", body).await.ok()["output"].to_string()
    };
    assert!(ask("and now?").await.contains("and now?"));
    assert!(ask("or rather?").await.contains("or rather?"));
    let [message, _] = &*earlier(&rig).pop().unwrap() else { panic!("two messages") };
    assert_eq!(names(message), ["picture.png", "a.pdf"]);
    rig.stop().await;
}

/// The messages that conversations began with.
fn earlier(rig: &Rig) -> Vec<Vec<Arc<Message>>> {
    let events = rig.log.events(&society());
    let earlier = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ConversationStarted { messages, .. } => Some(messages.clone()),
        _ => None,
    });
    earlier.collect()
}

fn names(message: &Message) -> Vec<String> {
    Artifact::attached(&message.meta).into_iter().map(|artifact| artifact.name.to_string()).collect()
}

#[tokio::test]
async fn files_and_calls_of_a_conversation_elsewhere_stay_with_their_messages() {
    let rig = rig(Security::default()).await;
    let picture = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } });
    let function = json!({ "name": "camera", "arguments": "{\"at\":1}" });
    let messages = [
        parts(std::slice::from_ref(&picture)),
        json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": function }] }),
        json!({ "role": "tool", "tool_call_id": "c1", "content": [picture] }),
        json!({ "role": "assistant", "content": "a cat" }),
        json!({ "role": "user", "content": "and now?" }),
    ];
    let reply = rig.post(CHAT, chat(&messages)).await.ok();
    assert_eq!(reply["choices"][0]["message"]["content"], json!("and now?"), "the new message has no file");
    let [asked, called, said] = &*earlier(&rig).pop().unwrap() else { panic!("three messages") };
    assert_eq!((&*asked.text, names(asked)), ("what is this?", vec!["picture.png".to_owned()]));
    assert!(called.text.contains("`camera` with {\"at\":1}"), "{}", called.text);
    assert_eq!((names(called).len(), &*said.text, names(said).len()), (1, "a cat", 0));
    let listed = rig.get("/api/artifacts").await.ok();
    assert_eq!(listed["artifacts"].as_array().unwrap().len(), 1, "{listed}");
    rig.stop().await;
}

#[tokio::test]
async fn a_result_of_a_clients_tool_can_be_a_picture() {
    let rig = Rig::start().await;
    let calls = Program(vec![Op::Call(vec![("camera".into(), "{}".into())])]).text();
    let tools = json!([{ "type": "function", "name": "camera" }]);
    let asked = rig.post("/v1/responses", json!({ "model": "polis", "input": calls, "tools": tools })).await.ok();
    let called = asked["output"].as_array().unwrap().last().unwrap().clone();
    let picture = json!({ "type": "input_image", "image_url": format!("data:image/png;base64,{PNG}") });
    let output =
        |picture: Value| json!([{ "type": "function_call_output", "call_id": called["call_id"], "output": [picture] }]);
    let send = async |input: Value| rig.post("/v1/responses", json!({ "model": "polis", "input": input })).await;
    let bad = send(output(json!({ "type": "input_image", "image_url": "data:image/png;base64,!" }))).await;
    assert_eq!(error(&bad), (400, "bad_attachment".to_owned(), json!("input[0].output[0]")));
    let told = send(output(picture)).await.ok()["output"].to_string();
    assert!(told.contains("picture.png, image/png, 5 bytes"), "{told}");
    let events = rig.log.events(&society());
    let shown = events.iter().find_map(|recorded| match &recorded.event {
        Event::EffectEnded { outcome: Outcome::Verdict(verdict), .. } => verdict.result(),
        _ => None,
    });
    assert_eq!(shown.unwrap().media.len(), 1, "the model is shown it");
    assert_eq!(rig.get("/api/artifacts").await.ok()["artifacts"][0]["name"], json!("picture.png"));
    rig.stop().await;
}

#[tokio::test]
async fn uploads_runs_and_tasks_bring_files_too() {
    let rig = rig(Security::default()).await;
    let sent = rig.ask("POST", "/api/artifacts?name=a.png", &[("content-type", "image/png")], b"\x89PNG1".to_vec()).await.ok();
    let said = rig.post("/api/submit", json!({ "text": "look", "artifacts": [sent] })).await.ok();
    let ended = rig.ending(&said["taskId"].as_str().unwrap().into()).await;
    assert_eq!(&*ended.event.envelope().unwrap().payload.text, format!("look | a.png image/png {PNG}"));

    // A type that the client does not know is known by the first bytes.
    let sent = rig.ask("POST", "/api/artifacts?name=z", &[], b"\x89PNG1".to_vec()).await.ok();
    let said = rig.post("/api/submit", json!({ "text": "look", "artifacts": [{ "id": sent["id"], "name": "z" }] })).await.ok();
    let ended = rig.ending(&said["taskId"].as_str().unwrap().into()).await;
    assert_eq!(&*ended.event.envelope().unwrap().payload.text, format!("look | z image/png {PNG}"));

    let content = json!([{ "type": "binary", "mimeType": "image/png", "data": PNG, "filename": "b.png" }]);
    let input = json!({ "threadId": "t1", "runId": "r1", "messages": [{ "id": "u1", "role": "user", "content": content }] });
    let told = String::from_utf8(rig.post("/agui/polis", input).await.body).unwrap();
    assert!(told.contains(&format!("See the attachments. | b.png image/png {PNG}")), "{told}");

    let parts = json!([{ "text": "look" }, { "raw": PNG, "mediaType": "image/png", "filename": "c.png" }]);
    let message = json!({ "message": { "messageId": "m1", "role": "ROLE_USER", "parts": parts } });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": message });
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let told = rig.ask("POST", "/a2a", &headers, body.to_string().into_bytes()).await.ok();
    assert!(told.to_string().contains(&format!("look | c.png image/png {PNG}")), "{told}");
    rig.stop().await;
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_with_its_place_and_nothing_is_said() {
    let rig = rig(Security::default()).await;
    let picture = |data: &str| json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{data}") } });
    let before = rig.last();
    let refused = async |content: &[Value]| error(&rig.post(CHAT, chat(&[parts(content)])).await);
    let at = json!("messages[0].content[1]");
    assert_eq!(refused(&[picture("!")]).await, (400, "bad_attachment".to_owned(), at.clone()));
    let large = "A".repeat((MAX_MEDIA_BYTES as usize + 3) / 3 * 4);
    assert_eq!(refused(&[picture(&large)]).await, (400, "attachment_too_large".to_owned(), at.clone()));
    assert_eq!(refused(&[json!({ "type": "hologram" })]).await, (400, "unsupported_content".to_owned(), at));
    let many = vec![picture(PNG); MAX_REQUEST_MEDIA + 1];
    assert_eq!(refused(&many).await, (400, "too_many_attachments".to_owned(), json!("messages")));
    let kept = "A".repeat((ARTIFACT_BYTES as usize + 3) / 3 * 4);
    assert_eq!(refused(&[picture(&kept)]).await.1, "artifact_too_large");
    assert_eq!(rig.last(), before);
    // A type that no model takes is a file like any other: it is named.
    let odd = json!({ "type": "file", "file": { "filename": "a.xyz", "file_data": "data:chemical/x-xyz;base64,AAAA" } });
    let reply = rig.post(CHAT, chat(&[parts(&[odd])])).await.ok();
    assert_eq!(reply["choices"][0]["message"]["content"], json!("what is this?"));
    assert!(log_text(&rig).contains("chemical/x-xyz"));
    rig.stop().await;
}

#[tokio::test]
async fn a_file_of_one_person_cannot_be_attached_or_read_by_another() {
    let file = token_list();
    for (n, name) in [(1, "ann"), (2, "bob")] {
        file.add(name, None, [Scope::Read, Scope::Send].into_iter().collect(), &Token::of_bits([n; 32])).await.unwrap();
    }
    let rig = rig(Security { tokens: Some(file), ..Security::default() }).await;
    let ask = async |n: u8, method: &str, target: &str, body: Value| {
        let bearer = format!("Bearer {}", Token::of_bits([n; 32]).as_str());
        let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Reply::of(send(rig.address, method, target, &headers, body).await).await
    };
    let picture = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } });
    ask(1, "POST", CHAT, chat(&[parts(&[picture])])).await.ok();
    let listed = ask(1, "GET", "/api/artifacts", Value::Null).await.ok();
    let id = listed["artifacts"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(ask(2, "GET", "/api/artifacts", Value::Null).await.ok()["artifacts"], json!([]));
    assert_eq!(ask(2, "GET", &format!("/api/artifacts/{id}"), Value::Null).await.status, 404);
    let stolen = json!({ "text": "look", "artifacts": [{ "id": id }] });
    assert_eq!(ask(2, "POST", "/api/submit", stolen.clone()).await.problem(), (404, "unknown_artifact".to_owned()));
    assert_eq!(ask(1, "POST", "/api/submit", stolen).await.status, 200);
    rig.stop().await;
}
