//! What a running call asks of us: a word of the person, or a model's. It stands in the log beside the call and is no effect of
//! the turn: once the call has its result, nobody asks again. A question whose call was cut is void.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::{BadEffectId, Digest, EffectId, Failure, Question, Reply, Reserved, Ruling, Seq, Spent, Verdict, Wanted};

/// One inquiry: the call, and the place of the event that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InquiryId {
    /// The call.
    pub call: EffectId,
    /// Where it was asked.
    pub seq: Seq,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Inquiry {
    /// The person.
    Person {
        /// What.
        question: Question,
        /// What it is about, in full.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        details: Value,
        /// What the word may be given for always, if it may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Arc<str>>,
    },
    /// A model, on the account of whoever calls.
    Model {
        /// Which model.
        model: Arc<str>,
        /// Tells this request from any other.
        request: Digest,
        /// The end of what the model is told.
        prompt: String,
        /// The most that it can cost.
        reserve: Spent,
        /// Under which name the policy knows it.
        about: Arc<str>,
        /// What the policy says.
        #[serde(default)]
        ruling: Ruling,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// What the person said.
    Verdict(Verdict),
    /// The person turned away and said nothing.
    Cancelled,
    /// What the model said.
    Reply(Reply),
    /// Nothing: it failed, or nobody waits for it any more.
    Failed(Failure),
}

/// An inquiry without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OpenInquiry {
    /// The person is asked.
    Person {
        /// What an answer must be.
        wanted: Wanted,
        /// What the word may be given for always.
        about: Option<Arc<str>>,
    },
    /// A model is asked, and this is reserved for it.
    Model(Reserved),
}

impl Answer {
    /// An inquiry that nobody waits for any more.
    pub fn void() -> Self {
        Self::Failed(Failure::new("void", "nobody waits for the answer any more"))
    }

    /// Whether it comes from outside the turn.
    pub fn is_persons(&self) -> bool {
        matches!(self, Self::Verdict(_) | Self::Cancelled)
    }
}

impl fmt::Display for InquiryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.call, self.seq)
    }
}

impl FromStr for InquiryId {
    type Err = BadEffectId;

    fn from_str(text: &str) -> Result<Self, BadEffectId> {
        let (call, seq) = text.rsplit_once('.').ok_or_else(|| BadEffectId(text.to_owned()))?;
        let seq = seq.parse().map_err(|_| BadEffectId(text.to_owned()))?;
        Ok(Self { call: call.parse()?, seq: Seq(seq) })
    }
}

impl Serialize for InquiryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InquiryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TurnId;

    #[test]
    fn an_id_is_written_as_it_is_read_and_is_no_effects() {
        let id = InquiryId { call: EffectId { turn: TurnId(Seq(12)), n: 3 }, seq: Seq(57) };
        assert_eq!(id.to_string(), "12.3.57");
        assert_eq!("12.3.57".parse(), Ok(id));
        assert!("12.3".parse::<InquiryId>().is_err() && "12.3.57".parse::<EffectId>().is_err());
    }
}
