//! The workflow alone, over a backend without an engine (R228, R246, R267-R270, D21).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use polis_agents::workflow::{
    Activity, AgentBackend, AiMessage, CallTool, ChatOptions, PlainBackend, RunOptions, Speaker, StreamCallbacks, ToolScope,
};
use polis_domain::{CallResult, EffectClass, Failure, Finish, Timestamp};
use polis_ports::{ComponentChunk, ModelError, ToolSpec};
use polis_testkit::{ManualClock, ScriptedModel, ScriptedReply};
use serde_json::json;

use super::bed::{Asked, Team, engine, team};

fn backend(team: &Team) -> PlainBackend {
    let look = ToolSpec {
        name: "look".into(),
        description: "Looks.".to_owned(),
        parameters: json!({ "type": "object" }),
        class: EffectClass::Read,
        volatile: false,
    };
    let call: CallTool =
        Arc::new(|_, _, arguments, _| CallResult::good(if arguments.to_string().contains('b') { "2" } else { "1" }));
    plain(team.model(&Asked::default())).with_tools(vec![look], call)
}

fn plain(model: ScriptedModel) -> PlainBackend {
    PlainBackend::new(Arc::new(model), Arc::new(ManualClock::at(Timestamp(1_000))))
}

#[tokio::test(start_paused = true)]
async fn the_engine_runs_over_any_backend() {
    let mut backend = backend(&team());
    let before = vec![AiMessage::user("We talked about letters."), AiMessage::assistant("Yes.")];
    let options = RunOptions {
        initial_messages: before,
        context: json!({ "currentResourceId": "r1" }).as_object().unwrap().clone(),
        ..RunOptions::from("What are a and b?")
    };
    let result = engine().run(&mut backend, options).await.unwrap();
    assert_eq!((&*result.answer.summary, result.answer.verified, result.cycles), ("a is 1 and b is 2.", true, 1));
    assert_eq!(result.usage.output_tokens, 6);
    let said: Vec<_> = backend.messages().iter().map(|message| message.role).collect();
    use Speaker::{Assistant, Tool, User};
    assert_eq!(said, [User, Assistant, User, Assistant, Tool, User, Assistant, Tool, User]);
    let first = &backend.messages()[0].content;
    assert!(first.contains("- currentResourceId: \"r1\"") && first.contains("user: We talked about letters."), "{first}");
    assert_eq!(backend.messages()[1].component.as_ref().unwrap()["component"], "todo-list", "one message shows the plan");
}

#[tokio::test(start_paused = true)]
async fn it_is_stopped_at_any_point() {
    for at in 1..=6 {
        let (count, handle) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None::<polis_agents::workflow::StopHandle>)));
        let (asked, stop, script) = (count.clone(), handle.clone(), team());
        let inner = script.clone();
        let stopping = move |line: ScriptedReply| {
            if asked.fetch_add(1, Ordering::Relaxed) + 1 == at {
                stop.lock().unwrap().as_ref().unwrap().stop();
            }
            line
        };
        let stopping = Arc::new(stopping);
        let (a, b, c) = (stopping.clone(), stopping.clone(), stopping.clone());
        let (p, e, v) = (inner.planner.clone(), inner.executor.clone(), inner.verifier.clone());
        let team = Team {
            planner: Arc::new(move |heard| a(p(heard))),
            executor: Arc::new(move |todo, heard| b(e(todo, heard))),
            verifier: Arc::new(move |heard| c(v(heard))),
        };
        let mut backend = backend(&team);
        *handle.lock().unwrap() = Some(backend.stop_handle());
        let failure = engine().run(&mut backend, "a and b?".into()).await.unwrap_err();
        assert_eq!((&*failure.code, count.load(Ordering::Relaxed)), ("stopped", at), "nobody is asked after that");
    }
}

/// Notes what it hears.
struct Ear(Arc<Mutex<Vec<String>>>);

impl Ear {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl StreamCallbacks for Ear {
    fn on_content(&mut self, text: &str) {
        self.note(format!("content {text}"));
    }
    fn on_tool_calls(&mut self, index: u32, name: Option<&str>, arguments: &str) {
        self.note(format!("call {index} {name:?} {arguments}"));
    }
    fn on_reasoning(&mut self, text: &str) {
        self.note(format!("reasoning {text}"));
    }
    fn on_done(&mut self, finish: &Finish) {
        self.note(format!("done {finish:?}"));
    }
    fn on_error(&mut self, failure: &Failure) {
        self.note(format!("error {}", failure.code));
    }
    fn on_stopped(&mut self) {
        self.note("stopped".to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_to_a_stream_hears_all_of_it_until_it_does_not_listen_any_more() {
    let model = ScriptedModel::new(|request| match request.messages.len() {
        1 => ScriptedReply::text("hello").and_call("c", "look", "{}"),
        2 => ScriptedReply::error(ModelError::Rejected { reason: "no".to_owned() }),
        _ => ScriptedReply::text("late"),
    });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut backend = plain(model);
    let options = |n: usize| ChatOptions {
        event_id: "mine".to_owned(),
        messages: vec![polis_ports::ChatMessage::user("x"); n],
        ..ChatOptions::default()
    };
    backend.listen_to_stream("mine", Box::new(Ear(heard.clone())));
    backend.listen_to_stream("another", Box::new(Ear(heard.clone())));
    backend.chat_completion(options(1)).await.unwrap();
    backend.chat_completion(options(2)).await.unwrap_err();
    backend.stop_handle().stop();
    backend.chat_completion(options(3)).await.unwrap_err();
    backend.unlisten("mine");
    backend.chat_completion(options(3)).await.unwrap_err();
    let heard = heard.lock().unwrap().join("; ");
    assert_eq!(heard, "content hello; call 0 Some(\"look\") {}; done ToolCalls; error model_rejected; stopped");
}

#[tokio::test(start_paused = true)]
async fn todos_and_the_summary_are_seen_while_they_are_written() {
    let seen = Arc::new(Mutex::new(Vec::<Activity>::new()));
    let noting = seen.clone();
    let mut backend = backend(&team()).with_watcher(Arc::new(move |activity| noting.lock().unwrap().push(activity)));
    engine().run(&mut backend, "a and b?".into()).await.unwrap();
    let seen = seen.lock().unwrap();
    let todos = seen.iter().filter(|activity| {
        matches!(&activity.chunk, Some(ComponentChunk::Item { field, value, .. }) if field == "todos" && value["priority"].is_u64())
    });
    assert_eq!(todos.count(), 2);
    let summary: String = seen
        .iter()
        .filter(|activity| activity.action.name() == "summarizing")
        .filter_map(|activity| match &activity.chunk {
            Some(ComponentChunk::Text { text, .. }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(summary, "a is 1 and b is 2.");
    let mut actions: Vec<_> = seen.iter().map(|activity| (activity.agent.name().to_owned(), activity.action.name())).collect();
    actions.dedup();
    assert_eq!(actions[0], ("planner".to_owned(), "planning"));
    assert!(actions.contains(&("executor".to_owned(), "calling_tool")), "{actions:?}");
}

#[tokio::test(start_paused = true)]
async fn an_identical_read_is_made_once_without_an_engine_too() {
    let tool = |name: &str, class: EffectClass| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({ "type": "object", "properties": {} }),
        class,
        volatile: name == "clock",
    };
    let made = Arc::new(Mutex::new(Vec::<String>::new()));
    let noting = made.clone();
    let call: CallTool = Arc::new(move |_, tool, arguments, _| {
        noting.lock().unwrap().push(format!("{tool} {arguments}"));
        if tool == "fail" { CallResult::failed("no") } else { CallResult::good("1") }
    });
    let tools = vec![
        tool("look", EffectClass::Read),
        tool("clock", EffectClass::Read),
        tool("fail", EffectClass::Read),
        tool("write", EffectClass::Write),
    ];
    let mut backend = plain(team().model(&Asked::default())).with_tools(tools, call);
    let offered = backend.tools();
    assert!(
        offered[0].parameters["properties"]["_fresh"].is_object() && offered[3].parameters["properties"]["_fresh"].is_null()
    );
    let call =
        |name: &str, arguments: &str| polis_domain::ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() };
    let scope = ToolScope::default();
    let results =
        backend.execute_tools(vec![call("look", "{\"a\":1,\"b\":2}"), call("look", "{ \"b\": 2.0, \"a\": 1 }")], &scope).await;
    assert_eq!((&*results[1].content, results[0].note.is_none()), ("1", true));
    assert!(results[1].note.as_ref().unwrap().0.contains("not called again"), "{results:?}");
    backend.execute_tools(vec![call("look", "{\"a\":1,\"b\":2,\"_fresh\":\"it changed\"}")], &scope).await;
    for name in ["clock", "clock", "fail", "fail"] {
        backend.execute_tools(vec![call(name, "{}")], &scope).await;
    }
    backend
        .execute_tools(vec![call("write", "{}"), call("look", "{\"a\":1,\"b\":2}"), call("look", "{\"a\":1,\"b\":2}")], &scope)
        .await;
    let look = "look {\"a\":1,\"b\":2}";
    assert_eq!(*made.lock().unwrap(), [look, look, "clock {}", "clock {}", "fail {}", "fail {}", "write {}", look]);
    backend.begin_chat("another");
    backend.execute_tools(vec![call("look", "{\"a\":1,\"b\":2}")], &scope).await;
    assert_eq!(made.lock().unwrap().len(), 9, "each run begins anew");
}
