//! `ask_person`: a question that the person answers in words. It is never run: what they say is its result.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Question};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::results::{arguments, failed};

/// Longest question, in characters.
const MAX_QUESTION_CHARS: usize = 4_000;
/// Most options.
const MAX_OPTIONS: usize = 20;
/// Longest option, in characters.
const MAX_OPTION_CHARS: usize = 200;

/// Asks the person.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskPerson;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    question: String,
    #[serde(default)]
    options: Option<Vec<String>>,
}

/// The question, or what is wrong with it.
fn read(text: &str) -> Result<Question, ToolError> {
    let bad = |what: String| Err(ToolError::BadArguments(what));
    let Arguments { question, options } = arguments(text)?;
    // It is shown on terminals.
    let printable = |text: String| text.chars().filter(|c| *c == '\n' || !c.is_control()).collect::<String>();
    let (question, options) = (printable(question), options.unwrap_or_default().into_iter().map(printable).collect::<Vec<_>>());
    if question.trim().is_empty() {
        return bad("question is empty".to_owned());
    }
    if question.chars().count() > MAX_QUESTION_CHARS {
        return bad(format!("question is longer than {MAX_QUESTION_CHARS} characters"));
    }
    if options.len() > MAX_OPTIONS {
        return bad(format!("there are more than {MAX_OPTIONS} options"));
    }
    let fits = |option: &String| !option.trim().is_empty() && option.chars().count() <= MAX_OPTION_CHARS;
    if !options.iter().all(fits) {
        return bad(format!("each option has 1 to {MAX_OPTION_CHARS} characters"));
    }
    Ok(Question::words(question, options))
}

#[async_trait]
impl Tool for AskPerson {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ask_person".into(),
            description: "Asks the person and waits. Only for what you cannot find out or decide.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "question": { "type": "string" },
                    "options": {
                        "type": "array",
                        "items": { "type": "string" },
                        "maxItems": MAX_OPTIONS,
                        "description": "Answers to choose from",
                    },
                },
                "required": ["question"],
            }),
            class: EffectClass::Read,
            volatile: true,
        }
    }

    fn question(&self, arguments: &str) -> Option<Question> {
        read(arguments).ok()
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        read(text)?;
        Ok(failed("nobody puts questions to a person here"))
    }
}

#[cfg(test)]
mod tests {
    use polis_domain::Wanted;

    use super::*;

    #[test]
    fn a_question_has_words_and_options_that_a_person_can_read() {
        let options = |text: &str| match AskPerson.question(text).map(|question| question.wanted) {
            Some(Wanted::Text { options }) => Some(options.len()),
            _ => None,
        };
        assert_eq!(options(r#"{"question": "which?"}"#), Some(0));
        assert_eq!(options(r#"{"question": "which?", "options": null}"#), Some(0));
        let question = AskPerson.question(r#"{"question": "which\u001b[2J?\nsay"}"#).unwrap();
        assert_eq!(question.text, "which[2J?\nsay");
        assert_eq!(options(r#"{"question": "哪个？", "options": ["红", "blue"]}"#), Some(2));
        let many = json!({ "question": "which?", "options": vec!["a"; MAX_OPTIONS + 1] }).to_string();
        let long = json!({ "question": "x".repeat(MAX_QUESTION_CHARS + 1) }).to_string();
        for bad in ["", "{}", r#"{"question": " "}"#, r#"{"question": "a", "options": [""]}"#, "[", &many, &long] {
            assert_eq!(options(bad), None, "{bad}");
            assert!(read(bad).is_err());
        }
    }
}
