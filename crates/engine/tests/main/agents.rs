//! What an agent gets without writing it, and what it may say instead (R027-R052, R128-R131, R145).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use polis_domain::{Event, Failure, Finish, Phase, Response, Role, Sender, SubThreadPath, SubThreadRequest, Task};
use polis_engine::{
    Agent, Cast, ExecuteSubThread, InteractionUnit, OpenError, Operation, Options, Phases, Ports, PrepareSubThread, Society,
    StateHandler, SubThreadAgent, SubThreads, Turn, Units,
};
use polis_ports::{ModelRequest, ModelSettings};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ask, open, society};

use crate::bed::Bed;

fn silent_model() -> ScriptedModel {
    ScriptedModel::saying("said")
}

/// Says where it is.
struct Reports;

impl StateHandler for Reports {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(format!("{} {}", turn.phase(), turn.task().name)))
    }
}

/// A whole agent.
struct GreetingAgent;

impl Agent for GreetingAgent {
    fn phases(&self) -> Phases {
        Phases::new().on("initial_phase", Reports).then("completed").on("completed", Reports)
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_says_what_is_its_own_and_nothing_else() {
    let society = society(GreetingAgent, silent_model()).await;
    assert_eq!(ask(&society, "hello").await.unwrap(), "initial_phase message");
    assert_eq!(ask(&society, "hello").await.unwrap(), "completed message");
    let thread = society.thread(&"root".into(), &SubThreadPath::main()).await.unwrap();
    assert_eq!(thread.phase().as_str(), "completed");
    assert_eq!(thread.messages.len(), 4);
    assert!(society.operations(&"root".into()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_settings_stands_in_the_first_phase() {
    let society = society(Phases::new().on("drafting", Reports).then("review").on("review", Reports), silent_model()).await;
    let answers = [ask(&society, "a").await.unwrap(), ask(&society, "b").await.unwrap()];
    assert_eq!(answers, ["initial_phase message", "review message"], "the first handler serves a new thread");
}

/// Counts how often it is asked for its phases.
struct Counted(Arc<AtomicUsize>);

impl Agent for Counted {
    fn phases(&self) -> Phases {
        self.0.fetch_add(1, Ordering::Relaxed);
        Phases::new().on("initial_phase", Reports)
    }

    fn operations(&self) -> Vec<Operation> {
        vec![Operation::new("again", "Try again", "again").with_meta("_ui_action", "retry")]
    }
}

#[tokio::test(start_paused = true)]
async fn phases_are_asked_for_once_and_operations_are_there_for_the_page() {
    let asked = Arc::<AtomicUsize>::default();
    let society = society(Counted(asked.clone()), silent_model()).await;
    for _ in 0..3 {
        ask(&society, "hello").await.unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let shown = serde_json::to_value(society.operations(&"root".into())).unwrap();
    let expected = serde_json::json!([
        { "name": "again", "label": "Try again", "message": "again", "meta": { "_ui_action": "retry" } }
    ]);
    assert_eq!(shown, expected);
}

/// Has a task follow that carries both sides of a conversation, named as it is told.
struct Follows(&'static str);

impl StateHandler for Follows {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let mut response = Response::new(format!("{} {}", turn.phase(), turn.task().name));
        if &*turn.task().name == "message" {
            response.add_next_task(Task::action(turn.task().id.clone(), self.0, "").with_meta("bot", "as it was said"));
        }
        Ok(response)
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_pair_gives_back_its_words_and_any_other_task_goes_by_phase() {
    let follows = |name| Phases::new().on("initial_phase", Follows(name)).on("review", Reports);
    let pair = society(follows("chatPair"), silent_model()).await;
    assert_eq!(ask(&pair, "hello").await.unwrap(), "as it was said");
    let named_like_a_phase = society(follows("review"), silent_model()).await;
    assert_eq!(ask(&named_like_a_phase, "hello").await.unwrap(), "initial_phase review");
}

/// Asks the model.
struct Asks;

impl StateHandler for Asks {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = ModelRequest { settings: ModelSettings::at_temperature(0.25), ..turn.task().message.clone().into() };
        Ok(Response::new(turn.generate(request).await?))
    }
}

/// Has a prompt of its own.
struct Prompted;

impl Agent for Prompted {
    fn phases(&self) -> Phases {
        Phases::new().on("initial_phase", Asks)
    }

    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        Ok(format!("You are {} in {}.", turn.agent(), turn.phase()).into())
    }
}

fn echo() -> ScriptedModel {
    ScriptedModel::new(|request| {
        let messages = request.messages.len();
        ScriptedReply::text(&format!("[{}] {messages} at {}", request.system, request.settings.temperature.unwrap_or_default()))
    })
}

#[tokio::test(start_paused = true)]
async fn the_model_is_asked_with_the_agents_own_prompt_or_the_roles() {
    let own = society(Prompted, echo()).await;
    assert_eq!(ask(&own, "hello").await.unwrap(), "[You are root in initial_phase.] 1 at 0.25");
    let cast = Cast::new().with("plain", Phases::new().on("initial_phase", Asks));
    let role = Role::new("root", "plain").with_prompt("Be kind.");
    let ports = Ports::new(MemoryLog::new()).with_model(echo());
    let plain = Society::open("main".into(), ports, cast, Options::new(1, role)).await.unwrap();
    assert_eq!(ask(&plain, "hello").await.unwrap(), "[Be kind.] 1 at 0.25");
}

#[tokio::test(start_paused = true)]
async fn without_a_model_or_a_whole_reply_there_is_an_error_that_says_so() {
    let asks = || Cast::new().with("root", Phases::new().on("initial_phase", Asks));
    let none = open(asks(), Ports::new(MemoryLog::new())).await;
    let failure = ask(&none, "hello").await.unwrap_err();
    assert!(failure.message.contains("Agent没有可用的LLM客户端"), "{failure}");
    for (line, code) in [
        (|| ScriptedReply::text("half").ending(Finish::Length), "reply_stopped"),
        (|| ScriptedReply::text("half").ending(Finish::ContentFilter), "reply_stopped"),
        (|| ScriptedReply::text("no").ending(Finish::Refusal), "model_refused"),
        (|| ScriptedReply::text("  "), "empty_reply"),
    ] as [(fn() -> ScriptedReply, &str); 4]
    {
        let ports = Ports::new(MemoryLog::new()).with_model(ScriptedModel::new(move |_| line()));
        assert_eq!(&*ask(&open(asks(), ports).await, "hello").await.unwrap_err().code, code);
    }
}

struct Unit;

impl InteractionUnit for Unit {}

fn one_unit() -> Units {
    Units::new().on("initial_phase", Unit).with_handler(Reports).then("completed")
}

/// Contains itself.
struct Endless;

impl InteractionUnit for Endless {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("again", Units::new().on("initial_phase", Self).with_handler(Reports))
    }
}

/// Declares two sub-threads of one name.
struct Twins;

impl StateHandler for Twins {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("twin", one_unit()).with("twin", one_unit())
    }

    async fn handle(&self, _: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::silent())
    }
}

#[tokio::test(start_paused = true)]
async fn agents_that_do_not_fit_together_are_named_before_anything_starts() {
    let on = |phases: Phases| Cast::new().with("a", phases);
    let run = |units: Units| on(Phases::new().on("initial_phase", ExecuteSubThread::of(units)));
    let cases = [
        (on(Phases::new().on("x", Reports).on("x", Reports)), "`a` has two handlers for phase `x`"),
        (on(Phases::new().on("x", Reports).then("y")), "`a`: `x` is followed by `y`, which has no handler"),
        (on(Phases::new().on("Not Snake", Reports)), "`a`: `Not Snake` is not a phase"),
        (
            on(Phases::new().on("prepare_subthread", PrepareSubThread::default()).then("execute_subthread")),
            "`prepare_subthread` is followed by `execute_subthread`, which has no handler",
        ),
        (run(one_unit().on("initial_phase", Unit)), "`a/initial_phase` has two units for phase `initial_phase`"),
        (run(one_unit().then("nowhere")), "`initial_phase` is followed by `nowhere`, which has no unit"),
        (run(Units::new()), "`a/initial_phase` has no units"),
        (on(Phases::new().on("x", Twins)), "`a/x` declares two sub-threads of the name `twin`"),
        (run(Units::new().on("x", Endless).with_handler(Reports)), "does it contain itself?"),
        (Cast::new().with("a", GreetingAgent).with("a", GreetingAgent), "`a` is registered twice"),
    ];
    for (cast, expected) in cases {
        let ports = Ports::new(MemoryLog::new());
        let opened = Society::open("main".into(), ports, cast, Options::new(1, Role::new("root", "a"))).await;
        let error = opened.err().unwrap_or_else(|| panic!("this was opened: {expected}"));
        assert!(matches!(error, OpenError::Cast(_)) && error.code() == "bad_agent");
        assert!(error.to_string().contains(expected), "{error}\nlacks {expected}");
    }
}

/// Answers as the task says.
struct Responds;

impl StateHandler for Responds {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("details", one_unit())
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let review = Phase::new("review").unwrap();
        Ok(match &*turn.task().message {
            "new" => Response::new("a new message"),
            "update" => {
                let first = turn.say("first").await?;
                turn.say("second").await?;
                let mut response = Response::new("first, changed").updating(first.id.clone());
                response.meta.insert("changed".to_owned(), true.into());
                response
            }
            "sub-thread" => Response::new("one moment").in_sub_thread(SubThreadRequest::new("details", "q")).to_phase(review),
            "nobody" => Response::new("").in_sub_thread(SubThreadRequest::new("nobody", "q")),
            _ => Response::new("away").to_phase(review),
        })
    }
}

fn responds() -> Phases {
    Phases::new().on("initial_phase", Responds).on("review", Responds).then("initial_phase")
}

async fn texts(society: &Society) -> Vec<String> {
    let thread = society.thread(&"root".into(), &SubThreadPath::main()).await.unwrap();
    thread.messages.into_iter().filter(|message| message.sender == Sender::Bot).map(|message| message.text.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_response_adds_a_message_or_changes_one_or_has_a_sub_thread_fill_it() {
    let society = society(responds(), silent_model()).await;
    assert_eq!(ask(&society, "new").await.unwrap(), "a new message");
    assert_eq!(
        ask(&society, "update").await.unwrap(),
        "first, changed",
        "the answer is what was changed, not what stands last"
    );
    assert_eq!(texts(&society).await, ["a new message", "first, changed", "second"]);
    assert_eq!(ask(&society, "sub-thread").await.unwrap(), "initial_phase ProcessSubThread");
    assert_eq!(texts(&society).await, ["a new message", "first, changed", "second", "initial_phase ProcessSubThread"]);
    let main = society.thread(&"root".into(), &SubThreadPath::main()).await.unwrap();
    assert_eq!(main.messages[3].meta["changed"], true);
    let sub = society.thread(&"root".into(), &SubThreadPath::create(6)).await.unwrap();
    assert_eq!((sub.messages.len(), sub.phase().as_str()), (1, "completed"));
    let suggested = main.settings.phase_update_suggestion.unwrap().phase;
    assert_eq!(suggested.as_str(), "review", "the response suggests; it does not apply");
    assert_eq!(&*ask(&society, "nobody").await.unwrap_err().code, "no_such_sub_thread");
}

#[tokio::test(start_paused = true)]
async fn a_phase_in_the_response_stands_against_the_configured_one() {
    let bed = Bed { cast: Cast::new().with("programmed", responds()), ..Bed::new() };
    let society = bed.open().await;
    for _ in 0..3 {
        ask(&society, "away").await.unwrap();
    }
    let phases: Vec<_> = bed
        .events()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::PhaseSuggested { phase, .. } => Some(phase.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(phases, ["review", "review", "review"]);
}

/// Notes what was placed where, to show that a handler needs nothing but its turn.
struct Sees(Arc<Mutex<Vec<String>>>);

impl StateHandler for Sees {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let thread = turn.own_thread().await?;
        self.0.lock().unwrap().push(format!("{} {} {}", thread.id, thread.messages.len(), turn.path().is_main()));
        Ok(Response::new("seen"))
    }
}

/// The same from inside a sub-thread.
struct SeesBoth(Arc<Mutex<Vec<String>>>);

impl StateHandler for SeesBoth {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let (main, own) = (turn.thread(&SubThreadPath::main()).await?, turn.own_thread().await?);
        let is_same = turn.thread(&turn.path()).await?.id == own.id;
        let asked = &main.messages[0].text;
        self.0.lock().unwrap().push(format!("{} {asked} {} {} {is_same}", main.id, turn.path(), own.id == main.id));
        Ok(Response::new("seen from below"))
    }
}

struct SeesBothUnit;
impl InteractionUnit for SeesBothUnit {}

struct SeesBothAgent(Arc<Mutex<Vec<String>>>);
impl SubThreadAgent for SeesBothAgent {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", SeesBothUnit).with_handler(SeesBoth(self.0.clone())).then("completed")
    }
}

struct SendsBelow(Arc<Mutex<Vec<String>>>);
impl StateHandler for SendsBelow {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("below", SeesBothAgent(self.0.clone()))
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(turn.run_sub_thread(SubThreadRequest::new("below", "look")).await?.into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_in_a_sub_thread_has_the_main_thread_and_its_own_by_path() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let society = society(Phases::new().on("initial_phase", SendsBelow(seen.clone())), silent_model()).await;
    assert_eq!(ask(&society, "hello").await.unwrap(), "seen from below");
    assert_eq!(*seen.lock().unwrap(), ["root hello messages[1].meta._thread false true"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_everything_by_its_turn() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let society = society(Phases::new().on("initial_phase", Sees(seen.clone())), silent_model()).await;
    ask(&society, "hello").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["root 1 true"]);
}
