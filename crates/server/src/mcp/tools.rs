//! The tools: give the society something to do, say something to an agent, look, decide for the person, cancel. Each is an
//! operation of `polis-api`, and its input schema is the one of the operation's request. What is wrong with a call is a result
//! that says so, for the model to read.

use std::time::Duration;

use polis_api::{Accepted, ApiError, Approval, Cancel, Decision, DecisionRequest, Paging, Send, Submit, TaskStatus};
use polis_domain::{Seq, TaskId};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::client_forms::FormSender;
use super::in_flight::InFlightRequest;
use super::{Call, Progress, elicitation};
use crate::caller::Scope;
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::task_follower::{Peer, TaskFollower, TaskSummary, TaskUpdate, busy_message};

/// How long a call waits for an answer where it does not say, and at most.
const USUAL_WAIT: f64 = 50.0;
const LONGEST_WAIT: f64 = 3_600.0;

/// The argument with the time to wait.
const WAIT: &str = "waitSeconds";

/// Said to a model whose request waits for a person.
const DECIDE: &str = "a person must decide; show them `approvals`, then call `approve` with the id and their decision";

/// Said to a model that did not wait to the end.
const LATER: &str = "still running; call `status` with the taskId later";

/// What a tool gave, or why it did nothing.
type ToolOutput = Result<Value, Problem>;

/// How long a call waits.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is wanted; the argument is taken before the request is read")]
struct WaitArgument {
    /// How many seconds to wait for the answer; 0 does not wait. The work goes on in any case.
    #[schemars(range(min = 0.0, max = LONGEST_WAIT), default)]
    wait_seconds: f64,
}

/// What `status` is asked about.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatusRequest {
    /// The request; without it, all that are under way.
    task_id: Option<TaskId>,
}

/// Which request a call is about.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TaskArgument {
    /// The request.
    task_id: TaskId,
}

/// Which decision a call is about.
#[derive(Deserialize, JsonSchema)]
struct ApprovalArgument {
    /// What is decided, as `approvals` has it.
    id: String,
}

pub(super) fn list() -> Value {
    let summary = summary_schema();
    let waiting = |request: Value, usual: f64| {
        let mut schema = joined(schema::<WaitArgument>(), request);
        schema["properties"][WAIT]["default"] = json!(usual);
        schema
    };
    json!([
        {
            "name": "submit",
            "title": "Submit a request",
            "description": "Submits a new request to the society and waits for its answer. The request is durable: it continues even if no client waits.",
            "inputSchema": waiting(schema::<Submit>(), USUAL_WAIT),
            "outputSchema": summary,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "send",
            "title": "Send a message to an agent",
            "description": "Sends a message to one agent, within an existing request or as a new one, and waits for the answer. `status` lists the agents.",
            "inputSchema": waiting(schema::<Send>(), USUAL_WAIT),
            "outputSchema": summary,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "status",
            "title": "Get the state of requests",
            "description": "Returns the state of a request, with its answer once there is one; without a taskId, the open requests, the agents, and what waits for a person.",
            "inputSchema": waiting(schema::<StatusRequest>(), 0.0),
            "outputSchema": { "type": "object", "required": ["tasks", "approvals"], "properties": {
                "tasks": { "type": "array", "items": summary },
                "approvals": approvals_schema(),
                "agents": { "type": "array", "items": { "type": "object" } },
            } },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": "approve",
            "title": "Decide what waits for a person",
            "description": "Passes on a person's decision on a pending item. Only pass on what the person has decided. Give `approved` for an approval, `answer` for a question, `outcome` for a write whose result is unknown.",
            "inputSchema": joined(schema::<ApprovalArgument>(), schema::<DecisionRequest>()),
            "outputSchema": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "cancel",
            "title": "Cancel a request",
            "description": "Cancels a request, with everything that is done for it.",
            "inputSchema": joined(schema::<TaskArgument>(), schema::<Cancel>()),
            "outputSchema": summary,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false },
        },
    ])
}

/// The schema of a request as a client may send it, without references.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of an object with the fields of both; no other fields are allowed.
fn joined(first: Value, second: Value) -> Value {
    let of = |key: &str| [&first, &second].map(|schema| schema[key].clone());
    let properties: Map<_, _> = of("properties").into_iter().filter_map(into_object).flatten().collect();
    let required: Vec<_> = of("required").iter().filter_map(Value::as_array).flatten().cloned().collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(map) = value { Some(map) } else { None }
}

fn summary_schema() -> Value {
    json!({ "type": "object", "required": ["taskId", "status"], "properties": {
        "taskId": { "type": "string" },
        "status": { "type": "string", "enum": ["running", "waiting", "needs_person", "done", "partial", "failed", "cancelled"] },
        "conversation": { "type": "string" },
        "answer": { "type": "string" },
        "failure": { "type": "object", "properties": { "code": { "type": "string" }, "message": { "type": "string" } } },
        "approvals": approvals_schema(),
        "hint": { "type": "string" },
    } })
}

fn approvals_schema() -> Value {
    json!({ "type": "array", "items": { "type": "object", "required": ["id", "kind"], "properties": {
        "id": { "type": "string" },
        "kind": { "type": "string", "enum": ["approval", "question", "in_doubt", "parked"] },
        "question": { "type": "string" },
        "taskId": { "type": "string" },
        "agentId": { "type": "string" },
    } } })
}

/// Whether a call may take long.
pub(super) fn waits(params: &Map<String, Value>) -> bool {
    let wait = params.get("arguments").and_then(|arguments| arguments.get(WAIT)).and_then(Value::as_f64);
    match params.get("name").and_then(Value::as_str) {
        Some("submit" | "send") => wait != Some(0.0),
        Some("status") => wait.is_some_and(|wait| wait > 0.0),
        _ => false,
    }
}

pub(super) async fn call(
    call: &Call,
    progress: Option<Progress>,
    forms: Option<&FormSender>,
    in_flight: &InFlightRequest,
) -> Result<Value, Fault> {
    let name = call.params.get("name").and_then(Value::as_str).ok_or_else(|| Fault::invalid("`name` is missing"))?;
    let mut arguments = match call.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(Fault::invalid("`arguments` must be an object")),
    };
    let usual = if name == "status" { 0.0 } else { USUAL_WAIT };
    let wait = match arguments.remove(WAIT) {
        None => usual,
        Some(wait) => match wait.as_f64().filter(|wait| (0.0..=LONGEST_WAIT).contains(wait)) {
            Some(wait) => wait,
            None => return Ok(error_result(&format!("`{WAIT}` must be a number from 0 to {LONGEST_WAIT} (bad_arguments)"))),
        },
    };
    let mut waiting = CallWait { peer: &call.peer, max_wait: Duration::from_secs_f64(wait), progress, forms, in_flight };
    let done = match name {
        "submit" | "send" | "status" if call.params.contains_key("requestState") => again(call, name, waiting).await,
        "submit" => match read(arguments) {
            Ok(request) => waiting.begin(call.peer.api().submit(request).await, true).await,
            Err(problem) => Err(problem),
        },
        "send" => match read::<Send>(arguments) {
            Ok(request) => match (request.task_id.is_none(), call.peer.caller.needs(Scope::Read)) {
                // Results of other clients' requests need the scope `read`; refused before anything is sent.
                (false, Err(error)) => Err(error.into()),
                (is_new, _) => waiting.begin(call.peer.api().send(request).await, is_new).await,
            },
            Err(problem) => Err(problem),
        },
        "status" => match read(arguments) {
            Ok(StatusRequest { task_id: Some(task) }) => waiting.end(&task, None).await,
            Ok(StatusRequest { task_id: None }) => return Ok(result(overview(&call.peer).await)),
            Err(problem) => Err(problem),
        },
        "approve" => return Ok(result(approve(&call.peer, arguments).await)),
        "cancel" => cancel(&call.peer, arguments).await,
        _ => return Err(Fault::invalid(format!("there is no tool `{name}`"))),
    };
    let (task, summary) = match done {
        Ok(done) => done,
        Err(problem) => return Ok(result(Err(problem))),
    };
    if summary.needs_person()
        && call.era.shows_forms()
        && !elicitation::is_declined(&call.params)
        && let Some(requests) = elicitation::forms(&summary.approvals)
    {
        return Ok(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": task.as_str() }));
    }
    let json = summary_json(&task, &summary);
    let json = match name {
        "status" => json!({ "tasks": [json], "approvals": summary.approvals }),
        _ => json,
    };
    let mut result = result(Ok(json));
    result["isError"] = json!(name != "status" && summary.status == TaskStatus::Failed);
    Ok(result)
}

/// The client returns with the person's input. Nothing is started a second time.
async fn again(call: &Call, name: &str, mut waiting: CallWait<'_>) -> Result<(TaskId, TaskSummary), Problem> {
    let task = call.params.get("requestState").and_then(Value::as_str).unwrap_or_default().into();
    // It must be there, whatever the client made of it.
    let summary = call.peer.summary(&task).await?;
    for (id, decision) in elicitation::decisions(&summary.approvals, &call.params)? {
        resolve(&call.peer, &id, decision).await?;
    }
    let own = (name != "status").then_some(Seq(0));
    waiting.end(&task, own).await
}

/// A call that waits.
struct CallWait<'a> {
    peer: &'a Peer,
    max_wait: Duration,
    progress: Option<Progress>,
    /// Shows forms within the call, if the client takes them.
    forms: Option<&'a FormSender>,
    in_flight: &'a InFlightRequest,
}

impl CallWait<'_> {
    /// Waits for the result of a request that was just accepted.
    async fn begin(&mut self, accepted: Result<Accepted, ApiError>, is_new: bool) -> Result<(TaskId, TaskSummary), Problem> {
        let Accepted { task_id: task, seq, .. } = accepted?;
        if is_new {
            let peer = self.peer.with_read_scope();
            let mut own = CallWait { peer: &peer, progress: self.progress.take(), ..*self };
            return own.end(&task, Some(seq)).await;
        }
        self.end(&task, None).await
    }

    /// Waits until the request is over, a person must act, or the time is up. Cancelling the call also cancels the request that
    /// it started, at a position of the log; a call that only reads the state cancels nothing.
    async fn end(&mut self, task: &TaskId, started_at: Option<Seq>) -> Result<(TaskId, TaskSummary), Problem> {
        let is_new = started_at.is_some_and(|seq| seq > Seq(0));
        let head = match started_at {
            Some(seq) if is_new => seq,
            _ => self.peer.state.society.log().readable_head(self.peer.state.society.id()).await?,
        };
        let mut follow = TaskFollower::new(self.peer, task, head).await?;
        // The progress of a new request is reported from its first step on, even if it is already over.
        let mut summary = if is_new && !self.max_wait.is_zero() { TaskSummary::running() } else { follow.summary().await? };
        let mut deadline = Instant::now() + self.max_wait;
        // What the person would not decide in a form.
        let mut declined = Vec::new();
        loop {
            if summary.needs_person() {
                let shown = summary.approvals.iter().find(|approval| !declined.contains(&approval.id));
                let (Some(forms), Some(approval)) = (self.forms, shown) else { break };
                let began = Instant::now();
                match self.decide(forms, approval, &mut follow).await? {
                    FormOutcome::Decided => {}
                    FormOutcome::Declined => declined.push(approval.id.clone()),
                    FormOutcome::Cancelled => {
                        self.cancel(task, started_at).await?;
                        break;
                    }
                    FormOutcome::Late => break,
                }
                // A person's time is not the society's.
                deadline += began.elapsed();
                summary = follow.summary().await?;
                continue;
            }
            if summary.has_stopped() {
                break;
            }
            let update = tokio::select! {
                biased;
                () = self.in_flight.cancelled() => {
                    self.cancel(task, started_at).await?;
                    break;
                }
                update = follow.next() => update?,
                () = tokio::time::sleep_until(deadline) => break,
            };
            match update {
                TaskUpdate::Step(words) => {
                    if let Some(progress) = &mut self.progress {
                        progress.report(&words);
                    }
                }
                TaskUpdate::Text { .. } | TaskUpdate::Dropped(_) => {}
                TaskUpdate::Changed => summary = follow.summary().await?,
                TaskUpdate::Ended => break,
            }
        }
        // The state may have been read before the last steps were.
        if let Some(progress) = &mut self.progress {
            for update in follow.drain().await? {
                if let TaskUpdate::Step(words) = update {
                    progress.report(&words);
                }
            }
        }
        Ok((task.clone(), summary))
    }

    /// Cancels the request that the call has started, if it has.
    async fn cancel(&self, task: &TaskId, started_at: Option<Seq>) -> Result<(), Problem> {
        if started_at.is_some() {
            let reason = "the MCP client cancelled its request".to_owned();
            self.peer.api().cancel(task, Cancel { reason, turn: None }).await?;
        }
        Ok(())
    }

    /// Has the client show a form until the person has answered it, or it was decided elsewhere.
    async fn decide(&self, forms: &FormSender, approval: &Approval, follow: &mut TaskFollower) -> Result<FormOutcome, Problem> {
        let mut open = forms.show(&elicitation::form(approval)).await;
        let latest = Instant::now() + Duration::from_secs_f64(LONGEST_WAIT);
        let response = loop {
            tokio::select! {
                biased;
                () = self.in_flight.cancelled() => return Ok(FormOutcome::Cancelled),
                response = open.answered() => break response,
                update = follow.next() => match update? {
                    TaskUpdate::Ended => return Ok(FormOutcome::Late),
                    TaskUpdate::Changed => {
                        let waits = follow.summary().await?.approvals.iter().any(|other| other.id == approval.id);
                        if !waits {
                            return Ok(FormOutcome::Decided);
                        }
                    }
                    _ => {}
                },
                () = tokio::time::sleep_until(latest) => return Ok(FormOutcome::Late),
            }
        };
        let Some(decision) = elicitation::decision(approval, &response)? else { return Ok(FormOutcome::Declined) };
        resolve(self.peer, &approval.id, decision).await?;
        Ok(FormOutcome::Decided)
    }
}

/// What became of a form.
enum FormOutcome {
    /// The person has decided, here or elsewhere.
    Decided,
    /// They would not decide; they are not asked once more.
    Declined,
    /// The client no longer waits for the call.
    Cancelled,
    /// Nothing was said for too long, or the society stops.
    Late,
}

/// Passes on a decision. That somebody else has decided meanwhile is as good.
async fn resolve(peer: &Peer, id: &str, decision: Decision) -> Result<(), Problem> {
    match peer.api().resolve(id, decision).await {
        Err(error) if error.code() != "not_open" => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn overview(peer: &Peer) -> ToolOutput {
    let open = peer.api().tasks(&Paging::default()).await?.tasks;
    let tasks: Vec<Value> = open.iter().map(|task| json!({ "taskId": task.id, "status": task.status })).collect();
    let agents = peer.api().agents(&Paging::default()).await?.agents;
    Ok(json!({ "tasks": tasks, "approvals": peer.approvals(None).await?, "agents": agents }))
}

async fn approve(peer: &Peer, mut arguments: Map<String, Value>) -> ToolOutput {
    let ApprovalArgument { id } = named(&mut arguments, "id")?;
    Ok(json!(peer.api().resolve(&id, read::<Decision>(arguments)?).await?))
}

async fn cancel(peer: &Peer, mut arguments: Map<String, Value>) -> Result<(TaskId, TaskSummary), Problem> {
    let TaskArgument { task_id: task } = named(&mut arguments, "taskId")?;
    peer.api().cancel(&task, read(arguments)?).await?;
    let summary = peer.with_read_scope().summary(&task).await?;
    Ok((task, summary))
}

/// The arguments of a tool as the request of an operation.
fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Problem> {
    let bad =
        |error: serde_json::Error| Problem::bad_request("bad_arguments", format!("the arguments cannot be used: {error}"));
    serde_json::from_value(Value::Object(arguments)).map_err(bad)
}

/// Takes the argument that names what the rest is about.
fn named<T: DeserializeOwned>(arguments: &mut Map<String, Value>, name: &str) -> Result<T, Problem> {
    match arguments.remove(name) {
        Some(Value::String(id)) if !id.is_empty() => read(Map::from_iter([(name.to_owned(), Value::String(id))])),
        _ => Err(Problem::bad_request("bad_arguments", format!("`{name}` is missing; see `status`"))),
    }
}

/// The state of a request as the tools return it.
fn summary_json(task: &TaskId, summary: &TaskSummary) -> Value {
    let mut json = json!({ "taskId": task.as_str(), "status": summary.status_name() });
    if let Some(conversation) = &summary.conversation {
        json["conversation"] = json!(conversation);
    }
    if let Some(answer) = &summary.answer {
        json["answer"] = json!(answer);
    }
    if let Some(failure) = &summary.failure {
        json["failure"] = json!(failure);
    }
    if summary.needs_person() {
        json["approvals"] = json!(summary.approvals);
        json["hint"] = json!(DECIDE);
    } else if let Some(agent) = &summary.behind {
        json["hint"] = json!(busy_message(agent));
    } else if !summary.is_over() {
        json["hint"] = json!(LATER);
    }
    json
}

/// What a tool gave, for programs and for models.
fn result(done: ToolOutput) -> Value {
    match done {
        Ok(json) => {
            json!({ "content": [{ "type": "text", "text": json.to_string() }], "structuredContent": json, "isError": false })
        }
        Err(problem) => error_result(&format!("{} ({})", problem.detail(), problem.code())),
    }
}

fn error_result(why: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": why }], "isError": true })
}
