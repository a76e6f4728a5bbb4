//! The results of calls that a person declined: that the call was not made, and what the model should do instead. They are
//! derived from the log alone, so a second run gets the same.

use polis_domain::{CallResult, Effect, Review, Verdict};

use super::Turn;
use super::journal::Entry;

/// The tool that asks the person in words.
const ASK_PERSON: &str = "ask_person";

impl Turn {
    /// The result of a call that a person declined.
    pub(super) fn declined(&self, entry: &Entry, verdict: &Verdict) -> CallResult {
        if verdict.reason == Verdict::NOBODY_ASKED {
            return CallResult::failed(
                "not made: it needs a person's approval, and nobody is asked in this run. Go on without it and say what is missing.",
            );
        }
        let why = quoted(&verdict.reason);
        if has_changed(entry) {
            return CallResult::failed(format!(
                "not made: its server has changed this tool, and the person did not agree to the new form{why}. Do without it in \
                 this request."
            ));
        }
        let can_ask = self.start.limiting_roles.iter().all(|role| role.has_tool(ASK_PERSON));
        let or_ask = if can_ask { format!(", or ask with {ASK_PERSON} what they want instead") } else { String::new() };
        CallResult::failed(format!(
            "not made: the person said no{why}. Do not try it again, nor reach the same end another way. Go on without it{or_ask}."
        ))
    }

    /// The result of a question that a person did not answer, or of a client's tool that the client did not run.
    pub(super) fn unanswered(&self, tool: &str, verdict: &Verdict) -> CallResult {
        let why = quoted(&verdict.reason);
        CallResult::failed(if self.is_client_tool(tool) {
            format!("not made: the client that brought `{tool}` along declined it{why}. Go on without it.")
        } else if verdict.reason == Verdict::NOBODY_ASKED {
            "not answered: nobody is asked in this run. Decide for yourself, and say what you assumed.".to_owned()
        } else {
            format!("the person declined to answer{why}; do not ask again")
        })
    }
}

/// Whether the person was asked because the server has changed the tool.
fn has_changed(entry: &Entry) -> bool {
    let Some((Effect::Approval { details, .. }, _)) = entry.declared() else { return false };
    serde_json::from_value::<Review>(details.clone()).is_ok_and(|review| review.changed.is_some())
}

fn quoted(reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() { String::new() } else { format!(": \"{reason}\"") }
}
