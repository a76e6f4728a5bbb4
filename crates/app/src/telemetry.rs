//! Where telemetry goes: `[telemetry]` in `polis.toml`, and the variables that all programs with OpenTelemetry know. These win.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use polis_telemetry::{Protocol, Settings, Telemetry};
use polis_tools::is_plain_http;
use polis_tools::mcp::{variable_names, variables};
use serde::Deserialize;

use crate::config::Config;
use crate::error::CliError;

/// The name that we have among other programs.
const SERVICE: &str = "polis";

/// `[telemetry]`.
#[derive(Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetrySection {
    endpoint: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    content: bool,
    service_name: Option<String>,
    protocol: Option<String>,
}

/// Shows nothing: its values may be secret.
impl fmt::Debug for TelemetrySection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetrySection").finish_non_exhaustive()
    }
}

impl TelemetrySection {
    /// The variables of the environment that its headers name.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.headers.values().flat_map(|value| variable_names(value)).collect()
    }
}

/// Telemetry as it is set up; none without an endpoint.
pub(crate) fn open(config: &Config) -> Result<Option<(String, Telemetry)>, CliError> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let Some(settings) = settings(config, &set).map_err(|what| CliError::usage("bad_telemetry", what))? else {
        return Ok(None);
    };
    let endpoint = settings.endpoint.clone();
    let telemetry = Telemetry::new(settings).map_err(|error| CliError::usage("bad_telemetry", error.to_string()))?;
    Ok(Some((endpoint, telemetry)))
}

fn settings(config: &Config, set: &dyn Fn(&str) -> Option<String>) -> Result<Option<Settings>, String> {
    let TelemetrySection { endpoint, headers, content, service_name, protocol: written } = config.telemetry.clone();
    let is_off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let Some(endpoint) = set("OTEL_EXPORTER_OTLP_ENDPOINT").or(endpoint).filter(|_| !is_off) else { return Ok(None) };
    let mut all = BTreeMap::new();
    for (name, value) in headers {
        let value = variables(&value).map_err(|what| format!("[telemetry] headers.{name}: {what}"))?;
        all.insert(name.to_lowercase(), value);
    }
    for pair in set("OTEL_EXPORTER_OTLP_HEADERS").iter().flat_map(|pairs| pairs.split(',')) {
        let (name, value) = pair.split_once('=').ok_or("OTEL_EXPORTER_OTLP_HEADERS: write it like name=value,other=value")?;
        all.insert(name.trim().to_lowercase(), decoded(value.trim()));
    }
    if let Some(name) = all.keys().next().filter(|_| is_plain_http(&endpoint)) {
        return Err(format!(
            "{endpoint} is plain http, which would send the header {name} unencrypted; use https (plain_http)"
        ));
    }
    let metric_interval = match set("OTEL_METRIC_EXPORT_INTERVAL").map(|ms| ms.trim().parse::<u64>()) {
        None => Settings::METRIC_INTERVAL,
        Some(Ok(ms)) if ms > 0 => Duration::from_millis(ms),
        Some(_) => return Err("OTEL_METRIC_EXPORT_INTERVAL: write milliseconds, for example 15000".to_owned()),
    };
    // The variable of one kind of telemetry wins over the one for all, which wins over the file.
    let protocol = |signal: &'static str| {
        let of_environment = [signal, "OTEL_EXPORTER_OTLP_PROTOCOL"].into_iter().find_map(|name| Some((name, set(name)?)));
        let of_file = || Some(("[telemetry] protocol", written.clone()?));
        let Some((place, name)) = of_environment.or_else(of_file) else { return Ok(Protocol::default()) };
        Protocol::named(name.trim())
            .ok_or_else(|| format!("{place}: `{name}` is not supported; write http/protobuf or http/json"))
    };
    Ok(Some(Settings {
        traces: protocol("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")?,
        metrics: protocol("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")?,
        endpoint: endpoint.trim().to_owned(),
        headers: all.into_iter().collect(),
        service_name: set("OTEL_SERVICE_NAME").or(service_name).unwrap_or_else(|| SERVICE.to_owned()),
        service_version: env!("CARGO_PKG_VERSION").to_owned(),
        content,
        metric_interval,
        network: config.network().map_err(|error| error.to_string())?,
    }))
}

/// The text without `%20` and the like; what is none of these stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = pair.and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;
    use crate::trust::Trust;

    #[test]
    fn the_environment_wins_over_the_file_and_without_both_nothing_is_sent() {
        let cli = Cli::parse_from(["polis", "--config", "/dev/null", "--data", "/nowhere", "doctor"]);
        let mut config = Config::with_trust(&cli, Trust::nothing()).unwrap();
        let nothing = |_: &str| None;
        assert!(settings(&config, &nothing).unwrap().is_none());
        config.telemetry = toml::from_str(
            "endpoint = \"https://file\"\nheaders = { A = \"x\", B = \"${POLIS_TEST_UNSET:-y}\" }\ncontent = true\n",
        )
        .unwrap();
        let read = settings(&config, &nothing).unwrap().unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!((read.endpoint.as_str(), read.service_name.as_str(), read.content), ("https://file", "polis", true));
        assert_eq!(read.headers, [header("a", "x"), header("b", "y")]);
        let set = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://env".to_owned()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("a=Bearer%20z, c=1%".to_owned()),
            "OTEL_SERVICE_NAME" => Some("mine".to_owned()),
            "OTEL_METRIC_EXPORT_INTERVAL" => Some("500".to_owned()),
            _ => None,
        };
        let read = settings(&config, &set).unwrap().unwrap();
        assert_eq!((read.endpoint.as_str(), read.service_name.as_str()), ("https://env", "mine"));
        assert_eq!(read.headers, [header("a", "Bearer z"), header("b", "y"), header("c", "1%")]);
        assert_eq!(read.metric_interval, Duration::from_millis(500));
        assert_eq!((read.traces, read.metrics), (Protocol::Protobuf, Protocol::Protobuf), "what every collector takes");
        let protocols = |file: Option<&str>, variables: &[(&str, &str)]| {
            let mut config = config.clone();
            config.telemetry.protocol = file.map(str::to_owned);
            let set = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            settings(&config, &set).map(|read| read.map(|read| (read.traces, read.metrics)).unwrap())
        };
        let (json, protobuf) = (Protocol::Json, Protocol::Protobuf);
        assert_eq!(protocols(Some("http/json"), &[]), Ok((json, json)));
        let of_all = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        assert_eq!(protocols(Some("http/json"), &[of_all]), Ok((protobuf, protobuf)));
        let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", " http/json");
        assert_eq!(protocols(None, &[of_all, of_traces]), Ok((json, protobuf)));
        let said = protocols(None, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert_eq!(said, "OTEL_EXPORTER_OTLP_PROTOCOL: `grpc` is not supported; write http/protobuf or http/json");
        assert!(protocols(Some("json"), &[]).unwrap_err().starts_with("[telemetry] protocol: `json` is not"));
        let off = |name: &str| if name == "OTEL_SDK_DISABLED" { Some("TRUE".to_owned()) } else { set(name) };
        assert!(settings(&config, &off).unwrap().is_none());
        config.telemetry.endpoint = Some("http://collector.example:4318".to_owned());
        let said = settings(&config, &nothing).unwrap_err();
        assert!(said.contains("which would send the header a unencrypted"), "{said}");
        config.telemetry.headers.insert("D".to_owned(), "Bearer ${POLIS_TEST_UNSET}".to_owned());
        let said = settings(&config, &nothing).unwrap_err();
        assert_eq!(said, "[telemetry] headers.D: the variable POLIS_TEST_UNSET is not set");
    }
}
