//! Which societies come from which: what holds for one holds for its forks, where nothing else is said of them.

use std::collections::BTreeMap;

use polis_domain::{Event, SocietyId};
use polis_ports::{Log, LogError, Origin};
use polis_store_local::LocalLog;

/// Whose past a society has.
struct Kin {
    /// As that one is called now.
    from: SocietyId,
    /// As it was called then. After a rewind this is the society's own name.
    then: SocietyId,
}

/// Those whose settings count for a society where nothing is said of it, the nearest first: the one that it was forked from, and so
/// on; for one that a rewind has put aside, the one that goes on in its place.
pub(crate) async fn forebears(log: &LocalLog, society: &SocietyId) -> Result<Vec<SocietyId>, LogError> {
    let mut kin = BTreeMap::new();
    for fork in log.societies().await? {
        let Some(Origin { from, at }) = log.origin(&fork).await? else { continue };
        let first = log.read(&fork, at, 1).await?;
        let then = first.first().and_then(|recorded| match &recorded.event {
            Event::SocietyForked { from, .. } => Some(from.clone()),
            _ => None,
        });
        kin.insert(fork, Kin { then: then.unwrap_or_else(|| from.clone()), from });
    }
    let mut found = vec![society.clone()];
    let mut next = 0;
    while let Some(one) = found.get(next).cloned() {
        next += 1;
        let heir = kin.iter().find(|(name, kin)| kin.from == one && kin.then == **name).map(|(name, _)| name);
        let own = kin.get(&one).into_iter().flat_map(|kin| [&kin.then, &kin.from]);
        for other in heir.into_iter().chain(own) {
            if !found.contains(other) {
                found.push(other.clone());
            }
        }
    }
    found.remove(0);
    Ok(found)
}
