//! The workflow: plan, do the todos, verify; again with the verifier's improvements, until it is done or at its end. Written
//! once, over any backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{EffectClass, Failure, FailureCode, Usage, Verdict};
use polis_ports::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{listed, partial};
use super::backend::{AgentBackend, AiMessage, ToolScope};
use super::changed_plan::{describe_changes, parse_changed_plan};
use super::messages::record_text;
use super::phrases::phrases;
use super::request_text::request_text;
use super::transcript::{called, last_words};
use super::work::{is_unreadable, stopped};
use super::{
    AgentAction, AgentType, Component, Done, Evidence, Language, McpServerInfo, Order, Plan, PlanApproval, PlannerResponse,
    PromptManager, PromptOptions, Refused, RoleOutcome, SummaryResponse, Todo, TodoList, TodoStatus, Unreadable, WorkflowRole,
    executor_message, planner_message, role, tool_lines,
};

use crate::environment::framed;
use crate::skill::READ_SKILL;

mod verify;

use verify::Verified;

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

impl WorkflowLimits {
    /// The most of each that is taken.
    pub const MOST: Self =
        Self { planning_rounds: 100, executor_rounds: 1_000, verifier_rounds: 100, cycles: 100, at_once: 50, repairs: 20 };

    /// The same limits, none above [`WorkflowLimits::MOST`].
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            planning_rounds: self.planning_rounds.min(Self::MOST.planning_rounds),
            executor_rounds: self.executor_rounds.min(Self::MOST.executor_rounds),
            verifier_rounds: self.verifier_rounds.min(Self::MOST.verifier_rounds),
            cycles: self.cycles.min(Self::MOST.cycles),
            at_once: self.at_once.min(Self::MOST.at_once),
            repairs: self.repairs.min(Self::MOST.repairs),
        }
    }
}

/// The code of an answer that lacks something of what was asked.
const UNFINISHED_CODE: &str = "partial_answer";

/// How often a person may refuse a plan before nothing more is planned.
const MOST_DENIALS: usize = 10;

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
    /// Where the roles work: date, files, instructions of the workspace. It is told as the program's words.
    pub environment: String,
    /// The skills that there are. Only roles that have the tool `read_skill` are told.
    pub skills: String,
    /// What the person has before them, such as `currentResourceId`.
    pub context: Map<String, Value>,
    /// The model to ask (the documents' configId); the backend's own choice when empty.
    pub model: String,
    /// When a person is asked about its plans, beside when they are asked about any.
    pub approval: PlanApproval,
    /// The conversation that it belongs to; the backend is told.
    pub chat_id: String,
    /// The tools that executors may use; the backend's own where none are given.
    pub tools: Option<Arc<[ToolSpec]>>,
    /// Servers whose tools executors may use as well, see [`super::run_agent_workflow`].
    pub mcp_servers: Vec<McpServerInfo>,
    /// What fills the variables of core templates of your own, by their names. It comes before what the engine has.
    pub places: BTreeMap<String, String>,
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
    /// Why not everything that was asked is in the answer, if that is so.
    pub unfinished: Option<Failure>,
    /// The last plan with its results, and the calls and reports behind them, as text.
    pub record: String,
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
    /// What fills the variables of core templates of your own, by their names.
    pub places: BTreeMap<String, String>,
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

    /// The same engine, in whose core templates `{{name}}` is replaced by this text.
    #[must_use]
    pub fn with_place(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.places.insert(name.into(), text.into());
        self
    }

    /// The same engine with one role more. Its core template must be set at the prompts.
    #[must_use]
    pub fn with_role(mut self, role: impl WorkflowRole) -> Self {
        self.roles.push(Arc::new(role));
        self
    }

    /// Works on a request to its end. Where no plan can be read, one role answers without a plan. It is an error only if models
    /// fail before anything was planned, or if it was stopped.
    pub async fn run<B: AgentBackend>(&self, backend: &mut B, options: RunOptions) -> Result<WorkflowResult, Failure> {
        let began = backend.now();
        backend.begin_chat(&options.chat_id);
        let language = Language::of(&options.user_message);
        let mut run = Run {
            engine: self,
            backend,
            request: request_text(&options, language),
            language,
            settings: RunSettings { limits: self.limits.bounded(), approval: self.approval.stricter(options.approval) },
            scope: Arc::new(ToolScope::of(&options)),
            options,
            plan: None,
            refused: Refused::default(),
            said: Vec::new(),
            changed: None,
            evidence: Evidence::default(),
            cited: Vec::new(),
            usage: Usage::default(),
            cycles: 0,
            unfinished: None,
        };
        let given = format!("{}\n{}", run.request, run.options.environment);
        let tools = run.tools();
        let readers = tools.iter().filter(|tool| tool.class == EffectClass::Read).map(|tool| tool.name.to_string());
        run.evidence = Evidence::about(&given, tools.iter().map(|tool| tool.name.to_string())).with_readers(readers);
        let answer = run.answer().await?;
        let record = record_text(language, run.plan.as_ref(), &run.evidence);
        let Run { plan, cited: evidence, usage, cycles, unfinished, .. } = run;
        let duration_ms = backend.now().0.saturating_sub(began.0);
        Ok(WorkflowResult { answer, plan, evidence, usage, duration_ms, cycles, unfinished, record })
    }
}

/// A workflow under way.
struct Run<'a, B> {
    engine: &'a AgentWorkflowEngine,
    backend: &'a mut B,
    options: RunOptions,
    scope: Arc<ToolScope>,
    request: String,
    language: Language,
    settings: RunSettings,
    plan: Option<Plan>,
    refused: Refused,
    /// What the person has said while it ran.
    said: Vec<String>,
    /// What has changed of the environment since it began.
    changed: Option<String>,
    evidence: Evidence,
    cited: Vec<(String, String)>,
    usage: Usage,
    cycles: usize,
    unfinished: Option<Failure>,
}

/// What came of planning.
enum Planned {
    Plan(Plan),
    /// There is none, and this is the answer.
    Answer(SummaryResponse),
    /// There is none that the person wants; they said why.
    Unwanted,
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
                Ok(Planned::Unwanted) => {
                    self.cycles -= 1;
                    continue;
                }
                Err(failure) if failure.code == FailureCode::Stopped => return Err(failure),
                Err(failure) if self.plan.is_none() && is_unreadable(&failure) => return self.answer_directly(failure).await,
                Err(failure) if self.plan.is_none() => return Err(failure),
                Err(failure) => {
                    let missing = std::iter::once(why_not(words.not_planned, Some(&failure))).chain(improvements);
                    return Ok(self.partial(missing.collect(), false));
                }
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
                    let missing = vec![why_not(words.no_judgement, why.as_ref())];
                    return Ok(self.partial(missing, true));
                }
            }
        }
        let mut missing = improvements;
        missing.insert(0, (words.out_of_cycles)(self.cycles));
        Ok(self.partial(missing, false))
    }

    /// Answers with what there is, and notes why that is not all.
    fn partial(&mut self, missing: Vec<String>, is_unchecked: bool) -> SummaryResponse {
        let answer = partial(self.language, self.plan.as_ref(), missing, is_unchecked);
        let is_over = |todo: &Todo| matches!(todo.status, TodoStatus::Completed | TodoStatus::Skipped);
        let is_done = is_unchecked && self.plan.as_ref().is_some_and(|plan| plan.todos().iter().all(is_over));
        if !is_done {
            self.unfinished = Some(Failure::new(UNFINISHED_CODE, answer.missing.join("; ")));
        }
        answer
    }

    /// Has one role answer without a plan, because none can be read. Where plans need a person's approval, it may only read.
    async fn answer_directly(&mut self, why: Failure) -> Result<SummaryResponse, Failure> {
        let words = phrases(self.language);
        self.log(|| format!("no plan can be read, so the request is answered without one: {}", why.message));
        self.hear().await?;
        let mut order = self.order(AgentType::FALLBACK, self.told(self.request.clone()), words.answering_directly);
        order.rounds = self.settings.limits.executor_rounds;
        let done = self.one(order).await?;
        let (text, is_finished) = match &done.outcome {
            RoleOutcome::Answered { text, is_finished } => (text.trim_end().to_owned(), is_finished),
            _ => match called(&done.transcript, words.no_answer).trim() {
                "" => return Err(Failure::new(why.code, "the model wrote neither a plan nor an answer that can be read")),
                made => (made.to_owned(), &false),
            },
        };
        if !is_finished {
            self.unfinished = Some(Failure::new(UNFINISHED_CODE, (words.out_of_rounds)(self.settings.limits.executor_rounds)));
        }
        let summary = format!("{text}\n\n{}", words.without_plan);
        self.note("", &done);
        Ok(SummaryResponse { summary, verified: false, missing: Vec::new() })
    }

    /// Takes in what the person has said meanwhile, and what has changed. Roles that are asked from now on are told.
    async fn hear(&mut self) -> Result<(), Failure> {
        self.said.extend(self.backend.steering().await?);
        self.changed = self.backend.environment_change().await.or(self.changed.take());
        Ok(())
    }

    /// What a role is told: what it is about, and what the person has said meanwhile.
    fn told(&self, text: String) -> Vec<AiMessage> {
        let words = phrases(self.language);
        let said = self.said.iter().map(|said| AiMessage::user(format!("{}\n\n{said}", words.person_says)));
        std::iter::once(AiMessage::user(text)).chain(said).collect()
    }

    /// A plan that is agreed to.
    async fn planned(&mut self, improvements: &[String]) -> Result<Planned, Failure> {
        let words = phrases(self.language);
        self.hear().await?;
        let refused = Some(&self.refused).filter(|refused| !refused.remarks.is_empty());
        let text = planner_message(self.language, &self.request, self.plan.as_ref(), improvements, refused);
        let tools = self.tools();
        let writers = tools.iter().filter(|tool| tool.class == EffectClass::Write).map(|tool| tool.name.to_string()).collect();
        let mut order = self.order(AgentType::PLANNER, self.told(text), words.planning);
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
            return Ok(Planned::Answer(self.partial(missing, false)));
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
        let plain = format!("{}\n\n{}\n\n{}", response.summary, listed(&plan, self.language), words.agree);
        let mut question = plain.clone();
        loop {
            let shown: Vec<&Todo> = open(&plan).collect();
            let verdict = self.backend.approve_plan(&question, json!({ "todos": shown })).await?;
            match verdict {
                Verdict { approved: false, reason, .. } if reason.trim().is_empty() => {
                    let summary = format!("{}.", words.not_agreed);
                    return Ok(Planned::Answer(SummaryResponse { summary, verified: false, missing: Vec::new() }));
                }
                Verdict { approved: false, reason, .. } => return Ok(self.denied(plan, reason)),
                Verdict { arguments: None, .. } => return Ok(Planned::Plan(plan)),
                Verdict { arguments: Some(arguments), .. } => match parse_changed_plan(&arguments)
                    .and_then(|todos| self.merged(todos).map_err(|unreadable| unreadable.problems.join("; ")))
                {
                    Ok(changed) => {
                        // Nothing else says that the change is the person's own, and a later plan might drop it.
                        self.said.extend(describe_changes(&plan, &changed, self.language));
                        return Ok(Planned::Plan(changed));
                    }
                    Err(why) => question = format!("{} ({why})\n\n{plain}", words.bad_edit),
                },
            }
        }
    }

    /// The person does not agree, and says why. The planner hears of it, but not for ever.
    fn denied(&mut self, plan: Plan, reason: String) -> Planned {
        let words = phrases(self.language);
        self.refused.plan = plan;
        self.refused.remarks.push(reason);
        if self.refused.remarks.len() < MOST_DENIALS {
            return Planned::Unwanted;
        }
        let count = (words.denied)(self.refused.remarks.len());
        if self.plan.is_some() {
            return Planned::Answer(self.partial(vec![count], false));
        }
        let summary = format!("{}: {count}.", words.not_agreed);
        Planned::Answer(SummaryResponse { summary, verified: false, missing: self.refused.remarks.clone() })
    }

    /// Does the todos of a plan, by priority. One begins as soon as what it needs is done and there is room.
    async fn execute(&mut self, mut plan: Plan) -> Result<Plan, Failure> {
        let mut all = Vec::new();
        loop {
            if self.backend.is_stopped() && !plan.is_settled() {
                return Err(stopped());
            }
            let ready = plan.runnable(self.settings.limits.at_once.max(1));
            let ready: Vec<String> = ready.into_iter().map(|todo| todo.id.clone()).collect();
            ready.iter().for_each(|todo| plan.begin(todo));
            self.show(&plan).await?;
            let orders = if ready.is_empty() { Vec::new() } else { self.orders(&plan, &ready).await? };
            let left = match self.backend.begin_orders(orders).await {
                Ok(left) => left,
                Err(failure) => {
                    // Those that have begun come to their ends first.
                    while let Ok(Some(_)) = self.backend.next_done().await {}
                    return Err(failure);
                }
            };
            if !left.is_empty() {
                let todos: Vec<String> = left.iter().map(|order| order.todo.clone()).collect();
                let done = self.backend.run_orders(&self.engine.roles, left).await?;
                todos.iter().zip(&done).for_each(|(todo, done)| self.settle(&mut plan, todo, done));
                all.extend(todos.into_iter().zip(done));
                continue;
            }
            match self.backend.next_done().await? {
                Some((todo, done)) => {
                    self.settle(&mut plan, &todo, &done);
                    all.push((todo, done));
                }
                None => break,
            }
        }
        // What is cited is named by the plan, not by who happened to end first.
        let place = |id: &str| plan.todos().iter().position(|todo| todo.id == id);
        all.sort_by_key(|(todo, _)| (plan.todo(todo).map(|todo| todo.priority), place(todo)));
        all.iter().for_each(|(todo, done)| self.note(todo, done));
        Ok(plan)
    }

    /// An order for each of these todos, which have begun.
    async fn orders(&mut self, plan: &Plan, todos: &[String]) -> Result<Vec<Order>, Failure> {
        self.hear().await?;
        let is_shaped = self.tools().is_empty();
        let orders = todos.iter().filter_map(|id| plan.todo(id)).map(|todo| {
            let text = executor_message(self.language, &self.request, plan, todo);
            let mut order = self.order(AgentType::EXECUTOR, self.told(text), &todo.heading());
            order.rounds = self.settings.limits.executor_rounds;
            order.todo.clone_from(&todo.id);
            order.is_shaped = is_shaped;
            order
        });
        Ok(orders.collect())
    }

    /// Takes over what came of a todo.
    fn settle(&mut self, plan: &mut Plan, todo: &str, done: &Done) {
        self.usage = self.usage.plus(done.usage);
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
            _ => {
                let words = phrases(self.language);
                let called = called(&done.transcript, words.called_before);
                let said = last_words(&done.transcript);
                let said = if said.is_empty() { said } else { format!("\n{} {said}", words.said_last) };
                let why = match &done.outcome {
                    RoleOutcome::Failed { failure } if is_unreadable(failure) => words.no_report,
                    _ => done.text(),
                };
                plan.settle(todo, TodoStatus::Failed, &format!("{why}{called}{said}"));
            }
        }
        let status = plan.todo(todo).map_or("gone", |todo| todo.status.name());
        self.log(|| format!("todo {todo}: {status}"));
    }

    async fn one(&mut self, order: Order) -> Result<Done, Failure> {
        let agent = order.agent.clone();
        let done = self.backend.run_orders(&self.engine.roles, vec![order]).await?.pop();
        let done = done.ok_or_else(|| Failure::new("no_reply", "the order was not carried out"))?;
        self.usage = self.usage.plus(done.usage);
        self.log(|| format!("{agent}: {}", done.text()));
        match &done.outcome {
            RoleOutcome::Failed { failure } if failure.code == FailureCode::Stopped => Err(failure.clone()),
            RoleOutcome::Failed { failure } => {
                self.backend.listeners().failed(failure);
                Ok(done)
            }
            _ => Ok(done),
        }
    }

    /// The tools that executors can call.
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.options.tools.clone().unwrap_or_else(|| self.backend.callable_tools())
    }

    /// Tells whoever hears of the run that a step was taken.
    fn log(&mut self, line: impl FnOnce() -> String) {
        self.backend.listeners().log(line);
    }

    /// What a role is told about where it works.
    fn environment(&self, agent: &AgentType, reads_only: bool) -> Option<AiMessage> {
        let has_all_tools = match agent {
            agent if *agent == AgentType::PLANNER || *agent == AgentType::VERIFIER => false,
            agent => role::find(&self.engine.roles, agent).map_or(!reads_only, WorkflowRole::has_tools),
        };
        let reads_skills = has_all_tools && self.tools().iter().any(|tool| &*tool.name == READ_SKILL);
        let skills = if reads_skills { self.options.skills.as_str() } else { "" };
        let texts: Vec<_> = [&*self.options.environment, skills].into_iter().filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| AiMessage::user(framed(&texts.join("\n\n"))))
    }

    /// An order with the prompt as it is rendered now.
    fn order(&self, agent: AgentType, messages: Vec<AiMessage>, title: &str) -> Order {
        // Who answers without a plan that a person would be asked about may not change anything.
        let reads_only = agent == AgentType::FALLBACK && self.settings.approval != PlanApproval::Never;
        // Last, so that what stands before it is the same for all roles.
        let changed = self.changed.iter().map(|changed| AiMessage::user(framed(changed)));
        let messages = self.environment(&agent, reads_only).into_iter().chain(messages).chain(changed).collect();
        let tools = (agent == AgentType::PLANNER).then(|| tool_lines(self.language, &self.tools()));
        let max_rounds = Some(self.settings.limits.executor_rounds);
        let more = self.options.system_message.clone();
        let mut places = self.engine.places.clone();
        places.extend(self.options.places.clone());
        let options = PromptOptions { language: Some(self.language), tools, max_rounds, more, places };
        let prompt = self.engine.prompts.prompt(&agent, &options).map(|prompt| prompt.text);
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
            reads_only,
            looks: self.evidence.looks(),
            tools: self.options.tools.clone(),
            scope: self.scope.clone(),
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

/// What did not come about, for the person, and why. What is wrong with the form of a reply means nothing to them.
fn why_not(what: &str, failure: Option<&Failure>) -> String {
    match failure.filter(|failure| !is_unreadable(failure)) {
        Some(failure) => format!("{what}: {}", failure.message),
        None => what.to_owned(),
    }
}

/// What has not been done yet.
pub(super) fn open(plan: &Plan) -> impl Iterator<Item = &Todo> {
    plan.todos().iter().filter(|todo| todo.status == TodoStatus::Pending)
}
