//! The ids of traces and spans. They follow from the log alone, so what is sent twice is the same twice.

use polis_domain::{Digest, EffectId, Era, InquiryId, Seq, SocietyId, Spine, TaskId, TurnId};
use serde_json::Value;

/// Draws the ids of one society.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    society: SocietyId,
    seed: u64,
    eras: Vec<Era>,
}

impl Ids {
    pub(crate) fn of(society: SocietyId, spine: &Spine) -> Self {
        Self { society, seed: spine.seed, eras: spine.eras.to_vec() }
    }

    pub(crate) fn society(&self) -> &SocietyId {
        &self.society
    }

    /// The seed that holds now; another one after each fork.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Where the society began to go its own way; the beginning for most.
    pub(crate) fn forked(&self) -> Seq {
        self.eras.last().map_or(Seq(0), |era| era.ended)
    }

    /// The trace of a request. A rewound society goes on with the traces that it had.
    pub(crate) fn trace(&self, task: &TaskId) -> String {
        let (founding, task) = (self.founding(), task.as_str());
        self.hex(founding, &["trace", task]) + &self.hex(founding, &["trace, second half", task])
    }

    /// The span of a request: the first time that it is asked, and each time that the person comes back to it.
    pub(crate) fn request(&self, task: &TaskId, again: Option<Seq>) -> String {
        let again = again.map(|seq| seq.to_string()).unwrap_or_default();
        self.hex(self.founding(), &["request", task.as_str(), &again])
    }

    pub(crate) fn turn(&self, turn: TurnId) -> String {
        self.hex(self.seed_at(turn.0), &["turn", &turn.to_string()])
    }

    pub(crate) fn effect(&self, id: EffectId) -> String {
        self.hex(self.seed_at(id.turn.0), &["effect", &id.to_string()])
    }

    pub(crate) fn inquiry(&self, id: InquiryId) -> String {
        self.hex(self.seed_at(id.call.turn.0), &["inquiry", &id.call.to_string(), &id.seq.to_string()])
    }

    fn founding(&self) -> u64 {
        self.eras.first().map_or(self.seed, |era| era.seed)
    }

    fn seed_at(&self, seq: Seq) -> u64 {
        self.eras.iter().find(|era| seq < era.ended).map_or(self.seed, |era| era.seed)
    }

    /// 64 bits as 16 digits, which is how a digest is written down.
    fn hex(&self, seed: u64, parts: &[&str]) -> String {
        let seed = format!("{seed:016x}");
        let digest = Digest::of([self.society.as_str(), &seed].into_iter().chain(parts.iter().copied()));
        match serde_json::to_value(digest) {
            Ok(Value::String(hex)) => hex,
            _ => unreachable!("a digest is written as text"),
        }
    }
}
