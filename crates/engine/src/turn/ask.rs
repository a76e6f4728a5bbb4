//! Waits: for another agent, a person, a point in time, or a unit. The answer arrives through the log, so the turn may leave
//! memory.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{
    Act, AgentId, Behaviour, Children, Effect, EffectId, Envelope, Failure, MessageId, MessageKind, Meta, Outcome, Payload,
    Recorded, ReplyTo, Role, RoleId, SubThreadPath, Task, Timestamp, Verdict, Wanted,
};
use serde_json::Value;

use super::Turn;
use super::journal::Entry;
use crate::shared::ActorMessage;

impl Turn {
    /// Asks another agent and waits for its answer, at most `patience`.
    pub async fn ask(&mut self, to: &AgentId, text: &str, patience: Duration) -> Result<Arc<str>, Failure> {
        let reply_to = ReplyTo::Effect(EffectId { turn: self.start.id, n: self.n });
        let envelope = Arc::new(self.envelope(to, text, reply_to));
        let deadline = Some(self.after(patience));
        match self.wait(Effect::Ask { envelope, deadline }).await? {
            Outcome::Answer(text) => Ok(text),
            _ => self.park_diverged(self.n - 1, "ask").await,
        }
    }

    /// Asks a person for approval and waits, without limit unless `patience` is given.
    pub async fn approve(&mut self, question: &str, details: Value, patience: Option<Duration>) -> Result<Verdict, Failure> {
        let deadline = patience.map(|patience| self.after(patience));
        self.verdict(question, details, deadline, Wanted::Agreement, None).await
    }

    /// Asks a person for approval and waits without limit. They may approve with changed `arguments`, which must match the
    /// JSON schema `change`; others are rejected when they answer.
    pub async fn approve_or_change(&mut self, question: &str, details: Value, change: Value) -> Result<Verdict, Failure> {
        self.verdict(question, details, None, Wanted::Agreement, Some(change)).await
    }

    /// Asks a person for a text, or for one of `options` if there are any, and waits, without limit unless `patience` is
    /// given. A refusal to answer is the failure `declined`.
    pub async fn ask_person(
        &mut self,
        question: &str,
        options: &[&str],
        patience: Option<Duration>,
    ) -> Result<Arc<str>, Failure> {
        let deadline = patience.map(|patience| self.after(patience));
        let wanted = Wanted::Text { options: options.iter().map(|option| (*option).to_owned()).collect() };
        let verdict = self.verdict(question, Value::Null, deadline, wanted, None).await?;
        match verdict.answer {
            Some(Value::String(text)) if verdict.approved => Ok(text.into()),
            _ if verdict.reason.is_empty() => Err(Failure::new("declined", "the person did not answer")),
            _ => Err(Failure::new("declined", format!("the person did not answer: {}", verdict.reason))),
        }
    }

    /// Sleeps durably: a restart does not shorten or repeat the wait.
    pub async fn sleep(&mut self, duration: Duration) -> Result<(), Failure> {
        let until = self.after(duration);
        self.wait(Effect::Sleep { until }).await.map(drop)
    }

    /// Runs a unit in a sub-thread, as a turn of its own, and returns its answer.
    pub async fn run_unit(&mut self, path: &SubThreadPath, behaviour: &Behaviour, task: Task) -> Result<Arc<str>, Failure> {
        let unit = (path.clone(), behaviour.clone(), task);
        match self.run_units(vec![unit]).await?.pop() {
            Some(result) => result,
            None => self.park_diverged(self.n, "unit").await,
        }
    }

    /// Runs units in several sub-threads in parallel; one result for each, in order. The failure of one does not affect the
    /// others.
    pub async fn run_units(
        &mut self,
        units: Vec<(SubThreadPath, Behaviour, Task)>,
    ) -> Result<Vec<Result<Arc<str>, Failure>>, Failure> {
        let mut effects = Vec::with_capacity(units.len());
        for (path, behaviour, task) in units {
            effects.push(self.unit(&path, behaviour, task).await?);
        }
        let results = self.wait_for_all(effects).await;
        Ok(results.into_iter().map(answer).collect())
    }

    /// A unit in a sub-thread, with the addresses that its task must carry.
    pub(super) async fn unit(&mut self, path: &SubThreadPath, behaviour: Behaviour, mut task: Task) -> Result<Effect, Failure> {
        task.meta.insert("subThreadPath".to_owned(), path.to_string().into());
        task.meta.insert("parentThreadPath".to_owned(), self.path().to_string().into());
        for (key, value) in self.task.shared_meta() {
            task.meta.entry(key).or_insert(value);
        }
        self.placed(path, behaviour, task).await
    }

    /// A unit in a sub-thread, whose task already carries its addresses.
    pub(super) async fn placed(&mut self, path: &SubThreadPath, behaviour: Behaviour, task: Task) -> Result<Effect, Failure> {
        let thread = self.resolve(path).await?;
        self.has_parallel_waits = true;
        Ok(Effect::Unit { thread, behaviour, task })
    }

    /// Sends a message to an agent or to the person without waiting for an answer.
    pub async fn send(&mut self, to: &AgentId, text: &str) -> Result<MessageId, Failure> {
        let envelope = self.envelope(to, text, ReplyTo::Nobody);
        let id = envelope.id.clone();
        match self.act(vec![Act::Send { envelope: Arc::new(envelope) }]).await {
            Ok(_) => Ok(id),
            Err(failure) => {
                self.note_refusal(&failure);
                Err(failure)
            }
        }
    }

    /// Creates a role.
    pub async fn create_role(&mut self, role: Role) -> Result<(), Failure> {
        self.act(vec![Act::CreateRole { role: Arc::new(role) }]).await.map(drop)
    }

    /// Creates an agent as a child of this one.
    pub async fn spawn_agent(&mut self, agent: &AgentId, role: &RoleId) -> Result<(), Failure> {
        self.act(vec![Act::Spawn { agent: agent.clone(), role: role.clone() }]).await.map(drop)
    }

    async fn verdict(
        &mut self,
        question: &str,
        details: Value,
        deadline: Option<Timestamp>,
        wanted: Wanted,
        change: Option<Value>,
    ) -> Result<Verdict, Failure> {
        let question = question.to_owned();
        match self.wait(Effect::Approval { question, details, call: None, deadline, wanted, change }).await? {
            Outcome::Verdict(verdict) => Ok(verdict),
            _ => self.park_diverged(self.n - 1, "approval").await,
        }
    }

    /// Terminates a child of this agent and waits until it is terminated. It finishes its inbox first, for at most
    /// `patience`; then it stops with its work undone (D12).
    pub async fn terminate(
        &mut self,
        agent: &AgentId,
        children: Children,
        reason: &str,
        patience: Duration,
    ) -> Result<(), Failure> {
        let deadline = self.after(patience);
        let (agent, reason) = (agent.clone(), reason.to_owned());
        self.wait(Effect::Terminate { agent, children, reason, deadline }).await.map(drop)
    }

    pub(super) fn envelope(&mut self, to: &AgentId, text: &str, reply_to: ReplyTo) -> Envelope {
        Envelope {
            id: self.draw_id("msg"),
            from: self.start.agent.clone(),
            to: to.clone(),
            task_id: self.task.id.clone(),
            kind: MessageKind::Message,
            payload: Payload { text: text.into(), meta: self.forwarded_meta().clone() },
            reply_to,
            person: None,
            hops: self.task.hops + 1,
        }
    }

    /// The meta that messages of the same request carry: what the request is about, and the sender.
    fn forwarded_meta(&mut self) -> &Meta {
        self.forwarded_meta.get_or_insert_with(|| {
            self.task.shared_meta().chain([(Task::FROM.to_owned(), self.start.agent.as_str().into())]).collect()
        })
    }

    pub(super) fn after(&self, duration: Duration) -> Timestamp {
        Timestamp(self.now().0.saturating_add(duration.as_millis() as u64))
    }

    async fn wait(&mut self, effect: Effect) -> Result<Outcome, Failure> {
        match self.wait_for_all(vec![effect]).await.pop() {
            Some(result) => result,
            None => self.park_diverged(self.n, "wait").await,
        }
    }

    pub(super) async fn wait_for_all(&mut self, effects: Vec<Effect>) -> Vec<Result<Outcome, Failure>> {
        let entries = self.declare(effects).await;
        self.wait_for_entries(&entries).await
    }

    /// Waits until all of these have ended.
    pub(super) async fn wait_for_entries(&mut self, entries: &[Entry]) -> Vec<Result<Outcome, Failure>> {
        let mut results: Vec<_> = entries.iter().map(|entry| self.result(entry)).collect();
        while results.iter().any(Option::is_none) {
            let event = self.next_event_of(entries.iter()).await;
            let place = entries.iter().position(|entry| entry.is_about(&event));
            if let Some(place) = place {
                results[place] = self.result(&Entry::new(entries[place].id, [event]));
            }
        }
        results.into_iter().flatten().collect()
    }

    /// Waits for the next event of one of these. A turn with parallel waits tells the actor when it can only wait, so that its slot is
    /// freed.
    pub(super) async fn next_event_of(&mut self, entries: impl Iterator<Item = &Entry> + Clone) -> Arc<Recorded> {
        let wanted = |event: &Recorded| entries.clone().any(|entry| entry.is_about(event));
        if !self.has_parallel_waits {
            return self.unread.next(wanted).await;
        }
        if let Some(event) = self.unread.take(wanted) {
            return event;
        }
        // A report that is committed after the turn said that it rests would count as more to do.
        self.committed_position().await;
        if let Some(event) = self.unread.take(wanted) {
            return event;
        }
        // An error means that the society has ended; this turn is about to be dropped.
        let _ = self.start.shared.actor.send(ActorMessage::Rest { turn: self.start.id }).await;
        self.unread.next(wanted).await
    }
}

/// The answer of a unit or an agent.
pub(super) fn answer(outcome: Result<Outcome, Failure>) -> Result<Arc<str>, Failure> {
    match outcome? {
        Outcome::Answer(text) => Ok(text),
        _ => Err(Failure::new("no_answer", "the unit gave no answer")),
    }
}
