//! One language for each message: some errors of the specification are in Chinese with English in brackets.

/// Whether the terminal asks for Chinese.
pub(crate) fn asks_for_chinese() -> bool {
    is_chinese(|name| std::env::var(name).ok())
}

/// The half of a message in two languages that the terminal's language asks for; other messages stay as they are.
pub(crate) fn one_language(message: &str) -> &str {
    match halves(message) {
        Some((chinese, _)) if asks_for_chinese() => chinese,
        Some((_, english)) => english,
        None => message,
    }
}

/// Whether a terminal with these variables is in Chinese. The first one that is set counts.
fn is_chinese(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    set.is_some_and(|value| value.starts_with("zh"))
}

/// The Chinese text and the English one in the brackets at its end.
fn halves(message: &str) -> Option<(&str, &str)> {
    let is_chinese = message.starts_with(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let inner = message.strip_suffix(')').filter(|_| is_chinese)?;
    let mut depth = 0;
    let at = inner.char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return Some(at),
            '(' => depth -= 1,
            _ => {}
        }
        None
    })?;
    Some((inner[..at].trim_end(), &inner[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_two_languages_is_split() {
        for (message, want) in [
            ("找不到消息 (no message with index 9)", Some(("找不到消息", "no message with index 9"))),
            (
                "无效的路径: a(b (invalid path: `]` (or `.`) expected)",
                Some(("无效的路径: a(b", "invalid path: `]` (or `.`) expected")),
            ),
            ("there is no agent (`中文`)", None),
            ("文件不存在", None),
        ] {
            assert_eq!(halves(message), want, "{message}");
        }
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let with = |set: &[(&str, &str)]| {
            is_chinese(|name| set.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(with(&[("LANG", "zh_CN.UTF-8")]));
        assert!(with(&[("LC_ALL", ""), ("LC_MESSAGES", "zh_TW"), ("LANG", "en_US.UTF-8")]));
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "zh_CN.UTF-8")]));
        assert!(!with(&[]));
    }
}
