//! `web_search`: each service is asked as its API documents it, and what it answers becomes one list.

use std::sync::{Arc, Mutex};

use polis_domain::EffectClass;
use polis_ports::{Tool, ToolError};
use polis_tools::{HttpOptions, SearchService, WebSearch};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bench::context;

const KEY: &str = "sk-search-1";

/// A service that answers every request the same way, and what it was asked.
struct Service {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn service(status: &'static str, body: String) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            // The body may come after the head.
            while !is_whole(&request) {
                match stream.read(&mut chunk).await {
                    Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
                    _ => break,
                }
            }
            seen.lock().unwrap().push(String::from_utf8(request).unwrap());
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Service { url, asked }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}

impl Service {
    fn tool(&self, which: SearchService) -> WebSearch {
        let key = which.key_variable().map(|_| KEY.to_owned());
        WebSearch::new(which, &format!("{}/", self.url), key, &HttpOptions::default())
    }

    /// The first line, the header with this name, and the body of the only request.
    fn request(&self, header: &str) -> (String, Option<String>, Value) {
        let asked = self.asked.lock().unwrap();
        let [request] = &asked[..] else { panic!("{asked:?}") };
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let value = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case(header).then(|| value.to_owned())
        });
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        (head.lines().next().unwrap().to_owned(), value, body)
    }
}

async fn search(tool: &WebSearch, arguments: Value) -> Result<(bool, String), ToolError> {
    let result = tool.call(&arguments.to_string(), &context()).await?;
    Ok((result.is_error, result.content.to_string()))
}

/// Each API: what it is asked, and its documented answer with one page.
#[tokio::test]
async fn each_service_is_asked_in_its_own_way_and_its_answer_becomes_one_list() {
    let page = |url: &str, snippet: &str, date: &str, text: Value| json!({ "title": "An oak", url: "https://trees.example/oak", snippet: text, date: "2026-05-01", "score": 0.9 });
    let text = json!("The <b>oak</b> is  a\ntree.");
    let cases = [
        (
            SearchService::Brave,
            "GET /res/v1/web/search?q=old+oak+%26+co&count=3&text_decorations=false HTTP/1.1",
            ("x-subscription-token", Some(KEY)),
            Value::Null,
            json!({ "type": "search", "web": { "results": [page("url", "description", "age", json!("The oak is a tr&#101;e."))] } }),
        ),
        (
            SearchService::Tavily,
            "POST /search HTTP/1.1",
            ("authorization", Some("Bearer sk-search-1")),
            json!({ "query": "old oak & co", "max_results": 3 }),
            json!({ "query": "q", "results": [page("url", "content", "published_date", text.clone())], "response_time": 1.2 }),
        ),
        (
            SearchService::Exa,
            "POST /search HTTP/1.1",
            ("x-api-key", Some(KEY)),
            json!({ "query": "old oak & co", "numResults": 3, "contents": { "highlights": { "maxCharacters": 500 } } }),
            json!({ "requestId": "r", "results": [page("url", "highlights", "publishedDate", json!(["The oak is a tree."]))] }),
        ),
        (
            SearchService::Serper,
            "POST /search HTTP/1.1",
            ("x-api-key", Some(KEY)),
            json!({ "q": "old oak & co", "num": 3 }),
            json!({ "searchParameters": { "q": "q" }, "organic": [page("link", "snippet", "date", text.clone())] }),
        ),
        (
            SearchService::Searxng,
            "GET /search?q=old+oak+%26+co&format=json HTTP/1.1",
            ("authorization", None),
            Value::Null,
            json!({ "query": "q", "number_of_results": 0, "results": [page("url", "content", "publishedDate", text)] }),
        ),
    ];
    for (which, line, (header, key), body, answer) in cases {
        let service = service("200 OK", answer.to_string()).await;
        let (is_error, found) = search(&service.tool(which), json!({ "query": " old oak & co ", "count": 3 })).await.unwrap();
        let want = format!(
            "Results of {} for: old oak & co\n\n1. An oak (2026-05-01)\n   https://trees.example/oak\n   The oak is a tree.\n",
            which.name()
        );
        assert_eq!((is_error, found), (false, want), "{which:?}");
        assert_eq!(service.request(header), (line.to_owned(), key.map(str::to_owned), body), "{which:?}");
    }
}

#[tokio::test]
async fn results_are_bounded_and_only_pages_of_the_web() {
    let many: Vec<Value> = (0..30)
        .map(|n| json!({ "title": "t".repeat(999), "url": format!("https://a.example/{n}"), "content": "s".repeat(9_999) }))
        .chain([json!({ "title": "bad", "url": "javascript:alert(1)", "content": "" })])
        .rev()
        .collect();
    let service = service("200 OK", json!({ "results": many }).to_string()).await;
    let (_, found) = search(&service.tool(SearchService::Searxng), json!({ "query": "q" })).await.unwrap();
    assert_eq!(found.matches("https://a.example/").count(), 8, "{found}");
    assert!(!found.contains("javascript") && found.len() < 8 * 800, "{found}");
}

#[tokio::test]
async fn a_refusal_says_what_to_do_and_never_shows_the_key() {
    for (which, status, body, want) in [
        (SearchService::Brave, "401 Unauthorized", format!("{{\"error\": \"bad token {KEY}\"}}"), "check the key"),
        (SearchService::Searxng, "403 Forbidden", String::new(), "search.formats"),
        (SearchService::Serper, "429 Too Many Requests", String::new(), "wait"),
        (SearchService::Exa, "302 Found", String::new(), "answered 302"),
        (SearchService::Tavily, "200 OK", "<html>".to_owned(), "not JSON"),
    ] {
        let service = service(status, body).await;
        let (is_error, reason) = search(&service.tool(which), json!({ "query": "q" })).await.unwrap();
        assert!(is_error && reason.contains(want) && !reason.contains(KEY), "{reason}");
    }
    let nothing = service("200 OK", "{}".to_owned()).await;
    let (is_error, text) = search(&nothing.tool(SearchService::Brave), json!({ "query": "q" })).await.unwrap();
    assert_eq!((is_error, text.as_str()), (false, "brave found nothing for: q"));
}

#[tokio::test]
async fn bad_arguments_send_nothing_and_results_count_as_outside_content() {
    let service = service("200 OK", "{}".to_owned()).await;
    let tool = service.tool(SearchService::Brave);
    for arguments in [
        json!({}),
        json!({ "query": " " }),
        json!({ "query": "q".repeat(401) }),
        json!({ "query": "q", "count": 0 }),
        json!({ "query": "q", "count": 21 }),
    ] {
        assert!(matches!(search(&tool, arguments.clone()).await, Err(ToolError::BadArguments(_))), "{arguments}");
    }
    assert_eq!(service.asked.lock().unwrap().len(), 0);
    let flow = tool.flow("{\"query\":\"q\"}");
    assert!(flow.sends && flow.outside.is_some_and(|source| source.contains("brave")));
    let spec = tool.spec();
    assert_eq!((spec.class, spec.volatile), (EffectClass::Read, true));
}
