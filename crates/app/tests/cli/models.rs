//! Models that fail, budgets that run out, and the commands that tell of both.

use serde_json::Value;

use super::model::{ModelServer, Reply};
use super::support::Home;

fn settings(model: &ModelServer, rest: &str) -> String {
    format!("model = [\"openai/gpt-5-mini\", \"offline\"]\n{rest}\n[providers.openai]\nbase_url = \"{}\"\n", model.base_url())
}

#[test]
fn the_next_model_answers_when_one_refuses_and_both_attempts_are_told() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(401, "wrong key")]);
    home.write("polis.toml", &settings(&model, ""));
    let done = home.polis(&["run", "hello"]);
    assert!(done.stderr.contains("openai/gpt-5-mini did not answer (1 of 4)"), "{}", done.stderr);
    assert!(done.stderr.contains("wrong key") && done.stderr.contains("; now offline"), "{}", done.stderr);
    assert!(done.ok().contains("offline"));
    let logged = home.polis(&["log"]).ok();
    assert!(logged.contains("effectRetried"), "{logged}");
}

#[test]
fn a_model_that_is_down_for_a_moment_is_asked_again() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(503, "loading"), Reply::Say(&["here ", "I am"])]);
    home.write("polis.toml", &settings(&model, ""));
    let done = home.polis(&["run", "hello"]);
    assert!(done.stderr.contains("again in 1 s"), "{}", done.stderr);
    assert_eq!(done.ok(), "here I am\n");
}

#[test]
fn a_budget_that_is_used_up_waits_for_a_person_who_may_grant_more_or_not() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"])]);
    home.write("polis.toml", &settings(&model, "[budget]\ntokens = 1"));
    let run = |args: &[&str]| home.polis(&[&["run", "--conversation", "root"], args].concat());
    assert_eq!(run(&["hello"]).ok(), "one\n");
    for again in [&["hello"][..], &["--approve", "all", "hello"]] {
        let waits = run(again);
        assert_eq!(waits.code, 3, "{}", waits.stderr);
        assert!(waits.stderr.contains("tokens of the society are used. May it go on, with as much again?"), "{}", waits.stderr);
    }
    let waiting: Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    home.polis(&["approve", &id]).ok();
    let usage: Value = serde_json::from_str(&home.polis(&["usage", "--json"]).ok()).unwrap();
    let society = usage["accounts"].as_array().unwrap().iter().find(|account| account["scope"] == "society").unwrap();
    assert!(society["granted"]["tokens"].as_u64().unwrap() > 0, "{society}");
    let log = home.polis(&["log"]).ok();
    assert!(log.contains("budgetGranted  society"), "{log}");
}

#[test]
fn what_was_spent_is_told_by_account() {
    let home = Home::new();
    home.polis(&["run", "--conversation", "root", "hello"]).ok();
    let told = home.polis(&["usage"]).ok();
    for scope in ["society ", "role:root ", "agent:root "] {
        assert!(told.contains(scope) && told.contains(" tokens  $0.0000"), "{told}");
    }
    let log = home.log();
    let answer = log.iter().filter_map(|recorded| recorded.event.envelope()).find(|envelope| envelope.to.is_user()).unwrap();
    assert!(answer.payload.meta["usage"]["tokens"].as_u64().unwrap() > 0);
}

#[test]
fn the_models_and_what_they_need_are_listed() {
    let home = Home::new();
    let told = home.polis(&["models"]).ok();
    assert!(told.starts_with("default  offline"), "{told}");
    assert!(told.contains("anthropic          anthropic needs a key; set ANTHROPIC_API_KEY"), "{told}");
    assert!(told.contains("ollama             not running at http://127.0.0.1:9"), "{told}");
    assert_eq!(home.polis(&["models", "offline"]).ok(), "offline  tools  free\n");
    assert!(home.polis(&["models", "pull"]).ok().contains("ollama pull qwen3:4b"));
    home.polis(&["models", "openai"]).fails(2, "bad_model");
    home.polis(&["models", "nobody"]).fails(2, "bad_model");
    let listed: Value = serde_json::from_str(&home.polis(&["models", "--json"]).ok()).unwrap();
    assert_eq!(listed["default"], "offline");
    let served = home.serve(&[]);
    let remote: Value = serde_json::from_str(&home.polis(&["models", "--json", "--url", &served.url()]).ok()).unwrap();
    assert_eq!(remote, listed);
    let doctor = home.polis(&["doctor"]).ok();
    assert!(doctor.contains("served at") && doctor.contains("ok   model      offline answers there"), "{doctor}");
}

#[test]
fn the_doctor_looks_at_everything_and_asks_the_model_only_when_told() {
    let home = Home::new();
    let well = home.polis(&["doctor"]).ok();
    assert!(well.contains("ok   store") && well.contains("ok   model      offline"), "{well}");
    assert!(!home.data().exists(), "looking makes nothing");
    let model = ModelServer::start(vec![Reply::Refuse(401, "wrong key")]);
    home.write("polis.toml", &settings(&model, "workspace = \"nowhere\""));
    let ill = home.polis(&["doctor"]);
    assert!(ill.code == 1 && ill.stdout.contains("BAD  workspace") && ill.stdout.contains("is set up"), "{}", ill.stdout);
    home.write("polis.toml", &settings(&model, ""));
    let ill = home.polis(&["doctor", "--call", "--json"]);
    let found: Value = serde_json::from_str(&ill.stdout).unwrap();
    assert_eq!((ill.code, &found["ok"]), (1, &Value::Bool(false)));
    assert!(ill.stdout.contains("wrong key") && ill.stdout.contains("offline answered in"), "{}", ill.stdout);
}

#[test]
fn the_doctor_tries_key_files_certificates_and_proxies() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(404, "no list")]);
    let file = |name: &str| home.path().join(name).display().to_string();
    home.write("key", "sk-key-of-a-file");
    home.write("broken.pem", "no certificate");
    let provider = |name: &str, rest: &str| {
        format!("[providers.{name}]\nbase_url = \"{}\"\nlike = \"openai\"\n{rest}\n", model.base_url())
    };
    let settings = [
        provider("good", &format!("key_file = \"{}\"", file("key"))),
        provider("lost", &format!("key_file = \"{}\"", file("nowhere"))),
        provider("torn", &format!("ca = \"{}\"", file("broken.pem"))).replace("http://", "https://"),
        provider("plain", ""),
    ];
    home.write("polis.toml", &settings.concat());
    let ill = home.polis(&["doctor"]);
    assert_eq!(ill.code, 1, "{}", ill.stdout);
    let lines: Vec<&str> = ill.stdout.lines().filter(|line| line.contains(" provider ")).collect();
    let [good, lost, torn] = lines[..] else { panic!("{}", ill.stdout) };
    assert!(good.starts_with("ok   provider   good answers at") && good.ends_with("but has no list of models"), "{good}");
    assert!(
        lost.starts_with("BAD  provider   lost at") && lost.contains("the key file") && lost.contains("cannot be read"),
        "{lost}"
    );
    assert!(torn.starts_with("BAD  provider   torn at") && torn.contains("broken.pem"), "{torn}");
    assert!(!ill.stdout.contains("sk-key"), "{}", ill.stdout);
}

#[test]
fn prices_of_ones_own_are_used_and_bad_ones_refused() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"])]);
    home.write("prices.toml", "\"openai/gpt-5-mini\" = { input = 1000000, output = 1000000 }\n");
    home.write("polis.toml", &settings(&model, "prices = \"prices.toml\""));
    home.polis(&["run", "hello"]).ok();
    let told = home.polis(&["usage"]).ok();
    assert!(!told.contains("$0.0000"), "{told}");
    home.write("prices.toml", "\"openai/gpt-5-mini\" = { input = -1, output = 1 }\n");
    home.polis(&["run", "hello"]).fails(2, "bad_prices");
}

#[test]
fn the_command_line_a_role_and_the_configuration_say_how_models_are_called() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"]), Reply::Say(&["three"])]);
    let rest = "[model_settings]\ntemperature = 0.9\nseed = 7\n[models.\"openai/gpt-4*\".settings]\ntop_p = 0.5";
    let file = settings(&model, rest).replace("gpt-5-mini", "gpt-4o");
    home.write("polis.toml", &file);
    std::fs::create_dir(home.path().join("roles")).unwrap();
    home.write("roles/root.md", "---\ntemperature: 0.8\nstop: END\n---\nYou write poems.\n");
    let sent = |place: usize| {
        let requests = model.requests.lock().unwrap();
        let body = &requests[place].1;
        ["temperature", "seed", "top_p", "stop", "max_tokens", "max_completion_tokens"].map(|name| body[name].to_string())
    };
    home.polis(&["run", "--set", "temperature=0.2", "--set", "max_tokens=99", "hello"]).ok();
    assert_eq!(sent(0), ["0.2", "7", "0.5", "[\"END\"]", "null", "99"]);
    home.polis(&["run", "--continue", "hello again"]).ok();
    assert_eq!(sent(1), ["0.2", "7", "0.5", "[\"END\"]", "null", "99"], "the conversation keeps them");
    home.polis(&["run", "hello"]).ok();
    assert_eq!(sent(2), ["0.8", "7", "0.5", "[\"END\"]", "null", "null"], "the role counts over the configuration");
    home.polis(&["run", "--effort", "much", "hello"]).fails(2, "bad_setting");
    home.polis(&["run", "--set", "heat=1", "hello"]).fails(2, "bad_setting");
    home.write("polis.toml", &settings(&model, "[model_settings]\ntemperature = 0.2\nseed = 7"));
    let doctor = home.polis(&["doctor"]).ok();
    assert!(doctor.contains("settings   openai/gpt-5-mini is called without temperature, which"), "{doctor}");
    home.write("polis.toml", "model_settings = { temperature = 3 }");
    home.polis(&["run", "hello"]).fails(2, "bad_config");
}
