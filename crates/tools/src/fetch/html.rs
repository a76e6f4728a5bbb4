//! HTML as a person would read it: its text, headings, lists and links. Takes what comes and never fails.

/// Longest tag that is looked through for quotes.
const MAX_TAG_BYTES: usize = 2 << 10;
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
    "tr",
    "ul",
];

/// The readable text of a page.
pub(crate) fn readable(html: &str) -> String {
    let mut text = Text::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.say(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)) {
            text.say("<");
            rest = &rest[1..];
            continue;
        }
        let end = end_of_tag(rest);
        let tag = Tag::read(&rest[1..end]);
        rest = rest.get(end + 1..).unwrap_or_default();
        if tag.name == "title" && !tag.closes {
            let end = find_closing(rest, "title");
            text.line();
            text.say(&rest[..end]);
            text.line();
            rest = &rest[end..];
        } else if UNSEEN.contains(&tag.name.as_str()) && !tag.closes && !tag.is_empty {
            rest = &rest[find_closing(rest, &tag.name)..];
        } else {
            text.tag(&tag);
        }
    }
    text.say(rest);
    text.lines.push(std::mem::take(&mut text.open));
    let kept: Vec<&str> = text.lines.iter().map(|line| line.trim()).filter(|line| !["", "-"].contains(line)).collect();
    kept.join("\n")
}

struct Tag {
    name: String,
    closes: bool,
    is_empty: bool,
    link: Option<String>,
}

impl Tag {
    fn read(inside: &str) -> Self {
        let closes = inside.starts_with('/');
        let inside = inside.trim_start_matches('/');
        let name = inside.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default().to_ascii_lowercase();
        let link = if name == "a" && !closes { attribute(inside, "href") } else { None };
        Self { name, closes, is_empty: inside.ends_with('/'), link }
    }
}

#[derive(Default)]
struct Text {
    lines: Vec<String>,
    open: String,
    link: Option<String>,
}

impl Text {
    /// Adds text, each run of white space as one space.
    fn say(&mut self, raw: &str) {
        let said = without_entities(raw);
        for (n, word) in said.split(|c: char| c.is_whitespace() && c != '\u{a0}').enumerate() {
            if n > 0 && !self.open.ends_with(' ') && !self.open.is_empty() {
                self.open.push(' ');
            }
            self.open.push_str(word);
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.open);
        self.lines.push(line);
    }

    fn tag(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if BLOCKS.contains(&name) {
            self.line();
            let level = name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok());
            match (level, tag.closes) {
                (Some(level), false) => self.open = format!("{} ", "#".repeat(level)),
                (None, false) if name == "li" => self.open.push_str("- "),
                _ => {}
            }
        } else if ["td", "th"].contains(&name) && tag.closes {
            self.open.push_str(" | ");
        } else if name == "a" {
            match self.link.take().filter(|_| tag.closes) {
                Some(link) => self.open.push_str(&format!(" <{link}>")),
                None => {
                    self.link = tag.link.clone().filter(|link| !link.starts_with(['#']) && !link.starts_with("javascript:"))
                }
            }
        }
    }
}

/// Where the tag at the beginning of `text` ends; quoted values may hold `>`.
fn end_of_tag(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(MAX_TAG_BYTES) {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') if text[..at].trim_end().ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    text.find('>').unwrap_or(text.len())
}

/// Where the closing tag begins, or the text ends.
fn find_closing(text: &str, name: &str) -> usize {
    let close = format!("</{name}");
    let bytes = text.as_bytes();
    bytes.windows(close.len()).position(|part| part.eq_ignore_ascii_case(close.as_bytes())).unwrap_or(text.len())
}

fn attribute(inside: &str, name: &str) -> Option<String> {
    let lower = inside.to_ascii_lowercase();
    let at = lower
        .match_indices(name)
        .map(|(at, _)| at)
        .find(|&at| lower[..at].ends_with(char::is_whitespace) && lower[at + name.len()..].trim_start().starts_with('='))?;
    let value = inside[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split_whitespace().next()?,
    };
    // Browsers take line breaks out of addresses; here one could pass as lines of the page.
    let plain: String = without_entities(value).chars().filter(|c| !c.is_control()).collect();
    Some(plain.trim().to_owned())
}

fn without_entities(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let named = rest[1..].bytes().take(10).position(|byte| byte == b';').map(|end| &rest[1..=end]);
        match named.and_then(|name| Some((name, character(name)?))) {
            Some((name, character)) => {
                plain.push(character);
                rest = &rest[name.len() + 2..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain + rest
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(number).filter(|c| !c.is_control() || c.is_whitespace());
    }
    let known = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("mdash", '—'),
        ("ndash", '–'),
        ("hellip", '…'),
        ("copy", '©'),
        ("laquo", '«'),
        ("raquo", '»'),
        ("lsquo", '‘'),
        ("rsquo", '’'),
        ("ldquo", '“'),
        ("rdquo", '”'),
        ("middot", '·'),
        ("bull", '•'),
        ("times", '×'),
        ("euro", '€'),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)
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
