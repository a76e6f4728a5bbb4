//! Times as documents write them: `2026-11-05T08:15:30.250Z`.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::Timestamp;

const DAY: u64 = 86_400_000;

/// A time in UTC.
pub fn write(at: Timestamp) -> String {
    let (year, month, day) = date(at.0 / DAY);
    let (hour, minute, second, ms) = (at.0 / 3_600_000 % 24, at.0 / 60_000 % 60, at.0 / 1_000 % 60, at.0 % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Reads a time in UTC, with or without a fraction of a second; none if it is no time.
pub fn read(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    let ms = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    let is_time = fraction.bytes().all(|byte| byte.is_ascii_digit()) && hour < 24 && minute < 60 && second < 60;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let days = if is_time && is_date { days(year, month, day) } else { None };
    days.map(|days| Timestamp(days * DAY + hour * 3_600_000 + minute * 60_000 + second * 1_000 + ms))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let numbers: Option<Vec<u64>> = text.split(separator).map(plain).collect();
    numbers?.try_into().ok()
}

/// Year, month and day from the days since 1970, by whole eras of 400 years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The way back; none for a day that its month does not have.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let shifted = year - u64::from(month <= 2);
    let (era, of_era) = (shifted / 400, shifted % 400);
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (date(days) == (year, month, day)).then_some(days)
}

pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write(*at))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    parsed(&String::deserialize(deserializer)?)
}

fn parsed<E: de::Error>(text: &str) -> Result<Timestamp, E> {
    read(text).ok_or_else(|| E::custom(format!("`{text}` is not a time such as 2026-11-05T08:15:30Z")))
}

/// The same for a time that may be missing.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parsed(&text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_793_866_530_250, "2026-11-05T08:15:30.250Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!((write(Timestamp(ms)).as_str(), read(text)), (text, Some(Timestamp(ms))));
        }
        assert_eq!(read("2026-11-05T08:15:30Z"), Some(Timestamp(1_793_866_530_000)));
        for bad in [
            "",
            "2026-11-05",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-05T24:00:00Z",
            "x",
            "2026-11-05T08:15:30.Z0",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_time_is_read_back(ms in 0..253_402_300_800_000_u64) {
            prop_assert_eq!(read(&write(Timestamp(ms))), Some(Timestamp(ms)));
        }
    }
}
