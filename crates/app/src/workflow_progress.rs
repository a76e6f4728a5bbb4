//! Planner, executors and verifier of a request, as lines for the terminal: who works on what and where, todos while they are
//! still streamed, and what each step took. The log is authoritative; live chunks are only earlier.

use std::collections::{HashMap, HashSet};

use polis_domain::{Event, Message, Recorded, TaskId, ThreadId, Usage};
use polis_ports::{Media, ToolServer, VendorTool};
use serde::Deserialize;
use serde_json::Value;

use crate::out::short;

/// Longest chunk of a text that is shown on a line.
const CHARS: usize = 100;

/// The workflow agents of a request.
#[derive(Default)]
pub(crate) struct WorkflowProgress {
    members: HashMap<ThreadId, WorkflowAgent>,
    places: HashMap<ThreadId, String>,
    /// Todos that were reported.
    reported: HashSet<String>,
    /// The last reported activity of agents that think or write.
    doing: HashMap<ThreadId, String>,
    /// The last answer of a workflow that is not whole, or not checked.
    partly: Option<String>,
}

/// A planner, executor or verifier.
#[derive(Deserialize)]
struct WorkflowAgent {
    agent: String,
    /// The todo that it works on, if it is one.
    #[serde(default)]
    todo: String,
    #[serde(default)]
    title: String,
}

impl WorkflowAgent {
    fn name(&self) -> String {
        format!("{} {}", self.agent, short(&self.todo, CHARS)).trim_end().to_owned()
    }
}

/// A live step of a workflow agent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LiveStep {
    pub(crate) task: TaskId,
    pub(crate) thread: ThreadId,
    action: String,
    component: Option<String>,
    chunk: Option<Chunk>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Chunk {
    Again,
    Text { field: String, text: String },
    Item { field: String, value: Value },
    Field {},
}

/// A change of the streamed answer.
pub(crate) enum AnswerUpdate<'a> {
    /// It begins again.
    Again,
    Text(&'a str),
}

#[derive(Deserialize)]
struct Todo {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl WorkflowProgress {
    /// The name of the workflow agent of a thread, if it is one.
    pub(crate) fn agent_name(&self, thread: Option<&ThreadId>) -> Option<String> {
        self.members.get(thread?).map(WorkflowAgent::name)
    }

    /// The lines for an event of the request: none or several.
    pub(crate) fn lines(&mut self, recorded: &Recorded) -> Vec<String> {
        let Some(thread) = &recorded.thread else { return Vec::new() };
        match &recorded.event {
            Event::ThreadOpened { meta, .. } => {
                if let Some(Ok(member)) = meta.get("workflow").map(WorkflowAgent::deserialize) {
                    self.members.insert(thread.clone(), member);
                }
                Vec::new()
            }
            Event::ThreadLinked { index, slot, child, .. } => {
                let above = self.places.get(thread).map_or(thread.as_str(), |place| place);
                self.places.insert(child.clone(), format!("{above}.messages[{index}].{slot}"));
                Vec::new()
            }
            Event::TurnStarted { .. } => match (self.members.get(thread), self.places.get(thread)) {
                (Some(member), Some(place)) => {
                    vec![format!("{} begins: {} ({place})", member.name(), short(&member.title, CHARS))]
                }
                _ => Vec::new(),
            },
            Event::MessageAdded { message, .. } => match self.members.get(thread) {
                Some(member) => ended(member, message).into_iter().collect(),
                None => {
                    self.record_summary(message);
                    self.todo_lines(message.meta.get("component"))
                }
            },
            Event::MessageUpdated { patch, .. } => self.todo_lines(patch.meta.get("component")),
            _ => Vec::new(),
        }
    }

    /// Whether a workflow gave this answer and marked it as incomplete or not verified.
    pub(crate) fn is_partly(&self, answer: &str) -> bool {
        self.partly.as_ref().is_some_and(|partly| partly.trim() == answer.trim())
    }

    fn record_summary(&mut self, message: &Message) {
        let Some(component) = message.meta.get("component").filter(|it| it["component"] == "summary-response") else { return };
        let is_whole = component["verified"] == true && component["missing"].as_array().is_none_or(Vec::is_empty);
        self.partly = (!is_whole).then(|| message.text.clone());
    }

    /// The line for a live step, if it is news.
    pub(crate) fn line(&mut self, seen: &LiveStep) -> Option<String> {
        let agent_name = self.members.get(&seen.thread)?.name();
        if let (Some("planner-response"), Some(Chunk::Item { field, value })) = (seen.component.as_deref(), &seen.chunk) {
            return (field == "todos").then(|| self.todo(value)).flatten().map(|todo| format!("{agent_name} plans {todo}"));
        }
        let does = match &*seen.action {
            "thinking" => "thinks",
            "summarizing" => "writes the answer",
            _ => "",
        };
        let before = self.doing.insert(seen.thread.clone(), does.to_owned()).unwrap_or_default();
        (!does.is_empty() && before != does).then(|| format!("{agent_name} {does}"))
    }

    /// The todos of a plan that were not reported yet.
    fn todo_lines(&mut self, component: Option<&Value>) -> Vec<String> {
        let Some(component) = component.filter(|component| component["component"] == "todo-list") else { return Vec::new() };
        let todos = component["props"]["todos"].as_array().cloned().unwrap_or_default();
        todos.iter().filter_map(|todo| self.todo(todo)).map(|todo| format!("the plan has {todo}")).collect()
    }

    fn todo(&mut self, todo: &Value) -> Option<String> {
        let Todo { id, title, description, priority, dependencies } = Todo::deserialize(todo).ok()?;
        if !self.reported.insert(format!("{id} {description}")) {
            return None;
        }
        let what = short(if title.is_empty() { &description } else { &title }, CHARS);
        let after = if dependencies.is_empty() { String::new() } else { format!(", after {}", dependencies.join(", ")) };
        Some(format!("{}: {what} (priority {priority}{after})", short(&id, CHARS)))
    }
}

impl LiveStep {
    /// What it says about a tool server or a file, if it is about one.
    pub(crate) fn server_line(&self) -> Option<String> {
        let server = self.component.as_deref()?;
        match &*self.action {
            ToolServer::AWAITED => Some(format!("waiting for the MCP server {server}, which is still starting")),
            ToolServer::MISSING => Some(format!("the tools of the MCP server {server} are missing; `polis tools` says why")),
            Media::NOT_SHOWN => Some(format!("the model is not shown {server}")),
            VendorTool::NOT_OFFERED => Some(format!("the model is not offered {server}")),
            _ => None,
        }
    }

    /// The change of the answer in this step, if any.
    pub(crate) fn answer(&self) -> Option<AnswerUpdate<'_>> {
        match (&*self.action, &self.chunk) {
            ("summarizing", Some(Chunk::Text { field, text })) if field == "summary" => Some(AnswerUpdate::Text(text)),
            (_, Some(Chunk::Again)) if self.component.as_deref() == Some("verifier-response") => Some(AnswerUpdate::Again),
            _ => None,
        }
    }
}

/// The result of an agent's work, if this message has one.
fn ended(member: &WorkflowAgent, message: &Message) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Report {
        outcome: Value,
        #[serde(default)]
        duration_ms: u64,
        #[serde(default)]
        rounds: u64,
    }
    let Report { outcome, duration_ms, rounds } = Report::deserialize(message.meta.get("workflow")?).ok()?;
    let usage: Usage = message.meta.get("usage").and_then(|usage| Usage::deserialize(usage).ok()).unwrap_or_default();
    let (kind, fields) = outcome.as_object()?.iter().next()?;
    let came_to = match (&**kind, &fields["status"]) {
        ("executed", Value::String(status)) => format!("{}: {status}", short(&member.title, CHARS)),
        ("planned", _) if fields["response"]["todos"].as_array().is_some_and(Vec::is_empty) => short(&message.text, CHARS),
        ("planned", _) => "the plan stands".to_owned(),
        ("failed", _) => format!("failed: {}", short(&message.text, CHARS)),
        _ => short(&message.text, CHARS),
    };
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    Some(format!("{} ends: {came_to} ({rounds}, {}{})", member.name(), seconds(duration_ms), used(usage)))
}

/// A duration, in seconds.
pub(crate) fn seconds(duration_ms: u64) -> String {
    format!("{:.1} s", duration_ms as f64 / 1e3)
}

/// Tokens and money, after a comma.
pub(crate) fn used(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cost_nanos, .. } = usage;
    let cost = if cost_nanos == 0 { String::new() } else { format!(", ${:.6}", cost_nanos as f64 / 1e9) };
    format!(", {input_tokens} tokens in, {output_tokens} out{cost}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(team: &mut WorkflowProgress, action: &str, chunk: Value) -> Option<String> {
        let chunk = json!({ "task": "t", "thread": "sub_1", "path": "messages[1].meta._thread", "agentType": "planner", "action": action,
                            "component": "planner-response", "chunk": chunk });
        team.line(&serde_json::from_value(chunk).unwrap())
    }

    fn recorded(thread: &str, event: Value) -> Recorded {
        serde_json::from_value(json!({ "seq": 5, "at": 1_000, "thread": thread, "event": event })).unwrap()
    }

    #[test]
    fn a_todo_is_told_once_whether_it_was_seen_live_or_only_in_the_log() {
        let mut team = WorkflowProgress::default();
        let todo = |id: &str| json!({ "id": id, "title": format!("Do {id}"), "description": "…", "priority": 2, "dependencies": ["z"] });
        let item = |id: &str| json!({ "item": { "field": "todos", "index": 0, "value": todo(id) } });
        assert_eq!(seen(&mut team, "planning", item("a")), None, "nobody of this request");
        team.members
            .insert("sub_1".into(), WorkflowAgent { agent: "planner".to_owned(), todo: String::new(), title: String::new() });
        assert_eq!(seen(&mut team, "planning", item("a")).as_deref(), Some("planner plans a: Do a (priority 2, after z)"));
        let list = json!({ "type": "component", "component": "todo-list", "props": { "todos": [todo("a"), todo("b")] } });
        let update = json!({ "messageUpdated": { "by": "3.1", "index": 1, "patch": { "meta": { "component": list } } } });
        let lines = team.lines(&recorded("sub_0", update));
        assert_eq!(lines, ["the plan has b: Do b (priority 2, after z)"]);
    }

    #[test]
    fn thinking_and_writing_are_told_when_they_begin() {
        let mut team = WorkflowProgress::default();
        team.members
            .insert("sub_1".into(), WorkflowAgent { agent: "planner".to_owned(), todo: String::new(), title: String::new() });
        let said =
            ["planning", "thinking", "thinking", "planning", "thinking"].map(|action| seen(&mut team, action, Value::Null));
        assert_eq!(said.iter().flatten().count(), 2);
    }
}
