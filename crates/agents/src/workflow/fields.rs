//! Reads typed fields out of a model's object and collects everything that is wrong with them, so that the model is told once.

use serde_json::{Map, Value};

use super::repair;

/// A reply that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    /// What it says.
    pub response: T,
    /// It had to be repaired: words around it, a comma too many, a number in quotes …
    pub is_repaired: bool,
}

/// A reply that could not be read. The text is meant for the model that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Your reply could not be used. It must be one JSON object with \"type\": \"component\" and \"component\": \"{component}\".\n\
     What is wrong:\n{}\n\
     Write the whole corrected object again: JSON alone, no words around it.",
    .problems.iter().map(|problem| format!("- {problem}")).collect::<Vec<_>>().join("\n")
)]
pub struct Unreadable {
    /// The component that was expected.
    pub component: &'static str,
    /// One line each: where, what is there, what must be there.
    pub problems: Vec<String>,
}

/// A field as it was found.
pub(super) enum Field<T> {
    Is(T),
    Missing,
    /// Of another kind, which is a problem already.
    Wrong,
}

impl<T> Field<T> {
    pub(super) fn ok(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Missing | Self::Wrong => None,
        }
    }
}

/// One reading of one reply.
pub(super) struct Reading {
    component: &'static str,
    problems: Vec<String>,
    is_repaired: bool,
}

/// Most bytes of a reply. What must be longer belongs into a file.
const MOST_REPLY_BYTES: usize = 192 * 1024;

/// Most elements of a list.
const MOST_ELEMENTS: usize = 1_000;

/// Most problems that a model is told at once.
const MOST_PROBLEMS: usize = 30;

impl Reading {
    /// A reading of something that is an object already.
    pub(super) fn of(component: &'static str) -> Self {
        Self { component, problems: Vec::new(), is_repaired: false }
    }

    /// Finds the object of a reply.
    pub(super) fn begin(
        text: &str,
        component: &'static str,
        fields: &[&str],
    ) -> Result<(Self, Map<String, Value>), Unreadable> {
        if text.len() > MOST_REPLY_BYTES {
            let problem = format!(
                "the reply has {} bytes; at most {MOST_REPLY_BYTES} are allowed: write a shorter one, and put what is long into a file",
                text.len()
            );
            return Err(Unreadable { component, problems: vec![problem] });
        }
        let found =
            repair::find(text, component, fields).map_err(|problem| Unreadable { component, problems: vec![problem] })?;
        let mut reading = Self { component, problems: Vec::new(), is_repaired: found.is_repaired };
        let mut object = found.object;
        reading.check_constant(&object, "type", "component");
        reading.check_constant(&object, "component", component);
        if !fields.iter().any(|field| object.contains_key(*field))
            && let Some(Value::Object(props)) = object.remove("props")
        {
            reading.is_repaired = true;
            object = props;
        }
        Ok((reading, object))
    }

    fn check_constant(&mut self, object: &Map<String, Value>, name: &str, expected: &str) {
        match object.get(name) {
            None => self.is_repaired = true,
            Some(value) if value == expected => {}
            Some(value) => self.problem(name, &format!("must be \"{expected}\", but is {}", shown(value))),
        }
    }

    /// Notes something that is wrong.
    pub(super) fn problem(&mut self, at: &str, what: &str) {
        self.problems.push(format!("{at}: {what}"));
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    /// Notes that something was read another way than it was written.
    pub(super) fn repaired(&mut self) {
        self.is_repaired = true;
    }

    /// The value, or a problem if it is missing.
    pub(super) fn need<T>(&mut self, field: Field<T>, at: &str, expected: &str) -> Option<T> {
        if matches!(field, Field::Missing) {
            self.problem(at, &format!("is missing; must be {expected}"));
        }
        field.ok()
    }

    fn wrong<T>(&mut self, at: &str, expected: &str, value: &Value) -> Field<T> {
        self.problem(at, &format!("must be {expected}, but is {}", shown(value)));
        Field::Wrong
    }

    /// A text of at most so many characters.
    pub(super) fn text(&mut self, value: Option<&Value>, at: &str, most: usize) -> Field<String> {
        match value {
            None | Some(Value::Null) => Field::Missing,
            Some(Value::String(text)) if text.len() > most && text.chars().count() > most => {
                let count = text.chars().count();
                self.problem(at, &format!("has {count} characters; at most {most} are allowed, so write it shorter"));
                Field::Wrong
            }
            Some(Value::String(text)) => Field::Is(text.clone()),
            Some(Value::Number(number)) => {
                self.repaired();
                Field::Is(number.to_string())
            }
            Some(other) => self.wrong(at, "a text", other),
        }
    }

    /// A text that says something.
    pub(super) fn words(&mut self, value: Option<&Value>, at: &str, most: usize) -> Option<String> {
        let text = self.text(value, at, most);
        let text = self.need(text, at, "a text")?;
        if text.trim().is_empty() {
            self.problem(at, "is empty");
            return None;
        }
        Some(text)
    }

    pub(super) fn flag(&mut self, value: Option<&Value>, at: &str) -> Field<bool> {
        let in_quotes = |text: &str| match () {
            () if text.eq_ignore_ascii_case("true") => Some(true),
            () if text.eq_ignore_ascii_case("false") => Some(false),
            () => None,
        };
        match value {
            None | Some(Value::Null) => Field::Missing,
            Some(Value::Bool(flag)) => Field::Is(*flag),
            Some(other) => match other.as_str().and_then(in_quotes) {
                Some(flag) => {
                    self.repaired();
                    Field::Is(flag)
                }
                None => self.wrong(at, "true or false", other),
            },
        }
    }

    /// A whole number from 1 up.
    pub(super) fn count(&mut self, value: Option<&Value>, at: &str) -> Field<u32> {
        const EXPECTED: &str = "a whole number from 1 up";
        let whole = |number: u64| u32::try_from(number).ok().filter(|&number| number > 0);
        let loose = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok().and_then(whole),
            Value::Number(number) => {
                number.as_f64().filter(|number| number.fract() == 0.0 && *number > 0.0).and_then(|number| whole(number as u64))
            }
            _ => None,
        };
        match value {
            None | Some(Value::Null) => Field::Missing,
            Some(value) => match (value.as_u64().and_then(whole), loose(value)) {
                (Some(number), _) => Field::Is(number),
                (None, Some(number)) => {
                    self.repaired();
                    Field::Is(number)
                }
                (None, None) => self.wrong(at, EXPECTED, value),
            },
        }
    }

    /// One of some words, or a word that means one of them.
    pub(super) fn choice<T>(
        &mut self,
        value: Option<&Value>,
        at: &str,
        names: &[&str],
        read: impl Fn(&str) -> Option<T>,
        read_loosely: impl Fn(&str) -> Option<T>,
    ) -> Field<T> {
        let expected = || format!("one of {}", names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "));
        match value {
            None | Some(Value::Null) => Field::Missing,
            Some(Value::String(word)) => match (read(word), read_loosely(&word.trim().to_lowercase())) {
                (Some(choice), _) => Field::Is(choice),
                (None, Some(choice)) => {
                    self.repaired();
                    Field::Is(choice)
                }
                (None, None) => self.wrong(at, &expected(), &Value::String(word.clone())),
            },
            Some(other) => self.wrong(at, &expected(), other),
        }
    }

    pub(super) fn list<'a>(&mut self, value: Option<&'a Value>, at: &str) -> Field<&'a [Value]> {
        match value {
            None | Some(Value::Null) => Field::Missing,
            Some(Value::Array(elements)) if elements.len() > MOST_ELEMENTS => {
                self.problem(at, &format!("has {} elements; at most {MOST_ELEMENTS} are allowed", elements.len()));
                Field::Wrong
            }
            Some(Value::Array(elements)) => Field::Is(elements),
            Some(other) => self.wrong(at, "a list", other),
        }
    }

    /// A list of texts of at most so many characters; a single one may stand alone.
    pub(super) fn texts(&mut self, value: Option<&Value>, at: &str, most: usize) -> Field<Vec<String>> {
        if let Some(Value::String(one)) = value {
            self.repaired();
            return match one.trim().is_empty() {
                true => Field::Is(vec![]),
                false => self.words(value, at, most).map_or(Field::Wrong, |one| Field::Is(vec![one])),
            };
        }
        let elements = match self.list(value, at) {
            Field::Is(elements) => elements,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let texts = elements
            .iter()
            .enumerate()
            .filter_map(|(index, element)| self.words(Some(element), &format!("{at}[{index}]"), most));
        Field::Is(texts.collect())
    }

    /// Each object of a list, with its place in words.
    pub(super) fn objects<'a>(&mut self, elements: &'a [Value], at: &str) -> Vec<(String, &'a Map<String, Value>)> {
        let mut objects = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let at = format!("{at}[{index}]");
            match element {
                Value::Object(object) => objects.push((at, object)),
                other => {
                    let _: Field<()> = self.wrong(&at, "an object", other);
                }
            }
        }
        objects
    }

    /// The response, unless something is wrong.
    pub(super) fn end<T>(mut self, response: Option<T>) -> Result<Parsed<T>, Unreadable> {
        if self.problems.len() > MOST_PROBLEMS {
            let more = self.problems.len() - MOST_PROBLEMS;
            self.problems.truncate(MOST_PROBLEMS);
            self.problems.push(format!("and {more} more of the kind"));
        }
        match response {
            Some(response) if self.problems.is_empty() => Ok(Parsed { response, is_repaired: self.is_repaired }),
            _ => Err(Unreadable { component: self.component, problems: self.problems }),
        }
    }
}

/// A value as an error shows it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
