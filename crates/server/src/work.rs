//! A request as a peer sees it: where it stands, what is done for it, what it waits for. It is begun, looked at and settled
//! through the same routes as everybody's.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::TryStreamExt;
use polis_domain::{AgentId, Effect, EffectId, Event, MessageKind, Origin, Recorded, ReplyTo, Seq, TaskId, TurnId};
use polis_engine::{Watch, WatchEvent};
use polis_ports::{Delta, StreamedDelta};
use serde_json::Value;
use tokio::time::Instant;

use crate::caller::{Caller, Scope};
use crate::problem::Problem;
use crate::state::{SocietyState, next_seen};

/// How soon a standing is looked at again after something was done for the request, and after something else happened.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(500);

/// Somebody who asks through a protocol of others, and may do what its token says.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) state: SocietyState,
    pub(crate) caller: Caller,
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    /// `running`, `waiting`, `needs_person`, `done`, `failed` or `cancelled`.
    pub(crate) status: String,
    pub(crate) answer: Option<String>,
    /// With `code` and `message`.
    pub(crate) failure: Option<Value>,
    /// What of it waits for a person, as `/api/approvals` lists it.
    pub(crate) approvals: Vec<Value>,
    /// Whether a turn of it is open: it does not just lie in an inbox.
    pub(crate) has_begun: bool,
    /// The agent that is busy with another request, where that one waits for somebody to act.
    pub(crate) behind: Option<String>,
}

impl Standing {
    /// Of what was begun just now.
    pub(crate) fn begun() -> Self {
        Self { status: "running".to_owned(), answer: None, failure: None, approvals: Vec::new(), has_begun: true, behind: None }
    }

    /// Whether nothing more will be done for it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&*self.status, "done" | "failed" | "cancelled")
    }

    /// Whether a person must act.
    pub(crate) fn needs_person(&self) -> bool {
        self.status == "needs_person"
    }

    /// Whether nothing comes of waiting for it now: it is over, or somebody must act first.
    pub(crate) fn rests(&self) -> bool {
        self.is_over() || self.needs_person() || self.behind.is_some()
    }
}

impl Peer {
    /// The same, who may look at what it has just begun. Whoever may ask may hear the answer.
    pub(crate) fn of_own(&self) -> Self {
        Self { state: self.state.clone(), caller: self.caller.with(Scope::Read) }
    }

    /// Where a request stands.
    pub(crate) async fn standing(&self, task: &TaskId) -> Result<Standing, Problem> {
        let told = self.ask(&format!("/api/tasks/{}", segment(task.as_str())), None).await?;
        let text = |name: &str| told.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut standing = Standing {
            status: text("status").unwrap_or_default(),
            answer: text("answer"),
            failure: told.get("failure").cloned(),
            approvals: Vec::new(),
            has_begun: false,
            behind: text("behind"),
        };
        if standing.status == "waiting" {
            let wanted = task.clone();
            let look = self.state.society.look(move |spine| spine.turns.values().any(|turn| turn.task == wanted));
            standing.has_begun = look.await?;
        }
        if standing.needs_person() {
            standing.approvals = self.approvals(Some(task)).await?;
            // Somebody has acted meanwhile.
            if standing.approvals.is_empty() {
                "waiting".clone_into(&mut standing.status);
            }
        }
        Ok(standing)
    }

    /// What waits for a person, of one request or of all.
    pub(crate) async fn approvals(&self, task: Option<&TaskId>) -> Result<Vec<Value>, Problem> {
        let mut told = self.ask("/api/approvals", None).await?;
        let Some(Value::Array(all)) = told.get_mut("approvals").map(Value::take) else { return Ok(Vec::new()) };
        let is_meant = |approval: &Value| task.is_none_or(|task| approval["taskId"] == task.as_str());
        Ok(all.into_iter().filter(is_meant).collect())
    }

    /// Asks a route of our own; a body makes it a `POST`.
    pub(crate) async fn ask(&self, target: &str, body: Option<&Value>) -> Result<Value, Problem> {
        let strange = |what: String| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "strange_answer", format!("{target} answered {what}"))
        };
        let answer = self.state.ask_for(self.caller.clone(), target, body.map(Value::to_string)).await;
        let answer = answer.map_err(|error| strange(error.to_string()))?;
        let whole = answer.body.try_fold(Vec::new(), |mut whole, chunk| async move {
            whole.extend_from_slice(&chunk);
            Ok(whole)
        });
        let whole = whole.await.map_err(|error| strange(error.to_string()))?;
        let told: Value = serde_json::from_slice(&whole).map_err(|error| strange(error.to_string()))?;
        if answer.status < 400 {
            return Ok(told);
        }
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Err(Problem::new(status, text("code"), text("detail")))
    }
}

/// A name as a path takes it.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Follows what is done for a request.
pub(crate) struct Follow {
    peer: Peer,
    task: TaskId,
    watch: Watch,
    /// The turns that work on it.
    turns: HashMap<TurnId, Worker>,
    /// The last event that was heard.
    seen: Seq,
    /// When its standing is looked at again.
    due: Option<Instant>,
}

/// What a follower hears.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// Somebody began to do something for it, in words.
    Step(String),
    /// More of a reply that may become the answer.
    Text { effect: EffectId, text: String },
    /// A reply broke off: what was heard of it is void.
    Dropped(EffectId),
    /// It may stand elsewhere now.
    Changed,
    /// The society has ended; what was asked goes on when it runs again.
    Ended,
}

impl Follow {
    /// From a place of the log on.
    pub(crate) async fn new(peer: &Peer, task: &TaskId, after: Seq) -> Result<Self, Problem> {
        let watch = peer.state.society.watch(after);
        let wanted = task.clone();
        let turns = peer.state.society.look(move |spine| {
            let own = spine.turns.iter().filter(|(_, turn)| turn.task == wanted);
            own.map(|(id, turn)| (*id, Worker::new(&turn.agent, turn.origin, turn.reply_to))).collect()
        });
        // Where nothing more happens its standing is looked at all the same.
        let due = Some(Instant::now() + SOON);
        Ok(Self { turns: turns.await?, peer: peer.clone(), task: task.clone(), watch, seen: after, due })
    }

    /// Where it stands now.
    pub(crate) async fn standing(&mut self) -> Result<Standing, Problem> {
        self.peer.standing(&self.task).await
    }

    /// The next thing to know. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Heard, Problem> {
        loop {
            // What has happened is heard first, but nobody is kept waiting by a society that never rests.
            let is_overdue = self.due.is_some_and(|due| Instant::now() > due + LATER);
            let seen = tokio::select! {
                biased;
                () = self.peer.state.closing.cancelled() => return Ok(Heard::Ended),
                seen = next_seen(&mut self.watch), if !is_overdue => seen?,
                () = until(self.due) => {
                    self.due = None;
                    return Ok(Heard::Changed);
                }
            };
            let recorded = match seen {
                WatchEvent::Event(recorded) => recorded,
                WatchEvent::Delta(delta) => match self.chunk(&delta) {
                    Some(heard) => return Ok(heard),
                    None => continue,
                },
                WatchEvent::Step(_) => continue,
            };
            self.seen = recorded.seq;
            if self.is_end(&recorded) {
                self.due = None;
                return Ok(Heard::Changed);
            }
            let (patience, step) = self.hear(&recorded);
            let due = Instant::now() + patience;
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
            if let Some(step) = step {
                return Ok(Heard::Step(step));
            }
        }
    }

    /// The chunks that came before the end of the log as it is now, and were not heard yet: a look at the standing may be faster.
    pub(crate) async fn rest(&mut self) -> Result<Vec<Heard>, Problem> {
        let society = &self.peer.state.society;
        let head = society.log().readable_head(society.id()).await?;
        let mut chunks = Vec::new();
        while self.seen < head {
            match self.watch.next().await? {
                Some(WatchEvent::Event(recorded)) => {
                    self.seen = recorded.seq;
                    self.hear(&recorded);
                }
                Some(WatchEvent::Delta(delta)) => chunks.extend(self.chunk(&delta)),
                Some(WatchEvent::Step(_)) => {}
                None => break,
            }
        }
        Ok(chunks)
    }

    /// A chunk of what may become the answer.
    fn chunk(&self, told: &StreamedDelta) -> Option<Heard> {
        self.turns.get(&told.effect.turn).filter(|worker| worker.answers_person)?;
        match &told.delta {
            Delta::Content(text) if !text.is_empty() => Some(Heard::Text { effect: told.effect, text: text.clone() }),
            Delta::Stopped | Delta::Error(_) => Some(Heard::Dropped(told.effect)),
            _ => None,
        }
    }

    /// Whether this is the message that ends it.
    fn is_end(&self, recorded: &Recorded) -> bool {
        let envelope = recorded.event.envelope();
        envelope.is_some_and(|envelope| {
            envelope.task_id == self.task && envelope.to.is_user() && envelope.kind != MessageKind::Message
        })
    }

    /// How soon its standing should be looked at, and what is being done for it.
    fn hear(&mut self, recorded: &Recorded) -> (Duration, Option<String>) {
        if let Event::TurnStarted { agent, task, origin, reply_to, .. } = &recorded.event
            && task.id == self.task
        {
            self.turns.insert(TurnId(recorded.seq), Worker::new(agent, *origin, *reply_to));
            return (SOON, None);
        }
        if let Event::MessageSent { envelope, .. } = &recorded.event
            && envelope.task_id == self.task
        {
            let said = envelope.to.is_user() && envelope.kind == MessageKind::Message;
            return (SOON, said.then(|| format!("{}: {}", envelope.from, envelope.payload.text)));
        }
        let turn = match &recorded.event {
            Event::TurnParked { turn, .. }
            | Event::TurnRested { turn }
            | Event::TurnResumed { turn }
            | Event::TurnSettled { turn, .. } => Some(*turn),
            event => event.effect().map(|effect| effect.turn),
        };
        let Some(Worker { agent, .. }) = turn.and_then(|turn| self.turns.get(&turn)) else { return (LATER, None) };
        let step = match &recorded.event {
            Event::EffectStarted { effect, .. } => step(effect).map(|step| format!("{agent} {step}")),
            _ => None,
        };
        (SOON, step)
    }
}

/// Whose a turn is.
struct Worker {
    agent: AgentId,
    /// Whether what it says is said to the person.
    answers_person: bool,
}

impl Worker {
    fn new(agent: &AgentId, origin: Origin, reply_to: ReplyTo) -> Self {
        Self { agent: agent.clone(), answers_person: origin == Origin::Inbox && reply_to == ReplyTo::User }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What is begun, in words. What waits for a person is told by the standing.
fn step(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Model { model, .. } if model.is_empty() => Some("asks its model".to_owned()),
        Effect::Model { model, .. } => Some(format!("asks {model}")),
        Effect::Tool(call) => Some(format!("calls {}", call.tool)),
        Effect::Ask { envelope, .. } => Some(format!("asks {}", envelope.to)),
        Effect::Terminate { agent, .. } => Some(format!("sends {agent} away")),
        Effect::Unit { behaviour, .. } => Some(format!("begins a part of the work ({behaviour})")),
        Effect::Keep(artifact) => Some(format!("keeps {}", artifact.name)),
        Effect::Sleep { .. } | Effect::Approval { .. } | Effect::Grant { .. } => None,
    }
}

/// What the person is shown: all of it.
pub(crate) fn asking(approval: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut message = match approval["kind"].as_str() {
        Some("in_doubt") => "A write was begun and its result is not known. Look at the world: was it done?".to_owned(),
        Some("parked") => format!("The work stands still: {}. Should it go on?", text(&approval["failure"]["message"])),
        _ => text(&approval["question"]),
    };
    message.push_str(&format!("\n\nAgent: {}", text(&approval["agentId"])));
    if let Some(url) = approval["wanted"]["visit"]["url"].as_str() {
        message.push_str(&format!("\nAddress to visit: {url}"));
    }
    if let Some(call) = approval.get("call").filter(|call| call.is_object()) {
        message.push_str(&format!("\nTool: {}\nArguments: {}", text(&call["tool"]), text(&call["arguments"])));
    }
    message
}

#[cfg(test)]
mod tests {
    use polis_engine::{Cast, Options, Ports, Society};
    use polis_testkit::{MemoryLog, Programmed, worker_role};
    use serde_json::json;

    use super::*;
    use crate::About;

    #[tokio::test]
    async fn a_peer_may_do_what_its_token_may() {
        let cast = Cast::new().with(Programmed::NAME, Programmed);
        let ports = Ports::new(MemoryLog::new());
        let society = Society::open("main".into(), ports, cast, Options::new(7, worker_role())).await.unwrap();
        let state = SocietyState::new(society, About { model: String::new(), is_offline: false, vendors: Vec::new() });
        let peer = |scopes: &str| Peer { state: state.clone(), caller: Caller::new("some".into(), scopes.parse().unwrap()) };
        let request = json!({ "text": "[]" });
        let code = |result: Result<Value, Problem>| result.map(drop).map_err(|problem| problem.code().to_owned());
        assert_eq!(code(peer("read").ask("/api/agents", None).await), Ok(()));
        assert_eq!(code(peer("read").ask("/api/submit", Some(&request)).await), Err("missing_scope".to_owned()));
        assert_eq!(code(peer("send").ask("/api/submit", Some(&request)).await), Ok(()));
        let word = json!({ "approved": true });
        assert_eq!(code(peer("read,send").ask("/api/approvals/1.0", Some(&word)).await), Err("missing_scope".to_owned()));
        assert_eq!(code(peer("approve").ask("/api/approvals/1.0", Some(&word)).await), Err("not_open".to_owned()));
        assert_eq!(code(peer("read").ask("/api/threads/no one?path=", None).await), Err("strange_answer".to_owned()));
    }
}
