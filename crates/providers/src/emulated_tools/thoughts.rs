//! Thoughts that a model writes into its reply before the form, between tags. No form is read in them.

/// Tags that thoughts stand between.
const TAGS: [(&str, &str); 3] = [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Parts one reply, in chunks of any size, into its thoughts and the rest.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    state: State,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Nothing but blanks and thoughts has come.
    #[default]
    Before,
    /// In thoughts that this tag closes.
    Inside(&'static str),
    After,
}

impl Thoughts {
    /// Takes more of the reply and gives what it adds to the thoughts and to the rest.
    pub(super) fn push(&mut self, text: &str) -> (String, String) {
        let (mut thoughts, mut rest) = (String::new(), String::new());
        for c in text.chars() {
            match self.state {
                State::After => rest.push(c),
                State::Before if self.held.is_empty() && c.is_whitespace() => rest.push(c),
                State::Before => {
                    self.held.push(c);
                    let tag = TAGS.iter().find(|(open, _)| begins(open, &self.held));
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
                        self.state = State::Before;
                    }
                }
            }
        }
        (thoughts, rest)
    }

    /// At the end of the reply: what was held back of the rest, or an error with the last of thoughts that were never closed.
    pub(super) fn finish(self) -> Result<String, String> {
        if matches!(self.state, State::Inside(_)) { Err(self.held) } else { Ok(self.held) }
    }
}

/// Whether some text closes thoughts.
pub(super) fn closes(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    TAGS.iter().any(|(_, close)| lower.contains(close))
}

/// Whether a tag begins with some text, in any case.
fn begins(tag: &str, text: &str) -> bool {
    tag.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}
