//! Reads pending approvals from the spine and the log, and carries out decisions.

use std::collections::BTreeMap;

use polis_domain::{
    AgentId, Answer, CallResult, Effect, EffectId, Event, Failure, Inquiry, InquiryId, Level, OpenEffect, OpenInquiry,
    OpenKind, Outcome, PersonId, Recorded, Refusal, Resolution, Seq, Spine, TaskId, ThreadId, TurnId, Verdict, Visibility,
    Wanted, misfits,
};
use polis_engine::{CommandError, Society};
use polis_ports::ThreadRange;
use serde_json::Value;

use super::Local;
use super::changes::{COMPARING, shown};
use crate::paging::numbered;
use crate::{ApiError, Approval, Approvals, Decision, Paging, Pending, PendingChange, Resolved, Scope};

/// What a model reads when a person states that a write in doubt was not done.
const NOT_DONE: &str = "a person looked: this was not done";

/// What a model reads when a person states that a write in doubt was done, without more detail.
const DONE: &str = "a person looked: this was done";

impl Local {
    /// The pending approvals.
    pub async fn approvals(&self, paging: &Paging) -> Result<Approvals, ApiError> {
        self.caller.needs(Scope::Read)?;
        let mut open = find(&self.society).await?;
        open.sort_by_cached_key(|found| found.id.cursor());
        let (open, next) = paging.cut(open, |found| found.id.cursor());
        // An approver reads what they are asked, and no more of a conversation that is not theirs.
        Ok(Approvals { approvals: with_details(&self.society.unlimited(), open, self.society.other_approvers()).await?, next })
    }

    /// What the call that waits under this id would change in a file, for those who see the approval.
    pub async fn pending_change(&self, id: &str) -> Result<PendingChange, ApiError> {
        self.caller.needs(Scope::Read)?;
        let Target::Effect(id) = Target::read(id)? else { return Ok(PendingChange::default()) };
        // A request that waits here holds no texts yet.
        let Ok(permit) = COMPARING.acquire().await else { return Ok(PendingChange::default()) };
        let open = find(&self.society).await?;
        let Some(found) = open.into_iter().find(|found| matches!(found.id, Target::Effect(other) if other == id)) else {
            return Ok(PendingChange::default());
        };
        let Some(Pending::Approval { call: Some(call), .. }) = details(&self.society.unlimited(), id, &found.own).await? else {
            return Ok(PendingChange::default());
        };
        let Some(change) = self.society.file_change(id.turn, &call).await? else { return Ok(PendingChange::default()) };
        let compared = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            shown(change)
        });
        Ok(PendingChange { file: compared.await.ok() })
    }

    /// Decides what waits under this id.
    pub async fn resolve(&self, id: &str, decision: Decision) -> Result<Resolved, ApiError> {
        self.caller.needs(Scope::Approve)?;
        settle(&self.society, id, decision).await?;
        Ok(Resolved { id: id.to_owned() })
    }
}

/// A pending approval, before its details are read from the log.
pub(super) struct OpenApproval {
    pub(super) id: Target,
    agent: AgentId,
    task: TaskId,
    own: ThreadId,
    address: (ThreadId, String),
    person: Option<PersonId>,
    /// Whether it is one that approvers decide.
    is_approval: bool,
    parked: Option<Failure>,
}

#[derive(Clone, Copy)]
pub(super) enum Target {
    Effect(EffectId),
    Inquiry(InquiryId),
    Turn(TurnId),
}

/// Everything that waits for a person.
pub async fn waiting(society: &Society) -> Result<Vec<Approval>, ApiError> {
    with_details(&society.unlimited(), find(society).await?, society.other_approvers()).await
}

async fn with_details(society: &Society, open: Vec<OpenApproval>, approvers: &[PersonId]) -> Result<Vec<Approval>, ApiError> {
    let mut approvals = Vec::new();
    for found in open {
        let what = match (found.id, found.parked) {
            (_, Some(failure)) => Some(Pending::Parked { failure }),
            (Target::Effect(id), None) => details(society, id, &found.own).await?,
            (Target::Inquiry(id), None) => inquiry_details(society, id, &found.own).await?,
            (Target::Turn(_), None) => None,
        };
        let (thread, path) = found.address;
        let approval = |pending| Approval {
            id: found.id.to_string(),
            agent_id: found.agent,
            task_id: found.task,
            thread,
            path,
            person: found.person,
            approvers: if found.is_approval { approvers.to_vec() } else { Vec::new() },
            pending,
        };
        approvals.extend(what.map(approval));
    }
    Ok(approvals)
}

/// Carries out a decision about what waits under this id.
pub async fn settle(society: &Society, id: &str, decision: Decision) -> Result<(), ApiError> {
    let resolution = match (Target::read(id)?, decision) {
        (Target::Inquiry(id), Decision::Verdict(verdict)) => society.reply(id, Some(verdict)).await,
        (Target::Inquiry(id), Decision::Cancelled) => society.reply(id, None).await,
        (Target::Inquiry(_), _) => {
            let detail =
                "a server's question is answered (`answer`, or `approved`) or cancelled ({\"outcome\": \"cancelled\"})";
            return Err(ApiError::new(409, "not_waiting", detail));
        }
        (Target::Effect(_), Decision::Cancelled) => {
            let detail = "only a server's question can be cancelled; deny with {\"approved\": false}";
            return Err(ApiError::new(409, "not_waiting", detail));
        }
        (Target::Effect(id), Decision::Verdict(verdict)) => return resolve_verdict(society, id, verdict).await,
        (Target::Effect(id), Decision::Done(result)) => {
            society.resolve(id, doubt_result(result.unwrap_or_else(|| DONE.to_owned()), false)).await
        }
        (Target::Effect(id), Decision::NotDone(result)) => {
            let result = result.map_or_else(|| NOT_DONE.to_owned(), |result| format!("{NOT_DONE}: {result}"));
            society.resolve(id, doubt_result(result, true)).await
        }
        (Target::Effect(id), Decision::Again) => society.resolve(id, Resolution::Again).await,
        (Target::Turn(turn), Decision::Again) => society.resume(turn).await,
        (Target::Turn(_), _) => {
            let detail = "a parked turn can only be resumed ({\"outcome\": \"again\"}) or be cancelled with its task";
            return Err(ApiError::new(409, "not_waiting", detail));
        }
    };
    Ok(resolution?)
}

/// Resolves an approval. Changed arguments must have the form that the approval allows.
async fn resolve_verdict(society: &Society, id: EffectId, verdict: Verdict) -> Result<(), ApiError> {
    if verdict.approved && (verdict.arguments.is_some() || verdict.matching.is_some()) {
        let own = society.look(move |spine| spine.turns.get(&id.turn).map(|turn| turn.thread.clone())).await?;
        let what = match own {
            Some(thread) if society.is_approver() => details(&society.unlimited(), id, &thread).await?,
            Some(thread) => details(society, id, &thread).await?,
            None => None,
        };
        if let (Some(matching), Some(Pending::Approval { call: Some(call), .. })) = (&verdict.matching, &what)
            && !matching.covers(verdict.arguments.as_ref().unwrap_or(&call.arguments))
        {
            let why = format!("`where` does not cover this call: {} where {matching}", call.tool);
            return Err(CommandError::Refused(Refusal::BadAnswer(why)).into());
        }
        if let (Some(arguments), Some(Pending::Approval { change: Some(form), .. })) = (&verdict.arguments, what) {
            let faults = match serde_json::from_str(arguments) {
                Ok(value) => misfits(&form, &value),
                Err(error) => vec![format!("it is no JSON: {error}")],
            };
            if !faults.is_empty() {
                return Err(CommandError::Refused(Refusal::BadAnswer(faults.join("; "))).into());
            }
        }
    }
    Ok(society.resolve(id, Resolution::Outcome(Outcome::Verdict(verdict))).await?)
}

/// Everything that waits for the person of a handle: what is theirs, and for an approver the approvals of others.
async fn find(society: &Society) -> Result<Vec<OpenApproval>, ApiError> {
    let (visibility, is_approver) = (society.visibility().clone(), society.is_approver());
    Ok(society.look(move |spine| open(spine, &visibility, is_approver)).await?)
}

/// Everything that waits for a person and can be seen, in the order of the turns.
pub(super) fn open(spine: &Spine, visibility: &Visibility, is_approver: bool) -> Vec<OpenApproval> {
    let mut found = Vec::new();
    for (turn_id, turn) in &spine.turns {
        let is_own = visibility.agent(spine, &turn.agent);
        if !is_own && !is_approver {
            continue;
        }
        let (main, path) = spine.address(&turn.thread);
        let address = (main, path.to_string());
        let person = spine.person(&turn.agent).cloned();
        let one = |id: Target, parked: Option<Failure>, is_approval: bool| OpenApproval {
            id,
            is_approval,
            person: person.clone(),
            agent: turn.agent.clone(),
            task: turn.task.clone(),
            own: turn.thread.clone(),
            address: address.clone(),
            parked,
        };
        let is_question = |open: &OpenEffect| is_own && matches!(open.kind, OpenKind::Question(_));
        let asks = turn.open.iter().filter(|open| open.is_approval() || is_question(open));
        found.extend(asks.map(|open| one(Target::Effect(EffectId { turn: *turn_id, n: open.n }), None, open.is_approval())));
        if !is_own {
            continue;
        }
        let own =
            |(id, open): &(&InquiryId, &OpenInquiry)| id.call.turn == *turn_id && matches!(open, OpenInquiry::Person { .. });
        found.extend(spine.inquiries.iter().filter(own).map(|(id, _)| one(Target::Inquiry(*id), None, false)));
        found.extend(turn.parked().map(|failure| one(Target::Turn(*turn_id), Some(failure.clone()), false)));
    }
    found
}

/// Something that waited once, and what was decided.
pub struct SettledApproval {
    /// The approval.
    pub approval: Approval,
    /// The turn that waited.
    pub turn: TurnId,
    /// The event that settled it.
    pub at: Seq,
    decision: PastDecision,
}

/// A decision in the log.
enum PastDecision {
    Verdict(Verdict),
    Done,
    NotDone,
    Again,
    Cancelled,
    /// Nobody decided: its time was over, or it was cancelled.
    None,
}

impl SettledApproval {
    /// Whether this decision is the same; its reason makes no difference.
    pub fn is_like(&self, decision: &Decision) -> bool {
        let read = |arguments: &Option<std::sync::Arc<str>>| -> Option<Value> {
            arguments.as_ref().and_then(|text| serde_json::from_str(text).ok())
        };
        match (&self.decision, decision) {
            (PastDecision::Verdict(past), Decision::Verdict(now)) => {
                past.approved == now.approved && past.answer == now.answer && read(&past.arguments) == read(&now.arguments)
            }
            (PastDecision::Done, Decision::Done(_))
            | (PastDecision::NotDone, Decision::NotDone(_))
            | (PastDecision::Again, Decision::Again)
            | (PastDecision::Cancelled, Decision::Cancelled) => true,
            _ => false,
        }
    }

    /// Whether nobody decided: its time was over, or it was cancelled.
    pub fn is_void(&self) -> bool {
        matches!(self.decision, PastDecision::None)
    }
}

/// The decision on an approval of a request that is no longer pending; none if there never was one with this id.
pub async fn settled(society: &Society, id: &str, task: &TaskId) -> Result<Option<SettledApproval>, ApiError> {
    let Ok(target) = Target::read(id) else { return Ok(None) };
    let turn = target.turn();
    let Some(before) = turn.0.0.checked_sub(1) else { return Ok(None) };
    let started = society.log().read(society.id(), Seq(before), 1).await?.pop().filter(|it| it.seq == turn.0);
    let Some(Recorded { event: Event::TurnStarted { agent, task: of, .. }, thread: Some(thread), .. }) = started else {
        return Ok(None);
    };
    if of.id != *task {
        return Ok(None);
    }
    let events = turn_events(society, turn, &thread).await?;
    let Some((at, decision)) = find_decision(target, turn, &events) else { return Ok(None) };
    let what = match target {
        Target::Effect(id) => details(society, id, &thread).await?,
        Target::Inquiry(id) => inquiry_details(society, id, &thread).await?,
        Target::Turn(_) => Some(Pending::Parked { failure: Failure::new("parked", "it stood still") }),
    };
    let path = String::new();
    let approval = |pending| Approval {
        id: id.to_owned(),
        agent_id: agent,
        task_id: of.id,
        thread,
        path,
        person: None,
        approvers: Vec::new(),
        pending,
    };
    Ok(what.map(|pending| SettledApproval { approval: approval(pending), turn, at, decision }))
}

/// Where something stopped waiting, and by which decision.
fn find_decision(target: Target, turn: TurnId, events: &[Recorded]) -> Option<(Seq, PastDecision)> {
    let (mut was_open, mut is_doubted) = (false, false);
    for recorded in events {
        let decision = match (target, &recorded.event) {
            (Target::Effect(id), Event::EffectStarted { id: other, effect, .. }) if id == *other => {
                was_open |= matches!(effect, Effect::Approval { .. } | Effect::Grant { .. });
                continue;
            }
            (Target::Effect(id), Event::EffectDoubted { id: other }) if id == *other => {
                (was_open, is_doubted) = (true, true);
                continue;
            }
            (Target::Effect(id), Event::EffectCleared { id: other, .. }) if id == *other => PastDecision::Again,
            (Target::Effect(id), Event::EffectEnded { id: other, outcome, .. }) if id == *other && was_open => match outcome {
                Outcome::Verdict(verdict) => PastDecision::Verdict(verdict.clone()),
                Outcome::Result(result) if is_doubted && result.is_error => PastDecision::NotDone,
                Outcome::Result(_) if is_doubted => PastDecision::Done,
                _ => PastDecision::None,
            },
            (Target::Inquiry(id), Event::CallAnswered { id: other, answer, .. }) if id == *other => match answer {
                Answer::Verdict(verdict) => PastDecision::Verdict(verdict.clone()),
                Answer::Cancelled => PastDecision::Cancelled,
                Answer::Reply(_) | Answer::Failed(_) => PastDecision::None,
            },
            (Target::Turn(turn), Event::TurnParked { turn: other, .. }) if turn == *other => {
                was_open = true;
                continue;
            }
            (Target::Turn(turn), Event::TurnResumed { turn: other, .. }) if turn == *other => PastDecision::Again,
            (_, Event::TurnSettled { turn: other, .. }) if was_open && turn == *other => PastDecision::None,
            _ => continue,
        };
        return Some((recorded.seq, decision));
    }
    None
}

/// The details of an approval, from the event that started its effect.
async fn details(society: &Society, id: EffectId, thread: &ThreadId) -> Result<Option<Pending>, ApiError> {
    let events = turn_events(society, id.turn, thread).await?;
    Ok(events.into_iter().find_map(|recorded| match recorded.event {
        Event::EffectStarted { id: stated, effect, .. } if stated == id => match effect {
            Effect::Approval { question, details, call, deadline, wanted: Wanted::Agreement, change } => {
                Some(Pending::Approval { question, details, call, deadline, change })
            }
            Effect::Approval { question, details, call, deadline, wanted, .. } => {
                Some(Pending::Question { question, details, wanted, server: None, call, deadline })
            }
            Effect::Tool(call) => Some(Pending::InDoubt { call }),
            Effect::Grant { lacking, calls } => Some(budget_question(&lacking, &calls)),
            _ => None,
        },
        _ => None,
    }))
}

/// The details of a server's question, and its call.
async fn inquiry_details(society: &Society, id: InquiryId, thread: &ThreadId) -> Result<Option<Pending>, ApiError> {
    let mut call = None;
    for recorded in turn_events(society, id.call.turn, thread).await? {
        match recorded.event {
            Event::EffectStarted { id: stated, effect: Effect::Tool(made), .. } if stated == id.call => call = Some(made),
            Event::CallInquired { by, inquiry: Inquiry::Person { question, details, .. }, .. } if recorded.seq == id.seq => {
                let (question, wanted) = (question.text, question.wanted);
                return Ok(Some(Pending::Question { question, details, wanted, server: Some(by), call, deadline: None }));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The events of a turn.
async fn turn_events(society: &Society, turn: TurnId, thread: &ThreadId) -> Result<Vec<Recorded>, ApiError> {
    let range = ThreadRange { after: turn.0, ..ThreadRange::ALL };
    Ok(society.log().read_thread(society.id(), thread, range).await?)
}

/// The result of a write in doubt, as a person found it.
fn doubt_result(content: String, is_error: bool) -> Resolution {
    Resolution::Outcome(Outcome::Result(CallResult { is_error, ..CallResult::good(content) }))
}

/// A used-up budget as a question: what was used, by which agent, and what a yes and a no mean.
fn budget_question(lacking: &[Level], calls: &BTreeMap<AgentId, u32>) -> Pending {
    let used_up = lacking.iter().map(Level::to_string).collect::<Vec<_>>().join("; ");
    let by_agent = calls.iter().map(|(agent, calls)| format!("{agent} {calls}")).collect::<Vec<_>>().join(", ");
    let by_agent = if by_agent.is_empty() { String::new() } else { format!(" Model calls for this request: {by_agent}.") };
    let question = format!(
        "{used_up}. May it go on, with as much again? After a no the agent's call fails and it ends with what it has.{by_agent}"
    );
    let details = serde_json::json!({ "budget": lacking, "calls": calls });
    Pending::Approval { question, details, call: None, deadline: None, change: None }
}

impl Target {
    /// The turn that waits.
    pub(super) fn turn(self) -> TurnId {
        match self {
            Self::Effect(id) => id.turn,
            Self::Inquiry(id) => id.call.turn,
            Self::Turn(id) => id,
        }
    }

    /// Sorts them by turn, and within one by number.
    fn cursor(self) -> String {
        let turn = |turn: TurnId| numbered(turn.0.0);
        match self {
            Self::Effect(id) => format!("{}.{:010}", turn(id.turn), id.n),
            Self::Inquiry(id) => format!("{}.{:010}.{}", turn(id.call.turn), id.call.n, numbered(id.seq.0)),
            Self::Turn(id) => format!("{}.~", turn(id)),
        }
    }

    fn read(text: &str) -> Result<Self, ApiError> {
        if let Ok(seq) = text.parse() {
            return Ok(Self::Turn(TurnId(Seq(seq))));
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Inquiry(id));
        }
        let bad = |error: polis_domain::BadEffectId| ApiError::bad_request("bad_id", error.to_string());
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
