//! Questions of running calls, to the person or to a model. They are logged beside the call and are no effects of the turn: a
//! call with a result is never run again, so its questions need no replay. A question whose call was cut off is void.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::{BadEffectId, Digest, EffectId, Failure, Question, Reply, Reserved, Ruling, Seq, Spent, Verdict, Wanted};

/// The id of a question: the call, and the position of the event that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InquiryId {
    /// The call.
    pub call: EffectId,
    /// The position of the question.
    pub seq: Seq,
}

/// The question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Inquiry {
    /// A question to the person.
    Person {
        /// The question itself.
        question: Question,
        /// The full details.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        details: Value,
        /// What an approval with `always` would cover, if it is possible.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Arc<str>>,
    },
    /// A model request within the budgets of the calling agent.
    Model {
        /// The model.
        model: Arc<str>,
        /// The digest of the request.
        request: Digest,
        /// The end of the prompt, for display.
        prompt: String,
        /// What is reserved for it in budgets.
        reserve: Spent,
        /// The name that policy rules use for it.
        about: Arc<str>,
        /// The ruling of the policy.
        #[serde(default)]
        ruling: Ruling,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The decision of the person.
    Verdict(Verdict),
    /// The person declined to answer.
    Cancelled,
    /// The reply of the model.
    Reply(Reply),
    /// It failed or became void.
    Failed(Failure),
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OpenInquiry {
    /// A question to the person.
    Person {
        /// The form of the answer.
        wanted: Wanted,
        /// What an approval with `always` would cover.
        about: Option<Arc<str>>,
    },
    /// A model request, and what is reserved for it.
    Model(Reserved),
}

impl Answer {
    /// The answer to a question that became void.
    pub fn void() -> Self {
        Self::Failed(Failure::new("void", "nobody waits for the answer any more"))
    }

    /// Whether the person gave it.
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
