//! Amazon Bedrock's Converse: one interface to the models of many makers, with fields of their own where they differ.

mod reply;
mod request;

use crate::percent;

pub(crate) use reply::ConverseReader;
pub(crate) use request::body;

/// Where a model is asked. Its name may be an address of Amazon's own kind, with colons and slashes.
pub(crate) fn path(model: &str, streams: bool) -> String {
    let operation = if streams { "converse-stream" } else { "converse" };
    format!("/model/{}/{operation}", percent::encoded(model, b""))
}

/// Whether a refusal says that the model answers this only as a whole.
pub(crate) fn wants_no_stream(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    reason.contains("streaming") && ["support", "unsupported", "not available"].iter().any(|word| reason.contains(word))
}

/// Whether this is a model of Anthropic.
pub(crate) fn is_claude(model: &str) -> bool {
    model.contains("anthropic.claude")
}

/// The maker's own name for a model, without the regions that may be asked.
pub(crate) fn without_regions(model: &str) -> &str {
    match model.split_once('.') {
        Some((regions, rest)) if rest.contains('.') && REGIONS.contains(&regions) => rest,
        _ => model,
    }
}

/// The prefixes of profiles that ask in several regions.
const REGIONS: [&str; 8] = ["us", "eu", "apac", "global", "jp", "au", "ca", "us-gov"];
