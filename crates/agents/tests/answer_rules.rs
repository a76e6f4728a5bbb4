//! What a client prescribes for an answer is kept, or the request fails; the model hears why its answer was not taken.

use std::sync::{Arc, Mutex};

use polis_agents::Converse;
use polis_domain::{
    AgentId, AnswerRules, CallResult, Effect, EffectClass, EffectId, Envelope, Event, Format, MessageKind, Outcome, Resolution,
    Role, Seq, Task, Timestamp, Verdict,
};
use polis_engine::{Cast, Options, Ports, Sent, Society};
use polis_ports::{ChatMessage, ModelRequest, ToolChoice};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Map, json};

type Asked = Arc<Mutex<Vec<ModelRequest>>>;

/// A society whose model gives these replies, by how many requests there were before, and what it was asked.
async fn open(replies: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> (Society, Asked) {
    open_on(Arc::new(MemoryLog::new()), replies).await
}

/// The same on a log that may have a past.
async fn open_on(log: Arc<MemoryLog>, replies: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> (Society, Asked) {
    let asked = Asked::default();
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| {
        let mut heard = heard.lock().unwrap();
        heard.push(request.clone());
        replies(heard.len() - 1)
    });
    let ports = Ports {
        log,
        model: Arc::new(model),
        clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
        toolbox: Arc::new(ScriptedTools::new().with("look", EffectClass::Read, |_, _| CallResult::good("seen"))),
        ..Ports::new(MemoryLog::new())
    };
    let cast = Cast::new().with("converse", Converse::default());
    let options = Options::new(7, Role::new("root", "converse"));
    (Society::open("main".into(), ports, cast, options).await.unwrap(), asked)
}

async fn ask(society: &Society, rules: &AnswerRules) -> Sent {
    let tool = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
    let meta = Map::from_iter([
        (Task::CLIENT_TOOLS.to_owned(), json!([tool("fill"), tool("other")])),
        (Task::ANSWER_RULES.to_owned(), json!(rules)),
    ]);
    society.send_with_meta(AgentId::root(), "do it", None, meta).await.unwrap()
}

/// The next call that waits for the client.
async fn client_call(society: &Society, after: Seq) -> (EffectId, String, Seq) {
    let mut watch = society.watch(after);
    loop {
        // The clock of the test moves when nothing else does, so that a call that never comes ends the test.
        let next = tokio::time::timeout(std::time::Duration::from_secs(3_600), watch.next_event()).await;
        let recorded = next.expect("the client is called").unwrap().unwrap();
        if let Event::EffectStarted { id, effect: Effect::Approval { call: Some(call), .. }, .. } = &recorded.event {
            return (*id, call.tool.to_string(), recorded.seq);
        }
    }
}

async fn give(society: &Society, call: EffectId, text: &str, rules: Option<AnswerRules>) {
    let verdict = Verdict { rules: rules.map(Arc::new), ..Verdict::words(text) };
    society.resolve(call, Resolution::Outcome(Outcome::Verdict(verdict))).await.unwrap();
}

fn text(envelope: &Envelope) -> String {
    match &envelope.kind {
        MessageKind::Failure(failure) => format!("{}: {}", failure.code, failure.message),
        _ => envelope.payload.text.to_string(),
    }
}

fn names(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| &*tool.name).collect()
}

fn last(request: &ModelRequest) -> String {
    match request.messages.last() {
        Some(ChatMessage::User { text, .. }) => text.to_string(),
        Some(ChatMessage::Tool { content, .. }) => content.to_string(),
        other => panic!("{other:?}"),
    }
}

fn must_call() -> AnswerRules {
    AnswerRules { must_call: true, tools: Some(vec!["fill".into()]), ..AnswerRules::default() }
}

fn number() -> AnswerRules {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    AnswerRules { format: Some(Arc::new(Format { name: "n".to_owned(), schema })), ..AnswerRules::default() }
}

#[tokio::test(start_paused = true)]
async fn a_demanded_call_is_asked_for_again_and_each_result_brings_its_own_rules() {
    let (society, asked) = open(|n| match n {
        0 => ScriptedReply::call("a", "look", "{}"),
        1 => ScriptedReply::text("I would rather talk"),
        2 => ScriptedReply::call("b", "fill", "{}"),
        3 => ScriptedReply::call("c", "other", "{}"),
        _ => ScriptedReply::text("done"),
    })
    .await;
    let sent = ask(&society, &must_call()).await;
    let (call, tool, at) = client_call(&society, sent.seq).await;
    assert_eq!(tool, "fill");
    let one = AnswerRules { must_call: true, ..AnswerRules::default() };
    give(&society, call, "good", Some(one)).await;
    let (call, tool, _) = client_call(&society, at).await;
    assert_eq!(tool, "other", "now every tool of the client is allowed");
    give(&society, call, "better", None).await;
    assert_eq!(text(&society.answer(&sent).await.unwrap()), "done", "and now the client prescribes nothing");

    let asked = asked.lock().unwrap();
    assert_eq!((names(&asked[0]), &asked[0].tool_choice), (vec!["look", "fill"], &ToolChoice::Required));
    assert!(asked[0].system.contains("answer with a call of `fill`"), "{}", &*asked[0].system);
    assert_eq!((names(&asked[2]), &asked[2].tool_choice), (vec!["fill"], &ToolChoice::Named("fill".into())));
    assert!(last(&asked[2]).contains("must be a call of `fill`, and it is text"), "{}", last(&asked[2]));
    assert_eq!((names(&asked[3]), &asked[3].tool_choice), (vec!["look", "fill", "other"], &ToolChoice::Required));
    assert_eq!((&asked[4].tool_choice, &*asked[4].system), (&ToolChoice::Auto, ""));
}

#[tokio::test(start_paused = true)]
async fn a_second_run_has_the_rules_that_came_with_the_results() {
    let log = Arc::new(MemoryLog::new());
    let (first, _) = open_on(log.clone(), |_| ScriptedReply::call("a", "fill", "{}")).await;
    let sent = ask(&first, &must_call()).await;
    let (call, _, at) = client_call(&first, sent.seq).await;
    give(&first, call, "good", Some(AnswerRules { must_call: true, ..AnswerRules::default() })).await;
    let (call, _, _) = client_call(&first, at).await;
    first.stop(std::time::Duration::ZERO).await;
    // The first two replies and the first result are in the log; the second run begins at its first line.
    let (second, asked) = open_on(log, |_| ScriptedReply::text("{\"n\": 2}")).await;
    give(&second, call, "better", Some(number())).await;
    assert_eq!(text(&second.answer(&sent).await.unwrap()), "{\"n\": 2}");
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), &asked[0].format, &asked[0].tool_choice), (1, &number().format, &ToolChoice::Auto));
}

#[tokio::test(start_paused = true)]
async fn text_instead_of_a_demanded_call_is_a_failure_and_never_the_answer() {
    let (society, asked) = open(|_| ScriptedReply::text("prose")).await;
    let sent = ask(&society, &must_call()).await;
    let answer = text(&society.answer(&sent).await.unwrap());
    assert!(answer.starts_with("tool_choice_not_kept: the model was asked twice"), "{answer}");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_the_demanded_call_and_leaves_costs_no_further_request() {
    let (society, asked) = open(|_| ScriptedReply::call("a", "fill", "{}")).await;
    let sent = ask(&society, &must_call()).await;
    let answer = text(&society.answer(&sent).await.unwrap());
    assert_eq!(answer, "[called fill with {}; no result]");
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_on_to_another_message_costs_no_further_request() {
    let (society, asked) = open(|_| ScriptedReply::call("a", "fill", "{}")).await;
    let sent = ask(&society, &must_call()).await;
    let (call, _, _) = client_call(&society, sent.seq).await;
    give(&society, call, "taken", Some(AnswerRules { no_answer: true, ..AnswerRules::default() })).await;
    assert_eq!(text(&society.answer(&sent).await.unwrap()), "[called fill with {}; result: taken]");
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_another_format_is_asked_for_again_with_what_is_wrong() {
    let (society, asked) = open(|n| match n {
        0 => ScriptedReply::text("{\"n\": \"one\"}"),
        _ => ScriptedReply::text("```json\n{\"n\": 1}\n```"),
    })
    .await;
    let sent = ask(&society, &number()).await;
    assert_eq!(text(&society.answer(&sent).await.unwrap()), "{\"n\": 1}");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|request| request.format == number().format));
    assert!(last(&asked[1]).contains("n: must be a whole number, but is \"one\""), "{}", last(&asked[1]));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_has_the_format_is_a_failure() {
    let (society, asked) = open(|_| ScriptedReply::text("it is one")).await;
    let sent = ask(&society, &number()).await;
    let answer = text(&society.answer(&sent).await.unwrap());
    assert!(answer.starts_with("format_not_kept: ") && answer.contains("it is not JSON alone"), "{answer}");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_one_call_at_a_time_gets_one_and_the_model_hears_of_the_other() {
    let (society, asked) = open(|n| match n {
        0 => ScriptedReply::call("a", "fill", "{}").and_call("b", "look", "{}").and_call("c", "other", "{}"),
        _ => ScriptedReply::text("done"),
    })
    .await;
    let sent = ask(&society, &AnswerRules { one_call: true, ..AnswerRules::default() }).await;
    let (call, tool, _) = client_call(&society, sent.seq).await;
    assert_eq!(tool, "fill");
    give(&society, call, "good", None).await;
    assert_eq!(text(&society.answer(&sent).await.unwrap()), "done");
    let asked = asked.lock().unwrap();
    assert!(asked[0].one_call);
    let results: Vec<String> = asked[1]
        .messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Tool { content, .. } => Some(content.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(results[..2], ["good", "seen"]);
    assert!(results[2].contains("one call at a time"), "{results:?}");
}
