//! A run as OpenAI clients see it: text, reasoning, and one ending.

use std::collections::VecDeque;

use axum::http::StatusCode;

use super::answer_format::{checked_text, needs_person};
use super::client_tools::ClientToolCall;
use super::error::ApiError;
use crate::agui::{Body, Event, Outcome, Run, TokenUsage, waiting};
use crate::openai::approval_text::notice;
use crate::state::SocietyState;
use crate::task_follower::BUSY;
use polis_domain::{AnswerRules, Finish, TaskId};

/// What comes next.
pub(super) enum Chunk {
    Content(String),
    Reasoning(String),
    End(Ending),
}

/// How it ended.
pub(super) enum Ending {
    /// It is answered, or the text says that it waits for a person.
    Stop,
    /// It is answered, but the model stopped before the answer was whole.
    Cut(Cut),
    /// The client's own tools are to be called.
    ToolCalls(Vec<ClientToolCall>),
    Failed(ApiError),
}

/// Why an answer is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The limit of tokens was reached.
    Length,
    /// A filter of the vendor stopped it, or the model refused.
    Filter,
}

impl Cut {
    pub(super) fn of(finish: Option<&Finish>) -> Option<Self> {
        match finish? {
            Finish::Length => Some(Self::Length),
            Finish::ContentFilter | Finish::Refusal => Some(Self::Filter),
            Finish::Stop | Finish::ToolCalls | Finish::Paused | Finish::Other(_) => None,
        }
    }

    /// The `finish_reason` of a completion.
    pub(super) fn finish_reason(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Filter => "content_filter",
        }
    }

    /// The reason in the `incomplete_details` of a response.
    pub(super) fn incomplete_reason(self) -> &'static str {
        match self {
            Self::Length => "max_output_tokens",
            Self::Filter => "content_filter",
        }
    }
}

/// A run that is followed to its end.
pub(super) struct Completion {
    state: SocietyState,
    task: TaskId,
    run: Run,
    ready: VecDeque<Chunk>,
    has_content: bool,
    /// Whether the next text is apart from the one before.
    is_new: bool,
    ends_line: bool,
    pub(super) usage: Vec<TokenUsage>,
    ended: bool,
    /// What the client prescribes for the answer.
    rules: AnswerRules,
    /// Text that is not given out before the answer is known to keep the rules.
    held: String,
}

impl Completion {
    pub(super) fn new(state: &SocietyState, task: &TaskId, run: Run, rules: AnswerRules) -> Self {
        Self {
            state: state.clone(),
            task: task.clone(),
            run,
            ready: VecDeque::new(),
            has_content: false,
            is_new: false,
            ends_line: true,
            usage: Vec::new(),
            ended: false,
            rules,
            held: String::new(),
        }
    }

    /// The next chunk; none after the end.
    pub(super) async fn next(&mut self) -> Option<Chunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(chunk);
            }
            if self.ended {
                return None;
            }
            match self.run.next().await {
                Some(event) => self.on_event(event).await,
                None => self.stop(),
            }
        }
    }

    /// Everything to the end: the answer alone, what was thought on the way, and how it ended.
    pub(super) async fn collect(&mut self) -> (String, String, Ending) {
        let (mut content, mut reasoning) = (String::new(), String::new());
        while let Some(chunk) = self.next().await {
            match chunk {
                Chunk::Content(text) => content.push_str(&text),
                Chunk::Reasoning(text) => reasoning.push_str(&text),
                Chunk::End(ending) => {
                    let answer = self.run.answer().filter(|_| !self.rules.are_binding());
                    let content = answer.map_or(content, |answer| answer.to_string());
                    return (content, reasoning, ending);
                }
            }
        }
        (content, reasoning, Ending::Stop)
    }

    fn end(&mut self, ending: Ending) {
        self.ended = true;
        self.ready.push_back(Chunk::End(ending));
    }

    /// Ends with the answer. One that does not keep the rules is an error.
    fn stop(&mut self) {
        if self.rules.are_binding() {
            let text = self.run.answer().map_or_else(|| self.held.as_str().into(), Clone::clone);
            match checked_text(&self.rules, &text) {
                Ok(text) => self.ready.push_back(Chunk::Content(text)),
                Err(error) => return self.end(Ending::Failed(error)),
            }
        }
        self.end(Cut::of(self.run.stopped_early()).map_or(Ending::Stop, Ending::Cut));
    }

    fn push_text(&mut self, text: String) {
        if self.rules.are_binding() {
            return self.held.push_str(&text);
        }
        let apart = std::mem::take(&mut self.is_new) && self.has_content;
        self.has_content = true;
        self.ready.push_back(Chunk::Content(if apart { format!("\n\n{text}") } else { text }));
    }

    fn push_reasoning(&mut self, text: String) {
        self.ends_line = text.ends_with('\n');
        self.ready.push_back(Chunk::Reasoning(text));
    }

    /// A line about what is done.
    fn note(&mut self, text: &str) {
        let start = if self.ends_line { "" } else { "\n" };
        self.push_reasoning(format!("{start}{text}\n"));
    }

    async fn on_event(&mut self, event: Event) {
        let is_main = event.subagent_run_id.is_none();
        match event.body {
            Body::TextMessageStart { .. } if is_main => self.is_new = true,
            Body::TextMessageContent { delta, .. } if is_main => self.push_text(delta),
            Body::ReasoningMessageContent { delta, .. } => self.push_reasoning(delta),
            Body::SubagentStarted { name, description, .. } => {
                self.note(&format!("▸ {name}: {}", description.unwrap_or_default()));
            }
            Body::ToolCallStart { tool_call_name, .. } => self.note(&format!("▸ {tool_call_name}")),
            // The request is queued; a client that asks again joins it.
            Body::RunError { message, code: Some(code), usage } if code == BUSY => {
                self.usage = usage;
                self.end(Ending::Failed(ApiError::new(StatusCode::CONFLICT, BUSY, message)));
            }
            Body::RunError { message, code, usage } => {
                self.usage = usage;
                self.end(Ending::Failed(ApiError::failed(code.as_deref().unwrap_or("failed"), &message)));
            }
            Body::RunFinished { outcome, usage, .. } => {
                self.usage = usage;
                self.finish(outcome).await;
            }
            _ => {}
        }
    }

    async fn finish(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Success { pending_tool_call_ids } if pending_tool_call_ids.is_empty() => self.stop(),
            Outcome::Success { .. } => {
                let calls = self.run.client_tool_calls().into_iter().map(ClientToolCall::new).collect();
                self.end(Ending::ToolCalls(calls));
            }
            Outcome::Cancelled => self.end(Ending::Failed(ApiError::failed("cancelled", "the request was cancelled"))),
            Outcome::Interrupt { .. } => match waiting(&self.state, &self.task).await {
                Ok(waiting) if self.rules.are_binding() => self.end(Ending::Failed(needs_person(&notice(&waiting)))),
                Ok(waiting) => {
                    self.is_new = true;
                    self.push_text(notice(&waiting));
                    self.end(Ending::Stop);
                }
                Err(problem) => self.end(Ending::Failed(problem.into())),
            },
        }
    }
}
