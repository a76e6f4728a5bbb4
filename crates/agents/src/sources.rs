//! The sources that a model cites, as tools of its vendor found them: a list at the end of the answer, and in its meta.

use std::fmt::Write;

use polis_domain::{Citation, Response};
use serde_json::json;

use crate::workflow::Language;

/// Most sources that are listed.
const MAX_LISTED: usize = 20;

/// Adds sources to those that are known.
pub(crate) fn collect(known: &mut Vec<Citation>, more: &[Citation]) {
    for cited in more {
        if !known.contains(cited) {
            known.push(cited.clone());
        }
    }
}

/// The response with its sources. A program that prescribes the answer gets them in the meta alone.
pub(crate) fn attach(response: Response, sources: &[Citation], is_prescribed: bool) -> Response {
    if sources.is_empty() {
        return response;
    }
    let mut response = if is_prescribed { response } else { response.appended(&list(response.full_message(), sources)) };
    response.meta.insert(Citation::META.to_owned(), json!(sources));
    response
}

/// Numbered, because some models refer to them by number.
fn list(text: &str, sources: &[Citation]) -> String {
    let mut list = match Language::of(text) {
        Language::En => "\n\nSources:".to_owned(),
        Language::Zh => "\n\n来源：".to_owned(),
    };
    for (place, Citation { title, url }) in sources.iter().take(MAX_LISTED).enumerate() {
        let title = title.replace(['\n', '\r', '[', ']'], " ");
        let _ = match (title.trim(), &**url) {
            (title, "") => write!(list, "\n{}. {title}", place + 1),
            ("", url) => write!(list, "\n{}. <{url}>", place + 1),
            (title, url) => write!(list, "\n{}. [{title}](<{url}>)", place + 1),
        };
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_stand_at_the_end_of_the_answer_and_in_its_meta() {
        let sources = [Citation::new("A [x]", "https://a"), Citation::new("", "https://b"), Citation::new("plan.pdf", "")];
        let answer = attach(Response::new("It is 4."), &sources, false);
        let want = "It is 4.\n\nSources:\n1. [A  x](<https://a>)\n2. <https://b>\n3. plan.pdf";
        assert_eq!(answer.full_message(), want);
        assert_eq!(answer.meta.get(Citation::META).unwrap()[0]["url"], "https://a");
        assert!(attach(Response::new("是四。"), &sources, false).full_message().contains("来源："));
        let prescribed = attach(Response::new("{}"), &sources, true);
        assert_eq!((prescribed.full_message(), prescribed.meta.get(Citation::META).is_some()), ("{}", true));
        assert_eq!(attach(Response::new("x"), &[], false), Response::new("x"));
        let mut known = Vec::new();
        collect(&mut known, &sources);
        collect(&mut known, &sources[1..]);
        assert_eq!(known.len(), 3);
    }
}
