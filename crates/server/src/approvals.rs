//! What waits for a person: approvals, writes in doubt, and turns that stand still.

use axum::extract::State;
use axum::http::StatusCode;
use polis_domain::{
    AgentId, Always, Call, CallResult, Effect, EffectId, Event, Failure, Level, OpenKind, Outcome, Resolution, Seq, Spine,
    Stage, TaskId, ThreadId, Timestamp, TurnId, Verdict,
};
use polis_ports::ThreadRange;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::Json;
use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::Name;

/// What a model reads when a person says that a write in doubt was not done.
const NOT_DONE: &str = "a person looked: this was not done";

/// What a model reads when a person says that a write in doubt was done, and nothing more.
const DONE: &str = "a person looked: this was done";

#[derive(Serialize)]
pub(crate) struct Approvals {
    approvals: Vec<Approval>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Approval {
    id: String,
    agent_id: AgentId,
    task_id: TaskId,
    /// The main thread, and the path from there.
    thread: ThreadId,
    path: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum What {
    Approval {
        question: String,
        details: Value,
        /// The call that waits, with its arguments in full.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Call>,
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    InDoubt {
        call: Call,
    },
    Parked {
        failure: Failure,
    },
}

/// What a person says. Which words fit depends on what is asked.
#[derive(Deserialize)]
#[serde(try_from = "Spoken")]
pub(crate) enum Word {
    Verdict(Verdict),
    Done(Option<String>),
    NotDone(Option<String>),
    Again,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken {
    approved: Option<bool>,
    #[serde(default)]
    reason: String,
    /// For a call: other arguments, as an object or as JSON text.
    arguments: Option<Value>,
    /// For a call: `agent`, `task` or `tool`.
    always: Option<Always>,
    outcome: Option<String>,
    result: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Resolved {
    id: String,
}

/// What is open, before its details are read from the log.
struct Found {
    id: Target,
    agent: AgentId,
    task: TaskId,
    own: ThreadId,
    address: (ThreadId, String),
    parked: Option<Failure>,
}

#[derive(Clone, Copy)]
enum Target {
    Effect(EffectId),
    Turn(TurnId),
}

pub(crate) async fn approvals(State(desk): State<Desk>) -> Result<axum::Json<Approvals>, Problem> {
    let mut approvals = Vec::new();
    for found in desk.society.look(open).await? {
        let what = match (found.id, found.parked) {
            (_, Some(failure)) => Some(What::Parked { failure }),
            (Target::Effect(id), None) => details(&desk, id, &found.own).await?,
            (Target::Turn(_), None) => None,
        };
        let (thread, path) = found.address;
        let approval =
            |what| Approval { id: found.id.to_string(), agent_id: found.agent, task_id: found.task, thread, path, what };
        approvals.extend(what.map(approval));
    }
    Ok(axum::Json(Approvals { approvals }))
}

pub(crate) async fn resolve(
    State(desk): State<Desk>,
    Name(id): Name,
    Json(word): Json<Word>,
) -> Result<axum::Json<Resolved>, Problem> {
    let resolution = match (Target::read(&id)?, word) {
        (Target::Effect(id), word) => desk.society.resolve(id, word.into()).await,
        (Target::Turn(turn), Word::Again) => desk.society.resume(turn).await,
        (Target::Turn(_), _) => {
            let detail = "a turn that stands still can only go on ({\"outcome\": \"again\"}) or be cancelled with its task";
            return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail));
        }
    };
    resolution?;
    Ok(axum::Json(Resolved { id }))
}

fn open(spine: &Spine) -> Vec<Found> {
    let mut found = Vec::new();
    for (turn_id, turn) in &spine.turns {
        let (main, path) = spine.address(&turn.thread);
        let address = (main, path.to_string());
        let one = |id: Target, parked: Option<Failure>| Found {
            id,
            agent: turn.agent.clone(),
            task: turn.task.clone(),
            own: turn.thread.clone(),
            address: address.clone(),
            parked,
        };
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Grant(_));
        let asks = turn.open.iter().filter(|open| asks(&open.kind) || open.stage == Stage::InDoubt);
        found.extend(asks.map(|open| one(Target::Effect(EffectId { turn: *turn_id, n: open.n }), None)));
        found.extend(turn.parked.iter().map(|failure| one(Target::Turn(*turn_id), Some((**failure).clone()))));
    }
    found
}

/// What the effect is about, as it was stated in the log.
async fn details(desk: &Desk, id: EffectId, thread: &ThreadId) -> Result<Option<What>, Problem> {
    let range = ThreadRange { after: id.turn.0, ..ThreadRange::ALL };
    let events = desk.society.log().read_thread(desk.society.id(), thread, range).await?;
    Ok(events.into_iter().find_map(|recorded| match recorded.event {
        Event::EffectStarted { id: stated, effect, .. } if stated == id => match effect {
            Effect::Approval { question, details, call, deadline } => {
                Some(What::Approval { question, details, call, deadline })
            }
            Effect::Tool(call) => Some(What::InDoubt { call }),
            Effect::Grant { lacking } => Some(for_more(&lacking)),
            _ => None,
        },
        _ => None,
    }))
}

/// A budget that is used up is a question like any other.
fn for_more(lacking: &[Level]) -> What {
    let used_up = lacking.iter().map(Level::to_string).collect::<Vec<_>>().join("; ");
    let question = format!("{used_up}. May it go on, with as much again?");
    What::Approval { question, details: serde_json::json!({ "budget": lacking }), call: None, deadline: None }
}

impl Target {
    fn read(text: &str) -> Result<Self, Problem> {
        if let Ok(seq) = text.parse() {
            return Ok(Self::Turn(TurnId(Seq(seq))));
        }
        let bad = |error: polis_domain::BadEffectId| Problem::bad_request("bad_id", error.to_string());
        text.parse().map(Self::Effect).map_err(bad)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Effect(id) => id.fmt(f),
            Self::Turn(turn) => turn.fmt(f),
        }
    }
}

impl TryFrom<Spoken> for Word {
    type Error = &'static str;

    fn try_from(spoken: Spoken) -> Result<Self, Self::Error> {
        match (spoken.approved, spoken.outcome.as_deref()) {
            (Some(approved), None) => {
                let arguments = spoken.arguments.map(|arguments| match arguments {
                    Value::String(text) => text.into(),
                    other => other.to_string().into(),
                });
                Ok(Self::Verdict(Verdict { approved, reason: spoken.reason, arguments, always: spoken.always }))
            }
            (None, Some("done")) => Ok(Self::Done(spoken.result)),
            (None, Some("not_done")) => Ok(Self::NotDone(spoken.result)),
            (None, Some("again")) => Ok(Self::Again),
            _ => Err("say either `approved` (true or false) or `outcome` (done, not_done or again)"),
        }
    }
}

impl From<Word> for Resolution {
    fn from(word: Word) -> Self {
        let result =
            |content: String, is_error| Self::Outcome(Outcome::Result(CallResult { is_error, ..CallResult::good(content) }));
        match word {
            Word::Verdict(verdict) => Self::Outcome(Outcome::Verdict(verdict)),
            Word::Done(said) => result(said.unwrap_or_else(|| DONE.to_owned()), false),
            Word::NotDone(Some(said)) => result(format!("{NOT_DONE}: {said}"), true),
            Word::NotDone(None) => result(NOT_DONE.to_owned(), true),
            Word::Again => Self::Again,
        }
    }
}
