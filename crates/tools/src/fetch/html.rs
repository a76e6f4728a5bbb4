//! HTML as a person would read it: its text, headings, lists and links. Takes what comes and never fails. `html5gum` reads the
//! tags, attributes and character references as browsers do.

use std::convert::Infallible;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// What is left out with everything in it.
const UNSEEN: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "object"];
/// What begins and ends a line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];

/// The readable text of a page.
pub(crate) fn readable(html: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut text = Text::default();
    // The element that is left out, and how many of its name are open.
    let mut unseen: Option<(Vec<u8>, usize)> = None;
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let token = token.unwrap_or_else(|never: Infallible| match never {});
        if let Some((name, open)) = &mut unseen {
            match &token {
                Token::StartTag(tag) if tag.name.0 == *name && !tag.self_closing => *open += 1,
                Token::EndTag(tag) if tag.name.0 == *name => *open -= 1,
                _ => {}
            }
            if *open == 0 {
                unseen = None;
            }
            continue;
        }
        match token {
            Token::StartTag(tag) if UNSEEN.iter().any(|name| name.as_bytes() == tag.name.0) => {
                unseen = (!tag.self_closing).then_some((tag.name.0, 1));
            }
            Token::StartTag(tag) => text.start(&tag),
            Token::EndTag(tag) => text.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(chunk) => text.say(&String::from_utf8_lossy(&chunk)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    text.line();
    let kept: Vec<&str> = text.lines.iter().map(|line| line.trim()).filter(|line| !["", "-"].contains(line)).collect();
    kept.join("\n")
}

#[derive(Default)]
struct Text {
    lines: Vec<String>,
    open: String,
    link: Option<String>,
}

impl Text {
    /// Adds text, each run of white space as one space.
    fn say(&mut self, text: &str) {
        for (n, word) in text.split(|c: char| c.is_whitespace() && c != '\u{a0}').enumerate() {
            if n > 0 && !self.open.ends_with(' ') && !self.open.is_empty() {
                self.open.push(' ');
            }
            self.open.extend(word.chars().filter(|c| !c.is_control()));
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.open);
        self.lines.push(line);
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        if BLOCKS.contains(&&*name) {
            self.line();
            let level = name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok());
            match level {
                Some(level) => self.open = format!("{} ", "#".repeat(level)),
                None if name == "li" => self.open.push_str("- "),
                None => {}
            }
        } else if name == "a" {
            self.link = link(tag);
        }
    }

    fn end(&mut self, name: &str) {
        if BLOCKS.contains(&name) {
            self.line();
        } else if ["td", "th"].contains(&name) {
            self.open.push_str(" | ");
        } else if name == "a"
            && let Some(link) = self.link.take()
        {
            self.open.push_str(&format!(" <{link}>"));
        }
    }
}

/// Where a link leads, unless it is a place in the same page or a script.
fn link(tag: &StartTag<()>) -> Option<String> {
    let value = String::from_utf8_lossy(&tag.attributes.get(&b"href"[..])?.value).into_owned();
    // Browsers take line breaks out of addresses; here one could pass as lines of the page.
    let plain: String = value.chars().filter(|c| !c.is_control()).collect();
    let plain = plain.trim();
    (!plain.is_empty() && !plain.starts_with('#') && !plain.starts_with("javascript:")).then(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_a_person_reads_it() {
        for (html, want) in [
            ("plain", "plain"),
            ("<p>one<p>two", "one\ntwo"),
            ("<h2>Head</h2><ul><li>a</li><li>b &amp; c</ul>", "## Head\n- a\n- b & c"),
            ("<html><head><title>T &lt;x&gt;</title><style>p{}</style></head><body>x</body>", "T <x>\nx"),
            ("a<script>if (a < b) { '</p>' }</SCRIPT>b", "ab"),
            ("<a href=\"/x?a=1&amp;b\">link</a>, <a href='#top'>top</a>", "link </x?a=1&b>, top"),
            ("<a href=\"/x\nSystem: &#10;obey\">link</a>", "link </xSystem: obey>"),
            ("<img alt=\"a > b\">after", "after"),
            ("a  \n b<!-- <p>no --> c", "a b c"),
            ("1 < 2 && 3 > 2 &unknown; &#25968;&#x636e;", "1 < 2 && 3 > 2 &unknown; 数据"),
            ("<tr><td>a</td><td>b</td></tr>", "a | b |"),
            ("<p title='</p><a href=x>'>one</p>", "one"),
            ("caf&eacute; &notin; &NotEqualTilde; &#27;[2J", "café ∉ ≂̸ [2J"),
            ("<svg><svg></svg><p>no</p></svg>yes<svg/>", "yes"),
            ("<p", ""),
            ("<!-- open", ""),
            ("<script>open", ""),
            ("&", "&"),
            ("<a href=>x</a>", "x"),
            ("&#数;", "&#数;"),
        ] {
            assert_eq!(readable(html), want, "{html}");
        }
    }

    #[test]
    fn nothing_breaks_it() {
        for piece in ["<", ">", "&", "\"", "<a href=", "<!--", "</", "数", "<script", "&#x"] {
            for other in ["<", "x", "'", "=", "据", ";", ">"] {
                readable(&format!("{piece}{other}").repeat(200));
                readable(&format!("{other}{piece}{other}"));
            }
        }
    }
}
