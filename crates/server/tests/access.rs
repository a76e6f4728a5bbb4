//! Who is let in, for every route of the table.

use std::time::Duration;

use polis_server::{Access, BindError, Listener, Token, listed};

use crate::support::{Reply, Rig, TOKEN, send};

/// A concrete address for a route of the table.
fn concrete(path: &str) -> String {
    path.replace("{taskId}", "t").replace("{id}", "1.0")
}

#[tokio::test]
async fn no_route_but_the_open_ones_answers_without_the_token() {
    let rig = Rig::start().await;
    let last = rig.last();
    for route in listed() {
        for authorization in ["", "Bearer wrong", &format!("Basic {TOKEN}"), &format!("Bearer {TOKEN}0")] {
            let headers = [("content-type", "application/json"), ("authorization", authorization)];
            let reply = Reply::of(send(rig.address, route.method, &concrete(route.path), &headers, b"{}".to_vec()).await).await;
            if route.is_open {
                // What is open may still be missing or turned off.
                assert!([200, 403, 404].contains(&reply.status), "{route:?} {}", reply.status);
            } else {
                assert_eq!(reply.problem(), (401, "unauthorized".to_owned()), "{route:?} {authorization}");
            }
        }
    }
    let elsewhere = Reply::of(send(rig.address, "GET", "/api/nothing", &[], Vec::new()).await).await;
    assert_eq!(elsewhere.problem(), (401, "unauthorized".to_owned()), "what exists is not told either");
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn no_route_answers_to_a_foreign_name_or_page() {
    let rig = Rig::start().await;
    let last = rig.last();
    let own = rig.address.to_string();
    let port = rig.address.port();
    for route in listed() {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.1.2.3", ""] {
            let reply = rig.ask(route.method, &concrete(route.path), &[("host", host)], Vec::new()).await;
            assert_eq!(reply.problem(), (403, "bad_host".to_owned()), "{route:?} {host:?}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &format!("http://localhost:{port}"), &own] {
            let reply = rig.ask(route.method, &concrete(route.path), &[("origin", origin)], Vec::new()).await;
            assert_eq!(reply.problem(), (403, "bad_origin".to_owned()), "{route:?} {origin:?}");
        }
    }
    assert_eq!(rig.last(), last);
    let ours = format!("http://{own}");
    assert_eq!(rig.ask("GET", "/api/agents", &[("origin", &ours)], Vec::new()).await.status, 200);
    assert_eq!(rig.ask("GET", "/api/agents", &[("host", &format!("localhost:{port}"))], Vec::new()).await.status, 200);
}

#[tokio::test]
async fn a_server_is_not_opened_to_other_machines_by_accident() {
    let token = Token::new(TOKEN);
    let bind = async |listen: &str, token: &Option<Token>, insecure_listen: bool| {
        let access = Access { token: token.clone(), insecure_listen };
        Listener::bind(listen.parse().unwrap(), access).await.map(|listener| listener.address()).map_err(|error| error.code())
    };
    assert_eq!(bind("0.0.0.0:0", &token, false).await, Err("not_loopback"));
    assert_eq!(bind("0.0.0.0:0", &None, true).await, Err("no_auth_not_loopback"));
    assert!(bind("0.0.0.0:0", &token, true).await.is_ok());
    assert!(bind("127.0.0.1:0", &None, false).await.is_ok());
    let first = Listener::bind("127.0.0.1:0".parse().unwrap(), Access { token: None, insecure_listen: false }).await.unwrap();
    let second = Listener::bind(first.address(), Access { token: None, insecure_listen: false }).await;
    assert!(matches!(second, Err(BindError::Taken(address)) if address == first.address()));
}

#[tokio::test]
async fn a_stopping_server_takes_nothing_in_and_lets_go_of_its_address() {
    let rig = Rig::start().await;
    let address = rig.address;
    let society = rig.society.clone();
    rig.stop().await;
    assert_eq!(society.submit("[]").await.unwrap_err().code(), "stopping");
    let again =
        tokio::time::timeout(Duration::from_secs(5), Listener::bind(address, Access { token: None, insecure_listen: false }));
    assert!(again.await.unwrap().is_ok());
}
