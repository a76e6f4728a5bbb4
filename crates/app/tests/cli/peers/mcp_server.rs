//! `polis mcp` and `/mcp`, asked line by line and by our own client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::cli::model::{ModelServer, Reply};
use crate::cli::support::Home;

/// `polis mcp` with somebody who writes to it.
struct Talk {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Talk {
    fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home.command(&[&["mcp"], args].concat()).stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// A request, and what is told before its answer.
    fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        let mut notes = Vec::new();
        loop {
            let heard = self.hear();
            if heard["id"] == method {
                return (notes, heard);
            }
            notes.push(heard);
        }
    }

    /// Nobody writes any more; its status.
    fn end(mut self) -> i32 {
        drop(self.stdin);
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn a_program_on_stdio_is_served_by_this_process_or_by_the_one_that_runs() {
    let home = Home::new();
    for runs in [false, true] {
        let served = runs.then(|| home.serve(&[]));
        let mut talk = Talk::start(&home, &[]);
        let begun = talk.ask("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} })).1;
        assert_eq!(begun["result"]["serverInfo"]["name"], json!("polis"));
        talk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let request = json!({ "text": "what is 15% of 240?", "waitSeconds": 600 });
        let params = json!({ "name": "submit", "arguments": request, "_meta": { "progressToken": 1 } });
        let (notes, answer) = talk.ask("tools/call", params);
        assert!(answer["result"]["structuredContent"]["answer"].as_str().unwrap().contains("36"), "{answer}");
        assert!(notes.iter().all(|note| note["method"] == "notifications/progress"), "{notes:?}");
        assert!(!notes.is_empty(), "what is done is told");
        // The newer generation needs no headers here.
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let found = talk.ask("server/discover", json!({ "_meta": meta })).1;
        assert_eq!(found["result"]["resultType"], json!("complete"));
        writeln!(talk.stdin, "{{").unwrap();
        assert_eq!(talk.hear()["error"]["code"], json!(-32700));
        assert_eq!(talk.end(), 0);
        if let Some(served) = served {
            assert_eq!(served.get("/api/tasks").1["tasks"], json!([]), "the one that runs did it");
        }
    }
    let log = home.polis(&["log", "--json"]).ok();
    assert_eq!(log.matches("what is 15% of 240?").count() % 2, 0, "{log}");
}

#[test]
fn a_cancelled_request_on_stdio_is_called_off() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Hang]);
    let served = home.serve_with(&[], |command| model.set(command));
    let mut talk = Talk::start(&home, &[]);
    let arguments = json!({ "text": "think", "waitSeconds": 3600 });
    talk.say(
        &json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "submit", "arguments": arguments } }),
    );
    model.wait();
    talk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }));
    served.until(crate::cli::support::is_ending);
    let under_way = talk.ask("tools/call", json!({ "name": "status", "arguments": {} })).1;
    assert_eq!(under_way["result"]["structuredContent"]["tasks"], json!([]), "and nothing was said about it: {under_way}");
    assert_eq!(talk.end(), 0);
}

#[test]
fn our_own_client_uses_another_polis_over_stdio_and_over_http() {
    let (other, home) = (Home::new(), Home::new());
    let served = other.serve(&[]);
    let data = other.data();
    let program = env!("CARGO_BIN_EXE_polis");
    home.write(
        "polis.toml",
        &format!(
            "[mcp.there]\nurl = \"{}/mcp\"\nheaders = {{ Authorization = \"Bearer ${{OTHER}}\" }}\ntrusted = true\n\
             [mcp.beside]\ncommand = \"{program}\"\nargs = [\"mcp\", \"--data\", \"{}\"]\ntrusted = true\n",
            served.url(),
            data.display(),
        ),
    );
    let token = served.token.clone().unwrap();
    let mut command = home.command(&["tools"]);
    let told = String::from_utf8(command.env("OTHER", &token).output().unwrap().stdout).unwrap();
    for server in ["there", "beside"] {
        for tool in ["submit", "send", "status", "approve", "cancel"] {
            assert!(told.contains(&format!("{server}__{tool} ")), "{told}");
        }
        assert!(told.contains(&format!("read       {server}__status ")), "{told}");
        let request = json!({ "text": "what is 15% of 240?" });
        let tool: &'static str = if server == "there" { "there__submit" } else { "beside__submit" };
        let model = ModelServer::start(vec![Reply::Call(tool, request), Reply::Repeat]);
        let mut command = home.command(&["run", "--approve", "all", "ask the others"]);
        model.set(&mut command);
        let done = command.env("OTHER", &token).output().unwrap();
        let (said, noted) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(said.contains("36"), "{server}: {said}{noted}");
    }
}
