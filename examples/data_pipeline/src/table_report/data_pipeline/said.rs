//! Sentences in English and in Chinese, and which of the two a person speaks.

/// One sentence in both languages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub(super) en: &'static str,
    pub(super) zh: &'static str,
}

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tongue {
    English,
    Chinese,
}

impl Tongue {
    /// The language of a request.
    pub(super) fn of(text: &str) -> Self {
        let is_chinese = |c| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        if text.contains(is_chinese) { Self::Chinese } else { Self::English }
    }

    /// The sentence in this language.
    pub(super) fn say(self, said: Said) -> &'static str {
        match self {
            Self::English => said.en,
            Self::Chinese => said.zh,
        }
    }

    /// As HTML names it.
    pub(super) fn code(self) -> &'static str {
        self.say(Said { en: "en", zh: "zh" })
    }
}
