//! Resources and prompts of servers, as tools.

use std::time::Duration;

use polis_domain::EffectClass;
use polis_ports::{ToolError, Toolbox};
use polis_tools::mcp::ServerSettings;
use serde_json::json;

use super::{acting, bad, call, good, names, open};

#[tokio::test]
async fn a_server_with_resources_and_prompts_lends_tools_for_them() {
    let servers = open([acting("shelf"), acting("good")]).await;
    let lent = ["list_resources", "read_resource", "list_prompts", "get_prompt"];
    for name in lent {
        let whole = format!("shelf__{name}");
        let tools = servers.tools();
        let spec = tools.iter().find(|tool| *tool.name == *whole).unwrap();
        assert_eq!(spec.class, EffectClass::Read);
        assert!(servers.servers()[0].tools.contains(&spec.name), "shown with its server");
        assert!(!names(&servers).contains(&format!("good__{name}")), "the other has none");
        let bare = call(&servers, name, json!({})).await.unwrap_err();
        assert_eq!(bare, ToolError::Unknown(name.to_owned()), "a bare name is a tool of a server's own");
    }
}

#[tokio::test]
async fn resources_are_listed_as_they_are_now_and_read_in_bounds() {
    let servers = open([acting("shelf")]).await;
    let listed = good(&servers, "shelf__list_resources", json!({})).await;
    assert_eq!(listed, "note://1 (first, text/plain)\nnote://{number} (template any note)");
    good(&servers, "shelf__grow", json!({})).await;
    let found = good(&servers, "shelf__list_resources", json!({ "contains": "SECOND" })).await;
    assert_eq!(found, "note://2 (second)", "the new one, and no other");
    let text = good(&servers, "shelf__read_resource", json!({ "uri": "note://7" })).await;
    assert_eq!(text, "[resource note://7]\nthis is note://7");
    let huge = good(&servers, "shelf__read_resource", json!({ "uri": "note://huge" })).await;
    assert!(huge.len() < 50_000 && huge.contains("bytes are left out here]"), "{}", huge.len());
    assert_eq!(bad(&servers, "shelf__read_resource", json!({ "uri": "x" })).await, "error: no such note (-32002)");
    let refused = call(&servers, "shelf__read_resource", json!({})).await.unwrap_err();
    assert!(matches!(refused, ToolError::BadArguments(_)), "{refused}");
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let servers = open([acting("shelf")]).await;
    assert_eq!(good(&servers, "shelf__list_prompts", json!({})).await, "greet (who): says hello");
    let wanted = json!({ "name": "greet", "arguments": { "who": 7 } });
    assert_eq!(good(&servers, "shelf__get_prompt", wanted).await, "user: greet \"7\"\nassistant: hello");
}

#[tokio::test]
async fn a_resource_that_never_comes_is_given_up_and_the_server_told() {
    let servers = open([ServerSettings { timeout: Duration::from_millis(200), ..acting("shelf") }]).await;
    let said = bad(&servers, "shelf__read_resource", json!({ "uri": "note://silent" })).await;
    assert!(said.contains("no sign of life for 0.2 s"), "{said}");
    assert_eq!(good(&servers, "shelf__told", json!({})).await, "1");
}
