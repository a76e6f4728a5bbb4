//! The operations of a society are the same in its process and over HTTP: each is called both ways, and both answer alike.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use polis_api::{
    Api, ApiError, ArtifactName, ArtifactPaging, Attachment, BeginSociety, Caller, Cancel, ComponentAction, Compress,
    DecisionRequest, Direction, Drain, Fork, ImportRequest, LogPaging, MessagePaging, Operate, Paging, PlanFilter, Rewind,
    Send, Submit, TaskStatus, Terminate, ThreadPart,
};
use polis_client::Client;
use polis_domain::{CallResult, EffectClass, ModelSettings};
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_server::{Access, HostSettings, Listener, PolicyRule, PolicyThen, Security, SocietyState, Token, Vendor};
use polis_testkit::{
    MemoryArtifacts, MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, ScriptedTools, worker_role,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A society with a server, and both ways to it.
struct Both {
    society: Society,
    local: polis_api::Local,
    client: Client,
}

impl Both {
    async fn start() -> Self {
        let ports = Ports {
            log: Arc::new(MemoryLog::new()),
            model: Arc::new(ScriptedModel::new(|_| ScriptedReply::text("a thought"))),
            toolbox: Arc::new(ScriptedTools::new().with("note", EffectClass::Write, |_, _| CallResult::good("noted"))),
            live: Arc::new(LocalLive::remembering()),
            clock: Arc::new(SystemClock),
            artifacts: Arc::new(MemoryArtifacts::limited(1 << 20)),
            memory_texts: Arc::new(polis_testkit::InMemoryTexts::default()),
            embedder: None,
        };
        let cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent);
        let society = Society::open("main".into(), ports, cast, Options::new(7, worker_role())).await.unwrap();
        let vendor = Vendor { name: "v".to_owned(), needs: Some("a key".to_owned()), key: None, address: None };
        let rule = PolicyRule {
            tool: Some("note".to_owned()),
            server: None,
            agent: None,
            role: None,
            arguments: None,
            then: PolicyThen::Ask,
            why: "to see".to_owned(),
            tainted: false,
        };
        let about = HostSettings {
            model: "scripted/one".to_owned(),
            vendors: vec![vendor],
            policy: vec![rule],
            ..HostSettings::default()
        };
        let state = SocietyState::new(society.clone(), about);
        let access = Access { token: Token::new(TOKEN), insecure_listen: false };
        let listener = Listener::bind_with("127.0.0.1:0".parse().unwrap(), access, Security::default()).await.unwrap();
        let client = Client::new(&format!("http://{}", listener.address()), Some(TOKEN.to_owned())).unwrap();
        let local = state.api(Caller::owner());
        tokio::spawn(listener.serve(state, CancellationToken::new(), Duration::from_secs(1)));
        Self { society, local, client }
    }

    /// Calls an operation that changes nothing both ways, and gives the one answer.
    async fn check<T: serde::Serialize>(&self, name: &str, call: impl AsyncFn(&dyn Api) -> Result<T, ApiError>) -> Value {
        let here = told(call(&self.local).await);
        assert_eq!(here, told(call(&self.client).await), "{name}");
        here
    }
}

fn told<T: serde::Serialize>(answer: Result<T, ApiError>) -> Value {
    match answer {
        Ok(answer) => json!(answer),
        Err(error) => json!({ "status": error.status(), "code": error.code(), "detail": error.detail() }),
    }
}

#[tokio::test]
async fn every_operation_answers_alike_in_process_and_over_http() {
    let both = Both::start().await;
    let Both { local, client, society } = &both;
    let page = &Paging::default();
    // Each way begins something that the other one sees.
    let content = || Box::pin(stream::iter([Ok(b"one ".to_vec()), Ok("二".as_bytes().to_vec())]));
    let name = || ArtifactName { name: "a b&c.txt".to_owned() };
    let stored = client.store_artifact(name(), "text/plain", content()).await.unwrap();
    assert_eq!(stored, Api::store_artifact(local, name(), "text/plain", content()).await.unwrap());
    let text = Program(vec![Op::Say("hello".into()), Op::Call(vec![("note".into(), "{}".into())])]).text();
    let attachment = Attachment { id: stored.id.to_string(), name: Some(stored.name.to_string()), ..Attachment::default() };
    let sent = client.submit(Submit { text, artifacts: vec![attachment], ..Submit::default() }).await.unwrap();
    let text = Program(vec![Op::Approve("really?".into())]).text();
    let agent_id = "root".into();
    let asked = Send {
        agent_id,
        text,
        task_id: Some("任务-1".into()),
        settings: ModelSettings::default(),
        plan_approval: None,
        context: Default::default(),
        artifacts: Vec::new(),
    };
    let asked = Api::send(local, asked).await.unwrap();
    let done = async |task| {
        while !client.task(task).await.unwrap().status.is_over() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    done(&sent.task_id).await;
    let waiting = loop {
        if let Some(approval) = local.approvals(page).await.unwrap().approvals.pop() {
            break approval;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };

    let task = both.check("task", async |api| api.task(&sent.task_id).await).await;
    assert_eq!((&task["status"], &task["answer"]), (&json!("done"), &json!("said:hello noted")));
    let listed = both.check("tasks", async |api| api.tasks(page).await).await;
    assert_eq!(listed["tasks"][0]["id"], json!("任务-1"));
    let all = || MessagePaging { direction: Direction::All, after: None, limit: Some(1) };
    let messages = both.check("messages", async |api| api.messages(&sent.task_id, all()).await).await;
    assert!(messages["messages"].as_array().unwrap().len() == 1 && messages["next"].is_string(), "{messages}");
    both.check("plans", async |api| api.plans(PlanFilter { task_id: Some(sent.task_id.clone()) }).await).await;
    both.check("approvals", async |api| api.approvals(page).await).await;
    both.check("agents", async |api| api.agents(page).await).await;
    both.check("agent", async |api| api.agent(&"root".into()).await).await;
    both.check("dead_letters", async |api| api.dead_letters().await).await;
    both.check("org", async |api| api.org().await).await;
    both.check("roles", async |api| api.roles(page).await).await;
    both.check("threads", async |api| api.threads(page).await).await;
    let part = ThreadPart { path: String::new(), tree: true };
    let thread = both.check("thread", async |api| api.thread(&"root".into(), &part).await).await;
    assert!(!thread["messages"].as_array().unwrap().is_empty());
    let listed = both.check("artifacts", async |api| api.artifacts(ArtifactPaging::default()).await).await;
    assert_eq!(listed["artifacts"][0]["name"], json!("a b&c.txt"));
    both.check("models", async |api| api.models().await).await;
    both.check("tools", async |api| api.tools(page).await).await;
    both.check("policy", async |api| api.policy().await).await;
    both.check("usage", async |api| api.usage().await).await;
    both.check("deployment", async |api| api.deployment().await).await;
    let log = both.check("log", async |api| api.log(LogPaging { after: 1, limit: 3 }).await).await;
    assert_eq!((log["events"].as_array().unwrap().len(), &log["next"]), (3, &json!(4)));
    both.check("societies", async |api| api.societies(page).await).await;
    both.check("health", async |api| api.health().await).await;
    both.check("version", async |api| api.version().await).await;
    for api in [local as &dyn Api, client] {
        let chunks: Vec<_> = api.content(&stored.id).await.unwrap().map(Result::unwrap).collect().await;
        assert_eq!(String::from_utf8(chunks.concat()).unwrap(), "one 二");
    }

    // What is refused is refused alike, and changes nothing.
    let unknown = &"nobody/?".into();
    for (code, refused) in [
        ("unknown_task", both.check("task", async |api| api.task(unknown).await).await),
        ("unknown_task", both.check("cancel", async |api| api.cancel(unknown, Cancel::default()).await).await),
        ("unknown_task", both.check("retry", async |api| api.retry(unknown).await).await),
        ("still_open", both.check("retry", async |api| api.retry(&asked.task_id).await).await),
        ("bad_json", both.check("resolve", async |api| api.resolve("1.0", DecisionRequest::default()).await).await),
        ("unknown_agent", both.check("agent", async |api| api.agent(&"nobody/?".into()).await).await),
        ("unknown_operation", both.check("operate", async |api| api.operate(&"root".into(), Operate::default()).await).await),
        (
            "nothing_to_restore",
            both.check("compress", async |api| api.compress(&"root".into(), Compress { undo: true }).await).await,
        ),
        ("root_stays", both.check("terminate", async |api| api.terminate(&"root".into(), Terminate::default()).await).await),
        ("bad_org", both.check("import", async |api| api.import(json!([]), ImportRequest { root: true }).await).await),
        ("one_society", both.check("fork", async |api| api.fork(Fork::default()).await).await),
        ("no_nodes", both.check("nodes", async |api| api.nodes().await).await),
        ("no_nodes", both.check("drain", async |api| api.drain("a/?".to_owned(), Drain::default()).await).await),
        ("one_society", both.check("rewind", async |api| api.rewind(Rewind { to: 1 }).await).await),
        ("one_society", both.check("begin", async |api| api.begin_society(BeginSociety { name: "x".to_owned() }).await).await),
        ("bad_action", {
            let action = || ComponentAction {
                component: "no name".to_owned(),
                action: "a".to_owned(),
                data: Value::Null,
                agent_id: "root".into(),
                task_id: None,
                approval_id: None,
            };
            both.check("act", async |api| api.act(action()).await).await
        }),
    ] {
        assert_eq!(refused["code"], json!(code), "{refused}");
    }

    let yes = DecisionRequest { approved: Some(true), ..DecisionRequest::default() };
    client.resolve(&waiting.id, yes).await.unwrap();
    done(&asked.task_id).await;
    assert_eq!(local.task(&asked.task_id).await.unwrap().status, TaskStatus::Done);
    society.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_of_the_operation() {
    let client = Client::new("http://127.0.0.1:1", None).unwrap();
    let error = client.version().await.unwrap_err();
    assert_eq!((error.status(), error.code()), (503, "server_unreachable"));
}
