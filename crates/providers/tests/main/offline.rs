//! The model without a network.

use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{EffectClass, Finish, Reply, ToolCall};
use polis_ports::{ChatMessage, Model, ModelRequest, ToolSpec, collect};
use polis_providers::Offline;
use serde_json::json;

fn asking(text: &str, tools: &[&str]) -> ModelRequest {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: String::new(),
        parameters: json!({}),
        class: EffectClass::Read,
    };
    let tools: Arc<[ToolSpec]> = tools.iter().map(spec).collect();
    ModelRequest { messages: vec![ChatMessage::user(text)], tools, ..ModelRequest::default() }
}

async fn reply(request: ModelRequest) -> Reply {
    collect(Offline::default().stream(request).await.unwrap()).await.unwrap()
}

async fn check_call(text: &str, tool: &str, arguments: serde_json::Value) {
    let reply = reply(asking(text, &["read_file", "write_file"])).await;
    let want = ToolCall { id: "offline_1".into(), name: tool.into(), arguments: arguments.to_string().into() };
    assert_eq!((reply.tool_calls, reply.finish), (vec![want], Finish::ToolCalls), "{text}");
}

/// The answer after a tool was asked for and returned `content`.
async fn answer(text: &str, content: &str) -> String {
    let mut request = asking(text, &["read_file", "write_file"]);
    let asked = reply(request.clone()).await.tool_calls;
    let (call_id, name) = (asked[0].id.clone(), asked[0].name.clone());
    request.messages.push(ChatMessage::Assistant { text: "".into(), reasoning: "".into(), tool_calls: asked, echo: None });
    request.messages.push(ChatMessage::Tool { call_id, name, content: content.into(), is_error: false });
    reply(request).await.text
}

#[tokio::test]
async fn a_wish_to_read_or_write_asks_for_the_real_tool() {
    check_call("read NOTES.md", "read_file", json!({ "path": "NOTES.md" })).await;
    check_call(" Read `a/b.txt` ", "read_file", json!({ "path": "a/b.txt" })).await;
    check_call("读 NOTES.md", "read_file", json!({ "path": "NOTES.md" })).await;
    check_call("读取“笔记.md”。", "read_file", json!({ "path": "笔记.md" })).await;
    check_call("write a.txt: hello: you", "write_file", json!({ "path": "a.txt", "content": "hello: you" })).await;
    check_call("写 a.txt：你好\n再见", "write_file", json!({ "path": "a.txt", "content": "你好\n再见" })).await;
}

#[tokio::test]
async fn the_answer_comes_from_what_the_tool_returned() {
    let notes = "# Notes\nbuy milk\ncall Ada\n";
    assert_eq!(
        answer("read NOTES.md", notes).await,
        "(offline model) I asked the tool read_file for `NOTES.md`. It returned 3 lines with 6 words. The first line is: # Notes"
    );
    assert_eq!(
        answer("读 NOTES.md", notes).await,
        "（离线模型）我用工具 read_file 读了 `NOTES.md`，它返回了 3 行、26 个字符。第一行是：# Notes"
    );
    assert_eq!(
        answer("read nothing.md", "error: `nothing.md` is not there").await,
        "(offline model) For `nothing.md` the tool read_file says: error: `nothing.md` is not there"
    );
    assert_eq!(
        answer("写 a.txt: x", "wrote 1 byte to `a.txt`").await,
        "（离线模型）对 `a.txt`，工具 write_file 的回答是：wrote 1 byte to `a.txt`"
    );
}

#[tokio::test]
async fn anything_else_is_answered_with_what_this_model_is_and_how_to_set_another() {
    for (text, words) in [
        ("what is the capital of France?", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
        ("read between the lines", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
        ("法国的首都是哪里？", ["离线模型", "OPENAI_API_KEY", "polis.toml"]),
        ("", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
    ] {
        let reply = reply(asking(text, &["read_file", "write_file"])).await;
        assert!(words.iter().all(|word| reply.text.contains(word)), "{text}: {}", reply.text);
        assert!(reply.tool_calls.is_empty() && !reply.text.contains("France") && !reply.text.contains("法国"));
    }
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_not_asked_for() {
    let reply = reply(asking("read NOTES.md", &["write_file"])).await;
    assert_eq!(reply.text, "(offline model) That needs the tool read_file, which I am not offered here.");
    assert!(reply.tool_calls.is_empty());
}

#[tokio::test]
async fn it_streams_in_several_deltas_counts_tokens_and_repeats_itself_exactly() {
    let request = asking("hello", &[]);
    let deltas: Vec<_> = Offline::default().stream(request.clone()).await.unwrap().map(Result::unwrap).collect().await;
    assert!(deltas.len() > 5, "{deltas:?}");
    let reply = reply(request.clone()).await;
    assert!(reply.usage.input_tokens == 2 && reply.usage.output_tokens > 20, "{:?}", reply.usage);
    let again: Vec<_> = Offline::default().stream(request).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(again, deltas);
}
