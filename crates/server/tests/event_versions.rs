//! The events look as `event_versions.txt` of the domain says that events of this version look.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use polis_domain::{EVENT_VERSION, Event};
use polis_ports::Hasher;
use serde_json::Value;

const HEADER: &str = "\
# The shape of the events of each version: a digest of their JSON schema, and of each type below it for the newest version.
# A version is `released` once data of it may exist outside of a developer's machine; then it never changes again.
";

const WHAT_TO_DO: &str = "
Events look different than `crates/domain/event_versions.txt` says. Logs of this version would be read wrongly by other builds.
1. If the version is marked `released`: raise EVENT_VERSION in crates/domain/src/upgrade.rs, and add to STEPS a step from the
   version before, or `None` if events of that version can be read as they are.
2. UPDATE_EVENTS=1 cargo test -p polis-server --test main event_versions
3. With a release: `cargo xtask corpus`, and mark the version as `released`.
";

/// The digest of a schema without descriptions, which mean nothing to a log.
fn digest(schema: &Value) -> String {
    fn bare(schema: &Value) -> Value {
        match schema {
            Value::Object(fields) => {
                let is_text = |name: &str, value: &Value| matches!(name, "description" | "title") && value.is_string();
                let kept = fields.iter().filter(|(name, value)| !is_text(name, value));
                kept.map(|(name, value)| (name.clone(), bare(value))).collect()
            }
            Value::Array(items) => {
                let mut items: Vec<_> = items.iter().map(bare).collect();
                // The order of variants and of required fields is that of the source.
                items.sort_by_key(Value::to_string);
                items.into()
            }
            other => other.clone(),
        }
    }
    Hasher::id_of(bare(schema).to_string().as_bytes()).to_string()[..16].to_owned()
}

/// The digests of the types that events consist of.
fn types() -> BTreeMap<String, String> {
    let schema = schemars::schema_for!(Event).to_value();
    let mut types: BTreeMap<_, _> =
        schema["$defs"].as_object().unwrap().iter().map(|(name, schema)| (name.clone(), digest(schema))).collect();
    for kind in schema["oneOf"].as_array().unwrap() {
        let name = kind["required"][0].as_str().or(kind["const"].as_str()).or(kind["enum"][0].as_str()).unwrap();
        types.insert(format!("event {name}"), digest(kind));
    }
    types
}

/// The digests and marks of the versions, and the types of the newest, as the file has them.
fn parse(text: &str) -> (BTreeMap<u32, (String, bool)>, BTreeMap<String, String>) {
    let (mut versions, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["version", version, digest] => versions.insert(version.parse().unwrap(), (digest.to_owned(), false)),
            ["version", version, digest, "released"] => versions.insert(version.parse().unwrap(), (digest.to_owned(), true)),
            _ => {
                let (digest, name) = line.split_once(' ').unwrap();
                types.insert(name.to_owned(), digest.to_owned());
                None
            }
        };
    }
    (versions, types)
}

fn print(versions: &BTreeMap<u32, (String, bool)>, types: &BTreeMap<String, String>) -> String {
    let mut text = HEADER.to_owned();
    for (version, (digest, is_released)) in versions {
        writeln!(text, "version {version} {digest}{}", if *is_released { " released" } else { "" }).unwrap();
    }
    types.iter().for_each(|(name, digest)| writeln!(text, "{digest} {name}").unwrap());
    text
}

#[test]
fn a_change_of_any_type_of_an_event_needs_a_new_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/event_versions.txt");
    let (mut versions, known) = parse(&std::fs::read_to_string(&path).unwrap_or_default());
    let types = types();
    assert!(types.len() > 80 && types.contains_key("Role") && types.contains_key("event turnStarted"), "{}", types.len());
    let whole = digest(&serde_json::to_value(&types).unwrap());
    if std::env::var_os("UPDATE_EVENTS").is_some() && !versions.get(&EVENT_VERSION).is_some_and(|(_, released)| *released) {
        versions.insert(EVENT_VERSION, (whole.clone(), false));
        std::fs::write(&path, print(&versions, &types)).unwrap();
        return;
    }
    let names = known.keys().chain(types.keys());
    let mut changed: Vec<_> = names.filter(|name| known.get(*name) != types.get(*name)).collect();
    changed.dedup();
    let (digest, _) = versions.get(&EVENT_VERSION).unwrap_or_else(|| panic!("version {EVENT_VERSION} is new.{WHAT_TO_DO}"));
    assert!(*digest == whole && changed.is_empty(), "changed: {changed:?}{WHAT_TO_DO}");
    assert_eq!(versions.last_key_value().map(|(version, _)| *version), Some(EVENT_VERSION), "versions only rise");
}

/// Data that the tests hold is data that exists: its version must not change any more.
#[test]
fn the_versions_of_the_corpus_are_released() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (versions, _) = parse(&std::fs::read_to_string(root.join("../domain/event_versions.txt")).unwrap());
    for entry in std::fs::read_dir(root.join("../app/tests/corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let version: u32 = name.strip_prefix('v').unwrap().strip_suffix(".gz").unwrap().parse().unwrap();
        assert!(versions.get(&version).is_some_and(|(_, released)| *released), "mark version {version} as released");
    }
}
