//! The requests of people: a page of them, and single ones.

use polis_domain::{AgentId, Event, MessageKind, Seq, Spent, TaskId, ThreadId};
use polis_ports::{ThreadListing, ThreadRange};

use super::super::Local;
use super::super::tasks::failed_part;
use super::fold::visible_text;
use super::shorten::{brief, cut_text};
use crate::{ApiError, RequestPage, RequestRecord, TurnRecord, View};

/// How the names of the threads of requests begin, see `TaskId::thread`.
const PREFIX: &str = "task:";

/// The longest text of a listed request, in characters.
const TEXT: usize = 400;

/// How many of the newest messages of a request are read for its state.
const NEWEST: usize = 8;

/// The requests that one search looks at.
const SEARCHED: usize = 2_000;

impl Local {
    /// A page of requests, the newest first, and the cursor of the next page.
    pub(super) async fn list_requests(
        &self,
        page: &RequestPage,
        view: &View,
    ) -> Result<(Vec<RequestRecord>, Option<String>), ApiError> {
        let limit = page.limit.unwrap_or(NEWEST);
        let words = page.find.trim().to_lowercase();
        let (mut found, mut looked_at) = (Vec::new(), 0);
        let mut before = page.before.as_ref().map(TaskId::thread);
        loop {
            let listing = ThreadListing { prefix: PREFIX.to_owned(), before: before.clone(), limit: limit + 1 };
            let threads = self.society.log().threads(self.society.id(), &listing).await?;
            let is_rest = threads.len() <= limit;
            for thread in threads {
                if found.len() == limit || looked_at == SEARCHED {
                    return Ok((found, before.as_ref().and_then(task_of).map(|task| task.to_string())));
                }
                before = Some(thread.clone());
                looked_at += 1;
                let request = match task_of(&thread) {
                    Some(task) => self.request_in(&task, view).await?,
                    None => None,
                };
                found.extend(request.filter(|request| words.is_empty() || request.text.to_lowercase().contains(&words)));
            }
            if is_rest {
                return Ok((found, None));
            }
        }
    }

    /// Adds requests that a view refers to.
    pub(super) async fn add_requests(&self, view: &mut View, tasks: Vec<TaskId>) -> Result<(), ApiError> {
        for task in tasks {
            if view.requests.iter().all(|request| request.id != task) {
                let request = self.request_in(&task, view).await?;
                view.requests.extend(request);
            }
        }
        // A message has the time at which the person wrote it, not at which it was read.
        for thread in &mut view.threads {
            for message in thread.messages.values_mut() {
                let written = view.requests.iter().find(|request| request.message == message.id);
                message.timestamp = written.map_or(message.timestamp, |request| request.at);
            }
        }
        for request in &mut view.requests {
            let is_top = |turn: &&TurnRecord| turn.parent.is_none() && turn.task.id == request.id;
            let spent = view.turns.iter().filter(is_top).map(|turn| turn.spent);
            request.spent = spent.fold(Spent::default(), Spent::plus);
        }
        Ok(())
    }

    /// A request; none if there is none of that id.
    pub(super) async fn request(&self, task: &TaskId) -> Result<Option<RequestRecord>, ApiError> {
        let log = self.society.log();
        let oldest = ThreadRange { oldest: 1, ..ThreadRange::ALL };
        let Some(first) = log.read_thread(self.society.id(), &task.thread(), oldest).await?.pop() else { return Ok(None) };
        let Event::MessageSent { envelope, .. } = &first.event else { return Ok(None) };
        let mut request = RequestRecord {
            id: task.clone(),
            to: envelope.to.clone(),
            text: cut_text(visible_text(&envelope.payload.text, &envelope.payload.meta).to_owned(), TEXT),
            at: first.at,
            seq: first.seq,
            message: envelope.id.clone(),
            meta: brief(&envelope.payload.meta),
            open: Vec::new(),
            spent: Spent::default(),
            failure: None,
            ended_at: None,
            failed_part: None,
        };
        let newest = ThreadRange { newest: NEWEST, ..ThreadRange::ALL };
        for recorded in log.read_thread(self.society.id(), &task.thread(), newest).await? {
            let Event::MessageSent { envelope, .. } = &recorded.event else { continue };
            (request.failure, request.ended_at) = match &envelope.kind {
                _ if envelope.from.is_user() => (None, None),
                MessageKind::Message => continue,
                MessageKind::Answer => (None, Some(recorded.at)),
                MessageKind::Failure(failure) => (Some(failure.clone()), Some(recorded.at)),
            };
        }
        let asked = task.clone();
        request.failed_part = self.society.look(move |spine| failed_part(spine, &asked)).await?;
        Ok(Some(request))
    }

    /// The agents that were sent messages about a request, each with the part of the log that its turns may lie in.
    pub(super) async fn spans(
        &self,
        task: &TaskId,
        request: &RequestRecord,
        through: Seq,
    ) -> Result<Vec<(AgentId, ThreadRange)>, ApiError> {
        let mut agents: Vec<AgentId> = Vec::new();
        let mut last = None;
        for (recorded, envelope) in self.society.messages(task).await? {
            if envelope.from.is_user() && !agents.contains(&envelope.to) {
                agents.push(envelope.to.clone());
            }
            last = envelope.to.is_user().then_some(recorded.seq).or(last);
        }
        // Work that an agent queued for itself continues after the answer.
        let through = if request.ended_at.is_some() { last.unwrap_or(through) } else { through };
        let range = ThreadRange { after: Seq(request.seq.0.saturating_sub(1)), through, ..ThreadRange::ALL };
        Ok(agents.into_iter().map(|agent| (agent, range)).collect())
    }

    async fn request_in(&self, task: &TaskId, view: &View) -> Result<Option<RequestRecord>, ApiError> {
        let Some(mut request) = self.request(task).await? else { return Ok(None) };
        request.open = view.open.get(task).cloned().unwrap_or_default();
        Ok(Some(request))
    }
}

fn task_of(thread: &ThreadId) -> Option<TaskId> {
    thread.as_str().strip_prefix(PREFIX).map(TaskId::from)
}
