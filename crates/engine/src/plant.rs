//! Planted bugs. The crash tests also run against a build with each of them and must fail there.

/// A bug that can be built in with the feature `mutants`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Senders are answered before the events are in the log.
    AckBeforeCommit,
    /// Senders are answered when an append before theirs is in the log.
    AckWithPredecessor,
    /// A tool runs before its intent is in the log.
    ActBeforeIntent,
    /// Writes are treated as calls that may be repeated.
    RepeatWrites,
    /// Timers of waits that were open when the process died are lost.
    ForgetAWait,
}

/// Whether this bug is built in and chosen by `POLIS_PLANT`.
#[cfg(feature = "mutants")]
pub(crate) fn is_planted(plant: Plant) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = match plant {
        Plant::AckBeforeCommit => "ack-before-commit",
        Plant::AckWithPredecessor => "ack-with-predecessor",
        Plant::ActBeforeIntent => "act-before-intent",
        Plant::RepeatWrites => "repeat-writes",
        Plant::ForgetAWait => "forget-a-wait",
    };
    CHOSEN.get_or_init(|| std::env::var("POLIS_PLANT").ok()).as_deref() == Some(name)
}

/// No bug is built in.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn is_planted(_: Plant) -> bool {
    false
}
