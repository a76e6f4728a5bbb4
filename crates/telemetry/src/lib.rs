//! Turns a society's events into OpenTelemetry spans and metrics and sends them by OTLP over HTTP, as protobuf or JSON (D17). The log is the
//! trace: nothing is measured in the engine, and whatever was not sent can be made again from the log.
//!
//! It knows the domain, the ports and how to watch a society; it knows nothing of servers and programs.

mod agent_tree;
mod exporter;
mod follower;
mod ids;
mod meters;
mod otlp;
mod protobuf;
mod requests;
mod sent_position;
mod spans;
mod tracer;

use std::fmt;
use std::time::Duration;

pub use exporter::BadCollector;
pub use follower::{FollowHandle, Telemetry};
pub use otlp::Protocol;
use polis_http::HttpOptions;

/// Where telemetry goes, and what it says.
#[derive(Clone)]
pub struct Settings {
    /// The collector, without `/v1/traces`: `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// What every request carries. Values may be secret.
    pub headers: Vec<(String, String)>,
    /// The name that this program has among others.
    pub service_name: String,
    /// The version of this program.
    pub service_version: String,
    /// Whether spans carry what was said: requests, replies, arguments and results.
    pub content: bool,
    /// How spans are written.
    pub traces: Protocol,
    /// How metrics are written.
    pub metrics: Protocol,
    /// How often metrics are sent.
    pub metric_interval: Duration,
    /// The proxies and certificates.
    pub network: HttpOptions,
}

impl Settings {
    /// How often metrics are sent where nobody says otherwise.
    pub const METRIC_INTERVAL: Duration = Duration::from_secs(15);
}

/// Shows no header's value and no address: somebody may have written a key there.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Settings")
            .field("headers", &names)
            .field("service_name", &self.service_name)
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}
