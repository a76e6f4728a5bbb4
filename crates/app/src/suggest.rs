//! What a person may have meant: the name that is most like a misspelt one.

use polis_api::{Api, ApiError, Paging};
use polis_providers::vendors::OpenError;

use crate::error::CliError;

/// How alike two names must be, from 0 to 1: `rot` and `root` are at 0.75.
const ALIKE: f64 = 0.6;

/// The name that the typed one is most like. Each name comes with what to type for it.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let typed = typed.trim().to_lowercase();
    let rated = names
        .into_iter()
        .map(|(name, suggestion)| (strsim::normalized_damerau_levenshtein(&typed, &name.to_lowercase()), suggestion));
    let best = rated.filter(|(alike, _)| *alike >= ALIKE).fold(None::<(f64, &str)>, |best, one| match best {
        Some(best) if best.0 >= one.0 => Some(best),
        _ => Some(one),
    });
    best.map(|(_, suggestion)| suggestion)
}

/// The question at the end of a message, if there is a name like the typed one.
pub(crate) fn hint<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    hint_for(typed, names.into_iter().map(|name| (name, name)))
}

/// The same where a name comes with what to type for it.
pub(crate) fn hint_for<'a>(typed: &str, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    nearest(typed, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl CliError {
    /// The error with the name that the person may have meant.
    pub(crate) fn meant<'a>(mut self, typed: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.message.push_str(&hint(typed, names));
        self
    }
}

/// An error about an agent or its thread, with the agent that the person may have meant: by its own name or by that of its role.
pub(crate) async fn about_agent(error: ApiError, api: &dyn Api, typed: &str) -> CliError {
    let mut error = CliError::from(error);
    if matches!(&*error.code, "unknown_agent" | "unknown_thread") {
        let agents = api.agents(&Paging::default()).await.map(|listed| listed.agents).unwrap_or_default();
        let names = agents.iter().flat_map(|agent| {
            let id = agent.id.as_str();
            [id, &agent.role_name, agent.role_id.as_str()].map(|name| (name, id))
        });
        // Of an agent that is there, only the thread is unknown.
        if !agents.iter().any(|agent| agent.id.as_str() == typed) {
            error.message.push_str(&hint_for(typed, names));
        }
    }
    error
}

/// An error about a conversation, with the one that the person may have meant: by its id, its title or a word of it.
pub(crate) fn about_conversation<'a>(
    mut error: CliError,
    typed: &str,
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> CliError {
    let names = all.into_iter().flat_map(|(id, title)| {
        let words = title.split_whitespace().filter(|word| word.chars().count() > 3);
        [(id, id), (title, title)].into_iter().chain(words.map(move |word| (word, title)))
    });
    error.message.push_str(&hint_for(typed, names));
    error
}

/// An error about a model, with the vendor that the person may have meant.
pub(crate) fn about_model(error: &OpenError) -> CliError {
    let message = CliError::usage(error.code(), error.to_string());
    match error {
        OpenError::Unknown { model, known } => message.meant(model.split('/').next().unwrap_or_default(), known.split(", ")),
        _ => message,
    }
}

/// What to say about a key of a settings file that is unknown, by the error's text: ``unknown field `a`, expected one of `b`, `c` ``.
pub(crate) fn about_key(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match quoted.next() {
        Some("api_key" | "apikey" | "key" | "token") if message.starts_with("unknown field") => {
            "; keys are read from variables alone, such as OPENAI_API_KEY (README.md lists them)".to_owned()
        }
        Some(typed) if message.starts_with("unknown ") => hint(typed, quoted),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_is_most_alike_is_suggested_and_no_other() {
        let names = ["root", "reviewer", "Data Reviewer", "main"];
        for (typed, meant) in [
            ("rot", Some("root")),
            ("ROOT", Some("root")),
            ("reveiwer", Some("reviewer")),
            ("data_reviewer", Some("Data Reviewer")),
            ("mian", Some("main")),
            ("nobody", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names.map(|name| (name, name))), meant, "{typed}");
        }
    }

    #[test]
    fn a_conversation_is_found_by_a_word_of_its_title() {
        let about = |typed| {
            let all = [("c1f3a2", "Sales of May"), ("c2b7d9", "Invoices")];
            about_conversation(CliError::new("unknown_conversation", "none"), typed, all).message
        };
        assert_eq!(about("slaes"), "none; did you mean `Sales of May`?");
        assert_eq!(about("c1f3a3"), "none; did you mean `c1f3a2`?");
        assert_eq!(about("weather"), "none");
    }

    #[test]
    fn an_unknown_key_gets_the_known_one_and_a_secret_its_place() {
        assert_eq!(about_key("unknown field `modle`, expected one of `model`, `listen`"), "; did you mean `model`?");
        assert_eq!(about_key("unknown field `colour`, expected one of `model`, `listen`"), "");
        assert!(about_key("unknown field `api_key`, expected `base_url`").contains("OPENAI_API_KEY"));
        assert_eq!(about_key("invalid type: integer `3`, expected a string"), "");
    }
}
