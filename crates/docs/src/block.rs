//! The code blocks of a page with what is said about them. Tests write, run, parse or compile each one; this only finds them.

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// `sh`, `toml`; empty if none is given.
    pub language: String,
    /// Its lines.
    pub text: String,
    /// The line of the page that opens it, from 1.
    pub line: usize,
    /// What comments before it say, such as `not run: a drawing`: a word and its text.
    pub marks: Vec<(String, String)>,
    /// The file that it is, if a comment says so (`file: src/main.rs`) or the sentence before it ends with the name.
    pub file: Option<String>,
}

impl Block {
    /// What a comment before it says after this word.
    #[must_use]
    pub fn mark(&self, word: &str) -> Option<&str> {
        self.marks.iter().find(|(it, _)| it == word).map(|(_, text)| text.as_str())
    }

    /// All blocks of a page, in order.
    #[must_use]
    pub fn all(page: &str) -> Vec<Self> {
        let (mut blocks, mut marks, mut before) = (Vec::new(), Vec::new(), "");
        let mut lines = (1..).zip(page.lines());
        while let Some((line, text)) = lines.next() {
            let indent = text.len() - text.trim_start().len();
            let text = text.trim();
            if let Some(language) = text.strip_prefix("```") {
                let content = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
                let content = content.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
                let (marks, before): (Vec<(String, String)>, _) = (std::mem::take(&mut marks), std::mem::take(&mut before));
                let marked = marks.iter().find(|(word, _)| word == "file").map(|(_, name)| name.clone());
                let file = marked.or_else(|| file(before));
                blocks.push(Self { language: language.to_owned(), text: content, line, marks, file });
            } else if let Some(mark) = text.strip_prefix("<!-- ").and_then(|text| text.strip_suffix(" -->")) {
                marks.extend(mark.split_once(": ").map(|(word, text)| (word.to_owned(), text.to_owned())));
            } else if !text.is_empty() {
                before = text;
                marks.clear();
            }
        }
        blocks
    }
}

/// Commands of a page for a shell, and what the page says that they print: `# → …` behind a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What a shell runs.
    pub text: String,
    /// What each command prints that says so, in order.
    pub wanted: Vec<String>,
}

/// Printed after each command that says what it prints, to tell its output from that of the next.
const MARK: &str = "=-=-=";

impl Script {
    /// The script of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut script = Self { text: String::new(), wanted: Vec::new() };
        for line in text.lines() {
            script.text += &format!("{line}\n");
            if let Some((_, prints)) = line.split_once("# → ") {
                script.wanted.push(prints.trim().to_owned());
                script.text += &format!("echo {MARK}\n");
            }
        }
        script
    }

    /// What was printed is what the page says; gives it without our marks.
    ///
    /// # Errors
    ///
    /// The first part that was not printed, with what was.
    pub fn check(&self, printed: &str) -> Result<String, String> {
        for (wanted, printed) in self.wanted.iter().zip(printed.split(MARK)) {
            Self::in_order(printed, [wanted.as_str()])?;
        }
        Ok(printed.replace(&format!("{MARK}\n"), ""))
    }

    /// These are printed, in this order; `…` stands for anything.
    ///
    /// # Errors
    ///
    /// The first one that was not printed, with what was.
    pub fn in_order<'a>(printed: &str, wanted: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let mut rest = printed;
        for part in wanted.into_iter().flat_map(|line| line.split('…')).map(str::trim).filter(|part| !part.is_empty()) {
            rest = rest.split_once(part).ok_or_else(|| format!("does not print `{part}`, but:\n{printed}"))?.1;
        }
        Ok(())
    }
}

/// The file that a sentence names at its end.
fn file(sentence: &str) -> Option<String> {
    let (_, name) = sentence.trim_end_matches([':', '：']).strip_suffix('`')?.rsplit_once('`')?;
    let is_file = name.contains('.') && !name.contains([' ', '*']) && sentence.ends_with([':', '：']);
    is_file.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_compared_with_what_the_page_says_of_it() {
        let script = Script::of("one  # → a … b\ntwo\nthree  # → c\n");
        assert_eq!(script.text, "one  # → a … b\necho =-=-=\ntwo\nthree  # → c\necho =-=-=\n");
        assert_eq!(script.check("a x b\n=-=-=\nc\n=-=-=\n"), Ok("a x b\nc\n".to_owned()));
        assert!(script.check("a\n=-=-=\nb c\n=-=-=\n").unwrap_err().starts_with("does not print `b`"));
    }

    #[test]
    fn blocks_are_found_with_their_marks_and_names() {
        let page = "Write `src/a.rs`:\n\n```rust\nfn a() {}\n```\n\n<!-- not run: a drawing -->\n```\n→\n```\n\nA list:\n\n  ```sh\n  x\n  ```\n";
        let blocks = Block::all(page);
        let shown: Vec<_> = blocks.iter().map(|it| (&*it.language, &*it.text, it.line, it.file.as_deref())).collect();
        let wanted = [("rust", "fn a() {}\n", 3, Some("src/a.rs")), ("", "→\n", 8, None), ("sh", "x\n", 14, None)];
        assert_eq!(shown, wanted);
        assert_eq!(blocks[1].mark("not run"), Some("a drawing"));
        assert_eq!(blocks[2].mark("not run"), None);
    }
}
