//! `now`: the time, here or in another zone. Its answer is never the same twice, so nobody may answer it from memory.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use polis_domain::{CallResult, EffectClass};
use polis_ports::{CallContext, Clock, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::results::{arguments, failed, good};

/// Longest name of a zone, in characters.
const MAX_ZONE_CHARS: usize = 60;
/// Most zones that are suggested.
const MAX_SUGGESTED: usize = 8;

/// Tells the time.
pub struct Now {
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    zone: Option<String>,
}

impl Now {
    /// Tells the time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl Tool for Now {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "now".into(),
            description: "The date, weekday and time at this moment. Call it again when the time matters.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "zone": {
                        "type": "string",
                        "description": "Such as Asia/Tokyo, Tokyo or UTC+8; the machine's if left out",
                    },
                },
            }),
            class: EffectClass::Read,
            volatile: true,
        }
    }

    fn is_deferred(&self) -> bool {
        // Agents are told the date.
        true
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { zone } = arguments(text)?;
        let zone = zone.unwrap_or_default();
        if zone.chars().count() > MAX_ZONE_CHARS {
            return Err(ToolError::BadArguments(format!("zone is longer than {MAX_ZONE_CHARS} characters")));
        }
        let now = Timestamp::from_millisecond(self.clock.now().0.cast_signed());
        // The list of zones may have to be read from the disk.
        let describe_time = tokio::task::spawn_blocking(move || match (named(&zone), now) {
            (Ok(zone), Ok(now)) => good(describe_time(now, zone)),
            (Err(reason), _) => failed(reason),
            (_, Err(error)) => failed(error),
        });
        Ok(describe_time.await.unwrap_or_else(failed))
    }
}

/// The date of a time in the machine's zone, with the weekday and the zone.
pub fn local_date(at: polis_domain::Timestamp) -> String {
    date_in(at, TimeZone::system())
}

fn date_in(at: polis_domain::Timestamp, zone: TimeZone) -> String {
    let Ok(at) = Timestamp::from_millisecond(at.0.cast_signed()) else { return String::new() };
    let there = at.to_zoned(zone);
    let zone = there.time_zone().iana_name().map_or_else(|| there.strftime("UTC%:z").to_string(), str::to_owned);
    there.strftime(&format!("%Y-%m-%d (%A), {zone}")).to_string()
}

fn describe_time(now: Timestamp, zone: TimeZone) -> String {
    let there = now.to_zoned(zone);
    let name = there.time_zone().iana_name().map_or_else(String::new, |name| format!(" {name}"));
    there.strftime(&format!("%Y-%m-%dT%H:%M:%S%:z{name} %A")).to_string()
}

fn named(name: &str) -> Result<TimeZone, String> {
    let name = name.trim().replace(' ', "_");
    if name.is_empty() {
        return Ok(TimeZone::system());
    }
    if let Some(zone) = fixed(&name) {
        return Ok(zone);
    }
    if let Ok(zone) = TimeZone::get(&name) {
        return Ok(zone);
    }
    let wanted = name.to_lowercase();
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    let city = |zone: &&String| zone.rsplit('/').next().is_some_and(|city| city.to_lowercase() == wanted);
    if let Some(zone) = known.iter().find(city).and_then(|zone| TimeZone::get(zone).ok()) {
        return Ok(zone);
    }
    let near: Vec<_> = known.iter().filter(|zone| zone.to_lowercase().contains(&wanted)).take(MAX_SUGGESTED).collect();
    let near = near.iter().map(|zone| zone.as_str()).collect::<Vec<_>>().join(", ");
    let hint = if near.is_empty() { "give one such as Asia/Tokyo, or UTC+8".to_owned() } else { format!("there are {near}") };
    Err(format!("`{name}` is no zone that is known here; {hint}"))
}

/// `UTC`, `UTC+8`, `GMT-03:30`, `+0530`.
fn fixed(name: &str) -> Option<TimeZone> {
    let upper = name.to_uppercase();
    let rest = ["UTC", "GMT", "Z"].iter().find_map(|word| upper.strip_prefix(word));
    match rest {
        Some("") => return Some(TimeZone::UTC),
        Some(_) => {}
        None if upper.starts_with(['+', '-']) => {}
        None => return None,
    }
    let rest = rest.unwrap_or(&upper);
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    let digits = rest.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=14).contains(&hours) && (0..60).contains(&minutes)).then_some(())?;
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok().map(TimeZone::fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_told_with_its_weekday_and_zone() {
        let at = polis_domain::Timestamp(1_700_000_000_000);
        let tokyo = named("Asia/Tokyo").unwrap();
        assert_eq!(date_in(at, tokyo), "2023-11-15 (Wednesday), Asia/Tokyo");
        assert_eq!(date_in(at, named("UTC+8").unwrap()), "2023-11-15 (Wednesday), UTC+08:00");
    }

    #[test]
    fn a_moment_is_told_in_the_zone_that_was_asked_for() {
        // In winter and in summer, for the zones that tell them apart.
        let (winter, summer) = (1_700_000_000, 1_720_000_000);
        for (zone, second, want) in [
            ("UTC", winter, "2023-11-14T22:13:20+00:00 UTC Tuesday"),
            ("Asia/Tokyo", winter, "2023-11-15T07:13:20+09:00 Asia/Tokyo Wednesday"),
            ("tokyo", winter, "2023-11-15T07:13:20+09:00 Asia/Tokyo Wednesday"),
            ("new york", winter, "2023-11-14T17:13:20-05:00 America/New_York Tuesday"),
            ("new york", summer, "2024-07-03T05:46:40-04:00 America/New_York Wednesday"),
            ("UTC+8", winter, "2023-11-15T06:13:20+08:00 Wednesday"),
            ("gmt-03:30", winter, "2023-11-14T18:43:20-03:30 Tuesday"),
            ("+0530", winter, "2023-11-15T03:43:20+05:30 Wednesday"),
        ] {
            let got = describe_time(Timestamp::from_second(second).unwrap(), named(zone).unwrap());
            assert_eq!(got, want, "{zone}");
        }
        assert!(named("").is_ok(), "the machine's own");
    }

    #[test]
    fn a_zone_that_is_not_known_is_told_with_those_that_are_near() {
        assert!(named("Atlantis").unwrap_err().contains("give one such as Asia/Tokyo"));
        assert!(named("york").unwrap_err().contains("America/New_York"));
        for odd in ["UTC+99", "UTC+", "+", "UTC+1:75", "../../etc/passwd"] {
            assert!(named(odd).is_err(), "{odd}");
        }
    }
}
