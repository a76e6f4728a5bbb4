//! What the reader tells folds to the same value as serde_json's, however the text is cut.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The text in chunks that end at these places, or the whole of it.
fn chunks<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| cut % (text.len() + 1)).filter(|&cut| text.is_char_boundary(cut)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// A value that is made of nothing but events.
fn put(root: &mut Value, path: &[Step], event: JsonEvent<'_>) {
    let mut target = root;
    for step in path {
        target = match step {
            Step::Key(key) => &mut target[key.as_str()],
            Step::Index(index) => {
                let elements = target.as_array_mut().unwrap();
                if elements.len() == *index {
                    elements.push(Value::Null);
                }
                &mut elements[*index]
            }
        };
    }
    match (event, target) {
        (JsonEvent::Open(Opened::Object), target) => *target = json!({}),
        (JsonEvent::Open(Opened::List), target) => *target = json!([]),
        (JsonEvent::Open(Opened::Text), target) => *target = json!(""),
        (JsonEvent::Append(more), Value::String(text)) => text.push_str(more),
        (JsonEvent::Append(_), other) => panic!("{other} does not grow"),
        (JsonEvent::Done(value), target) if value.is_string() || value.is_array() || value.is_object() => {
            assert_eq!(*target, *value, "what is done is what was told");
        }
        (JsonEvent::Done(value), target) => *target = value.clone(),
    }
}

/// The value that was read and the one that its events fold to.
fn read(chunks: &[&str]) -> Result<(Value, Value), JsonError> {
    let mut reader = JsonReader::default();
    let mut folded = Value::Null;
    let mut listener = |path: &[Step], event: JsonEvent<'_>| put(&mut folded, path, event);
    for chunk in chunks {
        let taken = reader.push(chunk, &mut listener)?;
        assert!(taken == chunk.len() || reader.is_whole());
    }
    let value = reader.finish(&mut listener)?;
    Ok((value, folded))
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-c\"\\\\/\n\t\u{1}]{0,6}", "[é中😀\u{FFFF}\u{7F}]{0,4}", ".{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Every character as an escape.
fn escaped(value: &Value) -> String {
    let plain = value.to_string();
    let mut out = String::new();
    for c in plain.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        }
    }
    out
}

proptest! {
    #[test]
    fn events_fold_to_what_serde_reads_however_it_is_cut(
        value in any_json(),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        pretty in any::<bool>(),
        ascii in any::<bool>(),
    ) {
        let text = match (ascii, pretty) {
            (true, _) => escaped(&value),
            (false, true) => serde_json::to_string_pretty(&value).unwrap(),
            (false, false) => value.to_string(),
        };
        let expected: Value = serde_json::from_str(&text).unwrap();
        let (read, folded) = read(&chunks(&text, &cuts)).unwrap();
        prop_assert_eq!(&read, &expected);
        prop_assert_eq!(&folded, &expected);
    }

    #[test]
    fn anything_at_all_is_read_the_same_in_chunks_and_never_panics(
        text in "([\\[\\]{}:,\"\\\\ u0-9truefalsn.eE+-]|.){0,60}",
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let whole = read(&[&text]);
        let cut = read(&chunks(&text, &cuts));
        prop_assert_eq!(whole.is_ok(), cut.is_ok());
        if let (Ok(whole), Ok(cut)) = (&whole, &cut) {
            prop_assert_eq!(&whole.0, &cut.0);
            prop_assert_eq!(&cut.1, &cut.0);
        }
        if let Ok(expected) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(whole.unwrap().0, expected);
        }
    }
}

#[test]
fn a_plan_is_told_as_it_is_written() {
    let mut reader = JsonReader::default();
    let mut said = Vec::new();
    for chunk in [r#"{"summary":"Re"#, r#"ad \u4e"#, r#"2d","todos":[{"id":"a"},{"id""#, r#":"b"}], "n": 1"#, "2}"] {
        reader
            .push(chunk, &mut |path, event| {
                let path: Vec<String> = path
                    .iter()
                    .map(|step| match step {
                        Step::Key(key) => key.clone(),
                        Step::Index(index) => index.to_string(),
                    })
                    .collect();
                match event {
                    JsonEvent::Open(_) => {}
                    JsonEvent::Append(text) => said.push(format!("{} += {text}", path.join("."))),
                    JsonEvent::Done(value) => said.push(format!("{} = {value}", path.join("."))),
                }
            })
            .unwrap();
        said.push("|".to_owned());
    }
    let expected = [
        "summary += Re",
        "|",
        "summary += ad ",
        "|",
        "summary += 中",
        "summary = \"Read 中\"",
        "todos.0.id += a",
        "todos.0.id = \"a\"",
        "todos.0 = {\"id\":\"a\"}",
        "|",
        "todos.1.id += b",
        "todos.1.id = \"b\"",
        "todos.1 = {\"id\":\"b\"}",
        "todos = [{\"id\":\"a\"},{\"id\":\"b\"}]",
        "|",
        "n = 12",
        " = {\"n\":12,\"summary\":\"Read 中\",\"todos\":[{\"id\":\"a\"},{\"id\":\"b\"}]}",
        "|",
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_a_reader_can_pass_over_is_forgiven() {
    for (text, value) in [
        ("[1, 2,]", json!([1, 2])),
        (r#"{"a": 1,}"#, json!({"a": 1})),
        ("\"two\nlines\"", json!("two\nlines")),
        (r#""half \ud83d""#, json!("half \u{FFFD}")),
        (r#""half \ud83d\n""#, json!("half \u{FFFD}\n")),
        (r#""\ude00\ud83d\ude00""#, json!("\u{FFFD}😀")),
        (r#""a \d path""#, json!("a \\d path")),
        (r#""\u12""#, json!("\u{FFFD}")),
        (r#"{"a": 1, "a": "last"}"#, json!({"a": "last"})),
    ] {
        let (read, folded) = read(&[text]).unwrap();
        assert_eq!((&read, &folded), (&value, &value), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused_where_it_breaks() {
    for (text, error) in [
        ("{a: 1}", JsonError::Broken(1)),
        (r#"{"a" 1}"#, JsonError::Broken(5)),
        ("[1 2]", JsonError::Broken(3)),
        ("[,]", JsonError::Broken(1)),
        ("[1}", JsonError::Broken(2)),
        ("[tru ]", JsonError::Broken(1)),
        ("[01]", JsonError::Broken(1)),
        (r#"{"a": "b"#, JsonError::Cut(8)),
        ("", JsonError::Cut(0)),
    ] {
        assert_eq!(read(&[text]), Err(error), "{text}");
    }
}

#[test]
fn depth_and_length_have_limits() {
    let mut reader = JsonReader::new(JsonLimits { depth: 3, bytes: 100 });
    assert_eq!(reader.push("[[[[", &mut |_, _| {}), Err(JsonError::TooDeep(3)));
    let mut reader = JsonReader::new(JsonLimits { depth: 3, bytes: 10 });
    assert_eq!(reader.push("\"1234567", &mut |_, _| {}), Ok(8));
    assert_eq!(reader.push("中中", &mut |_, _| {}), Err(JsonError::TooLong(10)));
    let mut reader = JsonReader::new(JsonLimits { depth: 3, bytes: 10 });
    assert_eq!(reader.push("\"12345678\" and more", &mut |_, _| {}), Ok(10), "what comes after the value does not count");
    let digits = "1".repeat(LONGEST_NUMBER + 1);
    assert_eq!(read(&[&digits]), Err(JsonError::Broken(0)));
}

/// Counts what the reader tells: if a growing text were told again from its start, this would be the square of its length.
#[test]
fn a_long_text_in_single_characters_is_told_once() {
    let mut reader = JsonReader::default();
    let mut told = 0;
    let body = "中\\n".repeat(50_000);
    for c in format!("[\"{body}\"]").chars() {
        let mut listener = |_: &[Step], event: JsonEvent<'_>| {
            if let JsonEvent::Append(text) = event {
                told += text.len();
            }
        };
        reader.push(c.encode_utf8(&mut [0; 4]), &mut listener).unwrap();
    }
    assert!(reader.is_whole());
    assert_eq!(told, 50_000 * 4);
}
