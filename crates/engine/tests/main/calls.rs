//! Calls that are answered from the log, calls that go in circles, and calls that a turn does itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polis_domain::{CallResult, Effect, EffectClass, Event, OpenKind, Outcome, Resolution, StepStatus, Verdict};
use polis_domain::{Plan, Step, SubThreadPath};
use polis_engine::{Cast, Ports, Society, Turn, TurnTool};
use polis_ports::{CallContext, ToolSpec};
use polis_testkit::{Op, Program, ProgrammedAgent, ScriptedTools};
use serde_json::json;

use crate::bed::*;

const READ: &str = r#"{"path": "a.txt"}"#;

/// Every call that was really made.
type Made = Arc<Mutex<Vec<(String, CallContext)>>>;

/// `look` and `peek` read, `poll` reads what changes by itself, `mark` writes; `fail` reads and fails. All but `count` say
/// the same each time.
fn tools(made: &Made) -> ScriptedTools {
    let tool = |tools: ScriptedTools, (name, class): (&'static str, EffectClass)| {
        let made = made.clone();
        tools.with(name, class, move |arguments, context| {
            let mut made = made.lock().unwrap();
            made.push((format!("{name} {arguments}"), context.clone()));
            match name {
                "fail" => CallResult::failed("no such page"),
                "count" => CallResult::good(made.len().to_string()),
                _ => CallResult::good(name),
            }
        })
    };
    let (read, write) = (EffectClass::Read, EffectClass::Write);
    let all =
        [("look", read), ("peek", read), ("poll", read), ("count", read), ("fail", read), ("_count", read), ("mark", write)];
    all.into_iter().fold(ScriptedTools::new(), tool).volatile("poll").volatile("count")
}

async fn open(bed: &Bed, made: &Made) -> Society {
    let ports = Ports { toolbox: Arc::new(tools(made)), ..bed.ports(bed.log.clone()) };
    Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
}

/// Runs a program, and gives the answer and the calls that were really made.
async fn run(ops: Vec<Op>) -> (String, Vec<String>) {
    let (bed, made) = (Bed::new(), Made::default());
    let society = open(&bed, &made).await;
    spawn(&society, &["a1"]).await;
    let said = ask(&society, ops).await.unwrap_or_else(|code| format!("!{code}"));
    let made = made.lock().unwrap().iter().map(|(call, _)| call.clone()).collect();
    (said, made)
}

fn of_a1(ops: Vec<Op>) -> Op {
    Op::Ask { agent: "a1".to_owned(), program: Program(ops), patience_ms: 60_000 }
}

#[tokio::test(start_paused = true)]
async fn an_identical_call_is_answered_from_the_log_in_every_turn_thread_and_agent_of_a_request() {
    let spelled = "{\n  \"path\" : \"a.txt\" }";
    let again = || call("look", spelled);
    let unit = Op::Units(vec![Program(vec![again()])]);
    let (said, made) =
        run(vec![call("look", READ), again(), unit, of_a1(vec![again()]), Op::Then(Program(vec![again()]))]).await;
    assert_eq!(made, [format!("look {READ}")]);
    assert!(
        said.starts_with("look (not called again: the same call gave this result before, and no agent has written anything"),
        "{said}"
    );
    let (bed, made) = (Bed::new(), Made::default());
    let society = open(&bed, &made).await;
    let first = ask(&society, vec![call("look", READ), again()]).await.unwrap();
    assert!(first.starts_with("look look (not called again"), "{first}");
    assert_eq!(ask(&society, vec![again()]).await.unwrap(), "look", "another request is another matter");
    assert_eq!(made.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn identical_reads_that_are_under_way_share_one_call() {
    let both = |tool: &str| Op::Call(vec![(tool.to_owned(), READ.to_owned()), (tool.to_owned(), READ.to_owned())]);
    let look = format!("look {READ}");
    // In one reply, also with another call between.
    let (said, made) = run(vec![both("look")]).await;
    assert!(said.starts_with("look,look (not called again") && made == [look.clone()], "{said} {made:?}");
    let three = [("look", READ), ("peek", READ), ("look", "{\"path\":\"a.txt\"}")];
    let (said, made) = run(vec![Op::Call(three.map(|(tool, of)| (tool.to_owned(), of.to_owned())).to_vec())]).await;
    assert!(said.starts_with("look,peek,look (not called again"), "each result has its place: {said}");
    assert_eq!(made, [look.clone(), format!("peek {READ}")]);
    // In turns that run at the same time.
    let unit = |op: Op| Program(vec![op]);
    let (_, made) = run(vec![Op::Units((0..3).map(|_| unit(call("look", READ))).collect())]).await;
    assert_eq!(made, [look]);
    // A failure is no result, and what changes by itself is asked for each time.
    let (_, made) = run(vec![both("fail")]).await;
    assert_eq!(made.len(), 2);
    let (_, made) = run(vec![both("poll"), Op::Units(vec![unit(call("poll", READ)), unit(call("poll", READ))])]).await;
    assert_eq!(made.len(), 4);
    let (_, made) = run(vec![Op::Units(vec![unit(call("fail", READ)), unit(call("fail", READ))])]).await;
    assert_eq!(made.len(), 2, "a call that waited for one that failed is made itself");
}

#[tokio::test(start_paused = true)]
async fn a_read_holds_others_back_until_it_ends_or_its_turn_does() {
    for (terminate, made_calls, seconds) in [(false, 1, 60), (true, 1, 61)] {
        let (bed, made) = (Bed::new(), Made::default());
        let slow = tools(&made).delayed(|_| Duration::from_secs(60));
        let ports = Ports { toolbox: Arc::new(slow), ..bed.ports(bed.log.clone()) };
        let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
        let began = tokio::time::Instant::now();
        let sent = Op::Send("kid".to_owned(), Program(vec![call("look", READ)]));
        let mut ops = vec![Op::Spawn("kid".to_owned()), sent, Op::Sleep(1_000)];
        ops.extend(terminate.then(|| Op::Terminate("kid".to_owned(), 500)));
        ops.push(call("look", READ));
        ask(&society, ops).await.unwrap();
        assert_eq!(made.lock().unwrap().len(), made_calls, "{terminate}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{terminate}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_only_code_calls_is_none_to_a_model_that_guesses_its_name() {
    let (said, made) = run(vec![call("_count", "{}"), call("look", READ)]).await;
    assert_eq!(made, [format!("look {READ}")]);
    assert!(said.starts_with("there is no tool `_count`"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn what_the_log_says_of_a_reused_result_names_the_call_that_brought_it() {
    let (bed, made) = (Bed::new(), Made::default());
    let society = open(&bed, &made).await;
    ask(&society, vec![call("look", READ), call("look", READ)]).await.unwrap();
    let calls: Vec<_> = bed
        .events()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::EffectStarted { id, effect: Effect::Tool(call), .. } => Some((id, call)),
            _ => None,
        })
        .collect();
    let [(first, _), (second, reused)] = &*calls else { panic!("{calls:?}") };
    assert_eq!(reused.from.as_ref().map(|from| from.effect), Some(*first));
    let result = bed.events().into_iter().find_map(|recorded| match recorded.event {
        Event::EffectEnded { id, outcome: Outcome::Result(result), .. } if id == *second => Some(result),
        _ => None,
    });
    assert_eq!(result, Some(CallResult { from: Some(*first), ..CallResult::good("look") }));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_again_after_a_write_or_a_failure_or_for_a_reason_and_volatile_ones_always_are() {
    let cases: [(Vec<Op>, usize); 6] = [
        (vec![call("look", READ), call("mark", "{}"), call("look", READ)], 3),
        (vec![call("look", READ), call("peek", READ), call("look", r#"{"path":"b.txt"}"#)], 3),
        (vec![call("fail", READ), call("fail", READ)], 2),
        (vec![call("poll", READ), call("poll", READ)], 2),
        (vec![call("mark", READ), call("mark", READ)], 2),
        (vec![call("look", READ), call("look", r#"{"path":"a.txt","_fresh":"somebody edits it"}"#), call("look", READ)], 2),
    ];
    for (ops, count) in cases {
        let (said, made) = run(ops.clone()).await;
        assert_eq!(made.len(), count, "{ops:?}: {said}");
    }
    let (_, made) = run(vec![call("look", r#"{"_fresh":"why","path":"a.txt"}"#)]).await;
    assert_eq!(made, [r#"look {"path":"a.txt"}"#], "the tool never sees the reason");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_person_agreed_to_is_made() {
    let (bed, made) = (Bed::new(), Made::default());
    let rule = |tool: &str, _: &str| match tool {
        "peek" => polis_domain::Ruling::Ask(String::new()),
        _ => polis_domain::Ruling::Allow,
    };
    let ports = Ports { toolbox: Arc::new(tools(&made).ruled(rule)), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    let sent = submit(&society, vec![call("peek", READ), call("peek", READ)]).await;
    for _ in 0..2 {
        let id = open_effect(&society, is_approval).await;
        society.resolve(id, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    }
    assert_eq!(answer(&society, &sent).await.unwrap(), "peek peek");
    assert_eq!(made.lock().unwrap().len(), 2);
}

fn times(count: usize, tool: &str, arguments: impl Fn(usize) -> String) -> Vec<Op> {
    (0..count).map(|n| call(tool, &arguments(n))).collect()
}

fn thinking(mut ops: Vec<Op>) -> Vec<Op> {
    ops.push(Op::Think("on".to_owned()));
    ops
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_nudged_then_stopped_and_then_the_turn_ends() {
    // The same words in another spelling.
    let query = |n: usize| format!(r#"{{"q":"{}"}}"#, ["where is it", " Where  is it"][n % 2]);
    let (said, _) = run(times(2, "look", query)).await;
    assert!(!said.contains("of its kind"), "{said}");
    let (said, _) = run(thinking(times(6, "look", query))).await;
    assert_eq!(said.matches("of its kind that came to the same").count(), 4, "{said}");
    assert!(said.ends_with("thought(on)") && !said.contains("was not called"), "{said}");
    let (said, made) = run(thinking(times(8, "mark", query))).await;
    assert_eq!((made.len(), said.matches("mark was not called: 6 calls like this one").count()), (6, 2), "{said}");
    assert!(said.contains("(repeated_call)") && said.ends_with("thought(on)"), "{said}");
    let (said, made) = run(thinking(times(9, "mark", query))).await;
    assert_eq!(made.len(), 6);
    assert!(said.ends_with("!call_loop"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn paging_polling_and_mending_are_no_loops() {
    let page = |n: usize| format!(r#"{{"offset":{n}}}"#);
    for (tool, arguments) in [("look", page as fn(usize) -> String), ("mark", page), ("count", |_| READ.to_owned())] {
        let (said, made) = run(thinking(times(20, tool, arguments))).await;
        assert!(made.len() == 20 && said.ends_with("thought(on)") && !said.contains("of its kind"), "{tool}: {said}");
    }
    let (said, _) = run(times(11, "poll", |_| READ.to_owned())).await;
    assert!(!said.contains("of its kind"), "{said}");
    let (said, _) = run(times(12, "poll", |_| READ.to_owned())).await;
    assert!(said.contains("of its kind"), "{said}");
    // A page that is not there is not there at any number.
    let (said, made) = run(times(8, "fail", page)).await;
    assert!(made.len() == 6 && said.contains("of its kind"), "{said}");
    // Something else is written each time, and then the same is looked at and fails.
    let mend = |n: usize| [call("mark", &page(n)), call("fail", READ)];
    let (said, made) = run((0..10).flat_map(mend).collect()).await;
    assert!(made.len() == 20 && !said.contains("of its kind"), "{said}");
    // Two writes in turn, without anything new.
    let (said, made) = run((0..20).map(|n| call("mark", &page(n % 2))).collect()).await;
    assert!(made.len() < 20 && said.contains("was not called"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_tools_that_a_model_was_shown_are_in_the_log_and_named_once() {
    struct Thinks;
    impl polis_engine::Agent for Thinks {
        async fn execute_task(&self, turn: &mut Turn) -> Result<polis_domain::Response, polis_domain::Failure> {
            for tools in
                [turn.tools(), turn.tools(), turn.tools().iter().take(1).cloned().collect(), Arc::default(), turn.tools()]
            {
                turn.model(polis_ports::ModelRequest { tools, ..Default::default() }).await?;
            }
            Ok(polis_domain::Response::new("done"))
        }
    }
    let (mut bed, made) = (Bed::new(), Made::default());
    bed.cast = Cast::new().with(ProgrammedAgent::NAME, Thinks).with_tool(Relay);
    let society = open(&bed, &made).await;
    assert_eq!(society.own_tools().len(), 1);
    ask(&society, vec![]).await.unwrap();
    let shown: Vec<_> = bed
        .events()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::EffectStarted { effect: Effect::Model { tools, .. }, .. } => {
                Some(tools.map(|list| (list.digest, list.names.len())))
            }
            _ => None,
        })
        .collect();
    let [Some((all, 7)), Some((second, 0)), Some((few, 1)), None, Some((last, 0))] = shown[..] else { panic!("{shown:?}") };
    assert!(all == second && all == last && all != few);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_told_the_address_of_its_thread_and_what_the_request_is_about() {
    let (bed, made) = (Bed::new(), Made::default());
    let society = open(&bed, &made).await;
    spawn(&society, &["a1"]).await;
    let unit = Op::Units(vec![Program(vec![call("look", r#"{"n":2}"#)])]);
    let program = Program(vec![call("look", r#"{"n":1}"#), unit, of_a1(vec![call("look", r#"{"n":3}"#)])]);
    let meta = json!({ "currentResourceId": "doc-7" }).as_object().cloned().unwrap();
    let sent = society.send_with_meta(polis_domain::AgentId::root(), &program.text(), None, meta).await.unwrap();
    answer(&society, &sent).await.unwrap();
    let made = made.lock().unwrap();
    let contexts: Vec<_> = made.iter().map(|(_, context)| (context.path.clone(), context.resource.as_deref())).collect();
    let about = Some("doc-7");
    assert_eq!(contexts, [(SubThreadPath::main(), about), (SubThreadPath::create(1), about), (SubThreadPath::main(), about)]);
    assert!(made.iter().all(|(_, context)| context.task == sent.task_id));
}

/// Sets a plan, asks `a1` to approve, and gives what it says.
struct Relay;

impl TurnTool for Relay {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "relay".into(), description: String::new(), parameters, class: EffectClass::Write, volatile: false }
    }

    async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult {
        let steps = vec![Step { text: arguments.to_owned(), status: StepStatus::InProgress, ..Step::default() }];
        turn.set_plan(Plan { steps, ..Plan::default() }).await.unwrap();
        let program = Program(vec![Op::Approve("may I?".to_owned())]);
        match turn.ask(&"a1".into(), &program.text(), Duration::from_secs(600)).await {
            Ok(said) => CallResult::good(format!("{said} {}", turn.plan().await)),
            Err(failure) => CallResult::failed(failure.to_string()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_turn_does_itself_waits_outside_memory_survives_a_restart_and_is_done_once() {
    let (mut bed, made) = (Bed::new(), Made::default());
    bed.cast = bed.cast.with_tool(Relay);
    bed.options.max_lingering = 0;
    let first = open(&bed, &made).await;
    spawn(&first, &["a1"]).await;
    let sent =
        submit(&first, vec![call("look", "{}"), call("relay", "step"), call("look", "{}"), Op::Think("on".to_owned())]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    let second = open(&bed, &made).await;
    open_effect(&second, |kind, _| matches!(kind, OpenKind::Ask(_))).await;
    second.resolve(id, Resolution::Outcome(Outcome::Verdict(Verdict::yes()))).await.unwrap();
    let said = answer(&second, &sent).await.unwrap();
    assert_eq!(said, "look approved 1. [>] step\n look thought(on)");
    assert_eq!(made.lock().unwrap().len(), 2, "the person has spoken since");
    let events = bed.events();
    let count = |which: fn(&Event) -> bool| events.iter().filter(|recorded| which(&recorded.event)).count();
    assert_eq!(count(|event| matches!(event, Event::PlanSet { .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::EffectStarted { effect: Effect::Ask { .. }, .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if call.own)), 1);
    let thread = second.thread(&"root".into(), &SubThreadPath::main()).await.unwrap();
    assert_eq!(thread.settings.rest["plan"]["steps"][0]["status"], "in_progress");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_turn_does_itself_can_be_asked_about_and_denied() {
    for (verdict, ruling) in [(Some(Verdict::yes()), "ask"), (Some(Verdict::no("not now")), "ask"), (None, "deny")] {
        let (mut bed, made) = (Bed::new(), Made::default());
        bed.cast = bed.cast.with_tool(Relay);
        let rule = move |tool: &str, _: &str| match (tool, ruling) {
            ("relay", "ask") => polis_domain::Ruling::Ask(String::new()),
            ("relay", _) => polis_domain::Ruling::Deny("no".to_owned()),
            _ => polis_domain::Ruling::Allow,
        };
        let ports = Ports { toolbox: Arc::new(tools(&made).ruled(rule)), ..bed.ports(bed.log.clone()) };
        let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
        let sent = submit(&society, vec![call("relay", "step")]).await;
        let approved = verdict.as_ref().is_some_and(|verdict| verdict.approved);
        if let Some(verdict) = verdict {
            let id = open_effect(&society, is_approval).await;
            society.resolve(id, Resolution::Outcome(Outcome::Verdict(verdict))).await.unwrap();
        }
        let said = answer(&society, &sent).await.unwrap();
        let planned = bed.events().iter().any(|recorded| matches!(recorded.event, Event::PlanSet { .. }));
        assert_eq!(planned, approved, "{said}");
        assert_eq!(said.contains("unknown_agent"), approved, "nobody is called a1: {said}");
    }
}
