//! Connections that are kept for the next request.

use std::time::Duration;

use polis_providers::{HttpClient, RemoteModel, RemoteOptions};
use polis_testkit::hostile::{HostileServer, ServerAction};

use crate::server::{SSE, ask, events, response};

const DEADLINE: Duration = Duration::from_secs(20);

/// A server that says hi, over the same connection as often as it is asked; at its second address it closes instead.
async fn polite() -> HostileServer {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let actions = move |number| match number {
        1 => vec![ServerAction::Close],
        _ => vec![ServerAction::Send(response(200, SSE, hi.as_bytes(), 999))],
    };
    HostileServer::start(actions).await.unwrap()
}

fn model(http: &HttpClient, server: &HostileServer) -> RemoteModel {
    RemoteModel::new(http.clone(), RemoteOptions::new("test", server.url(0), "small")).unwrap()
}

async fn says_hi(model: &RemoteModel) {
    let reply = tokio::time::timeout(DEADLINE, ask(model)).await.expect("it answers");
    assert_eq!(reply.unwrap().text, "hi");
}

#[tokio::test]
async fn a_connection_is_used_again_by_whoever_comes_next() {
    let (server, http) = (polite().await, HttpClient::default());
    for _ in 0..5 {
        says_hi(&model(&http, &server)).await;
    }
    assert_eq!(server.open_connections(), 1);
    let (one, other) = (model(&http, &server), model(&http, &server));
    tokio::join!(says_hi(&one), says_hi(&other));
    says_hi(&other).await;
    assert_eq!(server.open_connections(), 2);
    let elsewhere = polite().await;
    says_hi(&model(&http, &elsewhere)).await;
    assert_eq!((server.open_connections(), elsewhere.open_connections()), (2, 1), "each has its own");
}

#[tokio::test]
async fn after_a_reused_connection_has_failed_no_other_to_that_place_is_reused() {
    let (server, http) = (polite().await, HttpClient::default());
    let (one, other) = (model(&http, &server), model(&http, &server));
    tokio::join!(says_hi(&one), says_hi(&other));
    assert_eq!(server.open_connections(), 2);
    let closing = RemoteModel::new(http.clone(), RemoteOptions::new("test", server.url(1), "small")).unwrap();
    let error = ask(&closing).await.unwrap_err();
    assert_eq!((error.code(), error.is_passing()), ("model_cut", true));
    assert!(server.is_left_alone(DEADLINE).await, "{http:?}");
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed() {
    let (server, http) = (polite().await, HttpClient::default());
    for _ in 0..2 {
        says_hi(&model(&http, &server)).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(25)).await;
        tokio::time::resume();
        assert!(!server.is_left_alone(Duration::from_millis(50)).await, "it may be used again soon");
        tokio::time::pause();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(30)).await;
        }
        tokio::time::resume();
        assert!(server.is_left_alone(DEADLINE).await, "{http:?}");
    }
}

#[test]
fn a_connection_outlives_the_runtime_that_opened_it_for_nobody() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (home, http) = (runtime(), HttpClient::default());
    let server = home.block_on(polite());
    for _ in 0..2 {
        let guest = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        guest.block_on(says_hi(&model(&http, &server)));
        drop(guest);
        home.block_on(says_hi(&model(&http, &server)));
    }
}
