//! Which history a place belongs to. A society that was forked or rewound shares only its beginning with the one before, so the
//! same number may be another event. Places of the first history are plain numbers; those of a later one have a mark behind
//! them, `1684.5f3c9a01`, so that nobody goes on in a history that is not the one that they were reading.

use axum::http::StatusCode;
use polis_domain::{Digest, Seq, Spine};

use crate::problem::Problem;

/// The histories of a society, oldest first: each with its mark and the first place that is no longer of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    earlier: Vec<(String, Seq)>,
    mark: String,
}

/// A place as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    seq: Seq,
    mark: String,
}

impl Past {
    pub(crate) fn of(spine: &Spine) -> Self {
        let mut marks = spine.eras.iter().map(|era| era.seed).chain([spine.seed]).enumerate().map(|(n, seed)| mark(n, seed));
        let earlier = spine.eras.iter().filter_map(|era| Some((marks.next()?, era.ended))).collect();
        Self { earlier, mark: marks.next().unwrap_or_default() }
    }

    /// The name of a place.
    pub(crate) fn name(&self, seq: Seq) -> String {
        let earlier = self.earlier.iter().find(|(_, ended)| seq < *ended).map(|(mark, _)| mark);
        match &**earlier.unwrap_or(&self.mark) {
            "" => seq.to_string(),
            mark => format!("{seq}.{mark}"),
        }
    }

    /// The place that a name means here; else from where on the two histories are not the same.
    pub(crate) fn find(&self, place: &Place) -> Result<Seq, Problem> {
        let Place { seq, mark } = place;
        if *mark == self.mark {
            return Ok(*seq);
        }
        let shared = match self.earlier.iter().find(|(earlier, _)| earlier == mark) {
            Some((_, ended)) if seq < ended => return Ok(*seq),
            Some((_, ended)) => ended.0.saturating_sub(1),
            None => 0,
        };
        let detail = format!(
            "event {seq} belongs to another history: the society was rewound or forked. Discard what you have after event {shared}, and continue with after={shared}"
        );
        Err(Problem::new(StatusCode::CONFLICT, "other_history", detail))
    }
}

impl std::str::FromStr for Place {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, mark) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        Ok(Self { seq: Seq(seq.parse()?), mark: mark.to_owned() })
    }
}

/// The mark of a history; the first one has none.
fn mark(n: usize, seed: u64) -> String {
    if n == 0 {
        return String::new();
    }
    let digest = serde_json::to_value(Digest::of(["history", &seed.to_string()])).unwrap_or_default();
    digest.as_str().unwrap_or_default().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(past: &Past, name: &str) -> Result<u64, String> {
        past.find(&name.parse().unwrap()).map(|seq| seq.0).map_err(|problem| problem.detail().to_owned())
    }

    #[test]
    fn a_place_is_found_as_long_as_its_history_is_shared() {
        let never = Past { earlier: Vec::new(), mark: String::new() };
        assert_eq!((never.name(Seq(7)), find(&never, "7"), find(&never, "7.b").is_err()), ("7".to_owned(), Ok(7), true));
        let twice = Past { earlier: vec![(String::new(), Seq(5)), ("b".to_owned(), Seq(9))], mark: "c".to_owned() };
        assert_eq!([4, 5, 8, 9].map(|seq| twice.name(Seq(seq))), ["4", "5.b", "8.b", "9.c"]);
        for name in ["4", "4.b", "8.b", "4.c", "9.c", "99.c"] {
            assert!(find(&twice, name).is_ok(), "{name}");
        }
        for (name, from) in [("5", "after=4"), ("9.b", "after=8"), ("3.x", "after=0")] {
            assert!(find(&twice, name).unwrap_err().ends_with(from), "{name}");
        }
        assert!("x".parse::<Place>().is_err() && ".b".parse::<Place>().is_err());
    }
}
