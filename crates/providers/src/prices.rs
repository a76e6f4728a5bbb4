//! What models cost, by name. A table, and the arithmetic on it; nothing is counted here.

use std::collections::BTreeMap;

use polis_domain::Usage;
use serde::Deserialize;

use crate::model_table::built_in_prices;
use crate::names_table::NamesTable;

/// Prices by `vendor/name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    table: NamesTable<Price>,
}

/// What one model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that was not cached.
    pub input: f64,
    /// Input that was; as other input if not given.
    pub cached: Option<f64>,
    /// Input that is put into the cache; as other input if not given.
    pub cache_write: Option<f64>,
    /// Output, reasoning included. Only the price of an embedding model may lack it.
    #[serde(default = "not_given")]
    pub output: f64,
}

/// What is no price: the table refuses it.
fn not_given() -> f64 {
    f64::NAN
}

/// A table of prices that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct BadPrices {
    /// Where, from 1.
    pub line: usize,
    /// Where in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

impl Default for Prices {
    fn default() -> Self {
        Self { table: built_in_prices().into() }
    }
}

impl Prices {
    /// The built-in table with the lines of another in place of its own.
    pub fn read(text: &str) -> Result<Self, BadPrices> {
        let bad = |at: usize, what: String| {
            let before = text.get(..at).unwrap_or(text);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            BadPrices { line: before.matches('\n').count() + 1, column, what }
        };
        let table: BTreeMap<toml::Spanned<String>, toml::Spanned<Price>> =
            toml::from_str(text).map_err(|error| bad(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
        let mut prices = built_in_prices();
        for (name, price) in table {
            let mut row = *price.get_ref();
            if row.output.is_nan() {
                if !name.get_ref().contains("embed") {
                    let what =
                        "missing field `output`; only the price of an embedding model, with `embed` in its name, may lack it";
                    return Err(bad(price.span().start, what.to_owned()));
                }
                row.output = 0.0;
            }
            let Price { input, cached, cache_write, output } = row;
            let is_price = |price: f64| price.is_finite() && (0.0..=MAX_PRICE).contains(&price);
            if ![Some(input), cached, cache_write, Some(output)].into_iter().flatten().all(is_price) {
                return Err(bad(price.span().start, format!("a price is a number from 0 to {MAX_PRICE}")));
            }
            prices.insert(name.into_inner(), row);
        }
        Ok(Self { table: prices.into() })
    }

    /// What a model costs, if that is known.
    pub fn of(&self, model: &str) -> Option<&Price> {
        self.table.matches(model).next()
    }

    /// Fills in the price of what was used; nothing where it is not known.
    #[must_use]
    pub fn priced(&self, model: &str, usage: Usage) -> Usage {
        Usage { cost_nanos: self.of(model).map_or(0, |price| price.nanos(&usage)), ..usage }
    }
}

/// More than any model or tool costs.
pub(crate) const MAX_PRICE: f64 = 1e6;

impl Price {
    /// The price of `usage` in billionths of a dollar.
    pub fn nanos(&self, usage: &Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let plain = usage.input_tokens - cached - written;
        let parts = [
            (plain, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        // In millionths of a millionth, so that nothing is lost before the end.
        let picos = |(tokens, price): (u64, f64)| u128::from(tokens) * (price * 1e6).round() as u128;
        let nanos = parts.into_iter().map(picos).sum::<u128>().div_ceil(1000);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_counts() {
        let prices = Prices::default();
        let output = |model: &str| prices.of(model).map(|price| price.output);
        assert_eq!(output("openai/gpt-4o"), Some(10.0));
        assert_eq!(output("openai/gpt-4o-2024-08-06"), Some(10.0));
        assert_eq!(output("openai/gpt-4o-mini-2024-07-18"), Some(0.6));
        assert_eq!(output("openai/gpt-4oh"), None);
        assert_eq!(output("openai/gpt-5.9"), None);
        assert_eq!(output("openai-responses/gpt-5-mini"), Some(2.0));
        assert_eq!(output("anthropic/claude-opus-4-20250514"), Some(75.0));
        assert_eq!(output("anthropic/claude-opus-4-6"), Some(25.0));
        assert_eq!(output("openrouter/anthropic/claude-opus-4.6"), Some(25.0));
        assert_eq!(output("openrouter/openai/gpt-5.1"), Some(10.0));
        assert_eq!(output("ollama/qwen3:4b"), Some(0.0));
        assert_eq!(output("offline"), Some(0.0));
        assert_eq!(output("openai-compatible/m"), None);
    }

    #[test]
    fn only_an_embedding_model_needs_no_price_of_output() {
        let prices = Prices::read("\"openai/text-embedding-3-small\" = { input = 0.02 }").unwrap();
        assert_eq!(prices.of("openai/text-embedding-3-small").map(|price| (price.input, price.output)), Some((0.02, 0.0)));
        let error = Prices::read("\"openai/gpt-5\" = { input = 1 }").unwrap_err();
        assert!(error.what.contains("missing field `output`"), "{error}");
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = |input_tokens, cached_tokens, cache_write_tokens, output_tokens| Usage {
            input_tokens,
            cached_tokens,
            cache_write_tokens,
            output_tokens,
            reasoning_tokens: output_tokens,
            ..Usage::default()
        };
        let nanos = |model: &str, usage| Prices::default().priced(model, usage).cost_nanos;
        let model = "anthropic/claude-sonnet-4-5-20250929";
        assert_eq!(nanos(model, usage(1_000_000, 0, 0, 0)), 3_000_000_000);
        assert_eq!(nanos(model, usage(1000, 600, 300, 10)), 100 * 3000 + 600 * 300 + 300 * 3750 + 10 * 15_000);
        assert_eq!(nanos("openai/gpt-4.1", usage(10, 4, 3, 1)), 6 * 2000 + 4 * 500 + 8000);
        assert_eq!(nanos("deepseek/deepseek-flash", usage(1, 1, 0, 0)), 3, "rounded up");
        assert_eq!(nanos("nobody/m", usage(1000, 0, 0, 1000)), 0);
        assert_eq!(nanos(model, usage(1, 5, 5, 0)), 300, "more cached than sent");
        assert_eq!(nanos("openai/o3-pro", usage(u64::MAX, 0, 0, u64::MAX)), u64::MAX);
    }

    #[test]
    fn a_table_of_ones_own_replaces_lines_and_adds_some() {
        let own = "\"openai/gpt-4o\" = { input = 1, output = 2 }\n\"my/\" = { input = 0.5, cached = 0, output = 1 }\n";
        let prices = Prices::read(own).unwrap();
        assert_eq!(prices.of("openai/gpt-4o-2024").unwrap().output, 2.0);
        assert_eq!(prices.of("my/a/b").unwrap().cached, Some(0.0));
        assert_eq!(prices.of("openai/gpt-4o-mini").unwrap().output, 0.6);
    }

    #[test]
    fn a_table_that_is_wrong_says_where() {
        let place = |text: &str| Prices::read(text).map_err(|bad| (bad.line, bad.column));
        assert_eq!(place("\n\"a\" = { input = 1 }\n"), Err((2, 7)));
        assert_eq!(place("\"a\" = { input = 1, output = 1, price = 2 }").map_err(|(line, _)| line), Err(1));
        assert_eq!(place("\"a\" = { input = -1, output = 1 }"), Err((1, 7)));
        assert_eq!(place("\"a\" = { input = 1, output = inf }"), Err((1, 7)));
        assert!(place("a = ").is_err());
    }
}
