//! Fields of a client's request that say how models are called. Both endpoints take the names of both.

use polis_domain::{Effort, ModelSettings, Task};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ApiError;

/// Effort, sampling and limits as OpenAI's endpoints name them.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SettingFields {
    temperature: Option<f64>,
    top_p: Option<f64>,
    #[serde(default)]
    stop: Value,
    seed: Option<i64>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
    reasoning_effort: Option<String>,
    #[serde(default)]
    reasoning: Value,
    service_tier: Option<String>,
}

impl SettingFields {
    /// The settings of the request; an error if a value is out of range.
    pub(super) fn read(self) -> Result<ModelSettings, ApiError> {
        let bad = |param: &str, message: String| ApiError::invalid("bad_setting", param, message);
        let named = [
            ("reasoning_effort", self.reasoning_effort.as_deref()),
            ("reasoning.effort", self.reasoning.get("effort").and_then(Value::as_str)),
        ];
        let mut effort = None;
        for (param, word) in named {
            if let Some(word) = word {
                let read = word.parse::<Effort>().map_err(|wrong| bad(param, wrong.to_string()))?;
                effort.get_or_insert(read);
            }
        }
        let stop = match self.stop {
            Value::Null => Vec::new(),
            Value::String(stop) => vec![stop.into()],
            list => Vec::<String>::deserialize(list)
                .map_err(|_| bad("stop", "`stop` is a text or a list of texts".to_owned()))?
                .into_iter()
                .map(Into::into)
                .collect(),
        };
        let settings = ModelSettings {
            effort,
            temperature: self.temperature,
            top_p: self.top_p,
            stop,
            seed: self.seed,
            max_tokens: self.max_completion_tokens.or(self.max_output_tokens).or(self.max_tokens),
            // These two are what a vendor does unasked.
            service_tier: self.service_tier.filter(|tier| !matches!(&**tier, "auto" | "default")).map(Into::into),
            ..ModelSettings::default()
        };
        settings
            .check()
            .map_err(|wrong| ApiError::new(axum::http::StatusCode::BAD_REQUEST, "bad_setting", wrong.to_string()))?;
        Ok(settings)
    }
}

/// Adds settings to the meta of a message, if any are set.
pub(super) fn attach(settings: &ModelSettings, meta: &mut Map<String, Value>) {
    if !settings.is_default() {
        meta.insert(Task::MODEL_SETTINGS.to_owned(), serde_json::to_value(settings).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(fields: Value) -> Result<ModelSettings, ApiError> {
        serde_json::from_value::<SettingFields>(fields).unwrap().read()
    }

    #[test]
    fn the_names_of_both_endpoints_mean_the_same() {
        let chat = json!({ "temperature": 0.2, "top_p": 0.9, "stop": "END", "seed": 7, "max_completion_tokens": 5,
            "reasoning_effort": "high", "service_tier": "flex", "unknown": 1 });
        let response = json!({ "temperature": 0.2, "top_p": 0.9, "stop": ["END"], "seed": 7, "max_output_tokens": 5,
            "reasoning": { "effort": "high", "summary": "auto" }, "service_tier": "flex" });
        let want = ModelSettings {
            effort: Some(Effort::High),
            temperature: Some(0.2),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            max_tokens: Some(5),
            service_tier: Some("flex".into()),
            ..ModelSettings::default()
        };
        assert_eq!(read(chat).ok(), Some(want.clone()));
        assert_eq!(read(response).ok(), Some(want));
        let usual = json!({ "stop": null, "temperature": null, "service_tier": "auto", "max_tokens": null, "reasoning": null });
        assert_eq!(read(usual).ok(), Some(ModelSettings::default()));
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        for fields in [json!({ "temperature": 3 }), json!({ "reasoning_effort": "much" }), json!({ "stop": [1] })] {
            assert!(read(fields.clone()).is_err(), "{fields}");
        }
    }
}
