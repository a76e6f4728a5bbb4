//! The flags that say how models are called.

use clap::Args;
use polis_domain::ModelSettings;

use crate::error::CliError;

/// How models are called for the requests of this command.
#[derive(Debug, Args, Default)]
pub(crate) struct SettingFlags {
    /// How much the model reasons: none, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "EFFORT")]
    effort: Option<String>,

    /// Set how models are called: effort, thinking_budget, temperature, top_p, stop, seed, max_tokens, tool_choice,
    /// parallel_calls, cache or service_tier; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl SettingFlags {
    /// The settings, checked.
    pub(crate) fn read(&self) -> Result<ModelSettings, CliError> {
        let mut settings = ModelSettings::default();
        for assignment in &self.set {
            let (name, value) = parts(assignment)?;
            settings.add(name, value).map_err(|wrong| bad(wrong.to_string()))?;
        }
        if let Some(effort) = &self.effort {
            assign(&mut settings, &format!("effort={effort}"))?;
        }
        Ok(settings)
    }
}

/// Sets one setting as in `temperature=0.2`.
pub(crate) fn assign(settings: &mut ModelSettings, assignment: &str) -> Result<(), CliError> {
    let (name, value) = parts(assignment)?;
    settings.set(name, value).map_err(|wrong| bad(wrong.to_string()))
}

fn parts(assignment: &str) -> Result<(&str, &str), CliError> {
    let unset = || bad(format!("`{assignment}` sets nothing; write NAME=VALUE, for example temperature=0.2"));
    assignment.split_once('=').ok_or_else(unset)
}

fn bad(message: String) -> CliError {
    CliError::usage("bad_setting", message)
}
