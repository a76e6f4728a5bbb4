//! Pages as a person would read them: lines without margins, no larger than the page, whatever it holds.

use polis_tools::fuzzing::html;

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "html",
    run,
    words: &[
        "<p>",
        "</p>",
        "<a href=\"",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<title>",
        "&amp;",
        "&#x41;",
        "&#1114112;",
        "&lt",
        "<li>",
        "<br/>",
        "<style",
        "'>",
        "\">",
        "</",
        "<svg/>",
        "href=x",
    ],
};

fn run(input: &[u8]) {
    let Some(page) = text(input) else { return };
    let read = html(page);
    // Links and marks of lists add a little to what a tag took.
    assert!(read.len() <= 2 * page.len() + 16, "{} bytes of {}", read.len(), page.len());
    assert!(read.lines().all(|line| !line.is_empty() && line.trim() == line), "{page:?} gives {read:?}");
    assert_eq!(html(&format!("<script>{}</script>", page.replace('<', " "))), "", "a script is not read");
    let plain: String = page.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    assert_eq!(html(&plain), plain);
}
