//! Carries out one order: the rounds of a planner, an executor or a verifier. Written once, over any backend.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polis_domain::{
    CallResult, EffectClass, Failure, FailureCode, Finish, Reply, Text, Timestamp, ToolCall, ToolChoice, Usage,
};
use polis_engine::{FindTools, asking_fresh};
use polis_ports::{ChatMessage, Format, ToolSpec};

use super::backend::{Activity, AgentBackend, AiMessage, ChatOptions};
use super::fields::Reading;
use super::messages::described_tools;
use super::phrases::phrases;
use super::reply_listener::ReplyListener;
use super::response::{read_executor_response, refuse_empty_word};
use super::transcript::{called, results as called_results};
use super::truncate::clipped;
use super::{
    AgentAction, AgentType, Component, Done, ExecutorResponse, Order, Parsed, Plan, PlannerResponse, RoleOutcome, RoleReply,
    Todo, TodoStatus, Unreadable, Verdict, VerifierResponse, WorkflowRole, executor_format, parse_planner_response,
    parse_verifier_response, planner_format, role, verifier_format,
};
use crate::cut_reply;

/// Most bytes of a reply that cannot be read, as the model that wrote it is shown it again.
const ECHO_BYTES: usize = 32 * 1024;

/// Rounds in which a planner or a verifier may use tools that read, for one plan or judgement.
const LOOK_ROUNDS: usize = 4;

/// Most tools that a planner or a verifier is offered. Their requests are large without them.
const MOST_LOOK_TOOLS: usize = 12;

/// How many empty replies in a row the role that answers without a plan is asked for again.
const MAX_EMPTY_REPLIES: usize = 2;

/// So many rounds before the last one, an executor is told how many are left.
const WARN_ROUNDS: usize = 3;

/// Carries out an order, which may be for one of these roles. What goes wrong is told in what comes of it.
pub async fn work<B: AgentBackend>(backend: &mut B, roles: &[Arc<dyn WorkflowRole>], order: &Order) -> Done {
    let began = backend.now();
    let mut round =
        Rounds { backend, roles, order, conversation: Vec::new(), transcript: Vec::new(), usage: Usage::default(), rounds: 0 };
    let outcome = round.carry_out().await.unwrap_or_else(|failure| RoleOutcome::Failed { failure });
    let Rounds { transcript, usage, rounds, .. } = round;
    let duration_ms = backend.now().0.saturating_sub(began.0);
    Done { outcome, transcript, address: String::new(), usage, duration_ms, rounds }
}

/// One order while it is carried out.
struct Rounds<'a, B> {
    backend: &'a mut B,
    roles: &'a [Arc<dyn WorkflowRole>],
    order: &'a Order,
    /// The conversation with the model.
    conversation: Vec<ChatMessage>,
    transcript: Vec<AiMessage>,
    usage: Usage,
    rounds: usize,
}

/// The model's reply in one round.
enum RoundReply<T> {
    Calls(Reply),
    Response(T, Reply),
}

/// How a role is asked.
struct Asking<'a> {
    component: &'static str,
    action: AgentAction,
    tools: Arc<[ToolSpec]>,
    tool_choice: ToolChoice,
    format: Option<Arc<Format>>,
    /// The shape that a reply must have where one could not be read. Several vendors take either tools or a shape, so a role
    /// with tools is held to a shape only then, and loses its tools for it.
    repair_format: Option<Arc<Format>>,
    system: &'a Text,
}

impl<'a> Asking<'a> {
    /// A role that may use these tools to look things up, and then answers in this shape.
    fn looking(
        component: &'static str,
        action: AgentAction,
        tools: Arc<[ToolSpec]>,
        shape: Arc<Format>,
        system: &'a Text,
    ) -> Self {
        let format = tools.is_empty().then(|| shape.clone());
        Self { component, action, tools, tool_choice: ToolChoice::Auto, format, repair_format: Some(shape), system }
    }

    /// The same role without tools, held to a shape.
    fn shaped(&self, shape: &Arc<Format>) -> Self {
        let Self { component, action, ref tool_choice, system, .. } = *self;
        let format = Some(shape.clone());
        Self { component, action, tools: Arc::default(), tool_choice: tool_choice.clone(), format, repair_format: None, system }
    }
}

impl<B: AgentBackend> Rounds<'_, B> {
    async fn carry_out(&mut self) -> Result<RoleOutcome, Failure> {
        let order = self.order;
        let system = order.prompt.as_ref().map_err(Clone::clone)?;
        self.begin().await?;
        match order.agent.name() {
            "planner" => self.plan(system).await,
            "executor" => self.execute(system).await,
            "verifier" => self.verify(system).await,
            "fallback" => self.answer(system).await,
            other => match role::find(self.roles, &order.agent) {
                Some(role) => self.word(role, system).await,
                None => Err(Failure::new("no_such_role", format!("nobody knows how a `{other}` works"))),
            },
        }
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        let order = self.order;
        for message in &order.messages {
            self.keep(message.clone()).await?;
            self.conversation.push(message.to_chat());
        }
        Ok(())
    }

    /// The planner's rounds: until the plan is whole, or there are no more.
    async fn plan(&mut self, system: &Text) -> Result<RoleOutcome, Failure> {
        let order = self.order;
        let mut asking =
            Asking::looking(PlannerResponse::NAME, AgentAction::Planning, self.planning_tools(), planner_format(), system);
        let mut last = None;
        for round in 1..=order.rounds.max(1) {
            self.take_person_messages().await?;
            let (response, reply) = self.ask_looking(&mut asking, |text| planned(text, order.plan.as_ref())).await?;
            let is_whole = !response.needs_more_planning;
            last = Some(response);
            if is_whole || round == order.rounds {
                break;
            }
            self.go_on(&reply, phrases(order.language).plan_on).await?;
        }
        let response = last.ok_or_else(|| Failure::new("no_plan", "the planner did not plan"))?;
        let named = order.writers.iter().filter(|tool| names(&response.todos, tool)).cloned();
        let may_write = |todo: &&Todo| !order.writers.is_empty() && todo.writes.unwrap_or(true);
        let writes = named.chain(response.todos.iter().filter(may_write).map(|todo| todo.id.clone())).collect();
        Ok(RoleOutcome::Planned { response, writes, settings: order.settings })
    }

    /// The executor's rounds with one todo. A todo that asks to begin again may do so once (D26).
    async fn execute(&mut self, system: &Text) -> Result<RoleOutcome, Failure> {
        let (order, words) = (self.order, phrases(self.order.language));
        let tools = self.tools();
        let format = order.is_shaped.then(executor_format);
        let mut asking = Asking {
            component: ExecutorResponse::NAME,
            action: AgentAction::Executing,
            tools,
            tool_choice: ToolChoice::Auto,
            format,
            repair_format: None,
            system,
        };
        // Whoever says again that it is just done, although they were asked for a result, may have no other one.
        let was_told = AtomicBool::new(false);
        let read = |text: &str| {
            let parsed = read_executor_response(text, &order.todo)?;
            if !was_told.load(Ordering::Relaxed) {
                refuse_empty_word(&parsed.response, &order.todo).inspect_err(|_| was_told.store(true, Ordering::Relaxed))?;
            }
            Ok(parsed)
        };
        let mut is_second = false;
        let mut last: Option<ExecutorResponse> = None;
        let mut left = order.rounds.max(1);
        while left > 0 {
            left -= 1;
            self.take_person_messages().await?;
            self.tell_rounds(&mut asking, left).await?;
            let (response, reply) = match self.ask(&asking, &read).await {
                Ok(RoundReply::Calls(reply)) => {
                    self.call(reply).await?;
                    continue;
                }
                Ok(RoundReply::Response(response, reply)) => (response, reply),
                // It was told to report with what it has, and did not.
                Err(failure) if asking.tool_choice == ToolChoice::None && is_unreadable(&failure) => break,
                Err(failure) => return Err(failure),
            };
            let status = match response.verdict(&order.todo) {
                Verdict::Completed => TodoStatus::Completed,
                Verdict::Skipped => TodoStatus::Skipped,
                Verdict::Failed => TodoStatus::Failed,
                Verdict::Retry if is_second => {
                    let result = format!("{}: {}", words.retried, response.summary);
                    return Ok(RoleOutcome::Executed { status: TodoStatus::Failed, result, response: Some(response) });
                }
                Verdict::Retry => {
                    is_second = true;
                    left = order.rounds.max(1);
                    self.conversation.clear();
                    self.keep(AiMessage::said(&reply)).await?;
                    self.conversation.extend(order.messages.iter().map(AiMessage::to_chat));
                    self.tell_model(format!("{}\n\n{}", words.begin_again, response.summary)).await?;
                    last = Some(response);
                    continue;
                }
                Verdict::Continue => {
                    last = Some(response);
                    if left > 0 {
                        self.go_on(&reply, words.work_on).await?;
                    }
                    continue;
                }
            };
            return Ok(RoleOutcome::Executed { status, result: response.summary.clone(), response: Some(response) });
        }
        let said = last.as_ref().map(|last| format!(": {}", last.summary)).unwrap_or_default();
        let result = format!("{}{said}", (words.out_of_rounds)(order.rounds.max(1)));
        Ok(RoleOutcome::Executed { status: TodoStatus::Failed, result, response: last })
    }

    async fn verify(&mut self, system: &Text) -> Result<RoleOutcome, Failure> {
        let tools = self.reading_tools();
        let mut asking = Asking::looking(VerifierResponse::NAME, AgentAction::Verifying, tools, verifier_format(), system);
        let (response, _) = self.ask_looking(&mut asking, parse_verifier_response).await?;
        Ok(RoleOutcome::Verified { response })
    }

    /// The rounds of the role that answers without a plan, in its own words.
    async fn answer(&mut self, system: &Text) -> Result<RoleOutcome, Failure> {
        let words = phrases(self.order.language);
        let tools = if self.order.reads_only { self.reading_tools() } else { self.tools() };
        let mut asking = Asking {
            component: "",
            action: AgentAction::Executing,
            tools,
            tool_choice: ToolChoice::Auto,
            format: None,
            repair_format: None,
            system,
        };
        let mut empty_replies = 0;
        let rounds = self.order.rounds.max(1);
        for round in 0..=rounds {
            let is_last = round == rounds;
            if is_last {
                asking.tool_choice = ToolChoice::None;
                self.tell_model(words.last_round.to_owned()).await?;
            }
            self.take_person_messages().await?;
            self.rounds += 1;
            let reply = self.complete(&asking).await?;
            if !reply.tool_calls.is_empty() && !asking.tools.is_empty() && !is_last {
                empty_replies = 0;
                self.call_some(reply, self.order.reads_only.then_some(&*asking.tools)).await?;
                continue;
            }
            let is_cut = cut_reply::says_nothing(&reply);
            if !reply.text.trim().is_empty() && !is_cut {
                return Ok(RoleOutcome::Answered { text: reply.text, is_finished: !is_last });
            }
            empty_replies += 1;
            if empty_replies > MAX_EMPTY_REPLIES {
                break;
            }
            let note = cut_reply::note(&reply, self.order.language).unwrap_or_else(|| words.empty_reply.to_owned());
            self.keep(AiMessage::said(&reply)).await?;
            if !reply.text.trim().is_empty() {
                self.conversation.push(ChatMessage::said(&reply));
            }
            self.tell_model(note).await?;
        }
        let made = called(&self.transcript, words.no_answer);
        match made.trim() {
            "" => Err(Failure::new("no_reply", "the model gave no answer")),
            made => Ok(RoleOutcome::Answered { text: made.to_owned(), is_finished: false }),
        }
    }

    /// The rounds of a role that others have added.
    async fn word(&mut self, role: &dyn WorkflowRole, system: &Text) -> Result<RoleOutcome, Failure> {
        let tools = if role.has_tools() { self.tools() } else { Arc::default() };
        let format = role.format().filter(|_| tools.is_empty());
        let asking = Asking {
            component: role.component(),
            action: role.action(),
            tools,
            tool_choice: ToolChoice::Auto,
            format,
            repair_format: None,
            system,
        };
        for _ in 0..self.order.rounds.max(1) {
            match self.ask(&asking, |text| read_reply(role, text)).await? {
                RoundReply::Calls(reply) => self.call(reply).await?,
                RoundReply::Response(RoleReply { text, improvements, tasks }, _) => {
                    return Ok(RoleOutcome::Said { text, improvements, tasks });
                }
            }
        }
        Err(Failure::new("no_reply", (phrases(self.order.language).out_of_rounds)(self.order.rounds.max(1))))
    }

    /// Asks a role that may look things up first, for a reply that can be read.
    async fn ask_looking<T>(
        &mut self,
        asking: &mut Asking<'_>,
        parse: impl Fn(&str) -> Result<Parsed<T>, Unreadable> + Send + Sync,
    ) -> Result<(T, Reply), Failure> {
        let mut looks = LOOK_ROUNDS;
        loop {
            match self.ask(asking, &parse).await? {
                RoundReply::Response(response, reply) => return Ok((response, reply)),
                RoundReply::Calls(reply) => self.call_some(reply, Some(&asking.tools)).await?,
            }
            looks -= 1;
            if looks == 0 {
                asking.tool_choice = ToolChoice::None;
                self.tell_model(phrases(self.order.language).no_more_looks.to_owned()).await?;
            }
        }
    }

    /// Tells an executor how many rounds it has left. In the last of several it can only report.
    async fn tell_rounds(&mut self, asking: &mut Asking<'_>, left: usize) -> Result<(), Failure> {
        let words = phrases(self.order.language);
        asking.tool_choice = ToolChoice::Auto;
        if left + 1 == WARN_ROUNDS && self.order.rounds > 2 * WARN_ROUNDS {
            return self.tell_model((words.rounds_left)(WARN_ROUNDS)).await;
        }
        if left == 0 && self.order.rounds > 2 && !asking.tools.is_empty() {
            asking.tool_choice = ToolChoice::None;
            return self.tell_model(words.last_round.to_owned()).await;
        }
        Ok(())
    }

    /// One round: a reply that asks for tools, or one that can be read. One that cannot be is asked for again, with the
    /// reason, but not for ever.
    async fn ask<T>(
        &mut self,
        asking: &Asking<'_>,
        parse: impl Fn(&str) -> Result<Parsed<T>, Unreadable> + Send,
    ) -> Result<RoundReply<T>, Failure> {
        self.rounds += 1;
        let mut repairs = self.order.repairs;
        loop {
            let is_repair = repairs < self.order.repairs;
            let reply = match (&asking.repair_format, is_repair && !self.has_called()) {
                (Some(shape), true) => self.complete(&asking.shaped(shape)).await?,
                _ => self.complete(asking).await?,
            };
            if !reply.tool_calls.is_empty() && !asking.tools.is_empty() && asking.tool_choice != ToolChoice::None {
                return Ok(RoundReply::Calls(reply));
            }
            let unreadable = match parse(&reply.text) {
                Ok(parsed) => return Ok(RoundReply::Response(parsed.response, reply)),
                Err(Unreadable { component, .. }) if !reply.tool_calls.is_empty() => {
                    let words = phrases(self.order.language);
                    let told = if asking.tools.is_empty() { words.no_tools } else { words.no_more_looks };
                    Unreadable { component, problems: vec![told.to_owned()] }
                }
                Err(Unreadable { component, .. }) if let Some(note) = cut_reply::note(&reply, self.order.language) => {
                    Unreadable { component, problems: vec![note] }
                }
                Err(_) if reply.finish == Finish::Refusal => {
                    return Err(Failure::new("model_refused", format!("the model will not do this: {}", reply.text)));
                }
                Err(unreadable) => unreadable,
            };
            if repairs == 0 {
                self.keep(AiMessage::said(&reply)).await?;
                let problems = unreadable.problems.join("; ");
                let message =
                    format!("the {} cannot be read after {} tries: {problems}", asking.component, self.order.repairs + 1);
                return Err(Failure::new("unreadable_reply", message));
            }
            repairs -= 1;
            self.keep(AiMessage::said(&reply)).await?;
            let echo = if reply.text.is_empty() { Cow::Borrowed("{}") } else { clipped(&reply.text, ECHO_BYTES) };
            self.conversation.push(ChatMessage::assistant(&*echo));
            self.tell_model(unreadable.to_string()).await?;
        }
    }

    async fn complete(&mut self, asking: &Asking<'_>) -> Result<Reply, Failure> {
        if self.backend.is_stopped() {
            return Err(stopped());
        }
        let order = self.order;
        let event_id = format!("{}-{}", order.agent, self.transcript.len());
        let watcher = self.backend.watcher();
        let is_heard = watcher.is_some();
        if let Some(watcher) = watcher {
            watcher(Activity::new(&order.agent, asking.action));
            let listening = ReplyListener::new(watcher, &order.agent, asking.component, asking.action);
            self.backend.listen_to_stream(&event_id, Box::new(listening));
        }
        let options = ChatOptions {
            event_id: event_id.clone(),
            model: order.model.as_str().into(),
            system: asking.system.clone(),
            messages: self.conversation.clone(),
            tools: asking.tools.clone(),
            tool_choice: asking.tool_choice.clone(),
            format: asking.format.clone(),
        };
        let began = self.backend.now();
        let reply = self.backend.chat_completion(options).await;
        if is_heard {
            self.backend.unlisten(&event_id);
        }
        let reply = reply?;
        self.tell_end(asking.action, None, began, Some(reply.usage));
        self.usage = self.usage.plus(reply.usage);
        Ok(reply)
    }

    /// Makes the calls of a reply.
    async fn call(&mut self, reply: Reply) -> Result<(), Failure> {
        self.call_some(reply, None).await
    }

    /// Makes the calls of a reply, of these tools only where the role has no others. The backend knows all tools, so what is
    /// not offered has to be refused here.
    async fn call_some(&mut self, reply: Reply, only: Option<&[ToolSpec]>) -> Result<(), Failure> {
        if self.backend.is_stopped() {
            return Err(stopped());
        }
        self.keep(AiMessage::said(&reply)).await?;
        let began = self.backend.now();
        let may = |call: &ToolCall| only.is_none_or(|tools| tools.iter().any(|tool| tool.name == call.name));
        let is_verifier = self.order.agent == AgentType::VERIFIER;
        let asks_fresh = is_verifier && self.backend.reuses_results();
        let call_of = |call: &ToolCall| match asks_fresh {
            // What executors read earlier proves nothing: the person or a program may have changed it since.
            true => asking_fresh(call, "verification"),
            false => call.clone(),
        };
        let allowed: Vec<ToolCall> = reply.tool_calls.iter().filter(|call| may(call)).map(call_of).collect();
        let mut made = match allowed.is_empty() {
            true => Vec::new(),
            false => self.backend.execute_tools(allowed, &self.order.scope).await,
        }
        .into_iter();
        let refused = |call: &ToolCall| CallResult::failed(format!("{} was not called: it is not among your tools", call.name));
        let results: Vec<CallResult> = reply
            .tool_calls
            .iter()
            .map(|call| if may(call) { made.next().unwrap_or_else(|| refused(call)) } else { refused(call) })
            .collect();
        let names: Vec<String> = reply.tool_calls.iter().map(|call| call.meant().name.to_string()).collect();
        self.tell_end(AgentAction::CallingTool, Some(names.join(", ").into()), began, None);
        self.conversation.push(ChatMessage::said(&reply));
        for (call, result) in reply.tool_calls.iter().zip(&results) {
            ChatMessage::push_result(&mut self.conversation, call, result);
            self.keep(AiMessage::result(call, result)).await?;
        }
        if is_verifier {
            let last = self.order.looks + called_results(&self.transcript).count();
            let names: Vec<String> = (last + 1 - results.len()..=last).map(|n| format!("v{n}")).collect();
            self.tell_model((phrases(self.order.language).named_results)(&names.join(", "))).await?;
        }
        for note in
            ChatMessage::notes(&reply.tool_calls, &results).into_iter().chain(cut_reply::note(&reply, self.order.language))
        {
            self.tell_model(note).await?;
        }
        Ok(())
    }

    /// The reply stands, and the model goes on.
    async fn go_on(&mut self, reply: &Reply, words: &str) -> Result<(), Failure> {
        self.keep(AiMessage::said(reply)).await?;
        self.conversation.push(ChatMessage::said(reply));
        self.tell_model(words.to_owned()).await
    }

    /// Tells the model something that the program says, marked so that it is not taken for words of the person.
    async fn tell_model(&mut self, text: String) -> Result<(), Failure> {
        self.add_message(if text.starts_with("[polis]") { text } else { format!("[polis] {text}") }).await
    }

    async fn add_message(&mut self, text: String) -> Result<(), Failure> {
        self.conversation.push(ChatMessage::user(&*text));
        self.keep(AiMessage::user(text)).await
    }

    /// What somebody said to the work meanwhile comes before the next round.
    async fn take_person_messages(&mut self) -> Result<(), Failure> {
        for text in self.backend.steering().await? {
            let told = format!("{}\n\n{text}", phrases(self.order.language).person_says);
            self.add_message(told).await?;
        }
        Ok(())
    }

    /// Tells whoever watches that a step is over.
    fn tell_end(&self, action: AgentAction, component: Option<Arc<str>>, began: Timestamp, usage: Option<Usage>) {
        if let Some(watcher) = self.backend.watcher() {
            let duration_ms = Some(self.backend.now().0.saturating_sub(began.0));
            watcher(Activity { component, duration_ms, usage, ..Activity::new(&self.order.agent, action) });
        }
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.order.tools.clone().unwrap_or_else(|| self.backend.tools())
    }

    /// Those of the tools that only read, and read the same until something is written.
    fn reading_tools(&self) -> Arc<[ToolSpec]> {
        let tools = self.order.tools.clone().unwrap_or_else(|| self.backend.callable_tools());
        let reads = tools.iter().filter(|tool| tool.class == EffectClass::Read && !tool.volatile);
        reads.take(MOST_LOOK_TOOLS).cloned().collect()
    }

    /// The tools with which a planner looks. It can search the tools where its prompt does not describe all of them.
    fn planning_tools(&self) -> Arc<[ToolSpec]> {
        let (tools, reading) = (self.tools(), self.reading_tools());
        let all = self.order.tools.clone().unwrap_or_else(|| self.backend.callable_tools());
        let search = tools.iter().find(|tool| &*tool.name == FindTools::NAME);
        match search.filter(|_| described_tools(&all) < all.len()) {
            Some(search) => reading.iter().chain([search]).cloned().collect(),
            None => reading,
        }
    }

    fn has_called(&self) -> bool {
        self.conversation.iter().any(|message| matches!(message, ChatMessage::Tool { .. }))
    }

    async fn keep(&mut self, message: AiMessage) -> Result<(), Failure> {
        let message = message.of(&self.order.agent);
        self.backend.listeners().said(&message);
        self.transcript.push(message.clone());
        self.backend.save_message(message).await
    }
}

fn planned(text: &str, before: Option<&Plan>) -> Result<Parsed<PlannerResponse>, Unreadable> {
    let parsed = parse_planner_response(text)?;
    if !parsed.response.todos.is_empty() {
        let todos = parsed.response.todos.clone();
        before.map_or_else(|| Plan::new(todos.clone()), |before| before.replan(todos.clone()))?;
    }
    Ok(parsed)
}

fn read_reply(role: &dyn WorkflowRole, text: &str) -> Result<Parsed<RoleReply>, Unreadable> {
    let component = role.component();
    let (reading, object) = Reading::begin(text, component, role.fields())?;
    match role.read(&object) {
        Ok(word) => reading.end(Some(word)),
        Err(problems) => Err(Unreadable { component, problems }),
    }
}

/// Whether todos name a tool.
fn names(todos: &[Todo], tool: &str) -> bool {
    todos.iter().any(|todo| todo.title.contains(tool) || todo.description.contains(tool))
}

/// Whether a model answered, but not so that the answer can be used.
pub(super) fn is_unreadable(failure: &Failure) -> bool {
    matches!(&*failure.code, "unreadable_reply" | "no_reply" | "no_plan" | "model_refused")
}

pub(super) fn stopped() -> Failure {
    Failure::new(FailureCode::Stopped, "the work was stopped")
}
