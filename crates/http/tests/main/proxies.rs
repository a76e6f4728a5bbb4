//! The way through proxies, and past them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use polis_http::{HttpClient, HttpError, HttpOptions, Resolver, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::servers::{Always, Server, encrypted_proxy, get, ok, options, proxy, text, tls_file};

/// `alice:open sesame`.
const LOGIN: &str = "Basic YWxpY2U6b3BlbiBzZXNhbWU=";

fn with_login(proxy: &Server) -> String {
    format!("http://alice:open%20sesame@{}", proxy.address)
}

/// Options that trust the test's authority, and use proxies on this machine.
fn encrypted(variables: &[(&str, String)]) -> HttpOptions {
    HttpOptions { trust: Trust::Only(tls_file("authority.pem")), proxies_loopback: true, ..options(variables) }
}

fn nowhere() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn a_plain_request_is_given_to_the_proxy_with_its_whole_address() {
    let proxy = proxy(nowhere(), Some(LOGIN)).await;
    let client = HttpClient::new(options(&[("HTTP_PROXY", with_login(&proxy))]));
    assert_eq!(text(&client, get("http://model.example/x?y=1")).await.unwrap(), "by proxy");
    let seen = proxy.requests().remove(0);
    assert!(seen.starts_with("GET http://model.example/x?y=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nhost: model.example\r\n"), "{seen}");
    assert!(seen.contains(concat!("\r\nuser-agent: polis/", env!("CARGO_PKG_VERSION"), "\r\n")), "{seen}");
}

#[tokio::test]
async fn an_encrypted_request_goes_through_a_tunnel_and_the_login_to_the_proxy_alone() {
    let server = Server::encrypted(|_| ok("hi")).await;
    let proxy = proxy(server.address, Some(LOGIN)).await;
    let client = HttpClient::new(encrypted(&[("https_proxy", with_login(&proxy))]));
    for _ in 0..2 {
        assert_eq!(text(&client, get(&server.https())).await.unwrap(), "hi");
    }
    let [connect] = &proxy.requests()[..] else { panic!("one tunnel, not {:?}", proxy.requests()) };
    let port = server.address.port();
    assert!(connect.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\nhost: localhost:{port}\r\n")), "{connect}");
    assert!(server.requests().iter().all(|request| request.starts_with("GET /path ") && !request.contains("proxy-")));
}

#[tokio::test]
async fn the_connection_to_a_proxy_may_be_encrypted_too() {
    let server = Server::encrypted(|_| ok("hi")).await;
    let proxy = encrypted_proxy(server.address, Some(LOGIN)).await;
    let at = format!("https://alice:open%20sesame@localhost:{}", proxy.address.port());
    let client = HttpClient::new(encrypted(&[("ALL_PROXY", at)]));
    assert_eq!(text(&client, get(&server.https())).await.unwrap(), "hi");
    assert_eq!(text(&client, get("http://model.example/")).await.unwrap(), "by proxy");
    assert_eq!(proxy.requests().len(), 2);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let server = Server::encrypted(|_| ok("hi")).await;
    let proxy = proxy(server.address, Some("Basic other")).await;
    let open = crate::servers::proxy(server.address, None).await;
    for (variable, proxy, url, want) in [
        ("HTTP_PROXY", with_login(&proxy), "http://model.example/", "407"),
        ("HTTPS_PROXY", with_login(&proxy), "https://model.example/", "407"),
        (
            "HTTPS_PROXY",
            with_login(&open),
            "https://forbidden.example/",
            "refuses to connect to forbidden.example:443 (403 Forbidden)",
        ),
        ("HTTPS_PROXY", format!("http://alice:sesame@{}", nowhere()), "https://model.example/", "refuses connections"),
    ] {
        let error = text(&HttpClient::new(encrypted(&[(variable, proxy)])), get(url)).await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, HttpError::Proxy { .. }) && error.is_unsent(), "{error:?}");
        assert!(said.contains(want) && said.contains("127.0.0.1:") && !said.contains("sesame"), "{said}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_no_proxy_lists_and_this_machine_are_reached_directly() {
    let server = Server::start(|_| ok("direct")).await;
    let proxy = proxy(nowhere(), None).await;
    let proxies = [("ALL_PROXY", with_login(&proxy)), ("NO_PROXY", "other.example, .model.example".to_owned())];
    let listed = HttpOptions { resolver: Arc::new(Always(server.address)), ..options(&proxies) };
    let client = HttpClient::new(listed);
    let url = |host: &str| get(&format!("http://{host}:{}/", server.address.port()));
    for (host, uses) in [("a.model.example", false), ("localhost", false), ("amodel.example", true)] {
        assert_eq!(client.uses_proxy(url(host).uri()), Ok(uses), "{host}");
    }
    assert_eq!(text(&client, url("a.model.example")).await.unwrap(), "direct");
    assert_eq!(text(&client, url("localhost")).await.unwrap(), "direct");
    assert_eq!(text(&client, url("127.0.0.1")).await.unwrap(), "direct");
    assert_eq!(text(&client, url("amodel.example")).await.unwrap(), "by proxy");
    let asked = HttpOptions { proxies_loopback: true, ..options(&proxies) };
    assert_eq!(text(&HttpClient::new(asked), url("127.0.0.1")).await.unwrap(), "by proxy");
    assert!(server.requests().iter().all(|request| !request.contains("proxy-authorization")));
}

/// What a SOCKS proxy is asked for a request to `model.example`, and the response, where `scheme` names the proxy.
async fn through_socks(scheme: &str, address_bytes: usize) -> (Vec<u8>, String) {
    let server = Server::start(|_| ok("by socks")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, to) = (listener.local_addr().unwrap(), server.address);
    let socks = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        socket.read_exact(&mut greeting).await.unwrap();
        socket.write_all(&[5, 0]).await.unwrap();
        let mut request = vec![0; 4 + address_bytes + 2];
        socket.read_exact(&mut request).await.unwrap();
        socket.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 1]).await.unwrap();
        let mut server = TcpStream::connect(to).await.unwrap();
        let _ = copy_bidirectional(&mut socket, &mut server).await;
        request
    });
    let usual = options(&[("ALL_PROXY", format!("{scheme}://{address}"))]);
    let client = HttpClient::new(HttpOptions { resolver: Arc::new(OneName), ..usual });
    let response = text(&client, get("http://model.example/x")).await.unwrap();
    drop(client);
    assert!(server.requests()[0].starts_with("GET /x HTTP/1.1\r\n"));
    (socks.await.unwrap(), response)
}

/// Knows `model.example` alone.
struct OneName;

#[async_trait::async_trait]
impl Resolver for OneName {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match host {
            "model.example" => Ok(vec![SocketAddr::from(([192, 0, 2, 7], port))]),
            _ => Err(io::Error::other("no such name")),
        }
    }
}

#[tokio::test]
async fn a_socks_proxy_looks_names_up_itself_if_its_address_says_so() {
    let (asked, response) = through_socks("socks5h", 1 + 13).await;
    assert_eq!((&*asked, &*response), (&b"\x05\x01\x00\x03\x0dmodel.example\x00\x50"[..], "by socks"));
    let (asked, response) = through_socks("socks5", 4).await;
    assert_eq!((&*asked, &*response), (&b"\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50"[..], "by socks"));
    let usual = options(&[("ALL_PROXY", "socks5://127.0.0.1:9".to_owned())]);
    let client = HttpClient::new(HttpOptions { resolver: Arc::new(OneName), ..usual });
    let error = text(&client, get("http://inside.example/x")).await.unwrap_err().to_string();
    assert!(error.contains("inside.example") && error.contains("write socks5h://"), "{error}");
}
