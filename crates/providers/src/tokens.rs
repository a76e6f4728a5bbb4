//! A cheap guess of how many tokens a text has, for where no vendor counts them.

/// Guesses the tokens of `text`: about four ASCII characters to one, and about two of every three others.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    (ascii.div_ceil(4) + (2 * others).div_ceil(3)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_grows_with_the_text_and_weighs_chinese_heavier() {
        assert_eq!(["", "a", "four", "hello world", "你好", "你好, world"].map(estimate_tokens), [0, 1, 1, 3, 2, 4]);
    }
}
