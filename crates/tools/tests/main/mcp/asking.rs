//! What servers ask while a call of ours runs there: the person, and models.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Failure, Question, Reply, Verdict, Wanted};
use polis_ports::{CallContext, ChatMessage, Host, ModelRequest, Toolbox};
use polis_tools::mcp::{McpServers, ServerSettings};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{PATIENCE, acting, open};
use crate::bench::context;

/// Whoever makes the call: says what it is told to, once it may.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    pub(super) verdict: Option<Verdict>,
    pub(super) asked: Mutex<Vec<(String, Question)>>,
    pub(super) prompts: Mutex<Vec<String>>,
    /// How long a person takes; for ever if there is no end.
    pub(super) thinks: Option<Duration>,
    pub(super) reached: Notify,
    pub(super) dropped: Arc<Notify>,
}

struct NotifyOnCall(Arc<Notify>);

impl Drop for NotifyOnCall {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Host for Scripted {
    async fn ask_person(&self, by: &str, question: Question) -> Option<Verdict> {
        let _told = NotifyOnCall(self.dropped.clone());
        self.asked.lock().unwrap().push((by.to_owned(), question));
        self.reached.notify_one();
        match self.thinks {
            Some(thinks) => tokio::time::sleep(thinks).await,
            None => std::future::pending().await,
        }
        self.verdict.clone()
    }

    async fn ask_model(&self, by: &str, request: ModelRequest) -> Result<Reply, Failure> {
        let Some(ChatMessage::User { text, .. }) = request.messages.last() else { panic!("{request:?}") };
        self.prompts.lock().unwrap().push(format!("{by}: {text}"));
        if text.contains("forbidden") {
            return Err(Failure::new("policy_denied", "not here"));
        }
        Ok(Reply { text: format!("said to {text}"), model: "v/m".into(), ..Reply::default() })
    }
}

pub(super) fn hosted(host: &Arc<Scripted>) -> CallContext {
    CallContext { host: Some(host.clone()), ..context() }
}

pub(super) fn answering(verdict: Option<Verdict>) -> Arc<Scripted> {
    Arc::new(Scripted { verdict, thinks: Some(Duration::ZERO), ..Scripted::default() })
}

/// What the server was told when it asked this.
async fn told(servers: &McpServers, context: &CallContext, method: &str, params: Value) -> Value {
    let arguments = json!({ "method": method, "params": params }).to_string();
    let call = servers.call("good__ask", &arguments, context);
    let result = tokio::time::timeout(PATIENCE, call).await.expect("a call always ends").unwrap();
    assert!(!result.is_error, "{}", result.content);
    serde_json::from_str(&result.content).unwrap()
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    json!({ "message": "who are you?", "requestedSchema": schema })
}

fn sample(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": 9 })
}

#[tokio::test]
async fn a_server_asks_the_person_who_answers_declines_or_turns_away() {
    let servers = open([acting("good")]).await;
    let filled = Verdict { answer: Some(json!({ "name": "Ada" })), ..Verdict::yes() };
    for (verdict, result) in [
        (Some(filled), json!({ "action": "accept", "content": { "name": "Ada" } })),
        (Some(Verdict::no("private")), json!({ "action": "decline" })),
        (None, json!({ "action": "cancel" })),
    ] {
        let host = answering(verdict);
        let answer = told(&servers, &hosted(&host), "elicitation/create", form()).await;
        assert_eq!(answer["result"], result);
        let asked = host.asked.lock().unwrap();
        let (by, question) = &asked[0];
        assert_eq!((by.as_str(), question.text.as_str()), ("good", "The server `good` asks: who are you?"));
        assert!(matches!(&question.wanted, Wanted::Form { schema } if schema["required"] == json!(["name"])), "{question:?}");
    }
    let host = answering(Some(Verdict::yes()));
    let visit = json!({ "mode": "url", "message": "sign in", "url": "https://a.example/in", "elicitationId": "1" });
    let answer = told(&servers, &hosted(&host), "elicitation/create", visit).await;
    assert_eq!(answer["result"], json!({ "action": "accept" }));
    assert_eq!(host.asked.lock().unwrap()[0].1.wanted, Wanted::Visit { url: "https://a.example/in".to_owned() });
}

#[tokio::test]
async fn a_server_gets_words_of_a_model_or_hears_why_not() {
    let servers = open([acting("good")]).await;
    let host = answering(None);
    let answer = told(&servers, &hosted(&host), "sampling/createMessage", sample("hi")).await;
    let text = json!({ "type": "text", "text": "said to hi" });
    assert_eq!((&answer["result"]["content"], &answer["result"]["model"]), (&text, &json!("v/m")));
    let refused = told(&servers, &hosted(&host), "sampling/createMessage", sample("the forbidden")).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("not here"), "{refused}");
    assert_eq!(*host.prompts.lock().unwrap(), ["good: hi", "good: the forbidden"]);
}

#[tokio::test]
async fn the_time_that_a_person_takes_is_not_the_servers() {
    let settings = ServerSettings { timeout: Duration::from_millis(500), ..acting("good") };
    let servers = open([settings]).await;
    let slow = Scripted { verdict: Some(Verdict::no("")), thinks: Some(Duration::from_millis(5_500)), ..Scripted::default() };
    let answer = told(&servers, &hosted(&Arc::new(slow)), "elicitation/create", form()).await;
    assert_eq!(answer["result"], json!({ "action": "decline" }));
}

#[tokio::test]
async fn nobody_is_asked_on_anothers_account() {
    let servers = open([acting("good")]).await;
    let host = Arc::new(Scripted::default());
    let other = CallContext { agent: "other".into(), ..hosted(&host) };
    let waiting = {
        let servers = servers.clone();
        tokio::spawn(async move { servers.call("good__hang", "{}", &other).await })
    };
    // The other call is under way once the server has answered something that came after it.
    let own = answering(None);
    let several = loop {
        let answer = told(&servers, &hosted(&own), "sampling/createMessage", sample("hi")).await;
        if answer.get("error").is_some() {
            break answer;
        }
    };
    assert!(several["error"]["message"].as_str().unwrap().contains("several agents"), "{several}");
    waiting.abort();
    let _ = waiting.await;
    let answer = told(&servers, &hosted(&own), "sampling/createMessage", sample("hi")).await;
    assert_eq!(answer["result"]["content"]["text"], json!("said to hi"));
}

#[tokio::test]
async fn a_question_goes_with_its_call() {
    let servers = open([acting("good")]).await;
    let host = Arc::new(Scripted::default());
    let context = hosted(&host);
    let arguments = json!({ "method": "elicitation/create", "params": form() }).to_string();
    let waiting = {
        let servers = servers.clone();
        tokio::spawn(async move { servers.call("good__ask", &arguments, &context).await })
    };
    host.reached.notified().await;
    waiting.abort();
    let _ = waiting.await;
    tokio::time::timeout(PATIENCE, host.dropped.notified()).await.expect("nobody waits for the person any more");
}
