//! Follows a request for clients of other protocols (MCP, A2A): its state, its progress, and what it waits for.

use std::collections::HashMap;
use std::time::Duration;

use polis_api::{Approval, Local, Paging, Pending, TaskState, TaskStatus};
use polis_domain::{
    AgentId, Effect, EffectId, Event, Failure, MessageKind, Origin, Recorded, ReplyTo, Seq, TaskId, TurnId, Wanted,
};
use polis_engine::{Watch, WatchEvent};
use polis_ports::{Delta, StreamedDelta};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::caller::{Caller, Scope};
use crate::problem::Problem;
use crate::state::{SocietyState, next_seen};

/// How soon a standing is looked at again after something was done for the request, and after something else happened.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(500);

/// A client of another protocol, with the rights of its token.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) state: SocietyState,
    pub(crate) caller: Caller,
}

/// The code for a request that waits behind another one, which needs a person.
pub(crate) const BUSY: &str = "agent_busy";

/// The message for that. It does not say what the other request is about: that is private.
pub(crate) fn busy_message(agent: &AgentId) -> String {
    format!(
        "{agent} is busy with another request, which waits for a person's decision. Your request is queued and runs after it; ask again later."
    )
}

/// The state of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskSummary {
    pub(crate) status: TaskStatus,
    pub(crate) answer: Option<String>,
    pub(crate) failure: Option<Failure>,
    /// What of it waits for a person.
    pub(crate) approvals: Vec<Approval>,
    /// Whether a turn of it is open: it does not just lie in an inbox.
    pub(crate) has_started: bool,
    /// The agent that is busy with another request, if that one needs a person.
    pub(crate) behind: Option<AgentId>,
    /// The conversation that it belongs to.
    pub(crate) conversation: Option<AgentId>,
}

impl TaskSummary {
    /// Of what was begun just now.
    pub(crate) fn running() -> Self {
        let (answer, failure, approvals, behind, conversation) = (None, None, Vec::new(), None, None);
        Self { status: TaskStatus::Running, answer, failure, approvals, has_started: true, behind, conversation }
    }

    /// Whether nothing more will be done for it.
    pub(crate) fn is_over(&self) -> bool {
        self.status.is_over()
    }

    /// Whether a person must act.
    pub(crate) fn needs_person(&self) -> bool {
        self.status == TaskStatus::NeedsPerson
    }

    /// Whether waiting is of no use now: it is over, or a person must act first.
    pub(crate) fn has_stopped(&self) -> bool {
        self.is_over() || self.needs_person() || self.behind.is_some()
    }

    /// The status as programs read it.
    pub(crate) fn status_name(&self) -> Value {
        json!(self.status)
    }
}

impl Peer {
    /// The same with the scope `read`: a client that may send a request may also read its answer.
    pub(crate) fn with_read_scope(&self) -> Self {
        Self { state: self.state.clone(), caller: self.caller.with(Scope::Read) }
    }

    /// The operations of the society for this peer.
    pub(crate) fn api(&self) -> Local {
        self.state.api(self.caller.clone())
    }

    /// The state of a request.
    pub(crate) async fn summary(&self, task: &TaskId) -> Result<TaskSummary, Problem> {
        let TaskState { status, answer, failure, behind, conversation, .. } = self.api().task(task).await?;
        let approvals = Vec::new();
        let mut summary = TaskSummary { status, answer, failure, approvals, has_started: false, behind, conversation };
        if summary.status == TaskStatus::Waiting {
            let task_id = task.clone();
            let look = self.state.society.look(move |spine| spine.turns.values().any(|turn| turn.task == task_id));
            summary.has_started = look.await?;
        }
        if summary.needs_person() {
            summary.approvals = self.approvals(Some(task)).await?;
            // Somebody has acted meanwhile.
            if summary.approvals.is_empty() {
                summary.status = TaskStatus::Waiting;
            }
        }
        Ok(summary)
    }

    /// What waits for a person, of one request or of all.
    pub(crate) async fn approvals(&self, task: Option<&TaskId>) -> Result<Vec<Approval>, Problem> {
        let all = self.api().approvals(&Paging::default()).await?.approvals;
        Ok(all.into_iter().filter(|approval| task.is_none_or(|task| approval.task_id == *task)).collect())
    }
}

/// Follows what is done for a request.
pub(crate) struct TaskFollower {
    peer: Peer,
    task: TaskId,
    watch: Watch,
    /// The turns that work on it.
    turns: HashMap<TurnId, TurnOwner>,
    /// The agent of its conversation, and its name for people.
    conversation: Option<(AgentId, String)>,
    /// The last event that was read.
    seen: Seq,
    /// When its standing is looked at again.
    due: Option<Instant>,
}

/// What changed for a request.
#[derive(Debug, PartialEq)]
pub(crate) enum TaskUpdate {
    /// Somebody began to do something for it, in words.
    Step(String),
    /// More of a reply that may become the answer.
    Text { effect: EffectId, text: String },
    /// A reply broke off: its text is void.
    Dropped(EffectId),
    /// It may stand elsewhere now.
    Changed,
    /// The society has ended; what was asked goes on when it runs again.
    Ended,
}

impl TaskFollower {
    /// From a place of the log on.
    pub(crate) async fn new(peer: &Peer, task: &TaskId, after: Seq) -> Result<Self, Problem> {
        let watch = peer.state.society.watch(after);
        let task_id = task.clone();
        let turns = peer.state.society.look(move |spine| {
            let own = spine.turns.iter().filter(|(_, turn)| turn.task == task_id);
            let turns = own.map(|(id, turn)| (*id, TurnOwner::new(&turn.agent, turn.origin, turn.reply_to))).collect();
            let conversation = spine.activities.get(&task_id).and_then(|activity| activity.conversation.clone());
            (turns, conversation.map(|agent| (agent.clone(), spine.shown_name(&agent).to_owned())))
        });
        let (turns, conversation) = turns.await?;
        // Where nothing more happens its standing is looked at all the same.
        let due = Some(Instant::now() + SOON);
        Ok(Self { turns, conversation, peer: peer.clone(), task: task.clone(), watch, seen: after, due })
    }

    /// Its state now.
    pub(crate) async fn summary(&mut self) -> Result<TaskSummary, Problem> {
        self.peer.summary(&self.task).await
    }

    /// The next thing to know. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<TaskUpdate, Problem> {
        loop {
            // Events come first, but a busy society must not delay the state for ever.
            let is_overdue = self.due.is_some_and(|due| Instant::now() > due + LATER);
            let seen = tokio::select! {
                biased;
                () = self.peer.state.closing.cancelled() => return Ok(TaskUpdate::Ended),
                seen = next_seen(&mut self.watch), if !is_overdue => seen?,
                () = until(self.due) => {
                    self.due = None;
                    return Ok(TaskUpdate::Changed);
                }
            };
            let recorded = match seen {
                WatchEvent::Event(recorded) => recorded,
                WatchEvent::Delta(delta) => match self.chunk(&delta) {
                    Some(update) => return Ok(update),
                    None => continue,
                },
                WatchEvent::Step(_) => continue,
            };
            self.seen = recorded.seq;
            if self.is_end(&recorded) {
                self.due = None;
                return Ok(TaskUpdate::Changed);
            }
            let (patience, step) = self.on_event(&recorded);
            let due = Instant::now() + patience;
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
            if let Some(step) = step {
                return Ok(TaskUpdate::Step(step));
            }
        }
    }

    /// The remaining steps and chunks up to the current end of the log: the state may have been read before them.
    pub(crate) async fn drain(&mut self) -> Result<Vec<TaskUpdate>, Problem> {
        let society = &self.peer.state.society;
        let head = society.log().readable_head(society.id()).await?;
        let mut chunks = Vec::new();
        while self.seen < head {
            match self.watch.next().await? {
                Some(WatchEvent::Event(recorded)) => {
                    self.seen = recorded.seq;
                    chunks.extend(self.on_event(&recorded).1.map(TaskUpdate::Step));
                }
                Some(WatchEvent::Delta(delta)) => chunks.extend(self.chunk(&delta)),
                Some(WatchEvent::Step(_)) => {}
                None => break,
            }
        }
        Ok(chunks)
    }

    /// A chunk of what may become the answer.
    fn chunk(&self, streamed: &StreamedDelta) -> Option<TaskUpdate> {
        self.turns.get(&streamed.effect.turn).filter(|worker| worker.answers_person)?;
        match &streamed.delta {
            Delta::Content(text) if !text.is_empty() => Some(TaskUpdate::Text { effect: streamed.effect, text: text.clone() }),
            Delta::Stopped | Delta::Error(_) => Some(TaskUpdate::Dropped(streamed.effect)),
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
    fn on_event(&mut self, recorded: &Recorded) -> (Duration, Option<String>) {
        if let Event::TurnStarted { agent, task, origin, reply_to, .. } = &recorded.event
            && task.id == self.task
        {
            self.turns.insert(TurnId(recorded.seq), TurnOwner::new(agent, *origin, *reply_to));
            return (SOON, None);
        }
        if let Event::MessageSent { envelope, .. } = &recorded.event
            && envelope.task_id == self.task
        {
            let is_message = envelope.to.is_user() && envelope.kind == MessageKind::Message;
            return (SOON, is_message.then(|| format!("{}: {}", self.shown_name(&envelope.from), envelope.payload.text)));
        }
        let turn = match &recorded.event {
            Event::TurnParked { turn, .. }
            | Event::TurnRested { turn }
            | Event::TurnResumed { turn, .. }
            | Event::TurnSettled { turn, .. } => Some(*turn),
            event => event.effect().map(|effect| effect.turn),
        };
        let Some(TurnOwner { agent, .. }) = turn.and_then(|turn| self.turns.get(&turn)) else { return (LATER, None) };
        let step = match &recorded.event {
            Event::EffectStarted { effect, .. } => step(effect).map(|step| format!("{} {step}", self.shown_name(agent))),
            _ => None,
        };
        (SOON, step)
    }
}

impl TaskFollower {
    /// The name of an agent for people.
    fn shown_name<'a>(&'a self, agent: &'a AgentId) -> &'a str {
        match &self.conversation {
            Some((own, name)) if own == agent => name,
            _ => agent.as_str(),
        }
    }
}

/// Whose a turn is.
struct TurnOwner {
    agent: AgentId,
    /// Whether its replies go to the person.
    answers_person: bool,
}

impl TurnOwner {
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

/// Describes the start of an effect. Approvals are part of the state instead.
fn step(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Model { model, .. } if model.is_empty() => Some("asks its model".to_owned()),
        Effect::Model { model, .. } => Some(format!("asks {model}")),
        Effect::Tool(call) if call.is_environment() => None,
        Effect::Tool(call) => Some(format!("calls {}", call.tool)),
        Effect::Ask { envelope, .. } => Some(format!("asks {}", envelope.to)),
        Effect::Terminate { agent, .. } => Some(format!("sends {agent} away")),
        Effect::Unit { behaviour, .. } => Some(format!("starts a part of the work ({behaviour})")),
        Effect::Keep(artifact) => Some(format!("keeps {}", artifact.name)),
        Effect::Sleep { .. } | Effect::Approval { .. } | Effect::Grant { .. } => None,
    }
}

/// What the person is shown: all of it.
pub(crate) fn describe_approval(approval: &Approval) -> String {
    let (mut message, call, visit) = match &approval.pending {
        Pending::Approval { question, call, .. } => (question.clone(), call.as_ref(), None),
        Pending::Question { question, call, wanted, .. } => {
            let visit = if let Wanted::Visit { url } = wanted { Some(url) } else { None };
            (question.clone(), call.as_ref(), visit)
        }
        Pending::InDoubt { call } => {
            let doubt = "A write was started and its result is unknown. Check: was it done?";
            (doubt.to_owned(), Some(call), None)
        }
        Pending::Parked { failure } => (format!("The work is parked: {}. Should it continue?", failure.message), None, None),
    };
    message.push_str(&format!("\n\nAgent: {}", approval.agent_id));
    if let Some(url) = visit {
        message.push_str(&format!("\nAddress to visit: {url}"));
    }
    if let Some(call) = call {
        message.push_str(&format!("\nTool: {}\nArguments: {}", call.tool, call.arguments));
    }
    if let Some(who) = approval.decided_by_others() {
        message.push_str(&format!("\nWho decides: {who}; you wait for them."));
    }
    message
}

#[cfg(test)]
mod tests {
    use polis_api::{ApiError, Decision, Submit};
    use polis_engine::{Cast, Options, Ports, Society};
    use polis_testkit::{MemoryLog, ProgrammedAgent, worker_role};

    use super::*;
    use crate::HostSettings;

    #[tokio::test]
    async fn a_peer_may_do_what_its_token_may() {
        let cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent);
        let ports = Ports::new(MemoryLog::new());
        let society = Society::open("main".into(), ports, cast, Options::new(7, worker_role())).await.unwrap();
        let state = SocietyState::new(society, HostSettings::default());
        let peer = |scopes: &str| Peer {
            state: state.clone(),
            caller: Caller::new("some".into(), "some".into(), scopes.parse().unwrap()),
        };
        let code = |result: Result<(), ApiError>| result.map_err(|error| error.code().to_owned());
        let request = || Submit { text: "[]".to_owned(), ..Submit::default() };
        let decision = || Decision::Again;
        assert_eq!(code(peer("read").api().tasks(&Paging::default()).await.map(drop)), Ok(()));
        assert_eq!(code(peer("read").api().submit(request()).await.map(drop)), Err("missing_scope".to_owned()));
        assert_eq!(code(peer("send").api().submit(request()).await.map(drop)), Ok(()));
        let denied = peer("read,send").api().resolve("1.0", decision()).await.map(drop);
        assert_eq!(code(denied), Err("missing_scope".to_owned()));
        let open = peer("approve").api().resolve("1.0", decision()).await.map(drop);
        assert_eq!(code(open), Err("not_open".to_owned()));
    }
}
