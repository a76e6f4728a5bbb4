//! What a call carries, what comes back, and what servers may ask.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::EffectClass;
use polis_ports::{CallContext, ServerState, ToolError, Toolbox};
use polis_tools::mcp::{JoinedTools, McpError, McpOptions, ServerSettings, ServerTransport};
use serde_json::{Value, json};

use super::{acting, bad, call, good, names, open, open_with, options, states, until};
use crate::bench::{bench, context, over};

#[tokio::test]
async fn tools_of_servers_have_their_servers_names_and_are_writes() {
    let off = ServerSettings { enabled: false, ..acting("off") };
    let servers = open([acting("good"), off, acting("dies")]).await;
    let tools = servers.tools();
    assert_eq!(&*tools[0].name, "good__echo");
    assert!(tools.iter().all(|tool| tool.name.starts_with("good__") && tool.class == EffectClass::Write));
    assert_eq!(tools.len(), 12, "both pages");
    let (off, dies) = (("off".to_owned(), ServerState::Off), ("dies".to_owned(), ServerState::Down));
    assert_eq!(states(&servers), [("good".to_owned(), ServerState::Connected), off, dies]);
    until("what it said is told", || servers.servers()[2].detail.contains("no licence for this machine")).await;
    servers.close().await;
    assert!(names(&servers).is_empty());
}

#[tokio::test]
async fn a_call_carries_its_arguments_and_on_whose_behalf_it_is_made() {
    let servers = open([acting("good")]).await;
    assert_eq!(good(&servers, "good__echo", json!({ "a": [1, "二"] })).await, r#"{"a":[1,"二"]}"#);
    let meta: Value = serde_json::from_str(&good(&servers, "good__meta", json!({})).await).unwrap();
    assert_eq!(meta["idempotencyKey"], json!(context().idempotency_key()));
    assert_eq!((&meta["currentTaskId"], &meta["thread"]), (&json!("task"), &json!("root")));
    assert_eq!((&meta["currentResourceId"], &meta["path"]), (&json!("doc-7"), &json!("messages[2].meta._thread")));
    let nothing = CallContext { resource: None, ..context() };
    let meta = servers.call("good__meta", "{}", &nothing).await.unwrap().content;
    assert!(!meta.contains("currentResourceId"), "{meta}");
    let told = json!({ "selection": "row 3", "currentTaskId": "another", "io.modelcontextprotocol/x": 1 })
        .as_object()
        .unwrap()
        .clone();
    let told = CallContext { application: told, ..context() };
    let meta: Value = serde_json::from_str(&servers.call("good__meta", "{}", &told).await.unwrap().content).unwrap();
    assert_eq!((&meta["selection"], &meta["currentTaskId"]), (&json!("row 3"), &json!("task")), "ours counts first");
    assert!(meta.get("io.modelcontextprotocol/x").is_none(), "{meta}");
    assert_eq!(servers.call("good__echo", "", &context()).await.unwrap().content.as_ref(), "{}");
    for arguments in ["[1]", "{", "7", "\"x\""] {
        let refused = servers.call("good__echo", arguments, &context()).await.unwrap_err();
        assert!(matches!(refused, ToolError::BadArguments(_)), "{refused}");
    }
}

#[tokio::test]
async fn a_bare_name_is_the_first_servers_and_an_unknown_one_is_nobodys() {
    let servers = open([acting("dies"), acting("good"), acting("liar")]).await;
    let listed = servers.listed("echo").unwrap();
    assert_eq!(&*listed, "good__echo");
    assert_eq!(good(&servers, &listed, json!({})).await, "{}");
    assert_eq!(
        call(&servers, "echo", json!({})).await.unwrap_err(),
        ToolError::Unknown("echo".to_owned()),
        "only what is listed runs"
    );
    for unknown in ["good__missing", "missing", "default__echo", ""] {
        let refused = call(&servers, unknown, json!({})).await.unwrap_err();
        assert_eq!(refused, ToolError::Unknown(unknown.to_owned()));
        assert_eq!(servers.listed(unknown), Err(refused));
    }
    let down = call(&servers, "dies__echo", json!({})).await.unwrap_err();
    assert_eq!(servers.listed("dies__echo"), Err(down.clone()));
    let down = down.to_string();
    assert!(down.contains("the server `dies` is not connected") && down.ends_with("; nothing was done"), "{down}");
}

#[tokio::test]
async fn what_a_server_refuses_is_an_error_that_the_model_reads() {
    let servers = open([acting("good"), acting("liar")]).await;
    assert_eq!(bad(&servers, "good__deny", json!({})).await, "error: not like this (-32602)");
    assert_eq!(bad(&servers, "liar__nothing", json!({})).await, "error: no tool nothing (-32602)");
}

#[tokio::test]
async fn a_server_sees_no_secrets_of_ours() {
    let servers = open([acting("good")]).await;
    let environment = good(&servers, "good__environment", json!({})).await;
    let names: Vec<_> = environment.split(' ').collect();
    assert!(names.contains(&"PATH") && names.contains(&"POLIS_TEST_PART"), "{names:?}");
    // Cargo sets dozens of these for every test.
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[tokio::test]
async fn a_list_that_changes_is_read_again() {
    let servers = open([acting("good")]).await;
    let own = Arc::new(over(bench().path()));
    let joined = JoinedTools::new(own, servers.clone());
    let has = |name: &str| joined.tools().iter().any(|tool| &*tool.name == name);
    assert!(has("read_file") && has("good__echo") && !has("good__grown"));
    good(&servers, "good__grow", json!({})).await;
    until("the new tool is there", || has("good__grown")).await;
    assert_eq!(joined.call("good__echo", "{}", &context()).await.unwrap().content.as_ref(), "{}");
    let unknown = joined.call("good__gone", "{}", &context()).await.unwrap_err();
    assert_eq!(unknown, ToolError::Unknown("good__gone".to_owned()));
    let own = joined.call("list_files", "{}", &context()).await.unwrap();
    assert!(!own.is_error, "{}", own.content);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let servers = open([acting("good")]).await;
    let context = context();
    let given_up = tokio::time::timeout(Duration::from_millis(50), servers.call("good__hang", "{}", &context)).await;
    assert!(given_up.is_err());
    let told = async { while good(&servers, "good__told", json!({})).await != "1" {} };
    tokio::time::timeout(super::PATIENCE, told).await.expect("the server is told");
}

#[tokio::test]
async fn progress_extends_the_time_that_a_call_may_take() {
    let servers = open([ServerSettings { timeout: Duration::from_millis(450), ..acting("good") }]).await;
    assert_eq!(good(&servers, "good__steps", json!({})).await, "all steps");
}

#[tokio::test]
async fn servers_are_told_the_roots_that_are_named_for_them_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    ["work/.polis", "docs", "own"].iter().for_each(|name| std::fs::create_dir_all(at(name)).unwrap());
    let with = |roots: Option<Vec<std::path::PathBuf>>, arguments: &[&str]| {
        let mut settings = ServerSettings { roots, ..acting("good") };
        if let ServerTransport::Command { args, .. } = &mut settings.transport {
            args.extend(arguments.iter().map(|name| at(name).display().to_string()));
        }
        settings
    };
    let cases = [
        (with(None, &[]), vec![]),
        (with(None, &["own", "missing"]), vec!["own"]),
        (with(Some(vec![at("docs")]), &["own"]), vec!["docs"]),
        (with(Some(vec![at("docs"), at("work"), at("work/.polis")]), &[]), vec!["docs"]),
        (with(None, &["work"]), vec![]),
    ];
    for (settings, want) in cases {
        let servers = open_with([settings], McpOptions { closed: vec![at("work/.polis")], ..options() }).await;
        let told = good(&servers, "good__ask", json!({ "method": "roots/list" })).await;
        for name in ["work", "docs", "own"] {
            let is_told = told.contains(&format!("file://{}\"", at(name).canonicalize().unwrap().display()));
            assert_eq!(is_told, want.contains(&name), "{name}: {told}");
        }
        servers.close().await;
    }
    let servers = open([acting("good")]).await;
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "hi" } }]);
    let sample = json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 5 } });
    let no = good(&servers, "good__ask", sample).await;
    assert!(no.contains("no model is available for this call"), "{no}");
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let elicit = json!({ "method": "elicitation/create", "params": { "message": "who?", "requestedSchema": schema } });
    let no = good(&servers, "good__ask", elicit).await;
    assert!(no.contains(r#""action":"cancel""#), "{no}");
}

#[tokio::test]
async fn a_server_that_pings_is_answered() {
    let servers = open([acting("good")]).await;
    let pong = good(&servers, "good__ask", json!({ "method": "ping" })).await;
    assert!(pong.contains(r#""result":{}"#) && pong.contains(r#""id":"q""#), "{pong}");
}

#[tokio::test]
async fn a_server_that_nobody_set_up_has_nothing_to_read() {
    let servers = open([acting("dies")]).await;
    assert_eq!(servers.resources("other").await, Err(McpError::Unknown("other".to_owned())));
    let down = servers.prompts("dies").await.unwrap_err().to_string();
    assert!(down.contains("`dies` is not connected"), "{down}");
}
