//! Reads the JSON form while it is being written: the answer's text goes out as it comes, a call when it is whole.
//!
//! What stands around the object is skipped, such as fences, and a trailing comma is forgiven. A reply without any form is an
//! answer in plain text, if the request leaves room for one.

use polis_domain::{Finish, ToolCall};
use polis_ports::{ModelError, ModelRequest, ToolChoice};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::End;
use super::schema::{ANSWER, NAME, PARAMETERS};
use crate::thoughts::closes;

/// Blanks in a row outside of strings, more than any layout needs. Some models go on with them for ever.
const MOST_BLANKS: usize = 120;

/// Longest quotation of an unreadable reply, in characters.
const MAX_QUOTED_CHARS: usize = 400;

/// Reads one reply, in chunks of any size.
#[derive(Debug, Default)]
pub(super) struct Reader {
    state: State,
    name: String,
    parameters: String,
    /// Whether it has keys that mean nothing here.
    has_others: bool,
    answered: bool,
    blanks: usize,
    /// What came behind the object.
    behind: String,
    /// All that came: a plain answer, or the quotation that says why it could not be read.
    raw: String,
    plain: PlainText,
}

/// What a reply that keeps to no form may be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainText {
    /// The answer.
    #[default]
    Answer,
    /// The answer, if it is the JSON that the request asks for.
    Json,
    /// Nothing: a call is wanted.
    Nothing,
}

impl PlainText {
    /// What the request leaves room for.
    pub(super) fn of(request: &ModelRequest) -> Self {
        match (&request.tool_choice, &request.format) {
            (ToolChoice::Required | ToolChoice::Named(_), _) => Self::Nothing,
            (ToolChoice::Auto | ToolChoice::None, Some(_)) => Self::Json,
            (ToolChoice::Auto | ToolChoice::None, None) => Self::Answer,
        }
    }

    /// The answer in a reply without a form, if it is one.
    fn answer(self, raw: &str) -> Option<&str> {
        let text = raw.trim();
        let fenced = text.strip_prefix("```json").or(text.strip_prefix("```"));
        let json = fenced.map_or(text, |text| text.strip_suffix("```").unwrap_or(text)).trim();
        // JSON of another form is a call that nobody can make.
        let is_form = json.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'));
        match self {
            Self::Answer => Some(text).filter(|text| !text.is_empty() && !is_form),
            Self::Json => Some(json).filter(|json| serde_json::from_str::<IgnoredAny>(json).is_ok()),
            Self::Nothing => None,
        }
    }
}

#[derive(Debug, Default)]
enum State {
    /// The object has not begun.
    #[default]
    Before,
    /// A key comes next, or the end.
    Key(Place),
    InKey(Place, String),
    Colon(Field),
    Value(Field),
    /// In the string of the answer.
    Text(Escape),
    /// In any other value.
    Raw(Field, Nesting),
    /// A comma comes next, or the end.
    AfterValue,
    Closed,
    /// It is no JSON.
    Lost,
}

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Answer,
    Name,
    Parameters,
    Other,
}

#[derive(Debug, Default)]
enum Escape {
    #[default]
    None,
    Backslash {
        high: Option<u32>,
    },
    Unicode {
        high: Option<u32>,
        code: u32,
        digits: u8,
    },
    /// The first half of a pair, which needs a second.
    Half(u32),
}

#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Reader {
    /// A reader of one reply, which may be plain text as far as the request allows.
    pub(super) fn new(plain: PlainText) -> Self {
        Self { plain, ..Self::default() }
    }

    /// Takes more of the reply and gives what it adds to the answer; an error when it will never end.
    pub(super) fn push(&mut self, text: &str) -> Result<String, String> {
        let mut answer_text = String::new();
        self.raw.push_str(text);
        for c in text.chars() {
            self.step(c, &mut answer_text);
            if self.blanks > MOST_BLANKS {
                return Err(format!("the model writes nothing but blanks after {}", quote(self.raw.trim_end())));
            }
        }
        Ok(answer_text)
    }

    /// What the whole reply came to.
    pub(super) fn finish(mut self, finish: Finish) -> Result<End, ModelError> {
        if matches!(finish, Finish::ContentFilter | Finish::Refusal | Finish::Other(_)) {
            let streamed = self.answered || !matches!(self.state, State::Before | State::Lost);
            return Ok(if streamed { End::Answered(finish) } else { End::Raw(self.raw, finish) });
        }
        let failed = |why: &str, raw: &str| ModelError::Failed {
            reason: format!("the model did not keep to the form of a reply, {why}: {}", quote(raw)),
            retry_after: None,
        };
        match (&self.state, &finish) {
            // Some models leave out the tag that opens their thoughts.
            (State::Closed, _) if !self.name.is_empty() && closes(&self.behind) => {
                Err(failed("the call stands among its thoughts", &self.raw))
            }
            (State::Closed, _) if !self.name.is_empty() && self.parameters.is_empty() && self.has_others => {
                Err(failed("the parameters stand beside the name", &self.raw))
            }
            (State::Closed, _) if !self.name.is_empty() => {
                let Some(arguments) = arguments(&self.parameters) else {
                    return Err(failed("the parameters are no JSON object", &self.raw));
                };
                match serde_json::from_str::<String>(&self.name) {
                    Ok(name) if !name.is_empty() => {
                        Ok(End::Called(ToolCall { id: "".into(), name: name.into(), arguments: arguments.into() }))
                    }
                    Ok(_) | Err(_) => Err(failed("the tool has no name", &self.raw)),
                }
            }
            (State::Closed, _) if !self.answered => Err(failed("it names no tool and gives no answer", &self.raw)),
            // The answer is whole, only the last bracket is missing.
            (State::Closed | State::AfterValue | State::Key(_), _) if self.answered && self.name.is_empty() => {
                Ok(End::Answered(Finish::Stop))
            }
            (State::Text(_), Finish::Length) => Ok(End::Answered(Finish::Length)),
            (State::Before, _) if let Some(answer) = self.plain.answer(&self.raw) => {
                let finish = if finish == Finish::Length { finish } else { Finish::Stop };
                Ok(End::Raw(answer.to_owned(), finish))
            }
            (State::Before | State::Lost, Finish::Stop | Finish::ToolCalls) => {
                let is_json = serde_json::from_str::<IgnoredAny>(self.raw.trim()).is_ok();
                Err(failed(if is_json { "it names no tool and gives no answer" } else { "it is no JSON" }, &self.raw))
            }
            (_, Finish::Length) => {
                let raw = quote(&self.raw);
                Err(ModelError::Cut { reason: format!("the model ran into the token limit before its reply was whole: {raw}") })
            }
            (_, _) => {
                let raw = quote(std::mem::take(&mut self.raw).as_str());
                Err(ModelError::Cut { reason: format!("the model stopped before its reply was whole: {raw}") })
            }
        }
    }

    fn step(&mut self, c: char, answer_text: &mut String) {
        let is_blank = matches!(c, ' ' | '\n' | '\r' | '\t');
        let in_string = matches!(&self.state, State::Text(_) | State::InKey(..) | State::Closed)
            || matches!(&self.state, State::Raw(_, nesting) if nesting.in_string);
        self.blanks = if is_blank && !in_string { self.blanks + 1 } else { 0 };
        self.state = match std::mem::take(&mut self.state) {
            State::Before if c == '{' => State::Key(Place::First),
            State::Before => State::Before,
            State::Lost => State::Lost,
            State::Closed => {
                self.behind.push(c);
                State::Closed
            }
            State::Key(place) if is_blank => State::Key(place),
            State::AfterValue if is_blank => State::AfterValue,
            State::Colon(field) if is_blank => State::Colon(field),
            State::Value(field) if is_blank => State::Value(field),
            State::Key(place) if c == '"' => State::InKey(place, String::new()),
            State::Key(Place::Later) if c == '}' => State::Closed,
            // Braces in what stands before the object.
            State::Key(Place::First) => {
                if c == '{' {
                    State::Key(Place::First)
                } else {
                    State::Before
                }
            }
            State::InKey(place, key) if c == '"' => match (Field::named(&key), place) {
                // An example in what stands before it.
                (Field::Other, Place::First) => State::Before,
                (field, _) => State::Colon(field),
            },
            State::InKey(place, mut key) => {
                key.push(c);
                State::InKey(place, key)
            }
            State::Colon(field) if c == ':' => State::Value(field),
            State::Value(Field::Answer) if c == '"' => {
                self.answered = true;
                State::Text(Escape::None)
            }
            State::Value(field) if !matches!(c, ',' | '}' | ']' | ':') => {
                self.answered |= field == Field::Answer;
                self.has_others |= field == Field::Other;
                if field == Field::Parameters {
                    self.parameters.clear();
                } else if field == Field::Name {
                    self.name.clear();
                }
                self.raw_value(field, Nesting::default(), c, answer_text)
            }
            State::Text(escape) => string_state(escape, c, answer_text),
            State::Raw(field, nesting) => self.raw_value(field, nesting, c, answer_text),
            State::AfterValue if c == ',' => State::Key(Place::Later),
            State::AfterValue if c == '}' => State::Closed,
            State::Key(Place::Later) | State::AfterValue | State::Colon(_) | State::Value(_) => State::Lost,
        };
    }

    /// One more character of a value that is taken as it is.
    fn raw_value(&mut self, field: Field, mut nesting: Nesting, c: char, answer_text: &mut String) -> State {
        let is_first = nesting.depth == 0 && !nesting.in_string;
        if is_first && matches!(c, ',' | '}' | ' ' | '\n' | '\r' | '\t') {
            // A number or a word has no end of its own.
            return match c {
                ',' => State::Key(Place::Later),
                '}' => State::Closed,
                _ => State::AfterValue,
            };
        }
        match field {
            Field::Answer => answer_text.push(c),
            Field::Name => self.name.push(c),
            Field::Parameters => self.parameters.push(c),
            Field::Other => {}
        }
        if nesting.in_string {
            nesting.in_string = nesting.escaped || c != '"';
            nesting.escaped = !nesting.escaped && c == '\\';
        } else {
            match c {
                '"' => nesting.in_string = true,
                '{' | '[' => nesting.depth += 1,
                '}' | ']' if nesting.depth == 0 => return State::Lost,
                '}' | ']' => nesting.depth -= 1,
                _ => return State::Raw(field, nesting),
            }
        }
        let is_whole = nesting.depth == 0 && !nesting.in_string;
        if is_whole { State::AfterValue } else { State::Raw(field, nesting) }
    }
}

impl Field {
    fn named(key: &str) -> Self {
        match key {
            ANSWER => Self::Answer,
            // Some models write the keys of other forms that they have seen.
            NAME | "tool" | "tool_name" | "function" => Self::Name,
            PARAMETERS | "arguments" | "args" | "input" => Self::Parameters,
            _ => Self::Other,
        }
    }
}

/// One more character of the answer's string.
fn string_state(escape: Escape, c: char, answer_text: &mut String) -> State {
    let lone = |high: Option<u32>, answer_text: &mut String| {
        if high.is_some() {
            answer_text.push(char::REPLACEMENT_CHARACTER);
        }
    };
    State::Text(match escape {
        Escape::None | Escape::Half(_) if c == '\\' => {
            Escape::Backslash { high: if let Escape::Half(high) = escape { Some(high) } else { None } }
        }
        Escape::None | Escape::Half(_) => {
            lone(if let Escape::Half(high) = escape { Some(high) } else { None }, answer_text);
            if c == '"' {
                return State::AfterValue;
            }
            answer_text.push(c);
            Escape::None
        }
        Escape::Backslash { high } if c == 'u' => Escape::Unicode { high, code: 0, digits: 0 },
        Escape::Backslash { high } => {
            lone(high, answer_text);
            answer_text.push(match c {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                other => other,
            });
            Escape::None
        }
        Escape::Unicode { high, code, digits } => {
            let Some(digit) = c.to_digit(16) else { return State::Lost };
            let code = code * 16 + digit;
            if digits < 3 {
                return State::Text(Escape::Unicode { high, code, digits: digits + 1 });
            }
            match (high, code) {
                (Some(high), 0xDC00..=0xDFFF) => {
                    let pair = 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                    answer_text.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
                    Escape::None
                }
                (high, 0xD800..=0xDBFF) => {
                    lone(high, answer_text);
                    Escape::Half(code)
                }
                (high, code) => {
                    lone(high, answer_text);
                    answer_text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    Escape::None
                }
            }
        }
    })
}

/// The parameters as a JSON object; those that are missing are none, and trailing commas or quotes around the whole are mended.
fn arguments(raw: &str) -> Option<String> {
    if raw.is_empty() {
        return Some("{}".to_owned());
    }
    let object = |text: &str| matches!(serde_json::from_str(text), Ok(Value::Object(_)));
    if object(raw) {
        return Some(raw.to_owned());
    }
    let quoted = serde_json::from_str::<String>(raw).ok();
    let mended = without_trailing_commas(quoted.as_deref().unwrap_or(raw));
    object(&mended).then_some(mended)
}

fn without_trailing_commas(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in json.char_indices() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c == '"' {
            in_string = true;
        } else if c == ',' && json[at + 1..].trim_start().starts_with(['}', ']']) {
            continue;
        }
        mended.push(c);
    }
    mended
}

/// A reply in one line, not too long.
fn quote(raw: &str) -> String {
    let mut text: String = raw.chars().take(MAX_QUOTED_CHARS).collect();
    if text.len() < raw.len() {
        text.push('…');
    }
    format!("`{}`", text.replace('\n', " "))
}
