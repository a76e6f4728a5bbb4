//! The tools: give the society something to do, say something to an agent, look, decide for the person, call off. Each is done
//! by a route that everybody has; what is wrong with a call is a result that says so, for the model to read.

use std::time::Duration;

use polis_api::{Accepted, ApiError, Cancel, Decision, Paging, TaskStatus};
use polis_domain::{Seq, TaskId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::flights::Flight;
use super::{Call, Progress, person};
use crate::caller::Scope;
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::work::{Follow, Heard, Peer, Standing, busy};

/// How long a call waits for an answer where it does not say, and at most.
const USUAL_WAIT: f64 = 50.0;
const LONGEST_WAIT: f64 = 3_600.0;

/// The argument that says how long.
const WAIT: &str = "waitSeconds";

/// Said to a model whose request waits for a person.
const DECIDE: &str = "a person must decide; show them `approvals`, then call `approve` with the id and their decision";

/// Said to a model that did not wait to the end.
const LATER: &str = "still running; call `status` with the taskId later";

/// What a tool gave, or why it did nothing.
type Done = Result<Value, Problem>;

pub(super) fn list() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let wait = |usual: f64| {
        json!({ "type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": usual,
            "description": "How many seconds to wait for the answer; 0 does not wait. The work continues in any case." })
    };
    let standing = standing_schema();
    json!([
        {
            "name": "submit",
            "title": "Submit a request",
            "description": "Submits a new request to the society and waits for its answer. The request is durable: it continues even if no client waits.",
            "inputSchema": { "type": "object", "additionalProperties": false, "required": ["text"], "properties": {
                "text": text("The request."),
                "strategy": { "type": "string", "enum": ["auto", "simple", "workflow"], "description": "How to handle the request; by default the society chooses." },
                WAIT: wait(USUAL_WAIT),
            } },
            "outputSchema": standing,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "send",
            "title": "Send a message to an agent",
            "description": "Sends a message to one agent, within an existing request or as a new one, and waits for the answer. `status` lists the agents.",
            "inputSchema": { "type": "object", "additionalProperties": false, "required": ["agentId", "text"], "properties": {
                "agentId": text("The agent, for example root."),
                "text": text("The message."),
                "taskId": text("The request that it belongs to; by default a new one."),
                WAIT: wait(USUAL_WAIT),
            } },
            "outputSchema": standing,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "status",
            "title": "Get the state of requests",
            "description": "Returns the state of a request, with its answer once there is one; without a taskId, the open requests, the agents, and what waits for a person.",
            "inputSchema": { "type": "object", "additionalProperties": false, "properties": {
                "taskId": text("The request."),
                WAIT: wait(0.0),
            } },
            "outputSchema": { "type": "object", "required": ["tasks", "approvals"], "properties": {
                "tasks": { "type": "array", "items": standing },
                "approvals": approvals_schema(),
                "agents": { "type": "array", "items": { "type": "object" } },
            } },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": "approve",
            "title": "Decide what waits for a person",
            "description": "Passes on a person's decision on a pending item. Only pass on what the person has decided. Give `approved` for an approval, `answer` for a question, `outcome` for a write whose result is unknown.",
            "inputSchema": { "type": "object", "additionalProperties": false, "required": ["id"], "properties": {
                "id": text("The id of the pending item, from `approvals`."),
                "approved": { "type": "boolean", "description": "Whether it is approved." },
                "reason": text("The reason, for the agent to read."),
                "answer": { "description": "The answer to a question: a text, or an object that fits its form." },
                "arguments": { "type": "object", "description": "New arguments for the pending call." },
                "always": { "type": "string", "enum": ["agent", "task", "tool", "reads"], "description": "Do not ask again about similar calls: by this agent, for this request, or by any agent; or about any tool of its server that only reads." },
                "where": { "type": "object", "description": "With `always`: which calls, as {\"argument\": {\"is\"|\"like\"|\"atMost\": …}}; without it what the approval proposes." },
                "outcome": { "type": "string", "enum": ["done", "not_done", "again", "cancelled"], "description": "For a write in doubt: what the person found. `again` also resumes a parked turn." },
                "result": text("What the person found."),
            } },
            "outputSchema": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        },
        {
            "name": "cancel",
            "title": "Cancel a request",
            "description": "Cancels a request and all work for it.",
            "inputSchema": { "type": "object", "additionalProperties": false, "required": ["taskId"], "properties": {
                "taskId": text("The request."),
                "reason": text("The reason, for the log."),
            } },
            "outputSchema": standing,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false },
        },
    ])
}

fn standing_schema() -> Value {
    json!({ "type": "object", "required": ["taskId", "status"], "properties": {
        "taskId": { "type": "string" },
        "status": { "type": "string", "enum": ["running", "waiting", "needs_person", "done", "failed", "cancelled"] },
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

pub(super) async fn call(call: &Call, progress: Option<Progress>, flight: &Flight) -> Result<Value, Fault> {
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
            None => return Ok(unusable(&format!("`{WAIT}` must be a number from 0 to {LONGEST_WAIT} (bad_arguments)"))),
        },
    };
    let mut waiting = Waiting { peer: &call.peer, patience: Duration::from_secs_f64(wait), progress, flight };
    let done = match name {
        "submit" | "send" | "status" if call.params.contains_key("requestState") => again(call, name, waiting).await,
        "submit" => match read(arguments) {
            Ok(request) => waiting.begin(call.peer.api().submit(request).await, true).await,
            Err(problem) => Err(problem),
        },
        "send" => match read::<polis_api::Send>(arguments) {
            Ok(request) => match (request.task_id.is_none(), call.peer.caller.needs(Scope::Read)) {
                // What comes of a request of others is for those who may read; refused before anything is sent.
                (false, Err(error)) => Err(error.into()),
                (is_new, _) => waiting.begin(call.peer.api().send(request).await, is_new).await,
            },
            Err(problem) => Err(problem),
        },
        "status" => match arguments.get("taskId").and_then(Value::as_str) {
            Some(task) => waiting.end(&task.into(), None).await,
            None => return Ok(result(overview(&call.peer).await)),
        },
        "approve" => return Ok(result(approve(&call.peer, arguments).await)),
        "cancel" => cancel(&call.peer, arguments).await,
        _ => return Err(Fault::invalid(format!("there is no tool `{name}`"))),
    };
    let (task, standing) = match done {
        Ok(done) => done,
        Err(problem) => return Ok(result(Err(problem))),
    };
    if standing.needs_person()
        && call.era.shows_forms()
        && !person::is_put_off(&call.params)
        && let Some(requests) = person::forms(&standing.approvals)
    {
        return Ok(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": task.as_str() }));
    }
    let told = told(&task, &standing);
    let told = match name {
        "status" => json!({ "tasks": [told], "approvals": standing.approvals }),
        _ => told,
    };
    let mut result = result(Ok(told));
    result["isError"] = json!(name != "status" && standing.status == TaskStatus::Failed);
    Ok(result)
}

/// The client comes back with what the person said. Nothing is begun a second time.
async fn again(call: &Call, name: &str, mut waiting: Waiting<'_>) -> Result<(TaskId, Standing), Problem> {
    let task = call.params.get("requestState").and_then(Value::as_str).unwrap_or_default().into();
    // It must be there, whatever the client made of it.
    let standing = call.peer.standing(&task).await?;
    for (id, decision) in person::decisions(&standing.approvals, &call.params)? {
        match call.peer.api().resolve(&id, decision).await {
            Err(error) if error.code() != "not_open" => return Err(error.into()),
            // Somebody else has answered it meanwhile, which is as good.
            Ok(_) | Err(_) => {}
        }
    }
    let own = (name != "status").then_some(Seq(0));
    waiting.end(&task, own).await
}

/// A call that waits.
struct Waiting<'a> {
    peer: &'a Peer,
    patience: Duration,
    progress: Option<Progress>,
    flight: &'a Flight,
}

impl Waiting<'_> {
    /// Waits for what comes of what was accepted just now.
    async fn begin(&mut self, accepted: Result<Accepted, ApiError>, is_new: bool) -> Result<(TaskId, Standing), Problem> {
        let Accepted { task_id: task, seq, .. } = accepted?;
        if is_new {
            let peer = self.peer.of_own();
            let mut own = Waiting { peer: &peer, patience: self.patience, progress: self.progress.take(), flight: self.flight };
            return own.end(&task, Some(seq)).await;
        }
        self.end(&task, None).await
    }

    /// Waits until the request is over or a person must act, or until patience is. What was begun by this call, at a place
    /// of the log, is called off with it; a mere look is not.
    async fn end(&mut self, task: &TaskId, begun: Option<Seq>) -> Result<(TaskId, Standing), Problem> {
        let is_new = begun.is_some_and(|seq| seq > Seq(0));
        let head = match begun {
            Some(seq) if is_new => seq,
            _ => self.peer.state.society.log().readable_head(self.peer.state.society.id()).await?,
        };
        let mut follow = Follow::new(self.peer, task, head).await?;
        // What is done for a new one is told from its first step on, also where it is over already.
        let mut standing = if is_new && !self.patience.is_zero() { Standing::begun() } else { follow.standing().await? };
        let deadline = Instant::now() + self.patience;
        while !standing.rests() {
            let heard = tokio::select! {
                biased;
                () = self.flight.cancelled() => {
                    if begun.is_some() {
                        let reason = "the MCP client cancelled its request".to_owned();
                        self.peer.api().cancel(task, Cancel { reason, turn: None }).await?;
                    }
                    break;
                }
                heard = follow.next() => heard?,
                () = tokio::time::sleep_until(deadline) => break,
            };
            match heard {
                Heard::Step(words) => {
                    if let Some(progress) = &mut self.progress {
                        progress.tell(&words);
                    }
                }
                Heard::Text { .. } | Heard::Dropped(_) => {}
                Heard::Changed => standing = follow.standing().await?,
                Heard::Ended => break,
            }
        }
        // The state may have been read before the last steps were.
        if let Some(progress) = &mut self.progress {
            for heard in follow.rest().await? {
                if let Heard::Step(words) = heard {
                    progress.tell(&words);
                }
            }
        }
        Ok((task.clone(), standing))
    }
}

async fn overview(peer: &Peer) -> Done {
    let open = peer.api().tasks(&Paging::default()).await?.tasks;
    let tasks: Vec<Value> = open.iter().map(|task| json!({ "taskId": task.id, "status": task.status })).collect();
    let agents = peer.api().agents(&Paging::default()).await?.agents;
    Ok(json!({ "tasks": tasks, "approvals": peer.approvals(None).await?, "agents": agents }))
}

async fn approve(peer: &Peer, mut arguments: Map<String, Value>) -> Done {
    let id = named(&mut arguments, "id")?;
    Ok(json!(peer.api().resolve(&id, read::<Decision>(arguments)?).await?))
}

async fn cancel(peer: &Peer, mut arguments: Map<String, Value>) -> Result<(TaskId, Standing), Problem> {
    let task = TaskId::from(named(&mut arguments, "taskId")?);
    peer.api().cancel(&task, read(arguments)?).await?;
    let standing = peer.of_own().standing(&task).await?;
    Ok((task, standing))
}

/// The arguments of a tool as the request of an operation.
fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Problem> {
    let bad =
        |error: serde_json::Error| Problem::bad_request("bad_arguments", format!("the arguments cannot be used: {error}"));
    serde_json::from_value(Value::Object(arguments)).map_err(bad)
}

fn named(arguments: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    match arguments.remove(name) {
        Some(Value::String(id)) if !id.is_empty() => Ok(id),
        _ => Err(Problem::bad_request("bad_arguments", format!("`{name}` is missing; see `status`"))),
    }
}

/// A standing as tools tell it.
fn told(task: &TaskId, standing: &Standing) -> Value {
    let mut told = json!({ "taskId": task.as_str(), "status": standing.status_name() });
    if let Some(answer) = &standing.answer {
        told["answer"] = json!(answer);
    }
    if let Some(failure) = &standing.failure {
        told["failure"] = json!(failure);
    }
    if standing.needs_person() {
        told["approvals"] = json!(standing.approvals);
        told["hint"] = json!(DECIDE);
    } else if let Some(agent) = &standing.behind {
        told["hint"] = json!(busy(agent));
    } else if !standing.is_over() {
        told["hint"] = json!(LATER);
    }
    told
}

/// What a tool gave, for programs and for models.
fn result(done: Done) -> Value {
    match done {
        Ok(told) => {
            json!({ "content": [{ "type": "text", "text": told.to_string() }], "structuredContent": told, "isError": false })
        }
        Err(problem) => unusable(&format!("{} ({})", problem.detail(), problem.code())),
    }
}

fn unusable(why: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": why }], "isError": true })
}
