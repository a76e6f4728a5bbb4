//! Running sub-threads: each is opened in a message and runs unit after unit until it is done; several run in parallel.
//!
//! Parallel sub-threads advance in the order in which their units end in the log. That order is the same in a second run,
//! so the second run states the same effects with the same numbers.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use polis_domain::{
    Act, BriefStatus, Effect, Failure, Message, MessageId, MessagePatch, Meta, Outcome, Phase, Response, Sender, Settings,
    SubThreadPath, SubThreadRequest, Task, Timestamp,
};
use serde::Serialize;
use serde_json::Value;

use super::ask::answer;
use super::journal::Entry;
use super::phases::no_handler;
use super::{BatchUpdate, Turn, panicked};
use crate::cast::{CodeScope, DeclaredSubThread};
use crate::text::FAILED;
use crate::{Interaction, Progress, SubThreadResult};

/// A running sub-thread.
struct Run {
    declared: Arc<DeclaredSubThread>,
    task: Task,
    holder: MessageId,
    path: SubThreadPath,
    results: Vec<Interaction>,
    /// How many messages of the sub-thread have been read.
    seen: usize,
    /// The phase of the unit that runs.
    phase: Phase,
    /// Its messages, once it is done.
    messages: Vec<Arc<Message>>,
    result: Option<SubThreadResult>,
}

/// The meta of a unit's task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnitMeta<'a> {
    original_task: &'a str,
    timestamp: Timestamp,
    sub_thread_path: &'a SubThreadPath,
    parent_thread_path: &'a SubThreadPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_resource_id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_settings: Option<&'a Value>,
}

/// Sub-threads that run in parallel. More may join while they run.
#[derive(Default)]
pub struct SubThreadGroup {
    runs: Vec<Run>,
    open: Vec<(usize, Entry)>,
    /// Sub-threads that have ended and were not returned yet.
    ended: VecDeque<usize>,
}

impl SubThreadGroup {
    /// Whether some of them still run.
    pub fn is_running(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Turn {
    /// Opens a sub-thread in a message of the turn's own thread and runs it to its end, unit by unit. The message then shows the
    /// result. A failure inside the sub-thread is part of the result; an error here means that it could not be started.
    ///
    /// The running handler, unit or agent must declare the name in its `sub_threads`.
    pub async fn run_sub_thread(&mut self, request: SubThreadRequest) -> Result<SubThreadResult, Failure> {
        self.run_sub_threads(vec![request]).await?.pop().ok_or_else(not_run)
    }

    /// Makes changes and starts more sub-threads of a group, all opened with one append or none. [`Turn::next_sub_thread`]
    /// returns their results.
    pub async fn join_sub_threads(
        &mut self,
        group: &mut SubThreadGroup,
        changes: Vec<BatchUpdate>,
        requests: Vec<SubThreadRequest>,
    ) -> Result<(), Failure> {
        let sub_threads = requests.iter().map(|request| self.declared(request)).collect::<Result<Vec<_>, _>>()?;
        let acts = self.acts_of(changes).await?;
        let runs = self.open_runs(acts, sub_threads.into_iter().zip(requests).collect()).await?;
        self.start_runs(group, runs).await;
        Ok(())
    }

    /// The next sub-thread of a group that ended, in the order of the log: its index in the order of joining, and its result.
    /// None when all have been returned.
    pub async fn next_sub_thread(&mut self, group: &mut SubThreadGroup) -> Option<(usize, SubThreadResult)> {
        loop {
            if let Some(place) = group.ended.pop_front() {
                return group.runs[place].result.take().map(|result| (place, result));
            }
            if group.open.is_empty() {
                return None;
            }
            let (place, outcome) = self.first_ended(&mut group.open).await;
            let next = self.advance_run(&mut group.runs[place], Some(outcome)).await;
            match next {
                Some(unit) => self.start_units(group, vec![(place, unit)]).await,
                None => group.ended.push_back(place),
            }
        }
    }

    /// Runs several sub-threads in parallel; one result for each, in order (R086).
    pub async fn run_sub_threads(&mut self, requests: Vec<SubThreadRequest>) -> Result<Vec<SubThreadResult>, Failure> {
        let mut group = SubThreadGroup::default();
        self.join_sub_threads(&mut group, Vec::new(), requests).await?;
        Ok(self.finish_runs(group).await)
    }

    /// Runs a sub-thread agent that is used as a plain agent: its sub-thread hangs in a new message of its own.
    pub(crate) async fn run_as_sub_thread(&mut self) -> Result<Response, Failure> {
        let declared = self.registration.own_sub_thread().cloned().ok_or_else(not_run)?;
        let request = SubThreadRequest::new("", self.task.message.clone());
        let runs = self.open_runs(Vec::new(), vec![(declared, request)]).await?;
        let mut group = SubThreadGroup::default();
        self.start_runs(&mut group, runs).await;
        let result = self.finish_runs(group).await.pop().ok_or_else(not_run)?;
        match result.failure {
            Some(failure) => Err(failure),
            None => Ok(result.into()),
        }
    }

    fn declared(&self, request: &SubThreadRequest) -> Result<Arc<DeclaredSubThread>, Failure> {
        let found = self.scope.sub_threads.get(&request.name).cloned();
        found.ok_or_else(|| {
            let declared: Vec<_> = self.scope.sub_threads.keys().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "there is no sub-thread `{}` here; `sub_threads` of the code that runs it must declare it ({})",
                request.name,
                if declared.is_empty() {
                    "it declares none".to_owned()
                } else {
                    format!("it declares {}", declared.join(", "))
                }
            );
            Failure::new("no_such_sub_thread", message)
        })
    }

    /// Makes changes and opens sub-threads, each in the named message of the turn's own thread or in a new one.
    async fn open_runs(
        &mut self,
        mut acts: Vec<Act>,
        wanted: Vec<(Arc<DeclaredSubThread>, SubThreadRequest)>,
    ) -> Result<Vec<Run>, Failure> {
        let (here, parent) = (self.path(), self.start.thread.clone());
        let held: Arc<str> = FAILED.in_language_of(&self.task.message).into();
        let mut runs = Vec::with_capacity(wanted.len());
        for (declared, request) in wanted {
            let (holder, index) = match &request.holder {
                Some(holder) => (holder.clone(), Some(self.index_of(&parent, holder).await?)),
                None => {
                    let message = self.placeholder(&request);
                    let holder = message.id.clone();
                    acts.push(Act::AddMessage { thread: parent.clone(), message: Arc::new(message) });
                    (holder, None)
                }
            };
            let SubThreadRequest { slot, meta, message, .. } = request;
            let brief_status = BriefStatus { phase: declared.first.clone(), ..BriefStatus::default() };
            let settings = Settings { brief_status, ..Settings::default() };
            let (parent, child, held) = (parent.clone(), self.sub_thread_id(&here, &parent), Some(held.clone()));
            acts.push(Act::OpenSubThread { parent, index, slot, child, settings, meta, held });
            runs.push((declared, holder, message));
        }
        if acts.is_empty() {
            return Ok(Vec::new());
        }
        let events = self.act(acts).await?;
        let paths = self.linked(&events);
        Ok(runs
            .into_iter()
            .zip(paths)
            .map(|((declared, holder, message), path)| self.run_of(declared, holder, message, path))
            .collect())
    }

    fn run_of(&self, declared: Arc<DeclaredSubThread>, holder: MessageId, message: Arc<str>, path: SubThreadPath) -> Run {
        let name = if path.is_nested() { "ProcessNestedSubThread" } else { "ProcessSubThread" };
        let original_task = self.task.meta.get("originalQuery").and_then(Value::as_str).unwrap_or(&self.task.message);
        let (sub_thread_path, parent_thread_path, timestamp) = (&path, &self.path, self.now());
        let meta = Meta::of(&UnitMeta {
            original_task,
            timestamp,
            sub_thread_path,
            parent_thread_path,
            current_resource_id: self.task.meta.get(Task::RESOURCE),
            model_settings: self.task.meta.get(Task::MODEL_SETTINGS),
        });
        let task = Task { meta, ..Task::action(self.task.id.clone(), name, message) };
        let phase = declared.first.clone();
        Run { declared, task, holder, path, results: Vec::new(), seen: 0, phase, messages: Vec::new(), result: None }
    }

    async fn finish_runs(&mut self, mut group: SubThreadGroup) -> Vec<SubThreadResult> {
        let mut results: Vec<_> = group.runs.iter().map(|_| None).collect();
        while let Some((place, result)) = self.next_sub_thread(&mut group).await {
            results[place] = Some(result);
        }
        results.into_iter().flatten().collect()
    }

    /// Starts the first units of sub-threads with one append. One by one, the turn could lose its slot after the first and
    /// start the others only when it is run again.
    async fn start_runs(&mut self, group: &mut SubThreadGroup, runs: Vec<Run>) {
        let begins = group.runs.len();
        group.runs.extend(runs);
        let mut first = Vec::with_capacity(group.runs.len() - begins);
        for place in begins..group.runs.len() {
            match self.advance_run(&mut group.runs[place], None).await {
                Some(unit) => first.push((place, unit)),
                None => group.ended.push_back(place),
            }
        }
        self.start_units(group, first).await;
    }

    /// States units. A refused unit ends its sub-thread.
    async fn start_units(&mut self, group: &mut SubThreadGroup, units: Vec<(usize, Effect)>) {
        if units.is_empty() {
            return;
        }
        // The position of the turn must not depend on whether its own reports have been committed yet.
        self.committed_position().await;
        let (places, effects): (Vec<_>, Vec<_>) = units.into_iter().unzip();
        for (place, entry) in places.into_iter().zip(self.declare(effects).await) {
            match entry.refusal().cloned() {
                Some(failure) => {
                    let result = self.close_run(&mut group.runs[place], Err(failure)).await;
                    group.runs[place].result = Some(result);
                    group.ended.push_back(place);
                }
                None => group.open.push((place, entry)),
            }
        }
    }

    /// Waits for the open unit that ends first in the log; returns the index of its sub-thread and its result.
    async fn first_ended(&mut self, open: &mut Vec<(usize, Entry)>) -> (usize, Result<Outcome, Failure>) {
        self.committed_position().await;
        loop {
            let ended = open.iter().enumerate().filter_map(|(i, (_, entry))| Some((entry.end()?, i))).min();
            if let Some((_, i)) = ended {
                let (place, entry) = open.swap_remove(i);
                let outcome = match self.result(&entry) {
                    Some(outcome) => outcome,
                    None => self.park_diverged(entry.id.n, "unit").await,
                };
                return (place, outcome);
            }
            let event = self.next_event_of(open.iter().map(|(_, entry)| entry)).await;
            if let Some((_, entry)) = open.iter_mut().find(|(_, entry)| entry.is_about(&event)) {
                entry.events.push(event);
            }
        }
    }

    /// Processes the result of the last unit and returns the next one; none when the sub-thread is done.
    async fn advance_run(&mut self, run: &mut Run, ended: Option<Result<Outcome, Failure>>) -> Option<Effect> {
        let next = match ended.map(answer) {
            Some(Err(failure)) => Err(failure),
            Some(Ok(_)) => self.next_step(run, true).await,
            None => self.next_step(run, false).await,
        };
        let outcome = match next {
            Ok(NextStep::Unit(unit)) => return Some(*unit),
            Ok(NextStep::Done(text)) => Ok(text),
            Err(failure) => Err(failure),
        };
        run.result = Some(self.close_run(run, outcome).await);
        None
    }

    /// Decides what follows in a sub-thread: another unit, or its end.
    async fn next_step(&mut self, run: &mut Run, is_unit_done: bool) -> Result<NextStep, Failure> {
        let declared = run.declared.clone();
        let thread = self.thread(&run.path).await?;
        if is_unit_done {
            run.results.push(interaction_of(run.phase.clone(), &thread.messages[run.seen.min(thread.messages.len())..])?);
        }
        run.seen = thread.messages.len();
        let suggested = thread.settings.phase_update_suggestion.as_ref().map(|suggestion| suggestion.phase.clone());
        let next = suggested.clone().unwrap_or_else(|| thread.phase().clone());
        let is_settled = is_unit_done && suggested.is_none();
        let progress = Progress { results: std::mem::take(&mut run.results), thread, path: run.path.clone(), next };
        let chosen = self.as_agent(&declared.scope, async |turn| declared.agent.next_unit(&progress, turn).await).await?;
        if declared.agent.is_terminal(&chosen) || is_settled && chosen == progress.next {
            let text = self.as_agent(&declared.scope, async |turn| declared.agent.summarize(&progress, turn).await).await?;
            run.messages = progress.thread.messages;
            return Ok(NextStep::Done(text));
        }
        let limit = declared.agent.max_interactions();
        if progress.results.len() >= limit {
            let message = format!("the sub-thread is not done after {limit} interactions, which is the most it may have");
            return Err(Failure::new("too_many_interactions", message));
        }
        let behaviour = declared.units.get(&chosen).cloned().ok_or_else(|| no_handler(&chosen))?;
        if chosen != progress.next {
            self.suggest_phase_in(&run.path, chosen.clone()).await?;
        }
        run.results = progress.results;
        run.phase = chosen;
        self.placed(&run.path, behaviour, run.task.clone()).await.map(|unit| NextStep::Unit(Box::new(unit)))
    }

    /// Writes the result of a sub-thread into its message and applies its last phase.
    async fn close_run(&mut self, run: &mut Run, outcome: Result<String, Failure>) -> SubThreadResult {
        let result = self.outcome(run, outcome);
        let Err(refused) = self.write_result(run, &result).await else { return result };
        // The result was refused, for example because it is too long. A failure message is short enough.
        let failed = self.outcome(run, Err(result.failure.unwrap_or(refused)));
        let _ = self.write_result(run, &failed).await;
        failed
    }

    fn outcome(&self, run: &mut Run, outcome: Result<String, Failure>) -> SubThreadResult {
        let (text, failure) = match outcome {
            Ok(text) => (text, None),
            Err(failure) => (format!("{}{failure}", FAILED.in_language_of(&self.task.message)), Some(failure)),
        };
        let messages = std::mem::take(&mut run.messages);
        SubThreadResult { message: run.holder.clone(), path: run.path.clone(), text, failure, messages }
    }

    async fn write_result(&mut self, run: &Run, result: &SubThreadResult) -> Result<(), Failure> {
        let parent = self.start.thread.clone();
        let index = self.index_of(&parent, &run.holder).await?;
        let patch = MessagePatch { text: Some(result.text.clone()), ..MessagePatch::default() };
        let mut acts = vec![Act::UpdateMessage { thread: parent, index, patch }];
        let mut settings = self.thread_settings(&run.path).await?;
        let is_done = result.failure.is_none();
        if let Some(suggestion) = settings.phase_update_suggestion.take().filter(|_| is_done) {
            // No later turn in the sub-thread will apply it.
            settings.brief_status.phase = suggestion.phase;
            acts.push(Act::UpdateSettings { thread: self.resolve(&run.path).await?, settings });
        }
        self.act_ahead(acts).await
    }

    /// Runs a sub-thread agent's own code in the scope of that agent. A panic fails the sub-thread, not the turn that started
    /// it (R067).
    async fn as_agent<T>(
        &mut self,
        scope: &Arc<CodeScope>,
        code: impl AsyncFnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let outer = std::mem::replace(&mut self.scope, scope.clone());
        let done = AssertUnwindSafe(code(self)).catch_unwind().await;
        self.scope = outer;
        done.unwrap_or_else(|panic| Err(panicked(&*panic)))
    }
}

enum NextStep {
    Unit(Box<Effect>),
    Done(String),
}

/// The bot and user message among those that a unit has added to its sub-thread.
fn interaction_of(phase: Phase, added: &[Arc<Message>]) -> Result<Interaction, Failure> {
    let bot = added.iter().rposition(|message| message.sender == Sender::Bot);
    let Some(bot) = bot else {
        return Err(Failure::new("no_bot_message", format!("the unit of phase {phase} left no bot message")));
    };
    let user = added[bot..].iter().find(|message| message.sender == Sender::User).cloned();
    Ok(Interaction { phase, bot: added[bot].clone(), user })
}

fn not_run() -> Failure {
    Failure::new("not_run", "the sub-thread was not run")
}
