//! The log of one database: opening, the port, leases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{IdleKey, Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{
    ArtifactLimits, Fork, ForkOrigin, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry,
    StoredSociety, ThreadListing, ThreadRange,
};
use polis_stored_event::encode;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::artifacts::PostgresArtifacts;
use crate::connection::{Connection, Connector};
use crate::database::Database;
use crate::documents::PostgresDocuments;
use crate::error::stopped;
use crate::leases::{self, Leases};
use crate::memory_texts::PostgresMemoryTexts;
use crate::moving::{self, MovedEvent, MovedSociety};
use crate::nodes;
use crate::options::Options;
use crate::placement::{self, Claim, Claims, Owner};
use crate::pool::Pool;
use crate::queue::Queue;
use crate::reader;
use crate::redaction;
use crate::snapshot::{self, Serialised};
use crate::writer::{Append, Head, Job, Writer};

/// How many connections are used for what is beside the log.
const BESIDE: usize = 2;

/// The log in a PostgreSQL database.
///
/// It has threads of its own, so it works whatever runtime its callers use, and however busy that is.
pub struct PostgresLog {
    runtime: Option<Runtime>,
    queue: Queue<Job>,
    pool: Arc<Pool>,
    /// For what is beside the log.
    beside: Database,
    claims: Arc<Claims>,
    leases: Arc<Leases>,
    node: Option<Arc<str>>,
    /// Whether the node is in the table of nodes.
    is_listed: bool,
}

impl PostgresLog {
    /// Connects, and makes or updates the tables.
    ///
    /// # Errors
    ///
    /// [`LogError::TooNew`] when a newer version has written there (nothing is changed), [`LogError::Failed`] when the database
    /// cannot be reached or would not keep what it acknowledges.
    pub async fn open(options: Options) -> Result<Self, LogError> {
        let threads = options.readers.max(1) + 1;
        let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name("polis-postgres").enable_all().build();
        let runtime = Runtimes(Some(runtime.map_err(|error| LogError::Failed(error.into()))?));
        let handle = runtime.handle()?;
        let Options { readers, node, listing, lease, .. } = options.clone();
        let connector = handle.spawn_blocking(move || Connector::new(&options)).await.map_err(|_| stopped())??;
        let connector = Arc::new(connector);
        let claims = Arc::new(Claims::default());
        let (queue, jobs) = Queue::new();
        let open = {
            let (connector, claims, node) = (connector.clone(), claims.clone(), node.clone());
            async move {
                let connection = connector.connect_and_migrate().await?;
                Ok(Writer::new(connector, connection, node.unwrap_or_default(), claims))
            }
        };
        let writer: Result<Writer, LogError> = handle.spawn(open).await.map_err(|_| stopped())?;
        handle.spawn(writer?.run(jobs));
        let (leases, node) = (Arc::new(Leases::new(lease)), node.map(Arc::<str>::from));
        if let Some(node) = &node {
            // Renewals wait for nothing else.
            let pool = Pool::new(connector.clone(), 1);
            if let Some(listing) = listing.clone() {
                let (node, lease) = (node.clone(), leases.lease());
                let pool = Pool::new(connector.clone(), 1);
                let entered = handle.spawn(async move { nodes::keep(&pool, &node, &listing, lease).await });
                entered.await.map_err(|_| stopped())??;
            }
            handle.spawn(leases.clone().keep(pool, node.clone(), listing.clone()));
        }
        let beside = Database::new(handle, Arc::new(Pool::new(connector.clone(), BESIDE)));
        let pool = Arc::new(Pool::new(connector, readers));
        Ok(Self { runtime: runtime.keep(), queue, pool, beside, claims, leases, node, is_listed: listing.is_some() })
    }

    /// Claims a society for this node, unless another node has a lease on it. From then on this log writes to it under the new
    /// epoch, and what other owners have under way is refused.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`] also when the log was opened without the name of a node.
    pub async fn claim(&self, society: &SocietyId, lease: Duration) -> Result<Claim, LogError> {
        let (node, society, claims) = (self.node()?, society.clone(), self.claims.clone());
        self.run(move |pool| async move { placement::claim(&pool, &claims, &node, &society, lease).await }).await
    }

    /// Claims a society for this node as [`Self::claim`] does, and renews the lease until the log is dropped, which gives the society
    /// back. If it cannot be renewed, [`Log::is_owned`] forbids effects before the lease ends, and [`Self::lost`] returns.
    ///
    /// # Errors
    ///
    /// As [`Self::claim`].
    pub async fn hold(&self, society: &SocietyId) -> Result<Claim, LogError> {
        let asked = leases::now();
        let claimed = self.claim(society, self.leases.lease()).await?;
        if let Claim::Ours(_) = claimed {
            self.leases.begin(society, asked);
        }
        Ok(claimed)
    }

    /// Waits until a lease that is held is lost; gives the society, which must not be used here any more, and the reason. Each loss is
    /// given once.
    pub fn lost(&self) -> impl Future<Output = (SocietyId, String)> + Send + use<> {
        let leases = self.leases.clone();
        async move { leases.lost().await }
    }

    /// Renews the leases of these societies; gives those that this node still has. A lease that has ended is renewed too, unless
    /// another node has claimed the society since.
    ///
    /// # Errors
    ///
    /// As [`Self::claim`].
    pub async fn renew(&self, societies: &[SocietyId], lease: Duration) -> Result<Vec<SocietyId>, LogError> {
        let (node, societies) = (self.node()?, societies.to_vec());
        self.run(move |pool| async move { placement::renew(&pool, &node, &societies, lease).await }).await
    }

    /// Gives a society back, so that any node may claim it at once.
    ///
    /// # Errors
    ///
    /// As [`Self::claim`].
    pub async fn release(&self, society: &SocietyId) -> Result<(), LogError> {
        self.give_back(society, false).await
    }

    /// Gives a society back; one that has work is another node's to continue.
    pub(crate) async fn give_back(&self, society: &SocietyId, has_work: bool) -> Result<(), LogError> {
        self.leases.forget(society);
        let (node, society, claims) = (self.node()?, society.clone(), self.claims.clone());
        self.run(move |pool| async move { placement::release(&pool, &claims, &node, &society, has_work).await }).await
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The name of this node.
    pub(crate) fn name(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Who has a lease on a society that has not ended.
    ///
    /// # Errors
    ///
    /// [`LogError`], if the database cannot be asked.
    pub async fn owner(&self, society: &SocietyId) -> Result<Option<Owner>, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { placement::owner(&pool, &society).await }).await
    }

    /// The first society, by name, on which a node has a lease that has not ended.
    ///
    /// # Errors
    ///
    /// [`LogError`], if the database cannot be asked.
    pub async fn first_owned(&self) -> Result<Option<(SocietyId, Owner)>, LogError> {
        self.run(|pool| async move { placement::first_owned(&pool).await }).await
    }

    /// The artifacts of the database. They can be used as long as the log is open.
    pub fn artifacts(&self, limits: ArtifactLimits) -> PostgresArtifacts {
        PostgresArtifacts::new(self.beside.clone(), limits)
    }

    /// The texts of memories in the database. They can be used as long as the log is open.
    pub fn memory_texts(&self) -> PostgresMemoryTexts {
        PostgresMemoryTexts::new(self.beside.clone())
    }

    /// The documents of the database. They can be used as long as the log is open.
    pub fn documents(&self) -> PostgresDocuments {
        PostgresDocuments::new(self.beside.clone())
    }

    /// The societies of the log, to be moved to another store. They should be held.
    ///
    /// # Errors
    ///
    /// [`LogError`], if the database cannot be asked.
    pub async fn moved_societies(&self) -> Result<Vec<MovedSociety>, LogError> {
        self.run(|pool| async move { moving::societies(&pool).await }).await
    }

    /// The next own events of a society after a position, to be moved.
    ///
    /// # Errors
    ///
    /// [`LogError`], if they cannot be read.
    pub async fn moved_events(&self, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { moving::events(&pool, &society, after).await }).await
    }

    /// A connection for one piece of work.
    pub(crate) async fn connection(&self) -> Result<Connection, LogError> {
        self.run(|pool| async move { pool.connect().await }).await
    }

    fn node(&self) -> Result<Arc<str>, LogError> {
        self.node.clone().ok_or_else(|| LogError::Failed("the log was opened without the name of a node".into()))
    }

    /// Runs a piece of work on the threads of the log.
    pub(crate) async fn run<T, F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LogError>> + Send + 'static,
    {
        let runtime = self.runtime.as_ref().ok_or_else(stopped)?;
        runtime.spawn(work(self.pool.clone())).await.map_err(|_| stopped())?
    }
}

/// How long the end of a log waits for its societies to be given back.
const MAX_RELEASE: Duration = Duration::from_secs(2);

impl PostgresLog {
    /// Gives back what is held, so that another node need not wait for the end of the leases.
    fn release_all(&self) {
        let held = self.leases.societies();
        let is_idle = held.is_empty() && !self.is_listed;
        let (Some(runtime), Some(node), false) = (&self.runtime, &self.node, is_idle) else { return };
        let (pool, claims, node, is_listed) = (self.pool.clone(), self.claims.clone(), node.clone(), self.is_listed);
        let (done, released) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            for society in held {
                if let Err(error) = placement::release(&pool, &claims, &node, &society, false).await {
                    tracing::warn!(%error, %society, "it could not be given back; its lease ends by itself");
                }
            }
            if is_listed && let Err(error) = nodes::remove(&pool, &node).await {
                tracing::warn!(%error, "this node is still in the table of nodes; its lease ends by itself");
            }
            let _ = done.send(());
        });
        let _ = released.recv_timeout(MAX_RELEASE);
    }
}

impl Drop for PostgresLog {
    fn drop(&mut self) {
        self.release_all();
        // A runtime must not be waited for where callers may be async. What is under way has not been acknowledged.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A runtime that is shut down in the background also if the opening fails.
struct Runtimes(Option<Runtime>);

impl Runtimes {
    fn handle(&self) -> Result<tokio::runtime::Handle, LogError> {
        self.0.as_ref().map(|runtime| runtime.handle().clone()).ok_or_else(stopped)
    }

    fn keep(mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for Runtimes {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[async_trait]
impl Log for PostgresLog {
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        let batch = encode(society, expected, events)?;
        let bytes = batch.bodies.len();
        let (answer, answered) = oneshot::channel();
        self.queue.push(Job::Append(Append { society: society.clone(), expected, batch, answer }), bytes).await?;
        answered.await.map_err(|_| stopped())?
    }

    /// Waits for appends that were queued before, and makes sure what became of those whose outcome is unknown.
    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        let (answer, answered) = oneshot::channel();
        self.queue.push(Job::Head(Head { society: society.clone(), answer }), 0).await?;
        answered.await.map_err(|_| stopped())?
    }

    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { reader::head(&pool, &society).await }).await
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { reader::read(&pool, &society, after, limit).await }).await
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        let (society, thread) = (society.clone(), thread.clone());
        self.run(move |pool| async move { reader::read_thread(&pool, &society, &thread, range).await }).await
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        let (society, listing) = (society.clone(), listing.clone());
        self.run(move |pool| async move { reader::threads(&pool, &society, &listing).await }).await
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { snapshot::load(&pool, &society).await }).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: NewSnapshot) -> Result<(), LogError> {
        let society = society.clone();
        let NewSnapshot { seq, version, after, write } = snapshot;
        let erasures = self.claims.erasures(&society);
        self.run(move |pool| async move {
            // Serialising a large state takes long, and would hold up what else this thread does.
            let (body, entries) = tokio::task::spawn_blocking(write).await.map_err(|_| stopped())?;
            snapshot::save(&pool, &society, Serialised { seq, version, after, body, entries, erasures }).await
        })
        .await
    }

    async fn idle_entries(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
        let (society, keys) = (society.clone(), keys.to_vec());
        self.run(move |pool| async move { snapshot::find(&pool, &society, at, &keys).await }).await
    }

    async fn list_idle(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        let (society, listing) = (society.clone(), listing.clone());
        self.run(move |pool| async move { snapshot::list(&pool, &society, &listing).await }).await
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        let params = reader::through(society, through);
        self.run(move |pool| async move { reader::whole(&pool.query(&crate::sql::whole(), &params).await?) }).await
    }

    async fn fork(&self, fork: &Fork) -> Result<(), LogError> {
        let first = encode(&fork.to, fork.at, std::slice::from_ref(&fork.first))?;
        let bytes = first.bodies.len();
        // The rename clears the owner, so this lease must not count as lost.
        let held = fork.aside.as_ref().and_then(|_| self.leases.forget(&fork.to));
        let (answer, answered) = oneshot::channel();
        self.queue.push(Job::Fork(Box::new(fork.clone()), first, answer), bytes).await?;
        let made = answered.await.map_err(|_| stopped())?;
        if let (Err(_), Some(held)) = (&made, held) {
            self.leases.put_back(&fork.to, held);
        }
        made
    }

    fn is_owned(&self, society: &SocietyId) -> bool {
        self.leases.allows(society)
    }

    async fn redact(&self, society: &SocietyId, events: &[Recorded]) -> Result<(), LogError> {
        let (society, events, claims) = (society.clone(), events.to_vec(), self.claims.clone());
        let node = self.node.clone().unwrap_or_default();
        self.run(move |pool| async move { redaction::redact(&pool, &claims, &node, &society, &events).await }).await
    }

    async fn forget_redacted(&self, society: &SocietyId) -> Result<(), LogError> {
        let (society, claims, node) = (society.clone(), self.claims.clone(), self.node.clone().unwrap_or_default());
        self.run(move |pool| async move { redaction::forget(&pool, &claims, &node, &society).await }).await
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.run(|pool| async move { reader::societies(&pool).await }).await
    }

    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        let listing = listing.clone();
        self.run(|pool| async move { reader::list_societies(&pool, listing).await }).await
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        let society = society.clone();
        self.run(move |pool| async move { reader::origin(&pool, &society).await }).await
    }
}
