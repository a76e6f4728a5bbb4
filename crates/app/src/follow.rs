//! Following one request to its end: telling what goes on, asking the person where that is possible.

use std::sync::Arc;

use polis_api::{TaskState, TaskStatus};
use polis_domain::{Effect, EffectId, Event, Failure, Inquiry, MessageKind, Recorded, Seq, TaskId, ThreadId, Verdict};
use tokio_util::sync::CancellationToken;

use crate::cli::Agree;
use crate::config::Config;
use crate::lines::Lines;
use crate::out;
use crate::person::{self, Waiting, Word};
use crate::progress::Progress;
use crate::team::{Growth, SeenStep};
use crate::transport::{Events, Told, Transport};
use crate::trouble::{Exit, Trouble};

/// How a request ended, or why we no longer wait for it.
pub(crate) enum Ended {
    Answered(Arc<str>, Extent),
    Failed(Failure),
    /// Nothing moves until a person acts.
    NeedsPerson(Vec<Waiting>),
    /// We were told to stop.
    Stopped,
}

/// How much an answer answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Not all of it was done, or nobody could check it.
    Partly,
}

/// What whoever waits gets to see.
pub(crate) enum Show {
    /// A line for each step, on stderr; and on a terminal the words of an agent as they come.
    Progress(Option<Words>),
    /// Every event as a line of JSON, on stdout.
    Json,
    /// The words of an agent as they come, on stdout.
    Words(Words),
}

/// The words that were shown of a model's reply.
pub(crate) struct Words {
    thread: ThreadId,
    effect: Option<EffectId>,
    /// The thread of a workflow that they come from.
    source: Option<ThreadId>,
    shown: String,
    /// Whether the line is not ended yet.
    is_open: bool,
}

/// Waits for one request.
pub(crate) struct Follow<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) events: &'a mut Events,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) task: TaskId,
    /// The first event that counts.
    pub(crate) from: Seq,
    pub(crate) show: Show,
    pub(crate) agree: Agree,
    /// Where the person can be asked, if at all.
    pub(crate) lines: Option<&'a mut Lines>,
    pub(crate) progress: Progress,
}

impl Follow<'_> {
    /// Waits until the request has ended, or cannot go on.
    pub(crate) async fn until_it_ends(&mut self) -> Result<Ended, Trouble> {
        // Older requests may stand before this one and wait for a person already.
        let mut asked = true;
        loop {
            if asked && let Some(ended) = self.settle(&mut asked).await? {
                return Ok(ended);
            }
            let told = tokio::select! {
                () = self.stop.cancelled() => return Ok(Ended::Stopped),
                told = self.events.next() => told?,
            };
            match told {
                Told::Delta { effect, thread, text } => self.chunk(effect, &thread, &text)?,
                Told::Step(seen) => self.seen(&seen)?,
                Told::Event { recorded, .. } if recorded.seq < self.from => {}
                Told::Event { data, recorded } => {
                    self.tell(&data, &recorded)?;
                    if let Some(ended) = self.ending(&recorded)? {
                        return Ok(ended);
                    }
                    asked |= asks_person(&recorded.event);
                }
            }
        }
    }

    /// Answers what waits for a person, as far as we may.
    async fn settle(&mut self, asked: &mut bool) -> Result<Option<Ended>, Trouble> {
        let waiting = loop {
            for one in &person::list(self.transport).await? {
                if let Some(word) = self.word_on(one) {
                    settled_by_now(one.answer(self.transport, &word).await)?;
                }
            }
            if !needs_person(self.transport, &self.task).await? {
                *asked = !person::list(self.transport).await?.is_empty();
                return Ok(None);
            }
            let waiting = person::list(self.transport).await?;
            // What was asked in the meantime is answered as well.
            let is_new = waiting.iter().any(|waiting| self.word_on(waiting).is_some());
            if !is_new {
                break waiting;
            }
        };
        let Some(lines) = self.lines.as_deref_mut() else { return Ok(Some(Ended::NeedsPerson(waiting))) };
        for one in &waiting {
            let answered = tokio::select! {
                () = self.stop.cancelled() => return Ok(Some(Ended::Stopped)),
                answered = one.ask(self.transport, lines) => answered,
            };
            match answered {
                Ok(false) => return Ok(Some(Ended::NeedsPerson(waiting))),
                answered => settled_by_now(answered.map(drop))?,
            }
        }
        Ok(None)
    }

    /// What is said without asking anybody, if anything is.
    fn word_on(&self, waiting: &Waiting) -> Option<Word> {
        let is_own = waiting.task_id == self.task;
        match self.agree {
            Agree::Never if is_own && waiting.is_question() => {
                // A plan that is refused with a reason is planned anew, which nobody has asked for.
                let why = if waiting.is_plan() { "" } else { Verdict::NOBODY_ASKED };
                Some(Word::No(why.to_owned()))
            }
            // To agree to everything that agents do is not to pay without end.
            Agree::All if is_own && waiting.wants_a_yes() && !waiting.is_budget() => Some(Word::Yes),
            // Whoever asks is gone when this process ends, and nobody else can answer meanwhile.
            _ if waiting.is_servers() && self.lines.is_none() && matches!(self.transport, Transport::InProcess(_)) => {
                Some(Word::Cancel)
            }
            _ => None,
        }
    }

    fn tell(&mut self, data: &str, recorded: &Recorded) -> Result<(), Trouble> {
        let steps = self.progress.steps(recorded);
        if let Show::Json = &self.show {
            return out::line(data);
        }
        // Whoever converses hears of a plan and what becomes of it, and of nothing else beside the answer.
        let is_chat = matches!(self.show, Show::Words(_));
        steps.into_iter().filter(|step| step.is_of_team || !is_chat).try_for_each(|step| self.note(&step.text))
    }

    /// Tells of a step, beside the words that are shown.
    fn note(&mut self, line: &str) -> Result<(), Trouble> {
        if let Show::Progress(Some(words)) | Show::Words(words) = &mut self.show {
            words.break_off()?;
        }
        out::note(&format!("· {line}"));
        Ok(())
    }

    /// A step of a workflow: a line, or more of the answer.
    fn seen(&mut self, seen: &SeenStep) -> Result<(), Trouble> {
        if matches!(self.show, Show::Json) || !self.progress.has_member(&seen.thread) {
            return Ok(());
        }
        if let Some(line) = self.progress.seen(seen) {
            self.note(&line)?;
        }
        let (Show::Progress(Some(words)) | Show::Words(words)) = &mut self.show else { return Ok(()) };
        match seen.answer() {
            None => Ok(()),
            Some(Growth::Again) => words.begin_again(None),
            Some(Growth::Text(text)) => {
                if words.source.as_ref() != Some(&seen.thread) {
                    words.begin_again(Some(seen.thread.clone()))?;
                }
                words.add(text)
            }
        }
    }

    fn chunk(&mut self, effect: EffectId, thread: &ThreadId, text: &str) -> Result<(), Trouble> {
        let (Show::Words(words) | Show::Progress(Some(words))) = &mut self.show else { return Ok(()) };
        if *thread != words.thread || !self.progress.has(effect.turn) {
            return Ok(());
        }
        if words.effect != Some(effect) {
            words.begin_again(None)?;
        }
        words.effect = Some(effect);
        words.add(text)
    }

    fn ending(&mut self, recorded: &Recorded) -> Result<Option<Ended>, Trouble> {
        let Event::MessageSent { envelope, .. } = &recorded.event else { return Ok(None) };
        if envelope.task_id != self.task || !envelope.to.is_user() {
            return Ok(None);
        }
        match &envelope.kind {
            MessageKind::Message => {
                match &mut self.show {
                    Show::Words(_) => out::line(&envelope.payload.text)?,
                    Show::Progress(_) => out::note(&format!("{}: {}", envelope.from, envelope.payload.text)),
                    Show::Json => {}
                }
                Ok(None)
            }
            MessageKind::Answer => {
                let text = &envelope.payload.text;
                let extent = if self.progress.is_partly(text) { Extent::Partly } else { Extent::Whole };
                Ok(Some(Ended::Answered(text.clone(), extent)))
            }
            MessageKind::Failure(failure) => Ok(Some(Ended::Failed(failure.clone()))),
        }
    }
}

impl Words {
    /// Nothing was said yet in this thread.
    pub(crate) fn of(thread: ThreadId) -> Self {
        Self { thread, effect: None, source: None, shown: String::new(), is_open: false }
    }

    /// What was shown so far is not the answer.
    fn begin_again(&mut self, source: Option<ThreadId>) -> Result<(), Trouble> {
        self.source = source;
        self.shown.clear();
        self.break_off()
    }

    fn add(&mut self, text: &str) -> Result<(), Trouble> {
        self.shown.push_str(text);
        self.is_open = true;
        out::text(text)
    }

    /// Shows what is still missing of the answer.
    pub(crate) fn finish(&mut self, answer: &str) -> Result<(), Trouble> {
        self.break_off()?;
        if self.shown.trim() == answer.trim() { Ok(()) } else { out::line(answer) }
    }

    /// Ends the line that was begun, if one was.
    pub(crate) fn break_off(&mut self) -> Result<(), Trouble> {
        if std::mem::take(&mut self.is_open) { out::line("") } else { Ok(()) }
    }
}

/// Tells how it ended, and how the program ends with it.
pub(crate) fn conclude(config: &Config, task: &TaskId, ended: Ended, show: &mut Show) -> Result<Exit, Trouble> {
    if let Show::Words(words) | Show::Progress(Some(words)) = show {
        words.break_off()?;
    }
    match ended {
        Ended::Answered(answer, extent) => {
            match show {
                Show::Json => {}
                Show::Progress(None) => out::line(&answer)?,
                Show::Words(words) | Show::Progress(Some(words)) => words.finish(&answer)?,
            }
            Ok(if extent == Extent::Whole { Exit::Done } else { Exit::Partly })
        }
        Ended::Failed(failure) => {
            out::note(&format!("polis: {failure}"));
            Ok(Exit::Failed)
        }
        Ended::NeedsPerson(waiting) => {
            if waiting.iter().all(|one| one.task_id != *task) {
                out::note(&format!("polis: your request {task} is kept and comes after another one of the same agent"));
            }
            out::note("polis: this waits for a person:");
            for one in waiting {
                out::note(&format!("  {}\n    {}", one.in_words(), one.advice(config)));
            }
            Ok(Exit::NeedsPerson)
        }
        Ended::Stopped => {
            let cancel = config.again(&format!("cancel {task}"));
            out::note(&format!(
                "polis: stopped; the request continues in the server, or when polis runs again here, unless you cancel it with `{cancel}`"
            ));
            Ok(Exit::Stopped)
        }
    }
}

/// Somebody else may have answered first, which is as good.
fn settled_by_now(answered: Result<(), Trouble>) -> Result<(), Trouble> {
    match answered {
        Err(trouble) if trouble.code == "not_open" => Ok(()),
        answered => answered,
    }
}

/// Whether nothing moves until a person acts. What another request waits for can be settled here as well.
async fn needs_person(transport: &Transport, task: &TaskId) -> Result<bool, Trouble> {
    let TaskState { status, behind, .. } = transport.api().task(task).await?;
    Ok(status == TaskStatus::NeedsPerson || behind.is_some())
}

fn asks_person(event: &Event) -> bool {
    matches!(
        event,
        Event::EffectStarted { effect: Effect::Approval { .. } | Effect::Grant { .. }, .. }
            | Event::CallInquired { inquiry: Inquiry::Person { .. }, .. }
            | Event::EffectDoubted { .. }
            | Event::TurnCrashed { .. }
            | Event::TurnRested { .. }
            | Event::MessageDeadLettered { .. }
            | Event::TurnParked { .. }
    )
}
