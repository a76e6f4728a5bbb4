//! Forks and their ancestors: a fork has the settings of its ancestors where it has none of its own.

use polis_domain::{Event, SocietyId};
use polis_ports::{ForkOrigin, Log, LogError};

/// Where a society was forked from.
struct ForkSource {
    /// As that one is called now.
    from: SocietyId,
    /// As it was called then. After a rewind this is the society's own name.
    original: SocietyId,
}

/// The societies whose settings apply where this one has none, the nearest first: the one that it was forked from, and so
/// on; for one that a rewind has replaced, its replacement.
pub(crate) async fn ancestors(log: &dyn Log, society: &SocietyId) -> Result<Vec<SocietyId>, LogError> {
    let mut found = vec![society.clone()];
    let mut next = 0;
    while let Some(one) = found.get(next).cloned() {
        next += 1;
        let mut others = replacements(log, &one).await?;
        if let Some(ForkSource { from, original }) = source(log, &one).await? {
            others.extend([original, from]);
        }
        for other in others {
            if !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found.remove(0);
    Ok(found)
}

async fn source(log: &dyn Log, society: &SocietyId) -> Result<Option<ForkSource>, LogError> {
    let Some(ForkOrigin { from, at }) = log.origin(society).await? else { return Ok(None) };
    let first = log.read(society, at, 1).await?;
    let original = first.first().and_then(|recorded| match &recorded.event {
        Event::SocietyForked { from, .. } => Some(from.clone()),
        _ => None,
    });
    Ok(Some(ForkSource { original: original.unwrap_or_else(|| from.clone()), from }))
}

/// The societies that rewinds have put in the place of this one. Only names that it may have had are looked up, because a society may
/// have any number of forks.
async fn replacements(log: &dyn Log, society: &SocietyId) -> Result<Vec<SocietyId>, LogError> {
    let mut found = Vec::new();
    for name in former_names(society) {
        if source(log, &name).await?.is_some_and(|source| source.from == *society && source.original == name) {
            found.push(name);
        }
    }
    Ok(found)
}

/// The names that a society may have had before rewinds renamed it: each added a number.
fn former_names(society: &SocietyId) -> impl Iterator<Item = SocietyId> {
    fn shorter<'name>(name: &&'name str) -> Option<&'name str> {
        let (name, number) = name.rsplit_once('-')?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
    }
    std::iter::successors(Some(society.as_str()), shorter).skip(1).map(SocietyId::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_engine::{Branch, SystemClock, fork};
    use polis_testkit::{GatedLog, MemoryLog, Questions};

    use super::*;

    fn branch(from: &str, to: &str, aside: Option<&str>) -> Branch {
        Branch { from: from.into(), at: None, to: to.into(), aside: aside.map(SocietyId::from), request: None }
    }

    async fn store(branches: impl IntoIterator<Item = Branch>) -> GatedLog<Questions> {
        let log = GatedLog { log: Arc::new(MemoryLog::new()), gate: Questions::default() };
        let founded = polis_domain::Event::SocietyFounded { seed: 7, limits: polis_domain::Limits::default() };
        let first =
            polis_domain::Recorded { seq: polis_domain::Seq(1), at: polis_domain::Timestamp(0), thread: None, event: founded };
        log.append(&"main".into(), polis_domain::Seq(0), &[Arc::new(first)]).await.unwrap();
        for branch in branches {
            fork(&log, &SystemClock, &branch, 1).await.unwrap();
        }
        log.gate.take();
        log
    }

    #[tokio::test]
    async fn a_fork_has_ancestors_and_what_a_rewind_replaced_has_its_replacement() {
        let log = store([
            branch("main", "try", None),
            branch("main", "main", Some("main-1")),
            branch("main-1", "main-1", Some("main-1-1")),
            // A name like that of a rewind alone means nothing.
            branch("try", "try-1", None),
        ])
        .await;
        for (society, expected) in [
            ("main", &["main-1-1", "main-1"][..]),
            ("main-1", &["main-1-1", "main"]),
            ("main-1-1", &["main-1", "main"]),
            ("try", &["main", "main-1-1", "main-1"]),
            ("try-1", &["try", "main", "main-1-1", "main-1"]),
        ] {
            let found = ancestors(&log, &society.into()).await.unwrap();
            assert_eq!(found.iter().map(SocietyId::as_str).collect::<Vec<_>>(), expected, "{society}");
        }
    }

    #[tokio::test]
    async fn the_ancestors_of_a_society_cost_the_same_however_many_forks_there_are() {
        let mut costs = Vec::new();
        for forks in [1, 200] {
            let log = store((0..forks).map(|n| branch("main", &format!("idle-{n}"), None))).await;
            for society in ["main", "idle-0"] {
                ancestors(&log, &society.into()).await.unwrap();
            }
            costs.push(log.gate.take());
        }
        assert_eq!(costs[0], costs[1]);
    }
}
