//! `Idempotency-Key`: a repeat gets the first answer and changes nothing more, also after a restart.
//!
//! Two things make it so. Whoever sends a message with a key gives it a name that follows from the key: the log itself then knows
//! whether it is there, whatever was killed in between. And the answers to requests with keys are kept in a file, so that a repeat
//! of anything else is told the same as the first one: as long as the society's history is the one that it was done in, for what
//! was rewound, or is not in a copy that was put back, was not done.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polis_domain::{AgentId, Envelope, MessageId, Recorded, Seq, TaskId, Timestamp};
use polis_engine::{Sent, Society};
use polis_ports::LogError;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::body;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::SocietyState;
use crate::tokens::{hex, write_private};

const HEADER: &str = "idempotency-key";

/// Longest key.
const MAX_KEY_BYTES: usize = 255;

/// Most answers that are kept; the oldest are forgotten.
const MAX_ANSWERS: usize = 10_000;

/// Longest answer that is kept.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The key of a request, made one of its sender and its society.
pub(crate) struct Once(Option<[u8; 32]>);

impl FromRequestParts<SocietyState> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Problem> {
        let caller = Caller::of(&parts.extensions);
        Ok(Self(key(&parts.headers)?.map(|key| digest(&[caller.name(), state.society.id().as_str(), key]))))
    }
}

impl Once {
    /// Says something to an agent, unless this was said before.
    pub(crate) async fn send(
        &self,
        society: &Society,
        to: AgentId,
        text: &str,
        task: Option<TaskId>,
        meta: Map<String, Value>,
    ) -> Result<Sent, Problem> {
        let Some(key) = &self.0 else { return Ok(society.send_with_meta(to, text, task, meta).await?) };
        let task = task.unwrap_or_else(|| named(&key[16..]).into());
        let envelopes = society.messages(&task).await?;
        if let Some(envelope) = self.found(&envelopes) {
            let (recorded, envelope) = envelope;
            if envelope.to != to || *envelope.payload.text != *text {
                return Err(reused());
            }
            return Ok(Sent { message_id: envelope.id.clone(), task_id: task, seq: recorded.seq });
        }
        Ok(society.send_named(self.message(key), task, to, text, meta).await?)
    }

    /// What was said with this key before.
    pub(crate) fn before(&self, envelopes: &[(Recorded, Arc<Envelope>)]) -> Option<Sent> {
        let (recorded, envelope) = self.found(envelopes)?;
        Some(Sent { message_id: envelope.id.clone(), task_id: envelope.task_id.clone(), seq: recorded.seq })
    }

    fn found<'a>(&self, envelopes: &'a [(Recorded, Arc<Envelope>)]) -> Option<&'a (Recorded, Arc<Envelope>)> {
        let id = self.message(self.0.as_ref()?);
        envelopes.iter().find(|(_, envelope)| envelope.id == id)
    }

    fn message(&self, key: &[u8; 32]) -> MessageId {
        format!("msg_{}", named(&key[..16])).into()
    }
}

/// A name that follows from 16 bytes, in the form of our other names.
fn named(bytes: &[u8]) -> String {
    let digits = hex(bytes);
    format!("{}-{}-8{}-8{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..])
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let plain = |text: &&str| {
        !text.is_empty() && text.len() <= MAX_KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    let text = value.to_str().ok().map(str::trim).filter(plain);
    let bad = || {
        let detail = format!("Idempotency-Key is 1 to {MAX_KEY_BYTES} plain characters, for example a UUID");
        Problem::bad_request("bad_idempotency_key", detail)
    };
    text.map(Some).ok_or_else(bad)
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&part.len().to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

fn reused() -> Problem {
    let detail = "this Idempotency-Key was used for another request; take a new one";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail)
}

/// The answers to requests with keys.
pub(crate) struct Answers {
    file: Option<PathBuf>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    answers: HashMap<String, Arc<Entry>>,
    /// Their keys, oldest first.
    order: VecDeque<String>,
    under_way: HashSet<String>,
    /// How many lines the file has.
    lines: usize,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    /// Tells the request from any other.
    request: String,
    status: u16,
    kind: String,
    body: String,
    /// The last event of the society when it was answered.
    #[serde(default)]
    place: Option<Place>,
}

/// An event, known again by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    seq: Seq,
    at: Timestamp,
}

impl Place {
    async fn last(society: &Society) -> Option<Self> {
        let seq = society.look(|spine| spine.seq).await.ok()?;
        Self::of(society, seq).await.ok().flatten()
    }

    async fn of(society: &Society, seq: Seq) -> Result<Option<Self>, LogError> {
        let page = society.log().read(society.id(), Seq(seq.0.saturating_sub(1)), 1).await?;
        Ok(page.first().filter(|recorded| recorded.seq == seq).map(|recorded| Self { seq, at: recorded.at }))
    }

    /// Whether the society's history has it. A log that cannot be read just now says nothing against it.
    async fn is_in(self, society: &Society) -> bool {
        Self::of(society, self.seq).await.map_or(true, |found| found == Some(self))
    }
}

/// The address that was asked for, before a society's name was taken off it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) target: Arc<str>,
    pub(crate) answers: Arc<Answers>,
}

impl Answers {
    /// Those of a file, which need not be there; without one they last as long as the server.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let mut kept = Kept::default();
        let text = file.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        for line in text.lines() {
            kept.lines += 1;
            // A line that was torn by a crash was never answered from.
            if let Ok(entry) = serde_json::from_str(line) {
                kept.put(Arc::new(entry));
            }
        }
        Self { file, kept: Mutex::new(kept) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an answer before anybody is told.
    fn keep(&self, entry: Entry) -> io::Result<()> {
        let line = serde_json::to_string(&entry)?;
        let mut kept = self.kept();
        kept.put(Arc::new(entry));
        let Some(path) = &self.file else { return Ok(()) };
        kept.lines += 1;
        if kept.lines > 2 * MAX_ANSWERS {
            let lines: Vec<_> =
                kept.order.iter().filter_map(|key| serde_json::to_string(&**kept.answers.get(key)?).ok()).collect();
            kept.lines = lines.len();
            return write_private(path, &lines.join("\n"));
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        // A torn line before this one ends here.
        file.write_all(format!("\n{line}\n").as_bytes())?;
        file.sync_data()
    }
}

impl Kept {
    fn put(&mut self, entry: Arc<Entry>) {
        let key = entry.key.clone();
        if self.answers.insert(key.clone(), entry).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_ANSWERS {
            if let Some(oldest) = self.order.pop_front() {
                self.answers.remove(&oldest);
            }
        }
    }
}

/// Ends what is under way, however it ends.
struct UnderWay {
    answers: Arc<Answers>,
    key: String,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.answers.kept().under_way.remove(&self.key);
    }
}

/// Answers a request with a key once.
pub(crate) async fn answer_once(state: &SocietyState, request: Request, next: Next) -> Response {
    match try_once(state, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn try_once(state: &SocietyState, request: Request, next: Next) -> Result<Response, Problem> {
    let asked = request.extensions().get::<Asked>().cloned();
    let (Some(key), Some(Asked { target, answers })) = (key(request.headers())?, asked) else {
        return Ok(next.run(request).await);
    };
    let caller = Caller::of(request.extensions());
    let key =
        hex(&digest(&[caller.name(), target.strip_prefix("/s/").and_then(|rest| rest.split('/').next()).unwrap_or(""), key]));
    let declared = body::declared_bytes(request.headers());
    let (parts, body) = request.into_parts();
    let body = body::read_in_time(body, declared, body::most_bytes(parts.uri.path())).await?;
    let request = hex(&digest(&[&target, &String::from_utf8_lossy(&body)]));
    let known = answers.kept().answers.get(&key).cloned();
    let outdated = match known.as_deref().and_then(|entry| entry.place) {
        Some(place) if !place.is_in(&state.society).await => known,
        _ => None,
    };
    let under_way = {
        let mut kept = answers.kept();
        let is_outdated = |entry: &Arc<Entry>| outdated.as_ref().is_some_and(|old| Arc::ptr_eq(old, entry));
        match kept.answers.get(&key).filter(|entry| !is_outdated(entry)).cloned() {
            Some(entry) if entry.request != request => return Err(reused()),
            Some(entry) => return Ok(entry.respond()),
            None if !kept.under_way.insert(key.clone()) => {
                let detail = "the first request with this Idempotency-Key is still under way; try again in a moment";
                return Err(Problem::new(StatusCode::CONFLICT, "key_in_use", detail));
            }
            None => UnderWay { answers: answers.clone(), key: key.clone() },
        }
    };
    // What was begun is ended and kept, also when whoever asked has gone.
    let society = state.society.clone();
    let done = tokio::spawn(async move {
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        let response = keep(&under_way.answers, &society, &under_way.key, request, response).await;
        drop(under_way);
        response
    });
    done.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request with a key failed");
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "panicked", "the request failed; look at the server's log"))
    })
}

async fn keep(
    answers: &Arc<Answers>,
    society: &Society,
    key: &str,
    request: String,
    response: Response,
) -> Result<Response, Problem> {
    let status = response.status();
    let passing = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if status.is_server_error() || passing.contains(&status) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let unkept = |error: String| {
        tracing::error!(%error, "the answer to a request with a key cannot be kept");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "answer_not_kept", "it was done, but the answer could not be kept")
    };
    let body = to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|error| unkept(error.to_string()))?;
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let text = String::from_utf8_lossy(&body).into_owned();
    let place = Place::last(society).await;
    let entry = Entry { key: key.to_owned(), request, status: status.as_u16(), kind, body: text, place };
    let answers = answers.clone();
    let kept = tokio::task::spawn_blocking(move || answers.keep(entry)).await;
    kept.map_err(|error| unkept(error.to_string()))?.map_err(|error| unkept(error.to_string()))?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

impl Entry {
    fn respond(&self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, self.body.clone()).into_response();
        if let Ok(kind) = HeaderValue::from_str(&self.kind) {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: usize) -> Entry {
        Entry {
            key: format!("k{n}"),
            request: "r".into(),
            status: 200,
            kind: "application/json".into(),
            body: n.to_string(),
            place: None,
        }
    }

    #[test]
    fn answers_outlast_a_restart_and_a_torn_line_and_do_not_pile_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers");
        let answers = Answers::open(Some(path.clone()));
        answers.keep(entry(1)).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"key\":\"to").unwrap();
        let answers = Answers::open(Some(path.clone()));
        answers.keep(entry(2)).unwrap();
        let answers = Answers::open(Some(path.clone()));
        assert_eq!(answers.kept().order, ["k1", "k2"]);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
        let mut kept = answers.kept();
        (3..MAX_ANSWERS + 3).for_each(|n| kept.put(Arc::new(entry(n))));
        assert_eq!((kept.order.len(), kept.answers.len()), (MAX_ANSWERS, MAX_ANSWERS));
        assert!(!kept.answers.contains_key("k2"));
    }

    #[test]
    fn a_name_follows_from_the_key_alone() {
        let name = named(&digest(&["a", "b"])[..16]);
        assert_eq!(name, named(&digest(&["a", "b"])[..16]));
        assert_ne!(name, named(&digest(&["ab", ""])[..16]));
        assert_eq!(name.len(), 36);
    }
}
