//! A model for people without a key: it asks nobody, invents nothing and says what it is.
//!
//! It is rules, not learning: [`intent`] says which of a few kinds of request it has before it, one file a kind does the work with
//! the tools that are offered, and what it says comes from what they returned. A reply is a pure function of the request.
//! The kinds and their grammar are in `docs/offline-model.md`.

mod arithmetic;
mod chat;
mod count;
mod files;
mod folder;
mod intent;
mod language;
mod mentions;
mod number;
mod numerals;
mod read_write;
mod shape;
mod summary;
mod table;
mod talk;
mod team;
mod time;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use polis_domain::{Finish, Usage};
use polis_ports::{Delta, DeltaStream, Model, ModelError, ModelRequest, estimate_tokens};

use intent::Intent;
use talk::{Spoken, Stop, Talk};

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
fn reply(request: &ModelRequest) -> Spoken {
    if let Some(role) = team::role(request) {
        return team::reply(request, role);
    }
    let asked = Talk::new(request).asked;
    let parts = team::parts(asked);
    let mut talk = Talk::new(request);
    let intent = intent::of(talk.asked, &talk.earlier);
    let done = match &parts[..] {
        [_, _, ..] => each(&mut talk, &parts),
        _ => answer(&mut talk, &intent),
    };
    let stop = match done {
        Ok(answer) | Err(Stop::Say(answer)) => {
            let left_out = team::unknown(asked).into_iter().map(|part| chat::not_understood(talk.language, &part));
            let answer: Vec<_> = std::iter::once(answer).chain(left_out).collect();
            Stop::Say(language::signed(talk.language, &answer.join("\n\n")))
        }
        Err(calls) => calls,
    };
    let mut spoken = talk.spoken(stop);
    if let Some(format) = request.format.as_deref().filter(|_| spoken.calls.is_empty()) {
        let known = shape::Known { asked: talk.asked, answer: &spoken.text, plan: &plan(&intent, talk.language) };
        spoken.text = shape::filled(&format.schema, &known).to_string();
    }
    spoken
}

/// Does the parts of a request one after another, each as if it had been asked for alone.
fn each<'a>(talk: &mut Talk<'a>, parts: &'a [String]) -> Result<String, Stop> {
    let whole = std::mem::replace(&mut talk.asked, &parts[0]);
    talk.earlier.insert(0, whole);
    let mut answers = Vec::new();
    for part in parts {
        talk.asked = part;
        let intent = intent::of(part, &talk.earlier);
        match answer(talk, &intent) {
            Ok(answer) | Err(Stop::Say(answer)) => answers.push(answer),
            Err(calls) => {
                talk.plan(parts.to_vec());
                return Err(calls);
            }
        }
    }
    Ok(answers.join("\n\n"))
}

/// Does what is wished as far as the tools have answered; a intent that needs them further stops with the calls.
fn answer(talk: &mut Talk<'_>, intent: &Intent) -> Result<String, Stop> {
    match intent {
        Intent::Read { path } => read_write::read(talk, path),
        Intent::Write { path, text } => read_write::write(talk, path, text),
        Intent::List { place, pattern } => folder::list(talk, place, pattern.as_deref()),
        Intent::Count { what, place, pattern } => count::count(talk, what, place, pattern.as_deref()),
        Intent::Search { text, place } => count::search(talk, text, place),
        Intent::Summarise { place } => summary::summarise(talk, place),
        Intent::Table { path, question } => table::analyse(talk, path.as_deref(), question),
        Intent::Arithmetic { expression } => Ok(arithmetic::answer(talk, expression)),
        Intent::Time { places } => time::tell(talk, places),
        Intent::OtherTime { word } => Ok(time::refusal(talk.language, word)),
        Intent::Chat => Ok(chat::introduction(talk)),
    }
}

/// The steps that a intent takes, as to-dos; one that needs no tools has none.
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

fn deltas(request: &ModelRequest, spoken: Spoken) -> Vec<Delta> {
    let mut deltas = vec![Delta::Model(NAME.into())];
    deltas.extend(language::pieces(&spoken.reasoning).map(Delta::Reasoning));
    deltas.extend(language::pieces(&spoken.text).map(Delta::Content));
    let mut written = estimate_tokens(&spoken.text);
    let finish = if spoken.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    for (index, call) in (0..).zip(spoken.calls) {
        written += estimate_tokens(&call.name) + estimate_tokens(&call.arguments);
        let (id, name) = (Some(call.id), Some(call.name));
        deltas.push(Delta::ToolCall { index, id, name, arguments: String::new() });
        let more = |arguments| Delta::ToolCall { index, id: None, name: None, arguments };
        deltas.extend(language::pieces(&call.arguments).map(more));
    }
    let reasoning_tokens = estimate_tokens(&spoken.reasoning);
    let input_tokens = request.estimate().input_tokens;
    let usage = Usage { input_tokens, output_tokens: written + reasoning_tokens, reasoning_tokens, ..Usage::default() };
    deltas.extend([Delta::Usage(usage), Delta::Done(finish)]);
    deltas
}
