//! The dictionary that event bodies are packed with: what it is made of, and what it does for a workflow.

use std::fs;

use polis_domain::{Recorded, Seq};
use polis_store_local::Inspection;

use super::corpus;
use super::support::Home;

/// Where to write a new dictionary; `cargo xtask dictionary` sets it.
const MAKE: &str = "POLIS_DICTIONARY";

/// Twice the size saves a tenth of the bytes and does not fit into a processor's cache beside the rest.
const BYTES: usize = 64 << 10;

/// The number that frames name; 256 and more take another byte in each.
const NUMBER: u32 = 1;

const TODOS: [&str; 4] = [
    "count the files here; list the files; summarise notes.md; what is 12*12; count the words in notes.md",
    "what is the total amount by city in sales.csv? read notes.md; what is 15% of 240; how many files are here, by kind?",
    "统计这里的文件; 列出文件; 总结 notes.md; 12*3 等于多少; 统计 notes.md 的字数",
    "average amount by city in sales.csv; read notes.md; what time is it; what is 7+8; list the files",
];

const REQUESTS: [&str; 8] = [
    "what is in notes.md?",
    "summarise notes.md",
    "how many files are here, by kind?",
    "average amount by city in sales.csv",
    "what is 5*7",
    "hello",
    "你好",
    "总结 notes.md",
];

/// Events of all kinds, of societies that have nothing to do with each other.
fn samples() -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    let mut add = |home: &Home| {
        let mut data = Inspection::open(&home.data()).unwrap();
        let events = data.read(&"main".into(), Seq(0), usize::MAX).unwrap();
        samples.extend(events.iter().map(|Recorded { event, .. }| serde_json::to_vec(event).unwrap()));
    };
    for _ in 0..2 {
        let home = Home::new();
        corpus::make(&home);
        add(&home);
    }
    for todos in TODOS {
        let home = home();
        // What fails leaves events as well.
        home.polis(&["run", "--strategy", "workflow", todos]);
        add(&home);
    }
    let home = home();
    for request in REQUESTS {
        home.polis(&["run", request]);
        home.polis(&["run", "--continue", request]);
    }
    add(&home);
    assert!(samples.len() > 1_000, "{} events", samples.len());
    samples
}

fn home() -> Home {
    let home = Home::new();
    home.write("sales.csv", "city,amount\nParis,3\nOslo,5\n");
    home.write("notes.md", "buy milk\n");
    home
}

/// Not a test by itself: `cargo xtask dictionary` runs it.
#[test]
fn make_the_dictionary() {
    let Some(path) = std::env::var_os(MAKE) else { return };
    let mut dictionary = zstd::dict::from_samples(&samples(), BYTES).unwrap();
    dictionary[4..8].copy_from_slice(&NUMBER.to_le_bytes());
    let text = String::from_utf8_lossy(&dictionary);
    assert!(!text.contains(&*std::env::temp_dir().to_string_lossy()), "a path of this machine is in it");
    fs::write(path, dictionary).unwrap();
}

#[test]
fn a_workflow_of_five_todos_takes_at_most_60_kb() {
    let home = home();
    let bytes = || fs::metadata(home.data().join("polis.db")).unwrap().len();
    let todos =
        "how many files are here?; what is 31*3; count the words in notes.md; smallest amount in sales.csv; read notes.md";
    home.polis(&["run", "--strategy", "workflow", todos]).ok();
    let first = bytes();
    home.polis(&["run", "--strategy", "workflow", todos]).ok();
    let second = bytes() - first;
    let events = home.log().len() / 2;
    assert!(events > 150, "{events} events are no workflow of five todos");
    assert!(first <= 90_000 && second <= 60_000, "{first} bytes with the tables, then {second}, for {events} events each");
}
