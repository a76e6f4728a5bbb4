//! Reads what a review comes to.

/// What becomes of a draft.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// It goes out.
    Accept,
    /// It goes back, with what is to be changed.
    Revise(&'a str),
    /// The review says neither: it failed, or was not understood.
    Unclear,
}

impl<'a> Verdict<'a> {
    /// The word that a review begins with, and what follows it.
    pub(super) fn read(review: &'a str) -> Self {
        let review = review.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = review.find(|c: char| !c.is_alphanumeric()).unwrap_or(review.len());
        let (word, rest) = review.split_at(end);
        match word.to_lowercase().as_str() {
            "accept" | "accepted" => Self::Accept,
            "revise" => Self::Revise(rest.trim_start_matches(|c: char| !c.is_alphanumeric()).trim_end()),
            _ => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_begins_with_its_verdict() {
        for (review, want) in [
            ("accept", Verdict::Accept),
            ("**Accept.** Good.", Verdict::Accept),
            ("revise: the second section\nis thin.\n", Verdict::Revise("the second section\nis thin.")),
            ("REVISE\n\n- no source", Verdict::Revise("no source")),
            ("This came to nothing: no model", Verdict::Unclear),
            ("I would accept it", Verdict::Unclear),
            ("", Verdict::Unclear),
        ] {
            assert_eq!(Verdict::read(review), want, "{review}");
        }
    }
}
