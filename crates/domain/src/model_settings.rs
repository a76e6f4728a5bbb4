//! How models are called: effort, sampling, limits. Everything is optional and several levels may say it: a request over its
//! conversation over the role over the configuration.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Settings of model calls. What a vendor does not support is left out of its requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`.
    #[serde(alias = "thinking_budget", skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// The sampling temperature, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The probability mass that is sampled from, above 0 and up to 1.
    #[serde(alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts that end a reply where they appear; one text or a list.
    #[serde(with = "crate::one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::OneOrMany"))]
    pub stop: Vec<Arc<str>>,
    /// The seed of sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The token limit of each reply.
    #[serde(alias = "max_tokens", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether the model must or may not call a tool: `auto`, `none`, `required` or the name of a tool.
    #[serde(alias = "tool_choice", skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether a reply may have several calls.
    #[serde(alias = "parallel_calls", skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// How long the vendor keeps the beginning of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMode>,
    /// The vendor's own name for how fast and at what price it serves, such as `flex` or `priority`.
    #[serde(alias = "service_tier", skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Arc<str>>,
}

/// `check` refuses numbers that are not finite, and JSON has none, so that equality is total.
impl Eq for ModelSettings {}

/// The reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning.
    None,
    /// As little reasoning as possible.
    Minimal,
    /// Little reasoning.
    Low,
    /// Some reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// More than much.
    Xhigh,
    /// As much as the model can.
    Max,
}

/// Whether the vendor caches the beginning of requests, where it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Not at all.
    Off,
    /// For the vendor's usual time.
    On,
    /// For as long as the vendor offers.
    Long,
}

/// Whether a model must call a tool. As text: `auto`, `none`, `required`, or the name of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model chooses.
    #[default]
    Auto,
    /// It must not call any.
    None,
    /// It must call one of the tools.
    Required,
    /// It must call the tool of this name.
    Named(Arc<str>),
}

/// A setting with a value that it cannot have, or with an unknown name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

/// Most stop texts; vendors take four or five.
const MAX_STOPS: usize = 16;

/// Longest stop text and service tier, in bytes.
const MAX_BYTES: usize = 256;

impl ModelSettings {
    /// The names of all settings, as configuration and command line write them.
    pub const NAMES: [&str; 11] = [
        "effort",
        "thinking_budget",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "max_tokens",
        "tool_choice",
        "parallel_calls",
        "cache",
        "service_tier",
    ];

    /// Settings with this sampling temperature alone.
    pub fn at_temperature(temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..Self::default() }
    }

    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These settings, and those of a lower level where they say nothing.
    #[must_use]
    pub fn over(self, lower: &Self) -> Self {
        // The two are one decision: a level that makes it replaces both.
        let (effort, thinking_budget) = match (self.effort, self.thinking_budget) {
            (None, None) => (lower.effort, lower.thinking_budget),
            own => own,
        };
        Self {
            effort,
            thinking_budget,
            temperature: self.temperature.or(lower.temperature),
            top_p: self.top_p.or(lower.top_p),
            stop: if self.stop.is_empty() { lower.stop.clone() } else { self.stop },
            seed: self.seed.or(lower.seed),
            max_tokens: self.max_tokens.or(lower.max_tokens),
            tool_choice: self.tool_choice.or_else(|| lower.tool_choice.clone()),
            parallel_calls: self.parallel_calls.or(lower.parallel_calls),
            cache: self.cache.or(lower.cache),
            service_tier: self.service_tier.or_else(|| lower.service_tier.clone()),
        }
    }

    /// The settings that an internal call of a turn takes over, such as a summary or a plan: those that change neither the form of
    /// the reply nor where it ends.
    #[must_use]
    pub fn for_internal_call(&self) -> Self {
        Self {
            effort: self.effort,
            thinking_budget: self.thinking_budget,
            cache: self.cache,
            service_tier: self.service_tier.clone(),
            ..Self::default()
        }
    }

    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), BadSetting> {
        let bad = |why: &str| Err(BadSetting(why.to_owned()));
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return bad("`temperature` is a number from 0 to 2");
        }
        if self.top_p.is_some_and(|top_p| !(top_p > 0.0 && top_p <= 1.0)) {
            return bad("`top_p` is a number above 0 and up to 1");
        }
        if self.max_tokens == Some(0) {
            return bad("`max_tokens` is a number from 1 on");
        }
        if self.stop.len() > MAX_STOPS || self.stop.iter().any(|stop| stop.is_empty() || stop.len() > MAX_BYTES) {
            return bad("`stop` has at most 16 texts of 1 to 256 bytes");
        }
        let is_word = |text: &str| (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if self.service_tier.as_deref().is_some_and(|tier| !is_word(tier)) {
            return bad("`service_tier` is one word");
        }
        if matches!(&self.tool_choice, Some(ToolChoice::Named(tool)) if !is_word(tool)) {
            return bad("`tool_choice` is auto, none, required or the name of a tool");
        }
        Ok(())
    }

    /// Sets one setting like [`ModelSettings::set`]; a text for `stop` is one more beside those that are set.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        let before = std::mem::take(&mut self.stop);
        let is_more = name.trim() == "stop" && !value.trim().is_empty();
        let result = self.set(name, value);
        if is_more || name.trim() != "stop" {
            self.stop = [before, std::mem::take(&mut self.stop)].concat();
        }
        result.and_then(|()| self.check())
    }

    /// Sets one setting from text, as in `temperature=0.2` on the command line or a line of a role file. An empty text takes it back.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        fn read<T: FromStr>(name: &str, value: &str, what: &str) -> Result<Option<T>, BadSetting> {
            if value.is_empty() {
                return Ok(None);
            }
            let parsed = value.parse().map(Some);
            parsed.map_err(|_| BadSetting(format!("`{value}` cannot be `{name}`; write {what}")))
        }
        let value = value.trim();
        let key = name.trim();
        match key {
            "effort" => self.effort = read(key, value, Effort::WORDS)?,
            "thinking_budget" | "thinkingBudget" => self.thinking_budget = read(key, value, "a number of tokens")?,
            "temperature" => self.temperature = read(key, value, "a number from 0 to 2")?,
            "top_p" | "topP" => self.top_p = read(key, value, "a number above 0 and up to 1")?,
            "stop" => self.stop = stops(value),
            "seed" => self.seed = read(key, value, "a whole number")?,
            "max_tokens" | "maxTokens" => self.max_tokens = read(key, value, "a number of tokens")?,
            "tool_choice" | "toolChoice" => {
                self.tool_choice = (!value.is_empty()).then(|| ToolChoice::from_text(value));
            }
            "parallel_calls" | "parallelCalls" => self.parallel_calls = read(key, value, "true or false")?,
            "cache" => self.cache = read(key, value, "off, on or long")?,
            "service_tier" | "serviceTier" => self.service_tier = (!value.is_empty()).then(|| value.into()),
            _ => return Err(BadSetting(format!("there is no setting `{key}`; there are {}", Self::NAMES.join(", ")))),
        }
        self.check()
    }
}

/// Stop texts with `|` between them; `\\n` and `\\t` stand for a line's end and a tab.
fn stops(value: &str) -> Vec<Arc<str>> {
    let texts = value.split('|').filter(|stop| !stop.is_empty());
    texts.map(|stop| stop.replace("\\n", "\n").replace("\\t", "\t").into()).collect()
}

impl Effort {
    /// All efforts, for messages.
    pub const WORDS: &str = "none, minimal, low, medium, high, xhigh or max";

    const ALL: [Self; 7] = [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The word that most vendors use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The nearest of the efforts that a model knows; of two that are equally near, the lower one.
    pub fn nearest(self, known: &[Self]) -> Option<Self> {
        known.iter().copied().min_by_key(|effort| (effort.place().abs_diff(self.place()), effort.place()))
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|effort| *effort == self).unwrap_or_default()
    }
}

impl FromStr for Effort {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        let bad = || BadSetting(format!("`{text}` is no effort; write {}", Self::WORDS));
        Self::ALL.into_iter().find(|effort| effort.as_str() == text).ok_or_else(bad)
    }
}

impl FromStr for CacheMode {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "long" => Ok(Self::Long),
            _ => Err(BadSetting(format!("`{text}` cannot be `cache`; write off, on or long"))),
        }
    }
}

impl ToolChoice {
    fn from_text(text: &str) -> Self {
        match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => Self::Required,
            name => Self::Named(name.into()),
        }
    }

    /// Whether a call is demanded.
    pub fn is_demand(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

impl fmt::Display for ToolChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
            Self::Named(name) => name,
        })
    }
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Older recordings have the second form.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(Arc<str>),
            Object { named: Arc<str> },
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => Self::from_text(&text),
            Written::Object { named } => Self::Named(named),
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ToolChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ToolChoice".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> ModelSettings {
        let mut settings = ModelSettings::default();
        for (name, value) in pairs {
            settings.set(name, value).unwrap();
        }
        settings
    }

    #[test]
    fn a_level_counts_over_those_below_it_setting_by_setting() {
        let lower = settings(&[("effort", "high"), ("temperature", "1"), ("seed", "7"), ("stop", "a|b")]);
        let upper = settings(&[("temperature", "0"), ("top_p", "0.5"), ("stop", "c")]);
        let want = settings(&[("effort", "high"), ("temperature", "0"), ("top_p", "0.5"), ("seed", "7"), ("stop", "c")]);
        assert_eq!(upper.over(&lower), want);
        assert_eq!(ModelSettings::default().over(&lower), lower);
    }

    #[test]
    fn several_stop_texts_add_up_and_an_empty_one_takes_them_back() {
        let mut settings = ModelSettings::default();
        for (name, value) in [("stop", "A"), ("stop", "B|C"), ("seed", "7"), ("seed", "8")] {
            settings.add(name, value).unwrap();
        }
        assert_eq!((settings.stop.as_slice(), settings.seed), (&["A".into(), "B".into(), "C".into()][..], Some(8)));
        assert!(settings.clone().add("stop", &["x"; 14].join("|")).is_err(), "all of them count");
        settings.add("stop", "").unwrap();
        assert!(settings.stop.is_empty());
    }

    #[test]
    fn an_effort_replaces_the_budget_of_a_lower_level() {
        let lower = settings(&[("effort", "low"), ("thinking_budget", "4096")]);
        let none = settings(&[("effort", "none")]);
        assert_eq!(none.clone().over(&lower), none);
        let budget = settings(&[("thinking_budget", "100")]);
        assert_eq!(budget.clone().over(&lower), budget);
    }

    #[test]
    fn settings_are_read_as_people_write_them_and_written_in_one_form() {
        let written = json!({ "effort": "xhigh", "thinking_budget": 9, "top_p": 0.5, "stop": "END", "max_tokens": 5,
            "toolChoice": "read_file", "parallel_calls": false, "cache": "long", "service_tier": "flex" });
        let settings: ModelSettings = serde_json::from_value(written).unwrap();
        let want = json!({ "effort": "xhigh", "thinkingBudget": 9, "topP": 0.5, "stop": "END", "maxTokens": 5,
            "toolChoice": "read_file", "parallelCalls": false, "cache": "long", "serviceTier": "flex" });
        assert_eq!(serde_json::to_value(&settings).unwrap(), want);
        assert_eq!(serde_json::to_value(ModelSettings::default()).unwrap(), json!({}));
        assert!(serde_json::from_value::<ModelSettings>(json!({ "effort": "much" })).is_err());
        assert!(serde_json::from_value::<ModelSettings>(json!({ "heat": 1 })).is_err());
        let old: ToolChoice = serde_json::from_value(json!({ "named": "f" })).unwrap();
        assert_eq!(old, ToolChoice::Named("f".into()));
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_what_to_write() {
        let refusal = |name: &str, value: &str| ModelSettings::default().set(name, value).unwrap_err().to_string();
        assert_eq!(refusal("temperature", "hot"), "`hot` cannot be `temperature`; write a number from 0 to 2");
        assert_eq!(refusal("temperature", "2.5"), "`temperature` is a number from 0 to 2");
        assert_eq!(refusal("temperature", "NaN"), "`temperature` is a number from 0 to 2");
        assert_eq!(refusal("top_p", "0"), "`top_p` is a number above 0 and up to 1");
        assert_eq!(refusal("max_tokens", "0"), "`max_tokens` is a number from 1 on");
        assert_eq!(refusal("service_tier", "a b"), "`service_tier` is one word");
        assert!(refusal("effort", "much").ends_with("write none, minimal, low, medium, high, xhigh or max"));
        assert!(refusal("heat", "1").starts_with("there is no setting `heat`; there are effort, thinking_budget"));
        let mut settings = settings(&[("effort", "low"), ("tool_choice", "none")]);
        settings.set("effort", "").unwrap();
        settings.set("tool_choice", "").unwrap();
        assert!(settings.is_default());
        settings.set("stop", "END|\\n\\n").unwrap();
        assert_eq!(settings.stop, ["END".into(), "\n\n".into()]);
    }

    #[test]
    fn every_setting_has_its_name_in_the_list() {
        let all = settings(&[
            ("effort", "low"),
            ("thinking_budget", "1"),
            ("temperature", "1"),
            ("top_p", "1"),
            ("stop", "a"),
            ("seed", "1"),
            ("max_tokens", "1"),
            ("tool_choice", "auto"),
            ("parallel_calls", "true"),
            ("cache", "on"),
            ("service_tier", "flex"),
        ]);
        assert_eq!(serde_json::to_value(all).unwrap().as_object().unwrap().len(), ModelSettings::NAMES.len());
    }

    #[test]
    fn an_effort_is_moved_to_the_nearest_one_that_a_model_knows() {
        let some = [Effort::Low, Effort::High];
        let near = [Effort::None, Effort::Low, Effort::Medium, Effort::Xhigh, Effort::Max].map(|effort| effort.nearest(&some));
        assert_eq!(near, [Effort::Low, Effort::Low, Effort::Low, Effort::High, Effort::High].map(Some));
        assert_eq!(Effort::Low.nearest(&[]), None);
    }
}
