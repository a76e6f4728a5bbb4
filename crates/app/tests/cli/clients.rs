//! Clients that we did not write, against the real program: the official SDKs of OpenAI, frameworks on top of them, and the
//! official client of AG-UI in the newest version and in one from before 1.0.
//!
//! The folder with all of them, and a `node`, is made by `cargo xtask test`; without it these tests are skipped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Home, Served};

/// Names the folder that holds `node` and `node_modules`.
const FOLDER: &str = "POLIS_TEST_CLIENTS";

/// How long one script may take.
const LONGEST: Duration = Duration::from_secs(60);

#[test]
fn the_official_clients_are_served_and_complain_about_nothing() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        let name = "the_official_clients_are_served_and_complain_about_nothing";
        writeln!(std::io::stderr(), "skipped: {name}: {FOLDER} names no folder; cargo xtask test makes one").unwrap();
        return;
    };
    offline(&folder);
    openai(&folder);
    structured(&folder);
    agui(&folder);
    agui_before_1(&folder);
    snippets(&folder);
}

/// With the offline model: what needs no script.
fn offline(folder: &Path) {
    let home = Home::new();
    let served = home.serve(&[]);
    run(folder, &served, "openai_offline.mjs", include_str!("../clients/openai_offline.mjs"));
    run(folder, &served, "agui_offline.mjs", include_str!("../clients/agui_offline.mjs"));
}

fn openai(folder: &Path) {
    let home = Home::new();
    let calls = || Reply::Call("weather", json!({ "city": "Bo" }));
    let model = ModelServer::start(vec![
        calls(),
        Reply::Repeat,
        calls(),
        Reply::Repeat,
        calls(),
        Reply::Repeat,
        Reply::Call("write_file", json!({ "path": "a.txt", "content": "x" })),
        Reply::Repeat,
        Reply::Refuse(400, "no such thing"),
    ]);
    home.write("polis.toml", "[[policy]]\ntool = \"write_*\"\nthen = \"ask\"\nwhy = \"Look first.\"\n");
    let served = home.serve_with(&[], |command| model.set(command));
    run(folder, &served, "openai_scripted.mjs", include_str!("../clients/openai_scripted.mjs"));
    assert_eq!(std::fs::read_to_string(home.path().join("a.txt")).unwrap(), "x");
}

/// Structured output by the defaults of the frameworks.
fn structured(folder: &Path) {
    let home = Home::new();
    let city = |name: &str, people: u32| json!({ "name": name, "people": people });
    let bo = || city("Bo", 7);
    let model = ModelServer::start(vec![
        // pydantic-ai, twice in one conversation.
        Reply::Say(&["I would rather talk"]),
        Reply::Call("final_result", bo()),
        Reply::Call("final_result", city("Li", 8)),
        // The same with a tool.
        Reply::Call("count", json!({ "city": "Bo" })),
        Reply::Call("final_result", bo()),
        // instructor, first with arguments that do not fit.
        Reply::Call("City", json!({ "name": "Bo", "people": "many" })),
        Reply::Call("City", bo()),
        // LangChain: by a function, by a schema, streamed.
        Reply::Call("City", bo()),
        Reply::Say(&["It is Bo."]),
        Reply::Say(&["{\"name\": \"Bo\", ", "\"people\": 7}"]),
        Reply::Say(&["```json\n{\"name\": \"Bo\", \"people\": 7}\n```"]),
        // Nothing is kept.
        Reply::Say(&["talk"]),
        Reply::Say(&["more talk"]),
        Reply::Say(&["talk"]),
        Reply::Say(&["more talk"]),
        // Responses.
        Reply::Say(&["one ", "two ", "three"]),
        Reply::Say(&["now"]),
    ]);
    let served = home.serve_with(&[], |command| model.set(command));
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder.join("python"));
    run_with(python, folder, &served, "structured.py", include_str!("../clients/structured.py"));
    let requests = model.requests.lock().unwrap();
    let choices: Vec<_> = requests.iter().map(|(_, body)| body["tool_choice"].clone()).collect();
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    assert_eq!(choices[..3], [json!("required"), named("final_result"), json!("required")]);
    assert!(choices[3..8].iter().all(|choice| *choice == json!("required")), "{choices:?}");
    assert_eq!(choices[8..11], [Value::Null, Value::Null, Value::Null]);
    let formats: Vec<_> =
        requests[8..11].iter().map(|(_, body)| body["response_format"]["json_schema"]["name"].clone()).collect();
    assert_eq!(formats, vec![json!("City"); 3], "the model is told the format");
    assert_eq!(requests.len(), 17);
}

fn agui_before_1(folder: &Path) {
    let home = Home::new();
    let replies = vec![Reply::Call("pick_colour", json!({})), Reply::Repeat, Reply::Say(&["once ", "more"])];
    let model = ModelServer::start(replies);
    let served = home.serve_with(&[], |command| model.set(command));
    run(folder, &served, "agui_before_1.mjs", include_str!("../clients/agui_before_1.mjs"));
}

fn agui(folder: &Path) {
    let home = Home::new();
    let writes = |name: &str| Reply::Call("write_file", json!({ "path": name, "content": "by the model" }));
    let model = ModelServer::start(vec![
        writes("planned.txt"),
        Reply::Repeat,
        writes("denied.txt"),
        Reply::Repeat,
        Reply::Call("pick_colour", json!({})),
        Reply::Repeat,
        Reply::Say(&["once ", "more"]),
    ]);
    home.write("polis.toml", "[[policy]]\ntool = \"write_*\"\nthen = \"ask\"\nwhy = \"Look first.\"\n");
    let served = home.serve_with(&[], |command| model.set(command));
    run(folder, &served, "agui_scripted.mjs", include_str!("../clients/agui_scripted.mjs"));
    assert_eq!(std::fs::read_to_string(home.path().join("other.txt")).unwrap(), "by the person");
    assert!(!home.path().join("planned.txt").exists() && !home.path().join("denied.txt").exists());
}

/// What the guide shows is what works.
fn snippets(folder: &Path) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks: Vec<_> = guide.split("```js\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 4);
    let replies: [Vec<Reply>; 4] = [
        vec![Reply::Say(&["36"]), Reply::Say(&["42"])],
        vec![Reply::Call("weather", json!({ "city": "Bo" })), Reply::Repeat],
        vec![Reply::Call("write_file", json!({ "path": "a.txt", "content": "x" })), Reply::Repeat],
        vec![Reply::Say(&["hello ", "too"])],
    ];
    let wanted = ["36\n42", "it says: rain\n", "it says: ", "user: hello\nassistant: hello too\n"];
    for (n, ((block, replies), want)) in (1..).zip(blocks.iter().zip(replies).zip(wanted)) {
        let home = Home::new();
        home.write("polis.toml", "[[policy]]\ntool = \"write_*\"\nthen = \"ask\"\nwhy = \"Look first.\"\n");
        let model = ModelServer::start(replies);
        let served = home.serve_with(&[], |command| model.set(command));
        let said = run(folder, &served, &format!("snippet{n}.mjs"), block);
        assert!(said.contains(want), "snippet {n} says {said:?}");
    }
}

/// Runs a script that must end well and print no warning; what it printed.
fn run(folder: &Path, served: &Served, name: &str, script: &str) -> String {
    run_with(Command::new(folder.join("node")), folder, served, name, script)
}

/// The same with another interpreter.
fn run_with(mut interpreter: Command, folder: &Path, served: &Served, name: &str, script: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, script).unwrap();
    let mut child = interpreter
        .arg(&file)
        .current_dir(folder)
        .env("POLIS_URL", served.url())
        .env("POLIS_TOKEN", served.token.as_deref().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{out}\n{err}", output.status);
    assert_eq!(err, "", "{name} complains");
    out
}
