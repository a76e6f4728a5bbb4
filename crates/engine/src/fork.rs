//! Forking a society: another one begins with its past, and each goes its own way.
//!
//! What had ended stays ended in both. What was open at the fork is owed in both: a turn goes on from its journal, a write whose
//! result is not known is in doubt.

use polis_domain::{Command, Failure, SPINE_VERSION, Seq, SocietyId, Spine, Stage, decide, mix};
use polis_ports::{Clock, Fork, Log, LogError, Snapshot};

/// Events read at a time.
const PAGE: usize = 10_000;

/// What a society is to be a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Whose past it has.
    pub from: SocietyId,
    /// Up to which event; none for all of it.
    pub at: Option<Seq>,
    /// What it is called.
    pub to: SocietyId,
    /// What the one is called from now on that had this name so far (a rewind); none when the name is free.
    pub aside: Option<SocietyId>,
}

/// A fork that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The last event that both share: the one that was asked for, or the last before it after which the society was whole.
    pub at: Seq,
    /// Turns that are owed in both.
    pub open_turns: usize,
    /// Calls that write and whose result is not known.
    pub in_doubt: usize,
}

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The name cannot be one.
    #[error(
        "`{0}` cannot be the name of a society; use up to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    )]
    BadName(SocietyId),
    /// There is nothing to fork.
    #[error("there is no society `{0}`; `polis societies` lists them")]
    Unknown(SocietyId),
    /// The log is shorter.
    #[error("the log of `{society}` ends at event {last}; there is no event {at}")]
    NoSuchPlace {
        /// Whose log.
        society: SocietyId,
        /// What was asked for.
        at: Seq,
        /// Where it ends.
        last: Seq,
    },
    /// The society had not begun.
    #[error("`{society}` was not whole at event {at} or before; choose a later one")]
    TooEarly {
        /// Whose log.
        society: SocietyId,
        /// What was asked for.
        at: Seq,
    },
    /// Another society has the name.
    #[error("there is a society `{0}` already; choose another name")]
    Taken(SocietyId),
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ForkError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName(_) => "bad_society_name",
            Self::Unknown(_) => "unknown_society",
            Self::NoSuchPlace { .. } => "no_such_event",
            Self::TooEarly { .. } => "too_early",
            Self::Taken(_) => "society_exists",
            Self::Log(error) => error.code(),
        }
    }
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Whether a society can be called this: it stands in addresses and on command lines.
pub fn is_society_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.len() <= 64 && name.bytes().all(plain) && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// The first of `NAME-1`, `NAME-2` and so on that no society has.
pub async fn free_name(log: &dyn Log, name: &SocietyId) -> Result<SocietyId, LogError> {
    let taken = log.societies().await?;
    let mut names = (1_u64..).map(|n| SocietyId::from(format!("{name}-{n}")));
    Ok(names.find(|name| !taken.contains(name)).expect("there are more numbers than societies"))
}

/// Begins a society with the past of another. `entropy` is a random number, new each time.
///
/// A society whose name is given away must not be open anywhere; one that is only forked may go on working.
pub async fn fork(log: &dyn Log, clock: &dyn Clock, branch: &Branch, entropy: u64) -> Result<Forked, ForkError> {
    let Branch { from, at, to, aside } = branch;
    for name in [Some(to), aside.as_ref()].into_iter().flatten() {
        if !is_society_name(name.as_str()) {
            return Err(ForkError::BadName(name.clone()));
        }
    }
    let last = log.head(from).await?;
    if last == Seq(0) {
        return Err(ForkError::Unknown(from.clone()));
    }
    let asked = at.unwrap_or(last);
    if asked > last {
        return Err(ForkError::NoSuchPlace { society: from.clone(), at: asked, last });
    }
    let whole = log.whole(from, asked).await?;
    if whole == Seq(0) {
        return Err(ForkError::TooEarly { society: from.clone(), at: asked });
    }
    let mut spine = fold(log, from, whole).await?;
    let command = Command::Fork { from: from.clone(), seed: mix(entropy ^ mix(whole.0)) };
    let first = decide(&spine, command, clock.now()).ok().and_then(|mut events| events.pop());
    let first = first.ok_or_else(|| ForkError::TooEarly { society: from.clone(), at: asked })?;
    spine.evolve(&first);
    let fork = Fork { from: from.clone(), at: whole, to: to.clone(), aside: aside.clone(), first };
    match log.fork(&fork).await {
        Err(LogError::Conflict { society, .. }) => return Err(ForkError::Taken(society)),
        done => done?,
    }
    save(log, to, &spine).await;
    let in_doubt = spine.turns.values().flat_map(|turn| &turn.open).filter(|open| is_doubtful(open)).count();
    Ok(Forked { at: whole, open_turns: spine.turns.len(), in_doubt })
}

fn is_doubtful(open: &polis_domain::OpenEffect) -> bool {
    let writes = matches!(open.kind, polis_domain::OpenKind::Tool(polis_domain::EffectClass::Write)) && !open.own;
    open.stage == Stage::InDoubt || (open.stage == Stage::Working && writes)
}

/// The state at a place.
async fn fold(log: &dyn Log, society: &SocietyId, through: Seq) -> Result<Spine, LogError> {
    let mut spine = Spine::default();
    while spine.seq < through {
        let limit = usize::try_from(through.0 - spine.seq.0).unwrap_or(PAGE).min(PAGE);
        let page = log.read(society, spine.seq, limit).await?;
        if page.is_empty() {
            return Err(LogError::Damaged(format!("the log of `{society}` ends at {} instead of {through}", spine.seq)));
        }
        page.iter().for_each(|recorded| spine.evolve(recorded));
    }
    Ok(spine)
}

/// Spares the fork its first folding. It is a cache, so a failure is only told.
async fn save(log: &dyn Log, society: &SocietyId, spine: &Spine) {
    let Ok(body) = serde_json::to_vec(spine) else { return };
    let snapshot = Snapshot { seq: spine.seq, version: SPINE_VERSION, body };
    if let Err(error) = log.save_snapshot(society, snapshot).await {
        tracing::warn!(%error, "the snapshot of the fork was not saved; its first start folds its log");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_society_is_plain() {
        for good in ["main", "main-1", "a", "2026", "Try_2.b", &"a".repeat(64)] {
            assert!(is_society_name(good), "{good}");
        }
        for bad in ["", "-a", ".a", "_a", "a b", "a/b", "社会", "a\n", &"a".repeat(65)] {
            assert!(!is_society_name(bad), "{bad}");
        }
    }
}
