//! Rebuilding a society's state from its log.

use polis_domain::{SPINE_VERSION, Seq, SocietyId, Spine};
use polis_ports::{Log, LogError};

use crate::idle::IdleStore;
use crate::shared::Ports;

/// Events read at a time.
const PAGE: usize = 10_000;

/// Folds a society's whole log. Also returns where the idle entries are that the state lacks.
pub(crate) async fn fold(ports: &Ports, society: &SocietyId) -> Result<(Spine, IdleStore), LogError> {
    let head = ports.log.head(society).await?;
    fold_through(ports, society, head).await
}

/// Folds a society's log up to `head`.
///
/// A snapshot is used only if this version wrote it and it is not beyond `head`; any other is ignored and the log is folded
/// from its first event, which gives the same state and only takes longer.
pub(crate) async fn fold_through(ports: &Ports, society: &SocietyId, head: Seq) -> Result<(Spine, IdleStore), LogError> {
    let snapshot = ports.log.load_snapshot(society).await?;
    let snapshot = snapshot.filter(|snapshot| snapshot.version == SPINE_VERSION && snapshot.seq <= head);
    let mut spine = snapshot.and_then(|snapshot| Spine::read(&snapshot.body)).unwrap_or_default();
    let idle = IdleStore::new(ports.log.clone(), society.clone(), spine.seq);
    fold_on(&*ports.log, society, &mut spine, Some(&idle), head).await?;
    Ok((spine, idle))
}

/// Folds a society's log from its first event, so that nothing is left out of memory.
pub(crate) async fn fold_from_zero(log: &dyn Log, society: &SocietyId, head: Seq) -> Result<Spine, LogError> {
    let mut spine = Spine::default();
    fold_on(log, society, &mut spine, None, head).await?;
    Ok(spine)
}

/// Folds on from where a state is.
pub(crate) async fn fold_on(
    log: &dyn Log,
    society: &SocietyId,
    spine: &mut Spine,
    idle: Option<&IdleStore>,
    head: Seq,
) -> Result<(), LogError> {
    while spine.seq < head {
        let limit = usize::try_from(head.0 - spine.seq.0).unwrap_or(PAGE).min(PAGE);
        let page = log.read(society, spine.seq, limit).await?;
        if page.is_empty() {
            return Err(LogError::Damaged(format!("the log of `{society}` ends at {} instead of {head}", spine.seq)));
        }
        if let Some(idle) = idle {
            let missing = page.iter().flat_map(|recorded| spine.missing_for_event(recorded)).collect();
            idle.load(spine, missing).await?;
        }
        page.iter().for_each(|recorded| spine.evolve(recorded));
    }
    Ok(())
}
