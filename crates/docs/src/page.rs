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

    /// Its path on the site.
    #[must_use]
    pub fn address(&self) -> String {
        match self.language() {
            Language::English => format!("{}.html", self.name()),
            Language::Chinese => format!("zh/{}.html", self.name()),
        }
    }
}
