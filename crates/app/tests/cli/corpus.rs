//! Data directories that earlier versions wrote: each is opened, folded, continued and replayed.
//!
//! `tests/corpus/vN.gz` is a data directory with events of version N, as `kill -9` left it, and what was in it (`facts.json`).
//! `cargo xtask corpus` adds the one of this version.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use polis_domain::{EVENT_VERSION, Effect, Event};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Home, is_ending};

/// Where to write the data directory of this version; `cargo xtask corpus` sets it.
const MAKE: &str = "POLIS_CORPUS";

const FACTS: &str = "facts.json";

/// More would be a burden for everybody who clones the repository.
const MAX_BYTES: usize = 150_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The files below a directory with their contents. What belongs to the process or to the machine is left out.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(dir: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else if !["lock", "owner", "token", "polis.db-shm"].contains(&&*name) {
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(dir, "", &mut found);
    found
}

/// Each file as a line `LENGTH NAME` and its bytes.
fn pack(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for (name, bytes) in files {
        writeln!(packed, "{} {name}", bytes.len()).unwrap();
        packed.write_all(bytes).unwrap();
    }
    packed.finish().unwrap()
}

fn unpack(packed: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut rest = BufReader::new(GzDecoder::new(packed));
    let mut files = BTreeMap::new();
    let mut line = String::new();
    while rest.read_line(&mut line).unwrap() > 0 {
        let (length, name) = line.trim_end().split_once(' ').unwrap();
        let mut bytes = vec![0; length.parse().unwrap()];
        rest.read_exact(&mut bytes).unwrap();
        files.insert(name.to_owned(), bytes);
        line.clear();
    }
    files
}

/// What must be found in a data directory whatever version reads it.
fn facts(home: &Home) -> Value {
    let read = |args: &[&str]| -> Value { serde_json::from_str(&home.polis(args).ok()).unwrap() };
    let column = |list: &Value, field: &str| -> Vec<Value> {
        let mut values: Vec<_> = list.as_array().unwrap().iter().map(|one| one[field].clone()).collect();
        values.sort_by_key(Value::to_string);
        values
    };
    let mut societies = serde_json::Map::new();
    for name in column(&read(&["societies", "--json"])["societies"], "name") {
        let name = name.as_str().unwrap();
        let of = |args: &[&str]| read(&[&["--society", name], args, &["--json"]].concat());
        let log = home.polis(&["--society", name, "log", "--json"]).ok();
        let agents = column(&of(&["agents"])["agents"], "id");
        let texts = |agent: &Value| column(&of(&["show", agent.as_str().unwrap()])["messages"], "text");
        let threads: serde_json::Map<_, _> =
            agents.iter().map(|agent| (agent.as_str().unwrap().to_owned(), texts(agent).into())).collect();
        societies.insert(
            name.to_owned(),
            json!({
                "events": log.lines().count(),
                "threads": threads,
                "artifacts": column(&of(&["artifacts"])["artifacts"], "id"),
                "memories": column(&of(&["memory"])["memories"], "text"),
                "waiting": column(&of(&["approvals"])["approvals"], "id"),
            }),
        );
    }
    Value::Object(societies)
}

/// Makes a data directory with a bit of everything and leaves it as a kill does.
pub(super) fn make(home: &Home) {
    let run = |model: Option<&ModelServer>, args: &[&str]| {
        let mut command = home.command(&[&["run"], args].concat());
        if let Some(model) = model {
            model.set(&mut command);
        }
        super::support::Done::from(command.output().unwrap())
    };
    home.write("sales.csv", "city,amount\nParis,3\nOslo,5\n");
    home.write("notes.md", "buy milk\n");
    home.write("polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"ask\"\nwhy = \"Look first.\"\n");
    run(None, &["--strategy", "workflow", "what is the total amount by city in sales.csv? read notes.md"]).ok();
    for n in 0..8 {
        run(None, &["--conversation", "root", &format!("{n} + 3")]).ok();
    }
    home.polis(&["compress", "root"]).ok();
    let model = ModelServer::start(vec![Reply::Say(&["sums of small numbers"]), Reply::Say(&["done"])]);
    run(Some(&model), &["--conversation", "root", "and now?"]).ok();
    let put = json!({ "name": "report.md", "content": "# Report\n" });
    let spawn = json!({ "role": "root", "task": "what is 4 + 4?" });
    let model = ModelServer::start(vec![
        Reply::Call("put_artifact", put),
        Reply::Call("spawn_agent", spawn),
        Reply::Repeat,
        Reply::Say(&["spare"]),
        Reply::Say(&["spare"]),
    ]);
    run(Some(&model), &["write a report"]);
    home.polis(&["memory", "add", "Ann drinks green tea"]).ok();
    home.polis(&["memory", "add", "the office is in Oslo"]).ok();
    let listed: Value = serde_json::from_str(&home.polis(&["memory", "--json"]).ok()).unwrap();
    home.polis(&["memory", "forget", listed["memories"][0]["id"].as_str().unwrap(), "--yes"]).ok();
    home.polis(&["fork", "side"]).ok();
    home.polis(&["--society", "side", "run", "what is 3 + 4?"]).ok();
    let place = home.last();
    run(None, &["--conversation", "root", "5 + 6"]).ok();
    home.polis(&["rewind", "--to", &place.to_string()]).ok();
    // One turn waits for an approval, one for an answer, and one for a model that never answers.
    let write = json!({ "path": "planned.txt", "content": "planned" });
    let model = ModelServer::start(vec![Reply::Call("write_file", write)]);
    assert_eq!(run(Some(&model), &["write it"]).code, 3);
    let ask = json!({ "question": "Which colour?", "options": ["red", "blue"] });
    let model = ModelServer::start(vec![Reply::Call("ask_person", ask)]);
    assert_eq!(run(Some(&model), &["paint it"]).code, 3);
    let model = ModelServer::start(vec![Reply::Hang]);
    let served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "what is 20 + 22?" }));
    model.wait();
    served.kill();
}

/// Not a test by itself: `cargo xtask corpus` runs it.
#[test]
fn make_the_data_directory_of_this_version() {
    let Some(path) = std::env::var_os(MAKE) else { return };
    let home = Home::new();
    make(&home);
    let mut found = files(&home.data());
    // Looking at it would finish the recovery that a kill leaves to the next start.
    let copy = Home::new();
    put(&copy, &found);
    found.insert(FACTS.to_owned(), serde_json::to_vec_pretty(&facts(&copy)).unwrap());
    let packed = pack(&found);
    assert!(packed.len() <= MAX_BYTES, "{} bytes", packed.len());
    let mut file = fs::File::create_new(Path::new(&path).join(format!("v{EVENT_VERSION}.gz"))).unwrap();
    file.write_all(&packed).unwrap();
}

fn put(home: &Home, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = home.data().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Each data directory of the corpus, by version, in a folder of its own.
fn corpus() -> Vec<(u32, Home, Value)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let version = name.strip_prefix('v').and_then(|rest| rest.strip_suffix(".gz")).unwrap().parse().unwrap();
        let mut files = unpack(&fs::read(entry.path()).unwrap());
        let facts = serde_json::from_slice(&files.remove(FACTS).unwrap()).unwrap();
        let home = Home::new();
        put(&home, &files);
        all.push((version, home, facts));
    }
    all.sort_by_key(|(version, ..)| *version);
    assert!(!all.is_empty());
    all
}

#[test]
fn every_data_directory_of_an_earlier_version_has_what_was_put_in() {
    for (version, home, expected) in corpus() {
        assert_eq!(facts(&home), expected, "version {version}");
    }
}

#[test]
fn every_data_directory_of_an_earlier_version_is_replayed_and_goes_on() {
    for (version, home, expected) in corpus() {
        for (society, expected) in expected.as_object().unwrap() {
            let replayed = home.polis(&["--society", society, "replay", "--json"]);
            let replayed: Value = serde_json::from_str(&replayed.stdout).unwrap_or_else(|_| panic!("{}", replayed.stderr));
            assert_eq!(replayed["events"], expected["events"], "version {version}, {society}");
            // Prompts may have changed since; then turns differ, but every one of them is run.
            assert!(replayed["turns"].as_u64().unwrap() > 5 && replayed["open"].is_u64(), "{replayed}");
        }
        let served = home.serve(&[]);
        let waiting = served.get("/api/approvals").1["approvals"].clone();
        assert!(waiting.as_array().unwrap().len() >= 2, "version {version}: {waiting}");
        for one in waiting.as_array().unwrap() {
            let decision = match one["kind"].as_str().unwrap() {
                "question" => json!({ "answer": "red" }),
                _ => json!({ "approved": true }),
            };
            let (status, answer) = served.post(&format!("/api/approvals/{}", one["id"].as_str().unwrap()), &decision);
            assert_eq!(status, 200, "version {version}: {one} {answer}");
        }
        served.stop();
        for conversation in expected["main"]["threads"].as_object().unwrap().keys().filter(|id| *id == "root") {
            let answer = home.polis(&["run", "--conversation", conversation, "what is 6 * 7?"]).ok();
            assert!(answer.contains("42"), "version {version}: {answer}");
        }
        let answer = home.polis(&["run", "--strategy", "workflow", "what is 15% of 240"]).ok();
        assert!(answer.contains("36"), "version {version}: {answer}");
        home.polis(&["--society", "side", "fork", "later"]).ok();
        assert!(home.polis(&["--society", "later", "run", "what is 6 * 7?"]).ok().contains("42"), "version {version}");
    }
}

/// The corpus has what the tests above are to see.
#[test]
fn the_corpus_has_a_bit_of_everything() {
    for (version, home, facts) in corpus() {
        let log = home.log();
        let has = |which: fn(&Event) -> bool| log.iter().any(|recorded| which(&recorded.event));
        assert!(log.iter().any(is_ending));
        for (what, is_there) in [
            ("compression", has(|event| matches!(event, Event::ContextCompressed { .. }))),
            ("sub-threads", has(|event| matches!(event, Event::ThreadOpened { .. }))),
            ("memory", has(|event| matches!(event, Event::MemoryChanged { .. }))),
            ("fork", has(|event| matches!(event, Event::SocietyForked { .. }))),
            ("approval", has(|event| matches!(event, Event::EffectStarted { effect: Effect::Approval { .. }, .. }))),
            ("artifact", !facts["main"]["artifacts"].as_array().unwrap().is_empty()),
            ("societies", facts.as_object().unwrap().len() == 3),
        ] {
            assert!(is_there, "version {version} has no {what}");
        }
    }
}
