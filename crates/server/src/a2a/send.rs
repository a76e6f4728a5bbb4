//! Sending: a message begins a task, or goes to one that is under way: as an answer where it waits for a person, else as one
//! more message. The same message twice is done once.

use std::time::Duration;

use polis_api::local::settled;
use polis_api::{ApiError, Approval, Decision, DecisionOutcome, DecisionRequest, Local, Pending};
use polis_domain::{Digest, IdempotencyKey, Refusal, Request, Seq, TaskId, Wanted};
use polis_engine::CommandError;
use serde_json::{Map, Value, json};

use super::error::{Reason, fault, protocol_error};
use super::message::{Message, message_id};
use super::task::{self, Envelopes, context_of};
use super::{Call, no_push};
use crate::addressee::{ClientMessage, Receiver, SOCIETY, addressee, conversation_of, deliver};
use crate::caller::Scope;
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::task_follower::{TaskFollower, TaskUpdate};

/// How long a message that is not streamed waits for the result.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Words for yes and for no.
const YES: &[&str] = &["yes", "y", "ok", "okay", "approve", "approved", "true", "是", "好", "同意", "可以"];
const NO: &[&str] = &["no", "n", "deny", "denied", "reject", "false", "否", "不", "不同意", "不可以"];

impl Call {
    /// Sends a message, and waits for the result unless the client does not want to.
    pub(super) async fn send(&self) -> Result<Value, Fault> {
        let configuration = self.params.get("configuration").and_then(Value::as_object).cloned().unwrap_or_default();
        let length = self.history_length(&configuration)?;
        let (task, after) = self.accept().await?;
        let with_read = self.with_read_scope();
        let call = if self.is_new() { &with_read } else { self };
        if configuration.get("returnImmediately").and_then(Value::as_bool) != Some(true) {
            let stopped = async {
                let mut follow = TaskFollower::new(&call.peer, &task, after).await?;
                let mut summary = follow.summary().await?;
                while !summary.has_stopped() {
                    match follow.next().await? {
                        TaskUpdate::Step(_) | TaskUpdate::Text { .. } | TaskUpdate::Dropped(_) => {}
                        TaskUpdate::Changed => summary = follow.summary().await?,
                        TaskUpdate::Ended => break,
                    }
                }
                Ok(())
            };
            // After that, the current state is returned.
            let reached = tokio::time::timeout(LONGEST_WAIT, stopped).await;
            reached.unwrap_or(Ok(())).map_err(|problem: Problem| fault(&problem))?;
        }
        Ok(json!({ "task": task::task_json(call, &task, length).await? }))
    }

    /// Whether the message begins a task; one that goes to another's must be allowed to look at it.
    pub(super) fn is_new(&self) -> bool {
        let task = self.params.get("message").and_then(|message| message.get("taskId")).and_then(Value::as_str);
        task.is_none_or(str::is_empty)
    }

    /// Takes a message in: the task that it belongs to, and the place of the log from which on to follow it.
    pub(super) async fn accept(&self) -> Result<(TaskId, Seq), Fault> {
        let refused = |error: ApiError| fault(&error);
        self.peer.caller.needs(Scope::Send).map_err(refused)?;
        let wanted = self.params.get("configuration").and_then(|it| it.get("taskPushNotificationConfig"));
        if wanted.is_some_and(Value::is_object) {
            return Err(no_push());
        }
        let mut message = Message::read(&self.params)?;
        let society = &self.peer.state.society;
        let head = society.log().readable_head(society.id()).await.map_err(|error| refused(error.into()))?;
        // Whether a message is known and that it is taken in is one thing.
        let _one_at_a_time = self.peer.state.a2a_tasks.accepting().await;
        let Some(task) = message.task.clone() else {
            let task = message.new_task(society.person());
            let known = society.messages(&task).await.map_err(|rejected| refused(rejected.into()))?;
            if known.is_empty() {
                let context = message.context.clone().unwrap_or_else(|| task.to_string());
                let to = self.receiver(&message).await?;
                self.post(&mut message, to, &task, &context).await.map_err(|problem| fault(&problem))?;
            }
            return Ok((task, head));
        };
        self.peer.caller.needs(Scope::Read).map_err(refused)?;
        let envelopes = task::envelopes(self, &task).await?;
        let context = context_of(&envelopes, &task);
        if message.context.as_ref().is_some_and(|given| *given != context) {
            return Err(Fault::invalid("`contextId` is not the one of the task"));
        }
        if envelopes.iter().any(|(_, envelope)| message_id(envelope) == Some(&message.id)) {
            return Ok((task, head));
        }
        self.continue_task(message, &task, &context, &envelopes).await?;
        Ok((task, head))
    }

    /// Takes a message in about a task that is there.
    async fn continue_task(
        &self,
        mut message: Message,
        task: &TaskId,
        context: &str,
        envelopes: &Envelopes,
    ) -> Result<(), Fault> {
        let refused = |error: ApiError| fault(&error);
        // A decision has no message in the log, so that its id is the key of the command: a repeat decides nothing else.
        let key = IdempotencyKey::of(["a2a", task.as_str(), &message.id]);
        let data = message.data.as_ref().map(|data| json!(data).to_string()).unwrap_or_default();
        let request = Request { key, fingerprint: Digest::of([&*message.text, &*data]) };
        let society = self.peer.state.society.once(request);
        if society.done_before().await.map_err(|error| refused(error.into()))?.is_some() {
            return Ok(());
        }
        let summary = self.peer.summary(task).await.map_err(|problem| fault(&problem))?;
        let named = match message.metadata.get("approvalId") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(Fault::invalid("`approvalId` must be a text, as the task's status has it")),
        };
        let open = match &named {
            Some(id) => summary.approvals.iter().find(|approval| approval.id == *id),
            None => summary.approvals.first(),
        };
        if let Some(approval) = open {
            let api = Local { society, ..self.peer.api() };
            api.resolve(&approval.id, decision(approval, &message)?).await.map_err(refused)?;
            return Ok(());
        }
        // It was answered already, perhaps by this same message.
        if let Some(id) = named {
            let settled = settled(&self.peer.state.society, &id, task).await.map_err(refused)?;
            let Some(settled) = settled else {
                return Err(Fault::invalid(format!("this task has no approval {id}")));
            };
            if settled.is_like(&decision(&settled.approval, &message)?) {
                return Ok(());
            }
            let what = format!("{id} was already settled differently");
            return Err(protocol_error(Reason::UnsupportedOperation, what, &[("taskId", task.as_str())]));
        }
        if summary.is_over() {
            let what = format!(
                "the task is {}; start another, with the same contextId if it belongs to this one",
                summary.status_name()
            );
            return Err(protocol_error(Reason::UnsupportedOperation, what, &[("taskId", task.as_str())]));
        }
        let to = self.receiver(&message).await?.or_first(envelopes.first().map(|(_, envelope)| &envelope.to));
        self.post(&mut message, to, task, context).await.map_err(|problem| fault(&problem))
    }

    async fn post(&self, message: &mut Message, to: Receiver, task: &TaskId, context: &str) -> Result<(), Problem> {
        let meta = message.meta(self, context).await?;
        let society = &self.peer.state.society;
        let conversation = conversation_of(society, "a2a", &to, context).await?;
        let to = if conversation.as_str() == context { Receiver::Agent(conversation.clone()) } else { to };
        let message = ClientMessage { words: message.text.clone(), meta, ..ClientMessage::default() };
        deliver(society, &to, conversation, task, message).await?;
        Ok(())
    }

    /// Whom a message is for: the agent or role that it names, else the society.
    async fn receiver(&self, message: &Message) -> Result<Receiver, Fault> {
        let metadata = self.params.get("metadata").and_then(Value::as_object);
        let named = message.metadata.get("agentId").or_else(|| metadata?.get("agentId")).and_then(Value::as_str);
        let name = named.filter(|name| !name.is_empty()).unwrap_or(SOCIETY);
        match addressee(&self.peer.state, name).await.map_err(|problem| fault(&problem))? {
            Some(addressee) => Ok(addressee.receiver),
            None => Err(fault(&ApiError::from(CommandError::from(Refusal::UnknownAgent(name.into()))))),
        }
    }
}

/// The decision that a message makes about what waits.
fn decision(approval: &Approval, message: &Message) -> Result<Decision, Fault> {
    let known = ["approved", "answer", "outcome", "reason", "arguments", "always", "where", "result"];
    let data = message.data.as_ref().map(|data| {
        let fields = data.iter().filter(|(name, _)| known.contains(&name.as_str()));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
    });
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let decision = serde_json::from_value(Value::Object(data));
        return decision.map_err(|error| Fault::invalid(format!("the data cannot be used: {error}")));
    }
    let text = message.text.trim();
    let low = text.to_lowercase();
    let unclear = |what: &str| Fault::invalid(format!("this does not answer what the task waits for: {what}"));
    let yes_or_no = || match &*low {
        yes if YES.contains(&yes) => Ok(DecisionRequest { approved: Some(true), ..DecisionRequest::default() }),
        no if NO.contains(&no) => Ok(DecisionRequest { approved: Some(false), ..DecisionRequest::default() }),
        _ => Err(unclear("send `yes` or `no`, or a data part {\"approved\": …, \"reason\": …}")),
    };
    let answer = |answer: Value| DecisionRequest { answer: Some(answer), ..DecisionRequest::default() };
    let outcome = |outcome| DecisionRequest { outcome: Some(outcome), ..DecisionRequest::default() };
    let request = match &approval.pending {
        Pending::Question { wanted: Wanted::Text { .. }, .. } => answer(json!(text)),
        Pending::Question { wanted: Wanted::Form { .. }, .. } => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(filled) => answer(Value::Object(filled)),
            Err(_) => return Err(unclear("send a data part {\"answer\": {…}} that fits its form")),
        },
        Pending::InDoubt { .. } => match &*low {
            "done" => outcome(DecisionOutcome::Done),
            "not_done" => outcome(DecisionOutcome::NotDone),
            "again" => outcome(DecisionOutcome::Again),
            _ => return Err(unclear("send `done`, `not_done` or `again`")),
        },
        Pending::Parked { .. } if low == "again" => outcome(DecisionOutcome::Again),
        Pending::Parked { .. } => return Err(unclear("send `again`, or cancel the task")),
        _ => yes_or_no()?,
    };
    Decision::try_from(request).map_err(Fault::invalid)
}
