//! `[backup]`: copies that `polis serve` makes while it runs.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::network::path_from_home;

const EVERY: Duration = Duration::from_secs(600);

/// `[backup]`: where backups go, how often one is made, and how many are used in turn.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupSection {
    #[serde(default, deserialize_with = "path_from_home")]
    pub(crate) to: Option<PathBuf>,
    #[serde(default, deserialize_with = "duration")]
    every: Option<Duration>,
    keep: Option<NonZeroU32>,
}

impl BackupSection {
    /// Ten minutes where nothing is said.
    pub(crate) fn every(&self) -> Duration {
        self.every.unwrap_or(EVERY)
    }

    /// Two where nothing is said, so that one is whole and untouched while the other is written.
    pub(crate) fn keep(&self) -> NonZeroU32 {
        self.keep.or(NonZeroU32::new(2)).unwrap_or(NonZeroU32::MIN)
    }
}

pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bad = || serde::de::Error::custom(format!("`{text}` is not a time; write for example 30s, 10m, 6h or 1d"));
    let (number, unit) = text.split_at(text.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let number: u32 = number.parse().ok().filter(|number| *number > 0).ok_or_else(bad)?;
    Ok(Some(Duration::from_secs(u64::from(number) * seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_defaults_are_ten_minutes_and_two_copies() {
        let read = |text: &str| toml::from_str::<BackupSection>(text);
        let every = |text: &str| read(&format!("every = \"{text}\"")).map(|section| section.every().as_secs()).ok();
        assert_eq!(["30s", "10m", "6h", "1d"].map(every), [Some(30), Some(600), Some(21_600), Some(86_400)]);
        assert_eq!(["", "10", "m", "0m", "-1m", "1.5h", "10 m", "十m", "分"].map(every), [None; 9]);
        let usual = read("to = \"b\"").unwrap();
        assert_eq!((usual.every(), usual.keep().get()), (EVERY, 2));
        let home = std::env::home_dir().unwrap();
        assert_eq!(read("to = \"~/copies\"").unwrap().to, Some(home.join("copies")));
        assert!(read("keep = 0").is_err() && read("too = \"b\"").is_err());
    }
}
