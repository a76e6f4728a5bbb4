//! Times as clouds write them: without separators in signatures, with an offset where a login ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polis_domain::{Timestamp, iso};

/// A time as signatures have it: `20150830T123600Z`.
pub(crate) fn basic(time: SystemTime) -> String {
    let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let whole = iso::write(Timestamp(u64::try_from(ms).unwrap_or(u64::MAX)));
    let (seconds, _) = whole.split_once('.').unwrap_or((&whole, ""));
    format!("{}Z", seconds.replace(['-', ':'], ""))
}

/// Reads `2026-11-18T05:00:00Z`, with a fraction of a second and an offset if there are some.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (time, zone) = text.split_at_checked(text.rfind(['Z', '+', '-'])?)?;
    let offset = |zone: &str| {
        let (hours, minutes) = zone.split_once(':')?;
        Some(Duration::from_secs(hours.parse::<u64>().ok()? * 3_600 + minutes.parse::<u64>().ok()? * 60))
    };
    let time = UNIX_EPOCH + Duration::from_millis(iso::read(&format!("{}Z", time.replacen(' ', "T", 1)))?.0);
    match zone.split_at_checked(1)? {
        ("Z", "") => Some(time),
        ("+", zone) => time.checked_sub(offset(zone)?),
        ("-", zone) => time.checked_add(offset(zone)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        for (text, written) in [
            ("1970-01-01T00:00:00Z", "19700101T000000Z"),
            ("2000-02-29T23:59:59Z", "20000229T235959Z"),
            ("2015-08-30 12:36:00Z", "20150830T123600Z"),
            ("2100-03-01T00:00:00.123456Z", "21000301T000000Z"),
            ("2026-12-31T23:30:00-01:00", "20270101T003000Z"),
            ("2026-11-18T05:00:00+00:00", "20261118T050000Z"),
            ("2026-11-18T05:00:00.5+05:30", "20261117T233000Z"),
        ] {
            assert_eq!(basic(parse(text).unwrap()), written, "{text}");
        }
        for bad in ["", "now", "2026-11-18", "2026-13-01T00:00:00Z", "2026-11-18T24:00:00Z", "2026-11-18T05:00:00é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
