//! Models that fail, and budgets that run out: seen from the society, in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use polis_domain::{
    AgentId, Attempt, Budget, BudgetScope, Budgets, Event, Failure, Finish, OpenKind, Outcome, Resolution, Response, Stage,
    Target, Usage, Verdict,
};
use polis_engine::{Agent, Cast, Ports, Society, Turn};
use polis_ports::{ChatMessage, Delta, DeltaStream, Frame, Model, ModelError, ModelRequest};
use polis_testkit::{Op, ProgrammedAgent, ScriptedModel, ScriptedReply, worker_role, world};
use proptest::prelude::*;

use crate::bed::*;

/// What a model was asked, and when.
type Heard = Arc<Mutex<Vec<(String, tokio::time::Instant)>>>;

async fn open_with(bed: &Bed, model: ScriptedModel) -> Society {
    let ports = Ports { model: Arc::new(model), ..bed.ports(bed.log.clone()) };
    Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
}

/// Fails as the list says, one entry for each request, and then answers.
fn failing(errors: Vec<ModelError>) -> (ScriptedModel, Heard) {
    let (heard, mut errors) = (Heard::default(), errors.into_iter());
    let (noted, errors) = (heard.clone(), Mutex::new(move || errors.next()));
    let model = ScriptedModel::new(move |request| {
        noted.lock().unwrap().push((request.model.to_string(), tokio::time::Instant::now()));
        match (errors.lock().unwrap())() {
            Some(error) => ScriptedReply::error(error),
            None => ScriptedReply::text(&world::model_reply(request)),
        }
    });
    (model, heard)
}

fn failed(retry_after: Option<u64>) -> ModelError {
    ModelError::Failed { reason: "down".to_owned(), retry_after: retry_after.map(Duration::from_secs) }
}

fn rejected() -> ModelError {
    ModelError::Rejected { reason: "no such model".to_owned() }
}

fn attempts(bed: &Bed) -> Vec<Attempt> {
    let of = |event| match event {
        Event::EffectRetried { attempt, .. } => Some(attempt),
        _ => None,
    };
    bed.events().into_iter().filter_map(|recorded| of(recorded.event)).collect()
}

fn one_model_error() -> impl Strategy<Value = Option<ModelError>> {
    let throttled = |after: Option<u64>| ModelError::Throttled {
        reason: "slow down".to_owned(),
        retry_after: after.map(Duration::from_secs),
    };
    prop_oneof![
        2 => Just(()).prop_map(|()| Some(failed(None))),
        1 => (0..20_u64).prop_map(|after| Some(failed(Some(after)))),
        2 => prop::option::of(0..20_u64).prop_map(move |after| Some(throttled(after))),
        1 => Just(()).prop_map(|()| Some(ModelError::Cut { reason: "cut".to_owned() })),
        1 => Just(()).prop_map(|()| Some(ModelError::Unreachable("nobody".into()))),
        1 => Just(()).prop_map(|()| Some(rejected())),
        3 => Just(()).prop_map(|()| None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// P11, as D09 has it: at most three retries, after 1, 2 and 4 seconds or as long as the vendor says, none after the last.
    #[test]
    fn a_model_is_asked_again_at_most_three_times_after_one_two_and_four_seconds(
        errors in prop::collection::vec(one_model_error(), 8)
    ) {
        let mut whole = Vec::new();
        for error in errors {
            match error {
                Some(error) => whole.push(error),
                None => break,
            }
        }
        let waits: Vec<Option<Duration>> = whole.iter().enumerate().map_while(|(i, error)| {
            let wait = error.retry_after().unwrap_or_default().max(Duration::from_secs(1 << i.min(2)));
            (i < 3).then_some(error.is_passing().then_some(wait))
        }).collect();
        let retries = waits.iter().take_while(|wait| wait.is_some()).count();
        let answered = whole.len() == retries;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async move {
            let bed = Bed::new();
            let (model, heard) = failing(whole);
            let society = open_with(&bed, model).await;
            let said = ask(&society, vec![Op::Think("x".into())]).await.unwrap();
            let heard = heard.lock().unwrap().clone();
            assert_eq!(heard.len(), retries + 1);
            assert_eq!(said == "thought(x)", answered, "{said}");
            for (i, pair) in heard.windows(2).enumerate() {
                assert_eq!(Some(pair[1].1 - pair[0].1), waits[i]);
            }
            let logged = attempts(&bed);
            let delays: Vec<_> = logged.iter().map(|attempt| Duration::from_millis(attempt.delay_ms)).collect();
            assert_eq!(delays, waits.iter().take(retries).map(|wait| wait.unwrap()).collect::<Vec<_>>());
            assert!(logged.iter().zip(1..).all(|(attempt, n)| attempt.attempt == n && attempt.max_retries == 3));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_with_several_models_turns_to_the_next_when_one_fails() {
    let mut bed = Bed::new();
    let mut role = worker_role();
    role.models = vec!["a/x".into(), "b/y".into(), "c/z".into()];
    bed.options.role = Arc::new(role);
    let (model, heard) = failing(vec![failed(None), failed(None), failed(None), failed(None), rejected()]);
    let society = open_with(&bed, model).await;
    assert_eq!(ask(&society, vec![Op::Think("x".into())]).await.unwrap(), "thought(x)");
    let asked: Vec<_> = heard.lock().unwrap().iter().map(|(model, _)| model.clone()).collect();
    assert_eq!(asked, ["a/x", "a/x", "a/x", "a/x", "b/y", "c/z"]);
    let nexts: Vec<_> = attempts(&bed).iter().map(|attempt| attempt.next.to_string()).collect();
    assert_eq!(nexts, ["a/x", "a/x", "a/x", "b/y", "c/z"]);
}

#[tokio::test(start_paused = true)]
async fn a_society_has_models_of_its_own_and_may_change_them_between_runs() {
    let mut bed = Bed::new();
    bed.options.models = vec!["a/x".into(), "b/y".into()];
    let (model, heard) = failing(vec![rejected()]);
    let first = open_with(&bed, model).await;
    let sent = submit(&first, vec![Op::Think("x".into()), Op::Approve("go on?".into())]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    assert_eq!(heard.lock().unwrap().len(), 2);

    bed.options.models = vec!["c/z".into()];
    let (model, heard) = failing(Vec::new());
    let second = open_with(&bed, model).await;
    second.resolve(id, verdict(true)).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(x) approved");
    assert!(heard.lock().unwrap().is_empty(), "a reply that is in the log is not asked for again");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_across_a_crash() {
    let bed = Bed::new();
    let (model, _) = failing((0..9).map(|_| failed(None)).collect());
    let first = open_with(&bed, model).await;
    let sent = submit(&first, vec![Op::Think("x".into())]).await;
    until_retried(&first, 2).await;
    first.stop(Duration::ZERO).await;

    let (model, heard) = failing((0..9).map(|_| failed(None)).collect());
    let second = open_with(&bed, model).await;
    assert_eq!(answer(&second, &sent).await.unwrap(), "!model_failed");
    assert_eq!(heard.lock().unwrap().len(), 2, "the third retry and the fourth attempt in all");
    assert_eq!(attempts(&bed).len(), 3);
}

async fn until_retried(society: &Society, times: usize) {
    let mut watch = society.watch(polis_domain::Seq(0));
    let mut seen = 0;
    while seen < times {
        let event = watch.next_event().await.unwrap().unwrap();
        seen += usize::from(matches!(event.event, Event::EffectRetried { .. }));
    }
}

/// Writes down the calls that it is given, and never makes them.
struct Notes(Arc<Mutex<Vec<usize>>>);

impl Agent for Notes {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = ModelRequest { messages: vec![ChatMessage::user("x")], ..ModelRequest::default() };
        let reply = turn.model(request).await?;
        self.0.lock().unwrap().push(reply.tool_calls.len());
        Ok(Response::new(format!("{:?}", reply.finish)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_off_is_never_given_to_the_agent() {
    let mut bed = Bed::new();
    let notes = Arc::default();
    bed.cast = Cast::new().with(ProgrammedAgent::NAME, Notes(Arc::clone(&notes)));
    let cut = ScriptedModel::new(|_| ScriptedReply::call("1", "mark", "{}").and_call("2", "mark", "{").ending(Finish::Length));
    let society = open_with(&bed, cut).await;
    assert_eq!(ask(&society, vec![]).await.unwrap(), "Length");
    assert_eq!(*notes.lock().unwrap(), [1]);
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_is_told_of_chunks_of_a_failure_and_of_a_stop() {
    let bed = Bed::new();
    let slow = ScriptedModel::new(|request| match &*world::model_reply(request) {
        "thought(slow)" => ScriptedReply::text("never").after(Duration::from_secs(9_999)),
        "thought(bad)" => ScriptedReply::error(rejected()),
        thought => ScriptedReply::text(thought),
    });
    let ports = Ports { model: Arc::new(slow), ..bed.ports(bed.log.clone()) };
    let mut live = ports.live.watch(&"main".into(), None);
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    let think = |text: &str| Op::Think(text.to_owned());
    ask(&society, vec![think("x"), think("bad")]).await.unwrap();
    let sent = submit(&society, vec![think("slow")]).await;
    open_effect(&society, |kind, _| matches!(kind, OpenKind::Model(_))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    society.cancel(Target::Task(sent.task_id.clone()), "enough").await.unwrap();
    answer(&society, &sent).await.unwrap_err();
    let mut told = Vec::new();
    while !told.contains(&"stopped".to_owned()) {
        use futures_util::StreamExt;
        if let Frame::Delta(streamed) = live.next().await.unwrap() {
            told.push(match &streamed.delta {
                Delta::Content(text) => text.clone(),
                Delta::Error(failure) => failure.code.to_string(),
                Delta::Stopped => "stopped".to_owned(),
                Delta::Done(_) => "done".to_owned(),
                _ => continue,
            });
        }
    }
    assert_eq!(told, ["thought(x)", "done", "model_rejected", "stopped"]);
}

fn verdict(approved: bool) -> Resolution {
    Resolution::Outcome(Outcome::Verdict(Verdict { approved, reason: "dear".to_owned(), ..Verdict::yes() }))
}

fn is_grant(kind: &OpenKind, _: Stage) -> bool {
    matches!(kind, OpenKind::Grant(_))
}

fn tokens(tokens: u64) -> Budget {
    Budget { tokens: Some(tokens), ..Budget::default() }
}

/// Each reply costs a hundred tokens; the last messages that it hears are kept.
fn costly() -> (ScriptedModel, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let noted = heard.clone();
    let model = ScriptedModel::new(move |request| {
        let last = match request.messages.last() {
            Some(ChatMessage::User { text, .. }) => text.to_string(),
            _ => String::new(),
        };
        noted.lock().unwrap().push(last);
        let usage = Usage { output_tokens: 100, cost_nanos: 7, ..Usage::default() };
        ScriptedReply::text(&world::model_reply(request)).costing(usage).after(Duration::from_secs(1))
    });
    (model, heard)
}

fn thoughts(count: usize) -> Vec<Op> {
    (0..count).map(|i| Op::Think(i.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_waits_for_a_person_even_across_a_restart() {
    let mut bed = Bed::new();
    bed.options.budgets = Budgets { task: tokens(200), ..Budgets::default() };
    let first = open_with(&bed, costly().0).await;
    let sent = submit(&first, thoughts(4)).await;
    open_effect(&first, is_grant).await;
    first.stop(Duration::ZERO).await;

    let (model, heard) = costly();
    let second = open_with(&bed, model).await;
    let id = open_effect(&second, is_grant).await;
    second.resolve(id, verdict(true)).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(0) thought(1) thought(2) thought(3)");
    assert_eq!(heard.lock().unwrap().len(), 2);
    let granted = bed.events().into_iter().filter(|recorded| matches!(recorded.event, Event::BudgetGranted { .. })).count();
    assert_eq!(granted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_grants_nothing_leaves_the_agent_with_what_it_has() {
    let mut bed = Bed::new();
    bed.options.budgets = Budgets { agent: tokens(200), ..Budgets::default() };
    let society = open_with(&bed, costly().0).await;
    let sent = submit(&society, thoughts(3)).await;
    let id = open_effect(&society, is_grant).await;
    society.resolve(id, verdict(false)).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "thought(0) thought(1) !budget_exhausted");
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_when_four_fifths_are_used() {
    let mut bed = Bed::new();
    bed.options.budgets = Budgets { society: tokens(240), ..Budgets::default() };
    let (model, heard) = costly();
    let society = open_with(&bed, model).await;
    assert_eq!(ask(&society, thoughts(3)).await.unwrap(), "thought(0) thought(1) thought(2)");
    let heard = heard.lock().unwrap();
    let told: Vec<_> =
        heard.iter().map(|last| last.contains("[polis] Budget: 83 % of the 240 tokens of the society are used")).collect();
    assert_eq!(told, [false, false, true]);
}

/// Asks without saying how long the reply may be.
struct AsksFreely;

impl Agent for AsksFreely {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = ModelRequest { messages: vec![ChatMessage::user("go on")], ..ModelRequest::default() };
        turn.model(request).await.map(|reply| Response::new(reply.text))
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_limited_only_where_a_budget_is_near_its_end_or_says_so_for_each_call() {
    let large = Budget { tokens: Some(1_000_000), ..Budget::default() };
    for (budgets, limit) in [
        (Budgets::default(), None),
        (Budgets::recommended(), None),
        (Budgets { task: tokens(5_000), ..Budgets::default() }, Some(8_192)),
        (Budgets { call: large, ..Budgets::recommended() }, Some(8_192)),
    ] {
        let mut bed = Bed::new();
        bed.options.budgets = budgets.clone();
        let limits = Arc::<Mutex<Vec<Option<u32>>>>::default();
        let noted = limits.clone();
        let model = ScriptedModel::new(move |request| {
            noted.lock().unwrap().push(request.settings.max_tokens);
            ScriptedReply::text("a long story")
        });
        let ports = Ports { model: Arc::new(model), ..bed.ports(bed.log.clone()) };
        let cast = Cast::new().with(ProgrammedAgent::NAME, AsksFreely);
        let society = Society::open("main".into(), ports, cast, bed.options.clone()).await.unwrap();
        let sent = society.submit("tell me").await.unwrap();
        society.answer(&sent).await.unwrap();
        assert_eq!(*limits.lock().unwrap(), [limit], "{budgets:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_when_a_conversation_nearly_fills_what_its_model_sees() {
    let bed = Bed::new();
    let (model, heard) = costly();
    let society = open_with(&bed, model.seeing(100)).await;
    for length in [200, 400] {
        ask(&society, vec![Op::Think("x".repeat(length))]).await.unwrap();
    }
    let told: Vec<_> = heard.lock().unwrap().iter().map(|last| last.starts_with("[polis] This conversation fills")).collect();
    assert_eq!(told, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_fit_beside_others_wait_and_are_not_asked_about() {
    let mut bed = Bed::new();
    bed.options.budgets = Budgets { society: tokens(350), ..Budgets::default() };
    let (model, _) = costly();
    let society = open_with(&bed, model).await;
    spawn(&society, &["a1", "a2", "a3"]).await;
    let mut sent = Vec::new();
    for agent in ["a1", "a2", "a3"] {
        let program = polis_testkit::Program(vec![Op::Think(agent.to_owned())]);
        sent.push(society.send(AgentId::from(agent), &program.text(), None).await.unwrap());
    }
    for sent in &sent {
        answer(&society, sent).await.unwrap();
    }
    let grants = bed.events().into_iter().filter(|recorded| is_grant_event(&recorded.event)).count();
    let spent = society.look(|spine| spine.ledger[&BudgetScope::Society].spent.tokens).await.unwrap();
    assert_eq!((grants, spent), (0, 300));
}

fn is_grant_event(event: &Event) -> bool {
    matches!(event, Event::EffectStarted { effect: polis_domain::Effect::Grant { .. }, .. })
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_its_time_is_over() {
    let mut bed = Bed::new();
    let call = Budget { time_ms: Some(500), ..Budget::default() };
    bed.options.budgets = Budgets { call, ..Budgets::default() };
    let society = open_with(&bed, costly().0).await;
    assert_eq!(ask(&society, thoughts(1)).await.unwrap(), "!model_cut");
}

#[tokio::test(start_paused = true)]
async fn an_answer_and_its_message_say_what_they_cost() {
    let bed = Bed::new();
    let society = open_with(&bed, costly().0).await;
    let sent = submit(&society, thoughts(2)).await;
    let envelope = society.answer(&sent).await.unwrap();
    let usage = &envelope.payload.meta["usage"];
    assert_eq!(
        (usage["tokens"].as_u64(), usage["costNanos"].as_u64(), usage["requests"].as_u64()),
        (Some(200), Some(14), Some(2))
    );
    let thread = society.thread(&"root".into(), &Default::default()).await.unwrap();
    let message = thread.messages.iter().find(|message| message.sender == polis_domain::Sender::Bot).unwrap();
    assert_eq!(message.meta["usage"]["outputTokens"], 200);
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_shorten_the_wait_that_a_vendor_asked_for() {
    let bed = Bed::new();
    let (model, _) = failing(vec![failed(Some(60))]);
    let first = open_with(&bed, model).await;
    let sent = submit(&first, vec![Op::Think("x".into())]).await;
    until_retried(&first, 1).await;
    let begun = tokio::time::Instant::now();
    first.stop(Duration::ZERO).await;

    // The clock of the bed starts anew with each society, at the time at which the first one began.
    let (model, heard) = failing(Vec::new());
    let second = open_with(&bed, model).await;
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(x)");
    let waited = heard.lock().unwrap()[0].1 - begun;
    assert!(waited >= Duration::from_secs(59), "it waited only {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_nobody_counted_is_counted_by_us_and_a_vendor_that_rests_was_not_asked() {
    let mut bed = Bed::new();
    bed.options.budgets = Budgets { society: tokens(1_000_000), ..Budgets::default() };
    let resting = || ModelError::Resting { vendor: "v".into(), failures: 5, retry_after: Duration::from_secs(9) };
    let (heard, errors) = (Heard::default(), Mutex::new(vec![resting(), resting(), failed(None), failed(None), failed(None)]));
    let noted = heard.clone();
    let model = ScriptedModel::new(move |request| {
        noted.lock().unwrap().push((request.model.to_string(), tokio::time::Instant::now()));
        match errors.lock().unwrap().pop() {
            Some(error) => ScriptedReply::error(error),
            None => ScriptedReply::text(&"words ".repeat(100)).costing(Usage::default()),
        }
    });
    let society = open_with(&bed, model).await;
    assert!(ask(&society, vec![Op::Think("x".into())]).await.unwrap().starts_with("words"));
    let spent = society.look(|spine| spine.ledger[&BudgetScope::Society].spent).await.unwrap();
    assert_eq!(spent.requests, 4, "three that failed and one that answered");
    assert!(spent.tokens > 100, "{spent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_form_that_a_provider_refuses_is_an_attempt_and_the_next_one_follows_at_once() {
    let bed = Bed::new();
    let (model, heard) = failing(vec![ModelError::Adapted { reason: "response_format".to_owned() }]);
    let society = open_with(&bed, model).await;
    assert_eq!(ask(&society, vec![Op::Think("x".into())]).await.unwrap(), "thought(x)");
    let heard = heard.lock().unwrap().clone();
    assert_eq!((heard.len(), heard[0].1), (2, heard[1].1));
    let logged = attempts(&bed);
    let logged: Vec<_> = logged.iter().map(|attempt| (&*attempt.failure.code, attempt.delay_ms)).collect();
    assert_eq!(logged, [("model_adapted", 0)]);
    assert_eq!(requests(&society).await, 2);
}

/// Breaks off once within its reply and then answers.
#[derive(Default)]
struct BreaksOff(AtomicUsize);

#[async_trait]
impl Model for BreaksOff {
    async fn stream(&self, _: ModelRequest) -> Result<DeltaStream, ModelError> {
        let words = Ok(Delta::Content("words ".repeat(100)));
        let cut = Err(ModelError::Cut { reason: "the connection was lost".to_owned() });
        let is_first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let answer = [Ok(Delta::Content("yes".to_owned())), Ok(Delta::Done(Finish::Stop))];
        Ok(Box::pin(stream::iter(if is_first { vec![words, cut] } else { answer.into() })))
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_breaks_off_is_counted_although_the_vendor_does_not_report_it() {
    let bed = Bed::new();
    let ports = Ports { model: Arc::new(BreaksOff::default()), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    assert_eq!(ask(&society, vec![Op::Think("x".into())]).await.unwrap(), "yes");
    let spent = society.look(|spine| spine.ledger[&BudgetScope::Society].spent).await.unwrap();
    assert!(spent.requests == 2 && spent.tokens > 100, "{spent:?}");
}

async fn requests(society: &Society) -> u64 {
    society.look(|spine| spine.ledger[&BudgetScope::Society].spent.requests).await.unwrap()
}

/// Answers after so long that nobody waits for it.
fn silent() -> ScriptedModel {
    ScriptedModel::new(|_| ScriptedReply::text("never").after(Duration::from_secs(9_999)))
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_end_nobody_saw_before_a_restart_is_logged_and_counted() {
    let bed = Bed::new();
    let first = open_with(&bed, silent()).await;
    let sent = submit(&first, vec![Op::Think("x".into())]).await;
    open_effect(&first, |kind, _| matches!(kind, OpenKind::Model(_))).await;
    first.stop(Duration::ZERO).await;
    assert_eq!(attempts(&bed), []);

    let (model, heard) = failing((0..3).map(|_| failed(None)).collect());
    let second = open_with(&bed, model).await;
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(x)", "it uses up no retry");
    assert_eq!(heard.lock().unwrap().len(), 4);
    let codes: Vec<_> = attempts(&bed).iter().map(|attempt| (attempt.failure.code.to_string(), attempt.attempt)).collect();
    let failed = |n| ("model_failed".to_owned(), n);
    assert_eq!(codes, [("model_interrupted".to_owned(), 0), failed(1), failed(2), failed(3)]);
    assert_eq!(requests(&second).await, 5, "one of the first process and four of the second");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_while_the_model_works_is_counted() {
    let bed = Bed::new();
    let society = open_with(&bed, silent()).await;
    let sent = submit(&society, vec![Op::Think("x".into())]).await;
    open_effect(&society, |kind, _| matches!(kind, OpenKind::Model(_))).await;
    society.cancel(Target::Task(sent.task_id.clone()), "enough").await.unwrap();
    answer(&society, &sent).await.unwrap_err();
    assert_eq!(requests(&society).await, 1);
}
