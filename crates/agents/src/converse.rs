//! A plain conversing agent: asks the model, does the calls that it asks for, until it answers.

use polis_domain::{Failure, Response, Sender};
use polis_engine::{Agent, Turn};
use polis_ports::{ChatMessage, ModelRequest};

/// Talks, and uses tools while it does.
#[derive(Debug, Clone)]
pub struct Converse {
    /// Messages of the thread that the model is shown.
    pub context_messages: usize,
    /// Rounds of tool use before it must answer.
    pub max_rounds: usize,
}

impl Default for Converse {
    fn default() -> Self {
        Self { context_messages: 50, max_rounds: 25 }
    }
}

impl Agent for Converse {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let mut messages = self.conversation(turn).await?;
        let system = turn.role().map(|role| role.prompt.clone()).unwrap_or_default();
        for _ in 0..self.max_rounds {
            let request = ModelRequest {
                system: system.clone(),
                messages: messages.clone(),
                tools: turn.tools(),
                ..ModelRequest::default()
            };
            let reply = turn.model(request).await?;
            if reply.tool_calls.is_empty() {
                return Ok(Response::new(reply.text));
            }
            let results = turn.call_tools(reply.tool_calls.clone()).await;
            messages.push(ChatMessage::said(&reply));
            messages.extend(reply.tool_calls.iter().zip(&results).map(|(call, result)| ChatMessage::result(call, result)));
        }
        let message = format!("no answer after {} rounds of tool use; ask for less at once", self.max_rounds);
        Err(Failure::new("too_many_rounds", message))
    }
}

impl Converse {
    async fn conversation(&self, turn: &mut Turn) -> Result<Vec<ChatMessage>, Failure> {
        if turn.is_first_message() {
            return Ok(vec![ChatMessage::user(turn.task().message.clone())]);
        }
        let recent = turn.recent(self.context_messages).await?;
        let said = recent.into_iter().map(|(_, message)| match message.sender {
            Sender::User => ChatMessage::user(message.text),
            Sender::Bot => ChatMessage::assistant(message.text),
        });
        Ok(said.skip_while(|message| !matches!(message, ChatMessage::User { .. })).collect())
    }
}
