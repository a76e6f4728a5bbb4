//! Servers that want to know who asks: a person logs in once, and what came of it is kept and renewed.

use std::sync::Arc;

use polis_ports::{Documents as _, ServerState, Toolbox};
use polis_testkit::MemoryDocuments;
use polis_tools::HttpOptions;
use polis_tools::mcp::{LOGINS, McpError, McpOptions, McpServers, ServerSettings, ServerTransport, login, logout};
use serde_json::json;

use super::conformance::browser;
use super::remote::{MARKS, Remote};
use super::{acting, bad, good, open_with, options, states, until};

fn settings(remote: &Remote) -> ServerSettings {
    ServerSettings::new("remote", ServerTransport::Http { url: remote.url(), headers: Default::default() })
}

async fn opened(remote: &Remote, logins: &MemoryDocuments) -> Arc<McpServers> {
    open_with([settings(remote)], McpOptions { logins: Some(Arc::new(logins.clone())), ..options() }).await
}

async fn log_in(remote: &Remote, logins: &MemoryDocuments) -> Result<(), McpError> {
    let open = |address: &str| drop(tokio::spawn(browser::open(address.to_owned())));
    login(&settings(remote), Arc::new(logins.clone()), &HttpOptions::default(), open).await
}

async fn connected(servers: &McpServers) {
    until("it is connected", || states(servers)[0].1 == ServerState::Connected).await;
}

#[tokio::test]
async fn a_server_that_wants_a_login_says_so_comes_up_after_it_and_later_without_it() {
    let (remote, logins) = (Remote::closed(3_600), MemoryDocuments::default());
    let servers = opened(&remote, &logins).await;
    let down = servers.servers().remove(0);
    assert_eq!((down.state, down.detail.as_str()), (ServerState::Down, "it requires a login: run `polis tools login remote`"));
    let said = bad(&servers, "remote__session", json!({})).await;
    assert!(said.contains("run `polis tools login remote`; nothing was done"), "{said}");
    log_in(&remote, &logins).await.unwrap();
    connected(&servers).await;
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
    let told = format!("{:?}", servers.servers());
    assert!(!MARKS.iter().any(|mark| told.contains(mark)), "{told}");
    servers.close().await;
    let again = opened(&remote, &logins).await;
    assert_eq!(good(&again, "remote__session", json!({})).await, "session-1");
    assert_eq!((remote.count("/register", ""), remote.count("/token", "")), (1, 1), "one login is enough");
}

#[tokio::test]
async fn a_login_is_stored_until_a_logout() {
    let (remote, logins) = (Remote::closed(3_600), MemoryDocuments::default());
    log_in(&remote, &logins).await.unwrap();
    let names = logins.names(LOGINS).await.unwrap();
    let [name] = &*names else { panic!("{names:?}") };
    assert!(String::from_utf8(logins.read(name).await.unwrap().unwrap()).unwrap().contains("access-of-1"));
    for was_there in [true, false] {
        assert_eq!(logout(&settings(&remote), Arc::new(logins.clone())).await, Ok(was_there));
    }
    let servers = opened(&remote, &logins).await;
    assert_eq!(states(&servers)[0].1, ServerState::Down);
}

#[tokio::test]
async fn a_server_that_says_only_to_a_post_where_its_metadata_is_can_be_logged_in_to_first() {
    let (remote, logins) = (Remote::hidden(), MemoryDocuments::default());
    log_in(&remote, &logins).await.unwrap();
    let servers = opened(&remote, &logins).await;
    assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
}

#[tokio::test]
async fn a_token_that_runs_out_is_renewed_also_by_a_later_process() {
    let (remote, logins) = (Remote::closed(5), MemoryDocuments::default());
    log_in(&remote, &logins).await.unwrap();
    for _ in 0..2 {
        let servers = opened(&remote, &logins).await;
        assert_eq!(good(&servers, "remote__session", json!({})).await, "session-1");
        servers.close().await;
    }
    let renewed = remote.count("/token", "grant_type=refresh_token");
    assert!(renewed >= 2, "{renewed}");
    let refreshes = remote.seen().into_iter().filter(|seen| seen.path == "/token");
    assert!(refreshes.skip(1).all(|seen| seen.headers["authorization"].starts_with("Basic ")), "with what we were given");
}

#[tokio::test]
async fn a_login_that_is_taken_back_takes_the_server_down_until_the_next_one() {
    let (remote, logins) = (Remote::closed(3_600), MemoryDocuments::default());
    log_in(&remote, &logins).await.unwrap();
    let servers = opened(&remote, &logins).await;
    good(&servers, "remote__session", json!({})).await;
    remote.revoke();
    let said = bad(&servers, "remote__session", json!({})).await;
    assert!(said.contains("it requires a login: run `polis tools login remote`; nothing was done"), "{said}");
    until("it is down", || states(&servers)[0].1 == ServerState::Down).await;
    log_in(&remote, &logins).await.unwrap();
    connected(&servers).await;
    good(&servers, "remote__session", json!({})).await;
}

#[tokio::test]
async fn where_nobody_can_log_in_the_reason_is_given() {
    let logins = Arc::new(MemoryDocuments::default());
    let none = |_: &str| panic!("there is nothing to open");
    let program = login(&acting("good"), logins.clone(), &HttpOptions::default(), none).await.unwrap_err().to_string();
    assert!(program.contains("it has no login"), "{program}");
    let remote = Remote::closed(3_600);
    let headers = [("authorization".to_owned(), "Bearer mine".to_owned())].into();
    let own = ServerSettings::new("own", ServerTransport::Http { url: remote.url(), headers });
    let by_hand = login(&own, logins.clone(), &HttpOptions::default(), none).await.unwrap_err().to_string();
    assert!(by_hand.contains("already have an Authorization"), "{by_hand}");
    let servers = open_with([own], McpOptions { logins: Some(logins), ..options() }).await;
    let down = servers.servers().remove(0).detail;
    assert_eq!(down, "it does not accept the Authorization that is set for it (401)");
    assert!(remote.seen().iter().all(|seen| seen.headers.get("authorization").is_none_or(|value| value == "Bearer mine")));
}
