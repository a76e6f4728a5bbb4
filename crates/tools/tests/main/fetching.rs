//! `fetch_url`: pages that are got, and addresses that are not reached, whichever way they are named.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_http::Environment;
use polis_ports::Tool;
use polis_tools::{AllowedAddresses, FetchUrl, HttpOptions, Resolver};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bench::context;

/// A server on this machine that counts who comes, and answers each path with what it is told.
struct Server {
    address: SocketAddr,
    seen: Arc<AtomicUsize>,
}

async fn server(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (count, answer) = (seen.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 8192];
                let read = stream.read(&mut head).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let _ = stream.write_all(&answer(path)).await;
            });
        }
    });
    Server { address, seen }
}

fn page(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut page = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes();
    page.extend_from_slice(body);
    page
}

/// Answers each question with the next of its answers, and the last for ever.
struct Names {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
    asked: AtomicUsize,
}

fn names<const N: usize>(answers: [&[&str]; N]) -> Arc<Names> {
    let parsed = answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
    Arc::new(Names { answers: Mutex::new(parsed.collect()), asked: AtomicUsize::new(0) })
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

async fn get(tool: &FetchUrl, url: &str) -> CallResult {
    tool.call(&json!({ "url": url }).to_string(), &context()).await.unwrap()
}

fn local() -> FetchUrl {
    FetchUrl::new(AllowedAddresses::read(&["127.0.0.1"]).unwrap(), &HttpOptions::default())
}

#[test]
fn an_address_that_may_not_be_reached_sends_and_brings_nothing() {
    let flow = |url: &str| local().flow(&json!({ "url": url }).to_string());
    for closed in ["http://10.0.0.1/x", "https://[::1]:8443/", "http://169.254.169.254/latest", "http://127.0.0.2"] {
        assert_eq!(flow(closed), Flow::default(), "{closed}");
    }
    // What a name means is known only when it is looked up.
    for open in ["http://127.0.0.1/x", "http://8.8.8.8", "http://example.com/", "http://localhost/"] {
        let flow = flow(open);
        assert!(flow.sends && flow.outside.is_some(), "{open}");
    }
}

#[tokio::test]
async fn pages_are_told_as_text() {
    let server = server(|path| match path {
        "/html" => page("200 OK\r\ncontent-type: text/html", "<h1>数据</h1><script>no</script><p>text"),
        "/json" => page("200 OK\r\ncontent-type: application/json", "{\"a\":1}"),
        "/picture" => page("200 OK\r\ncontent-type: image/png", [0x89, b'P']),
        "/packed" => page("200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip", "x"),
        "/near" => page("302 Found\r\nlocation: json", ""),
        "/circle" => page("302 Found\r\nlocation: /circle", ""),
        "/file" => page("302 Found\r\nlocation: file:///etc/passwd", ""),
        _ => page("404 Not Found\r\ncontent-type: text/plain", "nothing here"),
    })
    .await;
    let tool = local();
    assert_eq!(tool.spec().class, EffectClass::Read);
    let at = format!("http://{}", server.address);
    for (path, want, is_error) in [
        ("/html", format!("{at}/html answered 200 OK\n\n# 数据\ntext"), false),
        ("/json", format!("{at}/json answered 200 OK\n\n{{\"a\":1}}"), false),
        ("/near", format!("{at}/json answered 200 OK\n\n{{\"a\":1}}"), false),
        ("/none#part", format!("error: {at}/none answered 404 Not Found\n\nnothing here"), true),
        ("/picture", format!("error: {at}/picture: it is no text but image/png"), true),
        ("/packed", format!("error: {at}/packed is sent compressed (gzip) although that was not asked for"), true),
        ("/circle", format!("error: there are more than 5 redirects, the last to {at}/circle"), true),
        ("/file", "error: \"file:///etc/passwd\" is no URL".to_owned(), true),
    ] {
        let result = get(&tool, &format!("{at}{path}")).await;
        assert!(result.content.starts_with(&want) && result.is_error == is_error, "{path}: {}", result.content);
    }
}

#[tokio::test]
async fn this_machine_and_its_network_are_not_reached() {
    let server = server(|_| page("200 OK", "the secret")).await;
    let port = server.address.port();
    let tool = FetchUrl::new(AllowedAddresses::default(), &HttpOptions::default());
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "224.0.0.1",
    ] {
        let result = get(&tool, &format!("http://{host}:{port}/")).await;
        assert!(result.is_error && !result.content.contains("the secret"), "{host}: {}", result.content);
        assert!(
            result.content.contains("not on the Internet") || result.content.contains("is not known"),
            "{}",
            result.content
        );
    }
    assert_eq!(server.seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_port_that_there_is_not_is_refused() {
    for url in ["http://127.0.0.1:99999/", "http://[::1]:65536/"] {
        let result = get(&local(), url).await;
        assert!(result.is_error && result.content.contains("a port that is no number from 0 to 65535"), "{}", result.content);
    }
}

#[tokio::test]
async fn a_redirect_leads_to_no_place_that_is_closed() {
    let inner = server(|_| page("200 OK", "the secret")).await;
    let inside = inner.address;
    let outer = server(move |path| match path {
        "/loop" => page(&format!("302 Found\r\nlocation: http://127.0.0.1:{}/", inside.port()), ""),
        "/name" => page(&format!("307 X\r\nlocation: http://inner.example:{}/", inside.port()), ""),
        _ => page("301 X\r\nlocation: http://169.254.169.254/latest/meta-data/", ""),
    })
    .await;
    struct ByName;
    #[async_trait]
    impl Resolver for ByName {
        async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            let host = if host.ends_with(".example") { "127.0.0.1" } else { host };
            Ok(vec![SocketAddr::new(host.parse().unwrap(), port)])
        }
    }
    // The first host stands for one on the Internet.
    let tool = FetchUrl::new(AllowedAddresses::read(&["outer.example"]).unwrap(), &HttpOptions::default())
        .with_resolver(Arc::new(ByName));
    for path in ["/loop", "/name", "/metadata"] {
        let result = get(&tool, &format!("http://outer.example:{}{path}", outer.address.port())).await;
        assert!(result.is_error && result.content.contains("not on the Internet"), "{path}: {}", result.content);
    }
    assert_eq!((outer.seen.load(Ordering::SeqCst), inner.seen.load(Ordering::SeqCst)), (3, 0));
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_asked_once_and_one_bad_address_spoils_it() {
    let good = server(|_| page("200 OK", "good")).await;
    let evil = server(|_| page("200 OK", "the secret")).await;
    let (first, second) = (good.address.to_string(), evil.address.to_string());
    // Only the first address is checked and reached, whatever the name is said to be later.
    let changing = names([&[&first], &[&second]]);
    let tool = FetchUrl::new(AllowedAddresses::read(&["changing.example"]).unwrap(), &HttpOptions::default())
        .with_resolver(changing.clone());
    let result = get(&tool, &format!("http://changing.example:{}/", good.address.port())).await;
    assert!(result.content.ends_with("good"), "{}", result.content);
    assert_eq!((changing.asked.load(Ordering::SeqCst), evil.seen.load(Ordering::SeqCst)), (1, 0));
    // Asked a second time, it is checked a second time.
    let tool = FetchUrl::new(AllowedAddresses::default(), &HttpOptions::default()).with_resolver(names([
        &["8.8.8.8:80", &second],
        &[&second],
        &[],
    ]));
    for want in ["not on the Internet", "not on the Internet", "has no address"] {
        let result = get(&tool, &format!("http://changing.example:{}/", evil.address.port())).await;
        assert!(result.is_error && result.content.contains(want), "{}", result.content);
    }
    assert_eq!(evil.seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn long_and_slow_pages_are_bounded() {
    let server = server(|path| match path {
        "/long" => page("200 OK\r\ncontent-type: text/plain", "x".repeat(1 << 20)),
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec(),
    })
    .await;
    let tool = local().with_limits(100 << 10, Duration::from_secs(20));
    let result = get(&tool, &format!("http://{}/long", server.address)).await;
    assert!(result.content.contains("answered 200 OK, of which only the first 102400 bytes were read"));
    assert!(result.content.contains("bytes are left out here]") && result.content.len() < 50 << 10);
    let broken = get(&tool, &format!("http://{}/half", server.address)).await;
    assert!(broken.is_error && broken.content.contains("broke off"), "{}", broken.content);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tool = local().with_limits(1000, Duration::from_millis(200));
    let result = get(&tool, &format!("http://{}/", silent.local_addr().unwrap())).await;
    assert!(result.is_error && result.content.contains("took longer than 0.2 seconds"), "{}", result.content);
}

#[tokio::test]
async fn a_long_page_and_what_is_no_text_are_kept_whole() {
    let long = "line of a long page\n".repeat(10_000);
    let text = long.clone();
    let server = server(move |path| match path {
        "/a/picture.png?size=2" => page("200 OK\r\ncontent-type: image/png", [0x89, b'P', 0]),
        _ => page("200 OK\r\ncontent-type: text/plain", &text),
    })
    .await;
    let store = polis_testkit::MemoryArtifacts::new();
    let shelf = polis_ports::ArtifactStore { store: Arc::new(store.clone()), ..polis_ports::ArtifactStore::none() };
    let context = polis_ports::CallContext { artifacts: shelf, ..context() };
    let at = format!("http://{}", server.address);
    let get = async |path: &str| local().call(&json!({ "url": format!("{at}{path}") }).to_string(), &context).await.unwrap();
    let read = async |result: &CallResult| {
        polis_ports::Artifacts::read(&store, &result.artifacts[0].id, 0, usize::MAX).await.unwrap().bytes
    };
    let page = get("/long").await;
    assert!(page.content.len() < 50 << 10 && page.content.contains("bytes are left out here; all of it is artifact"));
    assert_eq!(read(&page).await, format!("{at}/long answered 200 OK\n\n{long}").into_bytes());
    assert_eq!(&*page.artifacts[0].name, "long.txt");
    let picture = get("/a/picture.png?size=2").await;
    assert!(!picture.is_error && picture.content.contains("is kept as artifact"), "{}", picture.content);
    assert_eq!((&*picture.artifacts[0].name, &*picture.artifacts[0].media_type), ("picture.png", "image/png"));
    assert_eq!(read(&picture).await, [0x89, b'P', 0]);
}

#[tokio::test]
async fn behind_a_proxy_names_are_given_to_it_and_inside_hosts_are_not() {
    let proxy = server(|target| page("200 OK\r\ncontent-type: text/plain", format!("asked for {target}"))).await;
    let environment = Environment::default().with_proxy(&format!("http://{}", proxy.address)).unwrap();
    let tool = FetchUrl::new(AllowedAddresses::read(&["wiki.corp"]).unwrap(), &HttpOptions::new(environment));
    for url in ["http://only-the-proxy-knows.invalid/x", "http://wiki.corp/y"] {
        let got = get(&tool, url).await;
        assert!(got.content.contains(&format!("asked for {url}")), "{}", got.content);
    }
    assert_eq!(proxy.seen.load(Ordering::SeqCst), 2);
    let inside = [
        "http://10.0.0.1/",
        "http://intranet/",
        "http://other.corp/",
        "http://127.1/",
        "http://169.254.169.254/latest/meta-data",
    ];
    for url in inside {
        let got = get(&tool, url).await;
        assert!(got.is_error && got.content.contains("not on the Internet"), "{url}: {}", got.content);
    }
    assert_eq!(proxy.seen.load(Ordering::SeqCst), 2, "the proxy was not asked for them");
}
