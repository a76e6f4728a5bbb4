//! Forking a society: a new society starts with the history of another, and each continues on its own.
//!
//! What had ended stays ended in both. What was open at the fork is owed in both: a turn continues from its journal, and a
//! write without a result is in doubt.

use std::collections::BTreeSet;

use polis_domain::{Command, Event, Failure, Request, SPINE_VERSION, Seq, SocietyId, Spine, Stage, decide, mix};
use polis_ports::{Clock, Fork, Log, LogError, NewSnapshot};

use crate::fold::fold_from_zero;
use crate::idle::stored_entry;

/// The request for a fork or a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The society to fork.
    pub from: SocietyId,
    /// The last event to share; none for all of them.
    pub at: Option<Seq>,
    /// The name of the new society.
    pub to: SocietyId,
    /// The new name for the society that has the name `to` so far (a rewind), by [`free_name`]; none if that name is free.
    pub aside: Option<SocietyId>,
    /// The request that asks for it, if it has an idempotency key.
    pub request: Option<Request>,
}

/// A fork that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The last event that both share: the requested one, or the last one before it that ended an append.
    pub at: Seq,
    /// How many open turns both now have.
    pub open_turns: usize,
    /// How many writes without a result both now have.
    pub in_doubt: usize,
}

/// Why a fork was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// A name has characters that are not allowed.
    #[error(
        "`{0}` cannot be the name of a society; use up to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    )]
    BadName(SocietyId),
    /// The society to fork does not exist.
    #[error("there is no society `{0}`; `polis societies` lists them")]
    Unknown(SocietyId),
    /// The log has no such event.
    #[error("the log of `{society}` ends at event {last}; there is no event {at}")]
    NoSuchPlace {
        /// The society to fork.
        society: SocietyId,
        /// The requested event.
        at: Seq,
        /// The last event of its log.
        last: Seq,
    },
    /// No append had ended at that event or before.
    #[error("`{society}` was not complete at event {at} or before; choose a later one")]
    TooEarly {
        /// The society to fork.
        society: SocietyId,
        /// The requested event.
        at: Seq,
    },
    /// Another society has the name.
    #[error("society `{0}` already exists; choose another name")]
    Taken(SocietyId),
    /// The idempotency key belongs to another request.
    #[error("this idempotency key was used for another request; take a new one")]
    KeyReused,
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ForkError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName(_) => "bad_society_name",
            Self::Unknown(_) => "unknown_society",
            Self::NoSuchPlace { .. } => "no_such_event",
            Self::TooEarly { .. } => "too_early",
            Self::Taken(_) => "society_exists",
            Self::KeyReused => "key_reused",
            Self::Log(error) => error.code(),
        }
    }
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Whether this is a valid name of a society. Names appear in URLs and on command lines.
pub fn is_society_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.len() <= 64 && name.bytes().all(plain) && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// The first unused name of `NAME-1`, `NAME-2` and so on.
pub async fn free_name(log: &dyn Log, name: &SocietyId) -> Result<SocietyId, LogError> {
    let taken: BTreeSet<SocietyId> = log.societies().await?.into_iter().collect();
    let mut names = (1_u64..).map(|n| SocietyId::from(format!("{name}-{n}")));
    Ok(names.find(|name| !taken.contains(name)).expect("there are more numbers than societies"))
}

/// Makes a fork. `entropy` is a random number, new each time.
///
/// A society that is renamed by a rewind must not be open anywhere; one that is only forked may keep running.
pub async fn fork(log: &dyn Log, clock: &dyn Clock, branch: &Branch, entropy: u64) -> Result<Forked, ForkError> {
    let Branch { from, at, to, aside, request } = branch;
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
    let mut spine = fold_from_zero(log, from, whole).await?;
    let command = Command::Fork { from: from.clone(), seed: mix(entropy ^ mix(whole.0)), request: *request };
    let first = decide(&spine, command, clock.now()).ok().and_then(|mut events| events.pop());
    let first = first.ok_or_else(|| ForkError::TooEarly { society: from.clone(), at: asked })?;
    spine.evolve(&first);
    let fork = Fork { from: from.clone(), at: whole, to: to.clone(), aside: aside.clone(), first };
    match log.fork(&fork).await {
        Err(LogError::Conflict { society, .. }) => return Err(ForkError::Taken(society)),
        done => done?,
    }
    let forked = Forked::of(&spine, whole);
    save(log, to, spine).await;
    Ok(forked)
}

/// The fork in a society's past that a request with this key has made, and the society that it was made of. A society may have
/// several forks in its past: each rewind is one.
pub async fn forked_before(
    log: &dyn Log,
    society: &SocietyId,
    request: Request,
) -> Result<Option<(SocietyId, Forked)>, ForkError> {
    let (mut name, mut end) = (society.clone(), Seq(u64::MAX));
    while let Some(origin) = log.origin(&name).await? {
        let first = log.read(&name, origin.at, 1).await?.into_iter().find(|first| first.seq <= end);
        if let Some(Event::SocietyForked { request: Some(made), .. }) = first.map(|first| first.event)
            && made.key == request.key
        {
            if made != request {
                return Err(ForkError::KeyReused);
            }
            let spine = fold_from_zero(log, society, origin.at).await?;
            return Ok(Some((origin.from, Forked::of(&spine, origin.at))));
        }
        end = end.min(origin.at);
        name = origin.from;
    }
    Ok(None)
}

impl Forked {
    fn of(spine: &Spine, at: Seq) -> Self {
        let in_doubt = spine.turns.values().flat_map(|turn| &turn.open).filter(|open| is_doubtful(open)).count();
        Self { at, open_turns: spine.turns.len(), in_doubt }
    }
}

fn is_doubtful(open: &polis_domain::OpenEffect) -> bool {
    let writes = matches!(open.kind, polis_domain::OpenKind::Tool(polis_domain::EffectClass::Write)) && !open.own;
    open.stage == Stage::InDoubt || (open.stage == Stage::Working && writes)
}

/// Saves a snapshot of the fork, so that its first opening need not fold the whole history. A failure is only logged.
async fn save(log: &dyn Log, society: &SocietyId, mut spine: Spine) {
    let seq = spine.seq;
    let write = Box::new(move || {
        let entries = spine.unload();
        let body = serde_json::to_vec(&spine).unwrap_or_default();
        (body, entries.iter().filter_map(|(name, entry)| stored_entry(name, entry)).collect())
    });
    let snapshot = NewSnapshot { seq, version: SPINE_VERSION, after: None, write };
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
