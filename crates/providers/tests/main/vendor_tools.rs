//! What the tools that vendors run themselves did, as each vendor documents it: kept with the reply, paid for, and sent back.

use polis_domain::{Finish, Reply};
use polis_ports::{Citation, Model, ModelRequest, VendorTool, collect};
use polis_providers::vendors::{self, VENDORS};
use polis_providers::{Dialect, Endpoint};
use serde_json::{Value, json};

use crate::server::{SSE, Seen, Server, Step, answer_in, events, response};

/// The reply of a vendor that streams these events.
async fn read(dialect: Dialect, data: &[Value]) -> Reply {
    let texts: Vec<String> = data.iter().map(Value::to_string).collect();
    let mut body = events(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    if dialect == Dialect::OpenAiChat {
        body.push_str("data: [DONE]\n\n");
    }
    answer_in(dialect, response(200, SSE, body.as_bytes(), 999)).await.unwrap()
}

/// Tool, input, output, titles of what was found, and uses of each call.
fn calls(reply: &Reply) -> Vec<(VendorTool, &str, &str, Vec<&str>, u32)> {
    let calls = reply.vendor_calls.iter();
    calls
        .map(|call| {
            let found = call.found.iter().map(|cited| &*cited.title).collect();
            (call.tool, &*call.input, &*call.output, found, call.uses)
        })
        .collect()
}

/// A message of Anthropic's with a search that finds, one that fails, code that runs, and a text with a source.
fn anthropic_events(stop_reason: &str) -> Vec<Value> {
    let used = |index: u64, id: &str, name: &str| {
        json!({ "type": "content_block_start", "index": index, "content_block": {
            "type": "server_tool_use", "id": id, "name": name, "input": {} } })
    };
    let input = |index: u64, text: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": text } });
    let result = |index: u64, kind: &str, id: &str, content: Value| {
        json!({ "type": "content_block_start", "index": index, "content_block": {
            "type": kind, "tool_use_id": id, "content": content, "caller": { "type": "direct" } } })
    };
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let found =
        json!([{ "type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "e", "page_age": null }]);
    let printed =
        json!({ "type": "bash_code_execution_result", "stdout": "4\n", "stderr": "", "return_code": 0, "content": [] });
    vec![
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 10, "output_tokens": 1 } } }),
        used(0, "s1", "web_search"),
        input(0, "{\"query\":"),
        input(0, "\"rust 2026\"}"),
        stop(0),
        result(1, "web_search_tool_result", "s1", found),
        stop(1),
        used(2, "s2", "web_search"),
        input(2, "{\"query\":\"more\"}"),
        stop(2),
        result(
            3,
            "web_search_tool_result",
            "s2",
            json!({ "type": "web_search_tool_result_error", "error_code": "max_uses_exceeded" }),
        ),
        stop(3),
        used(4, "s3", "bash_code_execution"),
        input(4, "{\"command\":\"echo 4\"}"),
        stop(4),
        result(5, "bash_code_execution_tool_result", "s3", printed),
        stop(5),
        json!({ "type": "content_block_start", "index": 6, "content_block": { "type": "text", "text": "", "citations": [] } }),
        json!({ "type": "content_block_delta", "index": 6, "delta": { "type": "citations_delta", "citation": {
            "type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "i", "cited_text": "c" } } }),
        json!({ "type": "content_block_delta", "index": 6, "delta": { "type": "text_delta", "text": "It is 4." } }),
        stop(6),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason }, "usage": {
            "output_tokens": 20, "server_tool_use": { "web_search_requests": 2 } } }),
        json!({ "type": "message_stop" }),
    ]
}

#[tokio::test]
async fn anthropics_searches_and_code_are_kept_and_its_blocks_are_sent_back_unchanged() {
    let reply = read(Dialect::Anthropic, &anthropic_events("end_turn")).await;
    assert_eq!((&*reply.text, &reply.finish), ("It is 4.", &Finish::Stop));
    let want = [
        (VendorTool::WebSearch, "rust 2026", "", vec!["A"], 1),
        (VendorTool::WebSearch, "more", "max_uses_exceeded", vec![], 0),
        (VendorTool::CodeExecution, "echo 4", "4\n", vec![], 1),
        // The vendor charges for one that the reply does not show.
        (VendorTool::WebSearch, "", "", vec![], 1),
    ];
    assert_eq!(calls(&reply), want);
    assert_eq!(reply.citations, [Citation::new("A", "https://a")]);
    let items = reply.echo.unwrap()["items"].clone();
    assert_eq!(
        items[0],
        json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "rust 2026" } })
    );
    let found =
        json!([{ "type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "e", "page_age": null }]);
    assert_eq!(
        items[1],
        json!({ "type": "web_search_tool_result", "tool_use_id": "s1", "content": found, "caller": { "type": "direct" } })
    );
    assert_eq!((items.as_array().unwrap().len(), &items[6]["citations"][0]["encrypted_index"]), (7, &json!("i")));
}

#[tokio::test]
async fn a_pause_of_anthropics_tools_is_known_as_one() {
    assert_eq!(read(Dialect::Anthropic, &anthropic_events("pause_turn")).await.finish, Finish::Paused);
}

#[tokio::test]
async fn openais_searches_code_and_files_are_kept_and_its_items_are_sent_back() {
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed", "action": {
        "type": "search", "query": "rust 2026", "sources": [{ "type": "url", "url": "https://a" }] } });
    let page = json!({ "type": "web_search_call", "id": "ws_2", "status": "completed", "action": { "type": "open_page", "url": "https://a" } });
    let code = |id: &str| {
        json!({ "type": "code_interpreter_call", "id": id, "status": "completed", "code": "print(4)", "container_id": "c1",
            "outputs": [{ "type": "logs", "logs": "4\n" }] })
    };
    let files = json!({ "type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["plan", "goal"],
        "results": [{ "file_id": "f1", "filename": "plan.pdf", "score": 0.9, "text": "…" }] });
    let message = json!({ "type": "message", "id": "m", "role": "assistant", "content": [
        { "type": "output_text", "text": "It is 4.", "annotations": [
            { "type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 2 },
            { "type": "file_citation", "file_id": "f1", "filename": "plan.pdf", "index": 3 }] }] });
    let items = [search.clone(), page, code("ci_1"), code("ci_2"), files, message];
    let mut data: Vec<Value> = items
        .iter()
        .enumerate()
        .map(|(index, item)| json!({ "type": "response.output_item.done", "output_index": index, "item": item }))
        .collect();
    data.insert(0, json!({ "type": "response.output_text.delta", "output_index": 5, "delta": "It is 4." }));
    data.push(json!({ "type": "response.completed", "response": { "status": "completed", "output": items,
        "usage": { "input_tokens": 10, "output_tokens": 5 } } }));
    let reply = read(Dialect::OpenAiResponses, &data).await;
    let want = [
        (VendorTool::WebSearch, "rust 2026", "", vec![""], 1),
        (VendorTool::WebFetch, "https://a", "", vec![], 0),
        (VendorTool::CodeExecution, "print(4)", "4\n", vec![], 1),
        (VendorTool::CodeExecution, "print(4)", "4\n", vec![], 0),
        (VendorTool::FileSearch, "plan\ngoal", "", vec!["plan.pdf"], 1),
    ];
    assert_eq!(calls(&reply), want);
    assert_eq!(reply.citations, [Citation::new("A", "https://a"), Citation::new("plan.pdf", "")]);
    let sent_back = reply.echo.unwrap()["items"].clone();
    assert_eq!((sent_back.as_array().unwrap().len(), &sent_back[0]), (6, &search));
    // One response instead of a stream says the same.
    let whole = json!({ "object": "response", "status": "completed", "output": items, "citations": ["https://b"] });
    let whole = answer_in(Dialect::OpenAiResponses, response(200, "application/json", whole.to_string().as_bytes(), 999))
        .await
        .unwrap();
    assert_eq!((calls(&whole), whole.citations.len()), (want.to_vec(), 3));
}

#[tokio::test]
async fn geminis_searches_pages_and_code_are_kept_and_its_parts_are_sent_back() {
    let call = json!({ "toolCall": { "toolType": "GOOGLE_SEARCH_WEB", "args": { "queries": ["q"] }, "id": "t1" }, "thoughtSignature": "s" });
    let answer = json!({ "toolResponse": { "toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t1" } });
    let code = json!({ "executableCode": { "language": "PYTHON", "code": "print(4)" } });
    let printed = json!({ "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "4\n" } });
    let grounding =
        json!({ "webSearchQueries": ["rust 2026"], "groundingChunks": [{ "web": { "uri": "https://a", "title": "A" } }] });
    let fetched = json!({ "urlMetadata": [
        { "retrievedUrl": "https://b", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS" },
        { "retrievedUrl": "https://c", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR" }] });
    let reply = read(
        Dialect::Gemini,
        &[
            json!({ "candidates": [{ "content": { "parts": [call, answer, code, printed] } }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "It is 4." }] }, "groundingMetadata": grounding }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] }, "finishReason": "STOP",
                "groundingMetadata": grounding, "urlContextMetadata": fetched }],
                "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5 } }),
        ],
    )
    .await;
    let want = [
        (VendorTool::CodeExecution, "print(4)", "4\n", vec![], 1),
        (VendorTool::WebSearch, "rust 2026", "", vec!["A"], 1),
        (VendorTool::WebFetch, "https://b", "", vec![], 1),
        (VendorTool::WebFetch, "https://c", "URL_RETRIEVAL_STATUS_ERROR", vec![], 0),
    ];
    assert_eq!(calls(&reply), want);
    assert_eq!((&*reply.text, reply.citations.len()), ("It is 4.", 1));
    assert_eq!(reply.echo.unwrap()["items"], json!([call, answer, code, printed, { "text": "It is 4." }]));
}

#[tokio::test]
async fn sources_of_openrouter_perplexity_and_groq_are_kept() {
    let chunk = |delta: Value| json!({ "id": "1", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let end = |more: Value| {
        let mut end = json!({ "id": "1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        end.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        end
    };
    let cited = json!([{ "type": "url_citation", "url_citation": { "url": "https://a", "title": "A", "content": "c" } }]);
    let usage =
        json!({ "usage": { "prompt_tokens": 3, "completion_tokens": 1, "server_tool_use": { "web_search_requests": 2 } } });
    let openrouter =
        read(Dialect::OpenAiChat, &[chunk(json!({ "content": "It is 4.", "annotations": cited })), end(usage)]).await;
    assert_eq!(calls(&openrouter), [(VendorTool::WebSearch, "", "", vec![], 2)]);
    assert_eq!(openrouter.citations, [Citation::new("A", "https://a")]);

    let found = json!({ "search_results": [{ "title": "A", "url": "https://a", "date": "2026-01-01" }, { "title": "B", "url": "https://b" }] });
    let mut first = chunk(json!({ "content": "It is 4 [1]." }));
    first.as_object_mut().unwrap().extend(found.as_object().unwrap().clone());
    let perplexity = read(Dialect::OpenAiChat, &[first, end(found)]).await;
    assert_eq!(calls(&perplexity), [(VendorTool::WebSearch, "", "", vec!["A", "B"], 1)]);
    assert_eq!(perplexity.citations.len(), 2, "each chunk repeats them");

    let begun = json!([{ "index": 0, "type": "browser_search", "arguments": "{\"query\":\"q\"}" }]);
    let ended = json!([{ "index": 0, "type": "browser_search", "arguments": "{\"query\":\"q\"}", "output": "…",
        "search_results": { "results": [{ "title": "A", "url": "https://a", "content": "c" }] } },
        { "index": 1, "type": "python", "arguments": "{\"code\":\"2+2\"}", "output": "4" }]);
    let groq = read(
        Dialect::OpenAiChat,
        &[chunk(json!({ "executed_tools": begun })), chunk(json!({ "content": "4", "executed_tools": ended })), end(json!({}))],
    )
    .await;
    let want = [(VendorTool::WebSearch, "q", "", vec!["A"], 1), (VendorTool::CodeExecution, "2+2", "4", vec![], 1)];
    assert_eq!(calls(&groq), want);
}

#[tokio::test]
async fn what_the_vendors_tools_cost_is_part_of_what_the_call_costs() {
    let body: String = anthropic_events("end_turn").iter().map(|event| format!("data: {event}\n\n")).collect();
    let server = Server::start(vec![Step::Send(response(200, SSE, body.as_bytes(), 999))]).await;
    let set = [("ANTHROPIC_API_KEY", "k".to_owned()), ("ANTHROPIC_BASE_URL", server.base_url.clone())];
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let models = vendors::open(Some("anthropic/claude-opus-5"), &lookup).await.unwrap();
    let request = ModelRequest { vendor_tools: vec![VendorTool::WebSearch], ..ModelRequest::from("hello") };
    let guess = models.estimate(&request).cost_nanos - models.estimate(&ModelRequest::from("hello")).cost_nanos;
    assert_eq!(guess, 100_000_000, "ten searches at most");
    let reply = collect(models.stream(request).await.unwrap()).await.unwrap();
    // Ten dollars for a thousand searches, five and twenty-five for a million tokens.
    assert_eq!(reply.usage.cost_nanos, 2 * 10_000_000 + 10 * 5_000 + 20 * 25_000);
}

#[tokio::test]
async fn a_vendor_has_the_tools_that_its_interface_has_and_its_model() {
    let open = |model: &'static str, variable: &'static str, endpoints: Vec<Endpoint>| async move {
        let lookup = |name: &str| (name == variable).then(|| "k".to_owned());
        let setup = vendors::Setup { endpoints, ..vendors::Setup::default() };
        let models = vendors::open_with(Some(model), &lookup, setup).await.unwrap();
        models.description(model).capabilities.vendor_tools.unwrap_or_default().to_vec()
    };
    use VendorTool::{CodeExecution, FileSearch, WebFetch, WebSearch};
    let endpoint = VENDORS.iter().find(|vendor| vendor.name == "openai-responses").unwrap();
    let stores = Endpoint { file_stores: vec!["vs_1".to_owned()], ..Endpoint::new("openai-responses", endpoint) };
    assert_eq!(
        open("openai-responses/gpt-5-mini", "OPENAI_API_KEY", vec![stores]).await,
        [WebSearch, CodeExecution, FileSearch]
    );
    assert_eq!(open("openai-responses/gpt-5-mini", "OPENAI_API_KEY", vec![]).await, [WebSearch, CodeExecution]);
    assert_eq!(open("openai/gpt-5-mini", "OPENAI_API_KEY", vec![]).await, [], "this interface has none");
    assert_eq!(open("anthropic/claude-opus-5", "ANTHROPIC_API_KEY", vec![]).await, [WebSearch, WebFetch, CodeExecution]);
    assert_eq!(open("perplexity/sonar", "PERPLEXITY_API_KEY", vec![]).await, [WebSearch]);
    assert_eq!(open("openrouter/x/y", "OPENROUTER_API_KEY", vec![]).await, [WebSearch, WebFetch]);
}

#[tokio::test]
async fn a_tool_of_the_vendor_gives_way_to_a_tool_of_ours_with_its_name() {
    let mut server = Server::start(vec![Step::Send(response(400, "text/plain", b"enough", 9))]).await;
    let model = server.model_with(|options| options.dialect = Dialect::Anthropic);
    let own = polis_ports::ToolSpec {
        name: "web_search".into(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
        class: polis_domain::EffectClass::Read,
        volatile: false,
    };
    let vendor_tools = vec![VendorTool::WebSearch, VendorTool::CodeExecution];
    let request = ModelRequest { tools: [own].into(), vendor_tools, ..ModelRequest::from("hello") };
    assert!(model.stream(request).await.is_err());
    loop {
        if let Seen::Request { body, .. } = server.seen().await {
            let body: Value = serde_json::from_str(&body).unwrap();
            let names: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(names, [json!("code_execution"), json!("web_search")]);
            return;
        }
    }
}
