//! `polis delete`: no text of an erased conversation is left in any file, and everything else is as before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use polis_domain::Recorded;
use polis_ports::Log;
use polis_store_local::LocalLog;
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

/// How every text of the conversation begins that is erased.
const CANARY: &str = "Kanarienvogel";

/// All files below a path that have the canary.
fn with_canary(path: &Path) -> BTreeSet<PathBuf> {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().flat_map(|entry| with_canary(&entry.unwrap().path())).collect();
    }
    let has_it = fs::read(path).is_ok_and(|bytes| bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
    has_it.then(|| path.to_owned()).into_iter().collect()
}

/// What can be read of a data directory, from its log and otherwise.
fn looks(home: &Home, society: &str) -> Vec<String> {
    [
        &["log", "--json"][..],
        &["conversations", "--json"],
        &["export"],
        &["agents", "--json"],
        &["artifacts", "--json"],
        &["tasks", "--json"],
    ]
    .map(|args| home.polis(&[&["--society", society], args].concat()).ok())
    .into()
}

fn json_of(done: Done) -> Value {
    serde_json::from_str(&done.ok()).unwrap()
}

fn run(home: &Home, model: &ModelServer, args: &[&str]) -> String {
    let mut command = home.command(args);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    let conversation = done.conversation();
    done.ok();
    conversation
}

/// The titles and texts of what stays.
const STAYS: &str = "what is 7 + 3?";

/// A conversation with a text in everything that it can have: messages, replies, calls and results, a long result that becomes an
/// artifact, an agent below it with its own calls, a plan, a sub-thread; and another one.
fn begun(home: &Home) -> (String, String) {
    home.write("notes.txt", &format!("{CANARY} in a file. ").repeat(3_000));
    let spawn = json!({ "name": "helper", "roleId": "root", "text": format!("{CANARY} for the helper"), "task": format!("{CANARY} for the helper") });
    let put = json!({ "name": format!("{CANARY}.md"), "content": format!("# {CANARY}\n").repeat(50) });
    let model = ModelServer::start(vec![
        Reply::Call("read_file", json!({ "path": "notes.txt", "note": CANARY })),
        Reply::Call("put_artifact", put),
        Reply::Call("spawn_agent", spawn),
        Reply::Call("no_such_tool", json!({ "text": CANARY })),
        Reply::Repeat,
        Reply::Say(&["Kanarienvogel, that is ", "all"]),
        Reply::Say(&["Kanarienvogel once more"]),
        Reply::Say(&["Kanarienvogel at last"]),
    ]);
    let erased = run(home, &model, &["run", &format!("{CANARY}, read the notes")]);
    let stays = home.polis(&["run", STAYS]).conversation();
    home.write("sales.csv", "city,amount\nParis,3\nOslo,5\n");
    let todos = format!("how many files are here?; what is 31*3; what is {CANARY}?");
    home.polis(&["run", "--conversation", &erased, "--strategy", "workflow", &todos]);
    fs::remove_file(home.path().join("notes.txt")).unwrap();
    (erased, stays)
}

#[test]
fn no_text_of_an_erased_conversation_is_left_anywhere() {
    let home = Home::new();
    let (erased, stays) = begun(&home);
    home.polis(&["archive", "--days", "0"]).ok();
    home.polis(&["run", "--conversation", &erased, &format!("{CANARY}: what is 3 * 3?")]);
    home.polis(&["backup", "b"]).ok();
    home.polis(&["fork", "side"]).ok();
    let shared = home.last();
    home.polis(&["--society", "side", "run", "--conversation", &stays, "what is 1 + 1?"]).ok();
    let text = |society: &str| looks(&home, society).concat();
    assert!(["main", "side"].iter().all(|society| text(society).contains(CANARY)));
    assert!(!with_canary(&home.data().join("artifacts")).is_empty(), "its artifacts");
    assert!(!with_canary(&home.data().join("snapshots")).is_empty(), "its title");
    assert!(!with_canary(&home.path().join("b")).is_empty());
    let of_stays = || home.polis(&["show", &stays, "--json"]).ok();
    let (before, chains) = (of_stays(), json_of(home.polis(&["verify", "--json"]))["societies"].clone());

    home.polis(&["delete", &erased]).fails(3, "not_confirmed");
    home.polis(&["delete", "nobody", "--yes"]).fails(1, "unknown_conversation");
    home.polis(&["delete", "root", "--yes"]).fails(1, "root_stays");
    assert_eq!(home.last(), shared);
    assert_eq!(json_of(home.polis(&["delete", &erased, "--yes", "--json"])), json!({ "id": erased, "already": false }));
    assert_eq!(with_canary(&home.data()), BTreeSet::new());
    assert!(["main", "side"].iter().all(|society| !text(society).contains(CANARY)), "{}", text("side"));
    assert!(!home.polis(&["conversations"]).ok().contains(&erased));
    assert_eq!(of_stays(), before);
    let log = home.polis(&["log"]).ok();
    assert!(log.contains("conversationErased") && log.contains("erasureDone") && log.contains("[erased]"), "{log}");
    let last = home.last();
    let again = home.polis(&["conversations", "delete", &erased, "--erase", "--yes"]);
    assert!(again.stderr.contains("erased already"), "{}", again.stderr);
    again.ok();
    assert_eq!(home.last(), last, "nothing was left to do");

    let sound = home.polis(&["verify"]).ok();
    assert!(sound.contains("without their content, which was erased"), "{sound}");
    let replayed = home.polis(&["replay"]).ok();
    assert!(replayed.contains(", 0 differences") && replayed.contains("whose content is erased"), "{replayed}");
    home.polis(&["--society", "side", "replay"]).ok();
    assert!(home.polis(&["run", "--conversation", &stays, "what is 6 * 7?"]).ok().contains("42"));
    assert!(home.polis(&["--society", "side", "run", "--conversation", &stays, "what is 6 * 8?"]).ok().contains("48"));

    home.polis(&["backup", "b"]).ok();
    assert_eq!(with_canary(home.path()), BTreeSet::new(), "the backup has lost it with its next run");
    home.polis(&["restore", "b", "--to", "again"]).ok();
    let restored = json_of(home.polis(&["verify", "again", "--json"]));
    assert_eq!(restored["findings"], json!([]));
    assert_eq!(restored["societies"], json_of(home.polis(&["verify", "--json"]))["societies"]);
    let chain = |list: &Value, events: u64| {
        list.as_array().unwrap().iter().find(|it| it["events"] == events).map(|it| it["chain"].clone())
    };
    assert!(chain(&chains, shared.0).is_some());
    assert_eq!(with_canary(&home.path().join("again")), BTreeSet::new());
}

#[test]
fn an_erasure_over_http_keeps_to_the_persons_own_and_a_redaction_by_hand_is_found() {
    let home = Home::new();
    let erased = home.polis(&["run", &format!("{CANARY}: what is 2 + 3?")]).conversation();
    let other = home.polis(&["run", STAYS]).conversation();
    let served = home.serve(&[]);
    let path = |id: &str| format!("/api/conversations/{id}/erase");
    assert_eq!(served.post(&path(&erased), &json!({})), (200, json!({ "id": erased, "already": false })));
    assert_eq!(with_canary(&home.data()), BTreeSet::new(), "while it is served");
    assert_eq!(served.post(&path(&erased), &json!({})), (200, json!({ "id": erased, "already": true })));
    let (status, problem) = served.post(&path("nobody"), &json!({}));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_conversation")));
    served.post(&format!("/api/conversations/{other}/delete"), &json!({}));
    assert_eq!(served.post(&path(&other), &json!({})).1["already"], false, "one that was deleted before");
    served.stop();
    home.polis(&["verify"]).ok();

    // An event whose content is gone although no erasure says so.
    let third = home.polis(&["run", STAYS]).conversation();
    let sent = home.log().into_iter().rev().skip(1).find(|recorded| recorded.event.redacted() != recorded.event).unwrap();
    let log = LocalLog::open(&home.data()).unwrap();
    let redacted = Recorded { event: sent.event.redacted(), ..sent };
    wait(log.redact(&"main".into(), &[redacted])).unwrap();
    drop(log);
    let found = home.polis(&["verify"]);
    assert!(found.stdout.contains("no event of the log says so"), "{}", found.stdout);
    found.fails(1, "verify_failed");
    home.polis(&["delete", &third, "--yes"]).ok();
    home.polis(&["verify"]).ok();
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
