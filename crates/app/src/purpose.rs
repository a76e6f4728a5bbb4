//! The purpose of a command, which decides how much of a society is opened.

/// What a command needs the society for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To read it. Nothing runs and nothing changes.
    Read,
    /// To record a command that it handles at its next start.
    Enqueue,
    /// To import an organisation, which it uses at its next start; creates the society if needed.
    Import,
    /// To run it; creates the society if needed.
    Run,
}

impl Purpose {
    /// Whether a missing society is created.
    pub(crate) fn creates(self) -> bool {
        matches!(self, Self::Import | Self::Run)
    }
}
