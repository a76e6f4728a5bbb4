//! The few sentences that the engine itself says to people, in English and in Chinese.

/// One sentence in both languages.
pub(crate) struct Said {
    pub(crate) zh: &'static str,
    pub(crate) en: &'static str,
}

impl Said {
    /// The sentence, in the language of what was asked.
    pub(crate) fn to(&self, asked: &str) -> &'static str {
        let is_chinese = asked.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'));
        if is_chinese { self.zh } else { self.en }
    }
}
