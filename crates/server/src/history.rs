//! Log positions across forks and rewinds. A forked or rewound society shares only its beginning with the original, so the same
//! sequence number may be another event. Positions of the first history are plain numbers; those of a later one carry its id,
//! `1684.5f3c9a01`, so that a client never continues in a history that it was not reading.

use axum::http::StatusCode;
use polis_domain::{Digest, Seq, Spine};

use crate::problem::Problem;

/// The histories of a society, oldest first: each with its id and the first position that no longer belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct History {
    earlier: Vec<(String, Seq)>,
    history_id: String,
}

/// A position as a client sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPosition {
    seq: Seq,
    history_id: String,
}

impl History {
    pub(crate) fn of(spine: &Spine) -> Self {
        let mut ids =
            spine.eras.iter().map(|era| era.seed).chain([spine.seed]).enumerate().map(|(n, seed)| history_id(n, seed));
        let earlier = spine.eras.iter().filter_map(|era| Some((ids.next()?, era.ended))).collect();
        Self { earlier, history_id: ids.next().unwrap_or_default() }
    }

    /// The position of an event, as clients get it.
    pub(crate) fn position(&self, seq: Seq) -> String {
        let earlier = self.earlier.iter().find(|(_, ended)| seq < *ended).map(|(history_id, _)| history_id);
        match &**earlier.unwrap_or(&self.history_id) {
            "" => seq.to_string(),
            history_id => format!("{seq}.{history_id}"),
        }
    }

    /// The sequence number of a position; an error with the last shared event if it belongs to another history.
    pub(crate) fn resolve(&self, position: &LogPosition) -> Result<Seq, Problem> {
        let LogPosition { seq, history_id } = position;
        if *history_id == self.history_id {
            return Ok(*seq);
        }
        let shared = match self.earlier.iter().find(|(earlier, _)| earlier == history_id) {
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

impl std::str::FromStr for LogPosition {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, history_id) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        Ok(Self { seq: Seq(seq.parse()?), history_id: history_id.to_owned() })
    }
}

/// The id of a history; the first one has none.
fn history_id(n: usize, seed: u64) -> String {
    if n == 0 {
        return String::new();
    }
    let digest = serde_json::to_value(Digest::of(["history", &seed.to_string()])).unwrap_or_default();
    digest.as_str().unwrap_or_default().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(history: &History, name: &str) -> Result<u64, String> {
        history.resolve(&name.parse().unwrap()).map(|seq| seq.0).map_err(|problem| problem.detail().to_owned())
    }

    #[test]
    fn a_place_is_found_as_long_as_its_history_is_shared() {
        let never = History { earlier: Vec::new(), history_id: String::new() };
        assert_eq!((never.position(Seq(7)), find(&never, "7"), find(&never, "7.b").is_err()), ("7".to_owned(), Ok(7), true));
        let twice = History { earlier: vec![(String::new(), Seq(5)), ("b".to_owned(), Seq(9))], history_id: "c".to_owned() };
        assert_eq!([4, 5, 8, 9].map(|seq| twice.position(Seq(seq))), ["4", "5.b", "8.b", "9.c"]);
        for name in ["4", "4.b", "8.b", "4.c", "9.c", "99.c"] {
            assert!(find(&twice, name).is_ok(), "{name}");
        }
        for (name, from) in [("5", "after=4"), ("9.b", "after=8"), ("3.x", "after=0")] {
            assert!(find(&twice, name).unwrap_err().ends_with(from), "{name}");
        }
        assert!("x".parse::<LogPosition>().is_err() && ".b".parse::<LogPosition>().is_err());
    }
}
