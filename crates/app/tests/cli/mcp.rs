//! MCP servers as the operator sets them up: a small one of `sh`, so that nothing needs to be installed.

use serde_json::{Value, json};

use super::model::{KEY, ModelServer, Reply};
use super::support::{Done, Home};

/// Answers each line that asks for something, in a few words; `words` counts what it was called with.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"words","description":"Says a word.\\nAnd more.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"the word is %s %s"}]}}\n' "$id" "$WORD" "${OPENAI_API_KEY:-unknown}" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

fn home() -> Home {
    let home = Home::new();
    home.write("server.sh", SERVER);
    home
}

const SETTINGS: &str = "[mcp.shell]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nenv = { WORD = \"oak\" }\n";

#[test]
fn an_agent_calls_a_tool_of_a_server_and_the_server_sees_no_key() {
    let home = home();
    let model = ModelServer::start(vec![Reply::Call("shell__words", json!({})), Reply::Say(&["done"])]);
    home.write("polis.toml", SETTINGS);
    let mut command = home.command(&["run", "--approve", "all", "a word, please"]);
    model.set(&mut command);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let log = home.polis(&["log", "--json"]).ok();
    assert!(log.contains("the word is oak unknown") && !log.contains(KEY), "{log}");
    // What the model is offered: the server's tool by name, and the two tools that describe and call it.
    let asked = model.requests.lock().unwrap()[0].1.clone();
    let tools: Vec<_> = asked["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]).collect();
    let described = tools.iter().find(|tool| tool["name"] == "find_tools").expect("there are many tools");
    assert!(described["description"].as_str().unwrap().contains("shell__words"), "{described}");
    assert!(tools.iter().any(|tool| tool["name"] == "use_tool"), "{tools:?}");
}

#[test]
fn a_role_with_few_tools_is_offered_the_tool_of_a_server_with_its_schema() {
    let home = home();
    std::fs::create_dir(home.path().join("roles")).unwrap();
    home.write("roles/root.md", "---\nname: Root\ntools: [shell__words]\n---\nSay the word.\n");
    let model = ModelServer::start(vec![Reply::Call("shell__words", json!({})), Reply::Say(&["done"])]);
    home.write("polis.toml", SETTINGS);
    let mut command = home.command(&["run", "--approve", "all", "a word, please"]);
    model.set(&mut command);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let asked = model.requests.lock().unwrap()[0].1.clone();
    let offered = asked["tools"].as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "shell__words");
    let offered = offered.unwrap_or_else(|| panic!("{}", asked["tools"]));
    assert_eq!(offered["function"]["parameters"]["type"], "object");
    assert!(offered["function"]["description"].as_str().unwrap().contains("Says a word."), "{offered}");
}

#[test]
fn a_server_that_starts_slowly_is_waited_for_and_one_that_does_not_is_named_as_missing() {
    let home = home();
    home.write("slow.sh", &format!("sleep 1\n{}", SERVER.trim_start_matches("#!/bin/sh\n")));
    let run = |settings: &str, replies| {
        home.write("polis.toml", settings);
        let model = ModelServer::start(replies);
        let mut command = home.command(&["run", "--approve", "all", "a word, please"]);
        model.set(&mut command);
        let done = Done::from(command.output().unwrap());
        let asked = model.requests.lock().unwrap()[0].1.to_string();
        (done.stderr.clone(), done.ok(), asked)
    };
    let (told, answer, asked) =
        run(&SETTINGS.replace("server.sh", "slow.sh"), vec![Reply::Call("shell__words", json!({})), Reply::Repeat]);
    assert!(told.contains("· waiting for the MCP server shell, which is still starting"), "{told}");
    assert!(answer.contains("the word is oak") && asked.contains("shell__words"), "{answer}");
    assert!(!told.contains("missing") && !asked.contains("MCP servers are missing"), "{told}");

    home.write("never.sh", "sleep 600\n");
    let never = format!("{}start_wait_seconds = 0.1\n", SETTINGS.replace("server.sh", "never.sh"));
    let (told, _, asked) = run(&never, vec![Reply::Say(&["no word"])]);
    let missing = "· the tools of the MCP server shell are missing; `polis tools` says why";
    assert_eq!(told.matches(missing).count(), 1, "{told}");
    assert!(asked.contains("[polis] The tools of these MCP servers are missing at present: `shell` (starting)"), "{asked}");
}

#[test]
fn the_tools_and_their_servers_are_listed_and_looked_at() {
    let home = home();
    let broken = "[mcp.broken]\ncommand = \"/no/such/program\"\n[mcp.off]\nurl = \"http://127.0.0.1:9\"\nenabled = false\n";
    home.write("polis.toml", &format!("{SETTINGS}{broken}"));
    let told = home.polis(&["tools"]).ok();
    assert!(
        told.contains("read       read_file ")
            && told.contains("write      shell__words                         Says a word.\n"),
        "{told}"
    );
    for server in [
        "server shell: connected, 1 tool; shell 1\n",
        "server broken: down, 0 tools; `/no/such/program` cannot be",
        "server off: off",
    ] {
        assert!(told.contains(server), "{told}");
    }
    assert!(!home.data().exists(), "looking makes nothing");
    let ill = home.polis(&["doctor"]);
    assert_eq!(ill.code, 1);
    for line in ["ok   mcp        shell: shell 1, 1 tool", "BAD  mcp        broken: ", "ok   mcp        off: not enabled"] {
        assert!(ill.stdout.contains(line), "{}", ill.stdout);
    }
    home.write("polis.toml", &format!("{SETTINGS}trusted = true\n"));
    let served = home.serve(&[]);
    let here: Value = serde_json::from_str(&home.polis(&["tools", "--json"]).ok()).unwrap();
    let there: Value = serde_json::from_str(&home.polis(&["tools", "--json", "--url", &served.url()]).ok()).unwrap();
    assert_eq!(here, there);
    let words = there["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "shell__words").unwrap();
    assert_eq!((&words["server"], &words["effect"]), (&Value::from("shell"), &Value::from("read")));
    assert_eq!(there["tools"][0]["server"], Value::Null);
}

#[test]
fn the_file_of_other_clients_is_used_announced_and_closed_to_agents() {
    let home = home();
    let file = r#"{ "mcpServers": { "theirs": { "command": "sh", "args": ["server.sh"] } } }"#;
    home.write(".mcp.json", file);
    let call = json!({ "path": ".mcp.json", "content": r#"{"mcpServers":{"evil":{"command":"sh"}}}"# });
    let model = ModelServer::start(vec![Reply::Call("write_file", call), Reply::Say(&["done"])]);
    let mut command = home.command(&["run", "--approve", "all", "write it"]);
    model.set(&mut command);
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(said.contains("polis: .mcp.json brings the MCP servers theirs"), "{said}");
    assert_eq!(std::fs::read_to_string(home.path().join(".mcp.json")).unwrap(), file);
    assert!(home.polis(&["log", "--json"]).ok().contains("which no agent may touch"));
    assert!(home.polis(&["tools"]).ok().contains("theirs__words"));
    home.write(".mcp.json", "{ \"mcpServers\": [\"sk-secret\"] }");
    let bad = home.polis(&["tools"]);
    assert!(!bad.stderr.contains("sk-secret"), "{}", bad.stderr);
    bad.fails(2, "bad_config");
}

#[test]
fn a_tool_called_without_its_server_is_judged_stated_and_made_under_its_whole_name() {
    let home = home();
    let run = |rules: &str, request: &[&str]| {
        let model = ModelServer::start(vec![Reply::Call("words", json!({})), Reply::Repeat]);
        home.write("polis.toml", &format!("{SETTINGS}{rules}"));
        let mut command = home.command(request);
        model.set(&mut command);
        let done = command.output().unwrap();
        let told = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
        (done.status.code(), told)
    };
    for rule in ["server = \"shell\"", "tool = \"shell__words\""] {
        let (code, told) = run(&format!("[[policy]]\n{rule}\nthen = \"deny\"\nwhy = \"quiet\"\n"), &["run", "a word"]);
        assert!(code == Some(0) && told.contains("this call of shell__words is forbidden by a rule: quiet"), "{told}");
    }
    assert!(!home.polis(&["log", "--json"]).ok().contains("the word is"), "nothing was called");
    let (code, told) = run("", &["run", "--approve", "all", "a word"]);
    assert!(code == Some(0) && told.contains("the word is oak"), "{told}");
    let log = home.polis(&["log", "--json"]).ok();
    assert!(log.contains(r#""tool":"shell__words","wrote":"words""#), "{log}");
    let (code, told) = run("", &["run", "--conversation", "root", "a word"]);
    assert!(code == Some(3) && told.contains("May root use shell__words?"), "{told}");
}
