//! Every `NAME.zh.md` keeps in step with `NAME.md`: the same headings, tables and code blocks. The words between them
//! are not compared.

use super::Violation;

const ENGLISH: &str = ".md";
const CHINESE: &str = ".zh.md";

/// Languages of code blocks that hold text for people. A line of these may be translated as a whole.
const TEXTS: &[&str] = &["", "md", "markdown", "text"];

/// The English page of a Chinese one. Prompts for models come in several languages and are not pages.
pub(super) fn original(file: &str) -> Option<String> {
    let page = file.strip_suffix(CHINESE).filter(|_| !file.contains("prompts/"));
    page.map(|name| format!("{name}{ENGLISH}"))
}

/// What keeps a Chinese page from being in step with the English one; `english` is `None` if there is no such page.
pub(super) fn check(file: &str, english: Option<&str>, chinese: &str) -> Vec<Violation> {
    let Some(english) = english else {
        return vec![violation(file, "translates a page that does not exist".to_owned())];
    };
    let (english, chinese) = (Outline::of(english), Outline::of(chinese));
    let mut wrongs = Vec::new();
    if english.headings != chinese.headings {
        wrongs.push(format!("has headings of the levels {:?}, the English page {:?}", chinese.headings, english.headings));
    }
    if english.tables != chinese.tables {
        wrongs.push(format!("has tables of {:?} rows, the English page {:?}", chinese.tables, english.tables));
    }
    if english.blocks.len() != chinese.blocks.len() {
        wrongs.push(format!("has {} code blocks, the English page {}", chinese.blocks.len(), english.blocks.len()));
    }
    let pairs = english.blocks.iter().zip(&chinese.blocks);
    wrongs.extend(pairs.filter_map(|(english, chinese)| english.differs_from(chinese)));
    wrongs.into_iter().map(|wrong| violation(file, wrong)).collect()
}

fn violation(file: &str, wrong: String) -> Violation {
    Violation { place: file.to_owned(), wrong, remedy: "change both pages together".to_owned() }
}

/// The parts of a page that a translation keeps.
#[derive(Default)]
struct Outline<'page> {
    /// The level of each heading.
    headings: Vec<usize>,
    /// The number of rows of each table.
    tables: Vec<usize>,
    blocks: Vec<Block<'page>>,
}

/// A fenced block of code.
struct Block<'page> {
    language: &'page str,
    /// The number of the line with the opening fence, from 1.
    line: usize,
    text: Vec<&'page str>,
}

impl<'page> Outline<'page> {
    fn of(page: &'page str) -> Self {
        let mut outline = Outline::default();
        let (mut is_in_block, mut is_in_table) = (false, false);
        for (number, line) in page.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (fence, outline.blocks.last_mut().filter(|_| is_in_block)) {
                (Some(_), Some(_)) => is_in_block = false,
                (Some(language), None) => {
                    outline.blocks.push(Block { language, line: number + 1, text: Vec::new() });
                    is_in_block = true;
                }
                (None, Some(block)) => block.text.push(line),
                (None, None) => outline.read(line, is_in_table),
            }
            is_in_table = !is_in_block && line.starts_with('|');
        }
        outline
    }

    /// Takes in a line outside code blocks.
    fn read(&mut self, line: &str, continues_table: bool) {
        let level = line.chars().take_while(|c| *c == '#').count();
        if level > 0 && line[level..].starts_with(' ') {
            self.headings.push(level);
        }
        match self.tables.last_mut() {
            Some(rows) if line.starts_with('|') && continues_table => *rows += 1,
            _ if line.starts_with('|') => self.tables.push(1),
            _ => {}
        }
    }
}

impl Block<'_> {
    fn differs_from(&self, chinese: &Block<'_>) -> Option<String> {
        let place = format!("the code block in line {} (line {} of the English page)", chinese.line, self.line);
        if self.language != chinese.language || self.text.len() != chinese.text.len() {
            return Some(format!("{place} has another language or number of lines"));
        }
        let mut lines = self.text.iter().zip(&chinese.text);
        let (english, chinese) = lines.find(|(english, chinese)| !is_translation(self.language, english, chinese))?;
        Some(format!("{place} has `{}` for `{}`", chinese.trim(), english.trim()))
    }
}

/// Equal apart from comments, and from quoted text that was translated.
fn is_translation(language: &str, english: &str, chinese: &str) -> bool {
    let (english, chinese) = (without_comment(language, english), without_comment(language, chinese));
    let is_translated = !chinese.is_ascii() && (TEXTS.contains(&language) || unquoted(english) == unquoted(chinese));
    english == chinese || is_translated
}

fn without_comment<'line>(language: &str, line: &'line str) -> &'line str {
    let mark = match language {
        "sh" | "toml" => "#",
        "js" | "ts" | "rust" => "//",
        _ => return line,
    };
    let mut marks = line.match_indices(mark).map(|(at, _)| at);
    let comment = marks.find(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace));
    line[..comment.unwrap_or(line.len())].trim_end()
}

/// The line without what stands in quotes.
fn unquoted(line: &str) -> String {
    let mut quote = None;
    line.chars()
        .filter(|c| {
            let is_outside = quote.is_none();
            match quote {
                None if matches!(c, '"' | '\'') => quote = Some(*c),
                Some(open) if open == *c => quote = None,
                _ => {}
            }
            is_outside
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Title\n\n## Part\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\n# ask\npolis run \"read a\" --json  # now\n```\n";

    fn wrongs(chinese: &str) -> Vec<String> {
        check("a.zh.md", Some(PAGE), chinese).into_iter().map(|violation| violation.wrong).collect()
    }

    #[test]
    fn a_translation_in_step_is_accepted() {
        let chinese =
            PAGE.replace("Title", "标题").replace("read a", "读 a").replace("# ask", "# 提问").replace("# now", "# 现在");
        assert_eq!(wrongs(&chinese), [""; 0]);
        assert_eq!(original("docs/a.zh.md").as_deref(), Some("docs/a.md"));
        assert_eq!(original("docs/a.md"), None);
        assert_eq!(original("crates/agents/prompts/a.zh.md"), None);
    }

    #[test]
    fn a_translation_out_of_step_is_reported() {
        for (from, to, expected) in [
            ("## Part", "### 部分", "has headings of the levels [1, 3], the English page [1, 2]"),
            ("## Part\n", "", "has headings of the levels [1], the English page [1, 2]"),
            ("| 1 | 2 |\n", "", "has tables of [2] rows, the English page [3]"),
            ("```\n", "```\n```sh\n```\n", "has 2 code blocks, the English page 1"),
            (
                "```sh",
                "```toml",
                "the code block in line 9 (line 9 of the English page) has another language or number of lines",
            ),
            (
                "--json",
                "--yaml",
                "the code block in line 9 (line 9 of the English page) has `polis run \"read a\" --yaml  # now` \
                 for `polis run \"read a\" --json  # now`",
            ),
            (
                "\"read a\" --json",
                "\"读 a\" --yaml",
                "the code block in line 9 (line 9 of the English page) has `polis run \"读 a\" --yaml  # now` \
                 for `polis run \"read a\" --json  # now`",
            ),
        ] {
            assert_eq!(wrongs(&PAGE.replace(from, to)), [expected], "{from} -> {to}");
        }
    }

    #[test]
    fn a_translation_of_nothing_is_reported() {
        assert_eq!(check("a.zh.md", None, PAGE).len(), 1);
    }

    #[test]
    fn text_for_people_may_be_translated_as_a_whole() {
        let (english, chinese) = ("```markdown\nname: report\n```\n", "```markdown\n名称: 报告\n```\n");
        assert!(check("a.zh.md", Some(english), chinese).is_empty());
        assert!(!check("a.zh.md", Some(english), &chinese.replace("markdown", "sh")).is_empty());
    }
}
