//! The languages that prompts are written in.

use serde::{Deserialize, Serialize};

/// A language of prompts. Answers are in the user's own, whichever that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Language {
    /// Its short name: `en` or `zh`.
    pub fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The language with this short name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::En, Self::Zh].into_iter().find(|language| language.name() == name)
    }

    /// The language to prompt in for somebody who writes this: Chinese if there are Chinese characters and no Japanese kana.
    pub fn of(text: &str) -> Self {
        let mut has_han = false;
        for c in text.chars() {
            match c {
                '\u{3040}'..='\u{30FF}' => return Self::En,
                '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' => has_han = true,
                _ => {}
            }
        }
        if has_han { Self::Zh } else { Self::En }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_is_told_from_the_rest() {
        for (text, language) in [
            ("", Language::En),
            ("count the lines", Language::En),
            ("统计 sales.csv 的行数", Language::Zh),
            ("売上の行数", Language::En),
            ("Zähle", Language::En),
        ] {
            assert_eq!(Language::of(text), language, "{text}");
        }
        assert_eq!(Language::named("zh"), Some(Language::Zh));
        assert_eq!(Language::named("fr"), None);
    }
}
