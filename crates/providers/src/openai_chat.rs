//! The OpenAI chat dialect, as very many vendors speak it, and where they differ.

mod effort;
mod reply;
mod request;

pub(crate) use reply::ChatReader;
pub(crate) use request::body;

use polis_ports::VendorTool;

use crate::CallIds;

/// Where vendors differ in what they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// Whether `stream_options` may be sent; without it, usage comes unasked or not at all.
    pub stream_options: bool,
    /// What the limit of output tokens is called.
    pub token_limit: TokenLimit,
    /// How it is told to think more or less.
    pub effort: EffortField,
    /// What the seed of sampling is called.
    pub seed: SeedField,
    /// Whether it knows `service_tier`.
    pub service_tier: bool,
    /// How it is told the shape of the reply.
    pub format: FormatField,
    /// Whether it wants the reasoning before its tool calls back as `reasoning_content`.
    pub wants_reasoning: bool,
    /// Whether it wants its `reasoning_details` back; others may refuse a field that they do not know.
    pub wants_details: bool,
    /// Whether requests that begin alike should say so with a `prompt_cache_key`.
    pub cache_key: bool,
    /// Which ids of calls it takes back.
    pub call_ids: CallIds,
    /// Whether it is to send reasoning apart from the content, with `reasoning_split`.
    pub reasoning_split: bool,
    /// What it calls the tools that it runs itself.
    pub vendor_tools: VendorToolNames,
}

/// What a vendor calls the limit of output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLimit {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// How a vendor is told to think more or less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffortField {
    /// It cannot be told, or not all of its models can.
    Absent,
    /// `reasoning_effort`, with every word.
    ReasoningEffort,
    /// `thinking: { type }`, and `reasoning_effort` with `low`, `high` and `max`.
    DeepSeek,
    /// `reasoning_effort` for those of xAI's models that take it.
    Xai,
    /// `reasoning_effort` for those of Mistral's models that take it.
    Mistral,
    /// `reasoning_effort`: degrees for the open models of OpenAI, on or off for Qwen's.
    Groq,
    /// `thinking: { type }`, adaptive or off, for those of MiniMax's models that take it.
    MiniMax,
    /// `reasoning_effort` for the open models of OpenAI, otherwise `chat_template_kwargs: { enable_thinking }`.
    ChatTemplate,
    /// `reasoning_effort` for those of OpenAI's models that think; these in turn refuse `temperature`.
    OpenAi,
    /// `reasoning_effort`, for the open models of OpenAI alone.
    GptOss,
    /// `reasoning: { effort }`, or `{ max_tokens }` for a budget.
    Reasoning,
    /// `thinking: { type }`, on or off; newer models take a `reasoning_effort`.
    Thinking,
    /// `enable_thinking`, on or off, and `thinking_budget`.
    EnableThinking,
}

/// What a vendor calls the seed of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedField {
    /// It has none.
    Absent,
    /// `seed`
    Seed,
    /// `random_seed`
    RandomSeed,
}

/// How a vendor is told the shape of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatField {
    /// `json_schema`
    JsonSchema,
    /// `json_object`, and the schema in words.
    JsonObject,
    /// Not at all; the schema stands in words.
    Absent,
}

/// What a vendor calls the tools that it runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorToolNames {
    /// It has none.
    Absent,
    /// `openrouter:web_search` and `openrouter:web_fetch`
    OpenRouter,
    /// `browser_search` and `code_interpreter`
    Groq,
    /// It searches the web unasked.
    AlwaysSearches,
}

impl VendorToolNames {
    /// Whether there is this tool.
    pub(crate) fn has(self, tool: VendorTool) -> bool {
        self.name(tool).is_some() || (self == Self::AlwaysSearches && tool == VendorTool::WebSearch)
    }

    /// The name that is sent.
    fn name(self, tool: VendorTool) -> Option<&'static str> {
        match (self, tool) {
            (Self::OpenRouter, VendorTool::WebSearch) => Some("openrouter:web_search"),
            (Self::OpenRouter, VendorTool::WebFetch) => Some("openrouter:web_fetch"),
            (Self::Groq, VendorTool::WebSearch) => Some("browser_search"),
            (Self::Groq, VendorTool::CodeExecution) => Some("code_interpreter"),
            _ => None,
        }
    }
}

impl Quirks {
    /// No difference.
    pub const PLAIN: Self = Self {
        stream_options: true,
        token_limit: TokenLimit::MaxTokens,
        effort: EffortField::Absent,
        seed: SeedField::Seed,
        service_tier: false,
        format: FormatField::JsonSchema,
        wants_reasoning: false,
        wants_details: false,
        cache_key: false,
        call_ids: CallIds::Any,
        reasoning_split: false,
        vendor_tools: VendorToolNames::Absent,
    };
}

impl Default for Quirks {
    fn default() -> Self {
        Self::PLAIN
    }
}
