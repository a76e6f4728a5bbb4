//! Sub-threads: units, agents that run them, the two ways to start one, several beside each other (R053-R127, D02-D05).

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Effect, Event, Failure, Message, Phase, Recorded, Response, SubThreadPath, SubThreadRequest, Task, Thread};
use polis_engine::{
    Agent, Cast, ExecuteSubThread, Interaction, InteractionUnit, Options, Phases, Ports, PrepareSubThread, Progress, Society,
    StateHandler, SubThreadAgent, SubThreads, Turn, Units,
};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ask, crash, open, society};
use serde_json::Value;

use crate::bed::{Bed, answer};

fn phase(name: &str) -> Phase {
    Phase::new(name).unwrap()
}

/// Has the model say something about the phase and the request.
struct Thinks;

impl StateHandler for Thinks {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let prompt = format!("{} {}", turn.phase(), turn.task().message);
        Ok(Response::new(turn.generate(prompt).await?))
    }
}

/// Reports that it did what it was told.
pub(crate) struct Does;

impl InteractionUnit for Does {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        let so_far = turn.own_thread().await?.messages.len();
        Ok(format!("done: {} ({so_far})", bot.text))
    }
}

/// Three units in a row, as the documents' pipeline.
struct DataPipelineAgent;

impl SubThreadAgent for DataPipelineAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("initial_phase", Does)
            .with_handler(Thinks)
            .then("data_transformation")
            .on("data_transformation", Does)
            .with_handler(Thinks)
            .then("result_formatting")
            .on("result_formatting", Does)
            .with_handler(Thinks)
            .then("completed")
    }

    async fn system_prompt(&self, _: &mut Turn) -> Result<Arc<str>, Failure> {
        Ok("pipeline".into())
    }
}

/// Starts it in two steps.
struct ReportAgent;

impl Agent for ReportAgent {
    fn phases(&self) -> Phases {
        Phases::new()
            .on("prepare_subthread", PrepareSubThread::default())
            .then("execute_subthread")
            .on("execute_subthread", ExecuteSubThread::of(DataPipelineAgent))
            .then("process_results")
            .on("process_results", Thinks)
    }
}

pub(crate) fn model() -> ScriptedModel {
    ScriptedModel::new(|request| ScriptedReply::text(&format!("{}<{}>", request.system, prompt(request))))
}

fn prompt(request: &polis_ports::ModelRequest) -> String {
    match request.messages.last() {
        Some(polis_ports::ChatMessage::User { text, .. }) => text.to_string(),
        _ => String::new(),
    }
}

async fn events(society: &Society) -> Vec<Recorded> {
    society.log().read(&"main".into(), polis_domain::Seq(0), usize::MAX).await.unwrap()
}

pub(crate) async fn thread(society: &Society, path: &str) -> Thread {
    let path = if path.is_empty() { SubThreadPath::main() } else { path.parse().unwrap() };
    society.thread(&"root".into(), &path).await.unwrap()
}

fn told(thread: &Thread) -> Vec<String> {
    thread.messages.iter().map(|message| format!("{:?}: {}", message.sender, message.text)).collect()
}

/// The tasks of all turns, with their behaviours.
fn turns(events: &[Recorded]) -> Vec<(String, Task)> {
    let started = |recorded: &Recorded| match &recorded.event {
        Event::TurnStarted { behaviour, task, .. } => Some((behaviour.to_string(), task.clone())),
        _ => None,
    };
    events.iter().filter_map(started).collect()
}

#[tokio::test(start_paused = true)]
async fn a_sub_thread_runs_its_units_in_order_and_shows_the_result_in_its_message() {
    let society = society(ReportAgent, model()).await;
    assert_eq!(ask(&society, "分析 sales.csv").await.unwrap(), "pipeline<result_formatting 分析 sales.csv>");
    let main = thread(&society, "").await;
    assert_eq!(told(&main), ["User: 分析 sales.csv", "Bot: pipeline<result_formatting 分析 sales.csv>"]);
    assert_eq!(main.phase().as_str(), "execute_subthread");
    assert_eq!(main.settings.phase_update_suggestion.unwrap().phase.as_str(), "process_results");
    let sub = thread(&society, "messages[1].meta._thread").await;
    let expected = [
        "Bot: pipeline<initial_phase 分析 sales.csv>",
        "User: done: pipeline<initial_phase 分析 sales.csv> (1)",
        "Bot: pipeline<data_transformation 分析 sales.csv>",
        "User: done: pipeline<data_transformation 分析 sales.csv> (3)",
        "Bot: pipeline<result_formatting 分析 sales.csv>",
    ];
    assert_eq!(told(&sub), expected, "no user message after the last unit");
    assert_eq!(sub.phase().as_str(), "completed");
    assert!(sub.id.as_str().starts_with("sub_root_"), "{}", sub.id);
    assert!(sub.messages[0].id.as_str().starts_with("sub_bot_") && sub.messages[1].id.as_str().starts_with("sub_user_"));
    assert!(sub.messages[0].meta.contains_key("usage"), "a message says what it cost");
}

#[tokio::test(start_paused = true)]
async fn the_two_steps_show_a_placeholder_at_once_and_go_on_by_themselves() {
    for (asked, waiting, goes_on) in
        [("分析", "正在处理您的请求...", "继续处理"), ("analyse", "Working on your request...", "Go on.")]
    {
        let society = society(ReportAgent, model()).await;
        ask(&society, asked).await.unwrap();
        let events = events(&society).await;
        let placeholder = events.iter().find_map(|recorded| match &recorded.event {
            Event::TurnSettled { message: Some(message), next, .. } => Some((message.text.clone(), next.clone())),
            _ => None,
        });
        let (text, next) = placeholder.unwrap();
        assert_eq!(text, waiting);
        let task = serde_json::to_value(&next[0]).unwrap();
        assert_eq!(
            (&task["name"], &task["type"], &task["message"]),
            (&"ContinueProcessing".into(), &"action".into(), &goes_on.into())
        );
        assert_eq!((&task["skipUserMessage"], &task["meta"]["originalQuery"]), (&true.into(), &asked.into()));
        assert!(task["meta"]["timestamp"].is_number());
        let names: Vec<_> = turns(&events).into_iter().map(|(behaviour, task)| (behaviour, task.name.to_string())).collect();
        let unit = |phase: &str| (format!("root/execute_subthread/{phase}"), "ProcessSubThread".to_owned());
        let root = |name: &str| ("root".to_owned(), name.to_owned());
        assert_eq!(
            names,
            [
                root("message"),
                root("ContinueProcessing"),
                unit("initial_phase"),
                unit("data_transformation"),
                unit("result_formatting")
            ]
        );
        let meta = &turns(&events)[2].1.meta;
        assert_eq!(meta["subThreadPath"], "messages[1].meta._thread");
        assert_eq!(meta["originalTask"], asked);
        assert!(meta["timestamp"].is_number());
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_the_second_step_gets_a_placeholder_of_its_own() {
    let society = society(ReportAgent, model()).await;
    ask(&society, "analyse").await.unwrap();
    let retry = serde_json::Map::from_iter([("_ui_action".to_owned(), Value::from("retry"))]);
    let sent = society.send_with_meta("root".into(), "again", None, retry).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "pipeline<result_formatting again>");
    assert_eq!(told(&thread(&society, "").await).len(), 4);
    assert_eq!(thread(&society, "messages[3].meta._thread").await.messages.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_sub_thread_agent_is_a_whole_agent_too() {
    let society = society(DataPipelineAgent, model()).await;
    assert_eq!(ask(&society, "x").await.unwrap(), "pipeline<result_formatting x>");
    assert_eq!(told(&thread(&society, "").await), ["User: x", "Bot: pipeline<result_formatting x>"]);
    assert_eq!(thread(&society, "messages[1].meta._thread").await.messages.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn names_of_units_are_the_same_in_every_run() {
    let cast = Cast::new().with("article", ArticleAgent).with("pipeline", DataPipelineAgent);
    let names: Vec<_> = cast.behaviours().iter().map(ToString::to_string).collect();
    let expected = [
        "article",
        "article/drafting/research/gathering",
        "article/drafting/research/gathering/sources/initial_phase",
        "article/drafting/research/weighing",
        "article/drafting/review/initial_phase",
        "pipeline",
        "pipeline/data_transformation",
        "pipeline/initial_phase",
        "pipeline/result_formatting",
    ];
    assert_eq!(names, expected);
    let again = Cast::new().with("pipeline", DataPipelineAgent).with("article", ArticleAgent);
    assert_eq!(again.behaviours(), cast.behaviours());
}

/// A handler that goes deeper, without a placeholder step.
struct Deepens;

impl StateHandler for Deepens {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("sources", Units::new().on("initial_phase", Does).with_handler(Thinks).then("completed"))
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = SubThreadRequest::new("sources", format!("sources of {}", turn.task().message));
        Ok(turn.run_sub_thread(request).await?.into())
    }
}

/// Finds sources in a sub-thread of its own, then weighs them.
struct ResearchAgent;

impl SubThreadAgent for ResearchAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("gathering", Does)
            .with_handler(Deepens)
            .then("weighing")
            .on("weighing", Does)
            .with_handler(Thinks)
            .then("completed")
    }

    async fn system_prompt(&self, _: &mut Turn) -> Result<Arc<str>, Failure> {
        Ok("research".into())
    }

    async fn summarize(&self, progress: &Progress, turn: &mut Turn) -> Result<String, Failure> {
        let phases: Vec<_> = progress.results.iter().map(|result| result.phase.as_str()).collect();
        turn.generate(format!("sum up {} of {}", phases.join("+"), progress.thread.messages.len())).await
    }
}

/// Researches and reviews beside each other, then puts both together.
struct DraftingHandler;

impl StateHandler for DraftingHandler {
    fn sub_threads(&self) -> SubThreads {
        let review = Units::new().on("initial_phase", Does).with_handler(Thinks).then("completed");
        SubThreads::new().with("research", ResearchAgent).with("review", review)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let query = turn.task().message.clone();
        let requests = vec![SubThreadRequest::new("research", query.clone()), SubThreadRequest::new("review", query)];
        let parts = turn.run_sub_threads(requests).await?;
        Ok(Response::new(parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join(" & ")))
    }
}

struct ArticleAgent;

impl Agent for ArticleAgent {
    fn phases(&self) -> Phases {
        Phases::new().on("drafting", DraftingHandler).then("drafting")
    }
}

#[tokio::test(start_paused = true)]
async fn sub_threads_nest_in_units_and_results_float_up_level_by_level() {
    let society = society(ArticleAgent, model()).await;
    let told_in_the_end = ask(&society, "鱼").await.unwrap();
    assert_eq!(told_in_the_end, "research<sum up gathering+weighing of 3> & <initial_phase 鱼>");
    let research = thread(&society, "messages[1].meta._thread").await;
    // The nested agent has no prompt of its own, so the role's holds: none.
    let expected =
        ["Bot: <initial_phase sources of 鱼>", "User: done: <initial_phase sources of 鱼> (1)", "Bot: research<weighing 鱼>"];
    assert_eq!(told(&research), expected, "the nested result is the bot message; it is there once");
    let nested = thread(&society, "messages[1].meta._thread.messages[0].meta._thread").await;
    assert_eq!(told(&nested), ["Bot: <initial_phase sources of 鱼>"]);
    assert!(nested.id.as_str().starts_with("nested_"), "{}", nested.id);
    let events = events(&society).await;
    let waited = events.iter().filter_map(|recorded| match &recorded.event {
        Event::MessageAdded { message, .. } if message.text.ends_with("...") => Some(message.text.clone()),
        _ => None,
    });
    assert_eq!(waited.collect::<Vec<_>>(), ["正在处理您的请求...", "正在处理您的请求...", "正在执行深度分析..."]);
    let nested = turns(&events).into_iter().find(|(_, task)| &*task.name == "ProcessNestedSubThread").unwrap().1;
    assert_eq!(nested.meta["subThreadPath"], "messages[1].meta._thread.messages[0].meta._thread");
    assert_eq!(nested.meta["parentThreadPath"], "messages[1].meta._thread");
    assert!(nested.meta["timestamp"].is_number());
}

/// The form that starts a sub-thread and says so in its own words.
struct ParentHandler;

impl StateHandler for ParentHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("interaction", DataPipelineAgent)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let result = turn.run_sub_thread(SubThreadRequest::new("interaction", turn.task().message.clone())).await?;
        Ok(Response::new(format!("处理结果：\n\n{}", result.text)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_answer_in_its_own_words_about_a_sub_thread() {
    let society = society(Phases::new().on("initial_phase", ParentHandler), model()).await;
    assert_eq!(ask(&society, "x").await.unwrap(), "处理结果：\n\npipeline<result_formatting x>");
}

/// Runs one sub-thread, and tells whether it failed.
pub(crate) async fn run(units: impl SubThreadAgent + Clone) -> (Society, String) {
    let phases = Phases::new()
        .on("initial_phase", ExecuteSubThread::of(units))
        .then("process_results")
        .on("process_results", Thinks)
        .then("initial_phase");
    let society = society(phases, model()).await;
    let told = ask(&society, "q").await.unwrap();
    assert_eq!(ask(&society, "next").await.unwrap(), "<process_results next>", "the main thread goes on");
    (society, told)
}

pub(crate) struct Bare;

impl InteractionUnit for Bare {}

struct Fails;

impl StateHandler for Fails {
    async fn handle(&self, _: &mut Turn) -> Result<Response, Failure> {
        Err(Failure::new("broken", "it broke"))
    }
}

struct Panics;

impl StateHandler for Panics {
    async fn handle(&self, _: &mut Turn) -> Result<Response, Failure> {
        panic!("out of order")
    }
}

struct Mute;

impl StateHandler for Mute {
    async fn handle(&self, _: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::silent())
    }
}

struct Queues;

impl StateHandler for Queues {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let mut response = Response::new("x");
        response.add_next_task(Task::action(turn.task().id.clone(), "more", ""));
        Ok(response)
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_in_a_sub_thread_becomes_a_result_and_the_main_thread_goes_on() {
    let on = || Units::new().on("initial_phase", Bare);
    let cases = [
        (on().then("completed"), "缺少StateHandler，无法生成bot消息", "no_state_handler"),
        (on().with_handler(Thinks), "必须由子类实现", "no_user_message"),
        (on().with_handler(Fails), "it broke", "broken"),
        (on().with_handler(Panics), "out of order", "panicked"),
        (on().with_handler(Mute), "said nothing", "no_bot_message"),
        (on().with_handler(Queues), "cannot queue tasks", "next_tasks_in_unit"),
    ];
    for (units, words, code) in cases {
        let (society, told) = run(units).await;
        assert!(
            told.starts_with("This came to nothing: ") && told.contains(words) && told.ends_with(&format!("({code})")),
            "{told}"
        );
        assert_eq!(thread(&society, "").await.messages[1].text, told, "the placeholder tells of it");
    }
}

/// Suggests another phase than its unit is to.
struct Wilful;

impl StateHandler for Wilful {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.suggest_phase(phase("aside")).await?;
        Ok(Response::new(turn.phase().as_str()))
    }
}

/// Suggests what its unit is to suggest anyway.
struct Eager;

impl StateHandler for Eager {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.phase().as_str()).to_phase(phase("completed")))
    }
}

/// A unit that chooses what is next.
struct Chooses;

impl InteractionUnit for Chooses {
    async fn user_message(&self, _: &Message, turn: &mut Turn) -> Result<String, Failure> {
        turn.suggest_phase(phase("aside")).await?;
        Ok("chosen".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_sub_thread_the_units_word_stands() {
    let eager = |units: Units| units.on("last", Bare).with_handler(Eager).then("completed");
    let first = || Units::new().on("initial_phase", Does);
    let cases = [
        // The unit against its handler.
        (eager(first().with_handler(Wilful).then("last").on("aside", Bare).with_handler(Fails)), 3, 2),
        // The handler, where the unit says nothing.
        (first().with_handler(Wilful).on("aside", Bare).with_handler(Eager).then("completed"), 3, 1),
        // The unit's own code against its configuration.
        (
            eager(Units::new().on("initial_phase", Chooses).with_handler(Thinks).then("last"))
                .on("aside", Bare)
                .with_handler(Eager)
                .then("completed"),
            3,
            1,
        ),
        // Nobody says anything: it ends.
        (first().with_handler(Mutters), 2, 0),
    ];
    for (i, (units, messages, suggested)) in cases.into_iter().enumerate() {
        let (society, told) = run(units).await;
        assert!(!told.starts_with("This came to nothing"), "case {i}: {told}");
        let sub = thread(&society, "messages[1].meta._thread").await;
        assert_eq!(sub.messages.len(), messages, "case {i}");
        let events = events(&society).await;
        let first_unit = events.iter().filter(|recorded| recorded.thread.as_ref() == Some(&sub.id));
        let by_first = first_unit
            .skip_while(|recorded| !matches!(recorded.event, Event::TurnStarted { .. }))
            .skip(1)
            .take_while(|recorded| !matches!(recorded.event, Event::TurnStarted { .. }))
            .filter(|recorded| matches!(recorded.event, Event::PhaseSuggested { .. }));
        assert_eq!(by_first.count(), suggested, "case {i}");
    }
}

/// Speaks without a model.
pub(crate) struct Mutters;

impl StateHandler for Mutters {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(format!("{} mutters", turn.phase())))
    }
}

/// Goes on as it sees fit: twice the same unit, then the last one, whatever they suggest.
#[derive(Clone)]
struct AdaptiveAgent;

impl SubThreadAgent for AdaptiveAgent {
    fn units(&self) -> Units {
        let unit = |units: Units, name| units.on(name, Does).with_handler(Mutters).then("skipped");
        unit(unit(unit(Units::new(), "initial_phase"), "skipped"), "checked")
    }

    fn is_terminal(&self, phase: &Phase) -> bool {
        phase.as_str() == "enough"
    }

    async fn next_unit(&self, progress: &Progress, _: &mut Turn) -> Result<Phase, Failure> {
        let next = match progress.results.len() {
            0 | 1 => "initial_phase",
            2 => "checked",
            _ => "enough",
        };
        Ok(phase(next))
    }

    async fn summarize(&self, progress: &Progress, _: &mut Turn) -> Result<String, Failure> {
        let pair = |result: &Interaction| format!("{}{}", result.phase, result.user.is_some());
        Ok(progress.results.iter().map(pair).collect::<Vec<_>>().join(" "))
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_unit_may_be_chosen_from_what_has_happened() {
    let (society, told) = run(AdaptiveAgent).await;
    assert_eq!(told, "initial_phasetrue initial_phasetrue checkedtrue");
    assert_eq!(thread(&society, "messages[1].meta._thread").await.messages.len(), 6);
}

/// Never comes to an end.
#[derive(Clone)]
struct RestlessAgent;

impl SubThreadAgent for RestlessAgent {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", Does).with_handler(Mutters).then("initial_phase")
    }

    fn max_interactions(&self) -> usize {
        3
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_thread_has_a_most_of_interactions() {
    let (society, told) = run(RestlessAgent).await;
    assert!(told.ends_with("(too_many_interactions)"), "{told}");
    assert_eq!(thread(&society, "messages[1].meta._thread").await.messages.len(), 6);
}

/// Waits for as long as its request says before it speaks.
struct Waits;

impl StateHandler for Waits {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let minutes: u64 = turn.task().message.parse().unwrap_or_default();
        if minutes > 0 {
            turn.sleep(Duration::from_secs(60 * minutes)).await?;
        }
        Ok(Response::new(turn.generate(format!("{} {minutes}", turn.phase())).await?))
    }
}

/// Two units, each of which may wait; what they come to is summed up by a model.
struct PatientAgent;

impl SubThreadAgent for PatientAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("initial_phase", Does)
            .with_handler(Waits)
            .then("second")
            .on("second", Does)
            .with_handler(Waits)
            .then("completed")
    }

    async fn summarize(&self, progress: &Progress, turn: &mut Turn) -> Result<String, Failure> {
        turn.generate(format!("sum of {}", progress.last_bot_text())).await
    }
}

/// Runs as many beside each other as it is given numbers, and merges what they say.
struct MergingHandler;

impl StateHandler for MergingHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("part", PatientAgent)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let parts = turn.task().message.split(' ').map(|part| SubThreadRequest::new("part", part)).collect();
        let results = turn.run_sub_threads(parts).await?;
        Ok(Response::new(results.into_iter().map(|part| part.text).collect::<Vec<_>>().join(" ")))
    }
}

fn merging() -> Phases {
    Phases::new().on("initial_phase", MergingHandler)
}

/// In which order units of the root's turns began and ended, by what they were asked.
fn order(events: &[Recorded]) -> Vec<String> {
    let mut names = std::collections::HashMap::new();
    let told = |recorded: &Recorded| match &recorded.event {
        Event::EffectStarted { id, effect: Effect::Unit { behaviour, task, .. }, .. } => {
            let name = format!("{} {}", task.message, behaviour.as_str().rsplit('/').next().unwrap());
            names.insert(*id, name.clone());
            Some(format!("+{name}"))
        }
        Event::EffectEnded { id, .. } => names.get(id).map(|name| format!("-{name}")),
        _ => None,
    };
    events.iter().filter_map(told).collect()
}

/// Each goes on when it can: the first has not ended when the second is done.
const APART: [&str; 12] = [
    "+9 initial_phase",
    "+0 initial_phase",
    "+2 initial_phase",
    "-0 initial_phase",
    "+0 second",
    "-0 second",
    "-2 initial_phase",
    "+2 second",
    "-2 second",
    "-9 initial_phase",
    "+9 second",
    "-9 second",
];

#[tokio::test(start_paused = true)]
async fn sub_threads_beside_each_other_do_not_wait_for_each_other() {
    let slots = [(1, 0), (1, 8), (8, 0), (4_096, 1_024)];
    for (max_running, max_lingering) in slots {
        let bed = Bed { cast: Cast::new().with("programmed", merging()), ..Bed::new() };
        let options = Options { max_running, max_lingering, ..bed.options.clone() };
        let bed = Bed { options, ..bed };
        let society = bed.open().await;
        let told = ask(&society, "9 0 2").await.unwrap();
        assert_eq!(
            told,
            "thought(sum of thought(second 9)) thought(sum of thought(second 0)) thought(sum of thought(second 2))"
        );
        assert_eq!(order(&bed.events()), APART, "with {max_running} slots and {max_lingering} to linger");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_they_still_do_not_wait_for_each_other() {
    let cast = Cast::new().with("root", merging());
    let survived = crash::at_every_commit(&cast, model, &["9 0 2"]).await.unwrap();
    assert_eq!(order(&survived.log), APART);
    assert!(survived.stops > 40, "{} stops", survived.stops);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_twice_wherever_it_is_stopped() {
    // One of the two beside each other takes its time: else either might be the first to end.
    let slow = || {
        ScriptedModel::new(|request| {
            let asked = prompt(request);
            let minutes = if ["initial_phase fish", "initial_phase birds"].contains(&&*asked) { 60 } else { 0 };
            ScriptedReply::text(&asked).after(Duration::from_secs(60 * minutes))
        })
    };
    let cast = Cast::new().with("root", ArticleAgent);
    crash::at_every_commit(&cast, slow, &["fish", "birds"]).await.unwrap();
    let cast = Cast::new().with("root", ReportAgent);
    crash::at_every_commit(&cast, model, &["sales.csv"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_begins_with_its_own_settings_whatever_its_parents_phase_is() {
    let society = society(ReportAgent, model()).await;
    ask(&society, "x").await.unwrap();
    let events = events(&society).await;
    let opened = events.iter().find_map(|recorded| match &recorded.event {
        Event::ThreadOpened { settings, .. } => Some(settings.clone()),
        _ => None,
    });
    assert_eq!(opened.unwrap(), polis_domain::Settings::default());
    let main_phases = events.iter().filter(|recorded| {
        recorded.thread.as_ref().is_some_and(|thread| thread.as_str() == "root")
            && matches!(recorded.event, Event::PhaseApplied { .. })
    });
    assert_eq!(main_phases.count(), 1, "no unit has moved the main thread");
}

/// Declares data for its units to read, at a place of its own.
struct DeclaringHandler;

impl StateHandler for DeclaringHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("analysis", Units::new().on("initial_phase", Bare).with_handler(Reads).then("completed"))
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let holder = turn.say("see below").await?;
        let request = SubThreadRequest::new("analysis", "q")
            .in_message(holder.id.clone())
            .at(polis_domain::MetaPath::new("meta.threads.analysis").unwrap())
            .with_meta("dataSource", "sales.csv");
        let result = turn.run_sub_thread(request).await?;
        Ok(Response::new(format!("{} {}", result.path, result.text)))
    }
}

struct Reads;

impl StateHandler for Reads {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let source = turn.own_thread().await?.meta["dataSource"].clone();
        Ok(Response::new(source.as_str().unwrap_or_default()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_thread_may_have_data_and_a_place_of_its_own() {
    let cast = Cast::new().with("root", Phases::new().on("initial_phase", DeclaringHandler));
    let society = open(cast, Ports::new(MemoryLog::new())).await;
    assert_eq!(ask(&society, "x").await.unwrap(), "messages[1].meta.threads.analysis sales.csv");
    assert_eq!(thread(&society, "messages[1].meta.threads.analysis").await.messages.len(), 1);
}
