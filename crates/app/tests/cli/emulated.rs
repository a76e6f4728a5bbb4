//! Models without tools of their own, lent them by the configuration.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

#[test]
fn a_model_without_tools_uses_them_all_the_same() {
    let home = Home::new();
    home.write("a.txt", "hello from the file\n");
    let model = ModelServer::start(vec![
        Reply::Say(&["{\"name\": \"read_", "file\", \"parameters\": {\"path\"", ": \"a.txt\"}}"]),
        Reply::Say(&["{\"answer\": \"it says ", "\\u4f60", "好\"}"]),
    ]);
    let address = model.base_url();
    let settings = |emulated: &str| {
        format!("model = \"openai/small\"\nemulated_tools = [\"{emulated}\"]\n[providers.openai]\nbase_url = \"{address}\"\n")
    };
    home.write("polis.toml", &settings("openai/sm*"));
    let done = home.polis(&["run", "--conversation", "root", "what is in a.txt?"]);
    assert!(done.stderr.contains("root calls read_file {\"path\": \"a.txt\"}"), "{}", done.stderr);
    assert_eq!(done.ok(), "it says 你好\n");
    let requests = model.requests.lock().unwrap();
    for (_, body) in requests.iter() {
        assert_eq!(body["tools"], Value::Null);
        assert_eq!(body["response_format"]["type"], json!("json_schema"));
    }
    let last = requests[1].1["messages"].as_array().unwrap().last().unwrap();
    let told = last["content"].as_str().unwrap();
    assert!(told.starts_with("The tool read_file returned:\nhello from the file\n"), "{told}");
    drop(requests);

    home.write("polis.toml", &settings("nobody/*"));
    home.polis(&["run", "x"]).fails(2, "bad_model");
}
