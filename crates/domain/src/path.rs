//! The address of a sub-thread: `messages[3].meta._thread`, chained to any depth (R108-R113, D01).
//!
//! ```text
//! path    = segment *( "." segment )
//! segment = "messages[" index "]." meta
//! meta    = "meta" 1*( "." key )        key: no dot, bracket, space or control character; not "messages"
//! ```
//! An empty path is the main thread itself.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// The address of a sub-thread, from its main thread down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SubThreadPath {
    segments: Arc<[Segment]>,
}

/// One step down: a message and the place in its meta where the thread hangs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// The message's place in its thread, from 0.
    pub message_index: u32,
    /// Where in that message the thread hangs.
    pub meta_path: MetaPath,
}

/// A dotted place inside a message's meta, such as `meta._thread` or `meta.threads.analysis`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "Arc<str>")]
pub struct MetaPath(Arc<str>);

/// What is wrong with a path, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("无效的子线程路径: {path} (invalid sub-thread path: {expected} expected at byte {at})")]
pub struct BadPath {
    /// The text as given, cut to a readable length.
    pub path: String,
    /// The byte at which reading stopped.
    pub at: usize,
    /// What should have stood there.
    pub expected: &'static str,
}

/// Why a path leads nowhere in a given thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchThread {
    /// A message on the way does not exist.
    #[error("找不到索引为 {index} 的消息 (no message with index {index} at level {level})")]
    NoMessage {
        /// The index asked for.
        index: u32,
        /// How many levels down, from 0.
        level: usize,
    },
    /// The message is there; the place in its meta is empty.
    #[error("message {index} at level {level} has nothing at {meta_path}")]
    NoThread {
        /// The message's index.
        index: u32,
        /// The place that is empty.
        meta_path: MetaPath,
        /// How many levels down, from 0.
        level: usize,
    },
}

/// How deep a path may be read from text: far above any real tree, low enough that no text can exhaust us.
const MAX_DEPTH: usize = 256;

impl MetaPath {
    /// Takes a dotted path that begins with `meta.`.
    pub fn new(text: &str) -> Result<Self, BadPath> {
        let mut reader = Reader { path: text, at: 0 };
        let meta = reader.meta_path()?;
        if reader.at < text.len() {
            return Err(reader.bad("the end of the path"));
        }
        Ok(meta)
    }

    /// The place as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names below `meta`, from the outside in.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.split('.').skip(1)
    }

    /// Whether one of the two places is, or lies inside, the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.keys().zip(other.keys()).all(|(own, others)| own == others)
    }
}

/// Where nearly all sub-threads hang, kept once.
static USUAL: LazyLock<Arc<str>> = LazyLock::new(|| "meta._thread".into());

impl Default for MetaPath {
    fn default() -> Self {
        Self(USUAL.clone())
    }
}

impl fmt::Display for MetaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for MetaPath {
    type Error = BadPath;

    fn try_from(text: String) -> Result<Self, BadPath> {
        Self::new(&text)
    }
}

impl From<MetaPath> for Arc<str> {
    fn from(path: MetaPath) -> Self {
        path.0
    }
}

impl SubThreadPath {
    /// The main thread itself.
    pub fn main() -> Self {
        Self::default()
    }

    /// The thread in `meta._thread` of a message of the main thread.
    pub fn create(message_index: u32) -> Self {
        Self::main().child(message_index)
    }

    /// The thread in `meta._thread` of a message of this thread.
    pub fn child(&self, message_index: u32) -> Self {
        self.child_at(message_index, MetaPath::default())
    }

    /// The thread at `meta_path` of a message of this thread.
    pub fn child_at(&self, message_index: u32, meta_path: MetaPath) -> Self {
        let last = Segment { message_index, meta_path };
        Self { segments: self.segments.iter().cloned().chain([last]).collect() }
    }

    /// The thread that holds this one; none for the main thread.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.segments.split_last()?;
        Some(Self { segments: above.into() })
    }

    /// The steps from the main thread down.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether this is the main thread.
    pub fn is_main(&self) -> bool {
        self.segments.is_empty()
    }

    /// How many levels lie between this sub-thread and the main thread's own sub-threads (R110: segments − 1).
    pub fn depth(&self) -> usize {
        self.segments.len().saturating_sub(1)
    }

    /// Whether the sub-thread lies inside another sub-thread.
    pub fn is_nested(&self) -> bool {
        self.segments.len() > 1
    }

    /// Finds the sub-thread in a thread of the documents' JSON shape.
    pub fn find<'a>(&self, thread: &'a Value) -> Result<&'a Value, NoSuchThread> {
        let mut here = thread;
        for (level, Segment { message_index: index, meta_path }) in self.segments.iter().enumerate() {
            let messages = here.get("messages");
            let message = messages
                .and_then(|messages| messages.get(*index as usize))
                .ok_or(NoSuchThread::NoMessage { index: *index, level })?;
            here = meta_path
                .keys()
                .try_fold(message.get("meta").unwrap_or(&Value::Null), |meta, key| meta.get(key))
                .filter(|found| found.is_object())
                .ok_or_else(|| NoSuchThread::NoThread { index: *index, meta_path: meta_path.clone(), level })?;
        }
        Ok(here)
    }
}

impl fmt::Display for SubThreadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.segments.iter().enumerate() {
            let dot = if i == 0 { "" } else { "." };
            write!(f, "{dot}messages[{}].{}", segment.message_index, segment.meta_path)?;
        }
        Ok(())
    }
}

impl FromStr for SubThreadPath {
    type Err = BadPath;

    fn from_str(path: &str) -> Result<Self, BadPath> {
        let mut reader = Reader { path, at: 0 };
        let mut segments = Vec::new();
        while reader.at < path.len() {
            if !segments.is_empty() {
                reader.eat(".", "`.`")?;
            }
            if segments.len() == MAX_DEPTH {
                return Err(reader.bad("at most 256 levels"));
            }
            segments.push(reader.segment()?);
        }
        Ok(Self { segments: segments.into() })
    }
}

impl Serialize for SubThreadPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A path comes as its text or as the documents' `{messageIndex, metaPath}` (R111).
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    #[serde(rename_all = "camelCase")]
    Object {
        message_index: u32,
        meta_path: Option<MetaPath>,
    },
}

impl<'de> Deserialize<'de> for SubThreadPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse().map_err(de::Error::custom),
            Written::Object { message_index, meta_path } => {
                Ok(Self::main().child_at(message_index, meta_path.unwrap_or_default()))
            }
        }
    }
}

/// Reads a path from left to right and remembers where it stands.
struct Reader<'a> {
    path: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn bad(&self, expected: &'static str) -> BadPath {
        BadPath { path: self.path.chars().take(200).collect(), at: self.at, expected }
    }

    fn rest(&self) -> &str {
        &self.path[self.at..]
    }

    fn eat(&mut self, text: &str, expected: &'static str) -> Result<(), BadPath> {
        if !self.rest().starts_with(text) {
            return Err(self.bad(expected));
        }
        self.at += text.len();
        Ok(())
    }

    fn segment(&mut self) -> Result<Segment, BadPath> {
        self.eat("messages[", "`messages[`")?;
        let message_index = self.index()?;
        self.eat("]", "`]`")?;
        self.eat(".", "`.`")?;
        Ok(Segment { message_index, meta_path: self.meta_path()? })
    }

    fn index(&mut self) -> Result<u32, BadPath> {
        const EXPECTED: &str = "a message index without leading zeros, at most 4294967295";
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let text = &self.rest()[..digits];
        let padded = digits > 1 && text.starts_with('0');
        let index = text.parse().ok().filter(|_| !padded).ok_or_else(|| self.bad(EXPECTED))?;
        self.at += digits;
        Ok(index)
    }

    fn meta_path(&mut self) -> Result<MetaPath, BadPath> {
        let start = self.at;
        self.eat("meta", "`meta`")?;
        let mut keys = 0;
        while self.rest().starts_with('.') && !self.rest().starts_with(".messages[") {
            self.at += 1;
            self.key()?;
            keys += 1;
        }
        if keys == 0 {
            return Err(self.bad("`.` and a key"));
        }
        let read = &self.path[start..self.at];
        Ok(MetaPath(if *read == **USUAL { USUAL.clone() } else { read.into() }))
    }

    fn key(&mut self) -> Result<(), BadPath> {
        let ends = |c: char| c == '.' || c == '[' || c == ']' || c.is_whitespace() || c.is_control();
        let length = self.rest().find(ends).unwrap_or(self.rest().len());
        let key = &self.rest()[..length];
        if key.is_empty() || key == "messages" || key == "__proto__" {
            return Err(self.bad("a key"));
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A random way down: at each level how many messages stand before, and where the thread hangs.
    fn ways() -> impl Strategy<Value = Vec<(u32, MetaPath)>> {
        let key = prop_oneof![Just("_thread".to_owned()), "[a-z_][a-zA-Z0-9_-]{0,8}", "[线程分析]{1,4}"]
            .prop_filter("reserved", |key| key != "messages");
        let meta = prop_oneof![
            3 => Just(MetaPath::default()),
            1 => prop::collection::vec(key, 1..4)
                .prop_map(|keys| MetaPath::new(&format!("meta.{}", keys.join("."))).unwrap()),
        ];
        prop::collection::vec((0..4_u32, meta), 0..=50)
    }

    fn tree(way: &[(u32, MetaPath)], level: usize) -> Value {
        let Some((index, meta_path)) = way.get(level) else {
            return json!({ "id": format!("level {level}"), "messages": [] });
        };
        let inner = tree(way, level + 1);
        let keys: Vec<_> = meta_path.keys().collect();
        let meta = keys.iter().rev().fold(inner, |value, key| json!({ *key: value }));
        let mut messages = vec![json!({ "text": "before" }); *index as usize];
        messages.push(json!({ "text": "holder", "meta": meta }));
        json!({ "id": format!("level {level}"), "messages": messages })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn create_print_parse_and_get_hold_to_depth_50(way in ways()) {
            let path = way.iter().fold(SubThreadPath::main(), |path, (index, meta)| {
                path.child_at(*index, meta.clone())
            });
            let printed = path.to_string();
            prop_assert_eq!(printed.parse::<SubThreadPath>(), Ok(path.clone()));
            prop_assert_eq!(path.segments().len(), way.len());
            prop_assert_eq!(path.is_nested(), way.len() > 1);
            let tree = tree(&way, 0);
            let found = path.find(&tree).unwrap();
            prop_assert_eq!(&found["id"], &json!(format!("level {}", way.len())));
        }

        #[test]
        fn any_text_is_read_or_refused_and_never_panics(text in "[mesagt_\\[\\]0-9. \u{7ebf}]{0,60}") {
            if let Ok(path) = text.parse::<SubThreadPath>() {
                prop_assert_eq!(path.to_string(), text);
            }
        }
    }

    #[test]
    fn a_broken_path_names_the_place() {
        #[track_caller]
        fn check(path: &str, at: usize, expected: &str) {
            let bad = path.parse::<SubThreadPath>().unwrap_err();
            assert_eq!((bad.at, bad.expected), (at, expected), "{path}");
            assert!(bad.to_string().starts_with("无效的子线程路径: "), "{bad}");
        }
        let index = "a message index without leading zeros, at most 4294967295";
        check("message[1].meta._thread", 0, "`messages[`");
        check("messages[].meta._thread", 9, index);
        check("messages[-1].meta._thread", 9, index);
        check("messages[01].meta._thread", 9, index);
        check("messages[4294967296].meta._thread", 9, index);
        check("messages[1", 10, "`]`");
        check("messages[1]", 11, "`.`");
        check("messages[1].text", 12, "`meta`");
        check("messages[1].meta", 16, "`.` and a key");
        check("messages[1].meta.", 17, "a key");
        check("messages[1].meta.__proto__", 17, "a key");
        check("messages[1].meta._thread.messages[2]", 36, "`.`");
        check("messages[1].meta._thread ", 24, "`.`");
        check(&["messages[0].meta.t"; 257].join("."), 18 * 256 + 256, "at most 256 levels");
    }

    #[test]
    fn a_path_into_nothing_says_how_far_it_got() {
        let thread = tree(&[(1, MetaPath::default())], 0);
        let find = |path: &str| path.parse::<SubThreadPath>().unwrap().find(&thread).unwrap_err();
        assert_eq!(find("messages[9].meta._thread"), NoSuchThread::NoMessage { index: 9, level: 0 });
        let empty = find("messages[0].meta._thread");
        assert_eq!(empty, NoSuchThread::NoThread { index: 0, meta_path: MetaPath::default(), level: 0 });
        let below = find("messages[1].meta._thread.messages[0].meta._thread");
        assert_eq!(below, NoSuchThread::NoMessage { index: 0, level: 1 });
        assert!(below.to_string().contains("找不到索引为 0 的消息"));
    }

    #[test]
    fn a_path_may_come_as_the_documents_object() {
        let path: SubThreadPath = serde_json::from_value(json!({ "messageIndex": 3 })).unwrap();
        assert_eq!(path.to_string(), "messages[3].meta._thread");
        let path: SubThreadPath =
            serde_json::from_value(json!({ "messageIndex": 0, "metaPath": "meta.threads.analysis" })).unwrap();
        assert_eq!(path.to_string(), "messages[0].meta.threads.analysis");
        assert_eq!((path.depth(), path.is_nested()), (0, false));
        assert_eq!(path.child(4).depth(), 1);
        assert_eq!(path.child(4).parent(), Some(path));
    }
}
