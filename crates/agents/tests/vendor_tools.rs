//! Tools that the vendor of a model runs itself: who is offered them, and what becomes of what they found.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use polis_agents::Converse;
use polis_domain::{
    AgentId, CallResult, EffectClass, Envelope, Finish, Flow, Role, Ruling, SubThreadPath, ThreadId, Timestamp,
};
use polis_engine::{Cast, Options, Ports, Society, WatchEvent, replay};
use polis_ports::{
    CallContext, Caller, ChatMessage, Citation, Delta, ModelError, ModelRequest, ToolError, ToolSpec, Toolbox, VendorCall,
    VendorTool,
};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::json;

/// A search of the vendor, a private file, and rules for the first.
struct Tools {
    listed: ScriptedTools,
    ruling: Ruling,
}

#[async_trait]
impl Toolbox for Tools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.listed.tools()
    }

    fn ruling(&self, tool: &str, _: &str, _: &Caller<'_>) -> Ruling {
        if tool == "vendor:web_search" { self.ruling.clone() } else { Ruling::Allow }
    }

    fn flow(&self, tool: &str, _: &str, _: &Caller<'_>) -> Flow {
        match tool {
            "vendor:web_search" => Flow { outside: Some("the web".into()), sends: true, ..Flow::default() },
            _ => Flow { private: true, ..Flow::default() },
        }
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.listed.call(tool, arguments, context).await
    }
}

struct Bed {
    log: Arc<MemoryLog>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
    ruling: Ruling,
    /// Whether the vendor of the model has the tool.
    has_tool: bool,
    role: Role,
}

impl Bed {
    fn new() -> Self {
        let role = Role::new("root", "converse");
        Self { log: Arc::default(), asked: Arc::default(), ruling: Ruling::Allow, has_tool: true, role }
    }

    fn ports(&self) -> Ports {
        let asked = self.asked.clone();
        let found = || Delta::VendorCall(VendorCall::new(VendorTool::WebSearch, "q"));
        let model = ScriptedModel::new(move |request| {
            asked.lock().unwrap().push(request.clone());
            let echo = |item: u8| Delta::Echo(Arc::new(json!({ "dialect": "d", "items": [item] })));
            let reply = match request.messages.last() {
                Some(ChatMessage::User { text, .. }) => match &**text {
                    "pause" => ScriptedReply::text("one ").and(found()).and(echo(1)).ending(Finish::Paused),
                    "search, then read" => ScriptedReply::call("c", "read", "{}").and(found()).and(echo(1)),
                    _ => ScriptedReply::text("It is 4.").and(found()).and(Delta::Citation(Citation::new("A", "https://a"))),
                },
                Some(ChatMessage::Assistant { text, .. }) if &**text == "one " => {
                    ScriptedReply::text("two ").and(echo(2)).ending(Finish::Paused)
                }
                Some(ChatMessage::Assistant { .. }) => ScriptedReply::text("three").and(echo(3)),
                _ => ScriptedReply::text("read"),
            };
            reply
        });
        let model = if self.has_tool { model.with_vendor_tool(VendorTool::WebSearch) } else { model };
        let listed = ScriptedTools::new().with("vendor:web_search", EffectClass::Read, |_, _| CallResult::failed("never"));
        let listed = listed.with("read", EffectClass::Read, |_, _| CallResult::good("secret"));
        Ports {
            log: self.log.clone(),
            model: Arc::new(model),
            toolbox: Arc::new(Tools { listed, ruling: self.ruling.clone() }),
            clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
            ..Ports::new(MemoryLog::new())
        }
    }

    async fn open(&self) -> Society {
        Society::open("main".into(), self.ports(), cast(), Options::new(7, self.role.clone())).await.unwrap()
    }

    fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Whether each request had the vendor's search, and the end of its system prompt.
    fn offered(&self) -> Vec<(bool, String)> {
        let note = |system: &str| system.find("[Tools]").map(|at| system[at..].to_owned()).unwrap_or_default();
        self.asked().iter().map(|request| (!request.vendor_tools.is_empty(), note(&request.system))).collect()
    }
}

fn cast() -> Cast {
    Cast::new().with("converse", Converse::default())
}

async fn say(society: &Society, text: &str) -> Arc<Envelope> {
    let sent = society.send(AgentId::root(), text, None).await.unwrap();
    society.answer(&sent).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_model_may_use_its_vendors_tools_and_the_answer_names_the_sources() {
    let bed = Bed::new();
    let society = bed.open().await;
    let answer = say(&society, "what is 2+2?").await;
    assert_eq!(&*answer.payload.text, "It is 4.\n\nSources:\n1. [A](<https://a>)");
    let thread = society.thread(&ThreadId::from("root"), &SubThreadPath::main()).await.unwrap();
    let sources = thread.messages.last().unwrap().meta.get(Citation::META).cloned();
    assert_eq!(sources, Some(json!([{ "title": "A", "url": "https://a" }])));
    assert_eq!(bed.offered(), [(true, String::new())]);
    let request = &bed.asked()[0];
    assert!(request.tools.iter().all(|tool| &*tool.name == "read"), "the vendor's own is no function");
    let log =
        serde_json::to_string(&bed.log.events(&"main".into()).iter().map(|it| it.event.clone()).collect::<Vec<_>>()).unwrap();
    assert!(log.contains("\"vendorCalls\":[{\"tool\":\"web_search\",\"input\":\"q\",\"uses\":1}]"), "{log}");
    assert!(log.contains("\"vendor:web_search\""), "the log names what was offered");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_vendor_lacks_or_policy_forbids_is_not_sent_and_the_person_is_told() {
    let no_word = "policy demands approval, but the vendor makes the calls itself";
    for (ruling, has_tool, why) in [
        (Ruling::Allow, false, "the vendor of v/m does not run it"),
        (Ruling::Deny("too dear".to_owned()), true, "policy denies it: too dear"),
        (Ruling::Ask(String::new()), true, no_word),
        (Ruling::AskEach(String::new()), true, no_word),
    ] {
        let role = Role { models: vec!["v/m".into()], ..Role::new("root", "converse") };
        let bed = Bed { ruling, has_tool, role, ..Bed::new() };
        let society = bed.open().await;
        let mut watch = society.watch(society.log().head(society.id()).await.unwrap());
        say(&society, "hello").await;
        let note =
            format!("[Tools] Not available: `vendor:web_search` ({why}). If you need one of them, say so in your answer.");
        assert_eq!(bed.offered(), [(false, note)]);
        let step = loop {
            if let WatchEvent::Step(step) = watch.next().await.unwrap().unwrap() {
                break step;
            }
        };
        let told = format!("vendor:web_search: {why}");
        assert_eq!((&*step.action, step.component.as_deref()), (VendorTool::NOT_OFFERED, Some(&*told)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_without_the_tool_does_not_get_it() {
    let bed = Bed { role: Role { tools: Some(["read".into()].into()), ..Role::new("root", "converse") }, ..Bed::new() };
    say(&bed.open().await, "hello").await;
    assert_eq!(bed.offered(), [(false, String::new())]);
}

#[tokio::test(start_paused = true)]
async fn after_outside_content_and_private_data_nothing_is_searched_any_more() {
    let bed = Bed::new();
    let society = bed.open().await;
    say(&society, "search, then read").await;
    let offered = bed.offered();
    assert!(offered[0].0 && !offered[1].0, "{offered:?}");
    assert!(offered[1].1.contains("private data and content from outside: a web search by"), "{offered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_pauses_continues_and_the_parts_are_one_answer() {
    let bed = Bed::new();
    let society = bed.open().await;
    let answer = say(&society, "pause").await;
    assert!(answer.payload.text.starts_with("one two three"), "{}", answer.payload.text);
    let asked = bed.asked();
    let echoes: Vec<_> = asked[2].messages[1..]
        .iter()
        .map(|message| match message {
            ChatMessage::Assistant { echo, .. } => echo.as_ref().unwrap()["items"].clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((asked.len(), echoes), (3, vec![json!([1]), json!([2])]));
    society.stop(std::time::Duration::ZERO).await;
    let replayed = replay(&"main".into(), &bed.ports(), &cast()).await.unwrap();
    assert_eq!((replayed.divergences, replayed.turns), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_is_asked_once_more_and_then_the_next_one_is() {
    let model = ScriptedModel::new(|request| match &*request.model {
        "v/silent" => ScriptedReply::default(),
        "v/broken" => ScriptedReply::error(ModelError::Rejected { reason: "no".to_owned() }),
        _ => ScriptedReply::text("here"),
    });
    let asked = model.counter();
    let ports = Ports {
        model: Arc::new(model),
        clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
        ..Ports::new(MemoryLog::new())
    };
    let role = Role { models: vec!["v/silent".into(), "v/broken".into(), "v/m".into()], ..Role::new("root", "converse") };
    let society = Society::open("main".into(), ports, cast(), Options::new(7, role)).await.unwrap();
    assert_eq!(&*say(&society, "hello").await.payload.text, "here");
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 4);
}
