//! Follows one request to its end: shows its progress, and asks the person where that is possible.

use std::sync::Arc;
use std::time::Duration;

use polis_api::{TaskState, TaskStatus, unshown};
use polis_domain::{Effect, EffectId, Event, Failure, Inquiry, MessageKind, Recorded, Seq, TaskId, ThreadId, Verdict};
use tokio_util::sync::CancellationToken;

use crate::approval_prompt::{self, PendingApproval, PersonDecision};
use crate::cli::ApprovalMode;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::progress::Progress;
use crate::stdin_lines::StdinLines;
use crate::transport::{Events, Transport, WatchedEvent};
use crate::workflow_progress::{AnswerUpdate, LiveStep};

/// How a request ended, or why we no longer wait for it.
pub(crate) enum RequestEnd {
    Answered(Arc<str>, Completeness),
    Failed(Failure),
    /// Nothing moves until a person acts.
    NeedsPerson(Vec<PendingApproval>),
    /// The program was stopped.
    Stopped,
}

/// How much an answer answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    Whole,
    /// Not all of it was done, or nobody could check it.
    Partly,
}

/// What is printed while a request runs.
pub(crate) enum ProgressOutput {
    /// A line for each step, on stderr; on a terminal also the reply as it streams.
    Progress(Option<StreamedReply>),
    /// Every event as a line of JSON, on stdout.
    Json,
    /// The answer alone, at the end.
    Answer,
    /// Nothing; only how it ended.
    Nothing,
    /// The reply as it streams, on stdout.
    StreamedReply(StreamedReply),
}

/// A model's reply as far as it was printed.
pub(crate) struct StreamedReply {
    thread: ThreadId,
    effect: Option<EffectId>,
    /// The thread of a workflow that they come from.
    source: Option<ThreadId>,
    shown: String,
    /// Whether the line is not ended yet.
    is_open: bool,
}

/// How often it is asked whether anything is still done for a request.
const POLL: Duration = Duration::from_millis(200);

/// Waits for one request.
pub(crate) struct RequestFollower<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) events: &'a mut Events,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) task: TaskId,
    /// The first event that counts.
    pub(crate) from: Seq,
    pub(crate) show: ProgressOutput,
    pub(crate) agree: ApprovalMode,
    /// Where the person can be asked, if at all.
    pub(crate) lines: Option<&'a mut StdinLines>,
    pub(crate) progress: Progress,
}

impl RequestFollower<'_> {
    /// Waits until the request has ended, or cannot go on.
    pub(crate) async fn until_it_ends(&mut self) -> Result<RequestEnd, CliError> {
        // Older requests may stand before this one and wait for a person already.
        let mut asked = true;
        loop {
            if asked && let Some(ended) = self.settle(&mut asked).await? {
                return Ok(ended);
            }
            if let Some(ended) = self.next_event(&mut asked).await? {
                return self.with_parts(ended).await;
            }
        }
    }

    /// An answer does not hide that a part has failed, or is still worked on.
    async fn with_parts(&mut self, ended: RequestEnd) -> Result<RequestEnd, CliError> {
        let RequestEnd::Answered(answer, extent) = ended else { return Ok(ended) };
        let TaskState { status, failure, .. } = self.transport.api().task(&self.task).await?;
        match (status, failure) {
            (TaskStatus::Partial, Some(failure)) => {
                self.note(&format!("a part of it failed: {failure}"))?;
                Ok(RequestEnd::Answered(answer, Completeness::Partly))
            }
            (status, _) if !status.is_over() => {
                self.note(&format!("parts of it are still worked on; `polis wait {}` waits for them", self.task))?;
                Ok(RequestEnd::Answered(answer, extent))
            }
            _ => Ok(RequestEnd::Answered(answer, extent)),
        }
    }

    /// Waits until nothing is done for a request any more, also after it was answered.
    pub(crate) async fn until_nothing_is_open(&mut self, ended: RequestEnd) -> Result<RequestEnd, CliError> {
        let RequestEnd::Answered(answer, _) = &ended else { return Ok(ended) };
        loop {
            let TaskState { status, answer: last, .. } = self.transport.api().task(&self.task).await?;
            if status.is_over() {
                let extent = if status == TaskStatus::Partial { Completeness::Partly } else { Completeness::Whole };
                let last = last.map_or_else(|| answer.clone(), Into::into);
                return Ok(RequestEnd::Answered(last, extent));
            }
            if status == TaskStatus::NeedsPerson {
                return Ok(RequestEnd::NeedsPerson(self.waiting().await?));
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(RequestEnd::Stopped),
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// What of this request waits for a person; if it waits behind another one, everything that does.
    async fn waiting(&self) -> Result<Vec<PendingApproval>, CliError> {
        let all = approval_prompt::list(self.transport).await?;
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.task_id == self.task);
        Ok(if own.is_empty() { others } else { own })
    }

    /// Reads the events of a request that has ended. Nobody is asked, and nothing is decided.
    pub(crate) async fn read_to_its_end(&mut self) -> Result<RequestEnd, CliError> {
        let mut asked = false;
        loop {
            if let Some(ended) = self.next_event(&mut asked).await? {
                return Ok(ended);
            }
        }
    }

    /// Waits for one event; whether it ends the request, and whether it asks a person.
    async fn next_event(&mut self, asked: &mut bool) -> Result<Option<RequestEnd>, CliError> {
        let event = tokio::select! {
            () = self.stop.cancelled() => return Ok(Some(RequestEnd::Stopped)),
            event = self.events.next() => event?,
        };
        match event {
            WatchedEvent::Delta { effect, thread, text } => self.show_chunk(effect, &thread, &text)?,
            WatchedEvent::Step(seen) => self.show_step(&seen)?,
            WatchedEvent::Event { recorded, .. } if recorded.seq < self.from => drop(self.progress.steps(&recorded)),
            WatchedEvent::Event { data, recorded } => {
                self.show_event(&data, &recorded)?;
                *asked |= asks_person(&recorded.event);
                return self.ending(&recorded);
            }
        }
        Ok(None)
    }

    /// Decides pending approvals, as far as the mode allows.
    async fn settle(&mut self, asked: &mut bool) -> Result<Option<RequestEnd>, CliError> {
        let waiting = loop {
            for one in &approval_prompt::list(self.transport).await? {
                if let Some(decision) = self.automatic_decision(one) {
                    ignore_already_decided(one.answer(self.transport, &decision).await)?;
                }
            }
            if !needs_person(self.transport, &self.task).await? {
                *asked = !approval_prompt::list(self.transport).await?.is_empty();
                return Ok(None);
            }
            let waiting = self.waiting().await?;
            // Approvals that appeared in the meantime are decided as well.
            let is_new = waiting.iter().any(|waiting| self.automatic_decision(waiting).is_some());
            if !is_new {
                break waiting;
            }
        };
        let Some(lines) = self.lines.as_deref_mut() else { return Ok(Some(RequestEnd::NeedsPerson(waiting))) };
        let (others, own): (Vec<_>, Vec<_>) = waiting.iter().partition(|one| one.decided_by_others().is_some());
        for one in others {
            if self.progress.is_news(&one.id) {
                out::note(&format!("{}\n    {}", one.describe(), one.decided_by_others().unwrap_or_default()));
            }
        }
        *asked = !own.is_empty();
        for one in own {
            let answered = tokio::select! {
                () = self.stop.cancelled() => return Ok(Some(RequestEnd::Stopped)),
                answered = one.ask(self.transport, lines) => answered,
            };
            match answered {
                Ok(false) => return Ok(Some(RequestEnd::NeedsPerson(waiting))),
                answered => ignore_already_decided(answered.map(drop))?,
            }
        }
        Ok(None)
    }

    /// The decision that needs no question, if there is one.
    fn automatic_decision(&self, waiting: &PendingApproval) -> Option<PersonDecision> {
        let is_own = waiting.task_id == self.task;
        match self.agree {
            ApprovalMode::Never if is_own && waiting.is_question() => {
                // A plan that is refused with a reason is planned anew, which nobody has asked for.
                let why = if waiting.is_plan() { "" } else { Verdict::NOBODY_ASKED };
                Some(PersonDecision::No(why.to_owned()))
            }
            // To agree to everything that agents do is not to pay without end.
            ApprovalMode::All if is_own && waiting.can_be_approved() && !waiting.is_budget() => Some(PersonDecision::Yes),
            // Whoever asks is gone when this process ends, and nobody else can answer meanwhile.
            _ if waiting.is_from_server() && self.lines.is_none() && matches!(self.transport, Transport::InProcess(_)) => {
                Some(PersonDecision::Cancel)
            }
            _ => None,
        }
    }

    fn show_event(&mut self, data: &str, recorded: &Recorded) -> Result<(), CliError> {
        let steps = self.progress.steps(recorded);
        match &self.show {
            ProgressOutput::Json => return out::line(data),
            ProgressOutput::Answer | ProgressOutput::Nothing => return Ok(()),
            ProgressOutput::Progress(_) | ProgressOutput::StreamedReply(_) => {}
        }
        // A chat shows a plan and its progress, and nothing else beside the answer.
        let is_chat = matches!(self.show, ProgressOutput::StreamedReply(_));
        steps.into_iter().filter(|step| step.is_workflow || !is_chat).try_for_each(|step| self.note(&step.text))
    }

    /// Prints a step, apart from the streamed reply.
    fn note(&mut self, line: &str) -> Result<(), CliError> {
        if let ProgressOutput::Progress(Some(words)) | ProgressOutput::StreamedReply(words) = &mut self.show {
            words.break_off()?;
        }
        out::note(&format!("· {line}"));
        Ok(())
    }

    /// A step of a workflow: a line, or more of the answer.
    fn show_step(&mut self, seen: &LiveStep) -> Result<(), CliError> {
        let is_shown = matches!(self.show, ProgressOutput::Progress(_) | ProgressOutput::StreamedReply(_));
        if !is_shown {
            return Ok(());
        }
        if let Some(line) = self.progress.server_line(seen) {
            return self.note(&line);
        }
        if !self.progress.has_member(&seen.thread) {
            return Ok(());
        }
        if let Some(line) = self.progress.seen(seen) {
            self.note(&line)?;
        }
        let (ProgressOutput::Progress(Some(words)) | ProgressOutput::StreamedReply(words)) = &mut self.show else {
            return Ok(());
        };
        match seen.answer() {
            None => Ok(()),
            Some(AnswerUpdate::Again) => words.begin_again(None),
            Some(AnswerUpdate::Text(text)) => {
                if words.source.as_ref() != Some(&seen.thread) {
                    words.begin_again(Some(seen.thread.clone()))?;
                }
                words.add(text)
            }
        }
    }

    fn show_chunk(&mut self, effect: EffectId, thread: &ThreadId, text: &str) -> Result<(), CliError> {
        let (ProgressOutput::StreamedReply(words) | ProgressOutput::Progress(Some(words))) = &mut self.show else {
            return Ok(());
        };
        if *thread != words.thread || !self.progress.has(effect.turn) {
            return Ok(());
        }
        if words.effect != Some(effect) {
            words.begin_again(None)?;
        }
        words.effect = Some(effect);
        words.add(text)
    }

    fn ending(&mut self, recorded: &Recorded) -> Result<Option<RequestEnd>, CliError> {
        let Event::MessageSent { envelope, .. } = &recorded.event else { return Ok(None) };
        if envelope.task_id != self.task || !envelope.to.is_user() {
            return Ok(None);
        }
        match &envelope.kind {
            MessageKind::Message => {
                match &mut self.show {
                    ProgressOutput::StreamedReply(_) => out::line(&envelope.payload.text)?,
                    ProgressOutput::Progress(_) => out::note(&format!("{}: {}", envelope.from, envelope.payload.text)),
                    ProgressOutput::Json | ProgressOutput::Answer | ProgressOutput::Nothing => {}
                }
                Ok(None)
            }
            MessageKind::Answer => {
                let text = &envelope.payload.text;
                let extent = if self.progress.is_partly(text) { Completeness::Partly } else { Completeness::Whole };
                Ok(Some(RequestEnd::Answered(text.clone(), extent)))
            }
            MessageKind::Failure(failure) => Ok(Some(RequestEnd::Failed(failure.clone()))),
        }
    }
}

impl StreamedReply {
    /// An empty reply in this thread.
    pub(crate) fn of(thread: ThreadId) -> Self {
        Self { thread, effect: None, source: None, shown: String::new(), is_open: false }
    }

    /// Discards what was printed: it is not the answer.
    fn begin_again(&mut self, source: Option<ThreadId>) -> Result<(), CliError> {
        self.source = source;
        self.shown.clear();
        self.break_off()
    }

    fn add(&mut self, text: &str) -> Result<(), CliError> {
        self.shown.push_str(text);
        self.is_open = true;
        out::text(text)
    }

    /// Prints the answer, unless it was already streamed.
    pub(crate) fn finish(&mut self, answer: &str) -> Result<(), CliError> {
        self.break_off()?;
        match unshown(answer, &self.shown) {
            "" => Ok(()),
            left => out::line(left),
        }
    }

    /// Ends an open line.
    pub(crate) fn break_off(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.is_open) { out::line("") } else { Ok(()) }
    }
}

/// Tells how it ended, and how the program ends with it.
pub(crate) fn conclude(config: &Config, task: &TaskId, ended: RequestEnd, show: &mut ProgressOutput) -> Result<Exit, CliError> {
    if let ProgressOutput::StreamedReply(words) | ProgressOutput::Progress(Some(words)) = show {
        words.break_off()?;
    }
    match ended {
        RequestEnd::Answered(answer, extent) => {
            match show {
                ProgressOutput::Json | ProgressOutput::Nothing => {}
                ProgressOutput::Progress(None) | ProgressOutput::Answer => out::line(&answer)?,
                ProgressOutput::StreamedReply(words) | ProgressOutput::Progress(Some(words)) => words.finish(&answer)?,
            }
            Ok(if extent == Completeness::Whole { Exit::Done } else { Exit::Partly })
        }
        RequestEnd::Failed(failure) => {
            out::note(&format!("polis: {failure}"));
            Ok(Exit::Failed)
        }
        RequestEnd::NeedsPerson(waiting) => {
            if waiting.iter().all(|one| one.task_id != *task) {
                out::note(&format!("polis: your request {task} is kept and comes after another one of the same agent"));
            }
            out::note("polis: this waits for a person:");
            for one in waiting {
                out::note(&format!("  {}\n    {}", one.describe(), one.advice(config)));
            }
            Ok(Exit::NeedsPerson)
        }
        RequestEnd::Stopped => {
            let cancel = config.command_line(&format!("cancel {task}"));
            out::note(&format!(
                "polis: stopped; the request continues in the server, or when polis runs again here, unless you cancel it with `{cancel}`"
            ));
            Ok(Exit::Stopped)
        }
    }
}

/// Somebody else may have answered first, which is as good.
fn ignore_already_decided(answered: Result<(), CliError>) -> Result<(), CliError> {
    match answered {
        Err(error) if error.code == "not_open" => Ok(()),
        answered => answered,
    }
}

/// Whether a person must act first. Approvals of another request that blocks this one count as well.
async fn needs_person(transport: &Transport, task: &TaskId) -> Result<bool, CliError> {
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
