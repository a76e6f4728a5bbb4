//! A society with a scripted team, and the replies that it gives.

use std::sync::{Arc, Mutex};

use polis_agents::workflow::{AgentWorkflowEngine, PlanApproval, Workflow, WorkflowLimits};
use polis_domain::{CallResult, EffectClass, Event, Message, Thread, ThreadId};
use polis_engine::{Cast, Ports, Society};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools, ask};
use serde_json::{Value, json};

pub(super) type Asked = Arc<Mutex<Vec<ModelRequest>>>;

/// What the executor of a todo says.
type Executor = dyn Fn(&str, &Heard) -> ScriptedReply + Send + Sync;

/// What a team says: to the planner, to the executor of a todo, to the verifier. Each is given what was said so far.
#[derive(Clone)]
pub(super) struct Team {
    pub(super) planner: Arc<dyn Fn(&Heard) -> ScriptedReply + Send + Sync>,
    pub(super) executor: Arc<Executor>,
    pub(super) verifier: Arc<dyn Fn(&Heard) -> ScriptedReply + Send + Sync>,
}

/// What one role was told.
pub(super) struct Heard {
    pub(super) request: ModelRequest,
    pub(super) first: String,
    pub(super) last: String,
    /// Replies that it gave before in this conversation.
    pub(super) replies: usize,
}

impl Heard {
    pub(super) fn new(request: &ModelRequest) -> Self {
        let text = |message: &ChatMessage| match message {
            ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.to_string(),
            ChatMessage::Tool { content, .. } => content.to_string(),
        };
        let replies = request.messages.iter().filter(|message| matches!(message, ChatMessage::Assistant { .. })).count();
        let first = request.messages.first().map(text).unwrap_or_default();
        let last = request.messages.last().map(text).unwrap_or_default();
        Self { request: request.clone(), first, last, replies }
    }
}

/// A team that plans two todos, the second after the first, and does them with a call each.
pub(super) fn team() -> Team {
    Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 2, &["a"])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call(&format!("call_{todo}"), "look", &json!({ "at": todo }).to_string()),
            _ => executed(todo, &format!("{todo} is {}", heard.last)),
        }),
        verifier: Arc::new(|_| verified("a is 1 and b is 2.", &[("a", &["c1"]), ("b", &["c2"])])),
    }
}

impl Team {
    pub(super) fn model(&self, asked: &Asked) -> ScriptedModel {
        let (team, asked) = (self.clone(), asked.clone());
        ScriptedModel::new(move |request| {
            asked.lock().unwrap().push(request.clone());
            team.reply(request)
        })
    }

    pub(super) fn reply(&self, request: &ModelRequest) -> ScriptedReply {
        let heard = Heard::new(request);
        match role(request) {
            // A model that cannot write a plan answers the same way where it is asked without one.
            "planner" | "fallback" => (self.planner)(&heard),
            "executor" => (self.executor)(&current(request), &heard),
            _ => (self.verifier)(&heard),
        }
    }
}

pub(super) fn role(request: &ModelRequest) -> &'static str {
    if request.system.starts_with("# Assistant") || request.system.starts_with("# 助手") {
        return "fallback";
    }
    ["planner", "executor", "verifier"]
        .into_iter()
        .find(|role| request.system.contains(&format!("\"{role}-response\"")))
        .expect("every request has the prompt of a role")
}

/// The id of the todo that an executor is told to do.
fn current(request: &ModelRequest) -> String {
    let mut texts = request.messages.iter().filter_map(|message| match message {
        ChatMessage::User { text, .. } => Some(text),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
    });
    let after = |text: &str| {
        let headings = ["## The current task\n\n", "## 当前任务\n\n"];
        headings.iter().find_map(|heading| text.split_once(heading).map(|(_, after)| after.to_owned()))
    };
    let current = texts.find_map(|text| after(text)).unwrap();
    current.split(':').next().unwrap().to_owned()
}

pub(super) fn plan(todos: &[(&str, u32, &[&str])]) -> ScriptedReply {
    said("planner-response", json!({ "summary": "My plan.", "needsMorePlanning": false, "todos": todos_of(todos) }))
}

pub(super) fn unsure(todos: &[(&str, u32, &[&str])]) -> ScriptedReply {
    let fields = json!({ "summary": "Which folder?", "needsMorePlanning": true, "todos": todos_of(todos) });
    said("planner-response", fields)
}

pub(super) fn todos_of(todos: &[(&str, u32, &[&str])]) -> Vec<Value> {
    let todo = |(id, priority, dependencies): &(&str, u32, &[&str])| {
        json!({ "id": id, "title": format!("Do {id}"), "description": format!("Do {id}. Done when: it is seen."),
                "priority": priority, "dependencies": dependencies, "writes": false, "status": "pending" })
    };
    todos.iter().map(todo).collect()
}

pub(super) fn executed(todo: &str, summary: &str) -> ScriptedReply {
    acting(todo, summary, true, "complete")
}

pub(super) fn acting(todo: &str, summary: &str, completed: bool, action: &str) -> ScriptedReply {
    let status = if completed { "completed" } else { "executing" };
    let fields = json!({ "summary": summary, "taskCompleted": completed, "nextAction": action, "shouldContinue": !completed,
                         "todos": [{ "id": todo, "status": status }] });
    said("executor-response", fields)
}

pub(super) fn given_up(summary: &str) -> ScriptedReply {
    let fields =
        json!({ "summary": summary, "taskCompleted": false, "shouldContinue": false, "nextAction": "continue", "todos": [] });
    said("executor-response", fields)
}

pub(super) fn verified(summary: &str, tasks: &[(&str, &[&str])]) -> ScriptedReply {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, evidence)| json!({ "id": id, "completed": true, "feedback": "seen", "evidence": evidence }))
        .collect();
    said(
        "verifier-response",
        json!({ "allCompleted": true, "userNeedsSatisfied": true, "overallFeedback": "good", "summary": summary,
                "improvements": [], "tasks": tasks }),
    )
}

pub(super) fn unsatisfied(improvement: &str, tasks: &[(&str, bool, &[&str])]) -> ScriptedReply {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, done, evidence)| json!({ "id": id, "completed": done, "feedback": "look again", "evidence": evidence }))
        .collect();
    said(
        "verifier-response",
        json!({ "allCompleted": false, "userNeedsSatisfied": false, "overallFeedback": "not yet", "summary": "",
                "improvements": [improvement], "tasks": tasks }),
    )
}

pub(super) fn said(component: &str, mut fields: Value) -> ScriptedReply {
    fields["type"] = "component".into();
    fields["component"] = component.into();
    ScriptedReply::text(&fields.to_string())
}

pub(super) fn tools() -> ScriptedTools {
    let look = |arguments: &str, _: &polis_ports::CallContext| {
        let at = serde_json::from_str::<Value>(arguments).unwrap()["at"].as_str().unwrap().to_owned();
        match &*at {
            "nowhere" => CallResult::failed("there is nothing"),
            at if at.starts_with("big") => CallResult::good("字".repeat(40_000)),
            at => CallResult::good(format!("{}", at.bytes().next().unwrap() - b'a' + 1)),
        }
    };
    let write = |_: &str, _: &polis_ports::CallContext| CallResult::good("written");
    ScriptedTools::new().with("look", EffectClass::Read, look).with("write_note", EffectClass::Write, write)
}

/// What was asked, and what came of it.
pub(super) struct Bed {
    pub(super) society: Society,
    pub(super) log: Arc<MemoryLog>,
    pub(super) asked: Asked,
}

pub(super) fn engine() -> AgentWorkflowEngine {
    AgentWorkflowEngine::default()
}

pub(super) fn limited(limits: WorkflowLimits) -> AgentWorkflowEngine {
    AgentWorkflowEngine { limits, ..engine() }
}

pub(super) fn asking(approval: PlanApproval) -> AgentWorkflowEngine {
    AgentWorkflowEngine { approval, ..engine() }
}

pub(super) fn cast(engine: AgentWorkflowEngine) -> Cast {
    Cast::new().with("root", Workflow::new(engine))
}

pub(super) async fn open(team: &Team, engine: AgentWorkflowEngine) -> Bed {
    open_with(team, engine, tools()).await
}

pub(super) async fn open_with(team: &Team, engine: AgentWorkflowEngine, tools: ScriptedTools) -> Bed {
    let (log, asked) = (Arc::new(MemoryLog::new()), Asked::default());
    let ports =
        Ports { log: log.clone(), toolbox: Arc::new(tools), ..Ports::new(MemoryLog::new()).with_model(team.model(&asked)) };
    Bed { society: polis_testkit::open(cast(engine), ports).await, log, asked }
}

impl Bed {
    pub(super) async fn ask(&self, text: &str) -> String {
        ask(&self.society, text).await.unwrap()
    }

    pub(super) async fn thread(&self, path: &str) -> Thread {
        self.society.thread(&ThreadId::from("root"), &path.parse().unwrap()).await.unwrap()
    }

    /// The messages of the workflow's own sub-thread.
    pub(super) async fn workflow(&self) -> Vec<Arc<Message>> {
        self.thread("messages[1].meta._thread").await.messages
    }

    /// How often each role was asked: planner, executor, verifier.
    pub(super) fn counts(&self) -> [usize; 3] {
        let asked = self.asked.lock().unwrap();
        ["planner", "executor", "verifier"].map(|wanted| asked.iter().filter(|request| role(request) == wanted).count())
    }

    pub(super) fn heard(&self, wanted: &str) -> Vec<Heard> {
        self.asked.lock().unwrap().iter().filter(|request| role(request) == wanted).map(Heard::new).collect()
    }

    /// Where the first such event stands.
    pub(super) fn place(&self, which: impl Fn(&Event) -> bool) -> Option<usize> {
        self.log.events(&"main".into()).iter().position(|recorded| which(&recorded.event))
    }

    pub(super) fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.log.events(&"main".into()).iter().filter(|recorded| which(&recorded.event)).count()
    }
}

/// The `summary-response` that the answer is shown by.
pub(super) fn component(messages: &[Arc<Message>]) -> &Value {
    &messages.last().unwrap().meta["component"]
}
