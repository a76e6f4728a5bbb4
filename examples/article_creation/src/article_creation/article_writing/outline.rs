//! Reads an outline: one aspect a line, however the model has decorated it.

/// Most aspects of one article. Each is researched on its own.
const MAX_ASPECTS: usize = 4;

/// The aspects that an outline names, each once.
pub(super) fn aspects(outline: &str) -> Vec<String> {
    let mut aspects: Vec<String> = Vec::new();
    for line in outline.lines() {
        let bare = line.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || "-*#.)、•".contains(c));
        let bare = bare.trim_end_matches(|c: char| c.is_whitespace() || "*:：".contains(c));
        if !bare.is_empty() && !aspects.iter().any(|known| known == bare) {
            aspects.push(bare.to_owned());
        }
    }
    aspects.truncate(MAX_ASPECTS);
    aspects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aspects_are_read_out_of_any_list() {
        for (outline, want) in [
            ("breathing\nswimming", &["breathing", "swimming"][..]),
            ("1. Breathing\n2) **Swimming**:\n\n- Sleep\n", &["Breathing", "Swimming", "Sleep"]),
            ("# A\n# A\n# B\n# C\n# D\n# E", &["A", "B", "C", "D"]),
            ("1、呼吸\n2、游泳：", &["呼吸", "游泳"]),
            ("\n \n", &[]),
        ] {
            assert_eq!(aspects(outline), want, "{outline}");
        }
    }
}
