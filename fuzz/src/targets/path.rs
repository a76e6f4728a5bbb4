//! Paths of sub-threads. What is read is written the same, and nothing outside the grammar is read.

use polis_domain::{MetaPath, SubThreadPath};

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "path",
    run,
    words: &["messages[", "].", "meta", "_thread", ".", "messages", "[0]", "00", "4294967295", "\u{2028}"],
};

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let read = text.parse::<SubThreadPath>();
    assert_eq!(read.is_ok(), is_path(text), "{text:?}");
    if let Ok(path) = &read {
        assert_eq!(path.to_string(), text);
        assert_eq!(path.depth(), path.segments().len().saturating_sub(1));
        assert!(path.segments().len() <= 256);
        let mut again = SubThreadPath::main();
        for segment in path.segments() {
            let parent = again.clone();
            again = again.child_at(segment.message_index, segment.meta_path.clone());
            assert_eq!(again.parent(), Some(parent));
        }
        assert_eq!(again, *path);
        let json = serde_json::to_value(path).expect("a path is a string");
        assert_eq!(serde_json::from_value::<SubThreadPath>(json).ok().as_ref(), Some(path));
        // It leads nowhere in a thread that has nothing, and says so.
        let empty = serde_json::json!({ "messages": [] });
        assert_eq!(path.find(&empty).is_ok(), path.is_main());
    }
    let meta = MetaPath::new(text);
    assert_eq!(meta.is_ok(), is_meta(text), "{text:?}");
    if let Ok(meta) = meta {
        assert_eq!(meta.as_str(), text);
        assert!(meta.overlaps(&meta));
    }
}

/// The grammar, read from the right: whatever stands before the last `messages[` is a path of its own.
fn is_path(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let mut rest = text;
    let mut depth = 0;
    loop {
        depth += 1;
        let Some(at) = rest.rfind("messages[") else { return false };
        let (before, segment) = rest.split_at(at);
        let Some((index, meta)) = segment["messages[".len()..].split_once("].") else { return false };
        let is_index = index.parse::<u32>().is_ok_and(|number| number.to_string() == index);
        if !is_index || !is_meta(meta) {
            return false;
        }
        if before.is_empty() {
            return depth <= 256;
        }
        let Some(before) = before.strip_suffix('.').filter(|before| !before.is_empty()) else { return false };
        rest = before;
    }
}

fn is_meta(text: &str) -> bool {
    let mut keys = text.split('.');
    let is_key = |key: &str| {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || "[]".contains(c);
        !key.is_empty() && key != "messages" && !key.chars().any(is_bad)
    };
    let begins = keys.next() == Some("meta");
    let rest: Vec<&str> = keys.collect();
    begins && !rest.is_empty() && rest.iter().all(|key| is_key(key))
}
