//! Failures of turns, effects and requests, and their codes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why something failed, for programs (`code`) and for people (`message`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message} ({code})")]
pub struct Failure {
    /// A stable code in `snake_case`.
    pub code: FailureCode,
    /// What happened and what to do.
    pub message: String,
}

impl Failure {
    /// A failure with this code and message.
    pub fn new(code: impl Into<FailureCode>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// Declares [`FailureCode`], so that a code and its text are in one place.
macro_rules! failure_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// The code of a failure. The codes that Polis acts on are variants; agents and tools add codes of their own. JSON has
        /// the text.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailureCode {
            $($(#[$doc])* $name,)+
            /// Any other code: it is reported, and nothing depends on it.
            Other(OtherCode),
        }

        impl FailureCode {
            /// The codes that Polis acts on.
            pub const KNOWN: &[Self] = &[$(Self::$name),+];

            /// The code as text.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)+
                    Self::Other(code) => &code.0,
                }
            }

            fn known(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

failure_codes! {
    /// A person or a caller cancelled it.
    Cancelled = "cancelled",
    /// The workflow was told to stop.
    Stopped = "stopped",
    /// The agent that was asked does not take the request on.
    RequestRejected = "request_rejected",
    /// The deadline of a wait has passed.
    TimedOut = "timed_out",
    /// There is no such agent.
    UnknownAgent = "unknown_agent",
    /// There is no such role.
    UnknownRole = "unknown_role",
    /// A model call must wait until other calls have ended.
    BudgetBusy = "budget_busy",
    /// The agents send each other messages in a loop.
    MessageLoop = "message_loop",
    /// A chain of messages between agents is too long.
    TooManyHops = "too_many_hops",
    /// A request has had too many turns.
    TooManyTurns = "too_many_turns",
    /// The turn has made the same call too often.
    RepeatedCall = "repeated_call",
    /// The program ended during a model call.
    ModelInterrupted = "model_interrupted",
    /// The circuit of a vendor is open.
    ModelResting = "model_resting",
    /// Processes ended again and again while they ran the turn.
    EndsProcess = "ends_process",
    /// No code is registered for the behaviour of the turn.
    NoBehaviour = "no_behaviour",
    /// The version of a behaviour that the turn began with is not registered.
    VersionMissing = "version_missing",
    /// The disk has no room.
    DiskFull = "disk_full",
    /// The log takes more room than the operator allows.
    QuotaExceeded = "quota_exceeded",
}

/// The text of a code that is no variant of [`FailureCode`]. Only the conversions of [`FailureCode`] make one, so a known code
/// always is its variant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OtherCode(Arc<str>);

impl Deref for FailureCode {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&str> for FailureCode {
    fn from(text: &str) -> Self {
        Self::known(text).unwrap_or_else(|| Self::Other(OtherCode(text.into())))
    }
}

impl From<String> for FailureCode {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<Arc<str>> for FailureCode {
    fn from(text: Arc<str>) -> Self {
        Self::known(&text).unwrap_or(Self::Other(OtherCode(text)))
    }
}

impl Serialize for FailureCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Arc::<str>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FailureCode {
    fn inline_schema() -> bool {
        String::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Refusal;

    #[test]
    fn a_code_is_its_text_in_json_and_a_known_one_is_never_other() {
        for code in FailureCode::KNOWN {
            assert_eq!(json!(code), json!(code.as_str()));
            let read = [serde_json::from_value(json!(code)).unwrap(), code.as_str().into(), code.to_string().into()];
            assert!(read.iter().all(|read: &FailureCode| read == code), "{code}");
        }
        let failure = Failure::new("no_table", "there is none");
        assert_eq!(json!(failure), json!({ "code": "no_table", "message": "there is none" }));
        assert_eq!(serde_json::from_value::<Failure>(json!(failure)).unwrap(), failure);
        assert!(matches!(failure.code, FailureCode::Other(_)));
    }

    #[test]
    fn the_refusals_that_turns_act_on_have_known_codes() {
        let cases = [
            (Refusal::UnknownAgent("a".into()), FailureCode::UnknownAgent),
            (Refusal::UnknownRole("a".into()), FailureCode::UnknownRole),
            (Refusal::BudgetBusy, FailureCode::BudgetBusy),
            (Refusal::TooManyHops { limit: 1 }, FailureCode::TooManyHops),
            (Refusal::TooManyTurns { limit: 1 }, FailureCode::TooManyTurns),
            (Refusal::MessageLoop { to: "a".into(), sent: 1, received: 1, limit: 1 }, FailureCode::MessageLoop),
        ];
        for (refusal, code) in cases {
            assert_eq!(Failure::from(refusal).code, code);
        }
    }
}
