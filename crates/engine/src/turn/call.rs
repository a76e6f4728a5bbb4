//! Calling tools: the intent of a write in the log before the act, its result in the log before its use, no write repeated
//! unasked.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use polis_domain::{
    Answer, Call, CallResult, Command, Digest, Effect, EffectClass, EffectId, Event, Failure, FailureCode, Flow, Outcome,
    Recorded, Ruling, Seq, Source, ToolCall, amounts, canonical, names, targets,
};
use polis_ports::{CallContext, Caller, ModelRequest, ThreadRange, ToolError, ToolSpec};
use rustc_hash::FxHashSet;

use super::host::{Asker, CallHost};
use super::journal::Entry;
use super::reuse::take_fresh;
use super::{Turn, TurnStart, client_tools, send};
use crate::FindTools;
use crate::offer::is_recallable;
use crate::plant::{Plant, is_planted};
use crate::shared::Shared;

/// How many of the newest messages of a request are searched for names that the person has mentioned.
const WORDS: usize = 1_000;

impl Turn {
    /// Calls one tool, also one that is hidden from models. A failure is an error result.
    pub async fn call_tool(&mut self, call: ToolCall) -> CallResult {
        Box::pin(self.wait_for_called_servers(std::iter::once(&*call.name))).await;
        let call = self.call_of(&call, &self.offer().all);
        self.call_in_order(vec![call]).await.pop().unwrap_or_else(|| refused("the call was not made"))
    }

    /// Makes the calls of a model reply: exactly one result for each call, in order (D22). Tools that are hidden from models
    /// are unknown.
    pub async fn call_tools(&mut self, calls: Vec<ToolCall>) -> Vec<CallResult> {
        let calls: Vec<ToolCall> = calls.into_iter().map(|call| call.meant().into_owned()).collect();
        Box::pin(self.wait_for_called_servers(calls.iter().map(|call| &*call.name))).await;
        let tools = self.offer().tools;
        let calls = calls.iter().map(|call| self.call_of(call, &tools)).collect();
        self.call_in_order(self.without_repeats(calls)).await
    }

    /// Runs reads and idempotent calls in parallel, and each write alone after those before it. Writes that were declared
    /// together would all be in doubt after a crash, also those that had not begun.
    async fn call_in_order(&mut self, calls: Vec<Call>) -> Vec<CallResult> {
        let mut results = Vec::new();
        let mut together = Vec::new();
        for call in calls {
            if call.class == EffectClass::Write || call.own {
                results.extend(self.call_once_each(std::mem::take(&mut together)).await);
                results.extend(self.call_together(vec![call]).await);
            } else {
                together.push(call);
            }
        }
        results.extend(self.call_once_each(together).await);
        results
    }

    /// Makes calls in parallel, but of identical reads only the first: its result, which is in the log by then, answers the
    /// others. If it failed, the next one is made.
    async fn call_once_each(&mut self, calls: Vec<Call>) -> Vec<CallResult> {
        // A log of an older version has all of them declared in their own order.
        if !has_twins(&calls) || self.has_declared(&calls) {
            return self.call_together(calls).await;
        }
        let mut results: Vec<Option<CallResult>> = vec![None; calls.len()];
        let mut left: Vec<(usize, Call)> = calls.into_iter().enumerate().collect();
        while !left.is_empty() {
            let mut keys = FxHashSet::default();
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, call)| shared_key(call).is_none_or(|key| keys.insert(key)));
            let (places, calls): (Vec<_>, Vec<_>) = now.into_iter().unzip();
            for (place, result) in places.into_iter().zip(self.call_together(calls).await) {
                results[place] = Some(result);
            }
            left = later;
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| refused("the call was not made"))).collect()
    }

    /// Whether an earlier run has declared exactly these calls, in this order.
    fn has_declared(&self, calls: &[Call]) -> bool {
        (self.n..).zip(calls).all(|(n, call)| {
            let entry = self.journal.peek(EffectId { turn: self.start.id, n });
            entry.and_then(Entry::call).is_some_and(|logged| logged.is_same(call))
        })
    }

    /// Whether policy denies all calls of a tool.
    pub fn is_denied(&self, tool: &str) -> bool {
        let ruling = self.start.shared.ports.toolbox.ruling(tool, "{}", &self.caller());
        matches!(ruling, Ruling::Deny(_) | Ruling::Refuse(_))
    }

    fn caller(&self) -> Caller<'_> {
        let TurnStart { agent, role, chosen, .. } = &*self.start;
        Caller { agent, role: role.as_ref().map(|role| &role.id), task: &self.task.id, chosen: *chosen }
    }

    /// Resolves a call of a model: which tool it means, whether policy allows it, and whether an earlier result may answer it.
    fn call_of(&self, call: &ToolCall, tools: &[ToolSpec]) -> Call {
        let Shared { ports, cast, .. } = &*self.start.shared;
        let client_tools = self.client_tools();
        let client_tool = client_tools.iter().find(|tool| tool.name == call.name);
        let is_client_tool = client_tool.is_some();
        let own = !is_client_tool && cast.find_tool(&call.name).is_some();
        // The name is resolved once, so that the tool that policy judges is the tool that is declared and called.
        let is_unreadable = *call.name == *ToolCall::USE_TOOL;
        let resolved = match own || is_client_tool || is_unreadable {
            true => Ok(call.name.clone()),
            false => ports.toolbox.listed(&call.name),
        };
        let is_shown = |tool: &Arc<str>| !ToolSpec::is_for_code(tool) || tools.iter().any(|spec| spec.name == *tool);
        let resolved =
            resolved.and_then(|tool| if is_shown(&tool) { Ok(tool) } else { Err(ToolError::Unknown(tool.to_string())) });
        let tool = resolved.clone().unwrap_or_else(|_| call.name.clone());
        let spec = client_tool.or_else(|| tools.iter().find(|spec| spec.name == tool));
        let (arguments, fresh) = take_fresh(&call.arguments).unwrap_or_else(|| (call.arguments.clone(), None));
        let key = spec.filter(|spec| is_recallable(spec)).and_then(|_| Call::key_of(&tool, &arguments));
        let who = self.caller();
        let is_search = *tool == *FindTools::NAME;
        let lacking = self.start.limiting_roles.iter().find(|role| !is_search && !role.has_tool(&tool));
        let ruling = match (lacking, resolved) {
            _ if is_client_tool => client_tools::ruling(&tool, self.start.shared.client_patience),
            // The call that is meant could not be read.
            _ if is_unreadable => {
                let message = "use_tool needs `tool`, the name of a tool, and `arguments`, an object";
                Ruling::Refuse(Failure::new("bad_arguments", message))
            }
            (Some(role), _) => {
                let message = format!("{tool} may not be used here: role `{}` does not have it", role.id);
                Ruling::Refuse(Failure::new("policy_denied", message))
            }
            (None, Err(absent)) => {
                let hint = match &absent {
                    ToolError::Unknown(_) if tools.iter().any(|tool| *tool.name == *FindTools::NAME) => {
                        format!("; {} lists those that there are", FindTools::NAME)
                    }
                    _ => String::new(),
                };
                Ruling::Refuse(Failure::new("unknown_tool", format!("{absent}{hint}")))
            }
            (None, Ok(_)) => ports.toolbox.ruling(&tool, &arguments, &who),
        };
        let has_no_server = own || is_client_tool;
        let identity = if has_no_server { None } else { ports.toolbox.identity(&tool) };
        let (identity, definition, reads) = match identity {
            Some(it) => (Some(it.digest), Some(it.definition), it.reads),
            None => (None, None, Vec::new()),
        };
        let mut call = Call {
            flow: Flow::default(),
            identity,
            definition,
            reads,
            call_id: call.id.clone(),
            wrote: Some(call.name.clone()).filter(|name| *name != tool),
            tool,
            arguments,
            class: spec.map(|spec| spec.class).unwrap_or_default(),
            ruling: Ruling::Allow,
            key,
            fresh,
            from: None,
            volatile: spec.is_some_and(|spec| spec.volatile),
            own,
        };
        call.ruling = self.rule_on_repeats(&call, ruling);
        call
    }

    /// Determines where the content of calls comes from and goes to. This happens right before they are declared, so that files
    /// written or edited meanwhile count. For calls that can do harm it also notes whether the person has named their targets.
    async fn note_flow(&self, calls: &mut [Call]) {
        let who = self.caller();
        let client_tools = self.client_tools();
        for call in calls.iter_mut() {
            call.flow = match client_tools.iter().any(|tool| tool.name == call.tool) {
                // Where a client gets its data from is unknown, so it counts as content from outside.
                true => Flow { outside: Some(format!("the client's tool {}", call.tool).into()), ..Flow::default() },
                false => self.start.shared.ports.toolbox.flow(&call.tool, &call.arguments, &who),
            };
        }
        if !calls.iter().any(|call| call.flow.is_sensitive()) {
            return;
        }
        let words = self.words_of_person().await;
        for call in calls.iter_mut().filter(|call| call.flow.is_sensitive()) {
            let targets = targets(&call.arguments);
            let is_named = |target: &String| words.iter().any(|text| names(text, target));
            // A number in a request need not mean a target, unless it is an amount.
            let amounts = amounts(&call.arguments);
            let is_place = |target: &String| target.contains(['@', '/', '\\']) || is_name_with_dot(target);
            let is_fit = |target: &String| is_named(target) && (is_place(target) || amounts.contains(target));
            call.flow.named = targets.iter().any(is_place) && targets.iter().all(is_fit);
        }
    }

    /// The texts that the person has written about the request. On a read error the person counts as having named nothing.
    async fn words_of_person(&self) -> Vec<String> {
        let range = ThreadRange { newest: WORDS, ..ThreadRange::ALL };
        let events = self.start.shared.read_thread(&self.task.id.thread(), range).await.unwrap_or_default();
        let envelopes = events.iter().filter_map(|recorded| recorded.event.envelope());
        envelopes.filter(|envelope| envelope.from.is_user()).map(|envelope| envelope.payload.own_words().to_owned()).collect()
    }

    /// Makes calls in parallel and returns their results in order. This is where the promise "intent before act, no write
    /// repeated unasked" is kept, so the steps and their order matter:
    ///
    /// 1. **Declare.** One commit logs the intent of all calls, or the journal provides what an earlier run logged. Only if all
    ///    of them are reads, they are made before that commit: lost intents of reads are simply declared again. `decide`
    ///    may have put an approval in the place of a call, or refused it. From here on the logged call counts, not the one at
    ///    hand: policy, aliases or the server's definition of the tool may have changed since.
    /// 2. **Sort** by what the log says of each call ([`next_step`]). A result that is logged is used and the tool is not
    ///    run. An intent without a result was cut off by a crash: a read or idempotent call is performed again, a write is in
    ///    doubt and waits for a person. A call that a person has cleared is restarted, and the restart is committed before
    ///    the tool runs, so that a second crash leaves it in doubt again instead of cleared.
    /// 3. **Take logged results before new ones.** `self.result` moves the turn to the position and time of a logged answer,
    ///    and `self.report` moves its time to now. The other way round, the time of the turn would go back.
    /// 4. **Wait** for running calls and for doubts that a person resolves, whichever comes first. Events for a running
    ///    call's host (answers to its own questions) are passed on. An event for a call that waits for approval is only kept:
    ///    approvals are handled last, because `call_if_agreed` waits and would block the calls that are running. They are
    ///    handled in the order in which the log has the decisions, which is the same in a second run.
    /// 5. **Annotate** results in the order of the calls, not in the order in which they arrived: loop detection must come to
    ///    the same result in a second run, where all of them arrive at once.
    ///
    /// The `select!` only surrounds waits. A result that is ready is reported before the next is awaited; if the turn is
    /// dropped in between, the tool has run and its result is lost, which for a write is exactly the in-doubt case of step 2.
    async fn call_together(&mut self, mut calls: Vec<Call>) -> Vec<CallResult> {
        if calls.is_empty() {
            return Vec::new();
        }
        if let [call] = &*calls
            && call.own
        {
            return vec![Box::pin(self.call_own(call.clone())).await];
        }
        self.note_flow(&mut calls).await;
        // None, unless a test has planted the bug.
        let planted = self.plant_act(&calls).await;
        let mut entries = self.declare(calls.iter().map(|call| Effect::Tool(Box::new(call.clone()))).collect()).await;
        // A name that resolves to another tool by now keeps the meaning that it had when the call was declared.
        for (call, logged) in calls.iter_mut().zip(&entries).filter_map(|(call, entry)| Some((call, entry.call()?))) {
            (call.tool, call.wrote) = (logged.tool.clone(), logged.wrote.clone());
            if call.identity != logged.identity {
                // The present definition is not the one that was judged; `Worker::act` compares the identities.
                (call.identity, call.definition) = (logged.identity.clone(), None);
            }
        }
        let mut results: Vec<Option<CallResult>> = vec![None; entries.len()];
        let mut running = FuturesUnordered::new();
        let mut hosts = Vec::new();
        let mut begin = |worker: Worker| {
            hosts.push(worker.host.clone());
            worker
        };
        let mut doubtful = 0;
        let mut recalled = Vec::new();
        for (place, (entry, call)) in entries.iter().zip(&calls).enumerate() {
            match next_step(entry, self.start.eras.last().map(|era| era.ended)) {
                // Handled below: logged results right after this loop, approvals when nothing runs any more.
                Next::Done | Next::Ask => {}
                Next::Recall(source) => recalled.push((place, source)),
                Next::Perform => {
                    self.withdraw(entry).await;
                    running.push(begin(self.worker(entry, call)).done(place, planted.clone()));
                }
                Next::Again => {
                    self.commit(Command::Restart { id: entry.id }).await;
                    running.push(begin(self.worker(entry, call)).done(place, None));
                }
                Next::Doubt => {
                    self.commit(Command::Doubt { id: entry.id }).await;
                    doubtful += 1;
                }
                Next::Await => doubtful += 1,
            }
        }
        let mut asked: Vec<usize> = (0..entries.len()).filter(|place| entries[*place].asks()).collect();
        self.has_parallel_waits |= asked.len() > 1;
        for (place, entry) in entries.iter().enumerate().filter(|(place, _)| !asked.contains(place)) {
            results[place] = self.result(entry).map(result_of);
        }
        for (place, source) in recalled {
            let result = self.recall(&source).await;
            self.report(entries[place].id, Outcome::Result(result.clone()), None).await;
            results[place] = Some(result);
        }
        while !running.is_empty() || doubtful > 0 {
            let can_rest = running.is_empty();
            let (place, result) = tokio::select! {
                biased;
                Some(done) = running.next() => done,
                event = self.next_of_calls(&entries, can_rest) => {
                    let Some(place) = entries.iter().position(|entry| entry.is_about(&event)) else { continue };
                    if let Event::CallAnswered { id, .. } = &event.event {
                        hosts.iter().filter(|host| host.call() == id.call).for_each(|host| host.deliver(&event.event));
                        continue;
                    }
                    if asked.contains(&place) {
                        entries[place].events.push(event);
                        continue;
                    }
                    doubtful -= 1;
                    let id = entries[place].id;
                    if matches!(event.event, Event::EffectCleared { .. }) {
                        self.commit(Command::Restart { id }).await;
                        let worker = self.worker(&entries[place], &calls[place]);
                        hosts.push(worker.host.clone());
                        running.push(worker.done(place, None));
                    } else {
                        self.committed_position().await;
                        results[place] = self.result(&Entry::new(id, [event])).map(result_of);
                    }
                    continue;
                }
            };
            self.report(entries[place].id, Outcome::Result(result.clone()), None).await;
            results[place] = Some(result);
        }
        for (place, (entry, call)) in entries.iter().zip(&calls).enumerate().filter(|(place, _)| !asked.contains(place)) {
            results[place] = results[place].take().map(|result| self.annotate(entry, call, result));
        }
        while let Some(place) = self.next_decided(&mut entries, &mut asked).await {
            results[place] = Some(self.call_if_agreed(&entries[place], calls[place].clone()).await);
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| refused("the call has no result"))).collect()
    }

    /// Waits for the next event of these calls. Only a turn whose calls do not run can rest.
    async fn next_of_calls(&mut self, entries: &[Entry], can_rest: bool) -> Arc<Recorded> {
        if can_rest {
            return self.next_event_of(entries.iter()).await;
        }
        self.unread.next(|event| entries.iter().any(|entry| entry.is_about(event))).await
    }

    /// Takes the call that is decided next out of `asked`, in the order of the log: a call is made as soon as a person agrees to
    /// it, whatever the others wait for. None when nothing is left; the last one is returned before it is decided.
    async fn next_decided(&mut self, entries: &mut [Entry], asked: &mut Vec<usize>) -> Option<usize> {
        while asked.len() > 1 {
            let decided = asked.iter().enumerate().filter_map(|(at, place)| Some((entries[*place].end()?, at))).min();
            if let Some((_, at)) = decided {
                return Some(asked.remove(at));
            }
            let event = self.next_event_of(asked.iter().map(|place| &entries[*place])).await;
            if let Some(entry) = entries.iter_mut().find(|entry| entry.is_about(&event)) {
                entry.events.push(event);
            }
        }
        asked.pop()
    }

    /// Waits for a person's decision about a call. If they approve, makes it, with their arguments if they changed them.
    pub(super) async fn call_if_agreed(&mut self, entry: &Entry, mut call: Call) -> CallResult {
        let answered = self.wait_for_entries(std::slice::from_ref(entry)).await.pop();
        if entry.wants_words() && self.is_client_tool(&call.tool) {
            self.take_rules(match &answered {
                Some(Ok(Outcome::Verdict(verdict))) => Some(verdict),
                _ => None,
            });
        }
        match answered {
            // The answer of the person, or of the client, is the result; no tool runs.
            Some(Ok(Outcome::Verdict(verdict))) if entry.wants_words() => {
                verdict.result().unwrap_or_else(|| self.unanswered(&call.tool, &verdict))
            }
            Some(Ok(Outcome::Verdict(verdict))) if verdict.approved => {
                let changed = verdict.arguments.clone().filter(|given| !is_same(given, &call.arguments));
                call.arguments = verdict.arguments.unwrap_or(call.arguments);
                call.ruling = Ruling::Approved;
                call.key = call.key.and_then(|_| Call::key_of(&call.tool, &call.arguments));
                let made = Box::pin(self.call_together(vec![call])).await.pop();
                let made = made.unwrap_or_else(|| refused("the call was not made"));
                CallResult { changed, ..made }
            }
            Some(Ok(Outcome::Verdict(verdict))) => self.declined(entry, &verdict),
            Some(Err(failure)) if failure.code == FailureCode::TimedOut && entry.wants_words() => {
                client_tools::unanswered(&call.tool)
            }
            Some(Err(failure)) => refused(&failure.to_string()),
            Some(Ok(_)) | None => refused("the call was not made"),
        }
    }

    /// Voids the questions that this call asked in an earlier run. The process that waited for the answers is gone.
    async fn withdraw(&self, entry: &Entry) {
        for id in entry.unanswered() {
            // A refusal means that it was answered in the meantime.
            let _ = send(&self.start.shared, Command::Answer { id, answer: Answer::void(), spent: None }).answer().await;
        }
    }

    fn worker(&self, entry: &Entry, call: &Call) -> Worker {
        let id = entry.id;
        let declared = entry.events.first().map_or(Seq(u64::MAX), |first| first.seq);
        let asker = Asker {
            call: id,
            agent: self.start.agent.clone(),
            role: self.role().map(|role| role.id.clone()),
            task: self.task.id.clone(),
            chosen: self.start.chosen,
            models: self.models(&ModelRequest::default()),
        };
        let host = Arc::new(CallHost::new(self.start.shared.clone(), asker));
        Worker {
            host: host.clone(),
            call: call.clone(),
            shared: self.start.shared.clone(),
            context: CallContext {
                society: self.start.shared.society.clone(),
                seed: self.start.seed_at(declared),
                effect: id,
                agent: self.start.agent.clone(),
                thread: self.start.thread.clone(),
                task: self.task.id.clone(),
                path: self.path(),
                resource: self.task.resource(),
                application: self.task.context(),
                artifacts: self.artifact_store(),
                host: Some(host),
            },
        }
    }

    /// A planted bug (see [`Plant`]): the tool runs before its intent is logged.
    async fn plant_act(&self, calls: &[Call]) -> Option<CallResult> {
        let [call] = calls else { return None };
        if !is_planted(Plant::ActBeforeIntent) || self.journal.has(self.n) {
            return None;
        }
        let id = EffectId { turn: self.start.id, n: self.n };
        Some(self.worker(&Entry::new(id, []), call).act().await)
    }
}

/// What to do about a call, given what the log says of it.
enum Next {
    /// A person decides first; see [`Turn::call_if_agreed`].
    Ask,
    /// Its result or refusal is in the log.
    Done,
    /// The result of an identical earlier call answers it.
    Recall(Source),
    /// It has not been made, or may be made again.
    Perform,
    /// A person has said that it may be made again.
    Again,
    /// It may have been made; log that it is in doubt.
    Doubt,
    /// It is in doubt, and nobody has resolved that yet.
    Await,
}

/// Decides by the logged call. The class of the tool may have changed since, but the call was judged by the logged one.
fn next_step(entry: &Entry, forked: Option<Seq>) -> Next {
    let (class, from) = match entry.declared() {
        Some((Effect::Approval { .. }, _)) => return Next::Ask,
        Some((Effect::Tool(call), _)) => (call.class, call.from.clone()),
        _ => (EffectClass::Write, None),
    };
    // A clearance from before a fork was given to the original society, which may have acted on it.
    let is_old = |last: &polis_domain::Recorded| forked.is_some_and(|forked| last.seq < forked);
    match entry.last().map(|last| &last.event) {
        Some(Event::EffectCleared { .. }) if entry.last().is_some_and(|last| is_old(last)) => Next::Doubt,
        Some(Event::EffectEnded { .. } | Event::EffectRefused { .. }) | None => Next::Done,
        Some(Event::EffectCleared { .. }) => Next::Again,
        Some(Event::EffectDoubted { .. }) => Next::Await,
        Some(_) => match from {
            Some(source) => Next::Recall(source),
            None if entry.fresh || class != EffectClass::Write => Next::Perform,
            None => Next::Doubt,
        },
    }
}

/// Whether some of these calls are reads of which one is enough.
fn has_twins(calls: &[Call]) -> bool {
    let mut keys = FxHashSet::default();
    calls.iter().filter_map(shared_key).any(|key| !keys.insert(key))
}

/// What identical reads have in common, unless the model wants each result, or a person is asked about each.
fn shared_key(call: &Call) -> Option<Digest> {
    call.key.filter(|_| call.fresh.is_none() && call.ruling == Ruling::Allow)
}

/// Whether two JSON texts mean the same arguments.
fn is_same(one: &str, other: &str) -> bool {
    one == other || canonical(one).is_some_and(|one| canonical(other) == Some(one))
}

pub(super) fn result_of(result: Result<Outcome, polis_domain::Failure>) -> CallResult {
    match result {
        Ok(Outcome::Result(result)) => result,
        Ok(_) => refused("the call has no result"),
        Err(failure) => refused(&failure.to_string()),
    }
}

pub(super) fn refused(message: &str) -> CallResult {
    CallResult::failed(message)
}

/// Performs one call.
struct Worker {
    host: Arc<CallHost>,
    call: Call,
    shared: Arc<Shared>,
    context: CallContext,
}

impl Worker {
    async fn act(&self) -> CallResult {
        let now =
            |judged: &Arc<str>| self.shared.ports.toolbox.identity(&self.call.tool).is_some_and(|now| now.digest == *judged);
        if !self.call.identity.as_ref().is_none_or(now) {
            return refused(&format!(
                "{} was not called: its server has changed it after the call was judged. Look at it again before you call it",
                self.call.tool
            ));
        }
        self.shared.may_act().await;
        let done = self.shared.ports.toolbox.call(&self.call.tool, &self.call.arguments, &self.context).await;
        done.unwrap_or_else(|error| refused(&error.to_string()))
    }

    /// Performs the call, unless a planted bug already did (`planted`). Its host is closed and drained before the result is
    /// returned, so that the cost of model calls that the tool made stands in the log before the result.
    async fn done(self, place: usize, planted: Option<CallResult>) -> (usize, CallResult) {
        let result = match planted {
            Some(result) => result,
            None => self.act().await,
        };
        self.host.close();
        self.host.quiet().await;
        (place, result)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.host.close();
    }
}

/// Whether this is a name such as `plan.md` or `host.example`, not a number.
fn is_name_with_dot(target: &str) -> bool {
    target.contains('.') && target.contains(char::is_alphabetic)
}
