//! What a span says of an effect: its name and attributes by the GenAI conventions, and how it ended.

use polis_domain::{
    Answer, Attempt, Call, Effect, EffectClass, Failure, Finish, Inquiry, Outcome, Reply, Settlement, Spent, ToolCall, Usage,
    Verdict,
};
use serde_json::json;

use crate::otlp::{Attributes, CLIENT, INTERNAL, Status, Value, usd};

/// The longest text of a conversation that a span carries.
const MAX_CONTENT_BYTES: usize = 16 << 10;

/// The fields of a span when it starts.
#[derive(Debug, Clone)]
pub(crate) struct SpanStart {
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) attributes: Attributes,
    /// The model that was asked, if it is a model call; none was named where the text is empty.
    pub(crate) model: Option<String>,
}

/// How it ended.
#[derive(Debug, Default)]
pub(crate) struct SpanEnd {
    pub(crate) attributes: Attributes,
    pub(crate) status: Status,
    /// What a failure is called.
    pub(crate) error: Option<String>,
    pub(crate) reply: Option<ReplyUsage>,
}

/// The model and usage of a reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplyUsage {
    pub(crate) model: String,
    pub(crate) usage: Usage,
}

/// One model call, for the metrics.
#[derive(Debug, Clone)]
pub(crate) struct ModelCall {
    pub(crate) agent: String,
    pub(crate) provider: String,
    pub(crate) request_model: String,
    pub(crate) response_model: String,
    pub(crate) error: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) cost_nanos: u64,
    pub(crate) seconds: f64,
}

impl SpanStart {
    pub(crate) fn of(effect: &Effect, content: bool) -> Self {
        let plain = |name: String, attributes| Self { name, kind: INTERNAL, attributes, model: None };
        let attributes = Attributes::default();
        match effect {
            Effect::Model { model, .. } => Self::chat(model),
            Effect::Tool(call) => plain(format!("execute_tool {}", call.tool), tool(call, content)),
            Effect::Ask { envelope, .. } => {
                let name = envelope.to.as_str();
                let attributes = attributes
                    .with("gen_ai.operation.name", "invoke_agent")
                    .with("gen_ai.agent.name", name)
                    .with("gen_ai.agent.id", name)
                    .with_some("gen_ai.input.messages", content.then(|| message("user", &envelope.payload.text)));
                plain(format!("invoke_agent {name}"), attributes)
            }
            Effect::Unit { behaviour, thread, .. } => {
                plain(format!("unit {behaviour}"), attributes.with("polis.unit.thread", thread.as_str()))
            }
            Effect::Approval { call, .. } => {
                let tool = call.as_ref().map(|call| &*call.tool);
                let name = tool.map_or_else(|| "approval".to_owned(), |tool| format!("approval {tool}"));
                plain(name, attributes.with_some("gen_ai.tool.name", tool))
            }
            Effect::Terminate { agent, .. } => {
                plain(format!("terminate {agent}"), attributes.with("gen_ai.agent.name", agent.as_str()))
            }
            Effect::Grant { .. } | Effect::Sleep { .. } | Effect::Keep(_) => plain(effect.kind().to_owned(), attributes),
        }
    }

    pub(crate) fn of_inquiry(inquiry: &Inquiry, content: bool) -> Self {
        match inquiry {
            // The log has the end of the prompt, which is what a person sees.
            Inquiry::Model { model, prompt, .. } => {
                let mut start = Self::chat(model);
                if content {
                    start.attributes.set("gen_ai.input.messages", message("user", prompt));
                }
                start
            }
            Inquiry::Person { .. } => {
                Self { name: "approval".to_owned(), kind: INTERNAL, attributes: Attributes::default(), model: None }
            }
        }
    }

    fn chat(model: &str) -> Self {
        let attributes = Attributes::default().with("gen_ai.operation.name", "chat");
        Self { name: "chat".to_owned(), kind: CLIENT, attributes, model: Some(model.to_owned()) }
    }
}

impl SpanEnd {
    pub(crate) fn of(outcome: &Outcome, content: bool) -> Self {
        match outcome {
            Outcome::Reply(reply) => Self::replied(reply, content),
            Outcome::Result(result) => {
                let attributes = Attributes::default()
                    .with_some("gen_ai.tool.call.result", content.then(|| cut(&result.content)))
                    .with_some("polis.reused", result.from.map(|from| from.to_string()));
                match result.is_error {
                    true => Self {
                        attributes,
                        error: Some("tool_error".to_owned()),
                        status: Status::error("the tool reported a failure"),
                        reply: None,
                    },
                    false => Self { attributes, ..Self::default() },
                }
            }
            Outcome::Answer(text) => Self {
                attributes: Attributes::default()
                    .with_some("gen_ai.output.messages", content.then(|| message("assistant", text))),
                ..Self::default()
            },
            Outcome::Verdict(verdict) => Self::judged(verdict),
            Outcome::Slept | Outcome::Kept(_) => Self::default(),
            Outcome::Failed(failure) => Self::failed(failure),
        }
    }

    pub(crate) fn of_answer(answer: &Answer, content: bool) -> Self {
        match answer {
            Answer::Reply(reply) => Self::replied(reply, content),
            Answer::Verdict(verdict) => Self::judged(verdict),
            Answer::Cancelled => Self::failed(&Failure::new("cancelled", "the person said nothing")),
            Answer::Failed(failure) => Self::failed(failure),
        }
    }

    pub(crate) fn of_turn(settlement: &Settlement) -> Self {
        match settlement {
            Settlement::Done => Self::default(),
            Settlement::Failed(failure) | Settlement::Cancelled(failure) => Self::failed(failure),
        }
    }

    pub(crate) fn failed(failure: &Failure) -> Self {
        let status = Status::error(format!("{}: {}", failure.code, failure.message));
        Self { status, error: Some(failure.code.to_string()), ..Self::default() }
    }

    fn replied(reply: &Reply, content: bool) -> Self {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens, .. } = reply.usage;
        let some = |count: u64| (count > 0).then_some(count);
        let reasons = Value::List { values: vec![finish(&reply.finish).into()] };
        let attributes = Attributes::default()
            .with("gen_ai.usage.input_tokens", input_tokens)
            .with("gen_ai.usage.output_tokens", output_tokens)
            .with_some("gen_ai.usage.cache_read.input_tokens", some(cached_tokens))
            .with_some("gen_ai.usage.cache_creation.input_tokens", some(cache_write_tokens))
            .with_some("gen_ai.usage.reasoning.output_tokens", some(reasoning_tokens))
            .with("gen_ai.response.finish_reasons", reasons)
            .with_some("gen_ai.output.messages", content.then(|| output_message(reply)));
        let reply_usage = ReplyUsage { model: reply.model.to_string(), usage: reply.usage };
        Self { attributes, reply: Some(reply_usage), ..Self::default() }
    }

    fn judged(verdict: &Verdict) -> Self {
        Self { attributes: Attributes::default().with("polis.approved", verdict.approved), ..Self::default() }
    }
}

/// What an attempt in vain was.
pub(crate) fn retry(attempt: &Attempt) -> Attributes {
    Attributes::default()
        .with("polis.model", &*attempt.model)
        .with("polis.attempt", u64::from(attempt.attempt))
        .with("error.type", &*attempt.failure.code)
        .with("polis.message", attempt.failure.message.as_str())
        .with("polis.delay_ms", attempt.delay_ms)
        .with("polis.next_model", &*attempt.next)
}

/// A failure within a span that goes on.
pub(crate) fn mishap(failure: &Failure) -> Attributes {
    Attributes::default().with("error.type", &*failure.code).with("polis.message", failure.message.as_str())
}

/// What a model call cost, attempts in vain included.
pub(crate) fn cost(spent: Spent) -> Attributes {
    Attributes::default().with("polis.tokens", spent.tokens).with("polis.cost_usd", usd(spent.cost_nanos))
}

/// The vendor by the name that the conventions have for it, and the model's own name.
pub(crate) fn model_names(model: &str) -> (String, String) {
    let (vendor, name) = model.split_once('/').unwrap_or((model, model));
    let provider = match vendor {
        "" => "unknown",
        "gemini" | "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "vertex" => "gcp.vertex_ai",
        other => other,
    };
    (provider.to_owned(), name.to_owned())
}

/// A text as the conventions write down what was said.
pub(crate) fn message(role: &str, text: &str) -> String {
    json!([{ "role": role, "parts": [{ "type": "text", "content": cut(text) }] }]).to_string()
}

fn output_message(reply: &Reply) -> String {
    let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "content": cut(&reply.text) }));
    let reasoning = (!reply.reasoning.is_empty()).then(|| json!({ "type": "reasoning", "content": cut(&reply.reasoning) }));
    let parts: Vec<_> = reasoning.into_iter().chain(text).chain(reply.tool_calls.iter().map(tool_call)).collect();
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish(&reply.finish) }]).to_string()
}

/// A call that a model wrote; its arguments as an object if they are JSON and not too long.
pub(crate) fn tool_call(call: &ToolCall) -> serde_json::Value {
    let parsed = Some(&*call.arguments).filter(|text| text.len() <= MAX_CONTENT_BYTES);
    let parsed = parsed.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let arguments = parsed.unwrap_or_else(|| cut(&call.arguments).into());
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
}

fn tool(call: &Call, content: bool) -> Attributes {
    let class = match call.class {
        EffectClass::Read => "read",
        EffectClass::Idempotent => "idempotent",
        EffectClass::Write => "write",
    };
    Attributes::default()
        .with("gen_ai.operation.name", "execute_tool")
        .with("gen_ai.tool.name", &*call.tool)
        .with("gen_ai.tool.call.id", &*call.call_id)
        .with("gen_ai.tool.type", "function")
        .with("polis.effect", class)
        .with_some("gen_ai.tool.call.arguments", content.then(|| cut(&call.arguments)))
}

fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Refusal => "refusal",
        Finish::Paused => "pause",
        Finish::Other(word) => word,
    }
}

pub(crate) fn cut(text: &str) -> String {
    match text.len() <= MAX_CONTENT_BYTES {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(MAX_CONTENT_BYTES)]),
    }
}
