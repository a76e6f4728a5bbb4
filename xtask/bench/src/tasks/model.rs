//! The reply of a model that follows its instructions and uses only what a request shows it.

use polis_domain::{ToolCall, ToolChoice};
use polis_ports::{ChatMessage, ModelRequest};
use serde_json::{Value, json};

use super::task::{Ask, Facts, Step, StepResult, Task};

/// What a reply says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// Tool names and arguments.
    Calls(Vec<(String, String)>),
    Text(String),
    /// A plan, a result or a verdict.
    Json(Value),
}

/// In which place a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    Summary,
    Planner,
    Executor,
    Verifier,
    Agent,
}

/// A request as the model reads it.
pub(crate) struct View<'a> {
    pub(crate) request: &'a ModelRequest,
    pub(crate) seat: Seat,
    pub(crate) facts: Facts,
    /// What is asked, and the place of the message that asks it.
    asked: Option<(&'a Ask, usize)>,
    task: &'a Task,
}

const CURRENT: &str = "## The current task";

impl<'a> View<'a> {
    pub(crate) fn new(task: &'a Task, request: &'a ModelRequest) -> Self {
        let seat = seat(request);
        let facts =
            request.messages.iter().map(text).fold(Facts::default().with(&request.system), |facts, text| facts.with(&text));
        let asked = asked(task, request, seat);
        Self { request, seat, facts, asked, task }
    }

    pub(crate) fn ask(&self) -> Option<&'a Ask> {
        self.asked.map(|(ask, _)| ask)
    }

    /// Whether no tool can be called.
    pub(crate) fn must_conclude(&self) -> bool {
        self.request.tool_choice == ToolChoice::None || self.request.tools.is_empty()
    }

    /// How many reminders of the runtime stand at the end.
    pub(crate) fn reminders(&self) -> usize {
        let is_reminder =
            |message: &&ChatMessage| matches!(message, ChatMessage::User { text, .. } if text.starts_with("[polis]"));
        self.request.messages.iter().rev().take_while(is_reminder).count()
    }

    /// The calls since what is asked, with their results and whether these are errors.
    pub(crate) fn own_calls(&self) -> Vec<(ToolCall, &'a str, bool)> {
        self.calls_after(self.asked.map_or(0, |(_, place)| place))
    }

    fn calls_after(&self, place: usize) -> Vec<(ToolCall, &'a str, bool)> {
        let mut waiting = Vec::new();
        let mut calls = Vec::new();
        for message in &self.request.messages[place..] {
            match message {
                ChatMessage::Assistant { tool_calls, .. } => waiting = tool_calls.iter().collect(),
                ChatMessage::Tool { content, is_error, .. } if !waiting.is_empty() => {
                    calls.push((waiting.remove(0).meant().into_owned(), &**content, *is_error));
                }
                ChatMessage::Tool { .. } | ChatMessage::User { .. } => {}
            }
        }
        calls
    }

    fn is_done(&self, step: &Step) -> bool {
        match &step.result {
            StepResult::Fact(key) => self.facts.0.contains_key(key),
            StepResult::Done(mark) => {
                let mark = self.facts.fill_known(mark);
                let is_it = |(call, _, is_error): &(ToolCall, &str, bool)| {
                    !is_error && *call.name == *step.tool && call.arguments.contains(&mark)
                };
                self.calls_after(0).iter().any(is_it)
            }
        }
    }

    /// How often a call was made for what is asked.
    fn tries(&self, tool: &str, arguments: &Value) -> usize {
        let is_it = |(call, _, _): &&(ToolCall, &str, bool)| {
            *call.name == *tool && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|given| given == *arguments)
        };
        self.own_calls().iter().filter(is_it).count()
    }

    fn is_listed(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|listed| *listed.name == *tool)
    }

    /// A call of a tool: directly, or after a search where it is not listed.
    fn call(&self, tool: &str, arguments: &Value) -> (String, String) {
        let is_described =
            || self.request.messages.iter().any(|message| text(message).contains(&format!("\"name\":\"{tool}\"")));
        match self.is_listed(tool) || !self.is_listed("find_tools") {
            true => (tool.to_owned(), arguments.to_string()),
            false if is_described() => ("use_tool".to_owned(), json!({ "tool": tool, "arguments": arguments }).to_string()),
            false => ("find_tools".to_owned(), json!({ "query": tool }).to_string()),
        }
    }

    /// The right reply.
    pub(crate) fn right_reply(&self) -> Said {
        match self.seat {
            Seat::Summary => Said::Text(format!("Known so far: {}", self.all_facts())),
            Seat::Planner => self.ask().map_or_else(nothing_asked, |ask| self.plan(ask)),
            Seat::Verifier => self.ask().map_or_else(nothing_asked, |ask| self.verdict(ask)),
            Seat::Executor | Seat::Agent => self.ask().map_or_else(nothing_asked, |ask| self.work(ask)),
        }
    }

    pub(crate) fn all_facts(&self) -> String {
        self.facts.0.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    }

    /// The steps of a request. An agent that works without a plan does those of the todos itself.
    fn steps(&self, ask: &'a Ask) -> impl Iterator<Item = &'a Step> {
        let jobs = ask.todos.iter().filter(|_| ask.steps.is_empty()).filter_map(|(job, _)| self.task.jobs.get(*job));
        ask.steps.iter().chain(jobs.flat_map(|job| &job.steps))
    }

    fn work(&self, ask: &'a Ask) -> Said {
        let is_complex = self.seat == Seat::Agent && !ask.todos.is_empty() && self.own_calls().is_empty();
        if is_complex && self.is_listed("start_workflow") {
            return Said::Calls(vec![("start_workflow".to_owned(), json!({ "reason": "It has parts." }).to_string())]);
        }
        let mut calls = Vec::new();
        let most = if self.task.is_parallel { usize::MAX } else { 1 };
        if !self.must_conclude() {
            for step in self.steps(ask).filter(|step| !self.is_done(step)) {
                let arguments = self.facts.fill(&step.arguments.to_string()).and_then(|text| serde_json::from_str(&text).ok());
                let Some(arguments) = arguments.filter(|arguments| self.tries(&step.tool, arguments) < step.tries) else {
                    continue;
                };
                let call = self.call(&step.tool, &arguments);
                if calls.len() < most && !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        if !calls.is_empty() {
            return Said::Calls(calls);
        }
        let answer = self.facts.fill_known(&ask.answer);
        if self.seat == Seat::Agent {
            return Said::Text(answer);
        }
        let is_done = self.steps(ask).all(|step| self.is_done(step));
        Said::Json(json!({
            "type": "component", "component": "executor-response", "summary": answer, "taskCompleted": is_done,
            "shouldContinue": false, "nextAction": if is_done { "complete" } else { "continue" }, "todos": [],
        }))
    }

    fn plan(&self, ask: &Ask) -> Said {
        let alone = [(usize::MAX, Vec::new())];
        let todos = if ask.todos.is_empty() { &alone[..] } else { &ask.todos };
        let todo = |(n, (job, after)): (usize, &(usize, Vec<usize>))| {
            let says = self.task.jobs.get(*job).map_or(&ask.says, |job| &job.says);
            json!({
                "id": format!("task-{}", n + 1), "title": format!("Part {}", n + 1), "priority": n + 1, "status": "pending",
                "description": self.facts.fill_known(says), "writes": false,
                "dependencies": after.iter().map(|n| format!("task-{}", n + 1)).collect::<Vec<_>>(),
            })
        };
        let todos: Vec<Value> = todos.iter().enumerate().map(todo).collect();
        Said::Json(json!({
            "type": "component", "component": "planner-response", "summary": "Each part is done by itself.",
            "needsMorePlanning": false, "todos": todos,
        }))
    }

    fn verdict(&self, ask: &Ask) -> Said {
        let shown = self.request.messages.iter().map(text).find(|text| text.contains("## What happened")).unwrap_or_default();
        let happened = shown.split("## What happened").nth(1).unwrap_or_default();
        let task = |n: usize| {
            let id = format!("task-{}", n + 1);
            let is_its =
                |line: &&str| line.starts_with("[c") && line.contains(&format!("({id})")) && !line.contains(" FAILED:");
            let name = |line: &str| line[1..].split(']').next().unwrap_or_default().to_owned();
            let evidence: Vec<String> = happened.lines().filter(is_its).map(name).collect();
            let is_done = !evidence.is_empty();
            (is_done, json!({ "id": id, "completed": is_done, "feedback": "compared with the calls", "evidence": evidence }))
        };
        let (done, tasks): (Vec<bool>, Vec<Value>) = (0..ask.todos.len().max(1)).map(task).unzip();
        let is_all = done.iter().all(|done| *done) && ask.keys().iter().all(|key| self.facts.0.contains_key(*key));
        let improvements = if is_all { json!([]) } else { json!(["Get what is missing."]) };
        Said::Json(json!({
            "type": "component", "component": "verifier-response", "allCompleted": is_all, "userNeedsSatisfied": is_all,
            "overallFeedback": "judged by the calls", "summary": if is_all { self.facts.fill_known(&ask.answer) } else { String::new() },
            "improvements": improvements, "tasks": tasks,
        }))
    }
}

fn nothing_asked() -> Said {
    Said::Text("I do not know what is wanted.".to_owned())
}

fn seat(request: &ModelRequest) -> Seat {
    let system = &*request.system;
    let has = |words: &str| system.contains(words);
    match () {
        () if has("\"planner-response\"") => Seat::Planner,
        () if has("\"executor-response\"") => Seat::Executor,
        () if has("\"verifier-response\"") => Seat::Verifier,
        () if system.starts_with("Summarise the conversation") => Seat::Summary,
        () => Seat::Agent,
    }
}

/// What is asked: the newest message that has the words of a request, and of several requests the one with the most words.
fn asked<'a>(task: &'a Task, request: &ModelRequest, seat: Seat) -> Option<(&'a Ask, usize)> {
    let fits = |said: &str| task.asks().filter(|ask| said.contains(ask.cue())).max_by_key(|ask| ask.cue().len());
    request.messages.iter().enumerate().rev().find_map(|(place, message)| {
        let ChatMessage::User { text, .. } = message else { return None };
        let part = match seat {
            Seat::Executor => text.split(CURRENT).nth(1).unwrap_or_default(),
            // Behind the request stand the plan and what happened, with the words of the todos.
            Seat::Planner | Seat::Verifier => text.split("## The plan so far").next().unwrap_or_default(),
            Seat::Summary | Seat::Agent => text,
        };
        fits(part).map(|ask| (ask, place))
    })
}

/// All that a message shows.
pub(crate) fn text(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User { text, .. } => text.to_string(),
        ChatMessage::Assistant { text, tool_calls, .. } => {
            tool_calls.iter().fold(text.to_string(), |text, call| format!("{text}\n{}", call.arguments))
        }
        ChatMessage::Tool { content, .. } => content.to_string(),
    }
}
