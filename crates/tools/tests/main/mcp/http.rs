//! Streamable HTTP: sessions that end, streams that break, and what every request carries.

use std::time::Duration;

use polis_ports::{ServerState, Toolbox};
use polis_tools::mcp::{McpOptions, McpServers, ServerSettings, ServerTransport};
use serde_json::json;

use super::remote::Remote;
use super::{bad, good, open, open_with, options, until};
use crate::bench::context;

async fn opened(remote: &Remote) -> std::sync::Arc<McpServers> {
    open([ServerSettings::new("remote", ServerTransport::Http { url: remote.url(), headers: Default::default() })]).await
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

/// More than a message may be, with what lies in the pipes; far less than a server that never ends can send.
const FAR_BYTES: usize = 32 << 20;

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_and_the_server_stays() {
    for tool in ["endless_json", "endless_error"] {
        let remote = Remote::open();
        let servers = opened(&remote).await;
        let said = bad(&servers, &format!("remote__{tool}"), json!({})).await;
        assert!(said.contains("longer than 8388608 bytes") || said.contains("HTTP 400"), "{said}");
        assert!(said.len() < 1_000 && !said.contains("::"), "{said}");
        until("the server is not read any more", || remote.poured() > 0).await;
        assert!(remote.poured() < FAR_BYTES, "{tool}: {}", remote.poured());
        assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
    }
}

#[tokio::test]
async fn an_event_that_never_ends_is_cut_and_the_server_stays() {
    let remote = Remote::open();
    let reach = ServerTransport::Http { url: remote.url(), headers: Default::default() };
    let servers = open([ServerSettings { timeout: Duration::from_secs(5), ..ServerSettings::new("remote", reach) }]).await;
    bad(&servers, "remote__endless_event", json!({})).await;
    until("the server is not read any more", || remote.poured() > 0).await;
    assert!(remote.poured() < FAR_BYTES, "{}", remote.poured());
    until("it is there", || servers.servers()[0].state == ServerState::Connected).await;
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
}

#[tokio::test]
async fn a_first_answer_that_never_ends_keeps_the_server_down() {
    let remote = Remote::flooding();
    let reach = ServerTransport::Http { url: remote.url(), headers: Default::default() };
    let options = McpOptions { first_pause: Duration::from_secs(60), ..options() };
    let servers = open_with([ServerSettings::new("remote", reach)], options).await;
    let server = servers.servers().remove(0);
    assert_eq!(server.state, ServerState::Down);
    assert!(server.detail.contains("longer than 8388608 bytes") && !server.detail.contains("::"), "{}", server.detail);
    until("the server is not read any more", || remote.poured() > 0).await;
    assert!(remote.poured() < 2 * FAR_BYTES, "{}", remote.poured());
}
