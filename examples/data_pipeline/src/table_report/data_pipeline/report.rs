//! Whether a report may be shown: it is plain HTML that loads and runs nothing, and it has the figures.

use std::collections::HashSet;

const TAGS: &str = "html head meta title style body header main footer section div span p h1 h2 h3 h4 table caption colgroup col \
                    thead tbody tfoot tr th td ul ol li dl dt dd br hr b i em strong small code pre";

const ATTRIBUTES: &str = "lang charset class scope colspan rowspan";

/// The one policy that a report may set; it forbids everything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What is wrong with a report on these results, if something is.
pub(super) fn problem(html: &str, results: &str) -> Option<String> {
    if !html.trim_start().to_ascii_lowercase().starts_with("<!doctype html>") {
        return Some("the report does not begin with <!doctype html>".to_owned());
    }
    match words(html) {
        Ok(text) => missing(&text, results),
        Err(problem) => Some(problem),
    }
}

/// The text of a page in which every tag is allowed.
fn words(html: &str) -> Result<String, String> {
    let mut rest = html.trim_start().get("<!doctype html>".len()..).unwrap_or_default();
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let (tag, after) = tag(after)?;
        rest = after;
        if tag == "style" {
            let (style, after) = rest.split_once("</style>").ok_or("<style> is not closed")?;
            let low = style.to_ascii_lowercase();
            if ["url", "@", "\\", "<", "expression"].iter().any(|word| low.contains(word)) {
                return Err("the style of the report may not load anything".to_owned());
            }
            rest = after;
        }
    }
    text.push_str(rest);
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    Ok(plain.replace("&amp;", "&"))
}

/// The name of the tag that begins here, and what follows it.
fn tag(text: &str) -> Result<(String, &str), String> {
    let shown = || text.chars().take(40).collect::<String>();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '/')).unwrap_or(text.len());
    let name = text[..end].trim_matches('/').to_ascii_lowercase();
    if !TAGS.split_whitespace().any(|known| known == name) {
        return Err(format!(
            "the report has `<{}`, which is no tag that a report may have; escape what comes from the data",
            shown()
        ));
    }
    let mut rest = text[end..].trim_start();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Ok((name, after));
        }
        let end = rest.find(|c: char| matches!(c, '=' | '>' | '/') || c.is_whitespace()).ok_or("a tag is not closed")?;
        let attribute = rest[..end].to_ascii_lowercase();
        let (value, after) = match rest[end..].strip_prefix('=') {
            Some(after) => value(after).ok_or("the value of an attribute is not in quotes")?,
            None => ("", &rest[end..]),
        };
        let is_policy = name == "meta"
            && (attribute == "http-equiv" && value.eq_ignore_ascii_case("content-security-policy")
                || attribute == "content" && value == POLICY);
        if !is_policy && !ATTRIBUTES.split_whitespace().any(|known| known == attribute) {
            return Err(format!("the report has the attribute `{attribute}` in `<{}`, which a report may not have", shown()));
        }
        rest = after;
    }
}

fn value(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

/// The first figure of the results that the text of the report does not have.
fn missing(text: &str, results: &str) -> Option<String> {
    let around = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
    let has: HashSet<&str> = text.split(around).map(|word| word.trim_end_matches('.')).collect();
    let figures = |line: &str| -> Vec<String> {
        let cells: Vec<&str> = line.split('\t').collect();
        let first = match cells[0] {
            "table" => 1,
            "number" | "text" | "level" => 2,
            "group" => 3,
            "figure" => 4,
            _ => cells.len(),
        };
        cells.get(first..).unwrap_or_default().iter().filter(|cell| !cell.is_empty()).map(|cell| (*cell).to_owned()).collect()
    };
    results.lines().find_map(|line| {
        let figure = figures(line).into_iter().find(|figure| !has.contains(figure.as_str()))?;
        Some(format!("the report does not have {figure} of the line `{}`", line.replace('\t', " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = "table\t3\t2\nnumber\ta <b>\t3\t0\t-1.5\t-0.5\t-1e-07\t2\nlevel\tlow\t3\n";

    fn page(body: &str) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset='utf-8'><meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><style>td{{color:red}}</style></head><body>{body}</body></html>"
        )
    }

    #[test]
    fn a_page_with_all_figures_that_loads_and_runs_nothing_is_fine() {
        let body = "<p>3 records, 2 columns.</p><table><tr><th scope=\"row\">a &lt;b&gt;</th><td>3</td><td>0</td><td>-1.5</td><td>-0.5</td><td>-1e-07</td><td>2</td></tr></table><br/>";
        assert_eq!(problem(&page(body), RESULTS), None);
    }

    #[test]
    fn whatever_could_load_or_run_something_is_refused() {
        for body in [
            "<script>alert(1)</script>",
            "<SCRIPT>1</SCRIPT>",
            "<img src=x onerror=alert(1)>",
            "<p onclick=\"x()\">",
            "<p style=\"background:url(http://x)\">",
            "<a href=\"javascript:x\">a</a>",
            "<svg/onload=alert(1)>",
            "<iframe src=\"x\"></iframe>",
            "<meta http-equiv=\"refresh\" content=\"0;url=x\">",
            "<base href=\"x\">",
            "<form action=\"x\">",
            "<style>@import 'x';</style>",
            "<style>p{background:u\\72l(x)}</style>",
            "<style>p{}",
            "<!-- x -->",
            "<p class=x>",
            "<p class=\"x",
            "a < b",
        ] {
            assert!(problem(&page(body), "").is_some(), "{body}");
        }
        assert!(problem("<p>1</p>", "").is_some());
    }

    #[test]
    fn a_figure_that_is_missing_is_named() {
        let body = "<p>3 2 0 -1.50 -0.5 -1e-07</p>";
        let wrong = problem(&page(body), RESULTS).unwrap();
        assert_eq!(wrong, "the report does not have -1.5 of the line `number a <b> 3 0 -1.5 -0.5 -1e-07 2`");
    }
}
