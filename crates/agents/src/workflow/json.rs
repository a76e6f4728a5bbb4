//! Reads JSON as it arrives, in chunks of any size, and tells what has come, by path. It never reads anything twice, so the
//! whole costs as much as the text is long. It forgives what a reader can pass over (a comma too many, a raw line break in
//! a text); it does not repair.

use serde_json::{Map, Number, Value};

/// How much a [`JsonReader`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Most objects and lists inside each other.
    pub depth: usize,
    /// Most bytes of text.
    pub bytes: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self { depth: 64, bytes: 1 << 20 }
    }
}

/// One step from a value into what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A field of an object.
    Key(String),
    /// An element of a list, from 0.
    Index(usize),
}

/// What has come at a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonEvent<'a> {
    /// An object, a list or a text begins.
    Open(Opened),
    /// A text grows by this.
    Append(&'a str),
    /// The value is whole.
    Done(&'a Value),
}

/// What begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// `{`
    Object,
    /// `[`
    List,
    /// `"`
    Text,
}

/// Why reading ended. The number is the byte of the whole text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// This is no JSON.
    #[error("no JSON at byte {0}")]
    Broken(usize),
    /// More than one object or list inside another than is allowed.
    #[error("too many objects and lists inside each other at byte {0}")]
    TooDeep(usize),
    /// Longer than is allowed.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The text ended before the value did.
    #[error("it ends at byte {0}, before the value is whole")]
    Cut(usize),
}

/// Whoever is told about events.
pub type Listener<'a> = dyn FnMut(&[Step], JsonEvent<'_>) + 'a;

/// Longest number that is read.
const LONGEST_NUMBER: usize = 1024;

/// Takes one JSON value in chunks.
#[derive(Debug, Default)]
pub struct JsonReader {
    limits: JsonLimits,
    taken: usize,
    state: State,
    open: Vec<Container>,
    path: Vec<Step>,
    /// The text, key, number or word that is being read.
    text: String,
    /// How much of a growing text was told.
    told: usize,
    escape: Escape,
    /// The first half of a pair of `\u` escapes.
    high: Option<u16>,
    whole: Option<Value>,
}

#[derive(Debug)]
enum Container {
    Object(Map<String, Value>),
    List(Vec<Value>),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Value,
    ElementOrEnd,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Key,
    Text,
    Number,
    Word,
    Whole,
}

#[derive(Debug, Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    Begun,
    Hex {
        digits: u8,
        value: u16,
    },
}

impl JsonReader {
    /// A reader that takes so much.
    pub fn new(limits: JsonLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether the value is whole. What comes after it is not read.
    pub fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Bytes that were read so far.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Takes more text, tells what has come, and returns how many bytes of it belong to the value. A number at the top ends
    /// with [`JsonReader::finish`]. After an error the reader is of no more use.
    pub fn push(&mut self, chunk: &str, listener: &mut Listener<'_>) -> Result<usize, JsonError> {
        let allowed = chunk.floor_char_boundary(self.limits.bytes - self.taken);
        let mut at = 0;
        while at < allowed && self.state != State::Whole {
            at += self.step(&chunk[at..allowed], self.taken + at, listener)?;
        }
        if at < chunk.len() && self.state != State::Whole {
            return Err(JsonError::TooLong(self.limits.bytes));
        }
        self.taken += at;
        if self.state == State::Text {
            self.tell_growth(listener);
        }
        Ok(at)
    }

    /// Ends the text and gives the value.
    pub fn finish(mut self, listener: &mut Listener<'_>) -> Result<Value, JsonError> {
        if self.open.is_empty() && matches!(self.state, State::Number | State::Word) {
            let scalar = self.scalar(self.taken)?;
            self.complete(scalar, listener);
        }
        self.whole.ok_or(JsonError::Cut(self.taken))
    }

    /// Reads some of `rest`, at least one byte unless the state changed, and returns how much.
    fn step(&mut self, rest: &str, place: usize, listener: &mut Listener<'_>) -> Result<usize, JsonError> {
        let byte = rest.as_bytes()[0];
        match self.state {
            State::Key | State::Text => return Ok(self.read_text(rest, listener)),
            State::Number | State::Word => return self.read_scalar(rest, place, listener),
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            State::Value | State::ElementOrEnd => match byte {
                b']' if self.state == State::ElementOrEnd => self.close(listener),
                _ => return self.begin(byte, place, listener),
            },
            State::KeyOrEnd => match byte {
                b'"' => self.state = State::Key,
                b'}' => self.close(listener),
                _ => return Err(JsonError::Broken(place)),
            },
            State::Colon if byte == b':' => self.state = State::Value,
            State::CommaOrEnd => match (byte, self.open.last()) {
                (b',', Some(Container::Object(_))) => self.state = State::KeyOrEnd,
                (b',', Some(Container::List(_))) => self.state = State::ElementOrEnd,
                (b'}', Some(Container::Object(_))) | (b']', Some(Container::List(_))) => self.close(listener),
                _ => return Err(JsonError::Broken(place)),
            },
            State::Colon | State::Whole => return Err(JsonError::Broken(place)),
        }
        Ok(1)
    }

    fn begin(&mut self, byte: u8, place: usize, listener: &mut Listener<'_>) -> Result<usize, JsonError> {
        if !matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') {
            return Err(JsonError::Broken(place));
        }
        if let Some(Container::List(elements)) = self.open.last() {
            self.path.push(Step::Index(elements.len()));
        }
        if matches!(byte, b'{' | b'[') && self.open.len() >= self.limits.depth {
            return Err(JsonError::TooDeep(place));
        }
        match byte {
            b'{' => {
                listener(&self.path, JsonEvent::Open(Opened::Object));
                self.open.push(Container::Object(Map::new()));
                self.state = State::KeyOrEnd;
            }
            b'[' => {
                listener(&self.path, JsonEvent::Open(Opened::List));
                self.open.push(Container::List(Vec::new()));
                self.state = State::ElementOrEnd;
            }
            b'"' => {
                listener(&self.path, JsonEvent::Open(Opened::Text));
                self.state = State::Text;
            }
            b'-' | b'0'..=b'9' => {
                self.state = State::Number;
                return Ok(0);
            }
            _ => {
                self.state = State::Word;
                return Ok(0);
            }
        }
        Ok(1)
    }

    fn close(&mut self, listener: &mut Listener<'_>) {
        match self.open.pop() {
            Some(Container::Object(fields)) => self.complete(Value::Object(fields), listener),
            Some(Container::List(elements)) => self.complete(Value::Array(elements), listener),
            None => {}
        }
    }

    fn complete(&mut self, value: Value, listener: &mut Listener<'_>) {
        listener(&self.path, JsonEvent::Done(&value));
        self.state = State::CommaOrEnd;
        match (self.open.last_mut(), self.path.pop()) {
            (Some(Container::Object(fields)), Some(Step::Key(key))) => {
                fields.insert(key, value);
            }
            (Some(Container::List(elements)), _) => elements.push(value),
            _ => {
                self.whole = Some(value);
                self.state = State::Whole;
            }
        }
    }

    fn read_scalar(&mut self, rest: &str, place: usize, listener: &mut Listener<'_>) -> Result<usize, JsonError> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.bytes().position(|byte| !is_part(&byte)).unwrap_or(rest.len());
        self.text.push_str(&rest[..length]);
        if self.text.len() > LONGEST_NUMBER {
            return Err(JsonError::Broken(place + length - self.text.len()));
        }
        if length < rest.len() {
            let scalar = self.scalar(place + length)?;
            self.complete(scalar, listener);
        }
        Ok(length)
    }

    /// The number or word that ends before byte `end`. One that is neither is broken where it begins, in whatever
    /// chunks it came.
    fn scalar(&mut self, end: usize) -> Result<Value, JsonError> {
        let text = std::mem::take(&mut self.text);
        match &*text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            number => {
                serde_json::from_str::<Number>(number).map(Value::Number).map_err(|_| JsonError::Broken(end - text.len()))
            }
        }
    }

    /// Reads a run of plain characters, or one character of an escape, or the end of the text.
    fn read_text(&mut self, rest: &str, listener: &mut Listener<'_>) -> usize {
        if !matches!(self.escape, Escape::None) {
            return self.read_escape(rest);
        }
        match rest.as_bytes()[0] {
            b'\\' => {
                self.escape = Escape::Begun;
                1
            }
            b'"' => {
                self.settle_high();
                self.end_text(listener);
                1
            }
            _ => {
                self.settle_high();
                let run = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
                self.text.push_str(&rest[..run]);
                run
            }
        }
    }

    fn read_escape(&mut self, rest: &str) -> usize {
        let Some(c) = rest.chars().next() else { return 0 };
        let plain = match (self.escape, c) {
            (Escape::Hex { digits, value }, _) => {
                let Some(digit) = c.to_digit(16) else {
                    self.put('\u{FFFD}');
                    self.escape = Escape::None;
                    return 0;
                };
                let value = value << 4 | digit as u16;
                self.escape = Escape::Hex { digits: digits + 1, value };
                if digits == 3 {
                    self.put_unit(value);
                    self.escape = Escape::None;
                }
                return c.len_utf8();
            }
            (_, 'u') => {
                self.escape = Escape::Hex { digits: 0, value: 0 };
                return 1;
            }
            (_, 'b') => '\u{8}',
            (_, 'f') => '\u{c}',
            (_, 'n') => '\n',
            (_, 'r') => '\r',
            (_, 't') => '\t',
            (_, '"' | '\\' | '/') => c,
            _ => {
                self.put('\\');
                c
            }
        };
        self.put(plain);
        self.escape = Escape::None;
        c.len_utf8()
    }

    fn put(&mut self, c: char) {
        self.settle_high();
        self.text.push(c);
    }

    /// One unit of UTF-16. Halves that have no other half become U+FFFD.
    fn put_unit(&mut self, unit: u16) {
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
                self.text.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
            }
            (high, unit) => {
                if high.is_some() {
                    self.text.push('\u{FFFD}');
                }
                match unit {
                    0xD800..=0xDBFF => self.high = Some(unit),
                    _ => self.text.push(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}')),
                }
            }
        }
    }

    fn settle_high(&mut self) {
        if self.high.take().is_some() {
            self.text.push('\u{FFFD}');
        }
    }

    fn end_text(&mut self, listener: &mut Listener<'_>) {
        if self.state == State::Key {
            self.path.push(Step::Key(std::mem::take(&mut self.text)));
            self.state = State::Colon;
            return;
        }
        self.tell_growth(listener);
        self.told = 0;
        let text = std::mem::take(&mut self.text);
        self.complete(Value::String(text), listener);
    }

    fn tell_growth(&mut self, listener: &mut Listener<'_>) {
        if self.told < self.text.len() {
            listener(&self.path, JsonEvent::Append(&self.text[self.told..]));
            self.told = self.text.len();
        }
    }
}

#[cfg(test)]
mod tests;
