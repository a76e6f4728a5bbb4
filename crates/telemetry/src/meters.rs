//! What is counted: model calls by the GenAI conventions, tokens and cost by agent. Sums since this process began.

use std::collections::BTreeMap;

use polis_domain::Timestamp;

use crate::otlp::{Attributes, Data, Metric, MetricValue, Point, nanos, usd};
use crate::spans::ModelCall;

/// The steps that the conventions want.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Most agents, and most kinds of model calls, that are counted apart.
const MAX_SERIES: usize = 2_000;

/// What all others are counted as.
const OTHERS: &str = "_other";

/// Sums are told as a whole each time.
const CUMULATIVE: u8 = 2;

/// The figures of one society.
#[derive(Debug)]
pub(crate) struct Meters {
    society: String,
    since: Timestamp,
    calls: BTreeMap<Kind, Figures>,
    agents: BTreeMap<String, Totals>,
}

/// What kind of model call it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    provider: String,
    request_model: String,
    response_model: String,
    error: Option<String>,
}

#[derive(Debug, Default)]
struct Figures {
    seconds: Histogram,
    input: Histogram,
    output: Histogram,
}

#[derive(Debug, Default)]
struct Totals {
    input: u64,
    output: u64,
    cost_nanos: u64,
}

#[derive(Debug, Default)]
struct Histogram {
    counts: [u64; 15],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, value: f64, bounds: &[f64; 14]) {
        self.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        self.count += 1;
        self.sum += value;
    }

    fn figure(&self, explicit_bounds: &'static [f64]) -> MetricValue {
        MetricValue::Histogram { count: self.count, sum: self.sum, bucket_counts: self.counts.to_vec(), explicit_bounds }
    }
}

impl Meters {
    pub(crate) fn new(society: &str, since: Timestamp) -> Self {
        Self { society: society.to_owned(), since, calls: BTreeMap::new(), agents: BTreeMap::new() }
    }

    pub(crate) fn count(&mut self, chat: &ModelCall) {
        let mut kind = Kind {
            provider: chat.provider.clone(),
            request_model: chat.request_model.clone(),
            response_model: chat.response_model.clone(),
            error: chat.error.clone(),
        };
        if self.calls.len() >= MAX_SERIES && !self.calls.contains_key(&kind) {
            let others = || OTHERS.to_owned();
            kind = Kind { provider: others(), request_model: others(), response_model: others(), error: None };
        }
        let figures = self.calls.entry(kind).or_default();
        figures.seconds.add(chat.seconds, &SECONDS);
        if chat.error.is_none() {
            figures.input.add(chat.usage.input_tokens as f64, &TOKENS);
            figures.output.add(chat.usage.output_tokens as f64, &TOKENS);
        }
        let is_known = self.agents.len() < MAX_SERIES || self.agents.contains_key(&chat.agent);
        let account = self.agents.entry(if is_known { chat.agent.clone() } else { OTHERS.to_owned() }).or_default();
        account.input += chat.usage.input_tokens;
        account.output += chat.usage.output_tokens;
        account.cost_nanos += chat.cost_nanos;
    }

    /// All metrics, with the requests and turns that are under way.
    pub(crate) fn metrics(&self, now: Timestamp, (requests, turns): (usize, usize)) -> Vec<Metric> {
        let point = |attributes: Attributes, value| Point {
            attributes: attributes.with("polis.society", self.society.as_str()),
            start_time_unix_nano: nanos(self.since),
            time_unix_nano: nanos(now),
            value,
        };
        let of = |kind: &Kind| {
            let some = |text: &String| (!text.is_empty()).then(|| text.clone());
            Attributes::default()
                .with("gen_ai.operation.name", "chat")
                .with("gen_ai.provider.name", kind.provider.as_str())
                .with_some("gen_ai.request.model", some(&kind.request_model))
                .with_some("gen_ai.response.model", some(&kind.response_model))
                .with_some("error.type", kind.error.clone())
        };
        let mut tokens = Vec::new();
        for (kind, figures) in self.calls.iter().filter(|(kind, _)| kind.error.is_none()) {
            tokens.push(point(of(kind).with("gen_ai.token.type", "input"), figures.input.figure(&TOKENS)));
            tokens.push(point(of(kind).with("gen_ai.token.type", "output"), figures.output.figure(&TOKENS)));
        }
        let seconds = self.calls.iter().map(|(kind, figures)| point(of(kind), figures.seconds.figure(&SECONDS)));
        let seconds = seconds.collect();
        let mut counted = Vec::new();
        let mut cost = Vec::new();
        for (agent, account) in &self.agents {
            let of = || Attributes::default().with("polis.agent", agent.as_str());
            for (which, count) in [("input", account.input), ("output", account.output)] {
                counted.push(point(of().with("gen_ai.token.type", which), MetricValue::Int { as_int: count }));
            }
            cost.push(point(of(), MetricValue::Double { as_double: usd(account.cost_nanos) }));
        }
        let sum = |data_points| Data::Sum { aggregation_temporality: CUMULATIVE, is_monotonic: true, data_points };
        let histogram = |data_points| Data::Histogram { aggregation_temporality: CUMULATIVE, data_points };
        let gauge = |count: usize| Data::Gauge {
            data_points: vec![point(Attributes::default(), MetricValue::Int { as_int: count as u64 })],
        };
        let metrics = [
            ("gen_ai.client.token.usage", "{token}", "Tokens of model calls.", histogram(tokens)),
            ("gen_ai.client.operation.duration", "s", "How long model calls took.", histogram(seconds)),
            ("polis.tokens", "{token}", "Tokens by agent.", sum(counted)),
            ("polis.cost", "USD", "What models cost, by agent.", sum(cost)),
            ("polis.requests.active", "{request}", "Open requests.", gauge(requests)),
            ("polis.turns.active", "{turn}", "Turns under way.", gauge(turns)),
        ];
        let filled = metrics.into_iter().filter(|(.., data)| !data.points().is_empty());
        filled.map(|(name, unit, description, data)| Metric { name, unit, description, data }).collect()
    }
}
