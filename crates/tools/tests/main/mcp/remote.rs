//! A server over HTTP that gives out its own logins and remembers what it was asked. It knows nothing but `std` and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What a registered client must bring to get a token.
const SECRET: &str = "secret-of-the-client";

/// What every secret that it gives out begins with.
pub(crate) const MARKS: &[&str] = &["secret-of", "access-of", "refresh-of", "code-of"];

/// What counts as endless, in bytes.
const ENDLESS_BYTES: usize = 128 << 20;

/// The server; it listens until the test program ends.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
}

/// How it stands.
#[derive(Default)]
struct State {
    wants_login: bool,
    hides_metadata: bool,
    expires_in: u64,
    given: u64,
    access: BTreeSet<String>,
    refresh: BTreeSet<String>,
    session: u64,
    seen: Vec<Seen>,
    poured: usize,
    floods_first: bool,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Seen {
    /// The method of the protocol.
    pub(crate) fn method(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["method"].as_str().unwrap_or_default().to_owned()
    }
}

struct Answer {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn answer(status: &'static str, body: Value) -> Answer {
    Answer { status, headers: vec![("Content-Type", "application/json".to_owned())], body: body.to_string() }
}

fn empty(status: &'static str) -> Answer {
    Answer { status, headers: Vec::new(), body: String::new() }
}

impl Remote {
    /// One that anybody may use.
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let remote = Self { base, state: Arc::new(Mutex::new(State { expires_in: 3_600, session: 1, ..State::default() })) };
        let served = remote.clone();
        std::thread::spawn(move || {
            for browser in listener.incoming().flatten() {
                let remote = served.clone();
                std::thread::spawn(move || remote.serve(browser));
            }
        });
        remote
    }

    /// One that wants a login, whose tokens last this long.
    pub(crate) fn closed(expires_in: u64) -> Self {
        let remote = Self::open();
        let mut state = remote.state.lock().unwrap();
        (state.wants_login, state.expires_in) = (true, expires_in);
        drop(state);
        remote
    }

    /// One that wants a login and says only in the answer to a `POST` where its metadata is, which is no usual place.
    pub(crate) fn hidden() -> Self {
        let remote = Self::closed(3_600);
        remote.state.lock().unwrap().hides_metadata = true;
        remote
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// No session of before is known any more.
    pub(crate) fn forget_sessions(&self) {
        self.state.lock().unwrap().session += 1;
    }

    /// No login of before counts any more.
    pub(crate) fn revoke(&self) {
        let mut state = self.state.lock().unwrap();
        state.access.clear();
        state.refresh.clear();
    }

    /// What it was asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// How often a path was asked for with this in the body.
    pub(crate) fn count(&self, path: &str, with: &str) -> usize {
        self.seen().iter().filter(|seen| seen.path.starts_with(path) && seen.body.contains(with)).count()
    }

    /// Its first answer never ends.
    pub(crate) fn flooding() -> Self {
        let remote = Self::open();
        remote.state.lock().unwrap().floods_first = true;
        remote
    }

    /// How many bytes of answers that never end were sent.
    pub(crate) fn poured(&self) -> usize {
        self.state.lock().unwrap().poured
    }

    /// An answer that goes on until nobody reads it, or until it is certain that somebody would for ever.
    fn pour(&self, mut browser: &TcpStream, status: &str, kind: &str, begins: &str) {
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{begins}");
        let (drops, mut sent) = (vec![b'a'; 64 << 10], browser.write(head.as_bytes()).unwrap_or(0));
        while sent < ENDLESS_BYTES {
            match browser.write(&drops) {
                Ok(count @ 1..) => sent += count,
                _ => break,
            }
        }
        self.state.lock().unwrap().poured += sent;
    }

    fn serve(&self, mut browser: TcpStream) {
        let Some(seen) = read(&browser) else { return };
        self.state.lock().unwrap().seen.push(seen.clone());
        let floods_first = self.state.lock().unwrap().floods_first && seen.verb == "POST";
        let tool = |name: &str| seen.body.contains(&format!(r#""name":"{name}""#)) && seen.method() == "tools/call";
        if floods_first || tool("endless_json") {
            return self.pour(&browser, "200 OK", "application/json", r#"{"jsonrpc": "2.0", "id": 1, "result": ""#);
        } else if tool("endless_event") {
            return self.pour(&browser, "200 OK", "text/event-stream", ": well\n\ndata: ");
        } else if tool("endless_error") {
            return self.pour(&browser, "400 Bad Request", "application/json", r#"{"jsonrpc": "2.0", ""#);
        }
        let answer = self.answer(&seen);
        let mut head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let _ = browser.write_all(format!("{head}\r\n{}", answer.body).as_bytes());
    }

    fn answer(&self, seen: &Seen) -> Answer {
        let path = seen.path.split('?').next().unwrap_or_default();
        let issuer = self.issuer();
        let tenant = issuer.strip_prefix(&self.base).unwrap_or_default();
        if path == "/mcp" {
            return self.mcp(seen);
        }
        if path == self.metadata_path() {
            return answer("200 OK", json!({ "resource": self.url(), "authorization_servers": [issuer] }));
        }
        match path.strip_prefix(tenant).unwrap_or_default() {
            "/.well-known/oauth-authorization-server" if tenant.is_empty() => self.describe(),
            "/.well-known/openid-configuration" if !tenant.is_empty() => self.describe(),
            "/register" => {
                let told: Value = serde_json::from_str(&seen.body).unwrap_or_default();
                let client = json!({ "client_id": "polis-1", "client_secret": SECRET, "redirect_uris": told["redirect_uris"] });
                answer("201 Created", client)
            }
            "/authorize" => authorize(&seen.path),
            "/token" => self.token(seen),
            _ => empty("404 Not Found"),
        }
    }

    fn metadata_path(&self) -> &'static str {
        match self.state.lock().unwrap().hides_metadata {
            true => "/custom/metadata/location.json",
            false => "/.well-known/oauth-protected-resource/mcp",
        }
    }

    /// The server that gives out logins has a path of its own where the metadata is hidden.
    fn issuer(&self) -> String {
        let tenant = if self.state.lock().unwrap().hides_metadata { "/tenant1" } else { "" };
        format!("{}{tenant}", self.base)
    }

    fn describe(&self) -> Answer {
        let base = self.issuer();
        let described = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        });
        answer("200 OK", described)
    }

    fn token(&self, seen: &Seen) -> Answer {
        let form = |name: &str| {
            let found = seen.body.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
            found.unwrap_or_default().to_owned()
        };
        let mut state = self.state.lock().unwrap();
        let knows_client = seen.headers.get("authorization").is_some_and(|value| value.starts_with("Basic "));
        let is_good = match form("grant_type").as_str() {
            "authorization_code" => form("code") == "code-of-a-person" && !form("code_verifier").is_empty(),
            "refresh_token" => state.refresh.remove(&form("refresh_token")),
            _ => false,
        };
        if !knows_client || !is_good {
            return answer("400 Bad Request", json!({ "error": "invalid_grant" }));
        }
        state.given += 1;
        let (access, refresh) = (format!("access-of-{}", state.given), format!("refresh-of-{}", state.given));
        state.access.insert(access.clone());
        state.refresh.insert(refresh.clone());
        let told = json!({
            "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": state.expires_in,
        });
        answer("200 OK", told)
    }

    fn mcp(&self, seen: &Seen) -> Answer {
        let challenge = format!(r#"Bearer resource_metadata="{}{}""#, self.base, self.metadata_path());
        let state = self.state.lock().unwrap();
        if state.hides_metadata && seen.verb == "GET" && !seen.headers.contains_key("mcp-session-id") {
            return empty("405 Method Not Allowed");
        }
        let token = seen.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if state.wants_login && !token.is_some_and(|token| state.access.contains(token)) {
            return Answer { headers: vec![("WWW-Authenticate", challenge)], ..empty("401 Unauthorized") };
        }
        let session = format!("session-{}", state.session);
        let is_known = seen.headers.get("mcp-session-id") == Some(&session);
        if seen.verb == "GET" {
            return match seen.headers.get("last-event-id").map(String::as_str) {
                Some(id) if is_known => resumed(id),
                _ => empty("405 Method Not Allowed"),
            };
        }
        let asked: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        let good = |result: Value| answer("200 OK", json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        let text = |text: &str| good(json!({ "content": [{ "type": "text", "text": text }] }));
        match asked["method"].as_str() {
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "what?" });
                answer("200 OK", json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            }
            Some("initialize") => {
                let info = json!({ "name": "remote", "version": "1" });
                let told = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info });
                let mut first = good(told);
                first.headers.push(("Mcp-Session-Id", session));
                first
            }
            _ if !is_known => empty("404 Not Found"),
            Some("tools/list") => {
                let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
                let all = ["session", "broken", "hang", "endless_json", "endless_event", "endless_error"];
                good(json!({ "tools": all.map(tool) }))
            }
            Some("tools/call") => match asked["params"]["name"].as_str() {
                // The stream ends before the answer; whoever comes back gets it.
                Some("broken") => stream(&format!("id: {}\nretry: 10\ndata: \n\n", asked["id"])),
                Some("hang") => {
                    drop(state);
                    std::thread::sleep(std::time::Duration::from_secs(30));
                    text("too late")
                }
                _ => text(&session),
            },
            _ => empty("202 Accepted"),
        }
    }
}

fn resumed(id: &str) -> Answer {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    let result = json!({ "content": [{ "type": "text", "text": "the rest of the stream" }] });
    let told = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    stream(&format!("id: later\ndata: {told}\n\n"))
}

fn stream(text: &str) -> Answer {
    Answer { status: "200 OK", headers: vec![("Content-Type", "text/event-stream".to_owned())], body: text.to_owned() }
}

/// Sends the browser back at once, as if a person had agreed.
fn authorize(path: &str) -> Answer {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).unwrap_or_default();
    let back = value("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    let location = format!("{back}?code=code-of-a-person&state={}", value("state"));
    Answer { headers: vec![("Location", location)], ..empty("302 Found") }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { verb, path, headers, body: String::from_utf8(body).ok()? })
}
