//! A plain conversing agent: asks the model, does the calls that it asks for, until it answers.

use polis_domain::{Artifact, Failure, Finish, Reply, Response};
use polis_engine::{Agent, Turn};
use polis_ports::{ChatMessage, ModelRequest};

use crate::conversation::{ContextLimits, Conversation, conversation};

/// Talks, and uses tools while it does.
#[derive(Debug, Clone)]
pub struct Converse {
    /// How much of the conversation the model is shown.
    pub context: ContextLimits,
    /// Rounds of tool use before it must answer.
    pub max_rounds: usize,
}

impl Default for Converse {
    fn default() -> Self {
        Self { context: ContextLimits::default(), max_rounds: 25 }
    }
}

impl Agent for Converse {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let Conversation { notes, messages } = conversation(turn, &self.context).await?;
        let mut system = turn.role().map(|role| role.prompt.clone()).unwrap_or_default();
        if !notes.is_empty() {
            system = format!("{system}\n\n{notes}").into();
        }
        let request = ModelRequest { system, messages, ..ModelRequest::default() };
        work(turn, request, self.max_rounds).await
    }
}

/// Asks the model and does the calls that it asks for, until it answers.
pub(crate) async fn work(turn: &mut Turn, mut request: ModelRequest, max_rounds: usize) -> Result<Response, Failure> {
    let mut made: Vec<Artifact> = Vec::new();
    for _ in 0..max_rounds {
        request.tools = turn.tools();
        let reply = turn.model(request.clone()).await?;
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
        request.messages.push(ChatMessage::said(&reply));
        request.messages.extend(reply.tool_calls.iter().zip(&results).map(|(call, result)| ChatMessage::result(call, result)));
    }
    let message = format!("no answer after {max_rounds} rounds of tool use; ask for less at once");
    Err(Failure::new("too_many_rounds", message))
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
