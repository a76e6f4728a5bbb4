//! The rules of AG-UI 1.0 about the order of events, as its official client checks them.

use std::collections::{HashMap, HashSet};

use super::event::{Body, Event, Outcome};

type Owner = Option<String>;

/// Checks one stream.
#[derive(Default)]
pub(super) struct Verifier {
    has_started: bool,
    is_over: bool,
    texts: HashSet<String>,
    calls: HashSet<String>,
    spans: HashSet<String>,
    thoughts: HashSet<String>,
    steps: HashSet<(Owner, String)>,
    subagents: HashSet<String>,
    gone: HashSet<String>,
    owners: HashMap<(&'static str, String), Owner>,
}

impl Verifier {
    pub(super) fn check(&mut self, event: &Event) -> Result<(), String> {
        let written = serde_json::to_value(event).map_err(|error| error.to_string())?;
        let nulls = written.as_object().into_iter().flatten().filter(|(_, value)| value.is_null());
        if let Some((name, _)) = nulls.into_iter().next() {
            return Err(format!("`{name}` is null"));
        }
        let owner: Owner = event.subagent_run_id.as_deref().map(str::to_owned);
        match (&event.body, self.has_started, self.is_over) {
            (_, _, true) => return Err("something after the end".to_owned()),
            (Body::RunStarted { .. }, true, _) => return Err("it starts twice".to_owned()),
            (Body::RunStarted { .. } | Body::RunError { .. }, ..) | (_, true, _) => self.has_started = true,
            (_, false, _) => return Err("the first event must be RUN_STARTED".to_owned()),
        }
        match &event.body {
            Body::TextMessageStart { message_id, .. } => {
                self.own("message", message_id, &owner)?;
                open(&mut self.texts, message_id)
            }
            Body::TextMessageContent { message_id, delta } => {
                self.own("message", message_id, &owner)?;
                if delta.is_empty() {
                    return Err("an empty delta".to_owned());
                }
                is_open(&self.texts, message_id)
            }
            Body::TextMessageEnd { message_id } => close(&mut self.texts, message_id),
            Body::ToolCallStart { tool_call_id, parent_message_id, .. } => {
                if let Some(parent) = parent_message_id
                    && let Some(known) = self.owners.get(&("message", parent.to_string()))
                    && *known != owner
                {
                    return Err(format!("call {tool_call_id} is not of its message's owner"));
                }
                self.own("call", tool_call_id, &owner)?;
                open(&mut self.calls, tool_call_id)
            }
            Body::ToolCallArgs { tool_call_id, .. } => is_open(&self.calls, tool_call_id),
            Body::ToolCallEnd { tool_call_id } => close(&mut self.calls, tool_call_id),
            Body::ToolCallResult { message_id, .. } => {
                self.owners.insert(("message", message_id.to_string()), owner);
                Ok(())
            }
            Body::ReasoningStart { message_id } => {
                self.own("reasoning", message_id, &owner)?;
                open(&mut self.spans, message_id)
            }
            Body::ReasoningMessageStart { message_id, .. } => {
                self.own("reasoning", message_id, &owner)?;
                open(&mut self.thoughts, message_id)
            }
            Body::ReasoningMessageContent { message_id, .. } => is_open(&self.thoughts, message_id),
            Body::ReasoningMessageEnd { message_id } => close(&mut self.thoughts, message_id),
            Body::ReasoningEnd { message_id } => close(&mut self.spans, message_id),
            Body::StepStarted { step_name } => match self.steps.insert((owner, step_name.to_string())) {
                true => Ok(()),
                false => Err(format!("step {step_name} is open")),
            },
            Body::StepFinished { step_name } => match self.steps.remove(&(owner, step_name.to_string())) {
                true => Ok(()),
                false => Err(format!("step {step_name} is not open")),
            },
            Body::ActivitySnapshot { message_id, content, .. } => {
                self.owners.insert(("activity", message_id.to_string()), owner);
                if content.is_object() { Ok(()) } else { Err("an activity's content must be an object".to_owned()) }
            }
            Body::ActivityDelta { message_id, .. } => match self.owners.get(&("activity", message_id.to_string())) {
                Some(known) if *known == owner => Ok(()),
                _ => Err(format!("activity {message_id} is not known, or another's")),
            },
            Body::SubagentStarted { parent_subagent_run_id, .. } => {
                let id = owner.ok_or("a sub-agent without a name")?;
                let is_known = |id: &str| self.subagents.contains(id) || self.gone.contains(id);
                if is_known(&id) {
                    return Err(format!("sub-agent {id} twice"));
                }
                if let Some(parent) = parent_subagent_run_id.as_deref().filter(|parent| !is_known(parent)) {
                    return Err(format!("the parent {parent} was not started in this run"));
                }
                self.subagents.insert(id);
                Ok(())
            }
            Body::SubagentFinished { .. } | Body::SubagentError { .. } => {
                let id = owner.ok_or("a sub-agent without a name")?;
                if !self.subagents.remove(&id) {
                    return Err(format!("sub-agent {id} is not active"));
                }
                self.gone.insert(id);
                Ok(())
            }
            Body::RunFinished { outcome, .. } => {
                self.is_over = true;
                if matches!(outcome, Outcome::Interrupt { interrupts } if interrupts.is_empty()) {
                    return Err("an interrupt without any".to_owned());
                }
                let open = self.texts.len() + self.calls.len() + self.spans.len() + self.thoughts.len();
                match (open, self.steps.len(), self.subagents.len()) {
                    (0, 0, 0) => Ok(()),
                    open => Err(format!("open at the end: {open:?}")),
                }
            }
            Body::RunError { .. } => {
                self.is_over = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The first owner stays the owner.
    fn own(&mut self, kind: &'static str, id: &str, owner: &Owner) -> Result<(), String> {
        let known = self.owners.entry((kind, id.to_owned())).or_insert_with(|| owner.clone());
        if owner.is_none() || known == owner { Ok(()) } else { Err(format!("{kind} {id} is another's")) }
    }
}

fn open(open: &mut HashSet<String>, id: &str) -> Result<(), String> {
    if open.insert(id.to_owned()) { Ok(()) } else { Err(format!("{id} is open")) }
}

fn is_open(open: &HashSet<String>, id: &str) -> Result<(), String> {
    if open.contains(id) { Ok(()) } else { Err(format!("{id} is not open")) }
}

fn close(open: &mut HashSet<String>, id: &str) -> Result<(), String> {
    if open.remove(id) { Ok(()) } else { Err(format!("{id} is not open")) }
}
