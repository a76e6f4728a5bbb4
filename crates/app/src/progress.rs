//! What is done for one request, as lines for whoever waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use polis_domain::{AgentId, Effect, EffectId, Event, Origin, Outcome, Recorded, TaskId, TurnId};

use crate::describe::{inquired, vain};
use crate::out::short;

/// Longest piece of a text that is shown on a line.
const CHARS: usize = 100;

/// Who works on a request, and with what.
pub(crate) struct Progress {
    task: TaskId,
    turns: HashMap<TurnId, AgentId>,
    tools: HashMap<EffectId, Arc<str>>,
}

impl Progress {
    pub(crate) fn of(task: TaskId) -> Self {
        Self { task, turns: HashMap::new(), tools: HashMap::new() }
    }

    /// Counts a turn in that began before we watched.
    pub(crate) fn knows(&mut self, turn: TurnId, agent: AgentId) {
        self.turns.insert(turn, agent);
    }

    /// Whether a turn works on the request.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.turns.contains_key(&turn)
    }

    /// What one more event means, if it concerns the request and is worth a line.
    pub(crate) fn line(&mut self, recorded: &Recorded) -> Option<String> {
        if let Event::TurnStarted { agent, task, origin, .. } = &recorded.event {
            if task.id != self.task {
                return None;
            }
            self.turns.insert(TurnId(recorded.seq), agent.clone());
            return match origin {
                Origin::Inbox => Some(format!("{agent} takes it up")),
                Origin::Unit(_) => {
                    Some(format!("{agent} works in {}", recorded.thread.as_ref().map_or("", |thread| thread.as_str())))
                }
            };
        }
        let agent = self.turns.get(&recorded.turn()?)?.clone();
        match &recorded.event {
            Event::EffectStarted { id, effect, .. } => self.stated(*id, &agent, effect),
            Event::EffectRetried { attempt, .. } => Some(vain(attempt)),
            Event::EffectEnded { id, outcome, .. } => self.ended(*id, &agent, outcome),
            Event::EffectRefused { failure, .. } => Some(format!("{agent} may not: {failure}")),
            Event::CallInquired { by, inquiry, .. } => Some(format!("{by} {}", inquired(inquiry))),
            Event::EffectDoubted { id } => Some(format!("{}: nobody knows whether it was done", self.tool(*id))),
            Event::EffectRestarted { id } => Some(format!("{agent} calls {} again", self.tool(*id))),
            Event::RoleCreated { role, .. } => Some(format!("{agent} makes the role {}", role.name)),
            Event::AgentSpawned { agent: made, .. } => Some(format!("{agent} starts {made}")),
            Event::TurnParked { reason, .. } => Some(format!("{agent} stands still: {reason}")),
            _ => None,
        }
    }

    fn stated(&mut self, id: EffectId, agent: &AgentId, effect: &Effect) -> Option<String> {
        match effect {
            Effect::Model { model, .. } if model.is_empty() => Some(format!("{agent} asks the model")),
            Effect::Model { model, .. } => Some(format!("{agent} asks {model}")),
            Effect::Tool(call) => {
                self.tools.insert(id, call.tool.clone());
                let does = if call.from.is_some() { "knows" } else { "calls" };
                Some(format!("{agent} {does} {} {}", call.tool, short(&call.arguments, CHARS)))
            }
            Effect::Ask { letter, .. } => Some(format!("{agent} asks {}: {}", letter.to, short(&letter.payload.text, CHARS))),
            Effect::Approval { question, .. } => Some(format!("{agent} asks you: {}", short(question, CHARS))),
            Effect::Grant { lacking } => {
                let used_up = lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                Some(format!("{agent} needs more: {used_up}"))
            }
            Effect::Terminate { agent: child, .. } => Some(format!("{agent} sends {child} away")),
            Effect::Sleep { .. } => Some(format!("{agent} waits")),
            Effect::Unit { .. } | Effect::Keep(_) => None,
        }
    }

    fn ended(&mut self, id: EffectId, agent: &AgentId, outcome: &Outcome) -> Option<String> {
        match outcome {
            Outcome::Reply(reply) => {
                let usage = reply.usage;
                Some(format!("{agent} has its reply: {} tokens in, {} out", usage.input_tokens, usage.output_tokens))
            }
            Outcome::Result(result) if result.is_error => {
                Some(format!("{} failed: {}", self.tool(id), short(&result.content, CHARS)))
            }
            Outcome::Result(result) => Some(format!("{} gave {} characters", self.tool(id), result.content.chars().count())),
            Outcome::Failed(failure) => Some(format!("{agent}: {failure}")),
            Outcome::Kept(artifact) => {
                Some(format!("{agent} keeps {} ({} bytes)", short(&artifact.name, CHARS), artifact.bytes))
            }
            Outcome::Answer(_) | Outcome::Verdict(_) | Outcome::Slept => None,
        }
    }

    fn tool(&self, id: EffectId) -> Arc<str> {
        self.tools.get(&id).cloned().unwrap_or_else(|| "the call".into())
    }
}
