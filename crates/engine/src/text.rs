//! The few sentences that the engine itself writes to people, in English and in Chinese.

/// The placeholder text of a message while its sub-thread runs (R089).
pub(crate) const WAIT: Sentence = Sentence { zh: "正在处理您的请求...", en: "Working on your request..." };

/// The same inside another sub-thread (R100).
pub(crate) const WAIT_NESTED: Sentence = Sentence { zh: "正在执行深度分析...", en: "Looking into it more deeply..." };

/// The text of the task that continues behind a placeholder (R090).
pub(crate) const CONTINUE: Sentence = Sentence { zh: "继续处理", en: "Go on." };

/// The text before the reason when a sub-thread has failed (R067).
pub(crate) const FAILED: Sentence = Sentence { zh: "处理失败：", en: "This came to nothing: " };

/// One sentence in both languages.
pub(crate) struct Sentence {
    pub(crate) zh: &'static str,
    pub(crate) en: &'static str,
}

impl Sentence {
    /// The sentence in the language of the request.
    pub(crate) fn in_language_of(&self, asked: &str) -> &'static str {
        let is_chinese = asked.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'));
        if is_chinese { self.zh } else { self.en }
    }
}
