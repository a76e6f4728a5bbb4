//! All tasks there ever were, for clients that list them: read from the log once, then kept up with it.

use std::collections::BTreeMap;

use polis_domain::{Event, MessageKind, Seq, TaskId, Timestamp, iso};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::error::fault;
use super::message::context_id;
use super::{Call, task};
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::state::SocietyState;

/// Events that are read at once.
const READ: usize = 1_024;

const USUAL_PAGE: u64 = 50;
const LARGEST_PAGE: u64 = 100;

/// What is remembered of the log. It is nothing but a copy.
#[derive(Default)]
pub(crate) struct History {
    known: Mutex<Known>,
    accepting: Mutex<()>,
}

#[derive(Default)]
struct Known {
    upto: Seq,
    tasks: BTreeMap<TaskId, Entry>,
}

#[derive(Clone)]
struct Entry {
    context: Option<String>,
    updated: Timestamp,
    /// The state that it ended in, unless somebody has said something since.
    ended: Option<&'static str>,
}

impl History {
    /// Held while it is decided whether a message is known.
    pub(super) async fn accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock().await
    }

    /// All tasks, the one that changed last first.
    async fn all(&self, state: &SocietyState) -> Result<Vec<(TaskId, Entry)>, Problem> {
        let mut known = self.known.lock().await;
        loop {
            let page = state.society.log().read(state.society.id(), known.upto, READ).await?;
            let is_last = page.len() < READ;
            for recorded in page {
                known.upto = recorded.seq;
                if let Event::MessageSent { envelope, .. } = &recorded.event
                    && (envelope.from.is_user() || envelope.to.is_user())
                {
                    let entry = known.tasks.entry(envelope.task_id.clone());
                    let entry = entry.or_insert(Entry { context: None, updated: recorded.at, ended: None });
                    entry.updated = recorded.at;
                    entry.context = entry.context.take().or_else(|| context_id(envelope).map(str::to_owned));
                    entry.ended = match &envelope.kind {
                        MessageKind::Answer => Some("TASK_STATE_COMPLETED"),
                        MessageKind::Failure(failure) if &*failure.code == "cancelled" => Some("TASK_STATE_CANCELED"),
                        MessageKind::Failure(_) => Some("TASK_STATE_FAILED"),
                        // What an agent says on the way changes nothing.
                        MessageKind::Message if envelope.to.is_user() => entry.ended,
                        MessageKind::Message => None,
                    };
                }
            }
            if is_last {
                break;
            }
        }
        let mut all: Vec<_> = known.tasks.iter().map(|(id, entry)| (id.clone(), entry.clone())).collect();
        all.sort_by(|(a, left), (b, right)| (right.updated, b).cmp(&(left.updated, a)));
        Ok(all)
    }
}

/// What a client wants listed.
struct Filter {
    context: Option<String>,
    state: Option<String>,
    after: Option<Timestamp>,
    page: usize,
    token: Option<(Timestamp, TaskId)>,
    artifacts: bool,
}

impl Filter {
    fn read(params: &Map<String, Value>) -> Result<Self, Fault> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let page = match params.get("pageSize") {
            None | Some(Value::Null) => USUAL_PAGE,
            Some(size) => size
                .as_u64()
                .filter(|size| (1..=LARGEST_PAGE).contains(size))
                .ok_or_else(|| Fault::invalid(format!("`pageSize` must be from 1 to {LARGEST_PAGE}")))?,
        };
        let after = match text("statusTimestampAfter") {
            None => None,
            Some(time) => Some(iso::read(&time).ok_or_else(|| Fault::invalid("`statusTimestampAfter` is no time in UTC"))?),
        };
        let bad = || Fault::invalid("`pageToken` must be what `nextPageToken` was");
        let token = match text("pageToken") {
            None => None,
            Some(token) => {
                let (at, id) = token.split_once('.').ok_or_else(bad)?;
                Some((Timestamp(at.parse().map_err(|_| bad())?), TaskId::from(id)))
            }
        };
        let artifacts = params.get("includeArtifacts").and_then(Value::as_bool).unwrap_or(false);
        let state = text("status").filter(|state| state != "TASK_STATE_UNSPECIFIED");
        Ok(Self { context: text("contextId"), state, after, page: page as usize, token, artifacts })
    }
}

impl Call {
    pub(super) async fn list(&self) -> Result<Value, Fault> {
        let filter = Filter::read(&self.params)?;
        let length = self.history_length(&self.params)?;
        let state = &self.peer.state;
        let mut fitting = Vec::new();
        for (id, entry) in state.history.all(state).await.map_err(|problem| fault(&problem))? {
            let is_in =
                filter.context.as_deref().is_none_or(|context| entry.context.as_deref().unwrap_or(id.as_str()) == context);
            if is_in && filter.after.is_none_or(|after| entry.updated >= after) && self.is_in(&id, &entry, &filter).await? {
                fitting.push((id, entry.updated));
            }
        }
        let total = fitting.len();
        // Where the last page ended; what has changed since came before it.
        let is_next = |(id, updated): &(TaskId, Timestamp)| match &filter.token {
            Some((at, last)) => (*updated, id) < (*at, last),
            None => true,
        };
        let mut rest = fitting.into_iter().filter(is_next);
        let page: Vec<_> = rest.by_ref().take(filter.page).collect();
        let next = match (rest.next(), page.last()) {
            (Some(_), Some((id, updated))) => format!("{}.{id}", updated.0),
            _ => String::new(),
        };
        let mut tasks = Vec::new();
        for (id, _) in &page {
            let mut told = task::told(self, id, length).await?;
            if let Some(told) = told.as_object_mut() {
                if filter.artifacts {
                    told.entry("artifacts").or_insert_with(|| json!([]));
                } else {
                    told.remove("artifacts");
                }
            }
            tasks.push(told);
        }
        Ok(json!({ "tasks": tasks, "nextPageToken": next, "pageSize": filter.page, "totalSize": total }))
    }

    /// Whether a task is in the state that is wanted.
    async fn is_in(&self, id: &TaskId, entry: &Entry, filter: &Filter) -> Result<bool, Fault> {
        let Some(wanted) = &filter.state else { return Ok(true) };
        if let Some(ended) = entry.ended {
            return Ok(ended == wanted);
        }
        let standing = self.peer.standing(id).await.map_err(|problem| fault(&problem))?;
        Ok(task::state(&standing, &task::envelopes(self, id).await?) == wanted)
    }
}
