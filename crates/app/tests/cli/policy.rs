//! Calls that need a person's word, as a person meets them.

use serde_json::json;

use super::model::{ModelServer, Reply};
use super::support::Home;

fn settings(model: &ModelServer, rule: &str) -> String {
    let address = model.base_url();
    format!("model = \"openai/m\"\n{rule}\n[providers.openai]\nbase_url = \"{address}\"\n")
}

fn writes() -> Reply {
    Reply::Call("write_file", json!({ "path": "planned.txt", "content": "by the model" }))
}

#[test]
fn a_call_waits_for_a_word_and_is_made_with_the_arguments_that_it_gives() {
    let home = Home::new();
    let model = ModelServer::start(vec![writes(), Reply::Repeat, writes(), Reply::Repeat]);
    home.write("polis.toml", &settings(&model, "[[policy]]\ntool = \"write_*\"\nthen = \"ask\"\nwhy = \"Look first.\""));
    let waits = home.polis(&["run", "--conversation", "root", "write it"]);
    assert_eq!(waits.code, 3, "{}", waits.stderr);
    assert!(waits.stderr.contains("May root use write_file? Look first."), "{}", waits.stderr);
    assert!(waits.stderr.contains("by the model") && waits.stderr.contains("--always agent|task|tool"), "{}", waits.stderr);
    assert!(!home.path().join("planned.txt").exists());
    let id = waiting(&home);
    for bad in ["{", "[1]", "7", "\"text\""] {
        home.polis(&["approve", &id, "--arguments", bad]).fails(2, "bad_arguments");
    }
    let other = r#"{"path": "other.txt", "content": "by the person"}"#;
    home.polis(&["approve", &id, "--arguments", other, "--always", "tool", "--where", "any"]).ok();
    assert_eq!(std::fs::read_to_string(home.path().join("other.txt")).unwrap(), "by the person");
    assert!(!home.path().join("planned.txt").exists());

    home.polis(&["run", "write it again"]).ok();
    assert!(home.path().join("planned.txt").exists(), "it is not asked about any more");
}

fn waiting(home: &Home) -> String {
    let listed: serde_json::Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    listed["approvals"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_denied_call_is_read_by_the_model_and_a_bad_rule_by_the_person() {
    let home = Home::new();
    let model = ModelServer::start(vec![writes(), Reply::Repeat]);
    home.write(
        "polis.toml",
        &settings(&model, "[[policy]]\narguments = \"*by the model*\"\nthen = \"deny\"\nwhy = \"not today\""),
    );
    let said = home.polis(&["run", "write it"]).ok();
    assert!(said.contains("this call of write_file is forbidden by a rule: not today"), "{said}");
    home.write("polis.toml", "[[policy]]\nthen = \"perhaps\"\n");
    home.polis(&["run", "x"]).fails(2, "bad_config");
}
