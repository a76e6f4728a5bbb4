//! The role agent: strategies, plans, requests, policies (R328-R356, D29, D31).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polis_agents::role::{
    Action, ActionResult, AgentBaseRole, Choice, InternalPlan, InternalStep, LlmConfig, Member, OnFailure, PLAN_TOOL,
    PlanningStrategy, REQUEST_COLLABORATION, RoleParts, Sop, Sops, StepType, TaskInfo, WORK,
};
use polis_agents::{PlanTool, RoleAgent};
use polis_domain::{
    AgentId, Effect, Event, Failure, Message, MessageKind, Outcome, Plan, Recorded, Response, Role, StepStatus, SubThreadPath,
};
use polis_engine::{Agent, Cast, InteractionUnit, Ports, Society, StateHandler, SubThreadAgent, SubThreads, Turn, Units};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, crash, open};
use serde_json::{Map, Value, json};

/// A root that makes the roles of its colleagues before it does what its role says.
pub(crate) struct Founder<R>(pub(crate) R, pub(crate) &'static [&'static str]);

impl<R: AgentBaseRole> Agent for Founder<R> {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new()
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        for role in self.1 {
            // The second task finds them there.
            let _ = turn.create_role(Role::new(*role, *role)).await;
        }
        let message = polis_agents::role::StructuredMessage::of(turn);
        let mut state = Default::default();
        Ok(self.0.process_message(turn, &mut state, &message).await?.unwrap_or_default())
    }
}

/// Says that it was asked.
struct Answering;
impl Agent for Answering {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let first = turn.task().message.lines().next().unwrap_or_default().to_owned();
        Ok(Response::new(format!("{} did: {first}", turn.agent())))
    }
}

/// Fails each time.
struct Failing;
impl Agent for Failing {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        Err(Failure::new("broken", "it is broken"))
    }
}

/// Rejects each request.
struct Rejecting;
impl Agent for Rejecting {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        assert!(turn.is_request());
        Err(turn.reject("that is the writer's work"))
    }
}

/// Answers after so many seconds.
struct Slow(u64);
impl Agent for Slow {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.sleep(Duration::from_secs(self.0)).await?;
        Ok(Response::new("too late"))
    }
}

/// Asks whoever made it.
struct Circular;
impl Agent for Circular {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.ask(&AgentId::root(), "you do it", Duration::from_secs(60)).await.map(|text| Response::new(&*text))
    }
}

/// What the model says: what it was asked last, and the plan or judgement where that is wanted.
fn script(request: &ModelRequest) -> ScriptedReply {
    let last = match request.messages.last() {
        Some(ChatMessage::User { text, .. }) => text.to_string(),
        Some(ChatMessage::Tool { content, .. }) => content.to_string(),
        _ => String::new(),
    };
    if request.tools.iter().any(|tool| &*tool.name == "start_workflow") && last.contains("hard") {
        let reply = ScriptedReply::call("c", "start_workflow", "{\"reason\":\"it has two parts\"}");
        return if last.contains("plan") { reply.and_call("p", "plan", "{}") } else { reply };
    }
    if request.format.is_some() {
        let steps = json!({ "steps": [
            { "type": "REQUEST_COLLABORATION", "target": "@writer", "description": "draft" },
            { "type": "REQUEST_COLLABORATION", "target": "reader", "description": "read up", "together": true },
            { "type": "REQUEST_COLLABORATION", "target": "stranger", "description": "own after all" },
            { "type": "EXECUTE_ACTION", "description": "put it together" },
        ]});
        return ScriptedReply::text(&format!("Here it is:\n```json\n{steps}\n```"));
    }
    ScriptedReply::text(&format!("model: {last}"))
}

pub(crate) struct Bed {
    log: Arc<MemoryLog>,
    society: Society,
}

pub(crate) const COLLEAGUES: &[&str] = &["writer", "reader", "failing", "rejecting", "slow", "late", "patient", "circular"];

fn cast(root: impl Agent) -> Cast {
    Cast::new()
        .with("root", root)
        .with("writer", Answering)
        .with("reader", Answering)
        .with("failing", Failing)
        .with("rejecting", Rejecting)
        .with("slow", Slow(86_400))
        .with("late", Slow(600))
        .with("patient", Slow(3_000))
        .with("circular", Circular)
        .with_tool(PlanTool)
}

pub(crate) async fn bed(root: impl Agent) -> Bed {
    let log = Arc::new(MemoryLog::new());
    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(ScriptedModel::new(script)) };
    Bed { society: open(cast(root), ports).await, log }
}

impl Bed {
    pub(crate) async fn ask(&self, text: &str) -> Result<String, Failure> {
        self.ask_with(text, Map::new()).await
    }

    async fn ask_with(&self, text: &str, meta: Map<String, Value>) -> Result<String, Failure> {
        let sent = self.society.send_with_meta(AgentId::root(), text, None, meta).await.unwrap();
        let envelope = self.society.answer(&sent).await.unwrap();
        match &envelope.kind {
            MessageKind::Failure(failure) => Err(failure.clone()),
            _ => Ok(envelope.payload.text.to_string()),
        }
    }

    async fn ask_by(&self, strategy: &str, text: &str) -> Result<String, Failure> {
        let meta = json!({ "strategy": strategy });
        self.ask_with(text, meta.as_object().unwrap().clone()).await
    }

    fn events(&self) -> Vec<Recorded> {
        self.log.events(&"main".into()).iter().map(|recorded| Recorded::clone(recorded)).collect()
    }

    pub(crate) fn plans(&self) -> Vec<Plan> {
        plans(&self.events())
    }

    async fn last_message(&self) -> Arc<Message> {
        self.society.thread(&"root".into(), &SubThreadPath::main()).await.unwrap().messages.pop().unwrap()
    }
}

fn plans(events: &[Recorded]) -> Vec<Plan> {
    let plan = |recorded: &Recorded| match &recorded.event {
        Event::PlanSet { plan, .. } => Some(plan.clone()),
        _ => None,
    };
    events.iter().filter_map(plan).collect()
}

pub(crate) fn sop(steps: &str) -> RoleAgent {
    let sop = Sop::read(&format!("---\nname: article\nwhen: write about {{what}}\n---\n{steps}\n")).unwrap();
    RoleAgent { parts: RoleParts::default().with_sops(Sops::default().with(sop)) }
}

/// What root answers by a procedure with these steps, and the plan in the end.
async fn by_sop(steps: &str) -> (Result<String, String>, Plan) {
    let bed = bed(Founder(sop(steps), COLLEAGUES)).await;
    let answer = bed.ask("write about fish").await.map_err(|failure| failure.to_string());
    (answer, bed.plans().pop().unwrap())
}

fn marks(plan: &Plan) -> Vec<(StepStatus, String)> {
    plan.steps.iter().map(|step| (step.status, step.target.as_deref().unwrap_or("self").to_owned())).collect()
}

use StepStatus::{Completed, Failed, InProgress};

fn told(told: &[(StepStatus, &str)]) -> Vec<(StepStatus, String)> {
    told.iter().map(|(status, who)| (*status, (*who).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_short_task_is_done_at_once_and_says_why_without_a_plan() {
    let bed = bed(RoleAgent::default()).await;
    assert_eq!(bed.ask("hello").await.unwrap(), "model: hello");
    assert!(bed.plans().is_empty());
    let strategy = &bed.last_message().await.meta["strategy"];
    assert_eq!(strategy["name"], "simple");
    assert_eq!(strategy["reason"], "no SOP fits");
}

#[tokio::test(start_paused = true)]
async fn the_model_judges_a_task_while_it_answers_and_it_is_planned_where_it_is_complex() {
    let parts = RoleParts::default().with_collaborator("writer", "texts").with_collaborator("reader", "sources");
    let bed = bed(Founder(RoleAgent { parts }, COLLEAGUES)).await;
    let long = "many words ".repeat(60);
    assert!(bed.ask(&long).await.unwrap().starts_with("model: many words"));
    assert_eq!(bed.last_message().await.meta["strategy"]["reason"], "the model answers it directly");
    assert!(bed.plans().is_empty());
    let asked = || bed.events().iter().filter(|recorded| is_model(&recorded.event)).count();
    assert_eq!(asked(), 1, "a simple task costs one call");

    assert_eq!(bed.ask("hard").await.unwrap(), "model: put it together", "however short it is");
    let plans = bed.plans();
    let strategy = plans[0].strategy.as_ref().unwrap();
    assert!(plans[0].steps.is_empty() && strategy.name.as_ref() == "workflow");
    assert_eq!(strategy.reason, "the model judges it complex: it has two parts");
    assert_eq!(bed.last_message().await.meta["strategy"]["reason"], "the model judges it complex: it has two parts");
    let last = plans.last().unwrap();
    assert_eq!(marks(last), told(&[(Completed, "writer"), (Completed, "reader"), (Completed, "self"), (Completed, "self")]));
    assert_eq!(last.steps[0].result.as_deref(), Some("writer did: draft"));
    assert_eq!(last.steps[2].result.as_deref(), Some("model: own after all"));
    assert_eq!((last.status, last.result.as_deref()), (Some(Completed), Some("model: put it together")));
    let pending = plans.iter().find(|plan| plan.steps.iter().filter(|step| step.status == InProgress).count() == 2);
    assert!(pending.is_some(), "two requests are pending at once");
}

fn is_model(event: &Event) -> bool {
    matches!(event, Event::EffectStarted { effect: Effect::Model { .. }, .. })
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_plan_or_may_not_choose_is_not_offered_to() {
    let parts = || RoleParts::default().with_collaborator("writer", "texts");
    let mut silent = parts();
    silent.llm_config = LlmConfig { judges: false, ..LlmConfig::default() };
    for parts in [RoleParts::default(), silent] {
        let bed = bed(RoleAgent { parts }).await;
        assert_eq!(bed.ask_by("auto", "hard").await.unwrap(), "model: hard");
    }
    let bed = bed(RoleAgent { parts: parts() }).await;
    let answer = bed.ask_by("simple", "hard").await.unwrap();
    assert!(answer.contains("nothing was handed over"), "the list of tools stays the same, and the tool refuses: {answer}");
}

#[tokio::test(start_paused = true)]
async fn what_was_handed_over_is_seen_as_done_in_the_next_turn() {
    let parts = RoleParts::default().with_collaborator("writer", "texts");
    let bed = bed(Founder(RoleAgent { parts }, COLLEAGUES)).await;
    bed.ask("hard, with a plan").await.unwrap();
    let noted = bed.events().into_iter().filter_map(|recorded| match recorded.event {
        Event::EffectEnded { outcome: Outcome::Result(result), .. } => Some(result.content.to_string()),
        _ => None,
    });
    let noted: Vec<_> = noted.take(2).collect();
    let beside = "not called: start_workflow of the same reply ends the turn";
    assert_eq!(noted, ["handed over; the answer follows", beside]);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_can_be_asked_for_and_one_that_cannot_be_had_is_said() {
    let bed = bed(Founder(sop("1. outline {what}"), COLLEAGUES)).await;
    assert_eq!(bed.ask_by("simple", "write about fish").await.unwrap(), "model: write about fish");
    assert!(bed.plans().is_empty());
    assert_eq!(bed.ask_by("template", "write about fish").await.unwrap(), "model: outline fish");
    assert_eq!(bed.ask_by("auto", "write about fish").await.unwrap(), "model: outline fish");
    assert_eq!(bed.ask_by("workflow", "hello").await.unwrap(), "model: put it together");
    let failure = bed.ask_by("template", "hello").await.unwrap_err();
    assert_eq!(&*failure.code, "no_sop");
    assert!(failure.message.contains("there are article"), "{failure}");
    assert_eq!(&*bed.ask_by("clever", "hello").await.unwrap_err().code, "bad_strategy");
}

#[tokio::test(start_paused = true)]
async fn a_procedure_that_fits_is_followed_step_by_step_with_others() {
    let (answer, plan) =
        by_sop("1. outline {what}\n2. @writer Write about {what}.\n3. @reader Check {what}. (at the same time)\n4. sum up")
            .await;
    assert_eq!(answer.unwrap(), "model: sum up");
    let strategy = plan.strategy.clone().unwrap();
    assert_eq!((&*strategy.name, &*strategy.reason), ("template", "SOP `article` fits: `write about {what}`"));
    let results: Vec<_> = plan.steps.iter().map(|step| step.result.clone().unwrap_or_default()).collect();
    assert_eq!(
        results.iter().map(|result| &**result).collect::<Vec<_>>(),
        ["model: outline fish", "writer did: Write about fish.", "reader did: Check fish.", "model: sum up"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_whose_last_step_is_anothers_ends_with_its_answer() {
    let (answer, plan) = by_sop("1. @writer Write about {what}.").await;
    assert_eq!(answer.unwrap(), "writer did: Write about fish.");
    assert_eq!((plan.status, marks(&plan)), (Some(Completed), told(&[(Completed, "writer")])));
}

#[tokio::test(start_paused = true)]
async fn each_policy_takes_over_when_a_step_fails() {
    for (steps, answer, expected) in [
        ("1. @failing do", Err("it is broken"), (Failed, "failing")),
        ("1. @failing do (if it fails: stop, do it yourself)", Err("it is broken"), (Failed, "failing")),
        ("1. @failing do (if it fails: retry twice)", Err("it is broken"), (Failed, "failing")),
        ("1. @failing do (if it fails: retry, then ask @writer)", Ok("writer did: do"), (Completed, "writer")),
        ("1. @rejecting do", Err("that is the writer's work (collaboration_rejected)"), (Failed, "rejecting")),
        ("1. @rejecting do (if it fails: ask @writer)", Ok("writer did: do"), (Completed, "writer")),
        ("1. @failing do (if it fails: do it yourself)", Ok("model: do"), (Completed, "self")),
        ("1. @nobody do (if it fails: do it yourself)", Ok("model: do"), (Completed, "self")),
        ("1. @nobody do", Err("Collaboration request failed"), (Failed, "nobody")),
        ("1. tool `nothing` {} (if it fails: ask @writer)", Ok("writer did: nothing {}"), (Completed, "writer")),
    ] {
        let (told_answer, plan) = by_sop(steps).await;
        match (&told_answer, answer) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{steps}"),
            (Err(text), Err(expected)) => {
                assert!(text.contains(expected) && text.contains("(plan_failed)"), "{steps}: {text}");
            }
            _ => panic!("{steps}: {told_answer:?}"),
        }
        assert_eq!(marks(&plan), told(&[expected]), "{steps}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_asks_as_often_as_it_says() {
    let bed = bed(Founder(sop("1. @failing do (if it fails: retry twice)"), COLLEAGUES)).await;
    assert!(bed.ask("write about fish").await.is_err());
    let asked =
        |recorded: &&Recorded| matches!(&recorded.event, Event::TurnStarted { agent, .. } if agent.as_str() == "failing");
    assert_eq!(bed.events().iter().filter(asked).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_in_time_and_a_late_answer_is_noted_and_changes_nothing() {
    let bed = bed(Founder(sop("1. @slow do (within 5 minutes; if it fails: do it yourself)\n2. sum up"), COLLEAGUES)).await;
    assert_eq!(bed.ask("write about fish").await.unwrap(), "model: sum up");
    let plan = bed.plans().pop().unwrap();
    assert_eq!(plan.steps[0].result.as_deref(), Some("model: do"));
    let before = bed.plans();
    tokio::time::sleep(Duration::from_secs(2 * 86_400)).await;
    let late = |recorded: &Recorded| matches!(&recorded.event, Event::TurnSettled { message: Some(message), .. } if message.text == "too late");
    assert!(bed.events().iter().any(late), "the late answer is in the log");
    assert_eq!(bed.plans(), before);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_waits_for_is_noted_and_changes_nothing() {
    let bed = bed(RoleAgent::default()).await;
    for _ in 0..2 {
        let meta = json!({ "requestId": "12.3", "status": "completed" });
        let answer = bed.ask_with("here it is", meta.as_object().unwrap().clone()).await.unwrap();
        assert!(answer.contains("12.3"), "{answer}");
    }
    assert!(bed.plans().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_wait_in_a_circle_is_refused_at_once() {
    let (answer, plan) = by_sop("1. @circular do (within 1 hour)").await;
    let failure = answer.unwrap_err();
    assert!(failure.contains("circular") && failure.contains("root") && failure.contains("would_deadlock"), "{failure}");
    assert_eq!(plan.status, Some(Failed));
}

struct Shout;
impl Action for Shout {
    async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure> {
        let text = params.get("text").and_then(Value::as_str).unwrap_or_default().to_uppercase();
        Ok(format!("{text} by {}", turn.agent()).into())
    }
}

/// A role that says where it differs: its own action, its own judgement, its own plan.
struct Herald {
    parts: RoleParts,
}

impl AgentBaseRole for Herald {
    fn parts(&self) -> &RoleParts {
        &self.parts
    }

    fn parse_task(&self, message: &polis_agents::role::StructuredMessage) -> TaskInfo {
        TaskInfo { task_id: message.task_id.clone(), plan_id: None, description: format!("{}!", message.text) }
    }

    async fn determine_planning_strategy(&self, _: &mut Turn, task: &TaskInfo) -> Result<Choice, Failure> {
        let params = Map::from_iter([("text".to_owned(), Value::from(task.description.clone()))]);
        let shout = InternalStep { params, ..InternalStep::action("shout", "Shout", "shout it") };
        let own = [shout, InternalStep::tool("note", PLAN_TOOL, Map::new()), InternalStep::action("odd", "Dance", "dance")];
        let plan = InternalPlan::new(own.into_iter().map(|step| step.or_else([OnFailure::Myself])));
        Ok(Choice { strategy: PlanningStrategy::ComplexTemplate, reason: "heralds always plan".to_owned(), plan: Some(plan) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_of_ones_own_says_where_it_differs_and_has_the_rest() {
    let parts = RoleParts::new("herald").with_action("Shout", Shout);
    assert_eq!(parts.actions.names(), ["Converse", REQUEST_COLLABORATION, "Shout", WORK]);
    assert_eq!(parts.tools.names(), [PLAN_TOOL]);
    let bed = bed(Member(Herald { parts })).await;
    assert_eq!(bed.ask("fish").await.unwrap(), "model: dance");
    let plan = bed.plans().pop().unwrap();
    let results: Vec<_> = plan.steps.iter().map(|step| step.result.clone().unwrap_or_default()).collect();
    assert_eq!(&*results[0], "FISH! by root");
    assert!(results[1].contains("shout it"), "the plan tool reads the plan: {}", results[1]);
    assert_eq!(plan.strategy.unwrap().reason, "heralds always plan");
    assert_eq!(StepType::default(), StepType::ExecuteAction);
}

struct Draft;
impl StateHandler for Draft {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(format!("worked on {}", turn.task().message)))
    }
}

struct Done;
impl InteractionUnit for Done {}

struct Flow;
impl SubThreadAgent for Flow {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", Done).with_handler(Draft).then("completed")
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_task_goes_to_the_workflow_in_a_sub_thread_where_there_is_one() {
    let bed = bed(RoleAgent { parts: RoleParts::default().with_workflow(Flow) }).await;
    assert_eq!(bed.ask_by("workflow", "build it").await.unwrap(), "worked on build it");
    let plan = bed.plans().pop().unwrap();
    assert_eq!((plan.status, &*plan.strategy.unwrap().reason), (Some(Completed), "it was asked for"));
    assert!(bed.last_message().await.meta.contains_key("_thread"));
}

#[tokio::test(start_paused = true)]
async fn each_strategy_survives_a_stop_after_every_commit() {
    let steps = "1. outline {what}\n2. @writer Write. (within 1 hour)\n3. @failing Try. (at the same time; if it fails: retry, then ask @reader)\n\
                 4. @late wait (within 5 minutes; if it fails: do it yourself)\n5. @patient wait (within 1 hour)\n6. sum up";
    let mut role = sop(steps);
    role.parts = role.parts.with_collaborator("writer", "texts").with_collaborator("reader", "sources");
    let cast = cast(Founder(role, COLLEAGUES));
    let long = format!("hard {}", "many words ".repeat(60));
    for request in ["hello", "write about fish", &long] {
        let survived = crash::at_every_commit(&cast, || ScriptedModel::new(script), &[request]).await;
        let survived = survived.unwrap_or_else(|error| panic!("{request}: {error}"));
        assert!(survived.stops > 3, "{}", survived.stops);
    }
}

/// A file that changes while a turn is under way does not change what the turn does.
#[tokio::test(start_paused = true)]
async fn a_procedure_that_is_changed_under_way_counts_for_the_next_task_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("article.md");
    let write = |steps: &str| std::fs::write(&path, format!("---\nname: article\nwhen: write\n---\n{steps}\n")).unwrap();
    write("1. @slow wait (within 1 minute; if it fails: do it yourself)\n2. old");
    let log = Arc::new(MemoryLog::new());
    let again = || {
        let parts = RoleParts::default().with_sops(Sops::folder(folder.path()));
        let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(ScriptedModel::new(script)) };
        open(cast(Founder(RoleAgent { parts }, COLLEAGUES)), ports)
    };
    let society = again().await;
    let sent = society.submit("write").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    society.stop(Duration::ZERO).await;
    write("1. new");
    let bed = Bed { society: again().await, log: log.clone() };
    assert_eq!(&*bed.society.answer(&sent).await.unwrap().payload.text, "model: old");
    assert_eq!(bed.ask("write").await.unwrap(), "model: new");
}

/// What the model is shown for a step: the conversation with the task, what was done, and the step itself as the last word.
#[tokio::test(start_paused = true)]
async fn a_step_sees_the_task_and_what_came_before() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let model = ScriptedModel::new(move |request| {
        noted.lock().unwrap().push(request.clone());
        script(request)
    });
    let ports = Ports::new(MemoryLog::new()).with_model(model);
    let society = open(cast(Founder(sop("1. outline {what}\n2. sum up"), COLLEAGUES)), ports).await;
    polis_testkit::ask(&society, "write about fish").await.unwrap();
    let last = seen.lock().unwrap().pop().unwrap();
    let [task, done, step] = &last.messages[..] else { panic!("{:?}", last.messages) };
    assert_eq!((task, step), (&ChatMessage::user("write about fish"), &ChatMessage::user("sum up")));
    let ChatMessage::User { text, .. } = done else { panic!("{done:?}") };
    assert!(
        text.starts_with("[polis]") && text.contains("\n\n1. outline fish\n| model: outline fish\n\nDo the step"),
        "{text}"
    );
    assert!(!last.system.contains("fish"), "what agents answer is no instruction: {}", last.system);
}

#[tokio::test(start_paused = true)]
async fn the_plan_tool_moves_steps_on_by_plan_and_task_id() {
    struct Keeper;
    impl Agent for Keeper {
        async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
            let mut call = async |arguments: Value| {
                let call =
                    polis_domain::ToolCall { id: "c".into(), name: "plan".into(), arguments: arguments.to_string().into() };
                turn.call_tool(call).await
            };
            call(json!({ "steps": [{ "text": "look", "id": "a" }, { "text": "tell" }] })).await;
            let moved = call(json!({ "task_id": "a", "status": "completed", "result": "seen" })).await;
            let other = call(json!({ "plan_id": "plan_x", "task_id": "a", "status": "failed" })).await;
            let none = call(json!({ "task_id": "b", "status": "failed" })).await;
            assert!(other.is_error && none.is_error, "{} {}", other.content, none.content);
            Ok(Response::new(&*moved.content))
        }
    }
    let bed = bed(Keeper).await;
    assert_eq!(bed.ask("x").await.unwrap(), "1. [x] look\n2. [ ] tell");
    let plan = bed.plans().pop().unwrap();
    assert!(plan.id.is_some_and(|id| id.starts_with("plan_")));
    assert_eq!(plan.steps[0].result.as_deref(), Some("seen"));
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_is_at_can_be_read_from_the_log() {
    let bed = bed(Founder(sop("1. @slow do (within 5 minutes; if it fails: do it yourself)"), COLLEAGUES)).await;
    assert!(bed.ask("write about fish").await.is_ok());
    let mut spine = polis_domain::Spine::default();
    let mut seen = Vec::new();
    for recorded in bed.events() {
        spine.evolve(&recorded);
        let turn = spine.agents.get(&AgentId::root()).and_then(|root| spine.turns.get(&root.turn?));
        let asks = |turn: &polis_domain::Turn| turn.open.iter().any(|open| matches!(open.kind, polis_domain::OpenKind::Ask(_)));
        let state = turn.map_or("idle", |turn| if asks(turn) { "waiting_for_collaboration" } else { "executing_step" });
        if seen.last() != Some(&state) {
            seen.push(state);
        }
    }
    assert_eq!(seen, ["idle", "executing_step", "waiting_for_collaboration", "executing_step", "idle"]);
    assert_eq!(spine.plans.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_colleague_follows_no_procedure_for_the_task_that_its_step_is_a_part_of() {
    for (request, steps) in [("write about fish", "1. @clerk print it"), ("write about 鱼，用中文", "1. @clerk 打印")] {
        let log = Arc::new(MemoryLog::new());
        let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(ScriptedModel::new(script)) };
        let cast = cast(Founder(sop(steps), &["clerk"])).with("clerk", sop(steps));
        let bed = Bed { society: open(cast, ports).await, log };
        let answer = bed.ask(request).await.unwrap();
        assert!(answer.starts_with("model: "), "{answer}");
        assert_eq!(bed.plans().iter().filter(|plan| plan.status.is_some()).count(), 1, "root's alone");
    }
}
