//! How each vendor of this dialect is told to think more or less.

use polis_ports::{Effort, ModelSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::EffortField;
use crate::request_parts::{effort, may_reason, openai_efforts, thinking_budget, thinks};

/// The fields of a body that say how much to think.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct EffortFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
}

/// The degrees that Chinese vendors give their newer models.
const THREE: &[Effort] = &[Effort::Low, Effort::High, Effort::Max];

/// The fields that these settings become; none if they leave it to the model, or if the model cannot be told.
pub(super) fn fields(settings: &ModelSettings, field: EffortField, model: &str) -> EffortFields {
    use Effort::{High, Low, Medium, None};
    let Some(effort) = effort(settings) else { return EffortFields::default() };
    let word = |known: &[Effort]| EffortFields {
        reasoning_effort: effort.nearest(known).map(Effort::as_str),
        ..EffortFields::default()
    };
    let switch = |on: &str| {
        let kind = if thinks(effort) { on } else { "disabled" };
        EffortFields { thinking: Some(json!({ "type": kind })), ..EffortFields::default() }
    };
    match field {
        EffortField::Absent => EffortFields::default(),
        EffortField::ReasoningEffort => EffortFields { reasoning_effort: Some(effort.as_str()), ..EffortFields::default() },
        EffortField::OpenAi if may_reason(model) => word(openai_efforts(model)),
        EffortField::OpenAi => EffortFields::default(),
        _ if model.contains("gpt-oss") && field != EffortField::Reasoning => word(&[Low, Medium, High]),
        EffortField::GptOss => EffortFields::default(),
        EffortField::Groq if model.contains("qwen") => {
            let reasoning_effort = Some(if thinks(effort) { "default" } else { "none" });
            EffortFields { reasoning_effort, ..EffortFields::default() }
        }
        EffortField::Groq => EffortFields::default(),
        EffortField::Xai if model.starts_with("grok-3-mini") => word(&[Low, High]),
        EffortField::Xai if model.starts_with("grok-4.3") => word(&[None, Low, Medium, High]),
        EffortField::Xai if model.starts_with("grok-4.5") || model.contains("multi-agent") => word(&[Low, Medium, High]),
        EffortField::Xai => EffortFields::default(),
        EffortField::Mistral if model.starts_with("mistral-large-4") => word(&[None, Low, Medium, High]),
        EffortField::Mistral if is_adjustable_mistral(model) => word(if thinks(effort) { &[High] } else { &[None] }),
        EffortField::Mistral => EffortFields::default(),
        EffortField::DeepSeek if thinks(effort) => EffortFields { thinking: switch("enabled").thinking, ..word(THREE) },
        EffortField::DeepSeek => switch("enabled"),
        EffortField::MiniMax if model.contains("M3") => switch("adaptive"),
        EffortField::MiniMax => EffortFields::default(),
        // They always think.
        EffortField::Thinking if model.starts_with("kimi-k3") => word(THREE),
        EffortField::Thinking if model.starts_with("glm-5.3") => word(THREE),
        EffortField::Thinking if model.starts_with("glm-5.2") && thinks(effort) => {
            EffortFields { thinking: switch("enabled").thinking, ..word(THREE) }
        }
        EffortField::Thinking => switch("enabled"),
        EffortField::EnableThinking => EffortFields {
            enable_thinking: Some(thinks(effort)),
            thinking_budget: thinking_budget(settings).filter(|_| thinks(effort)),
            ..EffortFields::default()
        },
        EffortField::Reasoning => {
            let reasoning = match settings.thinking_budget {
                Some(budget) if budget > 0 => json!({ "max_tokens": budget }),
                _ => json!({ "effort": effort.as_str() }),
            };
            EffortFields { reasoning: Some(reasoning), ..EffortFields::default() }
        }
        EffortField::ChatTemplate => {
            let chat_template_kwargs = Some(json!({ "enable_thinking": thinks(effort) }));
            EffortFields { chat_template_kwargs, ..EffortFields::default() }
        }
    }
}

fn is_adjustable_mistral(model: &str) -> bool {
    ["mistral-small", "mistral-medium-3-5", "mistral-medium-3.5"].iter().any(|start| model.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_is_said_as_each_vendor_wants_it() {
        let check = |model: &str, effort, field, want: Value| {
            let settings = ModelSettings { effort: Some(effort), ..ModelSettings::default() };
            let got = serde_json::to_value(fields(&settings, field, model)).unwrap();
            assert_eq!(got, want, "{model} {effort:?} {field:?}");
        };
        let word = |word: &str| json!({ "reasoning_effort": word });
        check("m", Effort::High, EffortField::Absent, json!({}));
        check("m", Effort::Minimal, EffortField::ReasoningEffort, word("minimal"));
        check("gpt-5", Effort::None, EffortField::OpenAi, word("minimal"));
        check("gpt-5.2", Effort::Max, EffortField::OpenAi, word("xhigh"));
        check("openai/gpt-oss-20b", Effort::Max, EffortField::GptOss, word("high"));
        check("llama", Effort::High, EffortField::GptOss, json!({}));
        check("qwen/qwen3-32b", Effort::None, EffortField::Groq, word("none"));
        check("qwen/qwen3-32b", Effort::High, EffortField::Groq, word("default"));
        check("openai/gpt-oss-120b", Effort::Xhigh, EffortField::Groq, word("high"));
        check("llama-3.3-70b", Effort::High, EffortField::Groq, json!({}));
        check("grok-4.3", Effort::None, EffortField::Xai, word("none"));
        check("grok-4.5", Effort::None, EffortField::Xai, word("low"));
        check("grok-3-mini", Effort::Medium, EffortField::Xai, word("low"));
        check("grok-4", Effort::High, EffortField::Xai, json!({}));
        check("mistral-small-latest", Effort::Low, EffortField::Mistral, word("high"));
        check("mistral-small-latest", Effort::None, EffortField::Mistral, word("none"));
        check("codestral-latest", Effort::High, EffortField::Mistral, json!({}));
        let both = json!({ "thinking": { "type": "enabled" }, "reasoning_effort": "max" });
        check("deepseek-v4-pro", Effort::Max, EffortField::DeepSeek, both.clone());
        check("deepseek-v4-pro", Effort::None, EffortField::DeepSeek, json!({ "thinking": { "type": "disabled" } }));
        check("MiniMax-M3", Effort::None, EffortField::MiniMax, json!({ "thinking": { "type": "disabled" } }));
        check("MiniMax-M3", Effort::High, EffortField::MiniMax, json!({ "thinking": { "type": "adaptive" } }));
        check("MiniMax-M2.7", Effort::High, EffortField::MiniMax, json!({}));
        check("kimi-k2.6", Effort::Minimal, EffortField::Thinking, json!({ "thinking": { "type": "disabled" } }));
        check("kimi-k2.6", Effort::Low, EffortField::Thinking, json!({ "thinking": { "type": "enabled" } }));
        check("kimi-k3", Effort::None, EffortField::Thinking, word("low"));
        check("glm-5.2", Effort::Max, EffortField::Thinking, both);
        check("glm-5.3", Effort::None, EffortField::Thinking, word("low"));
        check("qwen-plus", Effort::None, EffortField::EnableThinking, json!({ "enable_thinking": false }));
        check(
            "qwen-plus",
            Effort::Low,
            EffortField::EnableThinking,
            json!({ "enable_thinking": true, "thinking_budget": 2048 }),
        );
        check("m", Effort::Xhigh, EffortField::Reasoning, json!({ "reasoning": { "effort": "xhigh" } }));
        let off = json!({ "chat_template_kwargs": { "enable_thinking": false } });
        check("Qwen/Qwen3-8B", Effort::None, EffortField::ChatTemplate, off);
    }

    #[test]
    fn a_budget_is_a_number_where_the_vendor_takes_one_and_otherwise_a_degree() {
        let settings = ModelSettings { thinking_budget: Some(3000), ..ModelSettings::default() };
        let got = |field, model: &str| serde_json::to_value(fields(&settings, field, model)).unwrap();
        assert_eq!(got(EffortField::Reasoning, "m"), json!({ "reasoning": { "max_tokens": 3000 } }));
        assert_eq!(got(EffortField::EnableThinking, "m"), json!({ "enable_thinking": true, "thinking_budget": 3000 }));
        assert_eq!(got(EffortField::OpenAi, "gpt-5"), json!({ "reasoning_effort": "medium" }));
        assert_eq!(got(EffortField::OpenAi, "gpt-4o"), json!({}), "it does not think");
    }
}
