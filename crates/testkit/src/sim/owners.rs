//! Two nodes on one log: each runs the production engine, and one of them owns the society, under a lease in virtual time. Nodes stand
//! still or are cut off from the database for longer than their leases, and what they have sent arrives late.
//!
//! The database of this world does what the statement of a store does: an append is written only under the lease and the epoch of its
//! owner. With the planted bug `no-fence` it looks at the position alone.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, Recorded, Seq, SocietyId, Timestamp};
use polis_engine::Society;
use polis_ports::{CallContext, Log, LogError, ToolError, ToolSpec, Toolbox};
use tokio::time::{Instant, sleep, sleep_until};

use super::{PATIENCE, Plan, Report, SeededRng, World, compared, lock};
use crate::{Gate, GatedLog, ManualClock, MemoryLog, ScriptedTools};

/// How long a lease lasts by the clock of the database. Its owner counts on a quarter less.
const LEASE: Duration = Duration::from_secs(10);

/// How often leases are renewed, and how often a node without the society tries to claim it.
const PERIOD: Duration = Duration::from_secs(2);

/// Runs one plan on two nodes to its end and checks everything that must hold.
pub fn run_owners(plan: Plan) -> Result<Report, String> {
    let plan = Plan { kills: Vec::new(), failures_percent: 0, ..plan };
    compared(plan, live_on_two_nodes)
}

fn live_on_two_nodes(plan: Plan) -> Result<Report, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let world = World::new(plan);
    let cluster = runtime.block_on(async {
        let cluster = Arc::new(Cluster::new(world.clone()));
        let nodes = [0, 1].map(|name| Arc::new(Node { name, ..Node::default() }));
        let [one, other] = nodes.map(|node| cluster.clone().serve(node));
        let ended = tokio::select! {
            biased;
            ended = async { tokio::try_join!(one, other) } => ended.map(drop),
            () = sleep(PATIENCE) => Err("the society is stuck: a wait was forgotten or a turn is not run".to_owned()),
        };
        ended.map(|()| cluster)
    })?;
    drop(runtime);
    if let Some(stray) = lock(&cluster.database.stray).first() {
        return Err(stray.clone());
    }
    let failures = cluster.disturbances.load(Ordering::Relaxed);
    world.report(cluster.takeovers.load(Ordering::Relaxed), failures)
}

/// What the nodes share, and what will happen to them.
struct Cluster {
    world: Arc<World>,
    database: Database,
    clock: Arc<ManualClock>,
    rng: Mutex<SeededRng>,
    /// After so many appends since the last one each, the last first.
    left: Mutex<Vec<(u64, Disturbance)>>,
    appends: AtomicU64,
    openings: AtomicU64,
    disturbances: AtomicUsize,
    takeovers: AtomicUsize,
    is_done: AtomicBool,
}

/// What happens to a node at one of its appends.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    /// It stands still; otherwise it goes on, but hears nothing of the database.
    freezes: bool,
    /// On the way back: the append is written and its sender does not know yet.
    is_written: bool,
    lasts: Duration,
}

/// The row of the society, and the log.
struct Database {
    log: Arc<MemoryLog>,
    row: Mutex<Row>,
    /// What was written by a node that did not own the society.
    stray: Mutex<Vec<String>>,
}

struct Row {
    epoch: u64,
    owner: Option<usize>,
    lease_until: Instant,
}

impl Database {
    /// The epoch of a claim, unless another node has a lease.
    fn claim(&self, node: usize) -> Option<(u64, Option<usize>)> {
        let mut row = lock(&self.row);
        let before = row.owner;
        if before.is_some_and(|owner| owner != node) && Instant::now() < row.lease_until {
            return None;
        }
        *row = Row { epoch: row.epoch + 1, owner: Some(node), lease_until: Instant::now() + LEASE };
        Some((row.epoch, before))
    }

    fn renew(&self, node: usize) -> bool {
        let mut row = lock(&self.row);
        let is_owner = row.owner == Some(node);
        if is_owner {
            row.lease_until = Instant::now() + LEASE;
        }
        is_owner
    }

    fn release(&self, node: usize) {
        let mut row = lock(&self.row);
        if row.owner == Some(node) {
            *row = Row { epoch: row.epoch + 1, owner: None, lease_until: Instant::now() };
        }
    }

    async fn append(
        &self,
        (node, epoch): (usize, u64),
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        let owns = {
            let row = lock(&self.row);
            row.owner == Some(node) && row.epoch == epoch && Instant::now() < row.lease_until
        };
        if !owns && !is_unfenced() {
            let actual = self.log.head(society).await?;
            return Err(LogError::Conflict { society: society.clone(), expected, actual });
        }
        self.log.append(society, expected, events).await?;
        if !owns {
            lock(&self.stray).push(format!("node {node} wrote without a lease: event {}", expected.next()));
        }
        Ok(())
    }
}

/// Whether the bug `no-fence` is planted.
fn is_unfenced() -> bool {
    cfg!(feature = "mutants") && std::env::var("POLIS_PLANT").is_ok_and(|bug| bug == "no-fence")
}

/// A process that claims the society, and the faults that it is under.
#[derive(Default)]
struct Node {
    name: usize,
    frozen_until: Mutex<Option<Instant>>,
    cut_until: Mutex<Option<Instant>>,
}

impl Node {
    async fn thawed(&self) {
        passed(&self.frozen_until).await;
    }

    async fn connected(&self) {
        passed(&self.cut_until).await;
    }

    fn is_frozen(&self) -> bool {
        lock(&self.frozen_until).is_some_and(|until| Instant::now() < until)
    }
}

/// Waits until this time has passed, which may be put off meanwhile.
async fn passed(until: &Mutex<Option<Instant>>) {
    loop {
        let until = lock(until).filter(|until| Instant::now() < *until);
        match until {
            Some(until) => sleep_until(until).await,
            None => return,
        }
    }
}

impl Cluster {
    fn new(world: Arc<World>) -> Self {
        let mut rng = SeededRng::new(world.plan.seed ^ 0x2e57);
        let disturbance = |rng: &mut SeededRng| {
            // Many end when the lease does: then what arrives late meets nobody or the next owner.
            let about = if rng.chance(50) { LEASE.mul_f32(0.9)..LEASE.mul_f32(1.5) } else { PERIOD..3 * LEASE };
            let lasts = about.start + Duration::from_millis(rng.below((about.end - about.start).as_millis() as u64));
            (rng.below(12), Disturbance { freezes: rng.chance(50), is_written: rng.chance(40), lasts })
        };
        let left = (0..1 + rng.below(5)).map(|_| disturbance(&mut rng)).collect();
        let row = Row { epoch: 0, owner: None, lease_until: Instant::now() };
        Self {
            database: Database { log: world.log.clone(), row: Mutex::new(row), stray: Mutex::default() },
            clock: Arc::new(ManualClock::at(Timestamp(world.time.load(Ordering::Relaxed)))),
            world,
            rng: Mutex::new(rng),
            left: Mutex::new(left),
            appends: AtomicU64::new(0),
            openings: AtomicU64::new(0),
            disturbances: AtomicUsize::new(0),
            takeovers: AtomicUsize::new(0),
            is_done: AtomicBool::new(false),
        }
    }

    /// Has a node claim the society again and again and serve it for as long as it has it.
    async fn serve(self: Arc<Self>, node: Arc<Node>) -> Result<(), String> {
        // Not both at the same time.
        sleep(Duration::from_millis(node.name as u64)).await;
        while !self.is_done.load(Ordering::Relaxed) {
            node.thawed().await;
            self.travel(&node).await;
            let asked = Instant::now();
            let Some((epoch, before)) = self.database.claim(node.name) else {
                sleep(PERIOD).await;
                continue;
            };
            self.takeovers.fetch_add(usize::from(before.is_some_and(|before| before != node.name)), Ordering::Relaxed);
            let held = Mutex::new(Some(asked + LEASE * 3 / 4));
            let gate =
                OwnerGate { cluster: self.clone(), node: node.clone(), epoch, held, wire: tokio::sync::Mutex::default() };
            let log = Arc::new(GatedLog { log: self.world.log.clone(), gate });
            self.own(&node, &log).await?;
            self.travel(&node).await;
            self.database.release(node.name);
        }
        Ok(())
    }

    /// Serves the society until everything is done or the lease is lost.
    async fn own(self: &Arc<Self>, node: &Arc<Node>, log: &Arc<GatedLog<OwnerGate>>) -> Result<(), String> {
        let opening = self.openings.fetch_add(1, Ordering::Relaxed);
        let tools = Tools { tools: self.world.tools(), node: node.clone(), gate: log.clone() };
        let ports = polis_engine::Ports { toolbox: Arc::new(tools), ..self.world.ports(log.clone(), self.clock.clone()) };
        let society = tokio::select! {
            biased;
            () = log.gate.keep() => return Ok(()),
            society = self.world.open(ports, opening) => society,
        };
        let ended = tokio::select! {
            biased;
            () = log.gate.keep() => Ok(()),
            _ = society.ended() => Ok(()),
            done = self.finish(&society, node) => done,
        };
        node.thawed().await;
        society.stop(Duration::ZERO).await;
        ended
    }

    async fn finish(&self, society: &Society, node: &Node) -> Result<(), String> {
        self.world.attend_until_done(society, async || node.thawed().await).await?;
        self.is_done.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A way to the database or back.
    async fn travel(&self, node: &Node) {
        let longest = self.world.plan.max_delay_ms / 4;
        let takes = Duration::from_millis(lock(&self.rng).below(longest + 1));
        if !takes.is_zero() {
            sleep(takes).await;
        }
        node.connected().await;
    }

    /// Whether a node is disturbed at this append, and how.
    fn next(&self) -> Option<Disturbance> {
        let mut left = lock(&self.left);
        let appends = self.appends.fetch_add(1, Ordering::Relaxed);
        left.pop_if(|(after, _)| appends >= *after).map(|(_, disturbance)| {
            self.appends.store(0, Ordering::Relaxed);
            self.disturbances.fetch_add(1, Ordering::Relaxed);
            disturbance
        })
    }
}

/// What an owner has under one claim: its lease, and its connection.
struct OwnerGate {
    cluster: Arc<Cluster>,
    node: Arc<Node>,
    epoch: u64,
    /// When the lease ends here; none when it is lost.
    held: Mutex<Option<Instant>>,
    /// Appends that are under way together are sent one after another.
    wire: tokio::sync::Mutex<()>,
}

impl OwnerGate {
    /// Renews the lease until it is lost.
    async fn keep(&self) {
        tokio::select! {
            biased;
            () = self.watch() => {}
            () = self.renew() => {}
        }
    }

    async fn watch(&self) {
        loop {
            let until = *lock(&self.held);
            match until {
                Some(until) if self.is_owned() => sleep_until(until).await,
                _ => break,
            }
        }
        self.node.thawed().await;
    }

    async fn renew(&self) {
        loop {
            sleep(PERIOD).await;
            self.node.thawed().await;
            let asked = Instant::now();
            self.cluster.travel(&self.node).await;
            let is_ours = self.cluster.database.renew(self.node.name);
            self.cluster.travel(&self.node).await;
            self.node.thawed().await;
            if !is_ours || !self.is_owned() {
                *lock(&self.held) = None;
                return;
            }
            *lock(&self.held) = Some(asked + LEASE * 3 / 4);
        }
    }

    fn disturb(&self, disturbance: Option<Disturbance>, is_written: bool) {
        let Some(Disturbance { freezes, lasts, .. }) = disturbance.filter(|it| it.is_written == is_written) else { return };
        let until = if freezes { &self.node.frozen_until } else { &self.node.cut_until };
        *lock(until) = Some(Instant::now() + lasts);
    }
}

#[async_trait]
impl Gate for OwnerGate {
    async fn append(&self, _: &dyn Log, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        let _sending = self.wire.lock().await;
        let disturbance = self.cluster.next();
        self.disturb(disturbance, false);
        self.node.thawed().await;
        self.cluster.travel(&self.node).await;
        let written = self.cluster.database.append((self.node.name, self.epoch), society, expected, events).await;
        self.disturb(disturbance, true);
        self.cluster.travel(&self.node).await;
        self.node.thawed().await;
        written
    }

    fn is_owned(&self) -> bool {
        let mut held = lock(&self.held);
        *held = held.filter(|until| Instant::now() < *until);
        held.is_some()
    }
}

/// The tools as a process calls them: one that stands still calls nothing and hears no results.
struct Tools {
    tools: ScriptedTools,
    node: Arc<Node>,
    gate: Arc<GatedLog<OwnerGate>>,
}

#[async_trait]
impl Toolbox for Tools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.tools()
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        if self.node.is_frozen() {
            // Nothing is between the look at the lease and the call.
            self.node.thawed().await;
            if !self.gate.gate.is_owned() {
                return std::future::pending().await;
            }
        }
        let result = self.tools.call(tool, arguments, context).await;
        self.node.thawed().await;
        result
    }
}
