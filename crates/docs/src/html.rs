//! Markdown becomes HTML: headings get the anchors that code hosts give them, links to pages lead to their place on the site, and
//! links into the sources become text. Raw HTML of a page is dropped, but for comments, which show nothing.

use std::collections::BTreeMap;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::FILES;
use crate::page::{Language, Page};

/// A page as HTML.
#[derive(Debug)]
pub struct Rendered {
    /// The content of its `<main>`.
    pub html: String,
    /// Its headings in order.
    pub headings: Vec<Heading>,
    /// Its links and pictures as they are written.
    pub links: Vec<Link>,
}

/// A heading and the text below it.
#[derive(Debug, Default)]
pub struct Heading {
    /// From 1 for the title of the page.
    pub level: usize,
    /// What a link adds after `#`.
    pub anchor: String,
    /// Its words.
    pub title: String,
    /// The words up to the next heading.
    pub text: String,
}

/// Where a link of a page leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// To another site.
    Elsewhere(String),
    /// To a page and perhaps a heading of it.
    Page {
        /// The page.
        page: Page,
        /// The heading.
        anchor: Option<String>,
    },
    /// To a picture, by its path in the repository.
    Picture(&'static str),
    /// To a file or folder of the repository that is no page.
    Source(String),
}

/// Renders a page.
#[must_use]
pub fn render(page: &Page) -> Rendered {
    let mut events: Vec<Event<'static>> =
        Parser::new_ext(page.text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
            .map(Event::into_static)
            .collect();
    let headings = headings(&events);
    let mut links = Vec::new();
    let (mut number, mut open) = (0, Vec::new());
    for event in &mut events {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                *id = headings.get(number).map(|heading| heading.anchor.clone().into());
                number += 1;
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let link = resolve(page, dest_url);
                let address = address(page, &link);
                links.push(link);
                open.push(address.is_some());
                match address {
                    Some(address) => *dest_url = address.into(),
                    None => *event = Event::Html("<span class=\"source\">".into()),
                }
            }
            Event::End(TagEnd::Link) if open.pop() == Some(false) => *event = Event::Html("</span>".into()),
            Event::Start(Tag::Image { dest_url, .. }) => {
                let link = resolve(page, dest_url);
                *dest_url = address(page, &link).unwrap_or_default().into();
                links.push(link);
            }
            Event::Start(Tag::Table(_)) => {}
            Event::Html(_) | Event::InlineHtml(_) => *event = Event::Text(CowStr::Borrowed("")),
            _ => {}
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    let out = out.replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>").replace("</table>", "</table></div>");
    Rendered { html: out.replace("<pre>", "<pre tabindex=\"0\">"), headings, links }
}

/// The headings with their anchors and texts.
fn headings(events: &[Event<'_>]) -> Vec<Heading> {
    let (mut found, mut used, mut is_heading) = (Vec::<Heading>::new(), BTreeMap::<String, usize>::new(), false);
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                found.push(Heading { level: *level as usize, ..Heading::default() });
                is_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => {
                is_heading = false;
                let Some(heading) = found.last_mut() else { continue };
                let anchor = anchor(&heading.title);
                let times = used.entry(anchor.clone()).or_default();
                heading.anchor = if *times == 0 { anchor } else { format!("{anchor}-{times}") };
                *times += 1;
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = found.last_mut() {
                    let part = if is_heading { &mut heading.title } else { &mut heading.text };
                    part.push_str(text);
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) if !is_heading => {
                if let Some(heading) = found.last_mut().filter(|heading| !heading.text.ends_with([' ', '\n'])) {
                    heading.text.push(' ');
                }
            }
            _ => {}
        }
    }
    found
}

/// The anchor of a heading by the rule of the large code hosts: lower case, no punctuation, hyphens for spaces.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Where a link of a page leads.
fn resolve(page: &Page, link: &str) -> Link {
    if link.contains("://") || link.starts_with("mailto:") {
        return Link::Elsewhere(link.to_owned());
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return Link::Page { page: *page, anchor };
    }
    let mut parts: Vec<&str> = page.source.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if let Some(page) = Page::at(&path).or_else(|| Page::at(&format!("{path}/README.md"))) {
        return Link::Page { page, anchor };
    }
    match FILES.iter().find(|(source, _)| *source == path) {
        Some((source, _)) => Link::Picture(source),
        None => Link::Source(path),
    }
}

/// What a link becomes on the site; nothing if it leads into the sources.
fn address(from: &Page, link: &Link) -> Option<String> {
    let up = "../".repeat(from.address().matches('/').count());
    Some(match link {
        Link::Elsewhere(address) => address.clone(),
        Link::Page { page, anchor } => {
            let anchor = anchor.as_ref().map(|anchor| format!("#{anchor}")).unwrap_or_default();
            format!("{up}{}{anchor}", page.address())
        }
        Link::Picture(source) => format!("{up}{}", source.strip_prefix("docs/").unwrap_or(source)),
        Link::Source(_) => return None,
    })
}

/// The language of a page as HTML names it.
pub(crate) fn tag(language: Language) -> &'static str {
    match language {
        Language::English => "en",
        Language::Chinese => "zh",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_code_hosts() {
        for (title, wanted) in [
            ("MCP servers", "mcp-servers"),
            ("unknown_conversation, `ambiguous`", "unknown_conversation-ambiguous"),
            ("A tool of your own!", "a-tool-of-your-own"),
            ("自定义 工具", "自定义-工具"),
        ] {
            assert_eq!(anchor(title), wanted);
        }
    }

    fn page(text: &'static str) -> Rendered {
        render(&Page { source: "docs/errors/x.zh.md", text })
    }

    #[test]
    fn links_lead_to_the_site_and_not_into_the_sources() {
        let shown = page("[t](../tutorial.md#a) [s](../../crates/app/src/main.rs) [h](#there) [e](https://example.org)");
        for wanted in [
            "<a href=\"../../tutorial.html#a\">t</a>",
            "<span class=\"source\">s</span>",
            "<a href=\"../../zh/errors/x.html#there\">h</a>",
            "<a href=\"https://example.org\">e</a>",
        ] {
            assert!(shown.html.contains(wanted), "{wanted}: {}", shown.html);
        }
        assert_eq!(shown.links[1], Link::Source("crates/app/src/main.rs".to_owned()));
    }

    #[test]
    fn headings_have_anchors_once_and_their_text() {
        let shown = page("# A\n\nwords `code`\n\n## Do\n\none\n\n## Do\n\n```sh\npolis run\n```\n");
        let anchors: Vec<_> = shown.headings.iter().map(|it| (it.level, &*it.anchor, it.text.trim())).collect();
        assert_eq!(anchors, [(1, "a", "words code"), (2, "do", "one"), (2, "do-1", "polis run")]);
        assert!(shown.html.contains("<h2 id=\"do-1\">"), "{}", shown.html);
    }

    #[test]
    fn html_of_a_page_is_dropped() {
        let shown = page("<!-- not run: a drawing -->\n\nthis <b>is</b> text <script>x</script>\n");
        assert_eq!(shown.html.trim(), "<p>this is text x</p>");
    }
}
