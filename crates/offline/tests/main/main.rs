//! The model without a network, over tools that answer from a folder in memory.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polis_domain::{CallNote, CallResult, EffectClass, Finish, Reply, ToolCall};
use polis_offline::{Offline, Pace};
use polis_ports::{ChatMessage, Delta, Format, Model, ModelRequest, ToolSpec, collect};
use serde_json::{Value, json};

const TOOLS: &[&str] = &["read_file", "write_file", "list_files", "search_files", "now"];

/// Bytes that the folder's `read_file` gives at once.
const PAGE: usize = 400;

fn asking(text: &str, tools: &[&str]) -> ModelRequest {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: String::new(),
        parameters: json!({}),
        class: EffectClass::Read,
        volatile: false,
    };
    let tools: Arc<[ToolSpec]> = tools.iter().map(spec).collect();
    ModelRequest { messages: vec![ChatMessage::user(text)], tools, ..ModelRequest::default() }
}

async fn reply(request: ModelRequest) -> Reply {
    collect(Offline::default().stream(request).await.unwrap()).await.unwrap()
}

async fn check_call(text: &str, tool: &str, arguments: Value) {
    let reply = reply(asking(text, TOOLS)).await;
    let want = ToolCall { id: "offline_1".into(), name: tool.into(), arguments: arguments.to_string().into() };
    assert_eq!((reply.tool_calls, reply.finish), (vec![want], Finish::ToolCalls), "{text}");
}

/// Files by their paths, behind tools that speak as the real ones do.
struct Folder(BTreeMap<&'static str, String>);

impl Folder {
    fn of<const N: usize>(files: [(&'static str, &str); N]) -> Self {
        Self(files.into_iter().map(|(path, text)| (path, text.to_owned())).collect())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let path = arguments["path"].as_str().unwrap_or(".");
        match tool {
            "read_file" => self.read(path, arguments),
            "write_file" => {
                let text = arguments["content"].as_str().unwrap();
                self.0.insert("written.txt", text.to_owned());
                Ok(format!("wrote {} bytes to `{path}`", text.len()))
            }
            "list_files" => {
                let ending = arguments["pattern"].as_str().map(|pattern| pattern.trim_start_matches('*').to_owned());
                let is_in = |file: &&str| path == "." || *file == path || file.starts_with(&format!("{path}/"));
                let is_one = |file: &&str| {
                    ending.as_ref().is_none_or(|ending| file.ends_with(ending.as_str()) || ending.starts_with(".{"))
                };
                let found: Vec<_> = self.0.iter().filter(|(file, _)| is_in(file) && is_one(file)).collect();
                if found.is_empty() && path != "." {
                    return Err(format!("error: `{path}` does not exist"));
                }
                let lines = found.iter().map(|(file, text)| format!("{file} ({} bytes)\n", text.len()));
                let bytes: usize = found.iter().map(|(_, text)| text.len()).sum();
                Ok(format!("{}[total: {} files with {bytes} bytes, 0 folders]", lines.collect::<String>(), found.len()))
            }
            "now" => match arguments["zone"].as_str() {
                Some("Asia/Tokyo") => Ok("2023-11-15T07:13:20+09:00 Asia/Tokyo Wednesday".to_owned()),
                Some(zone) => Err(format!("error: `{zone}` is no zone that is known here; give one such as Asia/Tokyo")),
                None => Ok("2023-11-14T22:13:20+00:00 UTC Tuesday".to_owned()),
            },
            tool => panic!("{tool}"),
        }
    }

    fn read(&self, path: &str, arguments: &Value) -> Result<String, String> {
        let text = self.0.get(path).ok_or_else(|| format!("error: `{path}` does not exist"))?;
        let start = arguments["start_line"].as_u64().unwrap_or(1) as usize;
        let end = arguments["end_line"].as_u64().unwrap_or(u64::MAX) as usize;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let wanted = &lines[start - 1..end.min(lines.len())];
        let mut bytes = 0;
        let fitting = wanted.iter().take_while(|line| {
            bytes += line.len();
            bytes <= PAGE
        });
        let count = fitting.count();
        if wanted.len() == count {
            return Ok(wanted.concat());
        }
        let last = start + count - 1;
        let note = format!("[cut: these are lines {start} to {last} of {}; go on with start_line {}]", lines.len(), last + 1);
        Ok(format!("{}{note}", wanted[..count].concat()))
    }

    /// Talks until there is an answer: every reply on the way, the answer last.
    async fn converse(&mut self, request: &mut ModelRequest) -> Vec<Reply> {
        let mut replies = Vec::new();
        for _ in 0..10 {
            let reply = reply(request.clone()).await;
            request.messages.push(ChatMessage::said(&reply));
            for call in &reply.tool_calls {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                let (content, is_error) = match self.call(&call.name, &arguments) {
                    Ok(content) => (content, false),
                    Err(content) => (content, true),
                };
                request.messages.push(ChatMessage::result(call, &CallResult { is_error, ..CallResult::good(content) }));
            }
            let is_answer = reply.tool_calls.is_empty();
            replies.push(reply);
            if is_answer {
                return replies;
            }
        }
        panic!("no answer: {replies:?}");
    }

    async fn answer(&mut self, text: &str) -> String {
        self.converse(&mut asking(text, TOOLS)).await.pop().unwrap().text
    }
}

fn has(text: &str, wants: &[&str]) {
    for want in wants {
        assert!(text.contains(want), "should have: {want}\n{text}");
    }
}

#[tokio::test]
async fn a_wish_to_read_or_write_asks_for_the_real_tool() {
    check_call("read NOTES.md", "read_file", json!({ "path": "NOTES.md" })).await;
    check_call(" Read `a/b.txt` ", "read_file", json!({ "path": "a/b.txt" })).await;
    check_call("读 NOTES.md", "read_file", json!({ "path": "NOTES.md" })).await;
    check_call("读取“笔记.md”。", "read_file", json!({ "path": "笔记.md" })).await;
    check_call("write a.txt: hello: you", "write_file", json!({ "path": "a.txt", "content": "hello: you" })).await;
    check_call("写 a.txt：你好\n再见", "write_file", json!({ "path": "a.txt", "content": "你好\n再见" })).await;
    check_call("what time is it in Tokyo?", "now", json!({ "zone": "Asia/Tokyo" })).await;
    check_call(
        "how often does \"milk\" occur here",
        "search_files",
        json!({ "text": "milk", "path": ".", "ignore_case": true, "whole_word": true }),
    )
    .await;
}

#[tokio::test]
async fn the_answer_comes_from_what_the_tool_returned() {
    let mut folder = Folder::of([("NOTES.md", "# Notes\nbuy milk\ncall Ada\n")]);
    assert_eq!(
        folder.answer("read NOTES.md").await,
        "(offline model) I read `NOTES.md` with read_file: 3 lines, 6 words, 26 characters.\n```\n# Notes\nbuy milk\ncall Ada\n```"
    );
    assert_eq!(
        Folder::of([("one.md", "milk\n")]).answer("read one.md").await,
        "(offline model) I read `one.md` with read_file: 1 line, 1 word, 5 characters.\n```\nmilk\n```"
    );
    assert_eq!(
        folder.answer("读 NOTES.md").await,
        "（离线模型）我用 read_file 读了 `NOTES.md`：3 行、6 个词、26 个字符。\n```\n# Notes\nbuy milk\ncall Ada\n```"
    );
    assert_eq!(
        folder.answer("what time is it in Tokyo").await,
        "(offline model) In Tokyo it is 07:13 on Wednesday, 2023-11-15 (Asia/Tokyo, UTC+09:00)."
    );
    assert_eq!(folder.answer("现在几点？").await, "（离线模型）现在是 2023-11-14 星期二 22:13（UTC, UTC+00:00）。");
    has(
        &folder.answer("what time is it in Atlantis").await,
        &["I cannot tell the time in Atlantis", "is no zone that is known"],
    );
}

#[tokio::test]
async fn what_was_written_is_read_again() {
    let mut folder = Folder::of([]);
    let replies = folder.converse(&mut asking("write written.txt: hello", TOOLS)).await;
    has(&replies[0].text, &["My plan:\n1. write `written.txt`", "2. read it again and compare"]);
    assert_eq!(replies.len(), 3, "write, read, answer");
    has(&replies[2].text, &["wrote 5 bytes", "it holds exactly that"]);
    // Where the file holds something else afterwards, it says so.
    folder.0.insert("other.txt", "else".to_owned());
    has(&folder.answer("write other.txt: hello").await, &["when I read `other.txt` again it held something else"]);
}

#[tokio::test]
async fn a_table_is_planned_read_in_parts_reckoned_and_checked() {
    // More lines than come at once, and longer ones further down, so that it must read on, and again.
    let row = |n: usize| format!("{}{},{n}.25\n", if n.is_multiple_of(3) { "Rome" } else { "Oslo" }, " ".repeat(n / 25));
    let rows: String = (1..=500).map(row).collect();
    let text = format!("city,price\n{rows}");
    let mut folder = Folder::of([("data/sales.csv", &text)]);
    let replies = folder.converse(&mut asking("average price by city in sales.csv", TOOLS)).await;
    has(
        &replies[0].text,
        &["(offline model) My plan:\n1. find `sales.csv`", "\n2. read all of it\n", "\n4. check the figures"],
    );
    assert!(replies.iter().rev().skip(1).all(|reply| !reply.reasoning.is_empty()), "it thinks aloud before each call");
    assert!(replies.iter().any(|reply| reply.tool_calls.len() > 5), "parts are read at once: {replies:?}");
    let cents = |wanted: fn(u64) -> bool| {
        let numbers: Vec<u64> = (1..=500).filter(|n| wanted(*n)).map(|n| n * 100 + 25).collect();
        (numbers.len() as u64, numbers.iter().sum::<u64>())
    };
    let (rome, oslo) = (cents(|n| n % 3 == 0), cents(|n| n % 3 != 0));
    let mean = |(count, sum): (u64, u64)| format!("{}", sum as f64 / 100.0 / count as f64);
    has(
        &replies.last().unwrap().text,
        &[
            "`data/sales.csv` has 500 rows and 2 columns",
            &format!("| Rome | {} | {} |", rome.0, mean(rome)),
            &format!("| Oslo | {} | {} |", oslo.0, mean(oslo)),
            &format!("add up to the whole, {}", (rome.1 + oslo.1) / 100),
            &format!("I read {} bytes, as many as list_files says", text.len()),
        ],
    );
}

#[tokio::test]
async fn a_conversation_goes_on_about_the_table_that_was_named() {
    let mut folder = Folder::of([("a.csv", "x,y\n1,2\n3,4\n"), ("b.csv", "x,y\n5,6\n")]);
    let mut request = asking("analyse a.csv", TOOLS);
    folder.converse(&mut request).await;
    request.messages.push(ChatMessage::user("and the total of y?"));
    let answer = folder.converse(&mut request).await.pop().unwrap().text;
    has(&answer, &["`a.csv`", "sum of y: 6"]);
    has(&folder.answer("average x by y").await, &["Which table do you mean? I find `a.csv`, `b.csv`."]);
}

#[tokio::test]
async fn a_file_that_is_not_there_is_looked_for() {
    let mut folder = Folder::of([("docs/Notes.md", "hello"), ("sales.csv", "a\n1\n")]);
    has(&folder.answer("read notes.md").await, &["I read `docs/Notes.md` with read_file"]);
    assert_eq!(
        folder.answer("analyse salse.csv").await,
        "(offline model) There is no file `salse.csv`. Did you mean `sales.csv`?"
    );
    assert_eq!(folder.answer("分析销售.csv").await, "（离线模型）没有文件 `销售.csv`。我看了 2 个文件，没有名字相近的。");
}

#[tokio::test]
async fn anything_else_is_answered_with_what_this_model_is_and_how_to_set_another() {
    for (text, words) in [
        ("what is the capital of France?", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
        ("read between the lines", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
        ("法国的首都是哪里？", ["离线模型", "OPENAI_API_KEY", "polis.toml"]),
        ("", ["offline model", "OPENAI_API_KEY", "polis.toml"]),
    ] {
        let reply = reply(asking(text, TOOLS)).await;
        has(&reply.text, &words);
        assert!(reply.tool_calls.is_empty() && !reply.text.contains("France") && !reply.text.contains("法国"));
    }
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_not_asked_for() {
    for (asked, tool) in [("read NOTES.md", "read_file"), ("what time is it", "now"), ("how many files are here", "list_files")]
    {
        let reply = reply(asking(asked, &["write_file"])).await;
        assert_eq!(reply.text, format!("(offline model) That needs the tool {tool}, which I am not offered here."));
        assert!(reply.tool_calls.is_empty());
    }
    let arithmetic = reply(asking("6 * 7", &[])).await;
    assert_eq!(arithmetic.text, "(offline model) 6 × 7 = 42");
    let qualified = reply(asking("what time is it", &["builtin__now"])).await;
    assert_eq!(&*qualified.tool_calls[0].name, "builtin__now");
}

#[tokio::test]
async fn a_call_without_a_result_ends_in_words_and_not_in_a_circle() {
    let mut request = asking("read a.txt", TOOLS);
    let first = reply(request.clone()).await;
    request.messages.push(ChatMessage::said(&first));
    let second = reply(request).await;
    assert!(second.tool_calls.is_empty() && second.text.contains("the call has no result"), "{second:?}");
}

#[tokio::test]
async fn a_demanded_shape_is_kept() {
    let schema = json!({
        "type": "object",
        "properties": {
            "todos": { "type": "array", "items": { "type": "object", "properties": { "title": { "type": "string" } } } },
            "done": { "type": "boolean" },
        },
    });
    let format = Some(Arc::new(Format { name: "plan".to_owned(), schema }));
    let request = ModelRequest { format, ..asking("average price by city in sales.csv", &[]) };
    let plan: Value = serde_json::from_str(&reply(request).await.text).unwrap();
    assert_eq!(plan["todos"].as_array().unwrap().len(), 4);
    has(plan["todos"][0]["title"].as_str().unwrap(), &["find `sales.csv`"]);
}

#[tokio::test]
async fn it_streams_in_several_deltas_counts_tokens_and_repeats_itself_exactly() {
    let request = asking("hello", &[]);
    let deltas: Vec<_> = Offline::default().stream(request.clone()).await.unwrap().map(Result::unwrap).collect().await;
    assert!(deltas.len() > 20, "{deltas:?}");
    let reply = reply(request.clone()).await;
    assert_eq!((reply.usage.input_tokens, &*reply.model), (request.estimate().input_tokens, "offline"));
    assert!(reply.usage.output_tokens > 100, "{:?}", reply.usage);
    let again: Vec<_> = Offline::default().stream(request).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(again, deltas);
}

#[tokio::test(start_paused = true)]
async fn at_a_human_pace_it_takes_its_time_and_stops_when_nobody_listens() {
    let slow = Offline { pace: Pace::WordsPerSecond(10) };
    let begun = tokio::time::Instant::now();
    let whole = collect(slow.stream(asking("hello", &[])).await.unwrap()).await.unwrap();
    let words = whole.text.split_whitespace().count() as u64;
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_secs(words / 10) && taken < Duration::from_secs(words / 5), "{words} words in {taken:?}");
    assert_eq!(whole, reply(asking("hello", &[])).await, "the same words at any pace");

    let mut stream = slow.stream(asking("hello", &[])).await.unwrap();
    while !matches!(stream.next().await, Some(Ok(Delta::Content(_)))) {}
    let dropped = tokio::time::Instant::now();
    drop(stream);
    assert_eq!(dropped.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_request_of_several_parts_is_answered_part_by_part() {
    let mut folder = Folder::of([("notes.txt", "one two three\n"), ("a.txt", "hello\n")]);
    let answer = folder.answer("Read notes.txt, then compute 15% of 240, then tell me the time in Tokyo").await;
    has(&answer, &["one two three", "= 36", "Asia/Tokyo"]);
    let answer = folder.answer("读 notes.txt；然后计算 240 的 15%；最后读 a.txt").await;
    has(&answer, &["one two three", "36", "hello"]);
    let first = reply(asking("read a.txt; read notes.txt", TOOLS)).await;
    has(&first.text, &["1. read a.txt", "2. read notes.txt"]);
}

#[tokio::test]
async fn what_is_not_understood_is_said_and_not_passed_over() {
    let sales = "date,city,amount\n2024-01-05,Paris,10\n2024-02-03,Berlin,20\n2024-03-01,Rome,\n2024-03-02,Paris,40\n";
    let mut folder = Folder::of([
        ("sales.csv", sales),
        ("cn.csv", "城市,销售额\n北京,1\n上海,2\n"),
        ("b.csv", "x\n1\n"),
        ("big.csv", "x\n1\n"),
    ]);
    has(&folder.answer("sum amount in sales.csv excluding Paris").await, &["city ≠ Paris", "sum of amount: 20"]);
    has(&folder.answer("sum amount in sales.csv without Berlin").await, &["city ≠ Berlin", "sum of amount: 50"]);
    has(&folder.answer("cn.csv 里北京以外的销售额总和").await, &["城市 ≠ 北京", "销售额的总和：2"]);
    has(&folder.answer("sum amount in sales.csv where city is Tokyo").await, &["0 of 4 rows where city = tokyo"]);
    has(&folder.answer("how many rows have no amount in sales.csv").await, &["number of rows: 1"]);
    has(&folder.answer("how many cities are in sales.csv").await, &["number of different values of city: 3"]);
    has(&folder.answer("sum amount in sales.csv for Tokyo").await, &["I did not understand the part “Tokyo”"]);
    has(&folder.answer("15% of the total amount in sales.csv").await, &["I did not understand the part “15%”"]);
    has(&folder.answer("compare sales.csv and b.csv").await, &["I did not understand the part “compare and b.csv”"]);
    has(&folder.answer("cn.csv 里深圳的销售额总和").await, &["我没有听懂“深圳”这部分"]);
    has(&folder.answer("what is the date tomorrow").await, &["I did not understand the part “tomorrow”"]);
    let answer = folder.answer("what time is it in Tokyo? write me a poem").await;
    has(&answer, &["Asia/Tokyo", "I did not understand the part “write me a poem”"]);
    has(&folder.answer("analyse missing.csv").await, &["There is no file `missing.csv`", "none is called nearly so"]);
}

#[tokio::test]
async fn a_comma_within_a_question_about_a_table_does_not_part_it() {
    let sales = "city,quantity,amount\nUlm,2,20\nUlm,5,70\nBerlin,1,10\nBerlin,6,80\nParis,4,90\n";
    let mut folder = Folder::of([("sales.csv", sales), ("销售.csv", "城市,数量,金额\n北京,2,20\n北京,5,70\n上海,6,80\n")]);
    for asked in [
        "average amount by city in sales.csv, where quantity > 3",
        "In sales.csv, what is the average amount by city where quantity > 3?",
        "sales.csv 里数量大于 3 的平均金额，按城市",
    ] {
        let answer = folder.answer(asked).await;
        has(&answer, &["| Paris | 1 | 90 |", "| Berlin | 1 | 80 |", "| Ulm | 1 | 70 |", "3"]);
        assert_eq!(answer.matches("sales.csv").count(), 1, "one question has one answer: {answer}");
    }
    has(&folder.answer("销售.csv 里数量大于 3 的平均金额，按城市").await, &["| 上海 | 1 | 80 |", "| 北京 | 1 | 70 |"]);
    has(&folder.answer("按城市统计销售.csv的平均金额").await, &["| 上海 | 1 | 80 |", "| 北京 | 2 | 45 |"]);
    let two = folder.answer("sum amount in sales.csv, how many files are here").await;
    has(&two, &["sum of amount: 270", "2 files"]);
}

#[tokio::test]
async fn marks_are_searched_for_as_they_are_written() {
    let arguments = |text: &str| json!({ "text": text, "path": "." });
    for (asked, text) in [
        ("find all TODOs in this folder", "TODO"),
        ("find the word milk in this folder", "milk"),
        ("查找所有 TODO", "TODO"),
        ("find cats in this folder", "cats"),
    ] {
        let reply = reply(asking(asked, TOOLS)).await;
        let sent: Value = serde_json::from_str(&reply.tool_calls[0].arguments).unwrap();
        assert_eq!((&*reply.tool_calls[0].name, &sent["text"]), ("search_files", &arguments(text)["text"]), "{asked}");
    }
}

#[tokio::test]
async fn a_note_on_a_result_is_no_row_of_a_table() {
    let mut request = asking("how many rows are in a.csv", &["read_file"]);
    let first = reply(request.clone()).await;
    request.messages.push(ChatMessage::said(&first));
    let noted = CallResult { note: Some(CallNote::new("not called again")), ..CallResult::good("x,y\n1,2\n3,4\n\n") };
    let before = request.messages.len();
    ChatMessage::push_results(&mut request.messages, &first.tool_calls, &[noted]);
    assert_eq!(request.messages.len(), before + 2, "the note is a message of its own");
    has(&reply(request).await.text, &["2"]);
}

#[tokio::test]
async fn a_note_on_what_was_sent_along_is_no_part_of_the_request() {
    let mut folder = Folder::of([("notes.md", "# what was said")]);
    let answer =
        folder.answer("read notes.md\n[sent along: artifact 76 (notes.md, text/markdown; charset=utf-8, 9 bytes)]").await;
    has(&answer, &["I read `notes.md`"]);
    assert!(!answer.contains("I did not understand"), "{answer}");
}

#[tokio::test]
async fn what_is_not_done_ends_as_a_refusal() {
    for (asked, finish) in [
        ("tell me a joke", Finish::Refusal),
        ("讲个笑话", Finish::Refusal),
        ("what is the date tomorrow", Finish::Refusal),
        ("compute 6 * 7. write me a poem", Finish::Refusal),
        ("hello", Finish::Stop),
        ("what can you do?", Finish::Stop),
        ("6 * 7", Finish::Stop),
    ] {
        assert_eq!(reply(asking(asked, TOOLS)).await.finish, finish, "{asked}");
    }
    let mut folder = Folder::of([("sales.csv", "city,amount\nParis,10\n")]);
    let replies = folder.converse(&mut asking("sum amount in sales.csv for Tokyo", TOOLS)).await;
    assert_eq!(replies.last().unwrap().finish, Finish::Refusal);
    let aside = ModelRequest { aside: true, ..asking("tell me a joke", TOOLS) };
    assert_eq!(reply(aside).await.finish, Finish::Stop, "what an agent asks for itself is used as it is");
    assert_eq!(reply(asking("tell me a joke", &[])).await.finish, Finish::Stop, "words alone are wanted");
}
