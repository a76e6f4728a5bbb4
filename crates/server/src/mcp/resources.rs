//! Conversations, requests and artifacts as resources: `polis://threads/root`, `polis://tasks/ID`, `polis://artifacts/ID`.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use polis_api::local::artifact_id;
use polis_api::{Direction, MessagePaging, ThreadPart};
use polis_domain::{AgentId, Artifact, Spine, TaskId, Thread, ThreadId};
use polis_engine::{CommandError, Society};
use serde_json::{Map, Value, json};

use super::protocol_version::ProtocolEra;
use crate::caller::Scope;
use crate::problem::Problem;
use crate::rpc::{Fault, INVALID_PARAMS};
use crate::task_follower::Peer;

/// What is encoded in a segment of an address.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How many are listed at once.
const PAGE: usize = 200;

/// The longest artifact that is returned inline.
const MAX_ARTIFACT_BYTES: u64 = 4 << 20;

/// The error code of older protocol versions for a resource that does not exist.
const NOT_FOUND: i64 = -32002;

pub(super) fn templates() -> Value {
    json!([
        {
            "uriTemplate": "polis://threads/{thread}{?path}",
            "name": "thread",
            "title": "A conversation",
            "description": "An agent's conversation by its name, or a part of it by its address, such as messages[3].meta._thread.",
            "mimeType": "application/json",
        },
        {
            "uriTemplate": "polis://tasks/{taskId}",
            "name": "task",
            "title": "The messages of a request",
            "description": "The messages between the person and the society about one request.",
            "mimeType": "application/json",
        },
        {
            "uriTemplate": "polis://artifacts/{id}",
            "name": "artifact",
            "title": "An artifact",
            "description": "By its id, as messages reference it.",
        },
    ])
}

pub(super) async fn list(peer: &Peer, params: &Map<String, Value>) -> Result<Value, Fault> {
    let after = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(ThreadId::from(cursor.as_str())),
        Some(_) => return Err(Fault::invalid("`cursor` must be what `nextCursor` was")),
    };
    peer.caller.needs(Scope::Read).map_err(|error| Fault::from(&error))?;
    let page = page(&peer.state.society, after).await.map_err(Problem::from);
    let (listed, next) = page.map_err(|problem| Fault::from(&*problem))?;
    let resource = |(id, agent, messages): (ThreadId, AgentId, u32)| {
        json!({
            "uri": format!("polis://threads/{}", utf8_percent_encode(id.as_str(), SEGMENT)),
            "name": id.as_str(),
            "description": format!("a conversation of {agent}, {messages} messages"),
            "mimeType": "application/json",
        })
    };
    let mut json = json!({ "resources": listed.into_iter().map(resource).collect::<Vec<_>>() });
    if let Some(next) = next {
        json["nextCursor"] = json!(next.as_str());
    }
    Ok(json)
}

type ListedThread = (ThreadId, AgentId, u32);

/// The threads after one, in the order of their names, and where the next page begins.
async fn page(society: &Society, after: Option<ThreadId>) -> Result<(Vec<ListedThread>, Option<ThreadId>), CommandError> {
    let mut names = society.thread_names(after.clone(), PAGE + 1).await?;
    let visibility = society.visibility().clone();
    // An agent that has done nothing yet has a thread without messages.
    let unused = move |spine: &Spine| -> Vec<ThreadId> {
        let is_next = |id: &ThreadId| after.as_ref().is_none_or(|after| id > after) && visibility.thread(spine, id);
        spine.agents.keys().map(AgentId::main_thread).filter(is_next).collect()
    };
    names.extend(society.look(unused).await?);
    names.sort();
    names.dedup();
    let has_more = names.len() > PAGE;
    names.truncate(PAGE);
    let next = names.last().filter(|_| has_more).cloned();
    let own = move |spine: &Spine, id: &ThreadId| {
        let head = spine.threads.get(id);
        let agent = head.map_or_else(|| AgentId::from(id.as_str()), |head| head.agent.clone());
        (id.clone(), agent, head.map_or(0, |head| head.messages))
    };
    let listed = society.look(move |spine| names.iter().map(|id| own(spine, id)).collect()).await?;
    Ok((listed, next))
}

pub(super) async fn read(peer: &Peer, params: &Map<String, Value>, era: &ProtocolEra) -> Result<Value, Fault> {
    let uri = params.get("uri").and_then(Value::as_str).ok_or_else(|| Fault::invalid("`uri` is missing"))?;
    let unknown = |why: &str| {
        let code = if era.is_modern() { INVALID_PARAMS } else { NOT_FOUND };
        Fault::new(code, format!("there is no such resource: {why}")).with_data(json!({ "uri": uri }))
    };
    let address = uri.strip_prefix("polis://").ok_or_else(|| unknown("its address must begin with polis://"))?;
    let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
    let (kind, name) = path.split_once('/').unwrap_or((path, ""));
    let name = percent_decode_str(name).decode_utf8().map_err(|_| unknown("its address is not UTF-8"))?;
    let json = match (kind, query) {
        ("threads", query) => thread(peer, &name, query).await.map(|thread| json!(thread)),
        ("tasks", None) => {
            let which = MessagePaging { direction: Direction::All, ..MessagePaging::default() };
            peer.api().messages(&TaskId::from(&*name), which).await.map(|messages| json!(messages)).map_err(Problem::from)
        }
        ("artifacts", None) => {
            let content = artifact(peer, &name).await.map_err(|problem| unknown(problem.detail()))?;
            return Ok(json!({ "contents": [with_uri(content, uri)] }));
        }
        _ => return Err(unknown("polis://threads/…, polis://tasks/… and polis://artifacts/… are known")),
    };
    match json {
        Ok(json) => {
            let content = json!({ "mimeType": "application/json", "text": json.to_string() });
            Ok(json!({ "contents": [with_uri(content, uri)] }))
        }
        Err(problem) if problem.status().is_client_error() => Err(unknown(problem.detail())),
        Err(problem) => Err(Fault::from(&*problem)),
    }
}

/// A thread, or a sub-thread by its path.
async fn thread(peer: &Peer, main: &str, query: Option<&str>) -> Result<Thread, Problem> {
    let mut part = ThreadPart::default();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "path" => part.path = value.into_owned(),
            other => return Err(Problem::bad_request("bad_query", format!("`{other}` is unknown; `path` can be given"))),
        }
    }
    Ok(peer.api().thread(&ThreadId::from(main), &part).await?)
}

fn with_uri(mut content: Value, uri: &str) -> Value {
    content["uri"] = json!(uri);
    content
}

async fn artifact(peer: &Peer, id: &str) -> Result<Value, Problem> {
    let (api, id) = (peer.api(), artifact_id(id)?);
    let Artifact { bytes: total, media_type, .. } = api.artifact(&id).await?;
    if total > MAX_ARTIFACT_BYTES {
        let detail = format!("it has {total} bytes, too many to return here; get it at /api/artifacts/{id}");
        return Err(Problem::bad_request("artifact_too_large", detail));
    }
    let mut content = api.content(&id, 0..total).await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = content.next().await {
        let broken = |error: io::Error| Problem::bad_request("artifact_damaged", format!("the content broke off: {error}"));
        bytes.extend_from_slice(&chunk.map_err(broken)?);
    }
    let kind = if media_type.is_empty() { "application/octet-stream".into() } else { media_type };
    Ok(match String::from_utf8(bytes) {
        Ok(text) => json!({ "mimeType": &*kind, "text": text }),
        Err(bytes) => json!({ "mimeType": &*kind, "blob": STANDARD.encode(bytes.as_bytes()) }),
    })
}
