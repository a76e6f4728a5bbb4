//! A model for people without a key: it asks nobody, invents nothing and says what it is.
//!
//! It is rules, not learning: [`intent`] says which of a few kinds of request it has before it, one file a kind does the work with
//! the tools that are offered, and what it says comes from what they returned. A reply is a pure function of the request.
//! The kinds and their grammar are in `docs/offline-model.md`.

mod arithmetic;
mod conversation;
mod count;
mod files;
mod folder;
mod intent;
mod introduction;
mod language;
mod mentions;
mod number;
mod numerals;
mod read_write;
mod structured_output;
mod summary;
mod table;
mod time;
mod workflow_roles;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use polis_domain::{Finish, Usage};
use polis_ports::{Delta, DeltaStream, Model, ModelError, ModelRequest, estimate_tokens};

use conversation::{Conversation, ModelReply, Stop};
use intent::Intent;

/// The name under which the model can be asked for.
pub const NAME: &str = "offline";

/// The model that needs no network. The same request always gets the same reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline {
    /// How fast it speaks.
    pub pace: Pace,
}

/// How fast the offline model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// All at once.
    #[default]
    Instant,
    /// So many words a second.
    WordsPerSecond(u32),
}

impl Pace {
    /// As fast as a person likes to read along.
    pub const HUMAN: Self = Self::WordsPerSecond(40);

    fn pause_before(self, delta: &Delta) -> Duration {
        match (self, delta) {
            (Self::WordsPerSecond(words), Delta::Content(text) | Delta::Reasoning(text)) => {
                Duration::from_secs(1) * language::words(text) / words.max(1)
            }
            _ => Duration::ZERO,
        }
    }
}

#[async_trait]
impl Model for Offline {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let deltas = deltas(&request, reply(&request));
        if self.pace == Pace::Instant {
            return Ok(Box::pin(stream::iter(deltas.into_iter().map(Ok))));
        }
        let pace = self.pace;
        Ok(Box::pin(stream::iter(deltas).then(move |delta| async move {
            let pause = pace.pause_before(&delta);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Ok(delta)
        })))
    }
}

/// What it says next to a conversation.
fn reply(request: &ModelRequest) -> ModelReply {
    if let Some(role) = workflow_roles::role(request) {
        return workflow_roles::reply(request, role);
    }
    let asked = Conversation::new(request).asked;
    let parts = workflow_roles::parts(asked);
    let mut conversation = Conversation::new(request);
    let intent = intent::of(conversation.asked, &conversation.earlier);
    let done = match &parts[..] {
        [_, _, ..] => each(&mut conversation, &parts),
        _ => answer(&mut conversation, &intent),
    };
    let left_out = workflow_roles::unknown(asked);
    let is_refusal = !left_out.is_empty() || matches!(done, Err(Stop::Say(_)));
    let stop = match done {
        Ok(answer) | Err(Stop::Say(answer)) => {
            let left_out = left_out.iter().map(|part| introduction::not_understood(conversation.language, part));
            let answer: Vec<_> = std::iter::once(answer).chain(left_out).collect();
            Stop::Say(language::signed(conversation.language, &answer.join("\n\n")))
        }
        Err(calls) => calls,
    };
    let mut reply = conversation.reply(stop);
    // Code that asks for words alone uses what it gets; a conversation with a person offers tools.
    let is_conversation = !request.tools.is_empty() && request.format.is_none() && !request.aside;
    reply.is_refusal = is_refusal && is_conversation && reply.calls.is_empty();
    if let Some(format) = request.format.as_deref().filter(|_| reply.calls.is_empty()) {
        let content = structured_output::ReplyContent {
            asked: conversation.asked,
            answer: &reply.text,
            plan: &plan(&intent, conversation.language),
        };
        reply.text = structured_output::fill_schema(&format.schema, &content).to_string();
    }
    reply
}

/// Does the parts of a request one after another, each as if it had been asked for alone.
fn each<'a>(conversation: &mut Conversation<'a>, parts: &'a [String]) -> Result<String, Stop> {
    let whole = std::mem::replace(&mut conversation.asked, &parts[0]);
    conversation.earlier.insert(0, whole);
    let (mut answers, mut is_all_done) = (Vec::new(), true);
    for part in parts {
        conversation.asked = part;
        let intent = intent::of(part, &conversation.earlier);
        match answer(conversation, &intent) {
            Ok(answer) => answers.push(answer),
            Err(Stop::Say(answer)) => {
                is_all_done = false;
                answers.push(answer);
            }
            Err(calls) => {
                conversation.plan(parts.to_vec());
                return Err(calls);
            }
        }
    }
    let answers = answers.join("\n\n");
    if is_all_done { Ok(answers) } else { Err(Stop::Say(answers)) }
}

/// Follows an intent as far as there are tool results; one that needs more stops with the calls.
fn answer(conversation: &mut Conversation<'_>, intent: &Intent) -> Result<String, Stop> {
    match intent {
        Intent::Read { path } => read_write::read(conversation, path),
        Intent::Write { path, text } => read_write::write(conversation, path, text),
        Intent::List { place, pattern } => folder::list(conversation, place, pattern.as_deref()),
        Intent::Count { what, place, pattern } => count::count(conversation, what, place, pattern.as_deref()),
        Intent::Search { text, place } => count::search(conversation, text, place),
        Intent::Summarise { place } => summary::summarise(conversation, place),
        Intent::Table { path, question } => table::analyse(conversation, path.as_deref(), question),
        Intent::Arithmetic { expression } => arithmetic::answer(conversation, expression),
        Intent::Time { places } => time::tell(conversation, places),
        Intent::OtherTime { word } => Err(Stop::Say(time::refusal(conversation.language, word))),
        Intent::Chat if introduction::asks_who(conversation.asked) => Ok(introduction::introduction(conversation)),
        Intent::Chat => match table::guess(conversation)? {
            Some(answer) => Ok(answer),
            None => Err(Stop::Say(introduction::introduction(conversation))),
        },
    }
}

/// The steps of an intent, as todos; one that needs no tools has none.
fn plan(intent: &Intent, language: language::Language) -> Vec<String> {
    match intent {
        Intent::Read { path } => read_write::reading_plan(language, path),
        Intent::Write { path, .. } => read_write::writing_plan(language, path),
        Intent::List { place, .. } => folder::plan(language, place),
        Intent::Count { place, .. } | Intent::Search { place, .. } => count::plan(language, place),
        Intent::Summarise { place } => summary::plan(language, place),
        Intent::Table { path, .. } => table::plan(language, path.as_deref()),
        Intent::Time { places } => time::plan(language, places),
        Intent::Arithmetic { .. } | Intent::OtherTime { .. } | Intent::Chat => Vec::new(),
    }
}

fn deltas(request: &ModelRequest, reply: ModelReply) -> Vec<Delta> {
    let mut deltas = vec![Delta::Model(NAME.into())];
    deltas.extend(language::chunks(&reply.reasoning).map(Delta::Reasoning));
    deltas.extend(language::chunks(&reply.text).map(Delta::Content));
    let mut output_tokens = estimate_tokens(&reply.text);
    let finish = match (reply.calls.is_empty(), reply.is_refusal) {
        (true, true) => Finish::Refusal,
        (true, false) => Finish::Stop,
        (false, _) => Finish::ToolCalls,
    };
    for (index, call) in (0..).zip(reply.calls) {
        output_tokens += estimate_tokens(&call.name) + estimate_tokens(&call.arguments);
        let (id, name) = (Some(call.id), Some(call.name));
        deltas.push(Delta::ToolCall { index, id, name, arguments: String::new() });
        let more = |arguments| Delta::ToolCall { index, id: None, name: None, arguments };
        deltas.extend(language::chunks(&call.arguments).map(more));
    }
    let reasoning_tokens = estimate_tokens(&reply.reasoning);
    let input_tokens = request.estimate().input_tokens;
    let usage = Usage { input_tokens, output_tokens: output_tokens + reasoning_tokens, reasoning_tokens, ..Usage::default() };
    deltas.extend([Delta::Usage(usage), Delta::Done(finish)]);
    deltas
}
