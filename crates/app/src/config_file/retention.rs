//! `[retention]`: what becomes of old events and conversations, and how much room the log may take.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;

use super::backup::duration;

/// `[retention]`: from which age on events are archived and conversations erased, and how long the log may become.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetentionSection {
    #[serde(default, deserialize_with = "duration")]
    pub(crate) archive_after: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    pub(crate) delete_after: Option<Duration>,
    max_log_mb: Option<NonZeroU32>,
}

impl RetentionSection {
    /// How many bytes the files of the log may have before new requests are refused.
    pub(crate) fn max_log_bytes(&self) -> Option<u64> {
        self.max_log_mb.map(|megabytes| u64::from(megabytes.get()) << 20)
    }
}
