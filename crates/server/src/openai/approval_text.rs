//! Approvals in a chat: describes what waits for a person, and reads decisions from the person's message.

use serde_json::json;

use polis_api::{Approval, Decision, Pending};

/// What a person reads when the society waits for them.
pub(super) fn notice(waiting: &[Approval]) -> String {
    let is_own = waiting.iter().any(|approval| approval.approvers.is_empty());
    let whose = if is_own { "your" } else { "another person's" };
    let mut lines = vec![format!("Polis needs {whose} decision before it continues:")];
    for approval in waiting {
        let id = &approval.id;
        let (what, how) = match &approval.pending {
            Pending::Approval { question, call, .. } => {
                let arguments = call.as_ref().map(|call| format!("\n  `{} {}`", call.tool, call.arguments)).unwrap_or_default();
                (format!("{question}{arguments}"), format!("`approve {id}` or `deny {id} why`"))
            }
            Pending::Question { question, .. } => (question.clone(), format!("`answer {id} TEXT`, or `deny {id}`")),
            Pending::InDoubt { call } => {
                let what = format!("`{} {}` was started, and it is unknown whether it was done", call.tool, call.arguments);
                (what, format!("`done {id}`, `not_done {id}` or `again {id}`, after checking"))
            }
            Pending::Parked { failure } => (format!("it is parked: {failure}"), format!("`again {id}`")),
        };
        lines.push(match approval.decided_by_others() {
            Some(who) => format!("- {what}\n  {who}; ask again later."),
            None => format!("- {what}\n  Reply {how}."),
        });
    }
    lines.join("\n")
}

/// The decisions in a person's message; empty for an ordinary message.
pub(super) fn read_decisions(text: &str, waiting: &[Approval]) -> Vec<(String, Decision)> {
    let text = text.trim();
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let (named, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let one = waiting.iter().find(|approval| approval.id == named);
    // Without a name it is about everything that waits.
    let (about, words): (Vec<&Approval>, &str) = match one {
        Some(one) => (vec![one], words.trim()),
        None => (waiting.iter().collect(), rest),
    };
    let verb = verb.trim_end_matches(['.', '!', '。', '！', ',', '，']).to_lowercase();
    let decide = |approval: &Approval| {
        let body = match (&*verb, &approval.pending) {
            ("approve" | "approved" | "yes" | "ok" | "同意" | "批准" | "是", Pending::Approval { .. }) if words.is_empty() =>
            {
                json!({ "approved": true })
            }
            ("deny" | "denied" | "no" | "拒绝" | "不同意" | "否", Pending::Approval { .. } | Pending::Question { .. }) => {
                json!({ "approved": false, "reason": words })
            }
            ("answer" | "回答", Pending::Question { .. }) if !words.is_empty() => json!({ "answer": words }),
            ("done" | "not_done" | "again", Pending::InDoubt { .. }) if words.is_empty() => json!({ "outcome": verb }),
            ("done" | "not_done", Pending::InDoubt { .. }) => json!({ "outcome": verb, "result": words }),
            ("again", Pending::Parked { .. }) => json!({ "outcome": verb }),
            // With a single open question, any text is its answer.
            (_, Pending::Question { .. }) if waiting.len() == 1 && one.is_none() && !text.is_empty() => {
                json!({ "answer": text })
            }
            _ => return None,
        };
        Some((approval.id.clone(), serde_json::from_value(body).ok()?))
    };
    about.into_iter().filter_map(decide).collect()
}

#[cfg(test)]
mod tests {
    use polis_domain::{Verdict, Wanted};
    use serde_json::Value;

    use super::*;

    fn approval(id: &str, what: Pending) -> Approval {
        let (agent_id, task_id) = ("root".into(), "t".into());
        let (thread, path, person) = ("root".into(), String::new(), None);
        Approval { id: id.to_owned(), agent_id, task_id, thread, path, person, approvers: Vec::new(), pending: what }
    }

    fn ask(id: &str) -> Approval {
        approval(
            id,
            Pending::Approval {
                question: "May root use it?".to_owned(),
                details: Value::Null,
                call: None,
                deadline: None,
                change: None,
            },
        )
    }

    fn decisions(text: &str, waiting: &[Approval]) -> Vec<(String, Option<Verdict>)> {
        let verdict = |(id, word)| match word {
            Decision::Verdict(verdict) => (id, Some(verdict)),
            _ => (id, None),
        };
        read_decisions(text, waiting).into_iter().map(verdict).collect()
    }

    #[test]
    fn words_on_what_waits_are_understood_and_others_are_not() {
        let waiting = [ask("1.0"), ask("2.0")];
        let yes = |id: &str| (id.to_owned(), Some(Verdict::yes()));
        assert_eq!(decisions("approve 2.0", &waiting), [yes("2.0")]);
        assert_eq!(decisions("Yes!", &waiting), [yes("1.0"), yes("2.0")]);
        assert_eq!(decisions("同意", &waiting[..1]), [yes("1.0")]);
        assert_eq!(decisions("deny 1.0 not today", &waiting), [("1.0".to_owned(), Some(Verdict::no("not today")))]);
        for text in ["yes, but first read the file", "approve of what?", "what is this?", ""] {
            assert_eq!(decisions(text, &waiting), [], "{text}");
        }
    }

    #[test]
    fn the_one_question_is_answered_by_whatever_is_said() {
        let wanted = Wanted::Text { options: Vec::new() };
        let what = Pending::Question {
            question: "which?".to_owned(),
            details: Value::Null,
            wanted,
            server: None,
            call: None,
            deadline: None,
        };
        let waiting = [approval("3.1", what)];
        assert_eq!(decisions("the blue one", &waiting), [("3.1".to_owned(), Some(Verdict::words("the blue one")))]);
        assert!(notice(&waiting).contains("answer 3.1"));
    }
}
