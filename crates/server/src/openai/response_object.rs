//! A response as an object: its fixed fields, and the whole of it when it is complete.

use polis_domain::{AgentId, Effort, ModelSettings};
use serde_json::{Value, json};

use super::completion::{Completion, Cut, Ending};
use super::error::ApiError;
use super::response_output::ResponseOutput;
use crate::agui::TokenUsage;

/// The fixed fields of a response.
pub(super) struct ResponseFormat {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created: u64,
    pub(super) previous: Option<String>,
    /// The conversation that it belongs to.
    pub(super) conversation: Option<AgentId>,
    pub(super) instructions: Option<String>,
    pub(super) store: bool,
    pub(super) metadata: Value,
    /// Fields of the request that are said back.
    pub(super) echo: ResponseEcho,
    /// How models are called for it.
    pub(super) settings: ModelSettings,
}

/// Fields of a request that its response says back.
#[derive(Debug, Clone)]
pub(super) struct ResponseEcho {
    pub(super) background: bool,
    pub(super) tools: Value,
    pub(super) tool_choice: Value,
    pub(super) parallel_tool_calls: bool,
    pub(super) text: Value,
}

impl Default for ResponseEcho {
    fn default() -> Self {
        Self {
            background: false,
            tools: json!([]),
            tool_choice: "auto".into(),
            parallel_tool_calls: true,
            text: json!({ "format": { "type": "text" } }),
        }
    }
}

impl ResponseFormat {
    /// A response that ended before its answer was whole.
    pub(super) fn incomplete(&self, cut: Cut, output: Vec<Value>, usage: &[TokenUsage]) -> Value {
        let mut object = self.object("incomplete", output, Some(usage), None);
        object["incomplete_details"] = json!({ "reason": cut.incomplete_reason() });
        object
    }

    pub(super) fn object(&self, status: &str, output: Vec<Value>, usage: Option<&[TokenUsage]>, error: Option<Value>) -> Value {
        let echo = &self.echo;
        let ModelSettings { effort, temperature, top_p, max_tokens, service_tier, .. } = &self.settings;
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": output, "error": error, "incomplete_details": null, "instructions": self.instructions,
            "previous_response_id": self.previous,
            "conversation": self.conversation.as_ref().map(|id| json!({ "id": id })), "store": self.store, "metadata": self.metadata,
            "background": echo.background, "parallel_tool_calls": echo.parallel_tool_calls, "tool_choice": echo.tool_choice,
            "tools": echo.tools, "text": echo.text, "temperature": temperature, "top_p": top_p,
            "max_output_tokens": max_tokens, "reasoning": { "effort": effort.map(Effort::as_str), "summary": null },
            "service_tier": service_tier.as_deref().unwrap_or("default"),
            "usage": usage.map(usage_json),
        })
    }

    /// The whole response, when it is complete.
    pub(super) async fn whole(
        &self,
        mut completion: Completion,
        mut output: ResponseOutput,
    ) -> Result<axum::Json<Value>, ApiError> {
        let (content, reasoning, ending) = completion.collect().await;
        if !reasoning.is_empty() {
            output.reasoning(&reasoning);
        }
        if !content.is_empty() {
            output.content(&content);
        }
        output.close();
        match ending {
            Ending::Stop => {}
            Ending::Cut(cut) => return Ok(axum::Json(self.incomplete(cut, output.items(), &completion.usage))),
            Ending::ToolCalls(calls) => calls.iter().for_each(|call| drop(output.call(call))),
            Ending::Failed(error) => return Err(error),
        }
        Ok(axum::Json(self.object("completed", output.items(), Some(&completion.usage), None)))
    }
}

fn usage_json(usage: &[TokenUsage]) -> Value {
    let sum = |count: fn(&TokenUsage) -> u64| usage.iter().map(count).sum::<u64>();
    json!({
        "input_tokens": sum(|usage| usage.input_tokens),
        "input_tokens_details": { "cached_tokens": sum(|usage| usage.cached_input_tokens) },
        "output_tokens": sum(|usage| usage.output_tokens),
        "output_tokens_details": { "reasoning_tokens": sum(|usage| usage.reasoning_tokens) },
        "total_tokens": sum(|usage| usage.total_tokens),
    })
}
