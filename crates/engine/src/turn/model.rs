//! Model calls: deltas go to watchers, the whole reply goes into the log.
//!
//! One call is one effect, however many attempts it takes. Failed attempts are logged beside it. When a budget is used up, the
//! call is replaced by a request to a person to grant more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use polis_domain::{
    Command, Effect, EffectId, Failure, Finish, Level, Outcome, Permit, Reply, Seq, Spent, ThreadId, Timestamp, ToolChoice,
    ToolList, Usage,
};
use polis_ports::{
    Capabilities, ChatMessage, Collector, Delta, Frame, ModelError, ModelRequest, ModelSettings, StreamedDelta, continued,
};

use super::Turn;
use super::journal::Entry;
use super::media::ReadMedia;
use super::memory::has_memories;
use super::retry::Attempts;
use super::vendor_tools::{has_vendor_tools, split_vendor_tools};
use crate::offer::list;
use crate::shared::Shared;

/// The token limit of a reply if a budget applies and the request sets none.
const REPLY_TOKENS: u32 = 8_192;

/// How often a vendor that pauses its own tools is let continue.
const MAX_PAUSES: usize = 10;

/// What a model is told in the last call within a budget.
const LAST_CALL: &str = "[polis] This is the last reply that the budget allows, and no more tools can be used. Answer now with what \
                         you have: what is done, what you found, and what is still to do.";

/// Whether a model call is probably the last one within a budget, by what the log says of it.
fn ends_budget(entry: &Entry) -> bool {
    let Some((Effect::Model { reserve, .. }, Some(permit))) = entry.declared() else { return false };
    permit.near.iter().any(|level| level.ends_with(*reserve))
}

impl Turn {
    /// Calls a model and returns its whole reply. A reply that is in the log is never requested again.
    pub async fn model(&mut self, request: ModelRequest) -> Result<Reply, Failure> {
        self.model_streaming(request, &mut |_| {}).await
    }

    /// Like [`Turn::model`]; `on_delta` receives the reply chunk by chunk as it arrives, including attempts that fail later.
    /// It receives nothing when the reply is already in the log, so no result may depend on it.
    pub async fn model_streaming(
        &mut self,
        request: ModelRequest,
        on_delta: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Reply, Failure> {
        let again = has_vendor_tools(&request).then(|| Box::new(request.clone()));
        let reply = self.call_model(request, on_delta).await?;
        match again {
            Some(again) if reply.finish == Finish::Paused => Box::pin(self.resume(*again, reply, on_delta)).await,
            _ => Ok(reply),
        }
    }

    /// Lets a vendor continue that has paused its own tools. Each continuation is a model call of its own in the log.
    async fn resume(
        &mut self,
        mut request: ModelRequest,
        mut reply: Reply,
        on_delta: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Reply, Failure> {
        let mut said = ChatMessage::said(&reply);
        for _ in 0..MAX_PAUSES {
            if reply.finish != Finish::Paused {
                break;
            }
            request.messages.push(said);
            let rest = self.call_model(request.clone(), on_delta).await?;
            said = ChatMessage::said(&rest);
            reply = continued(reply, rest);
        }
        Ok(reply)
    }

    async fn call_model(
        &mut self,
        mut request: ModelRequest,
        on_delta: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Reply, Failure> {
        // A reply that cannot call anything ends the loop.
        if request.tool_choice != ToolChoice::None {
            self.check_for_loops()?;
        }
        for (media, why) in request.fit_media() {
            self.publish_not_shown(&media, &why);
        }
        let models = self.models(&request);
        // The models of the society and of the conversation may change between runs, so they are not part of the logged request.
        let own = self.role().and_then(|role| role.models.first().cloned());
        if request.model.is_empty() {
            request.model = own.unwrap_or_default();
        }
        request.asker = self.start.agent.as_str().into();
        let digest = request.digest();
        // The same goes for the settings of the conversation and of the role.
        request.settings = self.settings(&request);
        let tools = self.tool_list(&request);
        split_vendor_tools(&mut request);
        let reserve = self.reserve(&mut request, &models);
        loop {
            let effect = Effect::Model {
                model: request.model.clone(),
                request: digest,
                reserve,
                tools: tools.clone(),
                aside: request.aside,
                purpose: request.purpose.clone(),
            };
            let entries = self.declare(vec![effect]).await;
            let Some(entry) = entries.first() else { return self.park_diverged(self.n, "model").await };
            if let Some((Effect::Grant { lacking, .. }, _)) = entry.declared() {
                let lacking = lacking.clone();
                self.granted(&entries, &lacking).await?;
                continue;
            }
            self.ends_budget = ends_budget(entry);
            if self.ends_budget && !request.aside && !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto {
                // Not part of the digest: it follows from what the log says about this call.
                request.tool_choice = ToolChoice::None;
                request.messages.push(ChatMessage::user(LAST_CALL));
            }
            let result = match self.result(entry) {
                Some(result) => result,
                None => self.think(entry, request, models, on_delta).await,
            };
            return match result {
                Ok(Outcome::Reply(reply)) => {
                    self.used = self.used.plus(reply.usage);
                    Ok(reply)
                }
                Ok(_) => self.park_diverged(self.n - 1, "model").await,
                Err(failure) => Err(failure),
            };
        }
    }

    /// Whether the last model call was probably the last one within a budget. A call that may use tools is then made without
    /// them, so that the reply concludes with what there is.
    pub fn ends_budget(&self) -> bool {
        self.ends_budget
    }

    /// The context window of the turn's model in tokens, if it is known.
    pub fn window(&self) -> Option<u64> {
        let models = self.models(&ModelRequest::default());
        self.start.shared.ports.model.description(models.first()?).window
    }

    /// What the turn's model can do, as far as it is known. The answer may change over time, so only the result of a tool may
    /// depend on it.
    pub fn capabilities(&self) -> Capabilities {
        let models = self.models(&ModelRequest::default());
        models.first().map(|model| self.start.shared.ports.model.description(model).capabilities).unwrap_or_default()
    }

    /// Why the model port refuses a model of this name; none if it accepts it. The answer may change over time, so only the
    /// result of a tool may depend on it.
    pub fn refuses_model(&self, model: &str) -> Option<String> {
        self.start.shared.ports.model.refuses(model)
    }

    /// The models to try, in order: those of the request, else of the conversation, else of the role, else of the society. An
    /// empty name leaves the choice to the model port.
    pub(super) fn models(&self, request: &ModelRequest) -> Vec<Arc<str>> {
        if !request.model.is_empty() {
            return vec![request.model.clone()];
        }
        if let Some(model) = self.start.conversation.as_ref().and_then(|conversation| conversation.model.clone()) {
            return vec![model];
        }
        match self.role() {
            Some(role) if !role.models.is_empty() => role.models.clone(),
            _ if self.start.shared.models.is_empty() => vec![Arc::default()],
            _ => self.start.shared.models.clone(),
        }
    }

    /// The settings of a call: those of the code, over the request's, over the conversation's, over the role's.
    fn settings(&self, request: &ModelRequest) -> ModelSettings {
        let of_conversation = self.start.conversation.as_ref().map(|conversation| &conversation.model_settings);
        let of_role = self.role().map(|role| &role.settings);
        let mut lower = self.task.model_settings();
        for level in of_conversation.into_iter().chain(of_role) {
            lower = lower.over(level);
        }
        // Notes and plans are read by code. Where a client prescribes the format, the reply is the answer.
        let is_answer = request.format.is_none() || self.rules.as_ref().is_some_and(|rules| rules.format == request.format);
        if request.aside || !is_answer {
            lower = lower.for_internal_call();
        }
        request.settings.clone().over(&lower)
    }

    /// The list of tools in a request, as the log names it.
    fn tool_list(&self, request: &ModelRequest) -> Option<Arc<ToolList>> {
        if request.tools.is_empty() {
            return None;
        }
        let offer = self.offer();
        if Arc::ptr_eq(&offer.shown, &request.tools) {
            return Some(offer.list);
        }
        Some(self.start.shared.offers.list_of_extended(&request.tools).unwrap_or_else(|| list(&request.tools)))
    }

    /// What to reserve for a request: the estimate of its cost plus a quarter, because input tokens are only estimated.
    fn reserve(&self, request: &mut ModelRequest, models: &[Arc<str>]) -> Spent {
        let (model, max_tokens) = (request.model.clone(), request.settings.max_tokens);
        request.model = models.first().cloned().unwrap_or_default();
        request.settings.max_tokens.get_or_insert(REPLY_TOKENS);
        let guess = Spent::from(self.start.shared.ports.model.estimate(request));
        (request.model, request.settings.max_tokens) = (model, max_tokens);
        let more = |guess: u64| guess.saturating_add(guess / 4);
        Spent { requests: 1, tokens: more(guess.tokens), cost_nanos: more(guess.cost_nanos), ..Spent::default() }
    }

    /// Waits until a person has granted more budget.
    async fn granted(&mut self, entries: &[Entry], lacking: &[Level]) -> Result<(), Failure> {
        let used_up = lacking.iter().map(Level::to_string).collect::<Vec<_>>().join("; ");
        match self.wait_for_entries(entries).await.pop() {
            Some(Ok(Outcome::Verdict(verdict))) if verdict.approved => Ok(()),
            Some(Ok(Outcome::Verdict(verdict))) => {
                let reason = if verdict.reason.is_empty() { String::new() } else { format!(": {}", verdict.reason) };
                Err(Failure::new("budget_exhausted", format!("{used_up}, and no more was granted{reason}")))
            }
            Some(Err(failure)) => Err(failure),
            Some(Ok(_)) | None => self.park_diverged(self.n - 1, "model").await,
        }
    }

    async fn think(
        &mut self,
        entry: &Entry,
        mut request: ModelRequest,
        models: Vec<Arc<str>>,
        on_delta: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Outcome, Failure> {
        request.effect = Some(entry.id);
        if has_memories(&request) {
            Box::pin(self.show_memories(&mut request)).await;
        }
        let permit = entry.declared().and_then(|(_, permit)| permit.cloned());
        if permit.as_ref().is_some_and(|permit| !permit.ample) {
            request.settings.max_tokens.get_or_insert(REPLY_TOKENS);
        }
        let (own_messages, port) = (request.messages.len(), self.start.shared.ports.model.clone());
        let is_bounded = models.iter().any(|model| port.description(model).capabilities.window.is_some());
        let seen = if is_bounded { request.estimate().input_tokens } else { 0 };
        // Each attempt may ask another model, which takes other media and has other tools of its vendor.
        let vendor_tools = std::mem::take(&mut request.vendor_tools);
        let (named, mut read) = (request.has_media().then(|| request.messages.clone()), ReadMedia::default());
        let mut attempts = Attempts::new(models, |model| port.name(model), entry.attempts());
        attempts.set_retries(|model| port.description(model).retries);
        let due = entry.rests_until();
        // An earlier run may have sent a request and died before its end. Whether it did is unknown, so it is counted.
        if !entry.fresh && due.is_none_or(|due| due <= self.start.shared.ports.clock.now()) {
            let spent = Spent::request(Usage::default(), 0);
            self.commit(Command::Retry { id: entry.id, attempt: attempts.interrupted(), spent }).await;
        }
        if let Some(until) = due {
            self.start.shared.ports.clock.sleep_until(until).await;
        }
        loop {
            request.model = attempts.model();
            request.messages.truncate(own_messages);
            if let Some(named) = &named {
                request.messages.clone_from(named);
                // Boxed, because few requests have media.
                Box::pin(self.show_media(&mut request, &mut read)).await;
            }
            let known = port.description(&request.model).capabilities;
            let mut missing: Vec<_> =
                (!request.tools.is_empty()).then(|| self.missing_servers_note()).flatten().into_iter().collect();
            if !vendor_tools.is_empty() {
                request.vendor_tools.clone_from(&vendor_tools);
                missing.extend(Box::pin(self.keep_allowed_vendor_tools(&mut request, &known)).await);
            }
            let seen_percent = known.window.map(|window| seen.saturating_mul(100) / window.max(1));
            // In the last call within a budget the model has been told so already.
            let near = permit.as_ref().filter(|_| !self.ends_budget || request.tool_choice != ToolChoice::None);
            request.messages.extend(notes(near, seen_percent, missing).map(ChatMessage::user));
            let began = self.start.shared.ports.clock.now();
            let (tried, usage) = self.attempt(entry, &request, permit.as_ref(), on_delta).await;
            let took = self.start.shared.ports.clock.now().0.saturating_sub(began.0);
            let error = match tried {
                // Another model may have something to say.
                Ok(reply)
                    if reply.is_empty()
                        && let Some(attempt) = attempts.after_empty() =>
                {
                    self.commit(Command::Retry { id: entry.id, attempt, spent: Spent::request(usage, took) }).await;
                    continue;
                }
                Ok(reply) => {
                    self.report(entry.id, Outcome::Reply(reply.clone()), Some(Spent::request(usage, took))).await;
                    return Ok(Outcome::Reply(reply));
                }
                Err(error) => error,
            };
            // The circuit breaker is open: no request was sent, so nothing was spent.
            let is_resting = matches!(error, ModelError::Resting { .. });
            let spent = if is_resting { Spent::default() } else { Spent::request(usage, took) };
            let failure = Failure::new(error.code(), error.to_string());
            let Some(attempt) = attempts.after(&error) else {
                self.report(entry.id, Outcome::Failed(failure.clone()), Some(spent)).await;
                return Err(failure);
            };
            tracing::debug!(
                agent = %self.start.agent, model = %attempt.model, attempt = attempt.attempt, max_retries = attempt.max_retries,
                delay_ms = attempt.delay_ms, next = %attempt.next, error = %failure, "a model did not answer; asking again"
            );
            let delay = attempt.delay_ms;
            self.commit(Command::Retry { id: entry.id, attempt, spent }).await;
            let clock = &self.start.shared.ports.clock;
            clock.sleep_until(Timestamp(clock.now().0.saturating_add(delay))).await;
        }
    }

    /// One attempt, within the time that the permit allows. Also returns its usage, even if it failed.
    async fn attempt(
        &self,
        entry: &Entry,
        request: &ModelRequest,
        permit: Option<&Permit>,
        on_delta: &mut (dyn FnMut(&Delta) + Send),
    ) -> (Result<Reply, ModelError>, Usage) {
        let mut publisher = DeltaPublisher {
            shared: &self.start.shared,
            id: entry.id,
            declared: entry.events.first().map_or(Seq(0), |first| first.seq),
            thread: &self.start.thread,
            used: Usage::default(),
            written: 0,
            over: false,
            is_aside: request.aside,
            on_delta,
        };
        let clock = &self.start.shared.ports.clock;
        let mut reply = match permit.and_then(|permit| permit.time_ms) {
            None => publisher.collect(request.clone()).await,
            Some(ms) => tokio::select! {
                biased;
                reply = publisher.collect(request.clone()) => reply,
                () = clock.sleep_until(Timestamp(clock.now().0.saturating_add(ms))) => {
                    let reason = format!("no whole reply within the {:?} that one call may take", Duration::from_millis(ms));
                    Err(ModelError::Cut { reason })
                }
            },
        };
        publisher.over = true;
        match &mut reply {
            Ok(reply) if reply.usage == Usage::default() => reply.usage = self.guess(request.clone(), publisher.written),
            Ok(_) => {}
            Err(error) => {
                publisher.break_off(Delta::Error(Failure::new(error.code(), error.to_string())));
                // What broke off within the reply is paid for like a whole one, and few vendors get to report it.
                if publisher.used == Usage::default() && publisher.written > 0 {
                    publisher.used = self.guess(request.clone(), publisher.written);
                }
            }
        }
        let used = reply.as_ref().map_or(publisher.used, |reply| reply.usage);
        (reply, used)
    }

    /// Estimates the usage of a reply whose vendor does not report it, so that such calls count against budgets too.
    fn guess(&self, mut request: ModelRequest, written: u64) -> Usage {
        request.settings.max_tokens = Some(u32::try_from(written).unwrap_or(u32::MAX));
        self.start.shared.ports.model.estimate(&request)
    }
}

/// How full the context window must be, in percent, before the agent is warned.
const NEARLY_FULL: u64 = 80;

/// The last message of a request: warnings when a budget or the context window is nearly used up (D11), or tools are missing. The
/// system prompt stays as it is, so that a vendor can cache it.
fn notes(permit: Option<&Permit>, seen_percent: Option<u64>, missing: Vec<String>) -> Option<String> {
    let near = permit.map_or(&[][..], |permit| &permit.near);
    let mut notes = Vec::new();
    if !near.is_empty() {
        let levels = near.iter().map(Level::to_agent).collect::<Vec<_>>().join("; ");
        notes.push(format!("Budget: {levels}. Come to an end soon, with what you have."));
    }
    if let Some(percent) = seen_percent.filter(|percent| *percent >= NEARLY_FULL) {
        notes.push(format!("This conversation fills about {percent} % of what you can see at once. Be brief."));
    }
    notes.extend(missing);
    (!notes.is_empty()).then(|| format!("[polis] {}", notes.join("\n")))
}

/// Collects a reply and publishes each delta to watchers. If it is dropped before the end (a cancelled turn), it publishes
/// `Stopped`, so that watchers do not wait for more.
struct DeltaPublisher<'a> {
    shared: &'a Shared,
    id: EffectId,
    /// The position of the call's intent.
    declared: Seq,
    thread: &'a ThreadId,
    /// The usage that the vendor has reported so far.
    used: Usage,
    /// An estimate of the tokens that have come so far.
    written: u64,
    over: bool,
    /// Whether the reply is internal and not shown to watchers.
    is_aside: bool,
    on_delta: &'a mut (dyn FnMut(&Delta) + Send),
}

impl DeltaPublisher<'_> {
    async fn collect(&mut self, request: ModelRequest) -> Result<Reply, ModelError> {
        let tools = request.tools.clone();
        self.shared.may_act().await;
        let mut stream = self.shared.ports.model.stream(request).await?;
        let (mut collector, mut unshown, mut has_shown) = (Collector::default(), Vec::new(), false);
        let ended = loop {
            let mut next = stream.next();
            let next = match poll_immediate(&mut next).await {
                Some(next) => next,
                None => {
                    has_shown |= !unshown.is_empty();
                    self.show(&mut unshown).await;
                    next.await
                }
            };
            let delta = match next {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            };
            (self.on_delta)(&delta);
            if let Delta::Usage(usage) = &delta {
                self.used = *usage;
            }
            self.written += delta.estimate_tokens();
            if self.is_watched() {
                unshown.push(delta.clone());
            }
            collector.push(delta);
        };
        if has_shown {
            self.show(&mut unshown).await;
        }
        ended?;
        let is_offered = |name: &str| tools.iter().any(|tool| *tool.name == *name);
        collector.finish().map(|reply| reply.without_torn_call().without_excess_calls().with_plain_names(is_offered))
    }

    fn is_watched(&self) -> bool {
        !self.is_aside && self.shared.ports.live.is_watched(&self.shared.society)
    }

    /// Shows watchers what has come while more has to be waited for. A reply that is there as a whole is not shown: writing its
    /// intent for that would cost a commit, and the reply itself comes with the next one.
    async fn show(&mut self, unshown: &mut Vec<Delta>) {
        // Watchers learn of the call before they see chunks of its reply.
        if !unshown.is_empty() && self.is_watched() && !self.shared.is_released(self.declared) {
            self.shared.flush().await;
        }
        unshown.drain(..).for_each(|delta| self.publish(delta));
    }

    fn publish(&self, delta: Delta) {
        let Shared { ports, society, .. } = self.shared;
        if self.is_watched() {
            let streamed = StreamedDelta { effect: self.id, thread: self.thread.clone(), delta };
            ports.live.publish(society, Frame::Delta(Arc::new(streamed)));
        }
    }

    /// Shows the end of a reply that does not become whole.
    fn break_off(&mut self, end: Delta) {
        (self.on_delta)(&end);
        self.publish(end);
    }
}

impl Drop for DeltaPublisher<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.break_off(Delta::Stopped);
        }
    }
}
