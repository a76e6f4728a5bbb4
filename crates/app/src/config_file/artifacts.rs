//! `[artifacts]`: how much is stored, and for how long.

use std::num::NonZeroU32;
use std::time::Duration;

use polis_store_local::ArtifactLimits;
use serde::Deserialize;

/// `[artifacts]`: limits of the store, and how long unreferenced artifacts are spared.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactsSection {
    max_mb: Option<NonZeroU32>,
    max_total_mb: Option<NonZeroU32>,
    max_count: Option<NonZeroU32>,
    grace_hours: Option<u32>,
}

/// The same with defaults filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArtifactSettings {
    pub(crate) limits: ArtifactLimits,
    pub(crate) grace: Duration,
}

impl From<ArtifactsSection> for ArtifactSettings {
    fn from(section: ArtifactsSection) -> Self {
        let default = ArtifactLimits::default();
        let bytes = |megabytes: Option<NonZeroU32>, default| megabytes.map_or(default, |n| u64::from(n.get()) << 20);
        let limits = ArtifactLimits {
            max_bytes: bytes(section.max_mb, default.max_bytes),
            max_total_bytes: bytes(section.max_total_mb, default.max_total_bytes),
            max_count: section.max_count.map_or(default.max_count, |count| count.get().into()),
        };
        Self { limits, grace: Duration::from_secs(u64::from(section.grace_hours.unwrap_or(24)) * 3_600) }
    }
}
