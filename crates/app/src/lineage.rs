//! Forks and their ancestors: a fork has the settings of its ancestors where it has none of its own.

use std::collections::BTreeMap;

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
    let mut sources = BTreeMap::new();
    for fork in log.societies().await? {
        let Some(ForkOrigin { from, at }) = log.origin(&fork).await? else { continue };
        let first = log.read(&fork, at, 1).await?;
        let original = first.first().and_then(|recorded| match &recorded.event {
            Event::SocietyForked { from, .. } => Some(from.clone()),
            _ => None,
        });
        sources.insert(fork, ForkSource { original: original.unwrap_or_else(|| from.clone()), from });
    }
    let mut found = vec![society.clone()];
    let mut next = 0;
    while let Some(one) = found.get(next).cloned() {
        next += 1;
        let successor =
            sources.iter().find(|(name, sources)| sources.from == one && sources.original == **name).map(|(name, _)| name);
        let own = sources.get(&one).into_iter().flat_map(|sources| [&sources.original, &sources.from]);
        for other in successor.into_iter().chain(own) {
            if !found.contains(other) {
                found.push(other.clone());
            }
        }
    }
    found.remove(0);
    Ok(found)
}
