//! Pending approvals on the terminal: lists them, describes each one, and asks the person for a decision.

use std::ops::Deref;

use polis_api::{Approval, DecisionOutcome, DecisionRequest, Paging, Pending};
use polis_domain::{Always, Changed, Matching, PersonId, Review, Ruling, Wanted};
use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
use crate::error::CliError;
use crate::form_prompt;
use crate::out;
use crate::stdin_lines::{Line, StdinLines};
use crate::transport::Transport;

/// One thing that waits for a person.
#[derive(Debug, Clone)]
pub(crate) struct PendingApproval(Approval);

impl Deref for PendingApproval {
    type Target = Approval;

    fn deref(&self) -> &Approval {
        &self.0
    }
}

/// The person's decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PersonDecision {
    Yes,
    /// For a call: other arguments, for whom not to ask again, and about which calls.
    YesWith {
        arguments: Option<Value>,
        always: Option<Always>,
        matching: Option<Matching>,
    },
    No(String),
    Done(String),
    Again,
    /// For a question: the text, or the form as JSON.
    Answer(String),
    /// For a question of a server: neither yes nor no.
    Cancel,
}

/// Blanks in a row that are shown as they are.
const MAX_GAP: usize = 40;

/// Everything that waits for a person.
pub(crate) async fn list(transport: &Transport) -> Result<Vec<PendingApproval>, CliError> {
    let listed = transport.api().approvals(&Paging::default()).await?;
    Ok(listed.approvals.into_iter().map(PendingApproval).collect())
}

impl PendingApproval {
    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let Approval { id, agent_id, person, .. } = &self.0;
        let agent = match person {
            Some(person) if *person != PersonId::owner() => format!("{agent_id} (for {person})"),
            _ => agent_id.to_string(),
        };
        match &self.pending {
            Pending::Approval { question, .. } if self.is_budget() => format!("{id}  {agent} asks: {question}"),
            Pending::Approval { question, call: Some(call), details, .. } => {
                let review = Review::deserialize(details).unwrap_or_default();
                format!(
                    "{id}  {agent} asks: {question}  {} {}{}",
                    call.tool,
                    compact_gaps(&call.arguments),
                    review_lines(&review)
                )
            }
            Pending::Approval { question, details: Value::Null, .. } => format!("{id}  {agent} asks: {question}"),
            Pending::Approval { question, details, .. } => format!("{id}  {agent} asks: {question} {details}"),
            Pending::Question { question, details, wanted, server, call, .. } => {
                let whose = match (server, call) {
                    (Some(_), Some(call)) => format!("{question}  (for {agent}, which calls {} {})", call.tool, call.arguments),
                    (Some(_), None) => question.clone(),
                    (None, _) => format!("{agent} asks: {question}"),
                };
                let wanted = match wanted {
                    Wanted::Text { options } if !options.is_empty() => format!("  [{}]", options.join(" | ")),
                    Wanted::Form { schema } => format!("  {}", form_prompt::describe(schema)),
                    Wanted::Visit { url } => format!("  {url}"),
                    Wanted::Agreement if !details.is_null() => format!("  {details}"),
                    Wanted::Agreement | Wanted::Text { .. } => String::new(),
                };
                format!("{id}  {whose}{wanted}")
            }
            Pending::InDoubt { call } => {
                format!("{id}  {agent} called {} {}, and it is unknown whether it was done", call.tool, call.arguments)
            }
            Pending::Parked { failure } => format!("{id}  {agent} is parked: {failure}"),
        }
    }

    /// Whether a person is asked, and nothing is broken.
    pub(crate) fn is_question(&self) -> bool {
        matches!(self.pending, Pending::Approval { .. } | Pending::Question { .. })
    }

    /// Whether a yes answers it.
    pub(crate) fn can_be_approved(&self) -> bool {
        matches!(self.pending, Pending::Approval { .. } | Pending::Question { wanted: Wanted::Agreement, .. })
    }

    /// Whether a server asks while a call runs there.
    pub(crate) fn is_from_server(&self) -> bool {
        matches!(self.pending, Pending::Question { server: Some(_), .. })
    }

    /// Whether it asks for more than a budget allows.
    pub(crate) fn is_budget(&self) -> bool {
        matches!(&self.pending, Pending::Approval { details, .. } if details.get("budget").is_some())
    }

    /// Whether it asks about a plan, which can be changed.
    pub(crate) fn is_plan(&self) -> bool {
        matches!(&self.pending, Pending::Approval { details, call: None, .. } if details.get("todos").is_some())
    }

    /// The command to type.
    pub(crate) fn advice(&self, config: &Config) -> String {
        let Approval { id, task_id: task, .. } = &self.0;
        let again = |command: String| config.command_to_continue(&command);
        if let Some(who) = self.decided_by_others() {
            return format!(
                "{who}; the request continues then, or cancel it with `{}`",
                config.command_line(&format!("cancel {task}"))
            );
        }
        match &self.pending {
            Pending::Approval { call, .. } => {
                let more = match call {
                    Some(call) if matches!(call.ruling, Ruling::AskEach(_)) => " [--arguments JSON]",
                    Some(_) => " [--arguments JSON] [--always agent|task|tool|reads [--where PATTERN]]",
                    None if self.is_plan() => " [--arguments '{\"todos\": […]}']",
                    None => "",
                };
                format!(
                    "approve with `{}`, or deny with `{}`",
                    again(format!("approve {id}{more}")),
                    again(format!("deny {id} [reason]"))
                )
            }
            Pending::Question { wanted, server, .. } => {
                let yes = match wanted {
                    Wanted::Text { options } if options.is_empty() => {
                        format!("answer with `{}`", again(format!("answer {id} TEXT")))
                    }
                    Wanted::Text { .. } => format!("answer with `{}`", again(format!("answer {id} OPTION"))),
                    Wanted::Form { .. } => format!("answer with `{}`", again(format!("answer {id} JSON"))),
                    Wanted::Visit { .. } => {
                        format!("go there yourself if you trust it, then `{}`", again(format!("approve {id}")))
                    }
                    Wanted::Agreement => format!("agree with `{}`", again(format!("approve {id} [--always agent|task|tool]"))),
                };
                let cancel = if server.is_some() {
                    format!(", or dismiss it with `{}`", again(format!("deny {id} --cancel")))
                } else {
                    String::new()
                };
                format!("{yes}, or deny with `{}`{cancel}", again(format!("deny {id} [reason]")))
            }
            Pending::InDoubt { .. } => format!(
                "check whether it was done; then `{}`, or `{}`, or repeat it with `{}`",
                again(format!("approve {id} --done \"the result\"")),
                again(format!("deny {id}")),
                again(format!("approve {id} --again")),
            ),
            Pending::Parked { .. } => format!(
                "resume it with `{}`, or cancel the request with `{}`",
                again(format!("approve {id} --again")),
                config.command_line(&format!("cancel {task}")),
            ),
        }
    }

    /// Sends the decision. One that does not fit is refused before anything is sent.
    pub(crate) async fn answer(&self, transport: &Transport, decision: &PersonDecision) -> Result<(), CliError> {
        transport.api().resolve(&self.id, self.request(decision)?).await?;
        Ok(())
    }

    /// The API request for a decision; an error where it does not fit.
    fn request(&self, decision: &PersonDecision) -> Result<DecisionRequest, CliError> {
        let none = DecisionRequest::default;
        let yes = || DecisionRequest { approved: Some(true), ..none() };
        let no = |reason: &String| DecisionRequest { approved: Some(false), reason: reason.clone(), ..none() };
        let outcome = |outcome| DecisionRequest { outcome: Some(outcome), ..none() };
        Ok(match (&self.pending, decision) {
            (Pending::Approval { .. }, PersonDecision::Yes) => yes(),
            (Pending::Approval { call: Some(_), .. }, PersonDecision::YesWith { arguments, always, matching }) => {
                DecisionRequest { arguments: arguments.clone(), always: *always, r#where: matching.clone(), ..yes() }
            }
            (Pending::Approval { .. }, PersonDecision::YesWith { arguments: Some(arguments), always: None, .. })
                if self.is_plan() =>
            {
                DecisionRequest { arguments: Some(arguments.clone()), ..yes() }
            }
            (
                Pending::Question { wanted: Wanted::Agreement, .. },
                PersonDecision::YesWith { arguments: None, always, matching: None },
            ) => DecisionRequest { always: *always, ..yes() },
            (Pending::Question { wanted: Wanted::Agreement | Wanted::Visit { .. }, .. }, PersonDecision::Yes) => yes(),
            (Pending::Question { wanted: Wanted::Text { .. }, .. }, PersonDecision::Answer(text)) => {
                DecisionRequest { answer: Some(text.as_str().into()), ..none() }
            }
            (Pending::Question { wanted: Wanted::Form { .. }, .. }, PersonDecision::Answer(text)) => {
                let form: Value = serde_json::from_str(text)
                    .map_err(|error| CliError::usage("bad_answer", format!("the answer is not JSON: {error}")))?;
                DecisionRequest { answer: Some(form), ..none() }
            }
            (Pending::Question { .. }, PersonDecision::No(reason)) => no(reason),
            (Pending::Question { server: Some(_), .. }, PersonDecision::Cancel) => outcome(DecisionOutcome::Cancelled),
            (
                Pending::Question { .. },
                PersonDecision::Yes | PersonDecision::YesWith { .. } | PersonDecision::Done(_) | PersonDecision::Again,
            ) => {
                return Err(self.mismatch("it is a question; answer or deny it"));
            }
            (_, PersonDecision::Answer(_)) => return Err(self.mismatch("it takes no text; approve or deny it")),
            (_, PersonDecision::Cancel) => return Err(self.mismatch("only questions of servers can be cancelled; deny it")),
            (_, PersonDecision::YesWith { .. }) => {
                return Err(self.mismatch("--arguments are for calls of tools and plans, --always for calls of tools"));
            }
            (Pending::Approval { .. }, PersonDecision::No(reason)) => no(reason),
            (Pending::InDoubt { .. }, PersonDecision::Done(result)) => {
                DecisionRequest { result: Some(result.clone()), ..outcome(DecisionOutcome::Done) }
            }
            (Pending::InDoubt { .. }, PersonDecision::No(reason)) => {
                let result = Some(reason.clone()).filter(|reason| !reason.is_empty());
                DecisionRequest { result, ..outcome(DecisionOutcome::NotDone) }
            }
            (Pending::InDoubt { .. } | Pending::Parked { .. }, PersonDecision::Again) => outcome(DecisionOutcome::Again),
            (Pending::Approval { .. }, PersonDecision::Done(_) | PersonDecision::Again) => {
                return Err(self.mismatch("it is a question; approve or deny it"));
            }
            (Pending::InDoubt { .. }, PersonDecision::Yes) => {
                return Err(
                    self.mismatch("it is a write in doubt; use --done RESULT or --again, or deny it if it was not done")
                );
            }
            (Pending::Parked { .. }, PersonDecision::Yes | PersonDecision::No(_) | PersonDecision::Done(_)) => {
                return Err(self.mismatch("it is blocked; say --again, or cancel its task"));
            }
        })
    }

    /// Asks on the terminal. False when nobody is there to answer.
    pub(crate) async fn ask(&self, transport: &Transport, lines: &mut StdinLines) -> Result<bool, CliError> {
        out::note(&self.describe());
        loop {
            if let Pending::Question { wanted: wanted @ (Wanted::Text { .. } | Wanted::Form { .. }), .. } = &self.pending {
                let Some(decision) = form_prompt::ask(wanted, lines).await else { return Ok(false) };
                match self.answer(transport, &decision).await {
                    Err(error) if ["not_waiting", "bad_answer"].contains(&&*error.code) => out::note(&error.message),
                    answered => return answered.map(|()| true),
                }
                continue;
            }
            let prompt = match self.pending {
                Pending::Approval { .. } if self.is_plan() => "approve? [y / y {\"todos\": […]} / n reason] ",
                Pending::Approval { ref details, .. } => match Review::deserialize(details).unwrap_or_default() {
                    Review { reads, .. } if !reads.is_empty() => "approve? [y / n reason / always / reads] ",
                    Review { always: Some(_), .. } => "approve? [y / n reason / always] ",
                    _ => "approve? [y / n reason] ",
                },
                Pending::Question { wanted: Wanted::Visit { .. }, .. } => "done? [y / n reason] ",
                Pending::Question { .. } => "approve? [y / n reason] ",
                Pending::InDoubt { .. } => "was it done? [done RESULT / n reason / again] ",
                Pending::Parked { .. } => "[again] ",
            };
            let text = match lines.prompt(prompt).await {
                Some(Line::Text(text)) => text,
                Some(Line::Garbled) => continue,
                None => return Ok(false),
            };
            let Some(decision) = PersonDecision::read(&text) else {
                out::note("polis: that is none of the answers; begin with one of the words in the brackets");
                continue;
            };
            match self.answer(transport, &decision).await {
                Err(error) if ["not_waiting", "bad_answer"].contains(&&*error.code) => out::note(&error.message),
                answered => return answered.map(|()| true),
            }
        }
    }

    fn mismatch(&self, why: &str) -> CliError {
        CliError::new("not_waiting", format!("{} needs another answer: {why}", self.id))
    }
}

/// The text with long gaps as numbers: text behind a long gap would leave the screen.
fn compact_gaps(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(&" ".repeat(MAX_GAP)) {
        let behind = rest[at..].trim_start_matches(' ');
        shown.push_str(&format!("{}[{} blanks]", &rest[..at], rest.len() - at - behind.len()));
        rest = behind;
    }
    shown + rest
}

/// What a person should know about a call, one item per line.
fn review_lines(review: &Review) -> String {
    let mut lines = String::new();
    if !review.covers.is_empty() {
        lines.push_str(&format!("\n    --always would cover: {}", review.covers));
    }
    if !review.reads.is_empty() {
        lines.push_str(&format!("\n    --always reads would cover: {}", review.reads.join(", ")));
    }
    if let Some(Changed { before, after }) = &review.changed {
        let only_in = |text: &str, other: &str, mark: &str| -> String {
            text.lines()
                .filter(|line| !other.lines().any(|it| it == *line))
                .map(|line| format!("\n    {mark} {line}"))
                .collect()
        };
        let differs = only_in(before, after, "-") + &only_in(after, before, "+");
        lines.push_str(if differs.is_empty() { "\n    only the order within its definition differs" } else { &differs });
    }
    lines
}

impl PersonDecision {
    /// Parses the input; none if it is not a decision.
    fn read(text: &str) -> Option<Self> {
        let (first, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match first.to_lowercase().as_str() {
            "y" | "yes" | "是" | "好" if rest.trim_start().starts_with('{') => {
                let arguments = serde_json::from_str(rest).ok()?;
                Some(Self::YesWith { arguments: Some(arguments), always: None, matching: None })
            }
            "y" | "yes" | "是" | "好" => Some(Self::Yes),
            "n" | "no" | "否" | "不" => Some(Self::No(rest.trim().to_owned())),
            "a" | "always" | "总是" => Some(Self::YesWith { arguments: None, always: Some(Always::Tool), matching: None }),
            "reads" => Some(Self::YesWith { arguments: None, always: Some(Always::Reads), matching: None }),
            "done" => Some(Self::Done(rest.trim().to_owned())),
            "again" => Some(Self::Again),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_hides_behind_a_gap() {
        assert_eq!(
            compact_gaps(&format!("a  b{}c{}", " ".repeat(6000), " ".repeat(39))),
            format!("a  b[6000 blanks]c{}", " ".repeat(39))
        );
    }

    #[test]
    fn always_is_a_word_at_the_terminal() {
        let always = |always| Some(PersonDecision::YesWith { arguments: None, always: Some(always), matching: None });
        assert_eq!(
            (PersonDecision::read("always"), PersonDecision::read("A"), PersonDecision::read("reads")),
            (always(Always::Tool), always(Always::Tool), always(Always::Reads))
        );
    }

    #[test]
    fn a_yes_may_bring_other_arguments() {
        let with = |arguments| Some(PersonDecision::YesWith { arguments: Some(arguments), always: None, matching: None });
        assert_eq!(PersonDecision::read("y {\"todos\": []}"), with(json!({ "todos": [] })));
        assert_eq!(PersonDecision::read("y {\"todos\": ["), None, "what cannot be read is asked for again");
        assert_eq!(
            (PersonDecision::read(" YES "), PersonDecision::read("no thanks")),
            (Some(PersonDecision::Yes), Some(PersonDecision::No("thanks".to_owned())))
        );
    }
}
