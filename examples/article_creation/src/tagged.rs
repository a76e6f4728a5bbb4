//! Parts of a prompt, each between two tags, so that a model can tell what is given from what is asked.

/// A part with its name.
pub(crate) fn tagged(name: &str, text: &str) -> String {
    format!("<{name}>\n{}\n</{name}>\n", text.trim())
}

/// The part of this name.
pub(crate) fn part<'a>(prompt: &'a str, name: &str) -> &'a str {
    let between = prompt.split_once(&format!("<{name}>\n")).and_then(|(_, rest)| rest.rsplit_once(&format!("\n</{name}>")));
    between.map_or("", |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_again_whatever_is_in_it() {
        let prompt =
            tagged("topic", "fish") + &tagged("passages", "a.md:1: <topic> is a tag\n\nb.md:2: x") + &tagged("empty", "");
        assert_eq!(part(&prompt, "topic"), "fish");
        assert_eq!(part(&prompt, "passages"), "a.md:1: <topic> is a tag\n\nb.md:2: x");
        assert_eq!((part(&prompt, "empty"), part(&prompt, "absent")), ("", ""));
    }
}
