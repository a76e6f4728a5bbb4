//! Gets the JSON object out of a finished reply: as it stands, or else repaired once. Repairs only what can mean one thing;
//! a reply that was cut off is never completed.

use serde_json::{Map, Value};

use super::once::OnceObject;
use super::reply::THOUGHTS;

/// An object from a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) object: Map<String, Value>,
    /// It did not stand alone, or was not JSON as it stood.
    pub(super) is_repaired: bool,
}

/// How many places of a reply are tried as the beginning of the object.
const MOST_TRIES: usize = 32;

/// Objects and lists inside each other, at most. No answer needs half of it.
const MOST_DEPTH: usize = 32;

/// The object with this `component`, or else the one that has most of these fields. The error says what is wrong.
pub(super) fn find(text: &str, component: &str, fields: &[&str]) -> Result<Found, String> {
    if let Ok(OnceObject(object)) = serde_json::from_str(text) {
        return if is_deep(&object) { Err(Wrong::TooDeep.in_words(text)) } else { Ok(Found { object, is_repaired: false }) };
    }
    let mut best: Option<(usize, Map<String, Value>)> = None;
    let mut is_tied = false;
    let mut the_one: Option<Map<String, Value>> = None;
    let mut first_wrong = None;
    let (mut at, mut tries) = (0, 0);
    while let Some(begin) = next_brace(text, at) {
        tries += 1;
        if tries > MOST_TRIES {
            break;
        }
        match object_at(&text[begin..]) {
            Ok((object, length)) => {
                at = begin + length;
                if object.get("component").and_then(Value::as_str) == Some(component) {
                    match &the_one {
                        Some(one) if *one != object => {
                            return Err(two(component));
                        }
                        Some(_) => {}
                        None => the_one = Some(object),
                    }
                    continue;
                }
                let count = fields.iter().filter(|field| object.contains_key(**field)).count();
                if best.as_ref().is_none_or(|(most, _)| count >= *most) {
                    is_tied = best.is_some_and(|(most, before)| most == count && (is_tied || before != object));
                    best = Some((count, object));
                }
            }
            Err(wrong) => {
                first_wrong.get_or_insert((begin, wrong));
                at = begin + 1;
            }
        }
    }
    if let Some(object) = the_one {
        return Ok(Found { object, is_repaired: true });
    }
    match (best, first_wrong) {
        (Some((count, _)), _) if count > 0 && is_tied => Err(two(component)),
        (Some((count, object)), _) if count > 0 => Ok(Found { object, is_repaired: true }),
        (_, Some((begin, wrong))) => Err(wrong.in_words(&text[begin..])),
        (Some(_), None) => Err(format!("there is a JSON object, but it has none of the fields {}", fields.join(", "))),
        (None, None) if text.trim().is_empty() => Err("the reply is empty".to_owned()),
        (None, None) => Err("there is no JSON object in the reply".to_owned()),
    }
}

fn two(component: &str) -> String {
    format!("there are two different \"{component}\" objects in the reply; write the one that counts")
}

/// The next `{` outside of thoughts. Thoughts that are never closed hide the rest.
fn next_brace(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text[at..].find(['{', '<'])?;
        if text.as_bytes()[at] == b'{' {
            return Some(at);
        }
        let opened = THOUGHTS.iter().find(|(open, _)| starts_with(&text[at..], open));
        at += match opened {
            Some((open, close)) => open.len() + find_ignoring_case(&text[at + open.len()..], close)? + close.len(),
            None => 1,
        };
    }
}

fn starts_with(text: &str, tag: &str) -> bool {
    text.as_bytes().get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
}

fn find_ignoring_case(text: &str, tag: &str) -> Option<usize> {
    text.bytes().enumerate().find(|&(at, byte)| byte == b'<' && starts_with(&text[at..], tag)).map(|(at, _)| at)
}

/// Why there is no object at a place.
enum Wrong {
    /// It breaks near some text.
    Syntax(String, String),
    NeverClosed,
    TooDeep,
}

impl Wrong {
    fn syntax(error: &serde_json::Error, cleaned: &str) -> Self {
        let line = cleaned.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        let from = line.floor_char_boundary(error.column().saturating_sub(20));
        let what = error.to_string();
        Self::Syntax(excerpt(line[from..].trim()), what.split(" at line ").next().unwrap_or_default().to_owned())
    }

    fn in_words(&self, text: &str) -> String {
        match self {
            Self::NeverClosed => format!(
                "the JSON object that begins with `{}` is never closed; if the reply was cut off, write a shorter one",
                excerpt(text)
            ),
            Self::Syntax(near, what) => format!("the JSON breaks near `{near}`: {what}"),
            Self::TooDeep => {
                format!("objects and lists stand more than {MOST_DEPTH} deep in each other; write it flat, as described")
            }
        }
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The object that the text begins with, and how long it is.
fn object_at(text: &str) -> Result<(Map<String, Value>, usize), Wrong> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<OnceObject>();
    let strict = stream.next();
    if let Some(Ok(OnceObject(object))) = strict {
        return if is_deep(&object) { Err(Wrong::TooDeep) } else { Ok((object, stream.byte_offset())) };
    }
    let mut cleaning = Cleaning { text, at: 0, out: String::with_capacity(text.len()), open: Vec::new() };
    let is_closed = cleaning.run();
    if cleaning.open.len() >= MOST_DEPTH {
        return Err(Wrong::TooDeep);
    }
    let cleaned = serde_json::from_str(&cleaning.out);
    match (cleaned, is_closed) {
        (Ok(OnceObject(object)), true) => Ok((object, cleaning.at)),
        (Err(_), false) => Err(Wrong::NeverClosed),
        (Err(error), true) => Err(Wrong::syntax(&error, &cleaning.out)),
        (Ok(_), false) => Err(Wrong::NeverClosed),
    }
}

fn is_deep(object: &Map<String, Value>) -> bool {
    fn exceeds(value: &Value, most: usize) -> bool {
        match value {
            Value::Array(list) => most == 0 || list.iter().any(|value| exceeds(value, most - 1)),
            Value::Object(object) => most == 0 || object.values().any(|value| exceeds(value, most - 1)),
            _ => false,
        }
    }
    object.values().any(|value| exceeds(value, MOST_DEPTH - 1))
}

const DOUBLE: &[char] = &['"', '“', '”', '„', '‟', '＂'];
const SINGLE: &[char] = &['\'', '‘', '’'];

/// Writes an object again as JSON: commas too many, comments, quotes of other kinds, punctuation of full width, names without
/// quotes, Python's words, raw line breaks, quotes and backslashes that were not escaped.
struct Cleaning<'a> {
    text: &'a str,
    at: usize,
    out: String,
    open: Vec<char>,
}

impl Cleaning<'_> {
    /// Whether the object was closed.
    fn run(&mut self) -> bool {
        while let Some(c) = self.peek() {
            match c {
                c if DOUBLE.contains(&c) => self.text(c, DOUBLE),
                c if SINGLE.contains(&c) => self.text(c, SINGLE),
                '{' | '[' => {
                    if self.open.len() >= MOST_DEPTH {
                        return false;
                    }
                    self.open.push(if c == '{' { '}' } else { ']' });
                    self.put(c);
                }
                '}' | ']' => {
                    if self.open.pop() != Some(c) {
                        return false;
                    }
                    self.drop_comma();
                    self.put(c);
                    if self.open.is_empty() {
                        return true;
                    }
                }
                '，' => self.replace(c, ','),
                '：' => self.replace(c, ':'),
                '/' if self.rest().starts_with("//") => self.skip_to("\n"),
                '/' if self.rest().starts_with("/*") => self.skip_to("*/"),
                c if c.is_alphabetic() || c == '_' || c == '$' => self.word(),
                _ => self.put(c),
            }
        }
        false
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn put(&mut self, c: char) {
        self.replace(c, c);
    }

    fn replace(&mut self, read: char, written: char) {
        self.at += read.len_utf8();
        self.out.push(written);
    }

    fn skip_to(&mut self, end: &str) {
        self.at += self.rest()[2..].find(end).map_or(self.rest().len(), |found| 2 + found + end.len());
    }

    fn drop_comma(&mut self) {
        let kept = self.out.trim_end().trim_end_matches(',').len();
        self.out.truncate(kept);
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let is_name = after.trim_start().starts_with([':', '：']);
        let written = match word {
            _ if is_name => Value::from(word).to_string(),
            "True" => "true".to_owned(),
            "False" => "false".to_owned(),
            "None" | "undefined" => "null".to_owned(),
            _ => word.to_owned(),
        };
        self.at += length;
        self.out.push_str(&written);
    }

    /// A text in any quotes. It ends at a quote of the same family that something of JSON follows.
    fn text(&mut self, quote: char, family: &[char]) {
        self.replace(quote, '"');
        while let Some(c) = self.peek() {
            if family.contains(&c) && (quote != '"' || c == '"') && ends_here(&self.rest()[c.len_utf8()..]) {
                self.replace(c, '"');
                return;
            }
            match c {
                '\\' => self.escape(),
                '"' => {
                    self.out.push('\\');
                    self.put('"');
                }
                c if c.is_control() => {
                    self.at += c.len_utf8();
                    let written = Value::from(c.to_string()).to_string();
                    self.out.push_str(&written[1..written.len() - 1]);
                }
                c => self.put(c),
            }
        }
    }

    fn escape(&mut self) {
        let after = &self.rest()[1..];
        let is_hex = |text: &str| text.as_bytes().get(1..5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match after.chars().next() {
            Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                self.put('\\');
                self.put(c);
            }
            Some('u') if is_hex(after) => {
                self.put('\\');
                self.put('u');
            }
            Some('\'') => self.at += 1,
            _ => {
                self.out.push('\\');
                self.put('\\');
            }
        }
    }
}

/// Whether what follows a quote lets the text end there.
fn ends_here(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with([',', ':', '}', ']', '，', '：']) || rest.starts_with("//") || rest.starts_with("/*")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(reply: &str, expected: Value) {
        let found = find(reply, "c", &["a", "b"]).unwrap_or_else(|wrong| panic!("{reply}: {wrong}"));
        assert_eq!(Value::Object(found.object), expected, "{reply}");
    }

    #[test]
    fn what_can_mean_one_thing_is_repaired() {
        for (reply, expected) in [
            (r#"{"a": 1}"#, json!({"a": 1})),
            ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
            ("Sure! Here it is: {\"a\": 1} I hope this helps.", json!({"a": 1})),
            ("<think>{\"a\": 0}</think>{\"a\": 1}", json!({"a": 1})),
            ("<THINK>x <b> {</Think> {\"a\": \"</think>\"}", json!({"a": "</think>"})),
            (r#"{"a": [1, 2,], "b": {"x": 1,},}"#, json!({"a": [1, 2], "b": {"x": 1}})),
            ("{“a”: “he said ‘no’ and \"yes\"”, ”b“：1}", json!({"a": "he said ‘no’ and \"yes\"", "b": 1})),
            ("{\"a\"：\"中文，标点\"，\"b\": [“一”， “二”]}", json!({"a": "中文，标点", "b": ["一", "二"]})),
            ("{'a': 'it's', 'b': True}", json!({"a": "it's", "b": true})),
            ("{a: 1, b: None}", json!({"a": 1, "b": null})),
            ("{\"a\": \"two\nlines\tand \u{7}\"}", json!({"a": "two\nlines\tand \u{7}"})),
            (r#"{"a": "say "hi" now"}"#, json!({"a": "say \"hi\" now"})),
            (r#"{"a": "C:\dir \u00e9 \u12 \'", "b": 1,}"#, json!({"a": "C:\\dir é \\u12 '", "b": 1})),
            ("{ // first\n \"a\": 1, /* second */ \"b\": \"// no\" // end\n}", json!({"a": 1, "b": "// no"})),
            (r#"{"x": 1} {"a": 1} {"component": "c"} {"a": 2, "b": 2}"#, json!({"component": "c"})),
            (r#"{"x": 1} {"a": 1} {"a": 2, "b": 2} {"y": 1}"#, json!({"a": 2, "b": 2})),
            (r#"{"a": 1, "a": 1} {"a": 1}"#, json!({"a": 1})),
            ("the set {a, b} and {} and { 1 } then {\"a\": 1}", json!({"a": 1})),
        ] {
            check(reply, expected);
        }
    }

    #[test]
    fn only_what_needed_it_counts_as_repaired() {
        for (reply, is_repaired) in [(" {\"a\": 1}\n", false), ("`{\"a\": 1}`", true), ("{\"a\": 1,}", true)] {
            assert_eq!(find(reply, "c", &["a"]).unwrap().is_repaired, is_repaired, "{reply}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
        for (reply, said) in [
            (" ", "the reply is empty"),
            ("I cannot do this.", "there is no JSON object in the reply"),
            ("<think>{\"a\": 1}", "there is no JSON object in the reply"),
            ("Plan: {\"x\": 1}", "it has none of the fields a, b"),
            ("Plan: {\"a\": \"cut of", "`{\"a\": \"cut of` is never closed; if the reply was cut off, write a shorter one"),
            ("{\"a\": [1, 2", "is never closed"),
            ("{\"a\": 1,\n \"b\": oops}", "the JSON breaks near `\"b\": oops}`: expected value"),
            ("{\"a\": [1}", "is never closed"),
            ("{\"a\": 1, \"b\": 2, \"a\": 3}", "\"a\" stands twice with different values; write it once"),
            ("{\"a\": [{\"x\": 1, \"x\": 2,}]}", "\"x\" stands twice with different values"),
            ("{\"a\": 1} {\"a\": 2}", "there are two different \"c\" objects in the reply"),
            ("{\"a\": 1} {\"b\": 2} {\"a\": 1}", "there are two different \"c\" objects in the reply"),
            ("{\"component\": \"c\"} {\"component\": \"c\", \"a\": 1}", "there are two different \"c\" objects"),
        ] {
            let wrong = find(reply, "c", &["a", "b"]).unwrap_err();
            assert!(wrong.contains(said), "{reply}: {wrong}");
        }
    }

    #[test]
    fn hostile_replies_end_soon() {
        for unit in ["{\"", "{\"a\":", "{", "[{", "“ ", "{'a", "<think>", "{//", "{/*", "\\", "{\"a\": 1} "] {
            let reply = format!("x{}", unit.repeat(20_000));
            let _ = find(&reply, "c", &["a"]);
        }
    }

    proptest! {
        #[test]
        fn cleaning_leaves_good_json_as_it_is(texts in prop::collection::vec("[a-z\"\\\\{}\\[\\]:,'“”，：\n<>/é中😀]{0,8}", 1..5)) {
            let object = json!({"a": texts, "b": {"c": texts}});
            let text = object.to_string();
            let mut cleaning = Cleaning { text: &text, at: 0, out: String::new(), open: Vec::new() };
            prop_assert!(cleaning.run());
            prop_assert_eq!(&cleaning.out, &text);
            prop_assert_eq!(cleaning.at, text.len());
        }

        #[test]
        fn no_reply_makes_it_panic(reply in "([{}\\[\\]\"'“”:,/*\\\\u<>think \n]|.){0,80}") {
            let _ = find(&reply, "c", &["a"]);
        }
    }
}
