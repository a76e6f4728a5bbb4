//! Tool calls for models that have none of their own: the tools are described in words, the reply is held to a JSON form that
//! names a tool and its arguments or gives an answer, and the form is read back into ordinary deltas.
//!
//! The form is bounded so that it always closes. Agents notice nothing, and a call that did not come whole is never made. Weak
//! models answer in plain text instead of the form; that text is the answer.
//!
//! A model that refuses a request because of its tools is asked this way from then on.

mod prompt;
mod reader;
mod schema;

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::{Stream, StreamExt, stream};
use polis_domain::{Finish, ToolCall, Usage};
use polis_ports::{ChatMessage, Delta, DeltaStream, Model, ModelDescription, ModelError, ModelRequest};

use crate::thoughts::Thoughts;
use reader::{PlainText, Reader};

/// Emulates tool calls for models that have none.
pub struct EmulatedTools {
    model: Arc<dyn Model>,
    patterns: Vec<String>,
    /// The models that refused tools of their own.
    refusing: Refusing,
}

/// Names of models, shared with the replies that may add to them.
#[derive(Clone, Default)]
struct Refusing(Arc<Mutex<BTreeSet<Arc<str>>>>);

impl Refusing {
    fn contains(&self, model: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(model)
    }

    /// Remembers the model if it refuses tools; the next attempt describes them in words.
    fn judge(&self, model: &Arc<str>, error: ModelError) -> ModelError {
        match error {
            ModelError::Rejected { reason } if refuses_tools(&reason) => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(model.clone());
                ModelError::Adapted { reason: format!("{model} takes no tools, so they are described in words: {reason}") }
            }
            other => other,
        }
    }
}

/// Whether a provider says that a model, or its server as it was started, takes no tools.
fn refuses_tools(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    let is_about_tools = ["tool", "function call", "functions"].iter().any(|word| reason.contains(word));
    // A tool with a wrong schema is for its author to hear of.
    let is_about_one = ["schema", "invalid"].iter().any(|word| reason.contains(word));
    let denials = [
        "not support",
        "n't support",
        "unsupported",
        "endpoints found that support",
        "--enable-auto-tool-choice",
        "not enabled",
    ];
    is_about_tools && !is_about_one && denials.iter().any(|words| reason.contains(words))
}

impl EmulatedTools {
    /// Every model behind `model` gets its tools this way.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self::only(model, ["*"])
    }

    /// Only the models whose name is like one of these; `*` stands for anything, as in `ollama/smollm2*`.
    pub fn only<P: Into<String>>(model: Arc<dyn Model>, patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns = patterns.into_iter().map(Into::into).collect();
        Self { model, patterns, refusing: Refusing::default() }
    }

    /// Only the models that turn out to refuse tools.
    pub fn where_refused(model: Arc<dyn Model>) -> Self {
        Self { model, patterns: Vec::new(), refusing: Refusing::default() }
    }

    fn applies_to(&self, model: &str) -> bool {
        self.patterns.iter().any(|pattern| matches_pattern(model, pattern)) || self.refusing.contains(model)
    }
}

#[async_trait]
impl Model for EmulatedTools {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        if !self.applies_to(&request.model) {
            if request.tools.is_empty() {
                return self.model.stream(request).await;
            }
            let (name, refusing) = (request.model.clone(), self.refusing.clone());
            let deltas = self.model.stream(request).await.map_err(|error| self.refusing.judge(&name, error))?;
            return Ok(Box::pin(deltas.map(move |delta| delta.map_err(|error| refusing.judge(&name, error)))));
        }
        let rewritten = prompt::rewrite(&request);
        if request.tools.is_empty() {
            return self.model.stream(rewritten).await;
        }
        let id = call_id(&request.messages);
        let deltas = self.model.stream(rewritten).await?;
        Ok(Box::pin(EmulatedStream {
            deltas,
            thoughts: Thoughts::in_any_tags(),
            reader: Reader::new(PlainText::of(&request)),
            ready: VecDeque::new(),
            id,
        }))
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        if self.applies_to(&request.model) {
            self.model.estimate(&prompt::rewrite(request))
        } else {
            self.model.estimate(request)
        }
    }

    fn description(&self, model: &str) -> ModelDescription {
        self.model.description(model)
    }
}

/// Whether a name is like a pattern, in which `*` stands for anything.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches_pattern(&name[at..], rest))
        }),
    }
}

/// The same for the same conversation, and no other call of it has it.
fn call_id(messages: &[ChatMessage]) -> Arc<str> {
    let taken = |id: &str| {
        messages.iter().any(|message| match message {
            ChatMessage::Assistant { tool_calls, .. } => tool_calls.iter().any(|call| &*call.id == id),
            ChatMessage::User { .. } | ChatMessage::Tool { .. } => false,
        })
    };
    let mut ids = (messages.len()..).map(|number| format!("emulated_{number}"));
    ids.find(|id| !taken(id)).unwrap_or_default().into()
}

/// The deltas of the form, turned into those of a model with tools.
struct EmulatedStream {
    deltas: DeltaStream,
    thoughts: Thoughts,
    reader: Reader,
    ready: VecDeque<Result<Delta, ModelError>>,
    id: Arc<str>,
}

impl EmulatedStream {
    fn read(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => {
                let (thoughts, rest) = self.thoughts.push(text);
                self.think(thoughts);
                self.write(&rest);
            }
            Delta::Done(finish) => match std::mem::take(&mut self.thoughts).finish() {
                Ok(rest) => {
                    self.write(&rest);
                    self.end(finish);
                }
                Err(last) => {
                    self.think(last);
                    match finish {
                        Finish::Stop | Finish::ToolCalls | Finish::Length => {
                            self.stop(ModelError::Cut { reason: "the model stopped in its thoughts, before its reply".into() });
                        }
                        other => self.ready.push_back(Ok(Delta::Done(other))),
                    }
                }
            },
            other => self.ready.push_back(Ok(other)),
        }
    }

    fn think(&mut self, thoughts: String) {
        if !thoughts.is_empty() {
            self.ready.push_back(Ok(Delta::Reasoning(thoughts)));
        }
    }

    fn write(&mut self, text: &str) {
        match self.reader.push(text) {
            Ok(answer_text) if answer_text.is_empty() => {}
            Ok(answer_text) => self.ready.push_back(Ok(Delta::Content(answer_text))),
            Err(reason) => self.stop(ModelError::Cut { reason }),
        }
    }

    fn end(&mut self, finish: Finish) {
        match std::mem::take(&mut self.reader).finish(finish) {
            Ok(End::Answered(finish)) => self.ready.push_back(Ok(Delta::Done(finish))),
            Ok(End::Raw(text, finish)) => self.ready.extend([Ok(Delta::Content(text)), Ok(Delta::Done(finish))]),
            Ok(End::Called(ToolCall { name, arguments, .. })) => {
                let (id, name, arguments) = (Some(self.id.clone()), Some(name), arguments.to_string());
                let call = Delta::ToolCall { index: 0, id, name, arguments };
                self.ready.extend([Ok(call), Ok(Delta::Done(Finish::ToolCalls))]);
            }
            Err(error) => self.stop(error),
        }
    }

    /// Whatever still comes from the model is not wanted.
    fn stop(&mut self, error: ModelError) {
        self.ready.push_back(Err(error));
        self.deltas = Box::pin(stream::empty());
    }
}

impl Stream for EmulatedStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Poll::Ready(Some(ready));
            }
            match self.deltas.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(delta))) => self.read(delta),
                Poll::Ready(Some(Err(error))) => self.stop(error),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// What a whole reply came to.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The answer has been streamed.
    Answered(Finish),
    /// It kept to no form and need not.
    Raw(String, Finish),
    /// A tool is wanted; the id is still missing.
    Called(ToolCall),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_with_stars() {
        for (name, pattern, want) in [
            ("ollama/smollm2:135m", "ollama/smollm2*", true),
            ("ollama/qwen3", "ollama/smollm2*", false),
            ("ollama/qwen3", "ollama/qwen3", true),
            ("ollama/qwen3:8b", "ollama/qwen3", false),
            ("v/名-small-it", "v/*-small*", true),
            ("v/small", "v/*-small*", false),
            ("anything", "*", true),
            ("", "*", true),
        ] {
            assert_eq!(matches_pattern(name, pattern), want, "{name} {pattern}");
        }
    }
}
