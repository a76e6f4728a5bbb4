//! A plain conversing agent: asks the model, does the calls that it asks for, until it answers.

use polis_domain::{Artifact, Failure, Finish, Reply, Response, Sender};
use polis_engine::{Agent, Turn};
use polis_ports::{ChatMessage, ModelRequest};
use serde_json::{Map, Value};

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
        let mut made: Vec<Artifact> = Vec::new();
        for _ in 0..self.max_rounds {
            let request = ModelRequest {
                system: system.clone(),
                messages: messages.clone(),
                tools: turn.tools(),
                ..ModelRequest::default()
            };
            let reply = turn.model(request).await?;
            if reply.tool_calls.is_empty() {
                let mut response = conclude(reply)?;
                Artifact::attach(&mut response.meta, &made);
                return Ok(response);
            }
            let results = turn.call_tools(reply.tool_calls.clone()).await;
            for artifact in results.iter().flat_map(|result| &result.artifacts) {
                if !made.contains(artifact) {
                    made.push(artifact.clone());
                }
            }
            messages.push(ChatMessage::said(&reply));
            messages.extend(reply.tool_calls.iter().zip(&results).map(|(call, result)| ChatMessage::result(call, result)));
        }
        let message = format!("no answer after {} rounds of tool use; ask for less at once", self.max_rounds);
        Err(Failure::new("too_many_rounds", message))
    }
}

/// What a reply without calls comes to. One that was stopped is not handed over as if it were whole.
fn conclude(reply: Reply) -> Result<Response, Failure> {
    let stopped = match &reply.finish {
        Finish::Stop | Finish::ToolCalls | Finish::Refusal => None,
        Finish::Length => Some("it reached the limit of tokens".to_owned()),
        Finish::ContentFilter => Some("the vendor held the rest back".to_owned()),
        Finish::Other(word) => Some(format!("the vendor says `{word}`")),
    };
    match (reply.text.trim().is_empty(), stopped) {
        (false, None) => Ok(Response::new(reply.text)),
        (false, Some(why)) => Ok(Response::new(format!("{}\n\n[The reply ends here: {why}.]", reply.text.trim_end()))),
        (true, None) if reply.finish == Finish::Refusal => Err(Failure::new("model_refused", "the model will not do this")),
        (true, None) => Err(Failure::new("empty_reply", "the model gave no answer; ask again, or ask another model")),
        (true, Some(why)) => Err(Failure::new("reply_stopped", format!("the model gave no answer: {why}"))),
    }
}

/// What was said, and what was sent along.
fn with_artifacts(text: String, meta: &Map<String, Value>) -> String {
    Artifact::attached(meta).iter().fold(text, |text, artifact| format!("{text}\n[sent along: {artifact}]"))
}

impl Converse {
    async fn conversation(&self, turn: &mut Turn) -> Result<Vec<ChatMessage>, Failure> {
        if turn.is_first_message() {
            let task = turn.task();
            return Ok(vec![ChatMessage::user(with_artifacts(task.message.to_string(), &task.meta))]);
        }
        let recent = turn.recent(self.context_messages).await?;
        let said = recent.into_iter().map(|(_, message)| match message.sender {
            Sender::User => ChatMessage::user(with_artifacts(message.text, &message.meta)),
            Sender::Bot => ChatMessage::assistant(message.text),
        });
        Ok(said.skip_while(|message| !matches!(message, ChatMessage::User { .. })).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concluded(text: &str, finish: Finish) -> Result<String, String> {
        let reply = Reply { text: text.to_owned(), finish, ..Reply::default() };
        conclude(reply).map(|response| response.full_message().to_owned()).map_err(|failure| failure.code.to_string())
    }

    #[test]
    fn a_reply_that_was_stopped_is_not_handed_over_as_whole() {
        let held = Finish::Other("odd".to_owned());
        assert_eq!(concluded("all", Finish::Stop).unwrap(), "all");
        assert_eq!(concluded("no", Finish::Refusal).unwrap(), "no");
        assert_eq!(
            concluded("half", Finish::Length).unwrap(),
            "half\n\n[The reply ends here: it reached the limit of tokens.]"
        );
        assert!(concluded("half", Finish::ContentFilter).unwrap().contains("held the rest back"));
        assert!(concluded("half", held.clone()).unwrap().contains("`odd`"));
        let codes = [Finish::Stop, Finish::Length, Finish::Refusal, held].map(|finish| concluded(" ", finish).unwrap_err());
        assert_eq!(codes, ["empty_reply", "reply_stopped", "model_refused", "reply_stopped"]);
    }
}
