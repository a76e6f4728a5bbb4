//! Progress of one request, as lines for the terminal.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use polis_domain::{
    AgentId, Effect, EffectId, Event, Finish, Origin, Outcome, Recorded, RoleId, TaskId, ThreadId, Timestamp, TurnId,
};

use crate::describe::{describe_failed_attempt, describe_inquiry};
use crate::out::{self, short};
use crate::workflow_progress::{LiveStep, WorkflowProgress, seconds, used};

/// Longest chunk of a text that is shown on a line.
const CHARS: usize = 100;

/// The turns and calls of a request.
pub(crate) struct Progress {
    task: TaskId,
    turns: HashMap<TurnId, AgentId>,
    /// The agents of conversations, by the names that people know them by.
    names: HashMap<AgentId, AgentId>,
    tools: HashMap<EffectId, Arc<str>>,
    started_at: HashMap<EffectId, Timestamp>,
    /// The open effects whose ends are not reported: units, whose failures are reported there, and the environment.
    silent: HashSet<EffectId>,
    workflow: WorkflowProgress,
    /// What was shown about tool servers.
    servers: HashSet<String>,
    /// The approvals of other persons that were shown.
    approvals: HashSet<String>,
    /// The text of the last reply, if it is not a whole answer.
    stopped: Option<String>,
}

/// One line.
pub(crate) struct Step {
    pub(crate) text: String,
    /// Whether it is about a planner, executor or verifier.
    pub(crate) is_workflow: bool,
}

impl Progress {
    pub(crate) fn of(task: TaskId) -> Self {
        Self {
            task,
            turns: HashMap::new(),
            names: HashMap::new(),
            tools: HashMap::new(),
            started_at: HashMap::new(),
            silent: HashSet::new(),
            workflow: WorkflowProgress::default(),
            servers: HashSet::new(),
            approvals: HashSet::new(),
            stopped: None,
        }
    }

    /// Whether an approval of this id is shown for the first time.
    pub(crate) fn is_news(&mut self, approval: &str) -> bool {
        self.approvals.insert(approval.to_owned())
    }

    /// Calls the agent of a conversation by its role.
    pub(crate) fn name(&mut self, agent: &AgentId, role: &RoleId) {
        self.names.insert(agent.clone(), role.as_str().into());
    }

    /// Counts a turn in that began before we watched.
    pub(crate) fn add_turn(&mut self, turn: TurnId, agent: AgentId) {
        let agent = self.names.get(&agent).cloned().unwrap_or(agent);
        self.turns.insert(turn, agent);
    }

    /// Whether a turn works on the request.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.turns.contains_key(&turn)
    }

    /// The lines for an event, if it concerns the request and is worth any.
    pub(crate) fn steps(&mut self, recorded: &Recorded) -> Vec<Step> {
        let is_workflow = self.workflow.agent_name(recorded.thread.as_ref()).is_some();
        let line = self.line(recorded);
        let is_ours = recorded.turn().is_some_and(|turn| self.has(turn));
        let workflow_lines = if is_ours { self.workflow.lines(recorded) } else { Vec::new() };
        let line = line.filter(|_| workflow_lines.is_empty()).map(|text| Step { text, is_workflow });
        line.into_iter().chain(workflow_lines.into_iter().map(|text| Step { text, is_workflow: true })).collect()
    }

    /// A step of a workflow, if it is worth a line.
    pub(crate) fn seen(&mut self, seen: &LiveStep) -> Option<String> {
        self.workflow.line(seen)
    }

    /// What a step says about a tool server, once for each request.
    pub(crate) fn server_line(&mut self, seen: &LiveStep) -> Option<String> {
        let line = seen.server_line().filter(|_| seen.task == self.task)?;
        self.servers.insert(line.clone()).then_some(line)
    }

    /// Whether a thread is one of a workflow that works on the request.
    pub(crate) fn has_member(&self, thread: &ThreadId) -> bool {
        self.workflow.agent_name(Some(thread)).is_some()
    }

    /// Whether this answer is not whole, refused or not checked: a workflow or the agent says so, or it is a reply that the model
    /// did not bring to its end.
    pub(crate) fn is_partly(&self, answer: &str) -> bool {
        let is_stopped = |text: &String| !text.is_empty() && answer.trim_start().starts_with(text.as_str());
        self.stopped.as_ref().is_some_and(is_stopped) || self.workflow.is_partly(answer)
    }

    /// Remembers the last reply without calls, if the model stopped for another reason than that it was done.
    fn record_reply(&mut self, outcome: &Outcome) {
        let Outcome::Reply(reply) = outcome else { return };
        if reply.tool_calls.is_empty() {
            let is_done = matches!(reply.finish, Finish::Stop | Finish::ToolCalls);
            self.stopped = (!is_done).then(|| reply.text.trim().to_owned());
        }
    }

    fn line(&mut self, recorded: &Recorded) -> Option<String> {
        if let Event::ConversationStarted { agent, role, .. } = &recorded.event {
            self.name(agent, role);
        }
        if let Event::TurnStarted { agent, task, origin, .. } = &recorded.event {
            if task.id != self.task {
                return None;
            }
            let agent = self.names.get(agent).unwrap_or(agent).clone();
            self.turns.insert(TurnId(recorded.seq), agent.clone());
            return match origin {
                Origin::Inbox => Some(format!("{agent} starts")),
                Origin::Unit(_) => {
                    Some(format!("{agent} works in {}", recorded.thread.as_ref().map_or("", |thread| thread.as_str())))
                }
            };
        }
        let agent = self.turns.get(&recorded.turn()?)?.clone();
        let agent = self.workflow.agent_name(recorded.thread.as_ref()).map_or(agent, |who| who.as_str().into());
        match &recorded.event {
            Event::EffectStarted { id, effect, .. } => {
                self.started_at.insert(*id, recorded.at);
                self.stated(*id, &agent, effect)
            }
            Event::EffectRetried { attempt, .. } => Some(describe_failed_attempt(attempt)),
            Event::TurnSettled { message: Some(message), .. } if message.meta.contains_key("unfinished") => {
                self.stopped = Some(message.text.trim().to_owned());
                let why = message.meta.get("unfinished").and_then(|why| why["message"].as_str()).unwrap_or_default();
                Some(format!("{agent} is not finished: {why}"))
            }
            Event::EffectEnded { id, outcome, .. } => {
                self.record_reply(outcome);
                let began = self.started_at.remove(id).unwrap_or(recorded.at);
                self.ended(*id, &agent, outcome, recorded.at.0.saturating_sub(began.0))
            }
            Event::EffectRefused { failure, .. } => Some(format!("{agent} may not: {failure}")),
            Event::CallInquired { by, inquiry, .. } => Some(format!("{by} {}", describe_inquiry(inquiry))),
            Event::EffectDoubted { id } => Some(format!("{}: it is unknown whether it was done", self.tool(*id))),
            Event::EffectRestarted { id } => Some(format!("{agent} calls {} again", self.tool(*id))),
            Event::RoleCreated { role, .. } => Some(format!("{agent} creates the role {}", role.name)),
            Event::AgentSpawned { agent: made, .. } => Some(format!("{agent} starts {made}")),
            Event::TurnParked { reason, .. } => Some(format!("{agent} is parked: {reason}")),
            _ => None,
        }
    }

    fn stated(&mut self, id: EffectId, agent: &AgentId, effect: &Effect) -> Option<String> {
        match effect {
            Effect::Model { model, .. } if model.is_empty() => Some(format!("{agent} asks the model")),
            Effect::Model { model, .. } => Some(format!("{agent} asks {model}")),
            Effect::Tool(call) if call.is_environment() => {
                self.silent.insert(id);
                None
            }
            Effect::Tool(call) => {
                self.tools.insert(id, call.tool.clone());
                let does = if call.from.is_some() { "knows" } else { "calls" };
                Some(format!("{agent} {does} {} {}", call.tool, short(&call.arguments, CHARS)))
            }
            Effect::Ask { envelope, .. } => {
                Some(format!("{agent} asks {}: {}", envelope.to, short(&envelope.payload.text, CHARS)))
            }
            Effect::Approval { question, .. } => Some(format!("{agent} asks you: {}", short(question, CHARS))),
            Effect::Grant { lacking, .. } => {
                let used_up = lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                Some(format!("{agent} needs more: {used_up}"))
            }
            Effect::Terminate { agent: child, .. } => Some(format!("{agent} terminates {child}")),
            Effect::Sleep { .. } => Some(format!("{agent} waits")),
            Effect::Unit { .. } => {
                self.silent.insert(id);
                None
            }
            Effect::Keep(_) => None,
        }
    }

    fn ended(&mut self, id: EffectId, agent: &AgentId, outcome: &Outcome, duration_ms: u64) -> Option<String> {
        match outcome {
            Outcome::Failed(_) | Outcome::Result(_) if self.silent.remove(&id) => None,
            Outcome::Reply(reply) => Some(format!("{agent} has its reply: {}{}", seconds(duration_ms), used(reply.usage))),
            Outcome::Result(result) if result.is_error => {
                Some(format!("{} failed: {}", self.tool(id), short(&result.content, CHARS)))
            }
            Outcome::Result(result) => {
                Some(format!("{} gave {}", self.tool(id), out::count(result.content.chars().count(), "character")))
            }
            Outcome::Failed(failure) => Some(format!("{agent}: {failure}")),
            Outcome::Kept(artifact) => {
                let bytes = out::count(artifact.bytes as usize, "byte");
                Some(format!("{agent} keeps {} ({bytes})", short(&artifact.name, CHARS)))
            }
            Outcome::Answer(_) | Outcome::Verdict(_) | Outcome::Slept => None,
        }
    }

    fn tool(&self, id: EffectId) -> Arc<str> {
        self.tools.get(&id).cloned().unwrap_or_else(|| "the call".into())
    }
}
