//! Streamable HTTP: sessions that end, streams that break, and what every request carries.

use std::time::Duration;

use polis_ports::Toolbox;
use polis_tools::mcp::{McpServers, Reach, ServerSettings};
use serde_json::json;

use super::remote::Remote;
use super::{good, open, until};
use crate::bench::context;

async fn opened(remote: &Remote) -> std::sync::Arc<McpServers> {
    open([ServerSettings::new("remote", Reach::Http { url: remote.url(), headers: Default::default() })]).await
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_opened_anew_within_a_call() {
    let remote = Remote::open();
    let servers = opened(&remote).await;
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
    remote.forget_sessions();
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-2");
    assert_eq!(remote.count("/mcp", r#""method":"initialize""#), 2);
}

#[tokio::test]
async fn a_stream_that_breaks_is_taken_up_where_it_ended() {
    let remote = Remote::open();
    let servers = opened(&remote).await;
    assert_eq!(good(&servers, "remote__broken", json!({})).await, "the rest of the stream");
    assert_eq!(remote.count("/mcp", r#""name":"broken""#), 1, "the call itself was not repeated");
}

#[tokio::test]
async fn requests_carry_the_protocol_and_the_session_and_the_session_is_ended() {
    let remote = Remote::open();
    let servers = opened(&remote).await;
    good(&servers, "remote__session", json!({})).await;
    servers.close().await;
    until("the session is ended", || remote.seen().iter().any(|seen| seen.verb == "DELETE")).await;
    let after: Vec<_> = remote.seen().into_iter().skip_while(|seen| seen.method() != "initialize").skip(1).collect();
    assert!(after.iter().any(|seen| seen.method() == "tools/call"), "{after:?}");
    for seen in after {
        let header = |name: &str| seen.headers.get(name).map(String::as_str);
        assert_eq!(header("mcp-session-id"), Some("session-1"), "{seen:?}");
        assert_eq!(header("mcp-protocol-version"), Some("2025-06-18"), "{seen:?}");
    }
}

#[tokio::test]
async fn a_call_over_http_that_nobody_waits_for_is_cancelled() {
    let remote = Remote::open();
    let servers = opened(&remote).await;
    let context = context();
    let call = tokio::time::timeout(Duration::from_millis(200), servers.call("remote__hang", "{}", &context));
    assert!(call.await.is_err());
    until("the server is told", || remote.count("/mcp", "notifications/cancelled") == 1).await;
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1", "and is still there");
}
