//! Times of day in the two forms of ISO 8601 that clouds write, and nothing else of a calendar.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// A time as signatures have it: `20150830T123600Z`.
pub(crate) fn basic(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Reads `2026-11-18T05:00:00Z`, with a fraction of a second and an offset if there are some.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let at = |place: usize, sign: u8| text.as_bytes().get(place) == Some(&sign);
    if !(at(4, b'-') && at(7, b'-') && (at(10, b'T') || at(10, b' ')) && at(13, b':') && at(16, b':')) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1970..).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let seconds = days(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = |text: &str| {
        let (hours, minutes) = text.split_once(':')?;
        Some(Duration::from_secs(hours.parse::<u64>().ok()? * 3_600 + minutes.parse::<u64>().ok()? * 60))
    };
    match zone.as_bytes().first() {
        None | Some(b'Z') => Some(time),
        Some(b'+') => time.checked_sub(offset(&zone[1..])?),
        Some(b'-') => time.checked_add(offset(&zone[1..])?),
        Some(_) => None,
    }
}

/// The days from 1970 to a date of the Gregorian calendar. The year begins in March here, so that a leap day is its last one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    (era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year).saturating_sub(719_468)
}

/// The date of a day that is counted from 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (era * 400 + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        for (text, written) in [
            ("1970-01-01T00:00:00Z", "19700101T000000Z"),
            ("2000-02-29T23:59:59Z", "20000229T235959Z"),
            ("2015-08-30T12:36:00Z", "20150830T123600Z"),
            ("2100-03-01T00:00:00.123456Z", "21000301T000000Z"),
            ("2026-12-31T23:30:00-01:00", "20270101T003000Z"),
            ("2026-11-18T05:00:00+00:00", "20261118T050000Z"),
        ] {
            assert_eq!(basic(parse(text).unwrap()), written, "{text}");
        }
        for bad in ["", "now", "2026-11-18", "2026-13-01T00:00:00Z", "2026-11-18T24:00:00Z", "2026-11-18T05:00:00é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let every_day = (0..60_000).map(|day| UNIX_EPOCH + Duration::from_secs(day * DAY));
        for time in every_day {
            let text = basic(time);
            let long = format!("{}-{}-{}T00:00:00Z", &text[..4], &text[4..6], &text[6..8]);
            assert_eq!(parse(&long), Some(time), "{long}");
        }
    }
}
