//! What a model call used.

use serde::{Deserialize, Serialize};

/// Tokens of one model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens in the request, cached ones included.
    pub input_tokens: u64,
    /// Tokens in the reply, reasoning included.
    pub output_tokens: u64,
    /// How many input tokens came from the vendor's cache.
    pub cached_tokens: u64,
    /// How many output tokens were reasoning.
    pub reasoning_tokens: u64,
    /// How many input tokens were written to the vendor's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// The price in billionths of a US dollar; 0 if it is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_nanos: u64,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cost_nanos: self.cost_nanos.saturating_add(other.cost_nanos),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
