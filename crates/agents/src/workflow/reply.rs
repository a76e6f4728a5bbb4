//! Finds the JSON object in a model's reply while it streams, past thoughts, prose and fences, and tells what is worth
//! showing. What it tells is for whoever watches; the finished reply is read by itself.

use serde_json::Value;

use super::json::{JsonError, JsonEvent, JsonLimits, JsonReader, Step};

/// Tags that thoughts stand between.
pub(super) const THOUGHTS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// What a streaming reply adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chunk<'a> {
    /// Another object begins; what was told before belongs to none that counts.
    Again,
    /// A text field of the object grows by this.
    Text {
        /// The field's name.
        field: &'a str,
        /// What it grows by.
        text: &'a str,
    },
    /// An element of a list field is whole.
    Item {
        /// The field's name.
        field: &'a str,
        /// The element's place, from 0.
        index: usize,
        /// The element.
        value: &'a Value,
    },
    /// A field is whole.
    Field {
        /// The field's name.
        field: &'a str,
        /// What it holds.
        value: &'a Value,
    },
}

/// Takes a reply in chunks of any size.
#[derive(Debug)]
pub struct ReplyReader {
    component: String,
    limits: JsonLimits,
    state: State,
    /// The beginning of a character whose rest has not come.
    cut: Vec<u8>,
    /// An object was read that is not the one.
    is_again: bool,
}

#[derive(Debug)]
enum State {
    Outside,
    /// So much of a tag that opens thoughts has come.
    Tag(String),
    /// Inside thoughts: the tag that closes them, and how much of it has come.
    Thoughts(&'static str, usize),
    /// After `{`: an object if a quote comes next.
    Brace,
    Inside(Box<JsonReader>),
    /// The object is whole, or nothing more can be told.
    Ended,
}

impl ReplyReader {
    /// A reader for an object with this `component`. Others are told as well, until the right one comes.
    pub fn new(component: &str) -> Self {
        Self::with_limits(component, JsonLimits::default())
    }

    /// The same, with limits of its own.
    pub fn with_limits(component: &str, limits: JsonLimits) -> Self {
        Self { component: component.to_owned(), limits, state: State::Outside, cut: Vec::new(), is_again: false }
    }

    /// Takes more bytes. A character may be cut in two; what is no UTF-8 becomes U+FFFD.
    pub fn push_bytes(&mut self, bytes: &[u8], listener: &mut dyn FnMut(Chunk<'_>)) {
        let mut rest = std::mem::take(&mut self.cut);
        rest.extend_from_slice(bytes);
        let mut rest = &rest[..];
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.push(text, listener),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.push(std::str::from_utf8(valid).unwrap_or_default(), listener);
                    let Some(wrong) = error.error_len() else {
                        self.cut = after.to_vec();
                        return;
                    };
                    self.push("\u{FFFD}", listener);
                    rest = &after[wrong..];
                }
            }
        }
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str, listener: &mut dyn FnMut(Chunk<'_>)) {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            match &mut self.state {
                State::Ended => return,
                State::Inside(_) => at += self.read(&text[at..], listener),
                State::Outside => {
                    self.state = match c {
                        '<' => State::Tag(c.into()),
                        '{' => State::Brace,
                        _ => State::Outside,
                    };
                    at += c.len_utf8();
                }
                State::Tag(held) => {
                    held.push(c);
                    match THOUGHTS.iter().find(|(open, _)| begins(open, held)) {
                        None => self.state = State::Outside,
                        Some((open, close)) => {
                            if held.len() == open.len() {
                                self.state = State::Thoughts(close, 0);
                            }
                            at += c.len_utf8();
                        }
                    }
                }
                State::Thoughts(close, matched) => {
                    let is_next = |matched: usize| close.as_bytes()[matched].eq_ignore_ascii_case(&text.as_bytes()[at]);
                    *matched = if is_next(*matched) { *matched + 1 } else { usize::from(c == '<') };
                    if *matched == close.len() {
                        self.state = State::Outside;
                    }
                    at += c.len_utf8();
                }
                State::Brace => match c {
                    '"' => {
                        let mut reader = JsonReader::new(self.limits);
                        if reader.push("{", &mut |_, _| {}).is_err() {
                            self.state = State::Ended;
                            return;
                        }
                        if std::mem::take(&mut self.is_again) {
                            listener(Chunk::Again);
                        }
                        self.state = State::Inside(Box::new(reader));
                    }
                    c if c.is_whitespace() => at += c.len_utf8(),
                    _ => self.state = State::Outside,
                },
            }
        }
    }

    /// Gives the object more of the text and says how much of it was its.
    fn read(&mut self, text: &str, listener: &mut dyn FnMut(Chunk<'_>)) -> usize {
        let State::Inside(reader) = &mut self.state else { return 0 };
        let before = reader.taken();
        let mut is_the_one = false;
        let component = &*self.component;
        let taken = reader.push(text, &mut |path, event| {
            if let ([], JsonEvent::Done(value)) = (path, event) {
                is_the_one = value.get("component").and_then(Value::as_str) == Some(component);
            }
            if let Some(chunk) = chunk(path, event) {
                listener(chunk);
            }
        });
        match taken {
            Ok(taken) => {
                if reader.is_whole() {
                    self.is_again = true;
                    self.state = if is_the_one { State::Ended } else { State::Outside };
                }
                taken
            }
            Err(JsonError::Broken(place)) => {
                self.is_again = true;
                self.state = State::Outside;
                // A word that is none may have begun in an earlier chunk.
                place.saturating_sub(before).min(text.len())
            }
            Err(_) => {
                self.state = State::Ended;
                text.len()
            }
        }
    }
}

fn chunk<'a>(path: &'a [Step], event: JsonEvent<'a>) -> Option<Chunk<'a>> {
    match (path, event) {
        ([Step::Key(field)], JsonEvent::Append(text)) => Some(Chunk::Text { field, text }),
        ([Step::Key(field)], JsonEvent::Done(value)) => Some(Chunk::Field { field, value }),
        ([Step::Key(field), Step::Index(index)], JsonEvent::Done(value)) => Some(Chunk::Item { field, index: *index, value }),
        (_, JsonEvent::Open(_) | JsonEvent::Append(_) | JsonEvent::Done(_)) => None,
    }
}

/// Whether a tag begins with some text, in any case.
fn begins(tag: &str, text: &str) -> bool {
    tag.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    const PLAN: &str = r#"{"type":"component","component":"planner-response","summary":"读 <think> {x}","needsMorePlanning":false,
        "todos":[{"id":"task-1","description":"Read \"a\""},{"id":"task-2","description":"Count"}]}"#;

    /// What stays of the chunks: texts as they grew, and lists as their elements came.
    #[derive(Debug, Default, PartialEq)]
    struct Shown {
        texts: Map<String, Value>,
        lists: Map<String, Value>,
        fields: Map<String, Value>,
        again: usize,
    }

    impl Shown {
        fn put(&mut self, chunk: Chunk<'_>) {
            match chunk {
                Chunk::Again => *self = Self { again: self.again + 1, ..Self::default() },
                Chunk::Text { field, text } => match self.texts.entry(field).or_insert_with(|| json!("")) {
                    Value::String(all) => all.push_str(text),
                    _ => unreachable!(),
                },
                Chunk::Item { field, index, value } => {
                    let list = self.lists.entry(field).or_insert_with(|| json!([])).as_array_mut().unwrap();
                    assert_eq!(list.len(), index);
                    list.push(value.clone());
                }
                Chunk::Field { field, value } => {
                    self.fields.insert(field.to_owned(), value.clone());
                }
            }
        }
    }

    fn shown(reply: &str, cuts: &[usize]) -> Shown {
        let mut reader = ReplyReader::new("planner-response");
        let mut shown = Shown::default();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (reply.len() + 1)).chain([0, reply.len()]).collect();
        places.sort_unstable();
        for pair in places.windows(2) {
            reader.push_bytes(&reply.as_bytes()[pair[0]..pair[1]], &mut |chunk| shown.put(chunk));
        }
        shown
    }

    fn dirty() -> Vec<String> {
        let fenced = format!("Here is the plan:\n```json\n{PLAN}\n```\nDone {{\"a\": 1}}.");
        let thought = format!("<think>perhaps {{\"component\":\"planner-response\",\"summary\":\"no\"}}</think>\n{PLAN}");
        let loud = format!("<Thinking>a < b </ thinking> {{\"summary\": 1}} <</THINKING>{PLAN}");
        let prose = format!("The set {{a, b}}, {{}} and {{ 1 < 2 <th {PLAN}");
        let twice = format!("{{\"path\": \"x\", \"summary\": \"old\"}} then {PLAN}");
        let broken = format!("{{\"path\": oops }} then {PLAN}");
        vec![PLAN.to_owned(), fenced, thought, loud, prose, twice, broken]
    }

    #[test]
    fn the_object_is_found_behind_thoughts_prose_and_fences() {
        let plan: Value = serde_json::from_str(PLAN).unwrap();
        for reply in dirty() {
            let shown = shown(&reply, &[]);
            assert_eq!(shown.texts["summary"], plan["summary"], "{reply}");
            assert_eq!(shown.lists["todos"], plan["todos"], "{reply}");
            assert_eq!(Value::Object(shown.fields), plan, "{reply}");
        }
    }

    proptest! {
        #[test]
        fn it_is_found_however_the_bytes_are_cut(which in 0..7usize, cuts in prop::collection::vec(any::<usize>(), 0..60)) {
            let reply = &dirty()[which];
            prop_assert_eq!(shown(reply, &cuts), shown(reply, &[]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "([<>{}\":/think ]|.){0,80}") {
            let mut reader = ReplyReader::new("x");
            for byte in bytes.iter().chain(text.as_bytes()) {
                reader.push_bytes(&[*byte], &mut |_| {});
            }
        }
    }

    #[test]
    fn todos_appear_while_the_planner_still_writes() {
        let mut reader = ReplyReader::new("planner-response");
        let mut seen = Vec::new();
        let first = PLAN.find(",{\"id\":\"task-2").unwrap();
        reader.push(&PLAN[..first], &mut |chunk| {
            if let Chunk::Item { value, .. } = chunk {
                seen.push(value["id"].clone());
            }
        });
        assert_eq!(seen, ["task-1"]);
    }

    #[test]
    fn an_object_that_is_too_deep_ends_the_telling() {
        let mut reader = ReplyReader::with_limits("x", JsonLimits { depth: 2, bytes: 1000 });
        let mut count = 0;
        reader.push(r#"{"a": [[1]], "b": "no"} {"b": "no"}"#, &mut |_| count += 1);
        assert_eq!(count, 0);
    }

    #[test]
    fn bytes_that_are_no_text_become_a_mark() {
        let mut reader = ReplyReader::new("x");
        let mut text = String::new();
        let mut listener = |chunk: Chunk<'_>| {
            if let Chunk::Text { text: more, .. } = chunk {
                text.push_str(more);
            }
        };
        reader.push_bytes(b"{\"a\": \"x\xff\xe4\xb8", &mut listener);
        reader.push_bytes(b"\xad\xe4\xb8y\"}", &mut listener);
        assert_eq!(text, "x\u{FFFD}中\u{FFFD}y");
    }
}
