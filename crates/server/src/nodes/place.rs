//! Which societies this node owns: it claims those that are asked for or whose owner is gone, and gives away those that are another
//! node's by the hash, when nothing happens in them.
//!
//! Each tick reads the table of nodes. A society should be where [`best`] says; a request for one that nobody owns goes there too.

use std::time::Duration;

use futures_util::future::join_all;
use polis_api::ApiError;
use polis_domain::{Seq, SocietyId};
use polis_engine::{ForkError, is_society_name};
use polis_ports::{Claimed, LogError, Node};
use ring::digest::{SHA256, digest};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Nodes, Ordering, lock};
use crate::registry::{Entry, MAX_WORKING, STOP_GRACE, Societies, open_error};

/// How many societies are claimed in one tick because their owner is gone.
const CLAIMS: usize = 256;

/// How many idle societies are given to other nodes in one tick.
const MOVES: usize = 16;

/// How often to look whether all societies have been given away.
const LOOK: Duration = Duration::from_millis(20);

/// Where a society is.
pub(super) enum Place {
    Here(Box<Entry>),
    At(Box<Node>),
    /// Nobody owns it at the moment, and this node does not claim it; or its owner takes no requests. Why.
    Nowhere(String),
}

/// The node that should own a society, of those that take some.
pub(super) fn best<'nodes>(nodes: &'nodes [Node], society: &SocietyId) -> Option<&'nodes Node> {
    let weight = |node: &&Node| {
        let text = format!("{}\0{society}", node.name);
        digest(&SHA256, text.as_bytes()).as_ref().to_vec()
    };
    nodes.iter().filter(|node| node.is_alive() && !node.is_draining).max_by_key(weight)
}

impl Societies {
    /// Where a society is. If nobody owns it, it is claimed if it should be here, or if another node asks for it.
    pub(super) async fn place(&self, nodes: &Nodes, society: &SocietyId, is_asked: bool) -> Result<Place, ApiError> {
        if let Some(entry) = self.held(nodes, society) {
            return Ok(Place::Here(Box::new(entry)));
        }
        let known = lock(&nodes.owners).get(society).cloned().filter(|_| !is_asked);
        let owner = match known {
            Some(owner) => Some(owner),
            None => nodes.placement.owner(society).await?,
        };
        match owner.filter(|owner| owner != nodes.placement.this()) {
            Some(owner) => match nodes.find(|node| node.name == owner).await? {
                Some(node) => {
                    lock(&nodes.owners).insert(society.clone(), owner);
                    return Ok(Place::At(Box::new(node)));
                }
                None => {
                    lock(&nodes.owners).remove(society);
                    return Ok(Place::Nowhere(format!("it belongs to the polis on {owner}, which takes no requests now")));
                }
            },
            None if !is_asked => match nodes.best(society).await? {
                Some(node) if node.name != nodes.placement.this() => return Ok(Place::At(Box::new(node))),
                _ => {}
            },
            None => {}
        }
        self.claim(nodes, society, false).await
    }

    /// The society, if this node owns it.
    fn held(&self, nodes: &Nodes, society: &SocietyId) -> Option<Entry> {
        let entry = self.entries(|entries| entries.get(society).filter(|entry| entry.is_running).cloned())?;
        (nodes.placement.holds(society) && !lock(&nodes.leaving).contains(society)).then_some(entry)
    }

    /// Claims and opens a society.
    async fn claim(&self, nodes: &Nodes, society: &SocietyId, has_work: bool) -> Result<Place, ApiError> {
        let _changing = self.0.changing.lock().await;
        if let Some(entry) = self.held(nodes, society) {
            return Ok(Place::Here(Box::new(entry)));
        }
        if lock(&nodes.leaving).contains(society) {
            return Ok(Place::Nowhere("it is being handed over".to_owned()));
        }
        if nodes.is_draining() {
            return Ok(Place::Nowhere(format!("{} takes no societies", nodes.placement.this())));
        }
        let is_known =
            is_society_name(society.as_str()) && (!self.is_other(society) || self.0.log.readable_head(society).await? > Seq(0));
        if !is_known {
            return Err(ForkError::Unknown(society.clone()).into());
        }
        if let Claimed::By(owner) = nodes.placement.claim(society).await? {
            return Ok(Place::Nowhere(format!("{owner} has claimed it")));
        }
        if self.working().len() >= MAX_WORKING {
            self.make_room(nodes).await;
        }
        match self.open(society, true).await {
            Ok(entry) => Ok(Place::Here(Box::new(entry))),
            Err(failure) => {
                give_back(nodes, society, has_work).await;
                Err(open_error(failure))
            }
        }
    }

    /// Gives one society away in which nothing is open.
    async fn make_room(&self, nodes: &Nodes) {
        for state in self.working() {
            let society = state.society();
            if matches!(society.look(|spine| spine.turns.is_empty() && spine.pending() == 0).await, Ok(true)) {
                lock(&nodes.leaving).insert(society.id().clone());
                let entry = self.remove(society.id());
                return self.end(nodes, society.id(), entry, STOP_GRACE).await;
            }
        }
    }

    /// Lets go of a society that ends by itself, because another owner has written to its log.
    pub(crate) fn watch_end(&self, entry: &Entry) {
        if self.nodes().is_none() || !entry.is_running {
            return;
        }
        let (societies, society, ended) = (self.clone(), entry.state.society().id().clone(), entry.state.society().ended());
        tokio::spawn(async move {
            if let (Some(error), Some(nodes)) = (ended.await, &societies.0.nodes) {
                tracing::warn!(%society, %error, "the society has ended here");
                societies.let_go(nodes, &society, Duration::ZERO).await;
            }
        });
    }

    /// Stops a society here and gives it back. Its streams end, so that clients reconnect, to whichever node owns it then.
    async fn let_go(&self, nodes: &Nodes, society: &SocietyId, grace: Duration) {
        let entry = {
            // One that is just being opened is stopped when it is open.
            let _changing = self.0.changing.lock().await;
            if !lock(&nodes.leaving).insert(society.clone()) {
                return;
            }
            self.remove(society)
        };
        self.end(nodes, society, entry, grace).await;
    }

    async fn end(&self, nodes: &Nodes, society: &SocietyId, entry: Option<Entry>, grace: Duration) {
        let mut has_work = true;
        if let Some(entry) = entry {
            entry.state.society().stop(grace).await;
            entry.state.close_because("moved");
            if nodes.placement.holds(society) {
                let unfinished = entry.state.society().unfinished_work().await;
                has_work = !unfinished.is_ok_and(|work| work.open_turns == 0 && work.pending_messages == 0);
            }
        }
        if let Some(opener) = &self.0.opener {
            (opener.close)(society.clone()).await;
        }
        give_back(nodes, society, has_work).await;
        lock(&nodes.leaving).remove(society);
    }

    /// Keeps societies where they should be, for as long as it is polled. `at_start` are those that are to be open if they are this
    /// node's.
    pub async fn keep_placed(&self, at_start: Vec<SocietyId>) {
        let Some(nodes) = &self.0.nodes else { return std::future::pending().await };
        tokio::join!(self.keep_lost(nodes), self.keep_spread(nodes, at_start));
    }

    async fn keep_lost(&self, nodes: &Nodes) {
        let mut stopping = JoinSet::new();
        loop {
            tokio::select! {
                (society, why) = nodes.placement.lost() => {
                    tracing::warn!(%society, "{why}; it is stopped here");
                    let societies = self.clone();
                    stopping.spawn(async move {
                        if let Some(nodes) = &societies.0.nodes {
                            societies.let_go(nodes, &society, Duration::ZERO).await;
                        }
                    });
                }
                Some(_) = stopping.join_next(), if !stopping.is_empty() => {}
            }
        }
    }

    async fn keep_spread(&self, nodes: &Nodes, mut at_start: Vec<SocietyId>) {
        let mut ticks = interval(nodes.placement.period());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.spread(nodes, &mut at_start).await {
                tracing::warn!(%error, "the table of nodes could not be read; trying again");
            }
        }
    }

    async fn spread(&self, nodes: &Nodes, at_start: &mut Vec<SocietyId>) -> Result<(), LogError> {
        let all = nodes.read().await?;
        nodes.links.retain(&all);
        lock(&nodes.owners).retain(|_, owner| all.iter().any(|node| node.name == *owner && node.is_alive()));
        let this = nodes.placement.this();
        let is_drained = all.iter().any(|node| node.name == this && node.is_draining);
        let is_draining = is_drained || self.is_stopping();
        nodes.draining.store(is_draining, Ordering::Release);
        if is_draining {
            self.let_all_go(nodes).await;
            return Ok(());
        }
        let is_ours = |society: &SocietyId| best(&all, society).is_some_and(|node| node.name == this);
        for society in at_start.drain(..) {
            if let Err(error) = self.place(nodes, &society, false).await {
                tracing::error!(%society, code = error.code(), "the society cannot run: {}", error.detail());
            }
        }
        for society in nodes.placement.unowned(CLAIMS).await?.into_iter().filter(is_ours) {
            match self.claim(nodes, &society, true).await {
                Ok(Place::Here(_)) => tracing::info!(%society, "taken over"),
                Ok(_) => {}
                Err(error) => tracing::error!(%society, code = error.code(), "the society cannot run: {}", error.detail()),
            }
        }
        // They are opened again from the log, without the texts.
        let outdated = nodes.placement.outdated().await?;
        join_all(outdated.iter().map(|outdated| self.let_go(nodes, &outdated.society, STOP_GRACE))).await;
        let others = self.working().into_iter().filter(|state| !is_ours(state.society().id()));
        let mut moves = 0;
        for state in others {
            let is_idle =
                |spine: &polis_domain::Spine| spine.pending() == 0 && spine.turns.values().all(|turn| !turn.is_owed());
            if moves < MOVES && matches!(state.society().look(is_idle).await, Ok(true)) {
                moves += 1;
                self.let_go(nodes, state.society().id(), STOP_GRACE).await;
            }
        }
        Ok(())
    }

    async fn let_all_go(&self, nodes: &Nodes) {
        let working = self.working();
        join_all(working.iter().map(|state| self.let_go(nodes, state.society().id(), STOP_GRACE))).await;
    }

    /// Gives all societies to other nodes and takes none, before this node stops. Requests are passed on until then.
    pub async fn leave(&self) {
        let Some(nodes) = &self.0.nodes else { return };
        nodes.draining.store(true, Ordering::Release);
        self.0.leaving.store(true, Ordering::Release);
        let this = nodes.placement.this();
        if let Err(error) = nodes.placement.set_draining(this, true).await {
            tracing::warn!(%error, "the other nodes do not know that this one stops");
        }
        // Whatever was just being opened is given away as well.
        self.let_all_go(nodes).await;
        drop(self.0.changing.lock().await);
        self.let_all_go(nodes).await;
        while !lock(&nodes.leaving).is_empty() {
            sleep(LOOK).await;
        }
    }
}

/// Gives a society back. If that fails, the lease ends by itself, and another node continues.
async fn give_back(nodes: &Nodes, society: &SocietyId, has_work: bool) {
    if let Err(error) = nodes.placement.release(society, has_work).await {
        tracing::warn!(%society, %error, "it could not be given back; its lease ends by itself");
    }
}

#[cfg(test)]
mod tests {
    use polis_domain::Timestamp;

    use super::*;

    fn node(name: String) -> Node {
        let (address, key, lease) = (String::new(), Vec::new(), Duration::from_secs(1));
        Node { name, address, key, since: Timestamp(0), lease, is_draining: false, societies: 0, setup: String::new() }
    }

    #[test]
    fn societies_are_spread_evenly_and_only_those_of_the_node_that_joins_or_leaves_move() {
        let mut nodes: Vec<Node> = (0..4).map(|n| node(format!("node-{n}"))).collect();
        let societies: Vec<SocietyId> = (0..4_000).map(|n| SocietyId::from(format!("society-{n}"))).collect();
        let places = |nodes: &[Node]| -> Vec<String> {
            societies.iter().map(|society| best(nodes, society).unwrap().name.clone()).collect()
        };
        let before = places(&nodes);
        for node in &nodes {
            let share = before.iter().filter(|place| **place == node.name).count();
            assert!((850..1_150).contains(&share), "{}: {share}", node.name);
        }
        nodes.push(node("node-4".to_owned()));
        let after = places(&nodes);
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || after == "node-4"));
        let moved = after.iter().filter(|place| *place == "node-4").count();
        assert!((650..950).contains(&moved), "{moved}");
        // One that drains or is gone has none, and the others keep theirs.
        nodes[0].is_draining = true;
        nodes[1].lease = Duration::ZERO;
        let last = places(&nodes);
        assert!(last.iter().zip(&after).all(|(last, after)| last == after || matches!(after.as_str(), "node-0" | "node-1")));
        assert!(last.iter().all(|place| !matches!(place.as_str(), "node-0" | "node-1")));
        nodes.iter_mut().for_each(|node| node.is_draining = true);
        assert_eq!(best(&nodes, &societies[0]), None);
    }
}
