//! What waits for a person: the list, each in words, and asking about it on the spot.

use polis_domain::{AgentId, Call, Changed, Failure, Matching, Review, Ruling, TaskId, Wanted};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::address::encoded;
use crate::config::Config;
use crate::door::Door;
use crate::form;
use crate::lines::{Line, Lines};
use crate::out;
use crate::trouble::Trouble;

/// One thing that waits for a person.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Waiting {
    pub(crate) id: String,
    pub(crate) agent_id: AgentId,
    pub(crate) task_id: TaskId,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum What {
    Approval {
        question: String,
        #[serde(default)]
        details: Value,
        #[serde(default)]
        call: Option<Call>,
    },
    /// More than a yes is wanted, or a server asks.
    Question {
        question: String,
        #[serde(default)]
        details: Value,
        wanted: Wanted,
        #[serde(default)]
        server: Option<String>,
        #[serde(default)]
        call: Option<Call>,
    },
    InDoubt {
        call: Call,
    },
    Parked {
        failure: Failure,
    },
}

/// What a person says to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Yes,
    /// For a call: other arguments, for whom not to ask again, and about which calls.
    YesWith {
        arguments: Option<Value>,
        always: Option<&'static str>,
        matching: Option<Matching>,
    },
    No(String),
    Done(String),
    Again,
    /// For a question: the words, or the form as JSON.
    Answer(String),
    /// For a question of a server: neither yes nor no.
    Cancel,
}

/// Blanks in a row that are shown as they are.
const MAX_GAP: usize = 40;

/// Everything that waits for a person.
pub(crate) async fn list(door: &Door) -> Result<Vec<Waiting>, Trouble> {
    #[derive(Deserialize)]
    struct Listed {
        approvals: Vec<Waiting>,
    }
    let listed: Listed = door.get("/api/approvals").await?;
    Ok(listed.approvals)
}

impl Waiting {
    /// One line for people.
    pub(crate) fn in_words(&self) -> String {
        let Self { id, agent_id: agent, .. } = self;
        match &self.what {
            What::Approval { question, .. } if self.is_budget() => format!("{id}  {agent} asks: {question}"),
            What::Approval { question, call: Some(call), details } => {
                let review = Review::deserialize(details).unwrap_or_default();
                format!("{id}  {agent} asks: {question}  {} {}{}", call.tool, tight(&call.arguments), in_lines(&review))
            }
            What::Approval { question, details: Value::Null, .. } => format!("{id}  {agent} asks: {question}"),
            What::Approval { question, details, .. } => format!("{id}  {agent} asks: {question} {details}"),
            What::Question { question, details, wanted, server, call } => {
                let whose = match (server, call) {
                    (Some(_), Some(call)) => format!("{question}  (for {agent}, which calls {} {})", call.tool, call.arguments),
                    (Some(_), None) => question.clone(),
                    (None, _) => format!("{agent} asks: {question}"),
                };
                let wanted = match wanted {
                    Wanted::Text { options } if !options.is_empty() => format!("  [{}]", options.join(" | ")),
                    Wanted::Form { schema } => format!("  {}", form::in_words(schema)),
                    Wanted::Visit { url } => format!("  {url}"),
                    Wanted::Agreement if !details.is_null() => format!("  {details}"),
                    Wanted::Agreement | Wanted::Text { .. } => String::new(),
                };
                format!("{id}  {whose}{wanted}")
            }
            What::InDoubt { call } => {
                format!("{id}  {agent} called {} {}, and it is unknown whether it was done", call.tool, call.arguments)
            }
            What::Parked { failure } => format!("{id}  {agent} is parked: {failure}"),
        }
    }

    /// Whether a person is asked, and nothing is broken.
    pub(crate) fn is_question(&self) -> bool {
        matches!(self.what, What::Approval { .. } | What::Question { .. })
    }

    /// Whether a yes answers it.
    pub(crate) fn wants_a_yes(&self) -> bool {
        matches!(self.what, What::Approval { .. } | What::Question { wanted: Wanted::Agreement, .. })
    }

    /// Whether a server asks while a call runs there.
    pub(crate) fn is_servers(&self) -> bool {
        matches!(self.what, What::Question { server: Some(_), .. })
    }

    /// Whether it asks for more than a budget allows.
    pub(crate) fn is_budget(&self) -> bool {
        matches!(&self.what, What::Approval { details, .. } if details.get("budget").is_some())
    }

    /// Whether it asks about a plan, which can be changed.
    pub(crate) fn is_plan(&self) -> bool {
        matches!(&self.what, What::Approval { details, call: None, .. } if details.get("todos").is_some())
    }

    /// What to type.
    pub(crate) fn advice(&self, config: &Config) -> String {
        let Self { id, task_id: task, .. } = self;
        let again = |command: String| config.again_with(&command);
        match &self.what {
            What::Approval { call, .. } => {
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
            What::Question { wanted, server, .. } => {
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
            What::InDoubt { .. } => format!(
                "check whether it was done; then `{}`, or `{}`, or repeat it with `{}`",
                again(format!("approve {id} --done \"the result\"")),
                again(format!("deny {id}")),
                again(format!("approve {id} --again")),
            ),
            What::Parked { .. } => format!(
                "resume it with `{}`, or cancel the request with `{}`",
                again(format!("approve {id} --again")),
                config.again(&format!("cancel {task}")),
            ),
        }
    }

    /// Says it. The words that do not fit are refused before anything is sent.
    pub(crate) async fn answer(&self, door: &Door, word: &Word) -> Result<(), Trouble> {
        let body = match (&self.what, word) {
            (What::Approval { .. }, Word::Yes) => json!({ "approved": true }),
            (What::Approval { call: Some(_), .. }, Word::YesWith { arguments, always, matching }) => {
                json!({ "approved": true, "arguments": arguments, "always": always, "where": matching })
            }
            (What::Approval { .. }, Word::YesWith { arguments: Some(arguments), always: None, .. }) if self.is_plan() => {
                json!({ "approved": true, "arguments": arguments })
            }
            (What::Question { wanted: Wanted::Agreement, .. }, Word::YesWith { arguments: None, always, matching: None }) => {
                json!({ "approved": true, "always": always })
            }
            (What::Question { wanted: Wanted::Agreement | Wanted::Visit { .. }, .. }, Word::Yes) => json!({ "approved": true }),
            (What::Question { wanted: Wanted::Text { .. }, .. }, Word::Answer(text)) => json!({ "answer": text }),
            (What::Question { wanted: Wanted::Form { .. }, .. }, Word::Answer(text)) => {
                let form: Value = serde_json::from_str(text)
                    .map_err(|error| Trouble::usage("bad_answer", format!("the answer is not JSON: {error}")))?;
                json!({ "answer": form })
            }
            (What::Question { .. }, Word::No(reason)) => json!({ "approved": false, "reason": reason }),
            (What::Question { server: Some(_), .. }, Word::Cancel) => json!({ "outcome": "cancelled" }),
            (What::Question { .. }, Word::Yes | Word::YesWith { .. } | Word::Done(_) | Word::Again) => {
                return Err(self.unfit("it is a question; answer or deny it"));
            }
            (_, Word::Answer(_)) => return Err(self.unfit("it takes no text; approve or deny it")),
            (_, Word::Cancel) => return Err(self.unfit("only questions of servers can be cancelled; deny it")),
            (_, Word::YesWith { .. }) => {
                return Err(self.unfit("--arguments are for calls of tools and plans, --always for calls of tools"));
            }
            (What::Approval { .. }, Word::No(reason)) => json!({ "approved": false, "reason": reason }),
            (What::InDoubt { .. }, Word::Done(result)) => json!({ "outcome": "done", "result": result }),
            (What::InDoubt { .. }, Word::No(reason)) if reason.is_empty() => json!({ "outcome": "not_done" }),
            (What::InDoubt { .. }, Word::No(reason)) => json!({ "outcome": "not_done", "result": reason }),
            (What::InDoubt { .. } | What::Parked { .. }, Word::Again) => json!({ "outcome": "again" }),
            (What::Approval { .. }, Word::Done(_) | Word::Again) => {
                return Err(self.unfit("it is a question; approve or deny it"));
            }
            (What::InDoubt { .. }, Word::Yes) => {
                return Err(self.unfit("it is a write in doubt; use --done RESULT or --again, or deny it if it was not done"));
            }
            (What::Parked { .. }, Word::Yes | Word::No(_) | Word::Done(_)) => {
                return Err(self.unfit("it is parked; use --again, or cancel its task"));
            }
        };
        door.post::<Value>(&format!("/api/approvals/{}", encoded(&self.id)), &body).await.map(drop)
    }

    /// Asks on the terminal. False when nobody is there to answer.
    pub(crate) async fn ask(&self, door: &Door, lines: &mut Lines) -> Result<bool, Trouble> {
        out::note(&self.in_words());
        loop {
            if let What::Question { wanted: wanted @ (Wanted::Text { .. } | Wanted::Form { .. }), .. } = &self.what {
                let Some(word) = form::ask(wanted, lines).await else { return Ok(false) };
                match self.answer(door, &word).await {
                    Err(trouble) if ["not_waiting", "bad_answer"].contains(&&*trouble.code) => out::note(&trouble.message),
                    answered => return answered.map(|()| true),
                }
                continue;
            }
            out::prompt(match self.what {
                What::Approval { .. } if self.is_plan() => "approve? [y / y {\"todos\": […]} / n reason] ",
                What::Approval { ref details, .. } => match Review::deserialize(details).unwrap_or_default() {
                    Review { reads, .. } if !reads.is_empty() => "approve? [y / n reason / always / reads] ",
                    Review { always: Some(_), .. } => "approve? [y / n reason / always] ",
                    _ => "approve? [y / n reason] ",
                },
                What::Question { wanted: Wanted::Visit { .. }, .. } => "done? [y / n reason] ",
                What::Question { .. } => "approve? [y / n reason] ",
                What::InDoubt { .. } => "was it done? [done RESULT / n reason / again] ",
                What::Parked { .. } => "[again] ",
            });
            let text = match lines.next().await {
                Some(Line::Text(text)) => text,
                Some(Line::Garbled) => continue,
                None => return Ok(false),
            };
            let Some(word) = Word::read(&text) else { continue };
            match self.answer(door, &word).await {
                Err(trouble) if ["not_waiting", "bad_answer"].contains(&&*trouble.code) => out::note(&trouble.message),
                answered => return answered.map(|()| true),
            }
        }
    }

    fn unfit(&self, why: &str) -> Trouble {
        Trouble::new("not_waiting", format!("{} needs another answer: {why}", self.id))
    }
}

/// The text with long gaps as numbers: what stands behind one would leave the screen.
fn tight(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(&" ".repeat(MAX_GAP)) {
        let behind = rest[at..].trim_start_matches(' ');
        shown.push_str(&format!("{}[{} blanks]", &rest[..at], rest.len() - at - behind.len()));
        rest = behind;
    }
    shown + rest
}

/// What a person should know about a call, each on a line of its own.
fn in_lines(review: &Review) -> String {
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

impl Word {
    /// What was typed; none when it is nothing that we know.
    fn read(text: &str) -> Option<Self> {
        let (first, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match first.to_lowercase().as_str() {
            "y" | "yes" | "是" | "好" if rest.trim_start().starts_with('{') => {
                let arguments = serde_json::from_str(rest).ok()?;
                Some(Self::YesWith { arguments: Some(arguments), always: None, matching: None })
            }
            "y" | "yes" | "是" | "好" => Some(Self::Yes),
            "n" | "no" | "否" | "不" => Some(Self::No(rest.trim().to_owned())),
            "a" | "always" | "总是" => Some(Self::YesWith { arguments: None, always: Some("tool"), matching: None }),
            "reads" => Some(Self::YesWith { arguments: None, always: Some("reads"), matching: None }),
            "done" => Some(Self::Done(rest.trim().to_owned())),
            "again" => Some(Self::Again),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_behind_a_gap() {
        assert_eq!(
            tight(&format!("a  b{}c{}", " ".repeat(6000), " ".repeat(39))),
            format!("a  b[6000 blanks]c{}", " ".repeat(39))
        );
    }

    #[test]
    fn always_is_a_word_at_the_terminal() {
        let always = |always| Some(Word::YesWith { arguments: None, always: Some(always), matching: None });
        assert_eq!(
            (Word::read("always"), Word::read("A"), Word::read("reads")),
            (always("tool"), always("tool"), always("reads"))
        );
    }

    #[test]
    fn a_yes_may_bring_other_arguments() {
        let with = |arguments| Some(Word::YesWith { arguments: Some(arguments), always: None, matching: None });
        assert_eq!(Word::read("y {\"todos\": []}"), with(json!({ "todos": [] })));
        assert_eq!(Word::read("y {\"todos\": ["), None, "what cannot be read is asked for again");
        assert_eq!((Word::read(" YES "), Word::read("no thanks")), (Some(Word::Yes), Some(Word::No("thanks".to_owned()))));
    }
}
