//! Figures for Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use polis_domain::{BudgetScope, Spine};

use crate::caller::{RequestCaller, Scope};
use crate::problem::Problem;
use crate::state::{MAX_STREAMS, SocietyState};
use polis_api::local::TurnActivity;

/// Answers that were given, by the first digit of their status.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; 6]);

impl Counts {
    pub(crate) fn count(&self, status: StatusCode) {
        if let Some(count) = self.0.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Figures from the spine.
struct Figures {
    events: u64,
    agents: usize,
    tasks: usize,
    pending: usize,
    turns: [(&'static str, usize); 4],
    tokens: u64,
    usd: f64,
    requests: u64,
}

pub(crate) async fn metrics(
    State(state): State<SocietyState>,
    RequestCaller(caller): RequestCaller,
    counts: Option<Extension<Arc<Counts>>>,
) -> Result<Response, Problem> {
    // These are sums over all persons.
    caller.needs(Scope::Everyone)?;
    let figures = state.society.look(Figures::of).await?;
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP polis_{name} {help}\n# TYPE polis_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "polis_{name}{labels} {value}");
        }
    };
    let one = |value: f64| [(String::new(), value)];
    metric("info", "gauge", "What runs.", &[(format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1.0)]);
    metric("events_total", "counter", "Events in the log.", &one(figures.events as f64));
    metric("agents", "gauge", "Agents in memory: all but idle conversations and terminated ones.", &one(figures.agents as f64));
    metric("tasks_open", "gauge", "Open requests.", &one(figures.tasks as f64));
    metric("messages_pending", "gauge", "Messages in inboxes.", &one(figures.pending as f64));
    let turns = figures.turns.map(|(state, count)| (format!("{{state=\"{state}\"}}"), count as f64));
    metric("turns_open", "gauge", "Turns that are not settled.", &turns);
    metric("model_tokens_total", "counter", "Tokens, in and out.", &one(figures.tokens as f64));
    metric("model_usd_total", "counter", "US dollars spent on models.", &one(figures.usd));
    metric("model_requests_total", "counter", "Requests to vendors of models.", &one(figures.requests as f64));
    let streams = MAX_STREAMS - state.streams.available_permits().min(MAX_STREAMS);
    metric("event_streams", "gauge", "Event streams that are open.", &one(streams as f64));
    if let Some(Extension(counts)) = counts {
        let by_class = |class: usize| (format!("{{status=\"{class}xx\"}}"), counts.0[class].load(Ordering::Relaxed) as f64);
        metric("http_answers_total", "counter", "Answers over HTTP.", &[2, 3, 4, 5].map(by_class));
    }
    if let Some(bytes) = resident_bytes() {
        metric("resident_bytes", "gauge", "Memory of the process.", &one(bytes as f64));
    }
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

impl Figures {
    fn of(spine: &Spine) -> Self {
        let count = |wanted: TurnActivity| {
            spine.turns.iter().filter(|(id, turn)| TurnActivity::of(spine, **id, turn) == wanted).count()
        };
        let spent = spine.ledger.get(&BudgetScope::Society).map(|account| account.spent).unwrap_or_default();
        Self {
            events: spine.seq.0,
            agents: spine.agents.len(),
            tasks: spine.activities.len(),
            pending: spine.pending(),
            turns: [
                ("running", count(TurnActivity::Running)),
                ("waiting", count(TurnActivity::Waiting)),
                ("asking", count(TurnActivity::Asking)),
                ("parked", count(TurnActivity::Parked)),
            ],
            tokens: spent.tokens,
            usd: spent.cost_nanos as f64 / 1e9,
            requests: spent.requests,
        }
    }
}

/// The resident memory of the process, where the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1_024)
}
