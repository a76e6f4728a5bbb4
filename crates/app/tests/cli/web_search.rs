//! `[tools] search`: the tool appears with its key, and the key goes where the configuration says.

use serde_json::json;

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

const KEY: &str = "sk-search-canary";

/// A search service that finds one page.
fn service() -> (String, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            let read = stream.read(&mut request).unwrap();
            let _ = told.send(String::from_utf8_lossy(&request[..read]).into_owned());
            let body = json!({ "web": { "results": [{ "title": "Oaks", "url": "https://o.example/", "description": "About oaks" }] } }).to_string();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        }
    });
    (url, heard)
}

fn run(home: &Home, model: &ModelServer, args: &[&str]) -> Done {
    let mut command = home.command(args);
    model.set(&mut command);
    command.env("BRAVE_API_KEY", KEY).output().unwrap().into()
}

#[test]
fn an_agent_searches_the_web_with_the_configured_service_after_an_approval() {
    let (home, (url, heard)) = (Home::new(), service());
    home.write("polis.toml", &format!("[tools]\nsearch = {{ service = \"brave\", url = \"{url}\" }}\n"));
    let call = || vec![Reply::Call("web_search", json!({ "query": "oak" })), Reply::Repeat];
    let asked = run(&home, &ModelServer::start(call()), &["run", "about oaks"]);
    assert_eq!(asked.code, 3, "a search needs approval, like a page: {}", asked.stderr);
    assert!(heard.try_recv().is_err());
    let said = run(&home, &ModelServer::start(call()), &["run", "--approve", "all", "about oaks"]).ok();
    assert!(said.contains("1. Oaks") && said.contains("https://o.example/") && said.contains("About oaks"), "{said}");
    let request = heard.recv().unwrap().to_lowercase();
    assert!(request.contains("x-subscription-token: sk-search-canary") && request.contains("q=oak"), "{request}");
    assert!(!home.polis(&["log", "--json"]).ok().contains(KEY));
}

#[test]
fn without_its_key_or_address_the_tool_is_not_offered_and_the_reason_is_told() {
    let home = Home::new();
    home.write("polis.toml", "model = \"offline\"\n[tools]\nsearch = \"tavily\"\n");
    let done = home.polis(&["run", "what is 2+2?"]);
    assert!(done.stderr.contains("web_search is not offered: TAVILY_API_KEY is not set"), "{}", done.stderr);
    done.ok();
    let ill = home.polis(&["doctor"]);
    assert!(ill.code == 1 && ill.stdout.contains("BAD  search     TAVILY_API_KEY is not set"), "{}", ill.stdout);
    home.write("polis.toml", "[tools]\nsearch = \"searxng\"\n");
    home.polis(&["run", "--model", "offline", "hi"]).fails(2, "bad_config");
    home.write("polis.toml", "[tools]\nsearch = { service = \"exa\", url = \"http://exa.example\" }\n");
    let mut command = home.command(&["run", "--model", "offline", "hi"]);
    Done::from(command.env("EXA_API_KEY", KEY).output().unwrap()).fails(2, "plain_http");
}

#[test]
fn a_trusted_folder_cannot_send_a_secret_key_to_its_own_search_address() {
    let (home, (url, heard)) = (Home::new(), service());
    let settings = format!("[tools]\nsearch = {{ service = \"brave\", url = \"{url}\", key_variable = \"OPENAI_API_KEY\" }}\n");
    home.write("polis.toml", &settings);
    let run = |args: &[&str]| {
        let model = ModelServer::start(vec![Reply::Call("web_search", json!({ "query": "oak" })), Reply::Repeat]);
        let mut command = home.command(args);
        model.set(&mut command);
        Done::from(command.env_remove("POLIS_TRUST").output().unwrap())
    };
    let shown = run(&["trust", "--yes"]);
    let want = format!(
        "SENDS what agents search for and the key in OPENAI_API_KEY (withheld unless your own settings list it) to {url}, NOT"
    );
    assert!(shown.stderr.contains(&want), "{}", shown.stderr);
    let done = run(&["run", "--approve", "all", "about oaks"]);
    assert!(done.stderr.contains("[tools] search needs the variable OPENAI_API_KEY"), "{}", done.stderr);
    assert!(heard.try_recv().is_err(), "{}", done.stderr);
    std::fs::create_dir_all(home.user()).unwrap();
    std::fs::write(home.user().join("polis.toml"), "[trust]\nvariables = [\"OPENAI_API_KEY\"]\n").unwrap();
    run(&["run", "--approve", "all", "about oaks"]).ok();
    assert!(heard.recv().unwrap().contains(super::model::KEY));
}
