//! A server over stdio that acts the part that a variable names. It runs inside this test program, whose own lines on stdout
//! are garbage that a client must bear.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

/// Names the part.
pub(super) const PART: &str = "POLIS_TEST_PART";

#[test]
fn acts_its_part() {
    let Ok(part) = std::env::var(PART) else { return };
    // The test's name stands there without an end of line.
    write("");
    Actor { part, grown: false, cancelled: Vec::new(), waiting: None }.act();
    std::process::exit(0);
}

struct Actor {
    part: String,
    /// Whether there is one tool more.
    grown: bool,
    cancelled: Vec<Value>,
    /// The call that waits for an answer of the client.
    waiting: Option<Value>,
}

impl Actor {
    fn act(&mut self) {
        match self.part.as_str() {
            "dies" => {
                complain("no licence for this machine");
                std::process::exit(3);
            }
            "mute" => loop {
                std::thread::park();
            },
            "garbage" => {
                for _ in 0..1_000 {
                    write("{\"jsonrpc\":\"2.0\",\"id\":");
                    write("<html>\u{0}\u{7f} 乱码");
                    write("[]");
                }
            }
            _ => {}
        }
        for line in std::io::stdin().lock().lines() {
            let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
            self.hear(&message);
        }
    }

    fn hear(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => self.introduce(id),
            Some("ping") => answer(id, json!({})),
            Some("tools/list") => self.list(id, &message["params"]["cursor"]),
            Some("tools/call") => self.call(id, &message["params"]),
            Some("resources/list") if self.part == "shelf" => self.list_resources(id),
            Some("resources/templates/list") if self.part == "shelf" => {
                answer(id, json!({ "resourceTemplates": [{ "uriTemplate": "note://{number}", "name": "any note" }] }));
            }
            Some("resources/read") if self.part == "shelf" => read(id, &message["params"]["uri"]),
            Some("prompts/list") => {
                let arguments = json!([{ "name": "who", "required": true }]);
                answer(id, json!({ "prompts": [{ "name": "greet", "description": "says hello", "arguments": arguments }] }));
            }
            Some("prompts/get") => greet(id, &message["params"]),
            Some("notifications/cancelled") => self.cancelled.push(message["params"]["requestId"].clone()),
            Some(method) if !id.is_null() => {
                say(&json!({ "id": id, "error": { "code": -32601, "message": format!("no {method}") } }));
            }
            Some(_) => {}
            None => {
                if let Some(call) = self.waiting.take() {
                    text(&call, &message.to_string());
                }
            }
        }
    }

    fn introduce(&self, id: &Value) {
        let info = json!({ "name": self.part, "version": "1" });
        let mut capabilities = json!({ "tools": { "listChanged": true } });
        if self.part == "shelf" {
            capabilities["resources"] = json!({ "listChanged": true });
            capabilities["prompts"] = json!({ "listChanged": true });
        }
        answer(id, json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info }));
        if self.part == "pushy" {
            // Asks without end and never reads again.
            for n in 0.. {
                say(&json!({ "id": format!("q{n}"), "method": "roots/list" }));
            }
        }
    }

    fn list(&self, id: &Value, cursor: &Value) {
        let tool = |name: &str| json!({ "name": name, "description": "acts", "inputSchema": { "type": "object" } });
        if self.part == "endless" {
            let n = cursor.as_str().map_or(0, |text| text.parse::<usize>().unwrap());
            let tools: Vec<Value> = (0..100).map(|i| tool(&format!("tool_{}", n * 100 + i))).collect();
            return answer(id, json!({ "tools": tools, "nextCursor": (n + 1).to_string() }));
        }
        if self.part == "weighty" {
            let n = cursor.as_str().map_or(0, |text| text.parse::<usize>().unwrap());
            let heavy = json!({ "name": format!("tool_{n}"), "description": "w".repeat(1 << 20), "inputSchema": {} });
            return answer(id, json!({ "tools": [heavy], "nextCursor": (n + 1).to_string() }));
        }
        if self.part == "circling" {
            return answer(id, json!({ "tools": [tool("same")], "nextCursor": "here" }));
        }
        if self.part == "liar" {
            let strange = json!({ "name": "strange", "inputSchema": "none" });
            return answer(id, json!({ "tools": [tool("echo"), strange, 7, tool("echo"), tool("nothing")] }));
        }
        if cursor.is_null() && !self.grown {
            return answer(id, json!({ "tools": [tool("echo")], "nextCursor": "second" }));
        }
        let mut rest: Vec<_> =
            ["meta", "environment", "hang", "crash", "grow", "flood", "huge", "deny", "ask", "steps", "told"].map(tool).into();
        if self.grown {
            rest.extend([tool("echo"), tool("grown")]);
        }
        answer(id, json!({ "tools": rest }));
    }

    fn list_resources(&self, id: &Value) {
        let mut resources = vec![json!({ "uri": "note://1", "name": "first", "mimeType": "text/plain" }), json!(7)];
        if self.grown {
            resources.push(json!({ "uri": "note://2", "name": "second" }));
        }
        answer(id, json!({ "resources": resources }));
    }

    fn call(&mut self, id: &Value, params: &Value) {
        match params["name"].as_str().unwrap() {
            "echo" => text(id, &params["arguments"].to_string()),
            "meta" => text(id, &params["_meta"].to_string()),
            "environment" => {
                let names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                text(id, &names.join(" "));
            }
            "hang" if self.part == "deaf" => loop {
                std::thread::park();
            },
            "hang" => {}
            "crash" => {
                complain("something terrible happened");
                std::process::exit(9);
            }
            "grow" => {
                self.grown = true;
                say(&json!({ "method": "notifications/tools/list_changed" }));
                text(id, "grown");
            }
            "flood" => {
                for n in 0..20_000 {
                    say(&json!({ "method": "notifications/message", "params": { "level": "info", "data": n } }));
                    say(&json!({ "method": "notifications/tools/list_changed" }));
                }
                text(id, "still here");
            }
            "huge" => {
                let _ = std::io::stdout().write_all("x".repeat(9 << 20).as_bytes());
                write("");
                text(id, &"y".repeat(1 << 20));
            }
            "deny" => say(&json!({ "id": id, "error": { "code": -32602, "message": "not like this" } })),
            "ask" => {
                self.waiting = Some(id.clone());
                let request =
                    json!({ "id": "q", "method": params["arguments"]["method"], "params": params["arguments"]["params"] });
                say(&request);
            }
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                for step in 0..8 {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    say(&json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": step } }));
                }
                text(id, "all steps");
            }
            "told" => text(id, &json!(self.cancelled.len()).to_string()),
            name => say(&json!({ "id": id, "error": { "code": -32602, "message": format!("no tool {name}") } })),
        }
    }
}

fn read(id: &Value, uri: &Value) {
    match uri.as_str() {
        Some("note://huge") => answer(id, json!({ "contents": [{ "uri": uri, "text": "z".repeat(1 << 20) }] })),
        Some("note://silent") => {}
        Some(uri) if uri.starts_with("note://") => {
            answer(id, json!({ "contents": [{ "uri": uri, "text": format!("this is {uri}") }] }));
        }
        _ => say(&json!({ "id": id, "error": { "code": -32002, "message": "no such note" } })),
    }
}

fn greet(id: &Value, params: &Value) {
    let said = |role: &str, text: String| json!({ "role": role, "content": { "type": "text", "text": text } });
    let messages = [said("user", format!("greet {}", params["arguments"]["who"])), said("assistant", "hello".to_owned())];
    answer(id, json!({ "messages": messages }));
}

fn complain(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn answer(id: &Value, result: Value) {
    say(&json!({ "id": id, "result": result }));
}

fn text(id: &Value, text: &str) {
    answer(id, json!({ "content": [{ "type": "text", "text": text }] }));
}

fn say(message: &Value) {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    write(&message.to_string());
}

fn write(line: &str) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
