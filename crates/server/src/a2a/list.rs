//! Listing tasks: which are wanted, and page by page.

use polis_domain::{TaskId, Timestamp, iso};
use serde_json::{Map, Value, json};

use super::error::fault;
use super::task_index::Entry;
use super::{Call, task};
use crate::rpc::Fault;

const USUAL_PAGE: u64 = 50;
const LARGEST_PAGE: u64 = 100;

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
            Some(time) => Some(iso::read(&time).ok_or_else(|| Fault::invalid("`statusTimestampAfter` is not a time in UTC"))?),
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
        for (id, entry) in state.a2a_tasks.all(&state.society).await.map_err(|problem| fault(&problem))? {
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
            let mut json = task::task_json(self, id, length).await?;
            if let Some(json) = json.as_object_mut() {
                if filter.artifacts {
                    json.entry("artifacts").or_insert_with(|| json!([]));
                } else {
                    json.remove("artifacts");
                }
            }
            tasks.push(json);
        }
        Ok(json!({ "tasks": tasks, "nextPageToken": next, "pageSize": filter.page, "totalSize": total }))
    }

    /// Whether a task is in the state that is wanted.
    async fn is_in(&self, id: &TaskId, entry: &Entry, filter: &Filter) -> Result<bool, Fault> {
        let Some(state) = &filter.state else { return Ok(true) };
        if let Some(ended) = entry.ended {
            return Ok(ended == state);
        }
        let summary = self.peer.summary(id).await.map_err(|problem| fault(&problem))?;
        Ok(task::state(&summary, &task::envelopes(self, id).await?) == state)
    }
}
