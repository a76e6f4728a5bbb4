//! Rebuilding a society's state from its log.

use polis_domain::{SPINE_VERSION, Seq, SocietyId, Spine};
use polis_ports::LogError;

use crate::shared::Ports;

/// Events read at a time.
const PAGE: usize = 10_000;

/// Folds a society's whole log. Also returns the position of the snapshot that the fold started from, 0 without one.
pub(crate) async fn fold(ports: &Ports, society: &SocietyId) -> Result<(Spine, Seq), LogError> {
    let head = ports.log.head(society).await?;
    fold_through(ports, society, head).await
}

/// Folds a society's log up to `head`.
///
/// A snapshot is used only if this version wrote it and it is not beyond `head`; any other is ignored and the log is folded
/// from its first event, which gives the same state and only takes longer.
pub(crate) async fn fold_through(ports: &Ports, society: &SocietyId, head: Seq) -> Result<(Spine, Seq), LogError> {
    let snapshot = ports.log.load_snapshot(society).await?;
    let snapshot = snapshot.filter(|snapshot| snapshot.version == SPINE_VERSION && snapshot.seq <= head);
    let mut spine = snapshot.and_then(|snapshot| Spine::read(&snapshot.body)).unwrap_or_default();
    let snapshot_at = spine.seq;
    while spine.seq < head {
        let limit = PAGE.min((head.0 - spine.seq.0) as usize);
        let page = ports.log.read(society, spine.seq, limit).await?;
        if page.is_empty() {
            return Err(LogError::Damaged(format!("the log of `{society}` ends at {} instead of {head}", spine.seq)));
        }
        page.iter().for_each(|recorded| spine.evolve(recorded));
    }
    Ok((spine, snapshot_at))
}
