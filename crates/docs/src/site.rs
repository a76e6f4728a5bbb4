//! All files of the site: a frame with navigation around each page, an index to search, styles and a script.

use std::fmt::Write as _;

use serde_json::json;

use crate::contents::contents;
use crate::html::{Rendered, render, tag};
use crate::page::{Language, Page};
use crate::{FILES, html};

/// A file of the site.
#[derive(Debug)]
pub struct File {
    /// Its path, such as `zh/tutorial.html`.
    pub path: String,
    /// What `Content-Type` says.
    pub content_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// All files of the site.
#[must_use]
pub fn site() -> Vec<File> {
    let mut files = vec![
        file("style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
        file("site.js", "text/javascript; charset=utf-8", include_str!("../assets/site.js")),
    ];
    for (source, bytes) in FILES {
        let content_type = match source.rsplit_once('.') {
            Some((_, "png")) => "image/png",
            Some((_, "svg")) => "image/svg+xml",
            _ => continue,
        };
        let path = source.strip_prefix("docs/").unwrap_or(source).to_owned();
        files.push(File { path, content_type, bytes: bytes.to_vec() });
    }
    for language in [Language::English, Language::Chinese] {
        let mut index = Vec::new();
        for page in Page::all().filter(|page| page.language() == language) {
            let rendered = render(&page);
            for heading in &rendered.headings {
                index.push(json!([page.address(), heading.anchor, page.title(), heading.title, heading.text.trim()]));
            }
            files.push(file(&page.address(), "text/html; charset=utf-8", &framed(&page, &rendered)));
        }
        let script = format!("window.polisIndex = {};\n", json!(index));
        files.push(file(&format!("search-{}.js", tag(language)), "text/javascript; charset=utf-8", &script));
    }
    files
}

fn file(path: &str, content_type: &'static str, text: &str) -> File {
    File { path: path.to_owned(), content_type, bytes: text.as_bytes().to_vec() }
}

/// What the frame says, in a language.
struct Words {
    search: &'static str,
    menu: &'static str,
    here: &'static str,
    copy: &'static str,
    only_english: &'static str,
}

fn words(language: Language) -> Words {
    match language {
        Language::English => Words { search: "Search", menu: "Contents", here: "On this page", copy: "Copy", only_english: "" },
        Language::Chinese => {
            Words { search: "搜索", menu: "目录", here: "本页内容", copy: "复制", only_english: "（英文）" }
        }
    }
}

/// The whole HTML of a page.
fn framed(page: &Page, rendered: &Rendered) -> String {
    let language = page.language();
    let (words, lang) = (words(language), tag(language));
    let up = "../".repeat(page.address().matches('/').count());
    let mut menu = String::new();
    for section in contents() {
        let _ = write!(menu, "<h2>{}</h2><ul>", section.title(language));
        for entry in section.pages.iter().filter_map(|name| Page::find(name, language)) {
            let current = if entry == *page { " aria-current=\"page\"" } else { "" };
            let note = if entry.language() == language { "" } else { words.only_english };
            let title = escaped(entry.title());
            let _ = write!(menu, "<li><a href=\"{up}{}\"{current}>{title}</a>{note}</li>", entry.address());
        }
        menu.push_str("</ul>");
    }
    let mut here = String::new();
    for heading in rendered.headings.iter().filter(|heading| (2..=3).contains(&heading.level)) {
        let (level, title) = (heading.level, escaped(&heading.title));
        let _ = write!(here, "<li class=\"level{level}\"><a href=\"#{}\">{title}</a></li>", escaped(&heading.anchor));
    }
    let other = match language {
        Language::English => (Language::Chinese, "中文"),
        Language::Chinese => (Language::English, "English"),
    };
    let translation = Page::find(&page.name(), other.0).filter(|it| it.language() == other.0);
    let translation = translation.or_else(|| Page::find("index", other.0)).map(|it| it.address()).unwrap_or_default();
    let (title, content) = (window_title(page.title()), &rendered.html);
    let (search, contents, on_page, copy) = (words.search, words.menu, words.here, words.copy);
    let (other_lang, other_name) = (html::tag(other.0), other.1);
    let home = Page::find("index", language).map(|it| it.address()).unwrap_or_default();
    format!(
        "<!doctype html>
<html lang=\"{lang}\" data-up=\"{up}\" data-copy=\"{copy}\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>{title}</title>
<link rel=\"stylesheet\" href=\"{up}style.css\">
<script src=\"{up}site.js\" defer></script>
</head>
<body>
<header>
<a class=\"home\" href=\"{up}{home}\">Polis</a>
<input id=\"search\" type=\"search\" placeholder=\"{search}\" aria-label=\"{search}\" autocomplete=\"off\">
<a href=\"{up}{translation}\" lang=\"{other_lang}\">{other_name}</a>
<button id=\"theme\" type=\"button\" aria-label=\"light / dark\">◐</button>
</header>
<div id=\"found\" hidden></div>
<div class=\"columns\">
<details class=\"menu\" open><summary>{contents}</summary><nav aria-label=\"{contents}\">{menu}</nav></details>
<main>
{content}</main>
<nav class=\"here\" aria-label=\"{on_page}\"><h2>{on_page}</h2><ul>{here}</ul></nav>
</div>
</body>
</html>
"
    )
}

/// The title of a page's window. The first page is called like the whole.
fn window_title(title: &str) -> String {
    match title {
        "Polis" => title.to_owned(),
        title => format!("{} – Polis", escaped(title)),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('`', "")
}
