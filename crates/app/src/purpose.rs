//! What a command wants of a society, which decides how much of it is opened.

/// What a command wants of the society.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To see it. Nothing runs and nothing changes.
    Look,
    /// To tell it something that it turns to when it next works.
    Tell,
    /// To bring something into it that it turns to when it next works; it is begun if it is not there.
    Bring,
    /// To have it work.
    Work,
}

impl Purpose {
    /// Whether a society that is not there yet is begun.
    pub(crate) fn begins(self) -> bool {
        matches!(self, Self::Bring | Self::Work)
    }
}
