//! Questions of a running tool call: to the person, or to a model within the budgets of the calling agent (MCP elicitation and
//! sampling). Question and answer are logged beside the call; a question whose call has ended is void.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use polis_domain::{
    AgentId, Answer, Command, EffectId, Event, Failure, FailureCode, Inquiry, InquiryId, Permit, Question, Recorded, Reply,
    RoleId, Ruling, Seq, Spent, TaskId, Timestamp, Usage, Verdict,
};
use polis_ports::{Caller, ChatMessage, Chosen, Collector, Delta, Host, ModelError, ModelRequest};
use tokio::sync::{Notify, oneshot};

use super::send;
use crate::shared::{ActorMessage, Shared};

/// How many questions one call may ask.
const MAX_INQUIRIES: u32 = 32;

/// The token limit of one model reply to a call.
const MAX_REPLY_TOKENS: u32 = 4_096;

/// How many characters from the end of a prompt are logged and shown.
const MAX_PROMPT_CHARS: usize = 2_000;

/// How long to wait before a busy budget is tried again.
const BUSY_MS: u64 = 1_000;

/// On whose behalf a call asks.
pub(super) struct Asker {
    pub(super) call: EffectId,
    pub(super) agent: AgentId,
    pub(super) role: Option<RoleId>,
    pub(super) task: TaskId,
    pub(super) chosen: Chosen,
    /// The models of the calling agent.
    pub(super) models: Vec<Arc<str>>,
}

/// The [`Host`] of one call.
pub(super) struct CallHost {
    shared: Arc<Shared>,
    asker: Asker,
    state: Mutex<State>,
    /// Notified when a model reply is complete.
    model_done: Notify,
}

#[derive(Default)]
struct State {
    /// Who waits for the person, by the position of the question.
    waiting: HashMap<Seq, oneshot::Sender<Answer>>,
    /// Answers that arrived before [`OpenInquiry::verdict`] waited for them.
    early: HashMap<Seq, Answer>,
    /// How many questions were asked.
    questions: u32,
    /// How many model requests are running.
    samples: usize,
    /// The call is over.
    is_closed: bool,
}

impl CallHost {
    pub(super) fn new(shared: Arc<Shared>, asker: Asker) -> Self {
        Self { shared, asker, state: Mutex::default(), model_done: Notify::new() }
    }

    pub(super) fn call(&self) -> EffectId {
        self.asker.call
    }

    /// Delivers the answer of a person from the log.
    pub(super) fn deliver(&self, event: &Event) {
        let Event::CallAnswered { id, answer, .. } = event else { return };
        let mut state = self.state();
        match state.waiting.remove(&id.seq) {
            // An error means that the tool no longer waits.
            Some(waiting) => drop(waiting.send(answer.clone())),
            None if !state.is_closed => drop(state.early.insert(id.seq, answer.clone())),
            None => {}
        }
    }

    /// Ends the call: rejects further questions and wakes those who wait for the person without an answer.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
    }

    /// Waits until no model request is running, so that its cost is logged before the result of the call.
    pub(super) async fn quiet(&self) {
        while self.state().samples > 0 {
            self.model_done.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a question, or returns why it is not allowed.
    async fn inquire(&self, by: &str, inquiry: Inquiry) -> Result<(OpenInquiry<'_>, Arc<Recorded>), Failure> {
        {
            let mut state = self.state();
            if state.is_closed {
                return Err(call_is_over());
            }
            state.questions += 1;
            if state.questions > MAX_INQUIRIES {
                let message = format!("one call may ask {MAX_INQUIRIES} times and no more");
                return Err(Failure::new("too_many_questions", message));
            }
        }
        let command = Command::Inquire { id: self.asker.call, by: by.into(), inquiry };
        let events = match send(&self.shared, command).answer().await {
            Ok(Ok(events)) => events,
            Ok(Err(rejected)) => return Err(Failure::new(rejected.code(), rejected.to_string())),
            Err(_) => return Err(call_is_over()),
        };
        let event = events.into_iter().next().ok_or_else(call_is_over)?;
        let id = InquiryId { call: self.asker.call, seq: event.seq };
        Ok((OpenInquiry { host: self, id, spent: None, is_answered: false }, event))
    }

    /// A request within our limits, with the model of the calling agent; and what to reserve for it.
    fn limited(&self, mut request: ModelRequest) -> (ModelRequest, Spent) {
        let limit = request.settings.max_tokens.unwrap_or(MAX_REPLY_TOKENS).min(MAX_REPLY_TOKENS);
        request.settings.max_tokens = Some(limit);
        request.model = self.asker.models.first().cloned().unwrap_or_default();
        request.asker = self.asker.agent.as_str().into();
        request.tools = Arc::default();
        let guess = Spent::from(self.shared.ports.model.estimate(&request));
        let more = |guess: u64| guess.saturating_add(guess / 4);
        let reserve = Spent { requests: 1, tokens: more(guess.tokens), cost_nanos: more(guess.cost_nanos), ..Spent::default() };
        (request, reserve)
    }

    /// Tries each model once until one replies. The cost is logged before the reply is used.
    async fn think(
        &self,
        mut open_inquiry: OpenInquiry<'_>,
        request: ModelRequest,
        permit: Option<&Permit>,
    ) -> Result<Reply, Failure> {
        let mut failure = Failure::new("no_model", "there is no model to ask");
        let models = if self.asker.models.is_empty() { vec![Arc::default()] } else { self.asker.models.clone() };
        for model in models {
            let request = ModelRequest { model, ..request.clone() };
            let (tried, spent) = self.attempt(&mut open_inquiry, request, permit).await;
            open_inquiry.spent = Some(spent);
            match tried {
                Ok(reply) => return open_inquiry.report(Answer::Reply(reply.clone())).await.map(|()| reply),
                Err(error) => failure = Failure::new(error.code(), error.to_string()),
            }
        }
        open_inquiry.report(Answer::Failed(failure.clone())).await?;
        Err(failure)
    }

    /// One attempt. Deltas are not published: the reply belongs to the tool, not to the agent.
    async fn attempt(
        &self,
        open_inquiry: &mut OpenInquiry<'_>,
        request: ModelRequest,
        permit: Option<&Permit>,
    ) -> (Result<Reply, ModelError>, Spent) {
        let clock = &self.shared.ports.clock;
        let (began, before) = (clock.now(), open_inquiry.spent.unwrap_or_default());
        // Counted now, in case this future is dropped before the reply: the request was sent all the same.
        open_inquiry.spent = Some(before.plus(Spent::request(Usage::default(), 0)));
        let (mut used, mut written) = (Usage::default(), 0);
        let whole = async {
            self.shared.may_act().await;
            let mut stream = self.shared.ports.model.stream(request.clone()).await?;
            let mut collector = Collector::default();
            while let Some(delta) = stream.next().await {
                let delta = delta?;
                if let Delta::Usage(usage) = &delta {
                    used = *usage;
                    open_inquiry.spent = Some(before.plus(Spent::request(used, 0)));
                }
                written += delta.estimate_tokens();
                collector.push(delta);
            }
            collector.finish()
        };
        let mut reply = match permit.and_then(|permit| permit.time_ms) {
            None => whole.await,
            Some(ms) => tokio::select! {
                biased;
                reply = whole => reply,
                () = clock.sleep_until(Timestamp(began.0.saturating_add(ms))) => {
                    Err(ModelError::Cut { reason: format!("no whole reply within {ms} ms") })
                }
            },
        };
        if used == Usage::default() && (written > 0 || reply.is_ok()) {
            let written = u32::try_from(written).unwrap_or(u32::MAX);
            let mut request = request;
            request.settings.max_tokens = Some(written);
            used = self.shared.ports.model.estimate(&request);
        }
        if let Ok(reply) = &mut reply {
            reply.usage = used;
        }
        let took = clock.now().0.saturating_sub(began.0);
        (reply, before.plus(Spent::request(used, took)))
    }
}

#[async_trait]
impl Host for CallHost {
    async fn ask_person(&self, by: &str, question: Question) -> Option<Verdict> {
        let inquiry = Inquiry::Person { question, details: serde_json::Value::Null, about: None };
        match self.inquire(by, inquiry).await {
            Ok((open_inquiry, _)) => open_inquiry.verdict().await,
            Err(failure) => {
                tracing::warn!(call = %self.asker.call, server = by, %failure, "a server could not ask the person");
                None
            }
        }
    }

    async fn ask_model(&self, by: &str, request: ModelRequest) -> Result<Reply, Failure> {
        let _sample = Sample::begin(self);
        let Asker { agent, role, task, chosen, .. } = &self.asker;
        let who = Caller { agent, role: role.as_ref(), task, chosen: *chosen };
        let mut ruling = self.shared.ports.toolbox.sampling_ruling(by, &who);
        let (request, reserve) = self.limited(request);
        loop {
            let inquiry = Inquiry::Model {
                model: request.model.clone(),
                request: request.digest(),
                prompt: end_of(&request),
                reserve,
                about: format!("{by}/sampling").into(),
                ruling: ruling.clone(),
            };
            let (open_inquiry, event) = match self.inquire(by, inquiry).await {
                Ok(declared) => declared,
                Err(failure) if failure.code == FailureCode::BudgetBusy => {
                    let clock = &self.shared.ports.clock;
                    clock.sleep_until(Timestamp(clock.now().0.saturating_add(BUSY_MS))).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            match &event.event {
                Event::CallInquired { inquiry: Inquiry::Model { .. }, permit, .. } => {
                    return self.think(open_inquiry, request, permit.as_ref()).await;
                }
                _ => match open_inquiry.verdict().await {
                    Some(verdict) if verdict.approved => ruling = Ruling::Approved,
                    Some(verdict) if !verdict.reason.is_empty() => {
                        return Err(Failure::new("declined", format!("a person did not agree: {}", verdict.reason)));
                    }
                    _ => return Err(Failure::new("declined", "a person did not agree")),
                },
            }
        }
    }
}

impl fmt::Debug for CallHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallHost({})", self.asker.call)
    }
}

/// A logged question without an answer. If it is dropped, it is logged as void.
struct OpenInquiry<'a> {
    host: &'a CallHost,
    id: InquiryId,
    spent: Option<Spent>,
    is_answered: bool,
}

impl OpenInquiry<'_> {
    /// Waits for the person's answer.
    async fn verdict(mut self) -> Option<Verdict> {
        let waiting = {
            let mut state = self.host.state();
            match state.early.remove(&self.id.seq) {
                Some(answer) => Err(answer),
                None if state.is_closed => return None,
                None => {
                    let (sender, waiting) = oneshot::channel();
                    state.waiting.insert(self.id.seq, sender);
                    Ok(waiting)
                }
            }
        };
        let answer = match waiting {
            Ok(waiting) => waiting.await.ok()?,
            Err(answer) => answer,
        };
        self.is_answered = true;
        match answer {
            Answer::Verdict(verdict) => Some(verdict),
            Answer::Cancelled | Answer::Reply(_) | Answer::Failed(_) => None,
        }
    }

    /// Logs the answer and waits for the commit.
    async fn report(mut self, answer: Answer) -> Result<(), Failure> {
        self.is_answered = true;
        let command = Command::Answer { id: self.id, answer, spent: self.spent };
        match send(&self.host.shared, command).answer().await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(rejected)) => Err(Failure::new(rejected.code(), rejected.to_string())),
            Err(_) => Err(call_is_over()),
        }
    }
}

impl Drop for OpenInquiry<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let command = Command::Answer { id: self.id, answer: Answer::void(), spent: self.spent };
            // If the mailbox is full the question stays open until the call ends, which voids it too.
            let _ = self.host.shared.actor.try_send(ActorMessage::Command { command, reply: None });
        }
    }
}

/// Counts as one running model request while it lives.
struct Sample<'a>(&'a CallHost);

impl<'a> Sample<'a> {
    fn begin(host: &'a CallHost) -> Self {
        host.state().samples += 1;
        Self(host)
    }
}

impl Drop for Sample<'_> {
    fn drop(&mut self) {
        self.0.state().samples -= 1;
        self.0.model_done.notify_one();
    }
}

fn call_is_over() -> Failure {
    Failure::new("void", "the call is over")
}

/// The end of a prompt, for display.
fn end_of(request: &ModelRequest) -> String {
    let text = match request.messages.last() {
        Some(ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. }) => text,
        Some(ChatMessage::Tool { content, .. }) => content,
        None => return String::new(),
    };
    let skipped = text.chars().count().saturating_sub(MAX_PROMPT_CHARS);
    text.chars().skip(skipped).collect()
}
