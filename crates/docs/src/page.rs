//! A page: its name, its language, and where it is in the repository and on the site.

use crate::FILES;

/// A language that pages are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Every page has an English text.
    English,
    /// All but the reference have a Chinese one.
    Chinese,
}

/// A page in one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page {
    /// Its path in the repository, such as `docs/tutorial.zh.md`.
    pub source: &'static str,
    /// Its Markdown.
    pub text: &'static str,
}

impl Page {
    /// All pages in both languages.
    pub fn all() -> impl Iterator<Item = Self> {
        let text = |bytes| std::str::from_utf8(bytes).ok();
        FILES
            .iter()
            .filter(|(source, _)| source.ends_with(".md"))
            .filter_map(move |(source, bytes)| Some(Self { source, text: text(bytes)? }))
    }

    /// The page with this name, in this language or else in English.
    #[must_use]
    pub fn find(name: &str, language: Language) -> Option<Self> {
        let named = |language| Self::all().find(|page| page.name() == name && page.language() == language);
        named(language).or_else(|| named(Language::English))
    }

    /// The page with this path in the repository.
    #[must_use]
    pub fn at(source: &str) -> Option<Self> {
        Self::all().find(|page| page.source == source)
    }

    /// The same page in exactly this language.
    #[must_use]
    pub fn translated(&self, language: Language) -> Option<Self> {
        Self::find(&self.name(), language).filter(|page| page.language() == language)
    }

    /// What `polis docs NAME` calls it: `tutorial`, `errors/access`.
    #[must_use]
    pub fn name(&self) -> String {
        let path = self.source.strip_suffix(".md").unwrap_or(self.source);
        let path = path.strip_suffix(".zh").unwrap_or(path);
        match path.strip_prefix("docs/").unwrap_or(path) {
            "README" => "index".to_owned(),
            "CHANGELOG" => "changelog".to_owned(),
            "errors/README" => "errors/index".to_owned(),
            other => other.strip_suffix("/README").unwrap_or(other).to_owned(),
        }
    }

    /// Its language.
    #[must_use]
    pub fn language(&self) -> Language {
        if self.source.ends_with(".zh.md") { Language::Chinese } else { Language::English }
    }

    /// Its first heading.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(self.source)
    }

    /// Its Markdown for a reader at a terminal: without comments, which are for tests, and with the words of pictures in their place.
    #[must_use]
    pub fn plain(&self) -> String {
        plain(self.text)
    }

    /// Its path on the site.
    #[must_use]
    pub fn address(&self) -> String {
        match self.language() {
            Language::English => format!("{}.html", self.name()),
            Language::Chinese => format!("zh/{}.html", self.name()),
        }
    }
}

fn plain(text: &str) -> String {
    let (mut shown, mut is_code, mut is_comment) = (String::with_capacity(text.len()), false, false);
    for line in text.lines() {
        let words = line.trim();
        is_code ^= words.starts_with("```");
        if !is_code && (is_comment || words.starts_with("<!--")) {
            is_comment = !words.ends_with("-->");
            continue;
        }
        // Where a comment stood alone, one empty line is left.
        if words.is_empty() && (shown.is_empty() || shown.ends_with("\n\n")) && !is_code {
            continue;
        }
        let picture = words.strip_prefix("![").and_then(|words| words.strip_suffix(')')?.split_once("]("));
        shown.push_str(picture.filter(|_| !is_code).map_or(line, |(words, _)| words));
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_neither_comments_nor_marks_of_pictures() {
        for (text, want) in [
            ("# A\n\n<!-- not run: why -->\n```sh\nb\n```\n", "# A\n\n```sh\nb\n```\n"),
            ("a\n\n<!-- one -->\n\n<!-- two\nlines -->\n\nb\n", "a\n\nb\n"),
            ("![A cat: \"miau\"](page/cat.png)\n", "A cat: \"miau\"\n"),
            ("```html\n<!-- kept -->\n\n\n![kept](x)\n```\n<!-- gone -->\n", "```html\n<!-- kept -->\n\n\n![kept](x)\n```\n"),
            ("`vec![a](b)` stays\n", "`vec![a](b)` stays\n"),
        ] {
            assert_eq!(plain(text), want, "{text:?}");
        }
    }
}
