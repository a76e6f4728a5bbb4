//! Settings that a vendor has refused for a model: they are left out from then on, so that a setting for all models does not
//! break the one that does not know it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use polis_ports::{CacheMode, ModelRequest, ModelSettings};

/// A setting by its name, whether a request has it, and the words by which refusals name it.
type Refusable = (&'static str, fn(&ModelSettings) -> bool, &'static [&'static str]);

const REFUSABLE: [Refusable; 8] = [
    (
        "effort",
        |settings| settings.effort.is_some() || settings.thinking_budget.is_some(),
        &["effort", "reasoning", "think", "chat_template_kwargs"],
    ),
    ("temperature", |settings| settings.temperature.is_some(), &["temperature"]),
    ("top_p", |settings| settings.top_p.is_some(), &["top_p", "topp", "top p"]),
    ("stop", |settings| !settings.stop.is_empty(), &["stop"]),
    ("seed", |settings| settings.seed.is_some(), &["seed"]),
    ("service_tier", |settings| settings.service_tier.is_some(), &["service_tier", "service tier", "tier"]),
    // It is on by default, and vendors' own programs do not send it to servers that are only like theirs.
    ("cache", |settings| settings.cache != Some(CacheMode::Off), &["cache", "ttl"]),
    ("max_tokens", |settings| settings.max_tokens.is_some(), &["max_tokens", "max_completion_tokens", "max_output_tokens"]),
];

/// Words of a refusal of a field, or of its value.
const DENIALS: [&str; 12] = [
    "not support",
    "n't support",
    "unsupported",
    "unknown",
    "unrecognized",
    "unexpected",
    "not allowed",
    "not permitted",
    "invalid",
    "does not accept",
    "deprecated",
    "must be",
];

/// The settings that were refused, each with the model.
#[derive(Debug, Default)]
pub(crate) struct RefusedSettings(Mutex<BTreeSet<(String, &'static str)>>);

impl RefusedSettings {
    /// Takes out of a request what its model has refused before.
    pub(crate) fn drop_from(&self, request: &mut ModelRequest) {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, name) in refused.iter().filter(|(model, _)| **model == *request.model) {
            clear(&mut request.settings, name);
        }
    }

    /// Whether a refusal is about a setting of the request. If so, the setting is left out from now on.
    pub(crate) fn note(&self, request: &ModelRequest, reason: &str) -> bool {
        let reason = reason.to_lowercase();
        let is_denial = DENIALS.iter().any(|words| reason.contains(words));
        let is_named =
            |(_, is_set, words): &&Refusable| is_set(&request.settings) && words.iter().any(|word| reason.contains(word));
        let Some((name, ..)) = REFUSABLE.iter().find(is_named).filter(|_| is_denial) else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((request.model.to_string(), name))
    }
}

fn clear(settings: &mut ModelSettings, name: &str) {
    // An empty text takes any setting back.
    let _ = settings.set(name, "");
    match name {
        "effort" => settings.thinking_budget = None,
        "cache" => settings.cache = Some(CacheMode::Off),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_setting_is_left_out_for_its_model_alone() {
        let refused = RefusedSettings::default();
        let request = |model: &str| {
            let mut settings = ModelSettings::at_temperature(0.2);
            settings.set("thinking_budget", "9").unwrap();
            ModelRequest { model: model.into(), settings, ..ModelRequest::default() }
        };
        let sent = |model: &str| {
            let mut request = request(model);
            refused.drop_from(&mut request);
            request.settings
        };
        assert!(!refused.note(&request("v/m"), "400: the temperature outside is nice"), "no denial");
        assert!(!refused.note(&request("v/m"), "400: unsupported parameter: top_p"), "it was not set");
        assert!(refused.note(&request("v/m"), "400: Unsupported value: 'temperature' does not support 0.2 with this model"));
        assert_eq!((sent("v/m").temperature, sent("v/m").thinking_budget, sent("v/n").temperature), (None, Some(9), Some(0.2)));
        assert!(refused.note(&request("v/m"), "400: thinking: Extra inputs are not permitted"));
        assert!(sent("v/m").is_default());
        assert!(!refused.note(&request("v/m"), "400: thinking: Extra inputs are not permitted"), "it is out already");
    }
}
