//! What waits for a person: approvals, writes in doubt, and turns that stand still.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use polis_domain::{
    AgentId, Always, Answer, Call, CallResult, Effect, EffectId, Event, Failure, Inquiry, InquiryId, Level, Matching,
    OpenInquiry, OpenKind, Outcome, Recorded, Refusal, Resolution, Seq, Spine, Stage, TaskId, ThreadId, Timestamp, TurnId,
    Verdict, Wanted, misfits,
};
use polis_engine::CommandError;
use polis_ports::ThreadRange;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::body::Json;
use crate::once::Keyed;
use crate::paging::{self, Paging};
use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::{Name, Wanted as Asked};

/// What a model reads when a person says that a write in doubt was not done.
const NOT_DONE: &str = "a person looked: this was not done";

/// What a model reads when a person says that a write in doubt was done, and nothing more.
const DONE: &str = "a person looked: this was done";

/// What waits for a person.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Approvals {
    approvals: Vec<Approval>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One thing that waits.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Approval {
    pub(crate) id: String,
    pub(crate) agent_id: AgentId,
    pub(crate) task_id: TaskId,
    /// The main thread, and the path from there.
    thread: ThreadId,
    path: String,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What it is that waits.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum What {
    Approval {
        question: String,
        details: Value,
        /// The call that waits, with its arguments in full.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// The form of the `arguments` that may be given with a yes, as a JSON schema: what else has its form is refused at once.
        /// Without a call and without this they change nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<Value>,
    },
    /// More than a yes is wanted; or a server asks while a call of ours runs there.
    Question {
        question: String,
        #[serde(skip_serializing_if = "Value::is_null")]
        details: Value,
        /// Agreement, a text or one of its options, a form with its schema, or the visit of an address.
        wanted: Wanted,
        /// The server that asks; none when it is the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<std::sync::Arc<str>>,
        /// The call that waits for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    InDoubt {
        call: Box<Call>,
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
    Cancelled,
}

/// A person's word: `approved` for a call, `answer` for a question, `outcome` for what is in doubt or stands still.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Word")]
pub(crate) struct Spoken {
    /// For a question: the words, or the object.
    #[serde(default, deserialize_with = "given")]
    answer: Option<Value>,
    approved: Option<bool>,
    #[serde(default)]
    reason: String,
    /// For a call: other arguments, as an object or as JSON text. For the plan of a workflow: an object with other `todos`, each
    /// with `id`, `description` and `priority`; `change` of what waits says it as a schema. What has another form is refused with
    /// every fault and its place, and nothing changes.
    arguments: Option<Value>,
    /// For a call: do not ask again about calls like this one by this `agent`, for this `task`, or by anybody (`tool`); or about
    /// any tool of the same server that only `reads` by its word.
    always: Option<Always>,
    /// With `always`: which calls are meant, as a pattern for each argument by its name; `*` stands for all other arguments. Without
    /// it, what `details.always` of the approval proposes.
    r#where: Option<Matching>,
    outcome: Option<String>,
    result: Option<String>,
}

/// What is there, be it null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What was answered.
#[derive(Serialize, JsonSchema)]
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
    Inquiry(InquiryId),
    Turn(TurnId),
}

pub(crate) async fn approvals(
    State(state): State<SocietyState>,
    Asked(paging): Asked<Paging>,
) -> Result<axum::Json<Approvals>, Problem> {
    let mut open = state.society.look(open).await?;
    open.sort_by_cached_key(|found| found.id.cursor());
    let (open, next) = paging.cut(open, |found| found.id.cursor());
    Ok(axum::Json(Approvals { approvals: shown(&state, open).await?, next }))
}

/// Everything that waits for a person.
pub(crate) async fn waiting(state: &SocietyState) -> Result<Vec<Approval>, Problem> {
    shown(state, state.society.look(open).await?).await
}

async fn shown(state: &SocietyState, open: Vec<Found>) -> Result<Vec<Approval>, Problem> {
    let mut approvals = Vec::new();
    for found in open {
        let what = match (found.id, found.parked) {
            (_, Some(failure)) => Some(What::Parked { failure }),
            (Target::Effect(id), None) => details(state, id, &found.own).await?,
            (Target::Inquiry(id), None) => asked(state, id, &found.own).await?,
            (Target::Turn(_), None) => None,
        };
        let (thread, path) = found.address;
        let approval =
            |what| Approval { id: found.id.to_string(), agent_id: found.agent, task_id: found.task, thread, path, what };
        approvals.extend(what.map(approval));
    }
    Ok(approvals)
}

pub(crate) async fn resolve(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(word): Json<Word>,
) -> Result<axum::Json<Resolved>, Problem> {
    settle(&state, &id, word).await?;
    Ok(axum::Json(Resolved { id }))
}

/// Says a word on what waits under this name.
pub(crate) async fn settle(state: &SocietyState, id: &str, word: Word) -> Result<(), Problem> {
    let resolution = match (Target::read(id)?, word) {
        (Target::Inquiry(id), Word::Verdict(verdict)) => state.society.reply(id, Some(verdict)).await,
        (Target::Inquiry(id), Word::Cancelled) => state.society.reply(id, None).await,
        (Target::Inquiry(_), _) => {
            let detail =
                "a server's question is answered (`answer`, or `approved`) or cancelled ({\"outcome\": \"cancelled\"})";
            return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail));
        }
        (Target::Effect(_), Word::Cancelled) => {
            let detail = "only a server's question can be cancelled; say no with {\"approved\": false}";
            return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail));
        }
        (Target::Effect(id), Word::Verdict(verdict)) => return decided(state, id, verdict).await,
        (Target::Effect(id), Word::Done(said)) => {
            state.society.resolve(id, looked(said.unwrap_or_else(|| DONE.to_owned()), false)).await
        }
        (Target::Effect(id), Word::NotDone(said)) => {
            let said = said.map_or_else(|| NOT_DONE.to_owned(), |said| format!("{NOT_DONE}: {said}"));
            state.society.resolve(id, looked(said, true)).await
        }
        (Target::Effect(id), Word::Again) => state.society.resolve(id, Resolution::Again).await,
        (Target::Turn(turn), Word::Again) => state.society.resume(turn).await,
        (Target::Turn(_), _) => {
            let detail = "a turn that stands still can only go on ({\"outcome\": \"again\"}) or be cancelled with its task";
            return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail));
        }
    };
    Ok(resolution?)
}

/// Answers what waits, for the person.
pub(crate) async fn say(state: &SocietyState, id: &str, verdict: Verdict) -> Result<(), Problem> {
    match Target::read(id)? {
        Target::Inquiry(id) => state.society.reply(id, Some(verdict)).await?,
        Target::Effect(id) => decided(state, id, verdict).await?,
        Target::Turn(_) => {
            let detail = "a turn that stands still is no question; it can only go on, or be cancelled with its task";
            return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail));
        }
    }
    Ok(())
}

/// Takes a person's word on an effect, if what they put in its place has the form that may stand there.
async fn decided(state: &SocietyState, id: EffectId, verdict: Verdict) -> Result<(), Problem> {
    if verdict.approved && (verdict.arguments.is_some() || verdict.matching.is_some()) {
        let own = state.society.look(move |spine| spine.turns.get(&id.turn).map(|turn| turn.thread.clone())).await?;
        let what = match own {
            Some(thread) => details(state, id, &thread).await?,
            None => None,
        };
        if let (Some(matching), Some(What::Approval { call: Some(call), .. })) = (&verdict.matching, &what)
            && !matching.covers(verdict.arguments.as_ref().unwrap_or(&call.arguments))
        {
            let why = format!("`where` does not cover this very call: {} where {matching}", call.tool);
            return Err(CommandError::Refused(Refusal::BadAnswer(why)).into());
        }
        if let (Some(arguments), Some(What::Approval { change: Some(form), .. })) = (&verdict.arguments, what) {
            let faults = match serde_json::from_str(arguments) {
                Ok(value) => misfits(&form, &value),
                Err(error) => vec![format!("it is no JSON: {error}")],
            };
            if !faults.is_empty() {
                return Err(CommandError::Refused(Refusal::BadAnswer(faults.join("; "))).into());
            }
        }
    }
    Ok(state.society.resolve(id, Resolution::Outcome(Outcome::Verdict(verdict))).await?)
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
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_));
        let asks = turn.open.iter().filter(|open| asks(&open.kind) || open.stage == Stage::InDoubt);
        found.extend(asks.map(|open| one(Target::Effect(EffectId { turn: *turn_id, n: open.n }), None)));
        let own =
            |(id, open): &(&InquiryId, &OpenInquiry)| id.call.turn == *turn_id && matches!(open, OpenInquiry::Person { .. });
        found.extend(spine.inquiries.iter().filter(own).map(|(id, _)| one(Target::Inquiry(*id), None)));
        found.extend(turn.parked.iter().map(|failure| one(Target::Turn(*turn_id), Some((**failure).clone()))));
    }
    found
}

/// Something that waited once, and what was said to it.
pub(crate) struct Settled {
    pub(crate) approval: Approval,
    pub(crate) turn: TurnId,
    /// Where.
    pub(crate) at: Seq,
    said: Said,
}

/// What was said.
enum Said {
    Verdict(Verdict),
    Done,
    NotDone,
    Again,
    Cancelled,
    /// Nobody said anything: its time was over, or it was called off.
    Nothing,
}

impl Settled {
    /// Whether a word says the same; how it is reasoned makes no difference.
    pub(crate) fn is_like(&self, word: &Word) -> bool {
        let read = |arguments: &Option<std::sync::Arc<str>>| -> Option<Value> {
            arguments.as_ref().and_then(|text| serde_json::from_str(text).ok())
        };
        match (&self.said, word) {
            (Said::Verdict(said), Word::Verdict(word)) => {
                said.approved == word.approved && said.answer == word.answer && read(&said.arguments) == read(&word.arguments)
            }
            (Said::Done, Word::Done(_))
            | (Said::NotDone, Word::NotDone(_))
            | (Said::Again, Word::Again)
            | (Said::Cancelled, Word::Cancelled) => true,
            _ => false,
        }
    }

    /// Whether nobody said anything.
    pub(crate) fn is_void(&self) -> bool {
        matches!(self.said, Said::Nothing)
    }
}

/// What was said to something of a request that waits no more; none where nothing of that name ever waited for it.
pub(crate) async fn settled(state: &SocietyState, id: &str, task: &TaskId) -> Result<Option<Settled>, Problem> {
    let Ok(target) = Target::read(id) else { return Ok(None) };
    let turn = match target {
        Target::Effect(id) => id.turn,
        Target::Inquiry(id) => id.call.turn,
        Target::Turn(turn) => turn,
    };
    let Some(before) = turn.0.0.checked_sub(1) else { return Ok(None) };
    let started = state.society.log().read(state.society.id(), Seq(before), 1).await?.pop();
    let Some(Recorded { event: Event::TurnStarted { agent, task: of, .. }, thread: Some(thread), .. }) = started else {
        return Ok(None);
    };
    if of.id != *task {
        return Ok(None);
    }
    let events = since(state, turn, &thread).await?;
    let Some((at, said)) = end_of(target, turn, &events) else { return Ok(None) };
    let what = match target {
        Target::Effect(id) => details(state, id, &thread).await?,
        Target::Inquiry(id) => asked(state, id, &thread).await?,
        Target::Turn(_) => Some(What::Parked { failure: Failure::new("parked", "it stood still") }),
    };
    let approval = |what| Approval { id: id.to_owned(), agent_id: agent, task_id: of.id, thread, path: String::new(), what };
    Ok(what.map(|what| Settled { approval: approval(what), turn, at, said }))
}

/// Where something that waits ceased to, and by what word.
fn end_of(target: Target, turn: TurnId, events: &[Recorded]) -> Option<(Seq, Said)> {
    let (mut was_open, mut is_doubted) = (false, false);
    for recorded in events {
        let said = match (target, &recorded.event) {
            (Target::Effect(id), Event::EffectStarted { id: other, effect, .. }) if id == *other => {
                was_open |= matches!(effect, Effect::Approval { .. } | Effect::Grant { .. });
                continue;
            }
            (Target::Effect(id), Event::EffectDoubted { id: other }) if id == *other => {
                (was_open, is_doubted) = (true, true);
                continue;
            }
            (Target::Effect(id), Event::EffectCleared { id: other }) if id == *other => Said::Again,
            (Target::Effect(id), Event::EffectEnded { id: other, outcome, .. }) if id == *other && was_open => match outcome {
                Outcome::Verdict(verdict) => Said::Verdict(verdict.clone()),
                Outcome::Result(result) if is_doubted && result.is_error => Said::NotDone,
                Outcome::Result(_) if is_doubted => Said::Done,
                _ => Said::Nothing,
            },
            (Target::Inquiry(id), Event::CallAnswered { id: other, answer, .. }) if id == *other => match answer {
                Answer::Verdict(verdict) => Said::Verdict(verdict.clone()),
                Answer::Cancelled => Said::Cancelled,
                Answer::Reply(_) | Answer::Failed(_) => Said::Nothing,
            },
            (Target::Turn(turn), Event::TurnParked { turn: other, .. }) if turn == *other => {
                was_open = true;
                continue;
            }
            (Target::Turn(turn), Event::TurnResumed { turn: other }) if turn == *other => Said::Again,
            (_, Event::TurnSettled { turn: other, .. }) if was_open && turn == *other => Said::Nothing,
            _ => continue,
        };
        return Some((recorded.seq, said));
    }
    None
}

/// What the effect is about, as it was stated in the log.
async fn details(state: &SocietyState, id: EffectId, thread: &ThreadId) -> Result<Option<What>, Problem> {
    let events = since(state, id.turn, thread).await?;
    Ok(events.into_iter().find_map(|recorded| match recorded.event {
        Event::EffectStarted { id: stated, effect, .. } if stated == id => match effect {
            Effect::Approval { question, details, call, deadline, wanted: Wanted::Agreement, change } => {
                Some(What::Approval { question, details, call, deadline, change })
            }
            Effect::Approval { question, details, call, deadline, wanted, .. } => {
                Some(What::Question { question, details, wanted, server: None, call, deadline })
            }
            Effect::Tool(call) => Some(What::InDoubt { call }),
            Effect::Grant { lacking, calls } => Some(for_more(&lacking, &calls)),
            _ => None,
        },
        _ => None,
    }))
}

/// What a server asks, and for which call.
async fn asked(state: &SocietyState, id: InquiryId, thread: &ThreadId) -> Result<Option<What>, Problem> {
    let mut call = None;
    for recorded in since(state, id.call.turn, thread).await? {
        match recorded.event {
            Event::EffectStarted { id: stated, effect: Effect::Tool(made), .. } if stated == id.call => call = Some(made),
            Event::CallInquired { by, inquiry: Inquiry::Person { question, details, .. }, .. } if recorded.seq == id.seq => {
                let (question, wanted) = (question.text, question.wanted);
                return Ok(Some(What::Question { question, details, wanted, server: Some(by), call, deadline: None }));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The events of a turn.
async fn since(state: &SocietyState, turn: TurnId, thread: &ThreadId) -> Result<Vec<Recorded>, Problem> {
    let range = ThreadRange { after: turn.0, ..ThreadRange::ALL };
    Ok(state.society.log().read_thread(state.society.id(), thread, range).await?)
}

/// What a person found who looked whether a write was done.
fn looked(content: String, is_error: bool) -> Resolution {
    Resolution::Outcome(Outcome::Result(CallResult { is_error, ..CallResult::good(content) }))
}

/// A budget that is used up is a question like any other. It says what was used, by whom, and what a yes and a no mean.
fn for_more(lacking: &[Level], calls: &BTreeMap<AgentId, u32>) -> What {
    let used_up = lacking.iter().map(Level::to_string).collect::<Vec<_>>().join("; ");
    let by_agent = calls.iter().map(|(agent, calls)| format!("{agent} {calls}")).collect::<Vec<_>>().join(", ");
    let by_agent = if by_agent.is_empty() { String::new() } else { format!(" Model calls for this request: {by_agent}.") };
    let question = format!(
        "{used_up}. May it go on, with as much again? After a no the agent's call fails and it ends with what it has.{by_agent}"
    );
    let details = serde_json::json!({ "budget": lacking, "calls": calls });
    What::Approval { question, details, call: None, deadline: None, change: None }
}

impl Target {
    /// Sorts them by turn, and within one by number.
    fn cursor(self) -> String {
        let turn = |turn: TurnId| paging::numbered(turn.0.0);
        match self {
            Self::Effect(id) => format!("{}.{:010}", turn(id.turn), id.n),
            Self::Inquiry(id) => format!("{}.{:010}.{}", turn(id.call.turn), id.call.n, paging::numbered(id.seq.0)),
            Self::Turn(id) => format!("{}.~", turn(id)),
        }
    }

    fn read(text: &str) -> Result<Self, Problem> {
        if let Ok(seq) = text.parse() {
            return Ok(Self::Turn(TurnId(Seq(seq))));
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Inquiry(id));
        }
        let bad = |error: polis_domain::BadEffectId| Problem::bad_request("bad_id", error.to_string());
        text.parse().map(Self::Effect).map_err(bad)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Effect(id) => id.fmt(f),
            Self::Inquiry(id) => id.fmt(f),
            Self::Turn(turn) => turn.fmt(f),
        }
    }
}

impl TryFrom<Spoken> for Word {
    type Error = &'static str;

    fn try_from(spoken: Spoken) -> Result<Self, Self::Error> {
        let approved = spoken.approved.or_else(|| spoken.answer.as_ref().map(|_| true));
        match (approved, spoken.outcome.as_deref()) {
            (Some(approved), None) => {
                let arguments = spoken.arguments.map(|arguments| match arguments {
                    Value::String(text) => text,
                    other => other.to_string(),
                });
                let is_object = |text: &String| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok();
                if !arguments.as_ref().is_none_or(is_object) {
                    return Err("`arguments` must be a JSON object");
                }
                let arguments = arguments.map(Into::into);
                Ok(Self::Verdict(Verdict {
                    approved,
                    reason: spoken.reason,
                    arguments,
                    always: spoken.always,
                    matching: spoken.r#where,
                    answer: spoken.answer,
                }))
            }
            (None, Some("done")) => Ok(Self::Done(spoken.result)),
            (None, Some("not_done")) => Ok(Self::NotDone(spoken.result)),
            (None, Some("again")) => Ok(Self::Again),
            (None, Some("cancelled")) => Ok(Self::Cancelled),
            _ => Err("say either `approved` (true or false), `answer`, or `outcome` (done, not_done, again or cancelled)"),
        }
    }
}

#[cfg(test)]
impl Approval {
    /// Something that waits, for tests of whoever shows it.
    pub(crate) fn for_test(id: &str, what: What) -> Self {
        let path = String::new();
        Self { id: id.to_owned(), agent_id: "root".into(), task_id: "t".into(), thread: "root".into(), path, what }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_arguments_are_an_object_or_nothing_is_said() {
        let said =
            |arguments: Value| serde_json::from_value::<Word>(json!({ "approved": true, "arguments": arguments })).is_ok();
        assert!(said(json!({ "a": 1 })) && said(json!("{\"a\": 1}")));
        assert!(![json!([1]), json!("text"), json!("[1]"), json!(7)].into_iter().any(said));
    }
}
