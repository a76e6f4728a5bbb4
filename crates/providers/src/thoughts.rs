//! Thoughts that a model writes between tags at the beginning of its reply. Tags further on are part of the text.

/// A tag that opens thoughts, and the one that closes them.
type Tags = (&'static str, &'static str);

const TAGS: [Tags; 3] = [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Splits one reply, in chunks of any size, into its thoughts and the rest.
#[derive(Debug)]
pub(crate) struct Thoughts {
    tags: &'static [Tags],
    state: State,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nothing but blanks has come.
    Start,
    /// In thoughts that this tag closes.
    Inside(&'static str),
    /// Nothing but blanks has come since the last thoughts.
    Between,
    After,
}

/// Only `<think>`: a person may well ask for an answer in other tags.
impl Default for Thoughts {
    fn default() -> Self {
        Self::within(&TAGS[..1])
    }
}

impl Thoughts {
    /// Between any tags that models are known to use.
    pub(crate) fn in_any_tags() -> Self {
        Self::within(&TAGS)
    }

    fn within(tags: &'static [Tags]) -> Self {
        Self { tags, state: State::Start, held: String::new() }
    }

    /// Takes more of the reply and gives what it adds to the thoughts and to the rest.
    pub(crate) fn push(&mut self, text: String) -> (String, String) {
        if let State::After = self.state {
            return (String::new(), text);
        }
        let (mut thoughts, mut rest) = (String::new(), String::new());
        for c in text.chars() {
            match self.state {
                State::After => rest.push(c),
                State::Start if self.held.is_empty() && c.is_whitespace() => rest.push(c),
                // Blanks between thoughts and answer belong to neither.
                State::Between if self.held.is_empty() && c.is_whitespace() => {}
                State::Start | State::Between => {
                    self.held.push(c);
                    let tag = self.tags.iter().find(|(open, _)| begins(open, &self.held));
                    match tag {
                        None => {
                            rest.push_str(&std::mem::take(&mut self.held));
                            self.state = State::After;
                        }
                        Some(_) if c != '>' => {}
                        Some((_, close)) => {
                            self.held.clear();
                            self.state = State::Inside(close);
                        }
                    }
                }
                State::Inside(close) => {
                    self.held.push(c);
                    while !begins(close, &self.held) {
                        thoughts.push(self.held.remove(0));
                    }
                    if self.held.len() == close.len() {
                        self.held.clear();
                        self.state = State::Between;
                    }
                }
            }
        }
        (thoughts, rest)
    }

    /// At the end of the reply: what was held back of the rest, or an error with the last of thoughts that were never closed.
    pub(crate) fn finish(self) -> Result<String, String> {
        if matches!(self.state, State::Inside(_)) { Err(self.held) } else { Ok(self.held) }
    }
}

/// Whether some text closes thoughts.
pub(crate) fn closes(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    TAGS.iter().any(|(_, close)| lower.contains(close))
}

/// Whether a tag begins with some text, in any case.
fn begins(tag: &str, text: &str) -> bool {
    tag.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thoughts and the rest, in chunks of some characters; what is never closed is thoughts.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut thoughts, mut all) = (Thoughts::default(), (String::new(), String::new()));
        let chars: Vec<char> = text.chars().collect();
        for chunk in chars.chunks(size) {
            let (thought, rest) = thoughts.push(chunk.iter().collect());
            all.0.push_str(&thought);
            all.1.push_str(&rest);
        }
        match thoughts.finish() {
            Ok(rest) => all.1.push_str(&rest),
            Err(last) => all.0.push_str(&last),
        }
        all
    }

    #[test]
    fn only_what_stands_between_tags_at_the_beginning_is_split_off() {
        for (text, thoughts, rest) in [
            ("<think>\n因为 2 < 3</think>\n\nThe answer.", "\n因为 2 < 3", "The answer."),
            (" <THINK>a</think> <think>b</think> c ", "ab", " c "),
            ("<think>never closed </thin", "never closed </thin", ""),
            ("Use `<think>a</think>`.", "", "Use `<think>a</think>`."),
            ("<think>a</think>Write <think>b</think>", "a", "Write <think>b</think>"),
            ("<thin", "", "<thin"),
            ("<thinking>a</thinking>b", "", "<thinking>a</thinking>b"),
            ("<think></think>", "", ""),
            ("", "", ""),
        ] {
            for size in [1, 2, 3, 5, 100] {
                assert_eq!(split(text, size), (thoughts.to_owned(), rest.to_owned()), "{text:?} by {size}");
            }
        }
    }
}
