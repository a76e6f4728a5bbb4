//! Asking a person for words; and what running calls ask, of the person and of models.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{
    Answer, Budget, BudgetScope, Budgets, CallResult, EffectClass, EffectId, Event, Failure, Inquiry, InquiryId, OpenInquiry,
    OpenKind, Outcome, Question, Resolution, Response, Role, Ruling, Stage, Verdict, Wanted,
};
use polis_engine::{Agent, Cast, Ports, Society, Turn};
use polis_ports::{CallContext, Caller, ChatMessage, ModelRequest, ToolError, ToolSpec, Toolbox};
use polis_testkit::{Op, worker_role};
use serde_json::json;

use crate::bed::*;

/// Tools that need to know something before they can go on; `lends` is the policy.
struct Asking {
    done: Arc<Mutex<Vec<(EffectClass, String)>>>,
    lends: Ruling,
}

#[async_trait]
impl Toolbox for Asking {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let tool = |(name, class): (&str, EffectClass)| ToolSpec {
            name: name.into(),
            description: name.to_owned(),
            parameters: json!({ "type": "object" }),
            class,
            volatile: false,
        };
        let (read, write) = (EffectClass::Read, EffectClass::Write);
        [("poll", read), ("poll_once", write), ("sample", write), ("sample_and_go", write), ("ask_person", read)]
            .map(tool)
            .into()
    }

    fn ruling(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Ruling {
        match tool {
            "ask_person" => Ruling::Person(Question::words(arguments, vec!["red".to_owned(), "blue".to_owned()])),
            _ => Ruling::Allow,
        }
    }

    fn sampling_ruling(&self, _: &str, _: &Caller<'_>) -> Ruling {
        self.lends.clone()
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.done.lock().unwrap().push((EffectClass::Write, tool.to_owned()));
        let host = context.host.clone().unwrap();
        match tool {
            "poll" | "poll_once" => {
                let mut schema = json!({ "properties": { "name": { "type": "string" } } });
                if arguments.contains("default") {
                    schema = json!({ "properties": { "name": { "type": "string", "default": "Eve" } }, "required": ["name"] });
                }
                let wanted = Wanted::Form { schema };
                let said = host.ask_person("s", Question { text: arguments.to_owned(), wanted, patience_ms: None }).await;
                let told = match said {
                    Some(Verdict { approved: true, answer: Some(answer), .. }) => format!("filled {answer}"),
                    Some(_) => "declined".to_owned(),
                    None => "cancelled".to_owned(),
                };
                Ok(CallResult::good(told))
            }
            "sample" => Ok(match host.ask_model("s", request(arguments)).await {
                Ok(reply) => CallResult::good(reply.text),
                Err(failure) => CallResult::failed(failure.to_string()),
            }),
            _ => {
                let prompt = arguments.to_owned();
                tokio::spawn(async move { host.ask_model("s", request(&prompt)).await });
                tokio::task::yield_now().await;
                Ok(CallResult::good("gone"))
            }
        }
    }
}

fn request(prompt: &str) -> ModelRequest {
    ModelRequest { messages: vec![ChatMessage::user(prompt)], ..ModelRequest::default() }
}

async fn open(bed: &Bed, lends: Ruling) -> Society {
    let toolbox = Arc::new(Asking { done: bed.done.clone(), lends });
    let ports = Ports { toolbox, ..bed.ports(bed.log.clone()) };
    Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
}

fn say(verdict: Verdict) -> Resolution {
    Resolution::Outcome(Outcome::Verdict(verdict))
}

async fn question(society: &Society) -> EffectId {
    open_effect(society, |kind, stage| matches!(kind, OpenKind::Question(_)) && stage == Stage::Waiting).await
}

/// Waits until a call asks the person.
async fn inquiry(society: &Society) -> InquiryId {
    let is_persons = |open: &OpenInquiry| matches!(open, OpenInquiry::Person { .. });
    until(society, move |spine| spine.inquiries.iter().find(|(_, open)| is_persons(open)).map(|(id, _)| *id)).await
}

fn filled() -> Option<Verdict> {
    Some(Verdict { answer: Some(json!({ "name": "Ada" })), ..Verdict::yes() })
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_a_question_waits_across_a_restart_and_gives_the_persons_words() {
    let bed = Bed::new();
    let first = open(&bed, Ruling::Allow).await;
    let sent = submit(&first, vec![call("ask_person", "which colour?"), Op::Think("go on".into())]).await;
    let id = question(&first).await;
    first.stop(Duration::ZERO).await;

    let second = open(&bed, Ruling::Allow).await;
    assert_eq!(question(&second).await, id);
    let refused = second.resolve(id, say(Verdict::words("green"))).await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains("red, blue")), ("bad_answer", true));
    second.resolve(id, say(Verdict::words("blue"))).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "blue thought(go on)");

    let sent = submit(&second, vec![call("ask_person", "which colour?")]).await;
    let id = question(&second).await;
    second.resolve(id, say(Verdict::no("neither"))).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "the person declined to answer: \"neither\"; do not ask again");
    assert!(bed.done.lock().unwrap().is_empty(), "no tool was run");
}

/// Asks for a colour, and says it.
struct Painter;

impl Agent for Painter {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let patience = (&*turn.task().message == "hurry").then_some(Duration::from_secs(5));
        let colour = turn.ask_person("which colour?", &["red", "blue"], patience).await?;
        Ok(Response::new(format!("painted {colour}")))
    }
}

#[tokio::test(start_paused = true)]
async fn an_agents_own_question_leaves_memory_and_is_answered_declined_or_too_late() {
    let mut bed = Bed::new();
    bed.cast = Cast::new().with("painter", Painter);
    bed.options.role = Arc::new(Role { behaviour: "painter".into(), ..worker_role() });
    bed.options.max_lingering = 0;
    let society = bed.open().await;
    let sent = society.submit("paint").await.unwrap();
    let id = question(&society).await;
    society.resolve(id, say(Verdict::words("red"))).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "painted red");
    let sent = society.submit("paint").await.unwrap();
    let id = question(&society).await;
    society.resolve(id, say(Verdict::no("no paint"))).await.unwrap();
    assert_eq!(answer(&society, &sent).await, Err("declined".to_owned()));
    let sent = society.submit("hurry").await.unwrap();
    assert_eq!(answer(&society, &sent).await, Err("timed_out".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_running_call_asks_the_person_and_goes_on_with_the_answer() {
    let bed = Bed::new();
    let society = open(&bed, Ruling::Allow).await;
    for (said, result) in [(filled(), r#"filled {"name":"Ada"}"#), (Some(Verdict::no("")), "declined"), (None, "cancelled")] {
        let sent = submit(&society, vec![call("poll_once", "who?")]).await;
        let id = inquiry(&society).await;
        let wrong = society.reply(id, Some(Verdict::words("Ada"))).await.unwrap_err();
        assert_eq!(wrong.code(), "bad_answer");
        society.reply(id, said).await.unwrap();
        assert_eq!(answer(&society, &sent).await.unwrap(), result);
        assert_eq!(society.reply(id, None).await.unwrap_err().code(), "not_open");
    }
    let events = bed.events();
    let asked = events.iter().filter(|it| matches!(&it.event, Event::CallInquired { by, .. } if &**by == "s")).count();
    let answered = events.iter().filter(|it| matches!(it.event, Event::CallAnswered { .. })).count();
    assert_eq!((asked, answered), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_leaves_out_of_a_form_has_its_default_in_the_log() {
    let bed = Bed::new();
    let society = open(&bed, Ruling::Allow).await;
    let sent = submit(&society, vec![call("poll", "default")]).await;
    let id = inquiry(&society).await;
    society.reply(id, Some(Verdict { answer: Some(json!({})), ..Verdict::yes() })).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), r#"filled {"name":"Eve"}"#);
    let log = bed.events();
    let answers: Vec<_> = log
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::CallAnswered { answer: Answer::Verdict(verdict), .. } => verdict.answer.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [json!({ "name": "Eve" })]);
}

/// The process ends while a call waits for the person: a read asks anew, a write is in doubt.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_is_void_after_a_crash_and_the_calls_own_fate_decides() {
    let bed = Bed::new();
    let first = open(&bed, Ruling::Allow).await;
    let sent = submit(&first, vec![call("poll", "who?")]).await;
    let lost = inquiry(&first).await;
    first.stop(Duration::ZERO).await;
    let second = open(&bed, Ruling::Allow).await;
    let again = until(&second, move |spine| spine.inquiries.keys().find(|id| **id != lost).copied()).await;
    assert_eq!(second.reply(lost, filled()).await.unwrap_err().code(), "not_open");
    second.reply(again, filled()).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), r#"filled {"name":"Ada"}"#);

    let sent = submit(&second, vec![call("poll_once", "who?"), Op::Think("on".into())]).await;
    let lost = inquiry(&second).await;
    second.stop(Duration::ZERO).await;
    let third = open(&bed, Ruling::Allow).await;
    let doubted = open_effect(&third, |_, stage| stage == Stage::InDoubt).await;
    assert_eq!(third.reply(lost, filled()).await.unwrap_err().code(), "not_open");
    third.resolve(doubted, Resolution::Again).await.unwrap();
    let id = inquiry(&third).await;
    third.reply(id, filled()).await.unwrap();
    assert_eq!(answer(&third, &sent).await.unwrap(), r#"filled {"name":"Ada"} thought(on)"#);
    // All of it is in the log: a further run asks nobody.
    third.stop(Duration::ZERO).await;
    let fourth = open(&bed, Ruling::Allow).await;
    assert_eq!(answer(&fourth, &sent).await.unwrap(), r#"filled {"name":"Ada"} thought(on)"#);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_a_call_asks_is_paid_by_whoever_calls() {
    let bed = Bed::new();
    let society = open(&bed, Ruling::Allow).await;
    let spent = |society: &Society| {
        let society = society.clone();
        async move {
            let spent = |spine: &polis_domain::Spine, scope: BudgetScope| spine.ledger.get(&scope).copied().unwrap_or_default();
            society
                .look(move |spine| (spent(spine, BudgetScope::Society), spent(spine, BudgetScope::Agent("root".into()))))
                .await
                .unwrap()
        }
    };
    assert_eq!(ask(&society, vec![call("sample", "hi")]).await.unwrap(), "thought(hi)");
    let (all, own) = spent(&society).await;
    assert_eq!(all, own);
    assert!(all.spent.requests == 1 && all.spent.tokens > 0 && all.reserved.tokens == 0, "{all:?}");
    // A server that does not wait for the words pays for them all the same.
    assert_eq!(ask(&society, vec![call("sample_and_go", "hi")]).await.unwrap(), "gone");
    let (after, _) = spent(&society).await;
    assert_eq!((after.spent.requests, after.reserved.tokens), (2, 0));
    let answers = bed.events().into_iter().filter_map(|it| match it.event {
        Event::CallAnswered { answer: Answer::Reply(reply), spent: Some(spent), .. } => Some((reply.text, spent.requests)),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), vec![("thought(hi)".to_owned(), 1); 2]);
    society.stop(Duration::ZERO).await;
    let again = open(&bed, Ruling::Allow).await;
    assert_eq!(spent(&again).await.0, after);
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_a_model_as_the_policy_says_and_within_the_budget() {
    let mut bed = Bed::new();
    let society = open(&bed, Ruling::Deny("servers think for themselves".to_owned())).await;
    let said = ask(&society, vec![call("sample", "hi")]).await.unwrap();
    assert_eq!(said, "s/sampling may not be used here: servers think for themselves (policy_denied)");
    society.stop(Duration::ZERO).await;

    let society = open(&bed, Ruling::Ask("It is not trusted.".to_owned())).await;
    let sent = submit(&society, vec![call("sample", "hi")]).await;
    let id = inquiry(&society).await;
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 0, "nothing is sent before a person agrees");
    let shown = bed.events().into_iter().find_map(|it| match it.event {
        Event::CallInquired { inquiry: Inquiry::Person { details, .. }, .. } => Some(details["prompt"].clone()),
        _ => None,
    });
    assert_eq!(shown, Some(json!("hi")));
    society.reply(id, Some(Verdict::yes())).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "thought(hi)");
    let sent = submit(&society, vec![call("sample", "hi")]).await;
    let id = inquiry(&society).await;
    society.reply(id, Some(Verdict::no("not now"))).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "a person did not agree: not now (declined)");
    society.stop(Duration::ZERO).await;

    bed.options.budgets = Budgets { society: Budget { requests: Some(1), ..Budget::default() }, ..Budgets::default() };
    let society = open(&bed, Ruling::Allow).await;
    let said = ask(&society, vec![call("sample", "hi")]).await.unwrap();
    assert!(said.ends_with("nothing is left for this (budget_exhausted)"), "{said}");
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 1);
}

/// The person answers one call of a reply while another one still runs.
#[tokio::test(start_paused = true)]
async fn a_word_that_comes_while_other_calls_run_is_not_lost() {
    let bed = Bed::new();
    let society = open(&bed, Ruling::Allow).await;
    let calls = vec![("poll".to_owned(), "who?".to_owned()), ("ask_person".to_owned(), "which?".to_owned())];
    let sent = submit(&society, vec![Op::Call(calls)]).await;
    let (form, words) = (inquiry(&society).await, question(&society).await);
    society.resolve(words, say(Verdict::words("red"))).await.unwrap();
    society.reply(form, filled()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), r#"filled {"name":"Ada"},red"#);
}
