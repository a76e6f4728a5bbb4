//! A network as many companies have it: names resolve only at a proxy, the proxy wants a login, and it opens TLS with
//! certificates of a private authority.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

/// `alice:open sesame`.
const LOGIN: &str = "proxy-authorization: basic ywxpy2u6b3blbibzzxnhbwu=";

fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/tests/tls/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(tls_file("certificate.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(tls_file("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// The proxy: the only one who knows `*.company.example`.
struct Proxy {
    address: SocketAddr,
    /// The hosts that it led to.
    led_to: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    fn start(hosts: BTreeMap<&'static str, String>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, led_to, tls, hosts) =
            (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default(), acceptor(), Arc::new(hosts));
        let noted = led_to.clone();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(lead(socket, hosts.clone(), tls.clone(), noted.clone()));
            }
        });
        Self { address, led_to, _runtime: runtime }
    }

    fn led_to(&self, host: &str) -> bool {
        self.led_to.lock().unwrap().iter().any(|it| it == host)
    }
}

async fn lead(
    mut socket: TcpStream,
    hosts: Arc<BTreeMap<&'static str, String>>,
    tls: TlsAcceptor,
    noted: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    if !head.contains(LOGIN) {
        let _ = socket.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await;
        return;
    }
    let host = head.strip_prefix("connect ").and_then(|rest| rest.split_once(":443 ")).map(|(host, _)| host.to_owned());
    let Some((host, backend)) = host.and_then(|host| Some((host.clone(), hosts.get(host.as_str())?.clone()))) else {
        let _ = socket.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
        return;
    };
    let _ = socket.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
    let Ok(mut opened) = tls.accept(socket).await else { return };
    noted.lock().unwrap().push(host);
    if let Ok(mut server) = TcpStream::connect(backend).await {
        let _ = copy_bidirectional(&mut opened, &mut server).await;
    }
}

/// Answers everything with this text, and keeps what it was asked.
fn plain_server(text: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, heard) = (listener.local_addr().unwrap().to_string(), Arc::<Mutex<Vec<String>>>::default());
    let noted = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            let _ = reader.read_exact(&mut body);
            noted.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&body)));
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            );
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (address, heard)
}

/// The settings of everything that goes out, without those of the network.
const SETTINGS: &str = "model = \"corp/large\"
[tools]
fetch = true
[providers.corp]
base_url = \"https://models.company.example/v1\"
dialect = \"openai\"
key_variable = \"CORP_TOKEN\"
headers = { X-Cost-Center = \"${COST_CENTER}\" }
retries = 0
[mcp.other]
url = \"https://tools.company.example/mcp\"
headers = { Authorization = \"Bearer ${OTHER_TOKEN}\" }
[telemetry]
endpoint = \"https://collector.company.example\"
protocol = \"http/json\"
";

fn network(proxy: &Proxy, rest: &str) -> String {
    format!("[network]\nproxy = \"http://alice:${{PROXY_PASSWORD}}@{}\"\n{rest}", proxy.address)
}

fn polis(home: &Home, token: &str, args: &[&str]) -> Done {
    let mut command = home.command(args);
    command.env("CORP_TOKEN", "sk-corp-secret").env("COST_CENTER", "cc-4711-secret").env("OTHER_TOKEN", token);
    command.env("PROXY_PASSWORD", "open%20sesame").env("POLIS_TOKEN", token);
    command.output().unwrap().into()
}

#[test]
fn behind_a_proxy_with_a_private_authority_everything_works_with_the_settings_and_the_messages_name_them_without() {
    let other = Home::new();
    other.write("polis.toml", "[server]\nhosts = [\"tools.company.example\"]\n");
    let served = other.serve(&[]);
    let token = served.token.clone().unwrap();
    let model = ModelServer::scripted(|body: &Value| {
        let has_result = body["messages"].as_array()?.iter().any(|message| message["role"] == "tool");
        let page = json!({ "url": "https://pages.company.example/report" });
        Some(if has_result { Reply::Repeat } else { Reply::Call("fetch_url", page) })
    });
    let (pages, pages_heard) = plain_server("{\"report\": \"all is well\"}");
    let (collector, spans) = plain_server("{}");
    let model_address = model.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let proxy = Proxy::start(BTreeMap::from([
        ("models.company.example", model_address),
        ("tools.company.example", served.address.clone()),
        ("pages.company.example", pages),
        ("collector.company.example", collector),
    ]));
    let authority = tls_file("authority.pem");
    let with_ca = format!("ca = \"{}\"\n", authority.display());

    // Without the settings: what to set is said.
    let home = Home::new();
    let run = ["run", "--approve", "all", "read the report"];
    home.write("polis.toml", SETTINGS);
    let lost = polis(&home, &token, &run);
    assert_ne!(lost.code, 0);
    assert!(lost.stderr.contains("the name models.company.example was not found"), "{}", lost.stderr);
    assert!(lost.stderr.contains("behind a proxy set `proxy` in [network]"), "{}", lost.stderr);
    home.write("polis.toml", &format!("{SETTINGS}{}", network(&proxy, "")));
    let untrusted = polis(&home, &token, &run);
    assert!(untrusted.stderr.contains("the certificate of models.company.example:443 is not trusted"), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains("set `ca` in [network] of polis.toml"), "{}", untrusted.stderr);
    let stranger = format!("{SETTINGS}[network]\nproxy = \"http://{}\"\n{with_ca}", proxy.address);
    home.write("polis.toml", &stranger);
    let closed = polis(&home, &token, &run);
    assert!(closed.stderr.contains("wants a user and a password (407)"), "{}", closed.stderr);
    let doctor = polis(&home, &token, &["doctor"]).stdout;
    assert!(doctor.contains("BAD  telemetry") && doctor.contains("BAD  mcp"), "{doctor}");
    home.write("polis.toml", "[network]\nca = \"no/such.pem\"\n");
    let doctor = polis(&home, &token, &["doctor"]).stdout;
    assert!(doctor.contains("BAD  network    no/such.pem: "), "{doctor}");
    assert!(model.requests.lock().unwrap().is_empty() && proxy.led_to.lock().unwrap().is_empty());

    // With them: model, tool server, page, telemetry, and the client of a running polis.
    let home = Home::new();
    home.write("polis.toml", &format!("{SETTINGS}{}", network(&proxy, &with_ca)));
    let done = polis(&home, &token, &run);
    let stderr = done.stderr.clone();
    assert!(done.ok().contains("all is well"), "{stderr}");
    let (head, _) = model.requests.lock().unwrap()[0].clone();
    let head = head.to_lowercase();
    for line in ["authorization: bearer sk-corp-secret", "x-cost-center: cc-4711-secret", "user-agent: polis/"] {
        assert!(head.contains(line), "{head}");
    }
    let has_agent = |heard: &Mutex<Vec<String>>| {
        let heard = heard.lock().unwrap();
        !heard.is_empty() && heard.iter().all(|request| request.to_lowercase().contains("user-agent: polis/"))
    };
    assert!(has_agent(&pages_heard) && has_agent(&spans), "the page and the collector know who asks");
    let doctor = polis(&home, &token, &["doctor"]).stdout;
    let network = format!("ok   network    http through {0}; https through {0}; trusts ", proxy.address);
    for line in [
        &*network,
        "ok   model      corp/large is set up at https://models.company.example/v1",
        "ok   mcp        other: ",
        "ok   telemetry  spans and metrics go to https://collector.company.example, which answers",
    ] {
        assert!(doctor.contains(line), "{doctor}");
    }
    let agents = polis(&home, &token, &["--url", "https://tools.company.example", "agents"]).ok();
    assert!(agents.contains("root"), "{agents}");
    let listed = polis(&home, &token, &["models"]).ok();
    assert!(listed.contains("corp               ready at https://models.company.example/v1"), "{listed}");
    for host in ["models", "tools", "pages", "collector"] {
        assert!(proxy.led_to(&format!("{host}.company.example")), "{host}");
    }

    // Secrets are nowhere in the data.
    let log = polis(&home, &token, &["log", "--json"]).ok();
    let everything = format!("{stderr}{doctor}{listed}{log}");
    for secret in ["sk-corp-secret", "cc-4711-secret", "sesame"] {
        assert!(!everything.contains(secret), "{secret}");
    }
}
