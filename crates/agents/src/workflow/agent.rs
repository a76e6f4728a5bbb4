//! The workflow as an agent of a society: a sub-thread whose one unit runs the engine; each order is a unit in a sub-thread
//! below it. The message above shows a word about waiting until it shows the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{Artifact, Failure, Message, Meta, PastStepKind, Phase, Sender, Task, Usage};
use polis_engine::{Interaction, InteractionUnit, SubThreadAgent, SubThreads, Turn, Units};
use polis_ports::ChatMessage;
use serde::Serialize;
use serde_json::Value;

use super::request_text::SUMMED_UP;
use super::turn_backend::{Ordered, TurnBackend, report};
use super::work::work;
use super::{
    AgentType, AgentWorkflowEngine, AiMessage, Component, Language, PlanApproval, RoleOutcome, RunOptions, WorkflowResult,
};
use crate::conversation::{SUMMARY, StepForm, chat_messages, naming, with_sender};
use crate::environment::{Environment, SharedFacts};

/// Most messages of the conversation that are looked at. Of these, as much is shown as fits.
const MOST_BEFORE: usize = 40;

/// Plans, does and verifies what it is asked.
#[derive(Debug, Clone, Default)]
pub struct Workflow {
    engine: Arc<AgentWorkflowEngine>,
    tells_role: bool,
    environment: Environment,
}

impl Workflow {
    /// The agent that runs this engine.
    pub fn new(engine: AgentWorkflowEngine) -> Self {
        Self { engine: Arc::new(engine), ..Self::default() }
    }

    /// The same agent, which tells planner, executor and verifier the prompt of its role as well.
    #[must_use]
    pub fn telling_role(self) -> Self {
        Self { tells_role: true, ..self }
    }

    /// The same agent, whose roles are told when the files of this environment change while it works. The environment itself is
    /// told by the role that starts it.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }
}

impl SubThreadAgent for Workflow {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", WorkflowUnit(self.clone()))
    }
}

/// Runs the engine, in the workflow's own sub-thread.
struct WorkflowUnit(Workflow);

impl InteractionUnit for WorkflowUnit {
    fn sub_threads(&self) -> SubThreads {
        let own = [AgentType::PLANNER, AgentType::EXECUTOR, AgentType::VERIFIER, AgentType::FALLBACK];
        let engine = &self.0.engine;
        let roles = own.into_iter().chain(engine.roles.iter().map(|role| role.agent()));
        roles.fold(SubThreads::new(), |all, role| all.with(role.name(), RoleAgent(engine.clone())))
    }

    async fn execute(&self, turn: &mut Turn) -> Result<Interaction, Failure> {
        let Workflow { engine, tells_role, environment } = self.0.clone();
        let phase = turn.phase().clone();
        let meta = turn.request_meta().await;
        let approval = PlanApproval::of(&meta);
        let (initial_messages, facts) = said_before(turn).await?;
        let from = turn.task().meta.get(Task::FROM).and_then(Value::as_str);
        let asked = with_sender(&turn.task().message, from, turn.is_unawaited());
        let options = RunOptions {
            approval,
            // The roles see the names; their tools show them the files.
            user_message: naming(asked, &Artifact::attached(&meta)),
            initial_messages,
            environment: facts.general,
            skills: facts.skills,
            context: turn.task().context(),
            system_message: turn.role().filter(|_| tells_role).map(|role| role.prompt.to_string()).unwrap_or_default(),
            ..RunOptions::default()
        };
        let mut backend = TurnBackend::new(turn).within(environment, &options.environment);
        let result = engine.run(&mut backend, options).await?;
        let text = result.answer.summary.clone();
        let record = backend.keep_record(&result.record).await;
        let bot = backend.conclude(text, answer_meta(&result, record.as_ref()), Some(completed()?)).await?;
        Ok(Interaction { phase, bot, user: None })
    }
}

/// What was said in the conversation before the request: the newest messages, and what stands for older ones. What the thread was
/// told about its environment is apart, because nobody has said it.
async fn said_before(turn: &mut Turn) -> Result<(Vec<AiMessage>, SharedFacts), Failure> {
    let mut context = turn.context_above(MOST_BEFORE).await?;
    let request = turn.task().meta.get("originalTask").and_then(Value::as_str).unwrap_or(&turn.task().message);
    let asks = |message: &Message| message.sender == Sender::User && message.text.trim() == request.trim();
    if let Some(own) = context.messages.iter().rposition(|(_, message)| asks(message)) {
        let (index, _) = context.messages[own];
        context.messages.truncate(own);
        context.steps.retain(|step| step.before <= index);
    }
    let facts = SharedFacts::of(&context.steps);
    context.steps.retain(|step| !matches!(step.kind, PastStepKind::Environment(_)));
    let summaries = (!context.summaries.is_empty()).then(|| AiMessage {
        id: SUMMED_UP.to_owned(),
        ..AiMessage::assistant(format!("{SUMMARY} {}", context.summaries.join("\n\n")))
    });
    let messages =
        chat_messages(&context, StepForm::Text, Language::of(&turn.task().message)).into_iter().filter_map(|message| {
            match message {
                ChatMessage::User { text, .. } => Some(AiMessage::user(&*text)),
                ChatMessage::Assistant { text, .. } => Some(AiMessage::assistant(&*text)),
                ChatMessage::Tool { .. } => None,
            }
        });
    Ok((summaries.into_iter().chain(messages).collect(), facts))
}

fn completed() -> Result<Phase, Failure> {
    Ok(Phase::new(Phase::COMPLETED)?)
}

/// The meta of the answer's message.
fn answer_meta(result: &WorkflowResult, record: Option<&Artifact>) -> Meta {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct AnswerMeta<'a> {
        component: Meta,
        usage: Usage,
        duration_ms: u64,
        cycles: usize,
        evidence: BTreeMap<&'a str, &'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        unfinished: Option<&'a Failure>,
        #[serde(skip_serializing_if = "Option::is_none")]
        record: Option<&'a Artifact>,
    }
    let component = result.answer.to_component();
    let WorkflowResult { usage, duration_ms, cycles, .. } = *result;
    let evidence = result.evidence.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
    let unfinished = result.unfinished.as_ref();
    Meta::of(&AnswerMeta { component, usage, duration_ms, cycles, evidence, unfinished, record })
}

/// Carries out one order in its sub-thread.
struct RoleAgent(Arc<AgentWorkflowEngine>);

impl SubThreadAgent for RoleAgent {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", RoleUnit(self.0.clone()))
    }
}

struct RoleUnit(Arc<AgentWorkflowEngine>);

impl InteractionUnit for RoleUnit {
    async fn execute(&self, turn: &mut Turn) -> Result<Interaction, Failure> {
        let phase = turn.phase().clone();
        let ordered = turn.own_thread().await?.meta.read::<Ordered>();
        let ordered = ordered.map_err(|_| Failure::new("no_order", "the sub-thread has no order in its meta"))?;
        let Ordered { order, heard } = &ordered;
        let mut backend = TurnBackend::new(turn).having_heard(*heard).about(&order.todo);
        let done = work(&mut backend, &self.0.roles, order).await;
        let failure = match &done.outcome {
            RoleOutcome::Failed { failure } => Some(failure.clone()),
            _ => None,
        };
        let next = if failure.is_some() { None } else { Some(completed()?) };
        let bot = backend.conclude(done.text().to_owned(), report(done), next).await?;
        failure.map_or(Ok(Interaction { phase, bot, user: None }), Err)
    }
}
