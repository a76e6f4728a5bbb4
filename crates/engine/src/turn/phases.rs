//! The default behaviour of agents: choose the handler of the phase, run one round of a unit, call the model as the agent.

use std::sync::Arc;

use polis_domain::{Failure, Finish, Phase, Response, Sender};
use polis_ports::ModelRequest;

use super::Turn;
use crate::{Interaction, InteractionUnit};

impl Turn {
    /// The default of [`crate::Agent::execute_task`]. A `chatPair` task returns the text in its meta (R032). Any other task
    /// goes to the handler of the thread's phase (R033); then the configured next phase is suggested, unless the handler has
    /// suggested one itself (D04). An earlier suggestion was applied when the turn began (R038).
    pub async fn handle_by_phase(&mut self) -> Result<Response, Failure> {
        if &*self.task.name == "chatPair" {
            let bot = self.task.meta.get("bot").and_then(|bot| bot.as_str()).unwrap_or_default();
            return Ok(Response::new(bot));
        }
        let (registration, phase) = (self.registration.clone(), self.phase.clone());
        let handler = registration.handler(&phase).ok_or_else(|| no_handler(&phase))?;
        self.scope = handler.scope.clone();
        let response = handler.handler.handle(self).await?;
        let response = match &handler.next {
            Some(next) if !self.has_suggested() => response.or_to_phase(next.clone()),
            _ => response,
        };
        Ok(response)
    }

    /// One round of a unit (R070): its handler writes the bot message, the unit carries it out, and its report becomes the
    /// user message unless this was the last round (D05). Then the next phase is suggested.
    pub async fn interact<U: InteractionUnit + ?Sized>(&mut self, unit: &U) -> Result<Interaction, Failure> {
        let (registration, phase) = (self.registration.clone(), self.phase.clone());
        let part = registration.unit().ok_or_else(|| Failure::new("not_a_unit", "only a unit's own turn is a round of it"))?;
        let message = "缺少StateHandler，无法生成bot消息 (the unit has no handler; give it one with `Units::with_handler`)";
        let handler = part.handler.as_ref().ok_or_else(|| Failure::new("no_state_handler", message))?;
        let response = handler.handle(self).await?;
        let bot = self.carry_out_in_unit(response).await?;
        let by_handler = self.suggested.take();
        let next = part.next.as_ref().or(by_handler.as_ref());
        let user = if next.is_some_and(|next| part.agent.is_terminal(next)) {
            None
        } else {
            let report = unit.user_message(&bot, self).await?;
            Some(self.add_message(&self.path(), Sender::User, report).await?)
        };
        if let Some(next) = part.next.clone().filter(|next| self.suggested.is_none() && by_handler.as_ref() != Some(next)) {
            self.suggest_phase(next).await?;
        }
        Ok(Interaction { phase, bot, user })
    }

    /// Calls the model with the system prompt of the running agent and returns the text of its reply (R048, R075). A prompt
    /// is enough; for more use `ModelRequest { temperature: Some(0.3), ..prompt.into() }`.
    ///
    /// A truncated or empty reply is an error, because callers use the text as it is.
    pub async fn generate(&mut self, request: impl Into<ModelRequest>) -> Result<String, Failure> {
        let mut request = request.into();
        if request.system.is_empty() {
            request.system = self.system_prompt().await?.into();
        }
        let reply = self.model(request).await?;
        let stopped = match &reply.finish {
            Finish::Length => Some("it reached the limit of tokens"),
            Finish::ContentFilter => Some("the vendor held the rest back"),
            Finish::Refusal => return Err(Failure::new("model_refused", "the model will not do this")),
            Finish::Paused => Some("the vendor paused it too often"),
            Finish::Stop | Finish::ToolCalls | Finish::Other(_) => None,
        };
        match stopped {
            Some(why) => Err(Failure::new("reply_stopped", format!("the model's reply is not whole: {why}"))),
            None if reply.text.trim().is_empty() => {
                Err(Failure::new("empty_reply", "the model gave no answer; ask again, or ask another model"))
            }
            None => Ok(reply.text),
        }
    }

    /// The system prompt of the running agent (R037).
    pub async fn system_prompt(&mut self) -> Result<Arc<str>, Failure> {
        let scope = self.scope.clone();
        scope.prompt_source.system_prompt(self).await
    }
}

/// No handler is registered for the phase (R039).
pub(super) fn no_handler(phase: &Phase) -> Failure {
    Failure::new("no_handler", format!("找不到 {phase} 阶段处理器 (there is no handler for phase {phase}; register one)"))
}
