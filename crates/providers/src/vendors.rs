//! The vendors that people use, by name: where they are, how their key is called, and how to open one.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_ports::Model;

use crate::openai_chat::{BadAddress, OpenAiChat, OpenAiOptions, Quirks, TokenLimit};
use crate::{ApiKey, BadKey, Http, Models, Offline};

/// The name under which the offline model can be asked for.
pub const OFFLINE: &str = "offline";

/// One vendor that speaks the OpenAI chat dialect.
#[derive(Debug)]
pub struct Vendor {
    /// What it is called in `vendor/name`.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The variable that holds its key.
    pub key_variable: &'static str,
    /// Whether it answers without a key.
    pub keyless: bool,
    /// Its usual address.
    pub base_url: Option<&'static str>,
    /// The model that is used when only the vendor is known.
    pub default_model: Option<&'static str>,
    /// Where its dialect differs.
    pub quirks: Quirks,
}

const PLAIN: Quirks = Quirks { stream_options: true, token_limit: TokenLimit::MaxTokens };

const fn hosted(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variable: &'static str,
    base_url: &'static str,
    default_model: &'static str,
) -> Vendor {
    let (base_url, default_model) = (Some(base_url), Some(default_model));
    Vendor { name, aliases, key_variable, keyless: false, base_url, default_model, quirks: PLAIN }
}

/// Every vendor; where no model is configured, the first one with a key is taken.
#[rustfmt::skip]
pub const VENDORS: &[Vendor] = &[
    Vendor {
        // Its newer models refuse `max_tokens`.
        quirks: Quirks { stream_options: true, token_limit: TokenLimit::MaxCompletionTokens },
        ..hosted("openai", &[], "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-4.1-mini")
    },
    hosted("deepseek", &[], "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-flash"),
    hosted("dashscope", &["qwen"], "DASHSCOPE_API_KEY", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus"),
    hosted("moonshot", &["kimi"], "MOONSHOT_API_KEY", "https://api.moonshot.ai/v1", "kimi-k2.6"),
    hosted("zhipu", &["zhipuai", "glm"], "ZHIPUAI_API_KEY", "https://open.bigmodel.cn/api/paas/v4", "glm-4.6"),
    Vendor {
        // It answers 422 to `stream_options`, and tells usage unasked.
        quirks: Quirks { stream_options: false, token_limit: TokenLimit::MaxTokens },
        ..hosted("mistral", &[], "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-small-latest")
    },
    hosted("openrouter", &[], "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto"),
    hosted("groq", &[], "GROQ_API_KEY", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
    Vendor {
        name: "ollama",
        aliases: &[],
        key_variable: "OLLAMA_API_KEY",
        keyless: true,
        base_url: Some("http://127.0.0.1:11434/v1"),
        default_model: None,
        quirks: PLAIN,
    },
    Vendor {
        name: "openai-compatible",
        aliases: &[],
        key_variable: "OPENAI_COMPATIBLE_API_KEY",
        keyless: true,
        base_url: None,
        default_model: None,
        quirks: PLAIN,
    },
];

/// Why a model cannot be asked, and what to set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The vendor is not in the table.
    #[error("`{model}` names no vendor that we know; write vendor/name with one of {}", names())]
    Unknown {
        /// What was asked for.
        model: String,
    },
    /// The vendor alone does not say which model.
    #[error("which model of {vendor}? write {vendor}/NAME")]
    NoName {
        /// The vendor.
        vendor: &'static str,
    },
    /// The key is missing.
    #[error("{vendor} needs a key; set {variable}")]
    NoKey {
        /// The vendor.
        vendor: &'static str,
        /// Where the key belongs.
        variable: &'static str,
    },
    /// The address is missing.
    #[error("{vendor} needs an address; set {variable}, for example to http://127.0.0.1:8080/v1")]
    NoAddress {
        /// The vendor.
        vendor: &'static str,
        /// Where the address belongs.
        variable: String,
    },
    /// The key cannot be sent.
    #[error("{variable}: {bad}")]
    BadKey {
        /// Where it is set.
        variable: &'static str,
        /// What is wrong.
        bad: BadKey,
    },
    /// The address cannot be used.
    #[error("{variable}: {bad}")]
    BadAddress {
        /// Where it is set.
        variable: String,
        /// What is wrong.
        bad: BadAddress,
    },
}

impl Vendor {
    /// The variable that overrides its address.
    pub fn base_url_variable(&self) -> String {
        format!("{}_BASE_URL", self.name.to_uppercase().replace('-', "_"))
    }

    fn open(&self, http: &Http, variable: Lookup<'_>) -> Result<Arc<dyn Model>, OpenError> {
        let address_variable = self.base_url_variable();
        let own_address = filled(variable, &address_variable);
        let key = filled(variable, self.key_variable);
        // An address of one's own is most often a local server, which wants no key.
        if key.is_none() && own_address.is_none() && !self.keyless {
            return Err(OpenError::NoKey { vendor: self.name, variable: self.key_variable });
        }
        let key = key.map(|key| ApiKey::new(&key)).transpose();
        let key = key.map_err(|bad| OpenError::BadKey { variable: self.key_variable, bad })?;
        let Some(base_url) = own_address.or(self.base_url.map(str::to_owned)) else {
            return Err(OpenError::NoAddress { vendor: self.name, variable: address_variable });
        };
        let options = OpenAiOptions { key, quirks: self.quirks, ..OpenAiOptions::new(self.name, base_url, "") };
        match OpenAiChat::new(http.clone(), options) {
            Ok(model) => Ok(Arc::new(model)),
            Err(bad) => Err(OpenError::BadAddress { variable: address_variable, bad }),
        }
    }
}

/// Looks up an environment variable, or what a configuration says in its place.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Opens `model` (`vendor/name`, or a vendor alone, or `offline`); with none, the first vendor whose key is set, else the
/// offline model. The other vendors that are set up can be asked by name as well.
pub fn open(model: Option<&str>, variable: Lookup<'_>) -> Result<Models, OpenError> {
    let configured = model.map(str::trim).filter(|model| !model.is_empty());
    let (vendor, default) = match configured {
        Some(model) => resolve(model)?,
        None => first_with_key(variable).unwrap_or((OFFLINE, OFFLINE.into())),
    };
    let http = Http::new();
    let mut vendors: BTreeMap<_, _> = VENDORS.iter().map(|vendor| (vendor.name, vendor.open(&http, variable))).collect();
    vendors.insert(OFFLINE, Ok(Arc::new(Offline::default())));
    match vendors.get(vendor) {
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(_)) | None => Ok(Models::new(default, vendors)),
    }
}

/// The vendor that a model string means, and the string with the vendor's own name in front.
pub(crate) fn resolve(model: &str) -> Result<(&'static str, Arc<str>), OpenError> {
    let (prefix, name) = model.split_once('/').unwrap_or((model, ""));
    if prefix == OFFLINE {
        return Ok((OFFLINE, OFFLINE.into()));
    }
    let Some(vendor) = VENDORS.iter().find(|vendor| vendor.name == prefix || vendor.aliases.contains(&prefix)) else {
        return Err(OpenError::Unknown { model: model.to_owned() });
    };
    let name = Some(name).filter(|name| !name.is_empty()).or(vendor.default_model);
    match name {
        Some(name) => Ok((vendor.name, format!("{}/{name}", vendor.name).into())),
        None => Err(OpenError::NoName { vendor: vendor.name }),
    }
}

fn first_with_key(variable: Lookup<'_>) -> Option<(&'static str, Arc<str>)> {
    let mut with_key = VENDORS.iter().filter(|vendor| filled(variable, vendor.key_variable).is_some());
    with_key.find_map(|vendor| Some((vendor.name, format!("{}/{}", vendor.name, vendor.default_model?).into())))
}

fn filled(variable: Lookup<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.trim().is_empty())
}

fn names() -> String {
    let names: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).chain([OFFLINE]).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: Option<&str>, set: &[(&str, &str)], want: Result<&str, &str>) {
        let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
        let opened = open(model, &lookup);
        let got = opened.map(|models| models.default_name().to_string()).map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(|error| &**error), want, "{model:?} {set:?}");
    }

    #[test]
    fn a_model_that_is_set_up_opens() {
        check(Some("openai/gpt-x"), &[("OPENAI_API_KEY", "k")], Ok("openai/gpt-x"));
        check(Some("openrouter/a/b"), &[("OPENROUTER_API_KEY", "k")], Ok("openrouter/a/b"));
        check(Some("qwen/qwen-max"), &[("DASHSCOPE_API_KEY", "k")], Ok("dashscope/qwen-max"));
        check(Some("deepseek"), &[("DEEPSEEK_API_KEY", "k")], Ok("deepseek/deepseek-flash"));
        check(Some("ollama/qwen3"), &[], Ok("ollama/qwen3"));
        check(Some("offline"), &[("OPENAI_API_KEY", "k")], Ok("offline"));
        check(Some("openai/m"), &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")], Ok("openai/m"));
        check(Some("openai-compatible/m"), &[("OPENAI_COMPATIBLE_BASE_URL", "http://h/v1")], Ok("openai-compatible/m"));
    }

    #[test]
    fn without_a_model_the_first_vendor_with_a_key_is_taken_and_else_the_offline_model() {
        check(None, &[], Ok("offline"));
        check(Some(" "), &[("OPENAI_API_KEY", " ")], Ok("offline"));
        check(None, &[("GROQ_API_KEY", "k"), ("DEEPSEEK_API_KEY", "k")], Ok("deepseek/deepseek-flash"));
        check(None, &[("OPENAI_COMPATIBLE_API_KEY", "k")], Ok("offline"));
    }

    #[test]
    fn what_is_missing_is_said_with_the_variable_to_set() {
        check(Some("openai/m"), &[], Err("openai needs a key; set OPENAI_API_KEY"));
        check(Some("ollama"), &[], Err("which model of ollama? write ollama/NAME"));
        check(
            Some("openai-compatible/m"),
            &[],
            Err("openai-compatible needs an address; set OPENAI_COMPATIBLE_BASE_URL, for example to http://127.0.0.1:8080/v1"),
        );
        check(
            Some("openai/m"),
            &[("OPENAI_API_KEY", "a b")],
            Err(
                "OPENAI_API_KEY: the key is empty or holds characters that cannot be sent; copy it again, without spaces or line breaks inside",
            ),
        );
        check(
            Some("openai/m"),
            &[("OPENAI_BASE_URL", "here")],
            Err("OPENAI_BASE_URL: `here` is no address of a model; write it like https://api.openai.com/v1"),
        );
        check(
            Some("gpt-4o"),
            &[],
            Err(
                "`gpt-4o` names no vendor that we know; write vendor/name with one of openai, deepseek, dashscope, moonshot, zhipu, mistral, openrouter, groq, ollama, openai-compatible, offline",
            ),
        );
    }

    #[test]
    fn every_usual_address_can_be_used_and_every_name_is_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for vendor in VENDORS {
            assert!(std::iter::once(&vendor.name).chain(vendor.aliases).all(|name| seen.insert(*name)), "{}", vendor.name);
            if vendor.base_url.is_some() {
                let key = |name: &str| (name == vendor.key_variable).then(|| "k".to_owned());
                assert!(vendor.open(&Http::new(), &key).is_ok(), "{}", vendor.name);
            }
        }
    }
}
