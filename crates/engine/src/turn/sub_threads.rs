//! Running sub-threads: opened in a message, unit after unit until they are done, one or several beside each other.
//!
//! Several run independently: whichever unit ends first in the log is gone on with first. The order of the log is the same in
//! a second run, so that the second run goes the same way.

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
use crate::cast::{DeclaredSubThread, Scope};
use crate::text::FAILED;
use crate::{Interaction, Progress, SubThreadResult};

/// A sub-thread that is under way.
struct Run {
    declared: Arc<DeclaredSubThread>,
    task: Task,
    holder: MessageId,
    path: SubThreadPath,
    results: Vec<Interaction>,
    /// Messages of the sub-thread that are known already.
    seen: usize,
    /// The phase of the unit that runs.
    phase: Phase,
    /// What was said in it, once it is done.
    messages: Vec<Arc<Message>>,
    result: Option<SubThreadResult>,
}

/// What the task of a unit says beside its message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnitMeta<'a> {
    original_task: &'a str,
    timestamp: Timestamp,
    sub_thread_path: &'a SubThreadPath,
    parent_thread_path: &'a SubThreadPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_resource_id: Option<&'a Value>,
}

/// Sub-threads that run beside each other. Others may join them while they run.
#[derive(Default)]
pub struct SubThreadGroup {
    runs: Vec<Run>,
    open: Vec<(usize, Entry)>,
    /// Those that have come to their end and were not told yet.
    ended: VecDeque<usize>,
}

impl SubThreadGroup {
    /// Whether some of them still run.
    pub fn is_running(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Turn {
    /// Opens a sub-thread and runs it to its end, unit by unit. It hangs in a message of the turn's own thread, which shows
    /// what comes of it. What fails in it is told in the result; an error here means that it could not be begun.
    ///
    /// The name is one that the handler, unit or agent whose code this is declares in its `sub_threads`.
    pub async fn run_sub_thread(&mut self, request: SubThreadRequest) -> Result<SubThreadResult, Failure> {
        self.run_sub_threads(vec![request]).await?.pop().ok_or_else(not_run)
    }

    /// Makes changes and begins sub-threads beside those of a group; they are opened with the same append, all or none.
    /// [`Turn::next_sub_thread`] tells what becomes of them.
    pub async fn join_sub_threads(
        &mut self,
        group: &mut SubThreadGroup,
        changes: Vec<BatchUpdate>,
        requests: Vec<SubThreadRequest>,
    ) -> Result<(), Failure> {
        let sub_threads = requests.iter().map(|request| self.declared(request)).collect::<Result<Vec<_>, _>>()?;
        let acts = self.acts_of(changes).await?;
        let runs = self.open_runs(acts, sub_threads.into_iter().zip(requests).collect()).await?;
        self.begin_all(group, runs).await;
        Ok(())
    }

    /// The sub-thread of a group that came to its end first in the log, of those that were not told yet: its place in the order
    /// in which they joined, and what came of it. None when all have been told.
    pub async fn next_sub_thread(&mut self, group: &mut SubThreadGroup) -> Option<(usize, SubThreadResult)> {
        loop {
            if let Some(place) = group.ended.pop_front() {
                return group.runs[place].result.take().map(|result| (place, result));
            }
            if group.open.is_empty() {
                return None;
            }
            let (place, outcome) = self.first_of(&mut group.open).await;
            let next = self.go_on(&mut group.runs[place], Some(outcome)).await;
            match next {
                Some(unit) => self.begin(group, vec![(place, unit)]).await,
                None => group.ended.push_back(place),
            }
        }
    }

    /// Runs several sub-threads beside each other, none waiting for another; one result for each, in order (R086).
    pub async fn run_sub_threads(&mut self, requests: Vec<SubThreadRequest>) -> Result<Vec<SubThreadResult>, Failure> {
        let mut group = SubThreadGroup::default();
        self.join_sub_threads(&mut group, Vec::new(), requests).await?;
        Ok(self.finish(group).await)
    }

    /// What a sub-thread agent does that is asked like any other: the same, in a message of its own.
    pub(crate) async fn run_as_sub_thread(&mut self) -> Result<Response, Failure> {
        let declared = self.registration.own_sub_thread().cloned().ok_or_else(not_run)?;
        let request = SubThreadRequest::new("", self.task.message.clone());
        let runs = self.open_runs(Vec::new(), vec![(declared, request)]).await?;
        let mut group = SubThreadGroup::default();
        self.begin_all(&mut group, runs).await;
        let result = self.finish(group).await.pop().ok_or_else(not_run)?;
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

    /// Makes changes and opens sub-threads, each in a message of the turn's own thread: the one that is named, or a new one.
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
        let current_resource_id = self.task.meta.get(Task::RESOURCE);
        let meta = UnitMeta { original_task, timestamp, sub_thread_path, parent_thread_path, current_resource_id };
        let meta = Meta::of(&meta);
        let task = Task { meta, ..Task::action(self.task.id.clone(), name, message) };
        let phase = declared.first.clone();
        Run { declared, task, holder, path, results: Vec::new(), seen: 0, phase, messages: Vec::new(), result: None }
    }

    async fn finish(&mut self, mut group: SubThreadGroup) -> Vec<SubThreadResult> {
        let mut results: Vec<_> = group.runs.iter().map(|_| None).collect();
        while let Some((place, result)) = self.next_sub_thread(&mut group).await {
            results[place] = Some(result);
        }
        results.into_iter().flatten().collect()
    }

    /// The first units of sub-threads, all at once: a turn that has begun a unit and nothing else may have to leave its slot.
    async fn begin_all(&mut self, group: &mut SubThreadGroup, runs: Vec<Run>) {
        let begins = group.runs.len();
        group.runs.extend(runs);
        let mut first = Vec::with_capacity(group.runs.len() - begins);
        for place in begins..group.runs.len() {
            match self.go_on(&mut group.runs[place], None).await {
                Some(unit) => first.push((place, unit)),
                None => group.ended.push_back(place),
            }
        }
        self.begin(group, first).await;
    }

    /// States units. A sub-thread whose unit is refused has come to its end.
    async fn begin(&mut self, group: &mut SubThreadGroup, units: Vec<(usize, Effect)>) {
        if units.is_empty() {
            return;
        }
        // Where the turn stands must not depend on whether its own reports have reached the log yet.
        self.place().await;
        let (places, effects): (Vec<_>, Vec<_>) = units.into_iter().unzip();
        for (place, entry) in places.into_iter().zip(self.state(effects).await) {
            match entry.refusal().cloned() {
                Some(failure) => {
                    let result = self.close(&mut group.runs[place], Err(failure)).await;
                    group.runs[place].result = Some(result);
                    group.ended.push_back(place);
                }
                None => group.open.push((place, entry)),
            }
        }
    }

    /// The unit that ended first in the log, of those that are open, and what came of it.
    async fn first_of(&mut self, open: &mut Vec<(usize, Entry)>) -> (usize, Result<Outcome, Failure>) {
        self.place().await;
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

    /// Takes in what came of the last unit, and says which one is next. None when the sub-thread is done.
    async fn go_on(&mut self, run: &mut Run, ended: Option<Result<Outcome, Failure>>) -> Option<Effect> {
        let next = match ended.map(answer) {
            Some(Err(failure)) => Err(failure),
            Some(Ok(_)) => self.next_of(run, true).await,
            None => self.next_of(run, false).await,
        };
        let outcome = match next {
            Ok(Next::Unit(unit)) => return Some(*unit),
            Ok(Next::Done(text)) => Ok(text),
            Err(failure) => Err(failure),
        };
        run.result = Some(self.close(run, outcome).await);
        None
    }

    /// What follows in a sub-thread: another unit, or its end.
    async fn next_of(&mut self, run: &mut Run, is_unit_done: bool) -> Result<Next, Failure> {
        let declared = run.declared.clone();
        let thread = self.thread(&run.path).await?;
        if is_unit_done {
            run.results.push(pair(run.phase.clone(), &thread.messages[run.seen.min(thread.messages.len())..])?);
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
            return Ok(Next::Done(text));
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
        self.placed(&run.path, behaviour, run.task.clone()).await.map(|unit| Next::Unit(Box::new(unit)))
    }

    /// Writes into the message what came of its sub-thread, and that the sub-thread is done.
    async fn close(&mut self, run: &mut Run, outcome: Result<String, Failure>) -> SubThreadResult {
        let result = self.outcome(run, outcome);
        let Err(refused) = self.write_result(run, &result).await else { return result };
        // What it comes to cannot stand there, for its length perhaps. That can.
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
            // No turn will come that applies it.
            settings.brief_status.phase = suggestion.phase;
            acts.push(Act::UpdateSettings { thread: self.resolve(&run.path).await?, settings });
        }
        self.act_ahead(acts).await
    }

    /// Runs a sub-thread agent's own code as that agent. One that panics has failed, and not whoever started it (R067).
    async fn as_agent<T>(
        &mut self,
        scope: &Arc<Scope>,
        code: impl AsyncFnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let outer = std::mem::replace(&mut self.scope, scope.clone());
        let done = AssertUnwindSafe(code(self)).catch_unwind().await;
        self.scope = outer;
        done.unwrap_or_else(|panic| Err(panicked(&*panic)))
    }
}

enum Next {
    Unit(Box<Effect>),
    Done(String),
}

/// The pair among what a unit has added to its sub-thread.
fn pair(phase: Phase, added: &[Arc<Message>]) -> Result<Interaction, Failure> {
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
