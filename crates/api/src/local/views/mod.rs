//! The views of a society: read from the spine and from the parts of the log that a view shows.
//!
//! Every view has the same frame: the position, the sums, the agents, and everything that waits for a person. What a view reads
//! is bounded, so its cost and size do not depend on the length of the history.

mod collector;
mod fold;
mod frame;
mod requests;
mod shorten;

use polis_domain::{AgentId, Event, Refusal, Seq, Spine, TaskId, ThreadId, TurnId};
use polis_engine::CommandError;
use polis_ports::ThreadRange;
use serde_json::Value;

use self::collector::EventCollector;
use self::fold::Records;
pub(super) use self::fold::visible_text;
use self::frame::{Agents, ViewFrame};
use super::Local;
use super::error::unknown_task;
use crate::{
    ApiError, ConversationPage, ConversationPaging, Conversations, Moment, OrganisationPage, RequestPage, Scope, ThreadItem,
    TurnPage, View,
};

/// The turns on a page of a conversation, unless the caller wants another number.
const TURNS: usize = 20;

/// The most turns on a page.
const MAX_TURNS: usize = 100;

/// The most events that one view reads.
const MAX_EVENTS: usize = 20_000;

/// The steps in the outline of a request.
const MAX_OUTLINE: usize = 1_500;

/// The requests that a conversation lists beside it.
const LISTED_REQUESTS: usize = 50;

/// The conversations that a conversation lists beside it.
const LISTED_CONVERSATIONS: u32 = 50;

/// The requests on a page of the trace, unless the caller wants another number.
const TRACED_REQUESTS: usize = 25;

/// The agents on a page of the organisation, unless the caller wants another number.
const AGENTS: usize = 500;

/// The most agents on a page.
const MAX_AGENTS: usize = 2_000;

/// The messages before a turn that its context has.
const CONTEXT_EVENTS: usize = 200;

/// The most events that are folded for a look at the past.
const MAX_PAST: u64 = 2_000_000;

impl Local {
    /// One page of an agent's conversation, and the newest requests.
    pub async fn conversation_view(&self, agent: &AgentId, page: &ConversationPage) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let frame = self.frame(Some(agent.clone())).await?;
        if !frame.has_agent(agent) {
            return Err(CommandError::from(Refusal::UnknownAgent(agent.clone())).into());
        }
        let thread = agent.main_thread();
        let limit = page.limit.unwrap_or(TURNS).clamp(1, MAX_TURNS);
        let mut collected = EventCollector::new(&self.society, frame.view.seq, MAX_EVENTS);
        let (earlier, later) = match &page.task {
            Some(task) => {
                let first = self.request(task).await?.ok_or_else(|| unknown_task(task))?;
                let after = Seq(first.seq.0.saturating_sub(1));
                let later = collected.turns_from(&thread, after, limit).await?;
                let first = collected.turn_ids().first().map_or(first.seq, |turn| turn.0);
                (collected.has_before(&thread, first).await?.then_some(first), later)
            }
            None => {
                let before = page.before.unwrap_or(Seq(u64::MAX));
                (collected.newest_turns(&thread, before, limit).await?, page.before)
            }
        };
        let top = collected.turn_ids();
        collected.below().await?;
        let mut records = collected.fold();
        records.shorten(&top);
        if let Some(thread) = records.threads.get_mut(&thread) {
            (thread.earlier, thread.later) = (earlier, later);
        }
        let mut tasks: Vec<TaskId> =
            top.iter().filter_map(|id| records.turns.get(id)).map(|turn| turn.task.id.clone()).collect();
        tasks.extend(page.task.clone());
        let mut view = self.with_records(frame, records).await?;
        if view.agents.iter().any(|listed| listed.id == *agent && listed.terminated_at.is_none()) {
            view.operations = self.agent(agent).await?.operations;
        }
        if page.before.is_none() {
            let newest = RequestPage { limit: Some(LISTED_REQUESTS), ..RequestPage::default() };
            (view.requests, view.next) = self.list_requests(&newest, &view).await?;
            let newest = ConversationPaging { limit: Some(LISTED_CONVERSATIONS), ..ConversationPaging::default() };
            let Conversations { conversations, next, .. } = self.conversations(newest).await?;
            (view.conversations, view.next_conversations) = (conversations, next);
        }
        self.add_requests(&mut view, tasks).await?;
        Ok(view)
    }

    /// One turn with its newest steps.
    pub async fn turn(&self, id: TurnId, page: &TurnPage) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let frame = self.frame(None).await?;
        let mut collected = EventCollector::new(&self.society, frame.view.seq, MAX_EVENTS);
        let unknown = || ApiError::new(404, "unknown_turn", format!("there is no turn {id}"));
        let thread = collected.turn(id).await?.ok_or_else(unknown)?;
        collected.below().await?;
        let mut records = collected.fold();
        if page.context {
            self.add_context(&mut records, &thread, id).await?;
        }
        records.only_turn(id, page.before.unwrap_or(u32::MAX));
        let task = records.turns.get(&id).map(|turn| turn.task.id.clone());
        let mut view = self.with_records(frame, records).await?;
        self.add_requests(&mut view, task.into_iter().collect()).await?;
        Ok(view)
    }

    /// One request with the outline of everything that was done for it.
    pub async fn task_tree(&self, task: &TaskId) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let frame = self.frame(None).await?;
        let mut records = self.done_for(task, frame.view.seq, MAX_EVENTS).await?.ok_or_else(|| unknown_task(task))?;
        records.outline(MAX_OUTLINE);
        let mut view = self.with_records(frame, records).await?;
        self.add_requests(&mut view, vec![task.clone()]).await?;
        Ok(view)
    }

    /// A page of requests, with what each cost.
    pub async fn trace(&self, page: &RequestPage) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let mut view = self.frame(None).await?.finish(&self.society).await?;
        let page = RequestPage { limit: Some(page.limit.unwrap_or(TRACED_REQUESTS).min(MAX_TURNS)), ..page.clone() };
        (view.requests, view.next) = self.list_requests(&page, &view).await?;
        let most = MAX_EVENTS / view.requests.len().max(1);
        for n in 0..view.requests.len() {
            let task = view.requests[n].id.clone();
            if let Some(records) = self.done_for(&task, view.seq, most).await? {
                view.requests[n].spent = records.spent_for(&task);
                view.costs.extend(records.costs());
            }
        }
        Ok(view)
    }

    /// A page of requests, without what they cost.
    pub async fn requests(&self, page: &RequestPage) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let mut view = self.frame(None).await?.finish(&self.society).await?;
        let page = RequestPage { limit: Some(page.limit.unwrap_or(LISTED_REQUESTS).min(MAX_TURNS)), ..page.clone() };
        (view.requests, view.next) = self.list_requests(&page, &view).await?;
        Ok(view)
    }

    /// Everything that waits for a person.
    pub async fn inbox(&self) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let mut view = self.frame(None).await?.finish(&self.society).await?;
        let tasks = view.waiting.iter().map(|waiting| waiting.task.clone()).collect();
        self.add_requests(&mut view, tasks).await?;
        Ok(view)
    }

    /// A page of the organisation, now or after an event.
    pub async fn organisation(&self, page: &OrganisationPage) -> Result<View, ApiError> {
        self.caller.needs(Scope::Read)?;
        let limit = page.limit.unwrap_or(AGENTS).clamp(1, MAX_AGENTS);
        let list = {
            let (after, visibility) = (page.after.clone(), self.society.visibility().clone());
            move |spine: &Spine| ViewFrame::of(spine, &Agents::Page(after.as_deref(), limit), &visibility)
        };
        let Some(at) = page.at else {
            return self.society.look_with_terminated(list).await?.finish(&self.society).await;
        };
        let head = self.society.look(|spine| spine.seq).await?;
        if at > head || at == Seq(0) {
            return Err(ApiError::new(409, "no_such_event", format!("the log ends at {head}; there is no event {at}")));
        }
        if at.0 > MAX_PAST {
            let detail = format!("only the first {MAX_PAST} events can be looked back at; fork the society there instead");
            return Err(ApiError::new(409, "too_far_back", detail));
        }
        let spine = self.society.spine_at(at).await?;
        let mut view = list(&spine).finish(&self.society).await?;
        let event = self.society.log().read(self.society.id(), Seq(at.0 - 1), 1).await?.pop();
        view.event = event.map(|recorded| Moment { name: name_of(&recorded.event), at: recorded.at });
        Ok(view)
    }

    async fn frame(&self, agent: Option<AgentId>) -> Result<ViewFrame, ApiError> {
        let visibility = self.society.visibility().clone();
        Ok(self.society.look(move |spine| ViewFrame::of(spine, &Agents::About(agent.as_ref()), &visibility)).await?)
    }

    /// The frame with further records.
    async fn with_records(&self, frame: ViewFrame, records: Records) -> Result<View, ApiError> {
        let mut view = frame.finish(&self.society).await?;
        let Records { threads, turns, effects, .. } = records;
        view.turns.retain(|turn| !turns.contains_key(&turn.id));
        view.effects.retain(|effect| !turns.contains_key(&effect.turn));
        view.threads.retain(|thread| !threads.contains_key(&thread.id));
        view.turns.extend(turns.into_values());
        view.turns.sort_by_key(|turn| turn.id);
        view.effects.extend(effects.into_values());
        view.threads.extend(threads.into_values());
        Ok(view)
    }

    /// Everything that was done for a request; none if there is no such request.
    async fn done_for(&self, task: &TaskId, through: Seq, most: usize) -> Result<Option<Records>, ApiError> {
        let Some(request) = self.request(task).await? else { return Ok(None) };
        let mut collected = EventCollector::new(&self.society, through, most);
        for (to, range) in self.spans(task, &request, through).await? {
            collected.turns_of_task(task, &to.main_thread(), range).await?;
        }
        collected.below().await?;
        Ok(Some(collected.fold()))
    }

    /// Adds the messages of a thread before a turn.
    async fn add_context(&self, records: &mut Records, thread: &ThreadId, turn: TurnId) -> Result<(), ApiError> {
        let through = Seq(turn.0.0.saturating_sub(1));
        let range = ThreadRange { through, newest: CONTEXT_EVENTS, ..ThreadRange::ALL };
        let mut before = Records::default();
        for recorded in self.society.log().read_thread(self.society.id(), thread, range).await? {
            if !matches!(recorded.event, Event::ThreadOpened { .. }) {
                before.fold(&recorded);
            }
        }
        if let (Some(here), Some(before)) = (records.threads.get_mut(thread), before.threads.remove(thread)) {
            let items = before.items.into_iter().filter(|item| !matches!(item, ThreadItem::Turn { .. }));
            here.items = items.chain(std::mem::take(&mut here.items)).collect();
            here.messages.extend(before.messages);
        }
        Ok(())
    }
}

/// The kind of an event. It is written as its name, or as an object whose only key is its name.
fn name_of(event: &Event) -> String {
    match serde_json::to_value(event) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(body)) => body.into_iter().next().map(|(name, _)| name).unwrap_or_default(),
        _ => String::new(),
    }
}
