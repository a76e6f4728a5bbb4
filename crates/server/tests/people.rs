//! Two people with tokens of their own: through no route, event or stream does one see or change what is the other's.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use polis_domain::{CallResult, Effect, EffectClass, Event, Outcome, PersonId, Recorded, Role, Ruling, Seq, Spine};
use polis_engine::Options;
use polis_server::{Scope, Security, Token, TokenList, route_table};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools, worker_role};
use serde_json::{Value, json};

use crate::support::{Reply, Rig, send, society, token_list};

/// What only Ann writes.
const SECRET: &str = "anns-secret";

/// What only Bob writes.
const BOBS: &str = "bobs-words";

fn secret(mut ops: Vec<Op>) -> String {
    ops.insert(0, Op::Say(SECRET.into()));
    Program(ops).text()
}

/// A society with two people who may do everything with what is theirs.
struct House {
    file: TokenList,
    rig: Rig,
}

struct Person<'a> {
    rig: &'a Rig,
    bearer: String,
}

impl House {
    async fn new() -> Self {
        Self::with_approvers(Vec::new()).await
    }

    async fn with_approvers(approvers: Vec<PersonId>) -> Self {
        let file = token_list();
        for (n, name) in [(1, "ann"), (2, "bob")] {
            let scopes = [Scope::Read, Scope::Send, Scope::Approve, Scope::Admin].into_iter().collect();
            file.add(name, None, scopes, &Token::of_bits([n; 32])).await.unwrap();
        }
        let tools = ScriptedTools::new().with("note", EffectClass::Write, |_, _| CallResult::good("noted"));
        let tools = tools.ruled(|_, _| Ruling::Ask("it writes".into()));
        let model = ScriptedModel::new(|_| ScriptedReply::text("a thought"));
        let security = Security { tokens: Some(file.clone()), ..Security::default() };
        let options = Options { approvers, ..Options::new(7, worker_role()) };
        let rig = Rig::opened(Arc::new(MemoryLog::new()), model, tools, security, options).await;
        Self { file, rig }
    }

    fn person(&self, n: u8) -> Person<'_> {
        Person { rig: &self.rig, bearer: format!("Bearer {}", Token::of_bits([n; 32]).as_str()) }
    }
}

impl Person<'_> {
    async fn open(&self, method: &str, target: &str, body: &Value) -> hyper::Response<Incoming> {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("a2a-version", "1.0"),
            ("authorization", &*self.bearer),
        ];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        send(self.rig.address, method, target, &headers, body).await
    }

    async fn ask(&self, method: &str, target: &str, body: Value) -> Reply {
        Reply::of(self.open(method, target, &body).await).await
    }

    async fn get(&self, target: &str) -> Value {
        self.ask("GET", target, Value::Null).await.ok()
    }

    async fn post(&self, target: &str, body: Value) -> Value {
        self.ask("POST", target, body).await.ok()
    }

    /// Everything that an answer says, of a stream what comes at once.
    async fn told(&self, method: &str, target: &str, body: &Value) -> String {
        let mut response = self.open(method, target, body).await;
        let mut text = String::new();
        while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_millis(150), response.body_mut().frame()).await {
            let Ok(frame) = frame else { break };
            text.push_str(&String::from_utf8_lossy(frame.data_ref().map(|data| &data[..]).unwrap_or_default()));
        }
        text
    }

    /// Submits a program that asks, as the nth one, and gives what waits then.
    async fn asked(&self, program: &str, nth: usize) -> String {
        self.post("/api/submit", json!({ "text": program })).await;
        let mut watch = self.rig.society.watch(Seq(0));
        let mut questions = 0;
        while questions < nth {
            let event = &watch.next_event().await.unwrap().unwrap().event;
            questions += usize::from(matches!(event, Event::EffectStarted { effect: Effect::Approval { .. }, .. }));
        }
        self.get("/api/approvals").await["approvals"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Submits a program and waits for the end of its request.
    async fn submit(&self, text: &str) -> (String, String) {
        let accepted = self.post("/api/submit", json!({ "text": text })).await;
        let field = |name: &str| accepted[name].as_str().unwrap().to_owned();
        self.rig.ending(&field("taskId").as_str().into()).await;
        (field("conversation"), field("taskId"))
    }
}

/// The names of what is Ann's, by kind.
struct Anns {
    agents: Vec<String>,
    tasks: Vec<String>,
    turns: Vec<String>,
    approvals: Vec<String>,
    artifacts: Vec<String>,
    memories: Vec<String>,
    responses: Vec<String>,
}

impl Anns {
    /// Has Ann use everything.
    async fn made(ann: &Person<'_>) -> Self {
        let rig = ann.rig;
        let child = Op::Ask { agent: "anns-child".into(), program: Program(vec![Op::Say(SECRET.into())]), patience_ms: 60_000 };
        let unit = Program(vec![Op::Think(SECRET.into()), Op::Say(SECRET.into())]);
        let work = vec![
            Op::Spawn("anns-child".into()),
            child,
            Op::Think(SECRET.into()),
            Op::Keep(SECRET.into()),
            Op::Units(vec![unit]),
            Op::Tell(SECRET.into()),
        ];
        let (first, task) = ann.submit(&secret(work)).await;
        // The only agent of its role is found by the role's name.
        rig.society.create_role(Role { id: "archivist".into(), ..worker_role() }).await.unwrap();
        rig.society.spawn("anns-archivist".into(), "archivist".into(), first.as_str().into()).await.unwrap();
        let waiting =
            ann.post("/api/submit", json!({ "text": secret(vec![Op::Call(vec![("note".into(), SECRET.into())])]) })).await;
        rig.until(|recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Approval { .. }, .. })).await;
        let (failed, failed_task) = ann.submit(&secret(vec![Op::Fail("anns-failure".into())])).await;
        let input = json!({ "threadId": "anns-thread", "runId": "r1", "messages": [{ "id": "m", "role": "user", "content": secret(vec![]) }],
            "tools": [], "context": [], "state": {}, "forwardedProps": {} });
        ann.ask("POST", "/agui/polis", input).await;
        let response = ann.post("/v1/responses", json!({ "model": "polis", "input": secret(vec![]) })).await;
        ann.post(
            "/v1/chat/completions",
            json!({ "model": "polis", "messages": [{ "role": "user", "content": secret(vec![]) }] }),
        )
        .await;
        let message = json!({ "messageId": "anns-message", "contextId": "anns-context", "role": "ROLE_USER", "parts": [{ "text": secret(vec![]) }] });
        ann.post("/a2a", json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } })).await;
        let upload = ann.ask("POST", "/api/artifacts?name=notes.txt", json!("anns-secret, not sent")).await.ok();
        let list = |value: &Value, field: &str| -> Vec<String> {
            value.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
        };
        let mut agents = list(&ann.get("/api/conversations").await["conversations"], "id");
        agents.extend(list(&ann.get("/api/agents").await["agents"], "id"));
        let text = |value: &Value, field: &str| value[field].as_str().unwrap().to_owned();
        let log = ann.get("/api/log?after=0").await;
        let events = log["events"].as_array().unwrap();
        let turns = events.iter().filter(|one| one["event"].get("turnStarted").is_some()).map(|one| one["seq"].to_string());
        let mut tasks = vec![task, failed_task, text(&waiting, "taskId"), "anns-thread".to_owned()];
        let of = |one: &Value| one["event"]["messageSent"]["envelope"]["taskId"].as_str().map(str::to_owned);
        tasks.extend(events.iter().filter_map(of));
        tasks.sort();
        tasks.dedup();
        agents.extend([first, failed, "anns-context".to_owned()]);
        agents.sort();
        agents.dedup();
        let mut artifacts = list(&ann.get("/api/artifacts").await["artifacts"], "id");
        artifacts.push(text(&upload, "id"));
        ann.post("/api/memories", json!({ "text": format!("{SECRET} remembered") })).await;
        let memories = list(&ann.get("/api/memories?search=remembered").await["memories"], "id");
        assert_eq!(memories.len(), 1);
        let approvals = list(&ann.get("/api/approvals").await["approvals"], "id");
        assert!(
            approvals.len() == 1 && agents.len() >= 8 && tasks.len() >= 6 && artifacts.len() >= 2,
            "{agents:?} {tasks:?} {artifacts:?}"
        );
        Self { agents, tasks, turns: turns.collect(), approvals, artifacts, memories, responses: vec![text(&response, "id")] }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        let Self { agents, tasks, turns: _, approvals, artifacts, memories, responses } = self;
        // A turn is a number, and so may be anything; names that clients choose may be chosen by others too.
        let is_drawn = |name: &&String| !["anns-thread", "anns-context"].contains(&name.as_str());
        agents.iter().chain(tasks).chain(approvals).chain(artifacts).chain(memories).chain(responses).filter(is_drawn)
    }

    /// Everything of hers that a route can be asked for: targets and bodies.
    fn requests(&self, method: &str, path: &str, bobs: &str) -> Vec<(String, Value)> {
        let at = |names: &[String], body: Value| -> Vec<(String, Value)> {
            let (before, after) = path.split_once('{').map(|(before, rest)| (before, rest.split_once('}').unwrap().1)).unwrap();
            names.iter().map(|name| (format!("{before}{name}{after}"), body.clone())).collect()
        };
        let with = |queries: &[&str]| queries.iter().map(|query| (format!("{path}{query}"), Value::Null)).collect::<Vec<_>>();
        let bodies = |bodies: Vec<Value>| bodies.into_iter().map(|body| (path.to_owned(), body)).collect::<Vec<_>>();
        let each = |names: &[String], body: &dyn Fn(&String) -> Value| bodies(names.iter().map(body).collect());
        let (task, agent) = (&self.tasks[0], &self.agents[0]);
        let say = |text: &str| Program(vec![Op::Say(text.into())]).text();
        let run = |thread: &String| {
            json!({ "threadId": thread, "runId": "bobs-run", "messages": [{ "id": "m", "role": "user", "content": say(BOBS) }],
                "tools": [], "context": [], "state": {}, "forwardedProps": {} })
        };
        let rpc = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        match (method, path) {
            ("GET", "/api/events") => {
                let queries = self.tasks.iter().map(|task| format!("?task={task}"));
                let queries =
                    queries.chain(self.agents.iter().flat_map(|agent| [format!("?agent={agent}"), format!("?thread={agent}")]));
                queries.chain([String::new()]).map(|query| (format!("{path}{query}"), Value::Null)).collect()
            }
            ("GET", "/api/plans") => with(&["", &format!("?taskId={task}")]),
            ("GET", "/api/conversations") => with(&["", "?search=secret", "?archived=true"]),
            ("GET", "/api/memories") => with(&["", "?search=secret", "?search=remembered"]),
            ("POST", "/api/memories") => bodies(vec![json!({ "text": BOBS }), json!({ "text": BOBS, "forSociety": true })]),
            ("POST", "/api/memories/enabled") => bodies(vec![json!({ "enabled": false }), json!({ "enabled": true })]),
            ("POST", "/api/memories/{id}") => at(&self.memories, json!({ "text": BOBS })),
            ("POST", "/api/memories/{id}/erase") => at(&self.memories, json!({})),
            ("GET", "/api/log") => with(&["?after=0", "?after=3&limit=1"]),
            ("GET", "/api/views/organisation") => with(&["", "?at=30"]),
            ("GET", "/api/views/requests" | "/api/views/trace") => with(&["", "?find=secret"]),
            ("GET", "/api/threads/{id}") => self
                .agents
                .iter()
                .flat_map(|id| {
                    let target = path.replace("{id}", id);
                    [format!("{target}?tree=true"), format!("{target}?path=messages[3].meta._threads[0]"), target]
                })
                .map(|target| (target, Value::Null))
                .collect(),
            (
                "GET",
                "/api/conversations/{id}"
                | "/api/agents/{id}"
                | "/api/views/conversation/{agent}"
                | "/agui/{agent}"
                | "/v1/models/{*model}",
            ) => at(&self.agents, Value::Null),
            ("GET", "/api/messages/{taskId}" | "/api/tasks/{id}" | "/api/views/task/{id}") => at(&self.tasks, Value::Null),
            ("GET", "/api/views/turn/{id}") => at(&self.turns, Value::Null)
                .into_iter()
                .flat_map(|(target, body)| [(format!("{target}?context=true"), body.clone()), (target, body)])
                .collect(),
            ("GET", "/api/artifacts/{id}") => at(&self.artifacts, Value::Null),
            ("GET", "/v1/responses/{id}") => {
                let whole = at(&self.responses, Value::Null);
                let streamed = whole.iter().map(|(target, body)| (format!("{target}?stream=true"), body.clone()));
                streamed.chain(whole.clone()).collect()
            }
            ("GET", "/v1/responses/{id}/input_items") | ("DELETE", "/v1/responses/{id}") => at(&self.responses, Value::Null),
            ("GET" | "DELETE", "/v1/conversations/{id}") => at(&self.agents, Value::Null),
            ("POST", "/v1/conversations/{id}") => at(&self.agents, json!({ "metadata": { "title": BOBS } })),
            ("POST", "/v1/conversations") => bodies(vec![json!({})]),
            ("GET", path) if !path.contains('{') => with(&[""]),
            ("GET", "/components/{name}") => at(&["x.js".to_owned()], Value::Null),
            ("POST", "/api/submit") => {
                let mut asked = each(&self.agents, &|agent| json!({ "text": say(BOBS), "conversation": agent }));
                asked.extend(each(&self.artifacts, &|id| json!({ "text": say(BOBS), "artifacts": [{ "id": id }] })));
                asked
            }
            ("POST", "/api/conversations") => bodies(vec![json!({ "id": agent })]),
            ("POST", "/api/conversations/{id}") => at(&self.agents, json!({ "title": BOBS })),
            ("POST", "/api/conversations/{id}/delete" | "/api/conversations/{id}/erase") => at(&self.agents, json!({})),
            ("POST", "/api/send") => {
                let mut asked = each(&self.agents, &|agent| json!({ "agentId": agent, "text": say(BOBS) }));
                asked.extend(each(&self.tasks, &|task| json!({ "agentId": bobs, "taskId": task, "text": say(BOBS) })));
                asked.extend(bodies(vec![json!({ "agentId": "archivist", "text": say(BOBS) })]));
                asked
            }
            ("POST", "/api/agents/{id}/terminate") => at(&self.agents, json!({ "now": true })),
            ("POST", "/api/agents/{id}/operate") => at(&self.agents, json!({ "operation": "nothing" })),
            ("POST", "/api/agents/{id}/compress") => {
                at(&self.agents, json!({})).into_iter().chain(at(&self.agents, json!({ "undo": true }))).collect()
            }
            ("POST", "/api/org") => {
                bodies(vec![json!({ "roles": [], "agents": [{ "id": "bobs", "roleId": "worker", "parentAgentId": agent }] })])
            }
            ("POST", "/api/tasks/{id}/retry" | "/api/tasks/{id}/cancel") => at(&self.tasks, json!({})),
            ("POST", "/api/approvals/{id}") => at(&self.approvals, json!({ "approved": true }))
                .into_iter()
                .chain(at(&self.turns, json!({ "outcome": "again" })))
                .collect(),
            ("GET", "/api/approvals/{id}/change") => at(&self.approvals, Value::Null),
            ("POST", "/api/artifacts") => bodies(vec![json!(BOBS)]),
            ("POST", "/api/societies") => bodies(vec![json!({ "name": "other" })]),
            ("POST", "/api/nodes/{name}/drain") => at(&["node".to_owned()], json!({})),
            ("POST", "/api/fork") => bodies(vec![json!({})]),
            ("POST", "/api/rewind") => bodies(vec![json!({ "to": 1 })]),
            ("POST", "/api/actions") => {
                let action = |more: Value| {
                    let mut action = json!({ "component": "c", "action": "a", "data": BOBS, "agentId": agent });
                    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                    action
                };
                bodies(vec![
                    action(json!({})),
                    action(json!({ "approvalId": self.approvals[0] })),
                    action(json!({ "taskId": task })),
                ])
            }
            ("POST", "/agui/{agent}" | "/agui/{agent}/connect") => {
                let mut asked: Vec<_> = at(&self.agents, run(&"bobs-thread".to_owned()));
                for thread in self.tasks.iter().chain(&self.agents) {
                    asked.extend(at(&["polis".to_owned()], run(thread)));
                    let mut resume = run(thread);
                    resume["messages"] = json!([]);
                    resume["resume"] = json!([{ "interruptId": self.approvals[0], "status": "resolved", "payload": true }]);
                    asked.extend(at(&["polis".to_owned()], resume));
                }
                asked
            }
            ("POST", "/v1/chat/completions") => each(
                &self.agents,
                &|agent| json!({ "model": format!("agent/{agent}"), "messages": [{ "role": "user", "content": secret(vec![]).replace(SECRET, BOBS) }] }),
            ),
            ("POST", "/v1/responses") => {
                let mut asked =
                    each(&self.responses, &|id| json!({ "model": "polis", "input": say(BOBS), "previous_response_id": id }));
                asked.extend(each(
                    &self.agents,
                    &|agent| json!({ "model": "polis", "input": say(BOBS), "conversation": agent }),
                ));
                asked
            }
            ("POST", "/v1/responses/{id}/cancel") => at(&self.responses, json!({})),
            ("POST", "/mcp") => {
                let call = |name: &str, arguments: Value| rpc("tools/call", json!({ "name": name, "arguments": arguments }));
                let mut asked = vec![rpc("tools/list", json!({})), rpc("resources/list", json!({})), call("status", json!({}))];
                for id in self.tasks.iter().chain(&self.agents) {
                    asked.push(call("status", json!({ "taskId": id })));
                    asked.push(call("cancel", json!({ "taskId": id })));
                    asked.push(call("send", json!({ "agentId": id, "text": say(BOBS), "waitSeconds": 0 })));
                    asked.push(call("submit", json!({ "conversation": id, "text": say(BOBS), "waitSeconds": 0 })));
                    asked.push(rpc("resources/read", json!({ "uri": format!("polis://threads/{id}") })));
                    asked.push(rpc("resources/read", json!({ "uri": format!("polis://tasks/{id}") })));
                }
                asked.extend(self.approvals.iter().map(|id| call("approve", json!({ "id": id, "approved": true }))));
                asked.extend(
                    self.artifacts.iter().map(|id| rpc("resources/read", json!({ "uri": format!("polis://artifacts/{id}") }))),
                );
                bodies(asked)
            }
            ("POST", "/a2a") => {
                let mut asked = vec![
                    rpc("ListTasks", json!({ "includeArtifacts": true })),
                    rpc("ListTasks", json!({ "contextId": "anns-context" })),
                ];
                for id in self.tasks.iter() {
                    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
                        asked.push(rpc(method, json!({ "id": id })));
                    }
                    let message = |more: Value| {
                        let mut message =
                            json!({ "messageId": "bobs-message", "role": "ROLE_USER", "parts": [{ "text": "yes" }] });
                        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                        rpc("SendMessage", json!({ "message": message }))
                    };
                    asked.push(message(json!({ "taskId": id })));
                }
                for context in &self.agents {
                    let message = json!({ "messageId": format!("bobs-{context}"), "contextId": context, "role": "ROLE_USER", "parts": [{ "text": say(BOBS) }] });
                    asked.push(rpc("SendMessage", json!({ "message": message })));
                }
                bodies(asked)
            }
            _ => panic!("{method} {path} is new: say here how one person could ask it for what is another's"),
        }
    }
}

/// How many events of the log are Ann's.
async fn anns_events(rig: &Rig) -> usize {
    let events = rig.log.events(&society());
    let ann = PersonId::from("ann");
    let count = move |spine: &Spine| events.iter().filter(|recorded| spine.person_of(recorded) == Some(&ann)).count();
    rig.society.look(count).await.unwrap()
}

#[tokio::test]
async fn nobody_sees_or_changes_what_belongs_to_another_person() {
    let house = House::new().await;
    let (ann, bob) = (house.person(1), house.person(2));
    let (bobs, _) = bob.submit(&Program(vec![Op::Say(BOBS.into())]).text()).await;
    let anns = Anns::made(&ann).await;
    let (before, mut asked) = (anns_events(&house.rig).await, 0);
    for route in route_table() {
        for (target, body) in anns.requests(route.method, route.path, &bobs) {
            let told = bob.told(route.method, &target, &body).await;
            let said = format!("{target} {body}");
            assert!(!told.contains(SECRET), "{} {said}: {told}", route.method);
            for name in anns.all().filter(|name| !said.contains(name.as_str())) {
                assert!(!told.contains(name.as_str()), "{} {said} names {name}: {told}", route.method);
            }
            asked += 1;
        }
    }
    assert!(asked > 200, "{asked}");
    assert!(before > 50, "{before}");
    assert_eq!(anns_events(&house.rig).await, before, "nothing happened to what is hers");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {} });
    let listed = bob.post("/a2a", list).await;
    assert!(!listed["result"]["tasks"].as_array().unwrap().is_empty(), "his own are listed: {listed}");
    let approvals = ann.get("/api/approvals").await;
    assert_eq!(approvals["approvals"][0]["id"].as_str(), Some(&*anns.approvals[0]), "it still waits for her");
}

#[tokio::test]
async fn a_person_sees_what_is_theirs_and_everyone_sees_everything() {
    let house = House::new().await;
    let scopes = [Scope::Read, Scope::Everyone].into_iter().collect();
    house.file.add("auditor", None, scopes, &Token::of_bits([3; 32])).await.unwrap();
    let (ann, auditor) = (house.person(1), house.person(3));
    let anns = Anns::made(&ann).await;
    let paths = [
        "/api/log",
        "/api/artifacts/{id}",
        "/api/messages/{taskId}",
        "/api/threads/{id}",
        "/api/tasks/{id}",
        "/api/approvals",
        "/api/views/conversation/{agent}",
        "/api/views/task/{id}",
        "/api/views/turn/{id}",
        "/api/views/inbox",
        "/api/views/requests",
        "/api/views/trace",
        "/api/conversations",
    ];
    for (who, person) in [("ann", &ann), ("the auditor", &auditor)] {
        for path in paths {
            let mut told = Vec::new();
            for (target, body) in anns.requests("GET", path, "") {
                told.push(person.told("GET", &target, &body).await);
            }
            assert!(told.iter().any(|told| told.contains(SECRET)), "{who} {path}: {told:?}");
        }
    }
    assert_eq!(ann.get("/api/org").await["agents"], json!([]), "the agents below root are the owner's");
    let usage = ann.get("/api/usage").await;
    assert!(!usage["accounts"].as_array().unwrap().is_empty(), "{usage}");
}

#[tokio::test]
async fn a_stream_tells_a_person_only_what_is_theirs() {
    let house = House::new().await;
    let (ann, bob) = (house.person(1), house.person(2));
    let mut stream = bob.open("GET", "/api/events", &Value::Null).await;
    let (conversation, task) = ann.submit(&secret(vec![Op::Think(SECRET.into())])).await;
    bob.submit(&Program(vec![Op::Think(BOBS.into()), Op::Say("bobs-last-words".into())]).text()).await;
    let mut told = String::new();
    while !told.contains("said:bobs-last-words") {
        let frame = stream.body_mut().frame().await.unwrap().unwrap();
        told.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
    }
    for hers in [SECRET, "ann", &task, &conversation] {
        assert!(!told.contains(hers), "{hers}: {told}");
    }
    assert!(told.contains("event: delta"), "chunks of his own replies come: {told}");
}

#[tokio::test]
async fn decisions_are_made_by_whom_they_belong_to_and_the_log_says_who() {
    let house = House::new().await;
    let scopes = [Scope::Read, Scope::Approve, Scope::Everyone].into_iter().collect();
    house.file.add("approver", Some("carl"), scopes, &Token::of_bits([4; 32])).await.unwrap();
    let (ann, bob, carl) = (house.person(1), house.person(2), house.person(4));
    let call = Program(vec![Op::Call(vec![("note".into(), "a".into())])]).text();
    let asked = async |person: &Person<'_>, nth: usize| person.asked(&call, nth).await;
    let decided = async |id: &str| {
        let is_it =
            |recorded: &Recorded| matches!(&recorded.event, Event::EffectEnded { id: ended, .. } if ended.to_string() == id);
        match &house.rig.until(is_it).await.event {
            Event::EffectEnded { outcome: Outcome::Verdict(verdict), .. } => verdict.by.clone(),
            other => panic!("{other:?}"),
        }
    };
    let anns = asked(&ann, 1).await;
    assert_eq!(bob.get("/api/approvals").await["approvals"], json!([]));
    let refused = bob.ask("POST", &format!("/api/approvals/{anns}"), json!({ "approved": true })).await;
    assert_eq!(refused.problem(), (409, "not_open".to_owned()));
    let change = format!("/api/approvals/{anns}/change");
    assert_eq!(bob.get(&change).await, json!({}), "what it would change is not his to see");
    let file = json!({ "path": "note", "isNew": true, "line": 1, "before": "", "after": "a", "isCut": false });
    assert_eq!(ann.get(&change).await, json!({ "file": file }));
    ann.post(&format!("/api/approvals/{anns}"), json!({ "approved": true, "always": "tool" })).await;
    assert_eq!(decided(&anns).await, Some("ann".into()));
    // A lasting approval of hers covers her agents and not his.
    let bobs = asked(&bob, 2).await;
    carl.post(&format!("/api/approvals/{bobs}"), json!({ "approved": false })).await;
    assert_eq!(decided(&bobs).await, Some("carl".into()), "the token has another name than its person");
    let (_, task) = ann.submit(&call).await;
    assert_eq!(ann.get(&format!("/api/tasks/{task}")).await["status"], json!("done"), "she is not asked again");
}

#[tokio::test]
async fn named_approvers_decide_for_everybody_and_nobody_decides_for_themselves() {
    let house = House::with_approvers(vec!["bob".into()]).await;
    let (ann, bob) = (house.person(1), house.person(2));
    let call = secret(vec![Op::Call(vec![("note".into(), "for bob".into())])]);
    let id = ann.asked(&call, 1).await;
    let decide =
        async |person: &Person<'_>| person.ask("POST", &format!("/api/approvals/{id}"), json!({ "approved": true })).await;
    assert_eq!(decide(&ann).await.problem(), (403, "not_approver".to_owned()));
    let listed = bob.get("/api/approvals").await;
    assert_eq!((&listed["approvals"][0]["id"], &listed["approvals"][0]["call"]["arguments"]), (&json!(id), &json!("for bob")));
    assert_eq!((&listed["approvals"][0]["person"], &listed["approvals"][0]["approvers"]), (&json!("ann"), &Value::Null));
    let change = bob.get(&format!("/api/approvals/{id}/change")).await;
    assert_eq!(change["file"]["after"], json!("for bob"));
    // She is told beforehand who decides, and the page what it may offer.
    assert_eq!(ann.get("/api/approvals").await["approvals"][0]["approvers"], json!(["bob"]));
    let page = |of: &Value| ["person", "isApprover", "approvers"].map(|field| of[field].clone());
    assert_eq!(page(&ann.get("/api/page").await), [json!("ann"), json!(false), json!(["bob"])]);
    assert_eq!(page(&bob.get("/api/page").await), [json!("bob"), json!(true), json!([])]);
    let chat = json!({ "model": "polis", "messages": [{ "role": "user", "content": call }] });
    let answer = ann.post("/v1/chat/completions", chat).await["choices"][0]["message"]["content"].to_string();
    assert!(answer.contains("bob decides this") && !answer.contains("Reply"), "{answer}");
    assert!(!listed.to_string().contains(SECRET), "he reads what he is asked, and no more: {listed}");
    let log = bob.get("/api/log?after=0").await;
    assert!(!log.to_string().contains(SECRET), "{log}");
    assert_eq!(decide(&bob).await.ok()["id"], json!(id));
}

#[tokio::test]
async fn events_of_others_hold_nobody_up() {
    let house = House::new().await;
    let (ann, bob) = (house.person(1), house.person(2));
    let limit = Duration::from_secs(30);
    let call = Program(vec![Op::Call(vec![("note".into(), "a".into())])]).text();
    let user = |text: &str| json!({ "role": "user", "content": text });
    let chat = |rest: &[Value]| {
        let messages: Vec<_> = [user(&call)].into_iter().chain(rest.iter().cloned()).collect();
        json!({ "model": "polis", "messages": messages })
    };
    let asked = tokio::time::timeout(limit, ann.post("/v1/chat/completions", chat(&[]))).await.unwrap();
    assert!(asked.to_string().contains("approve"), "{asked}");
    // The last event of the log is another person's.
    bob.post("/api/conversations", json!({})).await;
    let rest = [asked["choices"][0]["message"].clone(), user("approve")];
    let agreed = tokio::time::timeout(limit, ann.post("/v1/chat/completions", chat(&rest))).await;
    assert!(agreed.expect("it waits for an event of her own").to_string().contains("noted"));
    let input = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": call }],
        "tools": [], "context": [], "state": {}, "forwardedProps": {} });
    bob.post("/api/conversations", json!({})).await;
    let run =
        tokio::time::timeout(limit, ann.ask("POST", "/agui/polis", input)).await.expect("the run ends with its interrupt");
    assert!(String::from_utf8_lossy(&run.body).contains("interrupt"), "{}", String::from_utf8_lossy(&run.body));
}

#[tokio::test]
async fn nobody_lies_in_wait_for_the_messages_of_another() {
    let house = House::new().await;
    let bob = house.person(2);
    let (bobs, _) = bob.submit(&Program(vec![Op::Say(BOBS.into())]).text()).await;
    for id in ["chat-0123-0", "agui-0123", "a2a-0123"] {
        let claimed = bob.ask("POST", "/api/conversations", json!({ "id": id })).await;
        assert_eq!(claimed.problem(), (400, "bad_name".to_owned()), "{id}");
        let spawned = house.rig.society.spawn(id.into(), "worker".into(), bobs.as_str().into()).await;
        assert_eq!(spawned.unwrap_err().code(), "bad_name");
    }
    let planted = bob.ask("POST", "/api/send", json!({ "agentId": bobs, "taskId": "a-thread", "text": "[]" })).await;
    assert_eq!(planted.problem(), (404, "unknown_task".to_owned()), "he cannot choose the id of a request");
    // One that is there nevertheless, such as from before, is not joined by a run of the owner's.
    let text = Program(vec![Op::Say(BOBS.into())]).text();
    house.rig.society.for_person("bob".into()).send(bobs.as_str().into(), &text, Some("a-thread".into())).await.unwrap();
    house.rig.ending(&"a-thread".into()).await;
    let words = Program(vec![Op::Say("owners-words".into())]).text();
    let input = json!({ "threadId": "a-thread", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": words }],
        "tools": [], "context": [], "state": {}, "forwardedProps": {} });
    let run = house.rig.post("/agui/polis", input).await;
    assert!(String::from_utf8_lossy(&run.body).contains("owners-words"));
    let thread = bob.get(&format!("/api/threads/{bobs}")).await;
    assert!(!thread.to_string().contains("owners-words"), "{thread}");
}

#[tokio::test]
async fn what_changes_the_whole_society_needs_the_scope_everyone() {
    let house = House::new().await;
    let bob = house.person(2);
    for (target, body) in [
        ("/api/fork", json!({})),
        ("/api/rewind", json!({ "to": 1 })),
        ("/api/org?root=true", json!({ "roles": [], "agents": [] })),
    ] {
        let refused = bob.ask("POST", target, body).await.problem();
        assert_eq!(refused, (403, "missing_scope".to_owned()), "{target}");
    }
    assert_eq!(bob.ask("GET", "/metrics", Value::Null).await.problem(), (403, "missing_scope".to_owned()));
}

#[tokio::test]
async fn memories_of_the_society_need_the_scope_everyone_and_each_person_has_a_switch() {
    let house = House::new().await;
    let (ann, bob) = (house.person(1), house.person(2));
    let kept = ann.ask("POST", "/api/memories", json!({ "text": "for all", "forSociety": true })).await;
    assert_eq!(kept.problem(), (403, "missing_scope".to_owned()));
    let id = house.rig.society.keep_memory(true, "the office is in Rome").await.unwrap();
    let erased = ann.ask("POST", &format!("/api/memories/{id}/erase"), json!({})).await;
    assert_eq!(erased.problem(), (403, "missing_scope".to_owned()));
    assert_eq!(ann.post("/api/memories/enabled", json!({ "enabled": false })).await, json!({ "enabled": false }));
    assert_eq!(ann.get("/api/memories").await["enabled"], json!(false));
    assert_eq!(bob.get("/api/memories").await["enabled"], json!(true));
}
