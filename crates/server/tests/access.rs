//! Who is let in, for every route of the table: a route that is added is tested here without a word.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use polis_server::{Access, BindError, Listener, Rate, Rates, Scope, Scopes, Security, Tls, Token, TokenList, route_table};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{Reply, Rig, TOKEN, send, sent, token_list};

/// A concrete address for a route of the table.
fn concrete(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "1.0".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn no_route_but_the_open_ones_answers_without_the_token() {
    let rig = Rig::start().await;
    let last = rig.last();
    for route in route_table() {
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
    for elsewhere in ["/api/nothing", "/s/other/api/health", "/api/submit"] {
        let elsewhere = Reply::of(send(rig.address, "GET", elsewhere, &[], Vec::new()).await).await;
        assert_eq!(elsewhere.problem(), (401, "unauthorized".to_owned()), "what exists is not told either");
    }
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn no_route_answers_to_a_foreign_name_or_page() {
    let rig = Rig::start().await;
    let last = rig.last();
    let own = rig.address.to_string();
    let port = rig.address.port();
    for route in route_table() {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.1.2.3", ""] {
            let reply = rig.ask(route.method, &concrete(route.path), &[("host", host)], Vec::new()).await;
            assert_eq!(reply.problem(), (403, "bad_host".to_owned()), "{route:?} {host:?}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &format!("http://localhost:{port}"), &own] {
            let reply = rig.ask(route.method, &concrete(route.path), &[("origin", origin)], Vec::new()).await;
            assert_eq!(reply.problem(), (403, "bad_origin".to_owned()), "{route:?} {origin:?}");
        }
        for site in ["cross-site", "same-site", "strange"] {
            let frame = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
            let reply = rig.ask(route.method, &concrete(route.path), &frame, Vec::new()).await;
            assert_eq!(reply.problem(), (403, "bad_origin".to_owned()), "{route:?} {site:?}");
        }
    }
    assert_eq!(rig.last(), last);
    let ours = format!("http://{own}");
    assert_eq!(rig.ask("GET", "/api/agents", &[("origin", &ours)], Vec::new()).await.status, 200);
    assert_eq!(rig.ask("GET", "/api/agents", &[("sec-fetch-site", "same-origin")], Vec::new()).await.status, 200);
    assert_eq!(rig.ask("GET", "/api/agents", &[("host", &format!("localhost:{port}"))], Vec::new()).await.status, 200);
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(rig.ask("GET", "/", &link, Vec::new()).await.status, 200, "a link may be followed");
}

/// Tokens with one scope each, and with all but one.
struct Keys {
    file: TokenList,
}

impl Keys {
    async fn new() -> Self {
        let file = token_list();
        for scope in Scope::ALL {
            file.add(&format!("only-{scope}"), Some("owner"), [scope].into_iter().collect(), &Self::only(scope)).await.unwrap();
            let others: Scopes = Scope::ALL.into_iter().filter(|other| *other != scope).collect();
            file.add(&format!("not-{scope}"), Some("owner"), others, &Self::all_but(scope)).await.unwrap();
        }
        Self { file }
    }

    fn only(scope: Scope) -> Token {
        Token::of_bits([scope as u8 + 1; 32])
    }

    fn all_but(scope: Scope) -> Token {
        Token::of_bits([scope as u8 + 101; 32])
    }

    fn security(&self) -> Security {
        Security { tokens: Some(self.file.clone()), ..Security::default() }
    }
}

#[tokio::test]
async fn each_route_answers_to_its_own_scope_and_to_no_other() {
    let keys = Keys::new().await;
    let rig = Rig::behind(keys.security()).await;
    let ask = async |method: &str, target: &str, token: Token| {
        let bearer = format!("Bearer {}", token.as_str());
        let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
        send(rig.address, method, target, &headers, b"{}".to_vec()).await
    };
    for route in route_table() {
        let Some(scope) = route.scope else { continue };
        let last = rig.last();
        let wrong = Reply::of(ask(route.method, &concrete(route.path), Keys::all_but(scope)).await).await;
        assert_eq!(wrong.problem(), (403, "missing_scope".to_owned()), "{route:?}");
        assert_eq!(rig.last(), last, "{route:?}");
        let right = ask(route.method, &concrete(route.path), Keys::only(scope)).await.status();
        // These reach what belongs to everybody, so they need `everyone` too.
        let needs_everyone = ["/api/fork", "/api/rewind", "/api/org", "/metrics"].contains(&route.path);
        assert!(right != 401 && (right != 403 || needs_everyone), "{route:?} {right}");
    }
    keys.file.revoke("only-read").await.unwrap();
    let revoked = async { while ask("GET", "/api/agents", Keys::only(Scope::Read)).await.status() != 401 {} };
    tokio::time::timeout(Duration::from_secs(20), revoked).await.expect("a revoked token opens nothing");
}

#[tokio::test]
async fn the_page_gets_a_cookie_for_the_token_of_its_address() {
    let rig = Rig::start().await;
    let open = async |target: &str| Reply::of(send(rig.address, "GET", target, &[], Vec::new()).await).await;
    assert_eq!(open("/?token=wrong").await.problem(), (401, "unauthorized".to_owned()));
    let begun = open(&format!("/?token={TOKEN}")).await;
    assert_eq!((begun.status, begun.headers["location"].to_str().unwrap()), (303, "/"));
    let cookie = begun.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let ask = async |method: &str, target: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> =
            headers.iter().copied().chain([("cookie", cookie), ("content-type", "application/json")]).collect();
        send(rig.address, method, target, &headers, br#"{"text":"[]"}"#.to_vec()).await.status().as_u16()
    };
    assert_eq!(ask("GET", "/api/agents", &[("sec-fetch-site", "same-origin")]).await, 200);
    assert_eq!(ask("POST", "/api/submit", &[("sec-fetch-site", "same-origin")]).await, 200);
    assert_eq!(ask("POST", "/api/submit", &[]).await, 401, "nobody says which page asks");
    assert_eq!(ask("GET", "/api/agents", &[]).await, 401, "nor here: another program of this machine may have the cookie");
    let (own, other) = (format!("http://{}", rig.address), format!("http://localhost:{}", rig.address.port()));
    assert_eq!(ask("GET", "/api/agents", &[("origin", &own)]).await, 200);
    assert_eq!(ask("GET", "/api/agents", &[("origin", &other)]).await, 403);
    let encrypted = own.replace("http:", "https:");
    assert_eq!(ask("GET", "/api/agents", &[("origin", &encrypted)]).await, 403, "nothing is encrypted here");
    assert_eq!(ask("GET", "/api/agents", &[("sec-fetch-site", "same-site")]).await, 403, "another port of this machine");
    assert_eq!(ask("GET", "/api/agents", &[("authorization", "Bearer wrong")]).await, 401);
}

#[tokio::test]
async fn only_pages_that_were_named_may_ask_and_with_a_token_alone() {
    let security = Security { cors: vec!["https://friend.example".to_owned()], ..Security::default() };
    let rig = Rig::behind(security).await;
    let bearer = format!("Bearer {TOKEN}");
    let from = async |origin: &str, method: &str, token: bool| {
        let headers = [("origin", origin), ("sec-fetch-site", "cross-site"), ("authorization", &*bearer)];
        Reply::of(send(rig.address, method, "/api/agents", &headers[..2 + usize::from(token)], Vec::new()).await).await
    };
    let allowed = from("https://friend.example", "GET", true).await;
    assert_eq!(allowed.ok()["agents"][0]["id"], "root");
    assert_eq!(allowed.headers["access-control-allow-origin"], "https://friend.example");
    assert!(!allowed.headers.contains_key("access-control-allow-credentials"));
    assert_eq!(from("https://friend.example", "OPTIONS", false).await.status, 204);
    let wanted = "authorization,content-type,a2a-version,x-conversation-id,x-stainless-lang,x-stainless-retry-count";
    let asks = [("origin", "https://friend.example"), ("access-control-request-headers", wanted)];
    let preflight = Reply::of(send(rig.address, "OPTIONS", "/a2a", &asks, Vec::new()).await).await;
    let listed = |name: &str| -> Vec<String> {
        preflight.headers[name].to_str().unwrap().split(',').map(|name| name.trim().to_owned()).collect()
    };
    let may = listed("access-control-allow-headers");
    assert!(wanted.split(',').all(|name| may.iter().any(|may| may == name)), "{may:?}");
    assert!(!may.iter().any(|name| name == "cookie" || name == "*"));
    assert!(listed("access-control-expose-headers").contains(&"idempotent-replayed".to_owned()));
    assert_eq!(from("https://friend.example", "GET", false).await.problem().0, 401);
    for foreign in ["https://friend.example.evil.example", "http://friend.example", "null"] {
        let refused = from(foreign, "GET", true).await;
        assert_eq!(refused.problem(), (403, "bad_origin".to_owned()), "{foreign}");
        assert!(!refused.headers.contains_key("access-control-allow-origin"));
    }
    assert!(!rig.get("/api/agents").await.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn who_asks_too_often_is_told_to_wait_and_the_owner_is_not() {
    let keys = Keys::new().await;
    let few = Rate { per_second: 1, burst: 3 };
    let rig = Rig::behind(Security { rates: Rates { token: few, unknown: few }, ..keys.security() }).await;
    let statuses = async |authorization: &str| {
        let mut statuses = Vec::new();
        for _ in 0..8 {
            let reply = send(rig.address, "GET", "/api/agents", &[("authorization", authorization)], Vec::new()).await;
            statuses.push(reply.status().as_u16());
        }
        statuses
    };
    assert!(statuses("").await.contains(&429));
    assert!(statuses(&format!("Bearer {}", Keys::only(Scope::Read).as_str())).await.contains(&429));
    assert_eq!(statuses(&format!("Bearer {TOKEN}")).await, [200; 8]);
    let health = send(rig.address, "GET", "/api/health", &[], Vec::new()).await.status();
    assert_eq!(health, 200, "whoever looks whether the server is well is not kept waiting by others");
}

#[tokio::test]
async fn what_is_said_twice_or_too_long_is_not_guessed_at() {
    let rig = Rig::start().await;
    let bearer = format!("Bearer {TOKEN}");
    let ask = async |target: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", &*bearer)]).collect();
        Reply::of(send(rig.address, "GET", target, &headers, Vec::new()).await).await
    };
    assert_eq!(ask("/api/agents", &[("authorization", "Bearer wrong")]).await.problem(), (401, "unauthorized".to_owned()));
    let long = "x".repeat(70_000);
    assert_eq!(ask("/api/agents", &[("x-long", &long)]).await.problem(), (431, "head_too_large".to_owned()));
    let fits = "x".repeat(60_000);
    assert_eq!(ask("/api/agents", &[("x-long", &fits)]).await.status, 200);
    let whole = format!("http://{}/api/agents", rig.address);
    assert_eq!(ask(&whole, &[("host", "evil.example")]).await.problem(), (403, "bad_host".to_owned()));
    let post = async |headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", &*bearer)]).collect();
        let body = json!({ "text": "[]" }).to_string().into_bytes();
        Reply::of(send(rig.address, "POST", "/api/submit", &headers, body).await).await
    };
    let json = ("content-type", "application/json");
    let refused = (415, "unsupported_media_type".to_owned());
    assert_eq!(post(&[json, ("content-encoding", "gzip")]).await.problem(), refused);
    assert_eq!(post(&[("content-type", "application/json; charset=gbk")]).await.problem(), refused);
    assert_eq!(post(&[("content-type", "application/json; charset=\"UTF-8\"")]).await.status, 200);
}

#[tokio::test]
async fn a_token_that_may_only_send_is_enough_to_ask_through_any_protocol() {
    let keys = Keys::new().await;
    let rig = Rig::behind(keys.security()).await;
    let ask = async |target: &str, scope: Scope, method: &str, params: serde_json::Value| {
        let bearer = format!("Bearer {}", Keys::only(scope).as_str());
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0"), ("authorization", &*bearer)];
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string().into_bytes();
        Reply::of(send(rig.address, "POST", target, &headers, body).await).await
    };
    let text = polis_testkit::Program(vec![polis_testkit::Op::Say("hi".into())]).text();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let told = ask("/a2a", Scope::Send, "SendMessage", json!({ "message": message })).await.ok();
    let task = &told["result"]["task"];
    assert_eq!(task["status"]["state"], json!("TASK_STATE_COMPLETED"), "{told}");
    let look = ask("/a2a", Scope::Send, "GetTask", json!({ "id": task["id"] })).await.ok();
    assert!(look["error"]["message"].as_str().unwrap().contains("`read`"), "{look}");
    let list = ask("/a2a", Scope::Send, "ListTasks", json!({})).await.ok();
    assert!(list["error"]["message"].as_str().unwrap().contains("`read`"), "{list}");
    let last = rig.last();
    for scope in [Scope::Read, Scope::Approve, Scope::Admin] {
        let message = json!({ "messageId": "n", "role": "ROLE_USER", "parts": [{ "text": text }] });
        let told = ask("/a2a", scope, "SendMessage", json!({ "message": message })).await.ok();
        assert!(told["error"]["message"].as_str().unwrap().contains("`send`"), "{told}");
    }
    assert_eq!(rig.last(), last);
    let call = json!({ "name": "submit", "arguments": { "text": text } });
    let told = ask("/mcp", Scope::Send, "tools/call", call).await.ok();
    assert_eq!(told["result"]["structuredContent"]["answer"], json!("said:hi"), "{told}");
    let told = ask("/mcp", Scope::Send, "tools/call", json!({ "name": "status", "arguments": {} })).await.ok();
    assert_eq!(told["result"]["isError"], json!(true), "{told}");
    let told = ask("/mcp", Scope::Send, "resources/list", json!({})).await.ok();
    assert!(told["error"]["message"].as_str().is_some_and(|why| why.contains("`read`")), "{told}");
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
    let access = Access { token, insecure_listen: false };
    let encrypted = Security { tls: Some(tls()), ..Security::default() };
    assert!(Listener::bind_with("0.0.0.0:0".parse().unwrap(), access, encrypted).await.is_ok());
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls() -> Tls {
    Tls::read(&fixture("certificate.pem"), &fixture("key.pem")).unwrap()
}

#[tokio::test]
async fn with_a_certificate_everything_is_encrypted_and_nothing_else_is_answered() {
    let rig = Rig::behind(Security { tls: Some(tls()), ..Security::default() }).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture("authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(client));
    let stream = TcpStream::connect(rig.address).await.unwrap();
    let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let host = rig.address.to_string();
    let headers = [("host", &*host), ("authorization", &format!("Bearer {TOKEN}"))];
    let reply = Reply::of(sent(TokioIo::new(stream), "GET", "/api/agents", &headers, Vec::new()).await.unwrap()).await;
    assert_eq!(reply.ok()["agents"][0]["id"], "root");
    let plain = TcpStream::connect(rig.address).await.unwrap();
    assert!(sent(TokioIo::new(plain), "GET", "/api/health", &headers, Vec::new()).await.is_err());
    assert!(Tls::read(&fixture("key.pem"), &fixture("key.pem")).is_err());
    assert!(Tls::read(&fixture("nothing.pem"), &fixture("key.pem")).is_err());
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

/// Its request may be on the way: who has just connected is not cut off without an answer.
#[tokio::test]
async fn a_stopping_server_answers_who_has_just_connected() {
    for _ in 0..20 {
        let rig = Rig::start().await;
        let (address, connected) = (rig.address, Instant::now());
        let silent = TcpStream::connect(address).await.unwrap();
        // Connections are accepted in their order.
        rig.get("/api/health").await.ok();
        let stopping = tokio::spawn(rig.stop());
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        // Longer than this the server does not wait.
        let is_in_time = || connected.elapsed() < Duration::from_secs(1);
        let host = address.to_string();
        let headers = [("host", &*host), ("authorization", &format!("Bearer {TOKEN}"))];
        let answer =
            if is_in_time() { sent(TokioIo::new(silent), "GET", "/api/agents", &headers, Vec::new()).await.ok() } else { None };
        stopping.await.unwrap();
        if let Some(answer) = answer {
            assert_eq!(answer.status(), 503);
            return;
        }
        assert!(!is_in_time(), "it was cut off");
    }
    panic!("this machine is too busy to send anything within a second");
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_it_was_opened_with() {
    let (file, token) = (token_list(), Token::of_bits([9; 32]));
    file.add("reader", Some("owner"), [Scope::Read].into_iter().collect(), &token).await.unwrap();
    let rig = Rig::behind(Security { tokens: Some(file.clone()), ..Security::default() }).await;
    let bearer = format!("Bearer {}", token.as_str());
    let headers = [("authorization", &*bearer)];
    let stream = send(rig.address, "GET", "/api/events", &headers, Vec::new()).await;
    rig.society.submit("before").await.unwrap();
    file.revoke("reader").await.unwrap();
    while send(rig.address, "GET", "/api/version", &headers, Vec::new()).await.status() != 401 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rig.society.submit("after").await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), Reply::of(stream)).await.expect("the stream ends");
    let told = String::from_utf8(told.body).unwrap();
    assert!(told.contains("before") && !told.contains("\"after\""), "{told}");
}
