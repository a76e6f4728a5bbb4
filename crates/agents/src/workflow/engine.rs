//! The workflow: plan, do the todos, verify; again with the verifier's improvements, until it is done or at its end. Written
//! once, over any backend.

use std::sync::Arc;

use polis_domain::{EffectClass, Failure, Usage, Verdict};
use polis_ports::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{listed, partial, unverified};
use super::backend::{AgentBackend, AiMessage, Speaker};
use super::phrases::phrases;
use super::work::stopped;
use super::{
    AgentAction, AgentType, Component, Done, Evidence, Language, McpServerInfo, Order, Plan, PlannerResponse, PromptManager,
    PromptOptions, RoleOutcome, Standing, SummaryResponse, Todo, TodoList, TodoStatus, Unreadable, VerifierResponse,
    WorkflowRole, check_proof, executor_message, planner_message, tool_lines, verifier_message,
};

/// How far the workflow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowLimits {
    /// Rounds of a planner for one plan.
    pub planning_rounds: usize,
    /// Rounds of an executor for one todo.
    pub executor_rounds: usize,
    /// How often a verifier is asked for one judgement that can be used.
    pub verifier_rounds: usize,
    /// Plans, one after another.
    pub cycles: usize,
    /// Todos that are worked on at once.
    pub at_once: usize,
    /// How often a reply that cannot be read is asked for again.
    pub repairs: usize,
}

impl Default for WorkflowLimits {
    fn default() -> Self {
        Self { planning_rounds: 3, executor_rounds: 10, verifier_rounds: 1, cycles: 3, at_once: 3, repairs: 2 }
    }
}

/// When a person is asked about a plan before it is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanApproval {
    /// Never.
    #[default]
    Never,
    /// When it names a tool that writes, or has more todos than this.
    Ask {
        /// Todos that need no asking.
        todos: usize,
    },
    /// Always.
    Always,
}

impl PlanApproval {
    /// Asks about plans that name a tool that writes, and about those of more than five todos.
    pub const ASK: Self = Self::Ask { todos: 5 };

    fn asks(self, plan: &Plan, writes: &[String]) -> bool {
        match self {
            Self::Never => false,
            Self::Ask { todos } => !writes.is_empty() || open(plan).count() > todos,
            Self::Always => true,
        }
    }
}

/// What a run keeps to from its first plan on, whatever is set up by the time it goes on after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunSettings {
    /// How far it goes.
    pub limits: WorkflowLimits,
    /// When a person is asked.
    pub approval: PlanApproval,
}

/// What is asked of a workflow.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// What the person wants.
    pub user_message: String,
    /// What was said before.
    pub initial_messages: Vec<AiMessage>,
    /// What all roles are told beside their prompts.
    pub system_message: String,
    /// What the person has before them, such as `currentResourceId`.
    pub context: Map<String, Value>,
    /// The model to ask (the documents' configId); the backend's own choice when empty.
    pub model: String,
    /// The conversation that it belongs to; the backend is told.
    pub chat_id: String,
    /// The tools that executors may use; the backend's own where none are given.
    pub tools: Option<Arc<[ToolSpec]>>,
    /// Servers whose tools executors may use as well, see [`super::run_agent_workflow`].
    pub mcp_servers: Vec<McpServerInfo>,
}

impl From<&str> for RunOptions {
    fn from(user_message: &str) -> Self {
        Self { user_message: user_message.to_owned(), ..Self::default() }
    }
}

/// What came of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowResult {
    /// The answer.
    pub answer: SummaryResponse,
    /// The last plan, if there was one.
    pub plan: Option<Plan>,
    /// Where what the verifier cites is found: the name and the address.
    pub evidence: Vec<(String, String)>,
    /// Tokens and money.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Plans that it took.
    pub cycles: usize,
}

/// Coordinates planner, executors and verifier (the documents' AgentWorkflowEngine).
#[derive(Debug, Clone, Default)]
pub struct AgentWorkflowEngine {
    /// What the roles are told.
    pub prompts: PromptManager,
    /// How far it goes.
    pub limits: WorkflowLimits,
    /// When a person is asked about a plan.
    pub approval: PlanApproval,
    /// Roles that others have added.
    pub roles: Vec<Arc<dyn WorkflowRole>>,
}

impl AgentWorkflowEngine {
    /// The engine with these prompts, and everything else as usual.
    pub fn new(prompts: PromptManager) -> Self {
        Self { prompts, ..Self::default() }
    }

    /// The same engine with these settings.
    #[must_use]
    pub fn with_settings(self, settings: RunSettings) -> Self {
        let RunSettings { limits, approval } = settings;
        Self { limits, approval, ..self }
    }

    /// The same engine with one role more. Its core template must be set at the prompts.
    #[must_use]
    pub fn with_role(mut self, role: impl WorkflowRole) -> Self {
        self.roles.push(Arc::new(role));
        self
    }

    /// Works on a request to its end. It is an error only if nothing could be planned at all, or if it was stopped.
    pub async fn run<B: AgentBackend>(&self, backend: &mut B, options: RunOptions) -> Result<WorkflowResult, Failure> {
        let began = backend.now();
        backend.begin_chat(&options.chat_id);
        let language = Language::of(&options.user_message);
        let mut run = Run {
            engine: self,
            backend,
            request: request(&options, language),
            options,
            language,
            settings: RunSettings { limits: self.limits, approval: self.approval },
            plan: None,
            evidence: Evidence::default(),
            cited: Vec::new(),
            usage: Usage::default(),
            cycles: 0,
        };
        let answer = run.answer().await?;
        let Run { plan, cited: evidence, usage, cycles, .. } = run;
        let duration_ms = backend.now().0.saturating_sub(began.0);
        Ok(WorkflowResult { answer, plan, evidence, usage, duration_ms, cycles })
    }
}

/// A workflow under way.
struct Run<'a, B> {
    engine: &'a AgentWorkflowEngine,
    backend: &'a mut B,
    options: RunOptions,
    request: String,
    language: Language,
    settings: RunSettings,
    plan: Option<Plan>,
    evidence: Evidence,
    cited: Vec<(String, String)>,
    usage: Usage,
    cycles: usize,
}

/// What came of planning.
enum Planned {
    Plan(Plan),
    /// There is none, and this is the answer.
    Answer(SummaryResponse),
    /// There is none that the person wants; they say why.
    Unwanted(String),
}

/// What came of verifying.
enum Verified {
    Answer(SummaryResponse),
    Improvements(Vec<String>),
    /// Nobody could judge.
    Nothing(String),
}

impl<B: AgentBackend> Run<'_, B> {
    async fn answer(&mut self) -> Result<SummaryResponse, Failure> {
        let words = phrases(self.language);
        let mut improvements = Vec::new();
        while self.cycles < self.settings.limits.cycles.max(1) {
            self.cycles += 1;
            let cycle = self.cycles;
            self.log(|| format!("plan {cycle}"));
            let plan = match self.planned(&improvements).await {
                Ok(Planned::Plan(plan)) => plan,
                Ok(Planned::Answer(answer)) => return Ok(answer),
                Ok(Planned::Unwanted(why)) => {
                    improvements = vec![why];
                    continue;
                }
                Err(failure) => return self.at_its_end(vec![failure.message.clone()]).ok_or(failure),
            };
            let plan = self.execute(plan).await?;
            self.plan = Some(plan.clone());
            let wanted = self.heard_of_others(&plan).await?;
            if !wanted.is_empty() {
                improvements = wanted;
                continue;
            }
            let verified = self.verify(&plan).await?;
            match verified {
                Verified::Answer(answer) => return Ok(answer),
                Verified::Improvements(wanted) => improvements = wanted,
                Verified::Nothing(why) => {
                    let answer = self.at_its_end(vec![why.clone()]);
                    return answer.ok_or_else(|| Failure::new("not_verified", why));
                }
            }
        }
        let mut missing = improvements;
        missing.insert(0, (words.out_of_cycles)(self.cycles));
        Ok(partial(self.language, self.plan.as_ref(), missing))
    }

    /// An honest partial answer, where something was done.
    fn at_its_end(&self, missing: Vec<String>) -> Option<SummaryResponse> {
        let plan = self.plan.as_ref()?;
        plan.todos()
            .iter()
            .any(|todo| todo.status == TodoStatus::Completed)
            .then(|| partial(self.language, Some(plan), missing))
    }

    /// A plan that is agreed to.
    async fn planned(&mut self, improvements: &[String]) -> Result<Planned, Failure> {
        let words = phrases(self.language);
        let text = planner_message(self.language, &self.request, self.plan.as_ref(), improvements);
        let tools = self.tools();
        let writers = tools.iter().filter(|tool| tool.class == EffectClass::Write).map(|tool| tool.name.to_string()).collect();
        let mut order = self.order(AgentType::PLANNER, vec![AiMessage::user(text)], words.planning);
        order.rounds = self.settings.limits.planning_rounds;
        order.plan = self.plan.clone();
        order.writers = if matches!(self.settings.approval, PlanApproval::Ask { .. }) { writers } else { Vec::new() };
        order.settings = Some(self.settings);
        let (response, writes) = match self.one(order).await?.outcome {
            RoleOutcome::Planned { response, writes, settings } => {
                self.settings = settings.unwrap_or(self.settings);
                (response, writes)
            }
            RoleOutcome::Failed { failure } => return Err(failure),
            _ => return Err(Failure::new("no_plan", "the planner did not plan")),
        };
        if response.todos.is_empty() && self.plan.is_some() {
            let missing = std::iter::once(response.summary).chain(improvements.iter().cloned()).collect();
            return Ok(Planned::Answer(partial(self.language, self.plan.as_ref(), missing)));
        }
        if response.todos.is_empty() {
            let summary = format!("{}: {}", words.needs_more, response.summary);
            return Ok(Planned::Answer(SummaryResponse { summary, verified: false, missing: vec![response.summary] }));
        }
        let plan = self.merged(response.todos.clone()).map_err(|unreadable| Failure::new("no_plan", unreadable.to_string()))?;
        if !self.settings.approval.asks(&plan, &writes) {
            return Ok(Planned::Plan(plan));
        }
        self.agreed(plan, &response).await
    }

    fn merged(&self, todos: Vec<Todo>) -> Result<Plan, Unreadable> {
        Ok(match &self.plan {
            Some(before) => before.replan(todos)?,
            None => Plan::new(todos)?,
        })
    }

    /// Asks a person about a plan, and takes over what they changed.
    async fn agreed(&mut self, plan: Plan, response: &PlannerResponse) -> Result<Planned, Failure> {
        let words = phrases(self.language);
        let mut question = format!("{}\n\n{}\n\n{}", response.summary, listed(&plan, self.language), words.agree);
        loop {
            let shown: Vec<&Todo> = open(&plan).collect();
            let verdict = self.backend.approve_plan(&question, json!({ "todos": shown })).await?;
            match verdict {
                Verdict { approved: false, reason, .. } if reason.trim().is_empty() => {
                    let summary = format!("{}.", words.not_agreed);
                    return Ok(Planned::Answer(SummaryResponse { summary, verified: false, missing: Vec::new() }));
                }
                Verdict { approved: false, reason, .. } => {
                    // So that the planner is told what they want.
                    self.plan.get_or_insert_default();
                    return Ok(Planned::Unwanted(reason));
                }
                Verdict { arguments: None, .. } => return Ok(Planned::Plan(plan)),
                Verdict { arguments: Some(arguments), .. } => match edited(&arguments)
                    .and_then(|todos| self.merged(todos).map_err(|unreadable| unreadable.problems.join("; ")))
                {
                    Ok(plan) => return Ok(Planned::Plan(plan)),
                    Err(why) => question = format!("{} ({why})\n\n{question}", words.bad_edit),
                },
            }
        }
    }

    /// Does the todos of a plan, by priority, those that do not wait for each other at once.
    async fn execute(&mut self, mut plan: Plan) -> Result<Plan, Failure> {
        loop {
            self.show(&plan).await?;
            let ready: Vec<Todo> = plan.runnable(self.settings.limits.at_once.max(1)).into_iter().cloned().collect();
            if ready.is_empty() {
                return Ok(plan);
            }
            if self.backend.is_stopped() {
                return Err(stopped());
            }
            let is_shaped = self.tools().is_empty();
            let orders = ready.iter().map(|todo| {
                let mut plan = plan.clone();
                plan.begin(&todo.id);
                let text = executor_message(self.language, &self.request, &plan, todo);
                let mut order = self.order(AgentType::EXECUTOR, vec![AiMessage::user(text)], &todo.heading());
                order.rounds = self.settings.limits.executor_rounds;
                order.todo.clone_from(&todo.id);
                order.is_shaped = is_shaped;
                order
            });
            let orders: Vec<Order> = orders.collect();
            ready.iter().for_each(|todo| plan.begin(&todo.id));
            let done = self.backend.run_orders(&self.engine.roles, orders).await?;
            for (todo, done) in ready.iter().zip(done) {
                self.settle(&mut plan, &todo.id, &done);
            }
        }
    }

    /// Takes over what came of a todo, and what the verifier may cite.
    fn settle(&mut self, plan: &mut Plan, todo: &str, done: &Done) {
        self.usage = self.usage.plus(done.usage);
        self.note(todo, done);
        if let RoleOutcome::Failed { failure } = &done.outcome {
            self.backend.listeners().failed(failure);
        }
        match &done.outcome {
            RoleOutcome::Executed { status, result, response } => {
                plan.settle(todo, *status, result);
                if let Some(response) = response {
                    plan.apply(todo, &response.states());
                }
            }
            _ => plan.settle(todo, TodoStatus::Failed, done.text()),
        }
        let status = plan.todo(todo).map_or("gone", |todo| todo.status.name());
        self.log(|| format!("todo {todo}: {status}"));
    }

    fn note(&mut self, todo: &str, done: &Done) {
        let results = |id: &str| {
            done.transcript
                .iter()
                .position(|message| message.role == Speaker::Tool && message.tool_call_id.as_deref() == Some(id))
        };
        let place = |index: usize| {
            if done.address.is_empty() { todo.to_owned() } else { format!("{}.messages[{index}]", done.address) }
        };
        for message in &done.transcript {
            for call in &message.tool_calls {
                let Some(at) = results(&call.id) else { continue };
                let content = &*done.transcript[at].content;
                let result = if done.transcript[at].is_error { Err(content) } else { Ok(content) };
                let name = self.evidence.call(&place(at), todo, &call.name, &call.arguments, result);
                self.cited.push((name, place(at)));
            }
        }
        if matches!(done.outcome, RoleOutcome::Executed { .. }) {
            let at = place(done.transcript.len());
            let name = self.evidence.message(&at, todo, done.text());
            self.cited.push((name, at));
        }
    }

    /// Asks the roles that others have added; gives what they want better.
    async fn heard_of_others(&mut self, plan: &Plan) -> Result<Vec<String>, Failure> {
        let mut wanted = Vec::new();
        for role in &self.engine.roles {
            if self.backend.is_stopped() {
                return Err(stopped());
            }
            let (language, request) = (self.language, self.request.as_str());
            let standing = Standing { language, request, plan, evidence: &self.evidence };
            let Some(text) = role.message(&standing) else { continue };
            let agent = role.agent();
            let mut order = self.order(agent.clone(), vec![AiMessage::user(text)], agent.name());
            order.rounds = role.rounds();
            let done = self.one(order).await?;
            if let RoleOutcome::Said { improvements, tasks, .. } = &done.outcome {
                let open = tasks.iter().filter(|task| !task.completed && improvements.is_empty());
                wanted.extend(improvements.iter().cloned());
                wanted.extend(open.map(|task| format!("{}: {}", task.id, task.feedback)));
                self.plan.get_or_insert_default().take_judgements(tasks);
            }
            let at = if done.address.is_empty() { agent.name().to_owned() } else { done.address.clone() };
            let name = self.evidence.word(&at, &agent, done.text());
            self.cited.push((name, at));
        }
        Ok(wanted)
    }

    /// Has the results judged. What is called done without proof is refused once (D27).
    async fn verify(&mut self, plan: &Plan) -> Result<Verified, Failure> {
        let words = phrases(self.language);
        let text = verifier_message(self.language, &self.request, plan, &self.evidence);
        let mut messages = vec![AiMessage::user(text)];
        for text in self.backend.steering().await? {
            messages.push(AiMessage::user(format!("{}\n\n{text}", words.person_says)));
        }
        let mut is_refused = false;
        let mut rounds = self.settings.limits.verifier_rounds.max(1);
        let mut why = String::new();
        while rounds > 0 {
            if self.backend.is_stopped() {
                return Err(stopped());
            }
            let order = self.order(AgentType::VERIFIER, messages.clone(), words.verifying);
            let done = self.one(order).await?;
            let response = match done.outcome {
                RoleOutcome::Verified { response } => response,
                _ => {
                    done.text().clone_into(&mut why);
                    rounds -= 1;
                    continue;
                }
            };
            let problems = match check_proof(&response, plan, &self.evidence) {
                Ok(()) => return Ok(self.accepted(plan, response)),
                Err(unreadable) => unreadable,
            };
            if is_refused {
                return Ok(match response.is_final() {
                    true => Verified::Answer(unverified(self.language, response.summary, problems.problems)),
                    false => self.accepted(plan, response),
                });
            }
            is_refused = true;
            messages.push(AiMessage::assistant(response.to_component().to_string()));
            messages.push(AiMessage::user(format!("{} {problems}", words.refused_proof)));
        }
        Ok(Verified::Nothing(why))
    }

    fn accepted(&mut self, plan: &Plan, response: VerifierResponse) -> Verified {
        if response.is_final() {
            return Verified::Answer(SummaryResponse { summary: response.summary, verified: true, missing: Vec::new() });
        }
        let mut judged = plan.clone();
        judged.take_judgements(&response.tasks);
        self.plan = Some(judged);
        Verified::Improvements(response.improvements)
    }

    async fn one(&mut self, order: Order) -> Result<Done, Failure> {
        let agent = order.agent.clone();
        let done = self.backend.run_orders(&self.engine.roles, vec![order]).await?.pop();
        let done = done.ok_or_else(|| Failure::new("no_reply", "the order was not carried out"))?;
        self.usage = self.usage.plus(done.usage);
        self.log(|| format!("{agent}: {}", done.text()));
        match &done.outcome {
            RoleOutcome::Failed { failure } if &*failure.code == "stopped" => Err(failure.clone()),
            RoleOutcome::Failed { failure } => {
                self.backend.listeners().failed(failure);
                Ok(done)
            }
            _ => Ok(done),
        }
    }

    /// The tools that executors may use.
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.options.tools.clone().unwrap_or_else(|| self.backend.tools())
    }

    /// Tells whoever hears of the run that a step was taken.
    fn log(&mut self, line: impl FnOnce() -> String) {
        self.backend.listeners().log(line);
    }

    /// An order with the prompt as it is rendered now.
    fn order(&self, agent: AgentType, messages: Vec<AiMessage>, title: &str) -> Order {
        let tools = (agent == AgentType::PLANNER).then(|| tool_lines(&self.tools()));
        let max_rounds = Some(self.settings.limits.executor_rounds);
        let options = PromptOptions { language: Some(self.language), tools, max_rounds, ..PromptOptions::default() };
        let prompt = self.engine.prompts.prompt(&agent, &options).map(|prompt| match self.options.system_message.trim() {
            "" => prompt.text.to_string(),
            more => format!("{}\n\n{more}", prompt.text.trim_end()),
        });
        Order {
            agent,
            prompt: prompt.map_err(|error| Failure::new(error.code(), error.to_string())),
            language: self.language,
            messages,
            todo: String::new(),
            is_shaped: true,
            title: title.to_owned(),
            rounds: self.settings.limits.verifier_rounds,
            repairs: self.settings.limits.repairs,
            model: self.options.model.clone(),
            plan: None,
            settings: None,
            writers: Vec::new(),
            tools: self.options.tools.clone(),
        }
    }

    /// Shows the plan as it stands, always in the same message.
    async fn show(&mut self, plan: &Plan) -> Result<(), Failure> {
        if let Some(watcher) = self.backend.watcher() {
            let component = Some(TodoList::NAME.into());
            watcher(super::Activity { component, ..super::Activity::new(&AgentType::PLANNER, AgentAction::Executing) });
        }
        let component = TodoList { todos: plan.todos().to_vec() }.to_component();
        let message = AiMessage {
            id: "plan".to_owned(),
            component: Some(component),
            ..AiMessage::assistant(listed(plan, self.language)).of(&AgentType::PLANNER)
        };
        self.backend.listeners().said(&message);
        self.backend.save_message(message).await
    }
}

/// What has not been done yet.
fn open(plan: &Plan) -> impl Iterator<Item = &Todo> {
    plan.todos().iter().filter(|todo| todo.status == TodoStatus::Pending)
}

/// The todos that a person wants instead: a list, or an object that has one.
fn edited(arguments: &str) -> Result<Vec<Todo>, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Edited {
        List(Vec<Todo>),
        Object { todos: Vec<Todo> },
    }
    match serde_json::from_str(arguments) {
        Ok(Edited::List(todos) | Edited::Object { todos }) => Ok(todos),
        Err(_) => Err("write {\"todos\": [{\"id\", \"description\", \"priority\"} …]}".to_owned()),
    }
}

/// What is asked, with what was said before and what the person has before them.
fn request(options: &RunOptions, language: Language) -> String {
    let words = phrases(language);
    let mut text = options.user_message.trim().to_owned();
    if !options.context.is_empty() {
        let lines: Vec<String> = options.context.iter().map(|(key, value)| format!("- {key}: {value}")).collect();
        text += &format!("\n\n### {}\n\n{}", words.context, lines.join("\n"));
    }
    let before = options.initial_messages.iter().filter(|message| message.role != Speaker::Tool && !message.content.is_empty());
    let said: Vec<String> = before
        .map(|message| format!("{}: {}", if message.role == Speaker::User { "user" } else { "assistant" }, message.content))
        .collect();
    if !said.is_empty() {
        text += &format!("\n\n### {}\n\n{}", words.before, said.join("\n\n"));
    }
    text
}
