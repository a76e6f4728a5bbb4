//! What is sent and what is not: one request a call, limits on time and size, and errors that say where.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use polis_http::{HttpClient, HttpError, HttpOptions, Request, Resolver, Timeouts};

use crate::servers::{Server, get, ok, options, text};

fn client() -> HttpClient {
    HttpClient::new(options(&[]))
}

fn post(url: &str) -> Request<polis_http::Bytes> {
    Request::post(url).header("user-agent", "own/1").body("a body".into()).unwrap()
}

#[tokio::test]
async fn what_a_server_has_read_is_never_sent_again() {
    let fresh = Server::start(|_| None).await;
    let error = text(&client(), post(&fresh.url())).await.unwrap_err();
    assert!(matches!(error, HttpError::Cut { .. }) && !error.is_unsent(), "{error:?}");
    assert_eq!(fresh.requests().len(), 1);

    let reused = Server::start(|number| if number == 2 { None } else { ok("hi") }).await;
    let client = client();
    assert_eq!(text(&client, post(&reused.url())).await.unwrap(), "hi");
    let error = text(&client, post(&reused.url())).await.unwrap_err();
    assert!(matches!(error, HttpError::Cut { .. }) && !error.is_unsent(), "{error:?}");
    assert_eq!(reused.requests().len(), 2);
    assert_eq!(text(&client, post(&reused.url())).await.unwrap(), "hi");
    let sent = reused.requests().remove(2);
    assert!(sent.starts_with("POST /path?query=1 HTTP/1.1\r\n") && sent.ends_with("\r\n\r\na body"), "{sent}");
    assert!(sent.contains("user-agent: own/1"), "{sent}");
}

#[tokio::test]
async fn a_login_in_an_address_becomes_a_header() {
    let server = Server::start(|_| ok("hi")).await;
    let url = format!("http://alice:open%20sesame@{}/", server.address);
    assert_eq!(text(&client(), get(&url)).await.unwrap(), "hi");
    let own = Request::get(&url).header("authorization", "Bearer x").body(Default::default()).unwrap();
    assert_eq!(text(&client(), own).await.unwrap(), "hi");
    let [sent, own] = &server.requests()[..] else { panic!("two requests") };
    assert!(sent.contains("\r\nauthorization: Basic YWxpY2U6b3BlbiBzZXNhbWU=\r\n"), "{sent}");
    assert!(sent.contains(&format!("\r\nhost: {}\r\n", server.address)), "{sent}");
    assert!(own.contains("\r\nauthorization: Bearer x\r\n") && !own.contains("Basic"), "{own}");
}

#[tokio::test]
async fn redirects_are_given_to_the_caller() {
    let moved = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(|_| Some(moved.into())).await;
    assert_eq!(client().send(post(&server.url())).await.unwrap().status(), 307);
    assert_eq!(server.requests().len(), 1);
}

struct Nobody;

#[async_trait::async_trait]
impl Resolver for Nobody {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::new(io::ErrorKind::NotFound, "no such name"))
    }
}

#[tokio::test]
async fn an_error_says_which_address_was_tried() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unnamed = HttpClient::new(HttpOptions { resolver: Arc::new(Nobody), ..options(&[]) });
    for (url, want) in [
        (format!("http://alice:sesame@{closed}/?key=sesame"), format!("connection refused at {closed};")),
        ("https://nobody.example/?key=sesame".to_owned(), "the name nobody.example was not found (no such name)".to_owned()),
        ("ftp://alice:sesame@files.example/".to_owned(), "`ftp://files.example/` is not an http".to_owned()),
        ("/path".to_owned(), "`/path` is not an http".to_owned()),
    ] {
        let error = text(&unnamed, get(&url)).await.unwrap_err();
        let said = error.to_string();
        assert!(error.is_unsent() && said.contains(&want) && !said.contains("sesame"), "{url}: {said}");
    }
}

#[tokio::test]
async fn time_has_limits_before_a_response_within_it_and_for_the_whole() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun";
    let silent = Server::start(|_| Some(Vec::new())).await;
    let stalled = Server::start(|_| Some(begun.into())).await;
    let after = Duration::from_millis(50);
    let soon = Some(after);
    let address = |server: &Server| server.address.to_string();
    let first = client().with_timeouts(Timeouts { first_byte: soon, ..Timeouts::default() });
    let between = client().with_timeouts(Timeouts { between_bytes: soon, ..Timeouts::default() });
    let whole = client().with_timeouts(Timeouts { whole: soon, ..Timeouts::default() });
    for (client, server, want) in [
        (&first, &silent, HttpError::Silent { address: address(&silent), after }),
        (&between, &stalled, HttpError::Silent { address: address(&stalled), after }),
        (&whole, &silent, HttpError::Late { address: address(&silent), after }),
        (&whole, &stalled, HttpError::Late { address: address(&stalled), after }),
    ] {
        assert_eq!(text(client, get(&server.url())).await, Err(want));
    }
}

#[tokio::test]
async fn a_body_has_a_limit_and_may_be_read_in_part() {
    let server = Server::start(|_| ok("0123456789")).await;
    let body = async || client().send(get(&server.url())).await.unwrap().into_body();
    assert_eq!(body().await.read(10).await.unwrap(), b"0123456789");
    let address = server.address.to_string();
    assert_eq!(body().await.read(9).await, Err(HttpError::TooLong { address, max_bytes: 9 }));
    assert_eq!(body().await.read_start(4).await, Ok((b"0123".to_vec(), false)));
    assert_eq!(body().await.read_start(10).await, Ok((b"0123456789".to_vec(), true)));
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.read_u8().await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun").await.unwrap();
        // It ends, or is reset.
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let client = client();
    let mut body = client.send(get(&url)).await.unwrap().into_body();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "begun");
    drop(body);
    server.await.unwrap();
}
