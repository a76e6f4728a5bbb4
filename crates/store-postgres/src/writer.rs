//! The single writer: sends everything that is queued as one statement, then answers.
//!
//! A group has at most one run of appends of each society: those that follow each other. What does not follow waits for the next
//! group, and so does everything after it of that society, so appends are written in the order in which they were queued.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use polis_domain::{Seq, SocietyId, ThreadId};
use polis_ports::{Fork, LogError};
use polis_stored_event::{Batch, body};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::{Connection, Connector, Param, param};
use crate::error::{from_postgres, is_rolled_back};
use crate::placement::Claims;
use crate::queue::Space;
use crate::reader::{column, name, seq};
use crate::schema::key;
use crate::sql;

/// How many appends a group may have.
const GROUP_JOBS: usize = 512;

/// How large a group may be, unless a single append is larger.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// How many societies, and how many threads, are cached.
const MAX_CACHED: usize = 64 * 1024;

/// How often what may work the next time is tried.
const TRIES: usize = 5;

/// A request to the writer and the channel that receives its result.
pub(crate) enum Job {
    Append(Append),
    Head(Head),
    /// Create a fork, whose first event is in the batch.
    Fork(Box<Fork>, Batch, oneshot::Sender<Result<(), LogError>>),
}

pub(crate) struct Append {
    pub(crate) society: SocietyId,
    pub(crate) expected: Seq,
    pub(crate) batch: Batch,
    pub(crate) answer: oneshot::Sender<Result<(), LogError>>,
}

/// The question for the last position, after everything that was queued before it.
pub(crate) struct Head {
    pub(crate) society: SocietyId,
    pub(crate) answer: oneshot::Sender<Result<Seq, LogError>>,
}

/// What is known of a society.
pub(super) struct Known {
    id: i64,
    /// The epoch that it had. Of a society that this log has claimed, the claim has it.
    epoch: i64,
    /// The name in the checksums of its events.
    first_name: SocietyId,
    /// Threads that have events, and their keys.
    threads: FxHashMap<ThreadId, Uuid>,
}

pub(crate) struct Writer {
    connector: Arc<Connector>,
    pub(crate) node: String,
    pub(crate) claims: Arc<Claims>,
    connection: Option<Connection>,
    known: FxHashMap<SocietyId, Known>,
    cached_threads: usize,
    /// Societies with an append whose outcome is unknown, and the id and epoch that it had.
    unsettled: FxHashMap<SocietyId, (i64, i64)>,
    /// The names in forks whose outcome is unknown.
    pub(crate) unsettled_forks: Vec<SocietyId>,
}

impl Writer {
    pub(crate) fn new(connector: Arc<Connector>, connection: Connection, node: String, claims: Arc<Claims>) -> Self {
        Self {
            connector,
            node,
            claims,
            connection: Some(connection),
            known: FxHashMap::default(),
            cached_threads: 0,
            unsettled: FxHashMap::default(),
            unsettled_forks: Vec::new(),
        }
    }

    /// Works until nobody can queue anything any more.
    pub(crate) async fn run(mut self, mut jobs: mpsc::Receiver<(Job, Space)>) {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(job) = jobs.recv().await else { return };
                waiting.push_back(job);
            }
            while waiting.len() < GROUP_JOBS
                && let Ok(job) = jobs.try_recv()
            {
                waiting.push_back(job);
            }
            match waiting.pop_front() {
                Some((Job::Fork(fork, first, answer), _space)) => {
                    // A caller that went away does not need the answer.
                    let _ = answer.send(self.fork(&fork, &first).await);
                }
                Some(first) => {
                    waiting.push_front(first);
                    let group = Group::take(&mut waiting);
                    self.write(group).await;
                }
                None => {}
            }
        }
    }

    /// Writes a group and answers.
    async fn write(&mut self, mut group: Group) {
        match self.try_write(&group).await {
            Ok(done) => {
                for (run, outcome) in mem::take(&mut group.runs).into_iter().zip(done.outcomes) {
                    run.answer(&outcome);
                }
                for (head, found) in group.heads.into_iter().zip(done.heads) {
                    let _ = head.answer.send(Ok(found));
                }
            }
            Err(error) => {
                // Whatever is wrong with it, a new connection is not.
                self.connection = None;
                group.runs.into_iter().for_each(|run| run.answer(&Err(error.again())));
                group.heads.into_iter().for_each(|head| drop(head.answer.send(Err(error.again()))));
            }
        }
    }

    async fn try_write(&mut self, group: &Group) -> Result<Done, LogError> {
        self.connect().await?;
        self.forget_much();
        self.settle(group.societies()).await?;
        let heads: FxHashSet<&SocietyId> = group.heads.iter().map(|head| &head.society).collect();
        let new: Vec<&SocietyId> = group
            .runs
            .iter()
            .filter(|run| run.expected == Seq(0))
            .map(|run| &run.society)
            .filter(|run| !self.knows(run))
            .collect();
        if !new.is_empty() {
            self.connection()?.query(sql::ENSURE, &[names(new.into_iter())]).await?;
        }
        let unknown = group.runs.iter().map(|run| &run.society).filter(|society| !self.knows(society));
        let found = self.look(unknown.chain(heads).cloned().collect()).await?;
        let heads = group.heads.iter().map(|head| found.get(&head.society).map_or(Seq(0), |found| found.head)).collect();
        let mut outcomes: Vec<_> = group.runs.iter().map(|_| Ok(())).collect();
        let mut left: Vec<usize> = Vec::new();
        for (n, run) in group.runs.iter().enumerate() {
            match self.knows(&run.society) {
                true => left.push(n),
                false => outcomes[n] = Err(run.conflict(Seq(0))),
            }
        }
        for _ in 0..TRIES {
            if left.is_empty() {
                return Ok(Done { outcomes, heads });
            }
            let refused = self.append(group, &left).await?;
            left.clear();
            let found = self.look(refused.iter().map(|n| group.runs[*n].society.clone()).collect()).await?;
            for n in refused {
                match self.why_refused(&group.runs[n], &found) {
                    Some(error) => outcomes[n] = Err(error),
                    None => left.push(n),
                }
            }
        }
        Err(LogError::Failed("other owners write to the same societies all the time".into()))
    }

    /// Appends these runs of a group; gives those that were refused.
    async fn append(&mut self, group: &Group, runs: &[usize]) -> Result<Vec<usize>, LogError> {
        let mut columns = Columns::default();
        let mut begun: Vec<(usize, ThreadId, Uuid)> = Vec::new();
        let mut ids = Vec::new();
        for n in runs {
            let run = &group.runs[*n];
            let known = &self.known[&run.society];
            let claim = self.claims.epoch(&run.society);
            let epoch = claim.unwrap_or(known.epoch);
            columns.add_society(known.id, run, epoch, claim.is_some());
            columns.add_events(known, run, |thread, key| begun.push((*n, thread, key)));
            ids.push((known.id, epoch));
        }
        for (n, of) in runs.iter().zip(&ids) {
            self.unsettled.insert(group.runs[*n].society.clone(), *of);
        }
        let node = self.node.clone();
        let params = columns.into_params(node);
        let connection = self.connection()?;
        connection.forget_warnings();
        let (append, mut tries) = (sql::append(), 0);
        let moved = loop {
            tries += 1;
            let sent = connection.within(async { Ok(connection.raw_query(append, &params).await) }).await?;
            match sent {
                Err(error) if tries < TRIES && is_rolled_back(&error) => {}
                sent => break sent.map_err(from_postgres)?,
            }
        };
        if connection.has_warned() {
            return Err(LogError::Failed("the database warned while it committed, so the commit may not be safe".into()));
        }
        let moved: FxHashSet<i64> = match moved.first() {
            Some(row) => column::<Vec<i64>>(row, 0)?.into_iter().collect(),
            None => FxHashSet::default(),
        };
        for (n, thread, key) in begun {
            let known = self.known.get_mut(&group.runs[n].society).expect("it was looked up before");
            if moved.contains(&known.id) && known.threads.insert(thread, key).is_none() {
                self.cached_threads += 1;
            }
        }
        let mut refused = Vec::new();
        for (n, (id, _)) in runs.iter().zip(ids) {
            self.unsettled.remove(&group.runs[*n].society);
            if !moved.contains(&id) {
                refused.push(*n);
            }
        }
        Ok(refused)
    }

    /// Why a run was refused; none if it is to be tried again.
    fn why_refused(&self, run: &Run, found: &FxHashMap<SocietyId, Found>) -> Option<LogError> {
        let Some(found) = found.get(&run.society) else { return Some(run.conflict(Seq(0))) };
        if found.head != run.expected {
            return Some(run.conflict(found.head));
        }
        let is_ours = found.owner.as_deref() == Some(self.node.as_str());
        match self.claims.epoch(&run.society) {
            Some(_) if !is_ours => Some(run.conflict(found.head)),
            Some(_) if !found.is_leased => {
                let society = &run.society;
                Some(LogError::Failed(format!("the lease on `{society}` has ended and was not renewed").into()))
            }
            None if found.owner.is_some() => Some(run.conflict(found.head)),
            // Only the epoch was another one: a check of what became of an append has raised it.
            _ => None,
        }
    }

    /// Makes sure that statements whose outcome is unknown have one. See the documentation of the crate.
    pub(super) async fn settle(&mut self, societies: impl Iterator<Item = &SocietyId>) -> Result<(), LogError> {
        if !self.unsettled_forks.is_empty() {
            let forked = self.unsettled_forks.clone();
            let connection = self.connection()?;
            connection.query(sql::ENSURE, &[names(forked.iter())]).await?;
            connection.query(sql::LOCK, &[names(forked.iter())]).await?;
            self.unsettled_forks.clear();
        }
        let unsettled: Vec<_> =
            societies.filter_map(|society| Some((society.clone(), *self.unsettled.get(society)?))).collect();
        if unsettled.is_empty() {
            return Ok(());
        }
        let (ids, epochs): (Vec<i64>, Vec<i64>) = unsettled.iter().map(|(_, of)| *of).unzip();
        let params = [param(ids, Type::INT8_ARRAY), param(epochs, Type::INT8_ARRAY)];
        self.connection()?.query(sql::SETTLE, &params).await?;
        for (society, _) in unsettled {
            self.unsettled.remove(&society);
            self.forget(&society);
        }
        Ok(())
    }

    /// Looks societies up and remembers them.
    async fn look(&mut self, societies: FxHashSet<SocietyId>) -> Result<FxHashMap<SocietyId, Found>, LogError> {
        let mut looked = FxHashMap::default();
        if societies.is_empty() {
            return Ok(looked);
        }
        for row in self.connection()?.query(sql::LOOK, &[names(societies.iter())]).await? {
            let (society, found) = Found::of(&row)?;
            if found.owner.as_deref() == Some(self.node.as_str()) {
                self.claims.raise(&society, found.epoch);
            }
            let known = self.known.get_mut(&society).filter(|known| known.id == found.id);
            match known {
                Some(known) => known.epoch = found.epoch,
                None => {
                    let first_name = name(column(&row, 2)?)?.into();
                    let known = Known { id: found.id, epoch: found.epoch, first_name, threads: FxHashMap::default() };
                    self.forget(&society);
                    self.known.insert(society.clone(), known);
                }
            }
            looked.insert(society, found);
        }
        for society in societies.iter().filter(|society| !looked.contains_key(society)) {
            self.forget(society);
        }
        Ok(looked)
    }

    /// Connects, if there is no connection any more. What was known may not hold then: after a failover that lost something, threads
    /// may not be there that were.
    pub(super) async fn connect(&mut self) -> Result<(), LogError> {
        if self.connection.as_ref().is_none_or(Connection::is_closed) {
            self.connection = None;
            self.forget_everything();
            self.connection = Some(self.connector.connect().await?);
        }
        Ok(())
    }

    pub(super) fn connection(&mut self) -> Result<&mut Connection, LogError> {
        self.connection.as_mut().ok_or_else(|| LogError::Failed("there is no connection to the database".into()))
    }

    /// Uses another connection from now on.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    fn knows(&self, society: &SocietyId) -> bool {
        self.known.contains_key(society)
    }

    pub(super) fn forget(&mut self, society: &SocietyId) {
        if let Some(known) = self.known.remove(society) {
            self.cached_threads -= known.threads.len();
        }
    }

    fn forget_much(&mut self) {
        if self.known.len() > MAX_CACHED || self.cached_threads > MAX_CACHED {
            self.forget_everything();
        }
    }

    fn forget_everything(&mut self) {
        self.known.clear();
        self.cached_threads = 0;
    }
}

/// What became of a group.
struct Done {
    outcomes: Vec<Result<(), LogError>>,
    heads: Vec<Seq>,
}

/// What is written together.
#[derive(Default)]
struct Group {
    runs: Vec<Run>,
    heads: Vec<Head>,
}

/// Appends of one society that follow each other.
struct Run {
    society: SocietyId,
    expected: Seq,
    end: Seq,
    appends: Vec<Append>,
    /// The space of the appends in the queue.
    _space: Vec<Space>,
}

impl Group {
    /// Takes what can be written together from the front of what waits.
    fn take(waiting: &mut VecDeque<(Job, Space)>) -> Self {
        let mut group = Self::default();
        let mut places: FxHashMap<SocietyId, usize> = FxHashMap::default();
        let mut held: FxHashSet<SocietyId> = FxHashSet::default();
        let mut left = Vec::new();
        let (mut jobs, mut bytes) = (0, 0);
        while let Some((job, space)) = waiting.pop_front() {
            match job {
                Job::Append(append) if !held.contains(&append.society) => {
                    let size = append.batch.bodies.len();
                    let is_next = places.get(&append.society).is_none_or(|n| group.runs[*n].end == append.expected);
                    if !is_next || jobs > 0 && bytes + size > GROUP_BYTES {
                        held.insert(append.society.clone());
                        left.push((Job::Append(append), space));
                        continue;
                    }
                    (jobs, bytes) = (jobs + 1, bytes + size);
                    let place = *places.entry(append.society.clone()).or_insert_with(|| {
                        group.runs.push(Run::new(&append));
                        group.runs.len() - 1
                    });
                    group.runs[place].add(append, space);
                }
                Job::Head(head) if !held.contains(&head.society) && !places.contains_key(&head.society) => {
                    group.heads.push(head);
                }
                Job::Fork(..) => {
                    left.push((job, space));
                    break;
                }
                Job::Append(Append { ref society, .. }) | Job::Head(Head { ref society, .. }) => {
                    held.insert(society.clone());
                    left.push((job, space));
                }
            }
        }
        left.into_iter().rev().for_each(|job| waiting.push_front(job));
        group
    }

    fn societies(&self) -> impl Iterator<Item = &SocietyId> {
        self.runs.iter().map(|run| &run.society).chain(self.heads.iter().map(|head| &head.society))
    }
}

impl Run {
    fn new(first: &Append) -> Self {
        let (society, expected) = (first.society.clone(), first.expected);
        Self { society, expected, end: expected, appends: Vec::new(), _space: Vec::new() }
    }

    fn add(&mut self, append: Append, space: Space) {
        self.end = Seq(append.expected.0 + append.batch.rows.len() as u64);
        self.appends.push(append);
        self._space.push(space);
    }

    fn conflict(&self, actual: Seq) -> LogError {
        LogError::Conflict { society: self.society.clone(), expected: self.expected, actual }
    }

    fn answer(self, outcome: &Result<(), LogError>) {
        for append in self.appends {
            let answer = match outcome {
                Ok(()) => Ok(()),
                Err(LogError::Conflict { society, actual, .. }) => {
                    Err(LogError::Conflict { society: society.clone(), expected: append.expected, actual: *actual })
                }
                Err(error) => Err(error.again()),
            };
            // A caller that went away does not need the answer.
            let _ = append.answer.send(answer);
        }
    }
}

/// Where a society stands.
struct Found {
    id: i64,
    head: Seq,
    epoch: i64,
    owner: Option<String>,
    is_leased: bool,
}

impl Found {
    fn of(row: &Row) -> Result<(SocietyId, Self), LogError> {
        let found = Self {
            id: column(row, 0)?,
            head: seq(column(row, 3)?),
            epoch: column(row, 4)?,
            owner: column(row, 5)?,
            is_leased: column(row, 6)?,
        };
        Ok((name(column(row, 1)?)?.into(), found))
    }
}

/// The parameters of [`sql::append`], column by column.
#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    expected: Vec<i64>,
    ends: Vec<i64>,
    epochs: Vec<i64>,
    claimed: Vec<bool>,
    events: EventColumns,
    threads: ThreadColumns,
}

#[derive(Default)]
struct EventColumns {
    societies: Vec<i64>,
    seqs: Vec<i64>,
    times: Vec<i64>,
    threads: Vec<Option<Uuid>>,
    versions: Vec<i32>,
    crcs: Vec<i32>,
    bodies: Vec<Vec<u8>>,
}

#[derive(Default)]
struct ThreadColumns {
    societies: Vec<i64>,
    threads: Vec<Uuid>,
    firsts: Vec<i64>,
    names: Vec<Vec<u8>>,
}

impl Columns {
    fn add_society(&mut self, id: i64, run: &Run, epoch: i64, is_claimed: bool) {
        self.ids.push(id);
        self.expected.push(run.expected.0 as i64);
        self.ends.push(run.end.0 as i64);
        self.epochs.push(epoch);
        self.claimed.push(is_claimed);
    }

    /// Adds the events of a run, and its threads that are not known.
    fn add_events(&mut self, known: &Known, run: &Run, mut begins: impl FnMut(ThreadId, Uuid)) {
        let mut new: FxHashMap<&ThreadId, Uuid> = FxHashMap::default();
        for append in &run.appends {
            let renamed =
                (known.first_name != run.society).then(|| append.batch.with_checksum_name(&known.first_name, append.expected));
            let crcs = renamed.as_ref().unwrap_or(&append.batch).rows.iter().map(|row| row.crc);
            let mut seq = append.expected;
            for (row, crc) in append.batch.rows.iter().zip(crcs) {
                seq = seq.next();
                let thread = row.thread.as_ref().map(|thread| {
                    let key = known.threads.get(thread).or_else(|| new.get(thread)).copied();
                    key.unwrap_or_else(|| {
                        let key = key_of(thread);
                        new.insert(thread, key);
                        self.threads.add(known.id, thread, key, seq);
                        begins(thread.clone(), key);
                        key
                    })
                });
                let events = &mut self.events;
                events.societies.push(known.id);
                events.seqs.push(seq.0 as i64);
                events.times.push(row.at.0 as i64);
                events.threads.push(thread);
                events.versions.push(row.version as i32);
                events.crcs.push(crc as i32);
                events.bodies.push(body::pack(&append.batch.bodies[row.body.clone()]).into_owned());
            }
        }
    }

    fn into_params(self, node: String) -> [Param; 17] {
        let Self { ids, expected, ends, epochs, claimed, events, threads } = self;
        [
            param(ids, Type::INT8_ARRAY),
            param(expected, Type::INT8_ARRAY),
            param(ends, Type::INT8_ARRAY),
            param(epochs, Type::INT8_ARRAY),
            param(claimed, Type::BOOL_ARRAY),
            param(node, Type::TEXT),
            param(events.societies, Type::INT8_ARRAY),
            param(events.seqs, Type::INT8_ARRAY),
            param(events.times, Type::INT8_ARRAY),
            param(events.threads, Type::UUID_ARRAY),
            param(events.versions, Type::INT4_ARRAY),
            param(events.crcs, Type::INT4_ARRAY),
            param(events.bodies, Type::BYTEA_ARRAY),
            param(threads.societies, Type::INT8_ARRAY),
            param(threads.threads, Type::UUID_ARRAY),
            param(threads.firsts, Type::INT8_ARRAY),
            param(threads.names, Type::BYTEA_ARRAY),
        ]
    }
}

impl ThreadColumns {
    fn add(&mut self, society: i64, thread: &ThreadId, key: Uuid, first: Seq) {
        self.societies.push(society);
        self.threads.push(key);
        self.firsts.push(first.0 as i64);
        self.names.push(thread.as_str().as_bytes().to_vec());
    }
}

fn key_of(thread: &ThreadId) -> Uuid {
    key(thread.as_str())
}

/// Names of societies as one parameter.
pub(super) fn names<'names>(societies: impl Iterator<Item = &'names SocietyId>) -> Param {
    let names: Vec<_> = societies.map(|society| society.as_str().as_bytes().to_vec()).collect();
    param(names, Type::BYTEA_ARRAY)
}
