//! The log of one data directory: opening, the port, closing.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{IdleKey, Recorded, Seq, SocietyId, ThreadId, Timestamp};
use polis_ports::{
    Fork, ForkOrigin, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry, StoredSociety,
    ThreadListing, ThreadRange,
};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::background::{self, Background, Progress};
use crate::error::from_io;
use crate::health::Health;
use crate::last_ack::{self, LastAck, LastAckFile, StoredSums};
use crate::lock::Lock;
use crate::options::Options;
use crate::queue::{Queue, stopped};
use crate::reader::{Reader, Readers};
use crate::row::encode;
use crate::snapshot::{FoundEntries, Snapshots};
use crate::sums::{self, Sums};
use crate::writer::{Job, Work, Writer, empty_wal};
use crate::{check, damage, lineage, memory_texts, plain_file, redaction, schema};

/// The log in a local directory.
///
/// Dropping it finishes queued writes, moves everything into `polis.db`, and releases the lock.
pub struct LocalLog {
    snapshots: Arc<Snapshots>,
    queue: Arc<Queue<Job>>,
    health: Arc<Health>,
    readers: Option<Readers>,
    background: Option<Background>,
    progress: watch::Receiver<Progress>,
    writer: Option<JoinHandle<()>>,
    lock: Lock,
}

impl LocalLog {
    /// Opens the log in `dir`, which is created if it is missing. Blocks while it checks.
    ///
    /// # Errors
    ///
    /// [`LogError::Locked`] when another process has it open, [`LogError::TooNew`] when a newer version wrote it (nothing is
    /// changed), [`LogError::Damaged`] when the history is incomplete (it is moved aside, and the directory is refused until
    /// a person deletes the file `DAMAGED`).
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        Self::open_with(dir, Options::default())
    }

    /// The same with options.
    pub fn open_with(dir: &Path, options: Options) -> Result<Self, LogError> {
        make_private(dir).map_err(from_io)?;
        plain_file::check_directory(dir)?;
        let lock = Lock::take(dir)?;
        damage::refuse_marked(dir)?;
        let last_ack = last_ack::read(dir);
        let opened = match open_checked(dir, last_ack, options) {
            Err(LogError::Damaged(what)) => return Err(damage::set_aside(dir, &what)),
            other => other?,
        };
        let CheckedDatabase { connection, sums, is_checked } = opened;
        let snapshots = Arc::new(Snapshots::new(dir));
        snapshots.sweep();
        let last_ack_file = LastAckFile::begin(dir, last_ack).map_err(from_io)?;
        damage::sync_dir(dir).map_err(from_io)?;

        let queue = Arc::new(Queue::new());
        let health = Arc::new(Health::default());
        let readers = Readers::start(dir, &health)?;
        let (background, progress) = if is_checked {
            (None, background::sound())
        } else {
            let version = schema::version(&connection)?;
            let (background, progress) = Background::start(dir, &connection, version, sums, &health)?;
            (Some(background), progress)
        };
        let writer = Writer::new(dir.to_owned(), options, queue.clone(), health.clone(), last_ack_file, connection, sums)?;
        let writer = thread::Builder::new().name("polis-writer".to_owned()).spawn(|| writer.run()).map_err(from_io)?;
        let (readers, writer) = (Some(readers), Some(writer));
        Ok(Self { snapshots, queue, health, readers, background, progress, writer, lock })
    }

    /// Writes into the lock file who has the directory open, for [`read_note`](crate::read_note). An empty note clears it.
    pub fn write_note(&self, note: &str) -> io::Result<()> {
        self.lock.write_note(note)
    }

    /// Waits until everything that existed at the opening is checked. Returns at once if that was done during the opening.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] when something is not as it was written. Nothing more is appended then.
    pub async fn checked(&self) -> Result<(), LogError> {
        background::reached(self.progress.clone(), Progress::Sound).await
    }

    /// Seals events that are older than `before`: packs them together, in steps between other commits. They are read as before, and
    /// take a quarter of the room or less. The newest event of each society stays as it is. Returns how many were sealed.
    ///
    /// # Errors
    ///
    /// [`LogError`]; what was sealed until then stays so.
    pub async fn seal(&self, before: Timestamp) -> Result<u64, LogError> {
        // The check of what there was at the opening walks over the rows.
        self.checked().await?;
        let mut total = 0;
        loop {
            let count = Arc::new(AtomicU64::new(0));
            self.write(Work::Seal { before, count: count.clone() }, 0).await?;
            match count.load(Ordering::Acquire) {
                0 => return Ok(total),
                sealed => total += sealed,
            }
        }
    }

    /// Gives free pages of `polis.db` back to the file system, in steps between other commits. Returns how many bytes that were. A
    /// database of an older Polis keeps its free pages and uses them again.
    ///
    /// # Errors
    ///
    /// [`LogError`]; what was given back until then stays so.
    pub async fn vacuum(&self) -> Result<u64, LogError> {
        let free = |reader: &mut Reader| schema::free_bytes(reader.connection()?);
        let before = self.readers()?.run(free).await?;
        let mut left = before;
        while left > 0 {
            self.write(Work::Vacuum, 0).await?;
            let now = self.readers()?.run(free).await?;
            if now >= left {
                break;
            }
            left = now;
        }
        Ok(before.saturating_sub(left))
    }

    async fn write(&self, work: Work, bytes: usize) -> Result<(), LogError> {
        let (answer, answered) = oneshot::channel();
        self.queue.push(Job { work, answer }, bytes).await?;
        answered.await.map_err(|_| stopped())?
    }

    fn readers(&self) -> Result<&Readers, LogError> {
        self.readers.as_ref().ok_or_else(stopped)
    }
}

impl Drop for LocalLog {
    fn drop(&mut self) {
        // Readers first: the writer's last checkpoint needs the database to itself.
        self.readers = None;
        self.background = None;
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has acknowledged nothing that is not on the disk; the next opening checks everything.
            let _ = writer.join();
        }
        let _ = self.lock.write_note("");
    }
}

#[async_trait]
impl Log for LocalLog {
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        let batch = encode(society, expected, events)?;
        let bytes = batch.bodies.len();
        self.write(Work::Append { society: society.clone(), expected, batch }, bytes).await
    }

    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        // After a failed append the caller needs a definite answer, so the doubt is settled first.
        if self.health.unsettled.load(Ordering::Acquire) {
            self.write(Work::Settle, 0).await?;
        }
        let society = society.clone();
        self.readers()?.run(move |reader| reader.head(&society)).await
    }

    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        let society = society.clone();
        self.readers()?.run(move |reader| reader.head(&society)).await
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let society = society.clone();
        self.readers()?.run(move |reader| reader.read(&society, after, limit)).await
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        background::reached(self.progress.clone(), Progress::Indexes).await?;
        let (society, thread) = (society.clone(), thread.clone());
        self.readers()?.run(move |reader| reader.read_thread(&society, &thread, range)).await
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        background::reached(self.progress.clone(), Progress::Indexes).await?;
        let (society, listing) = (society.clone(), listing.clone());
        self.readers()?.run(move |reader| reader.threads(&society, &listing)).await
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        let (snapshots, society) = (self.snapshots.clone(), society.clone());
        self.readers()?.run(move |reader| snapshots.load(&society, |seq| reader.event_crc(&society, seq))).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: NewSnapshot) -> Result<(), LogError> {
        let (snapshots, society) = (self.snapshots.clone(), society.clone());
        let save = move |reader: &mut Reader| {
            let event = reader.event_crc(&society, snapshot.seq)?;
            let event =
                event.ok_or_else(|| LogError::Failed("the log has no event that the snapshot could end with".into()))?;
            snapshots.save(&society, event, snapshot)
        };
        self.readers()?.run(save).await
    }

    async fn idle_entries(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
        let (snapshots, name, keys) = (self.snapshots.clone(), society.clone(), keys.to_vec());
        let is_checked = background::has_reached(&self.progress, Progress::Indexes);
        let find = move |reader: &mut Reader| {
            let mut found = snapshots.find(&name, at, &keys)?;
            if is_checked {
                snapshots.check_missing(reader, &name, at, &std::mem::take(&mut found.missing))?;
            }
            Ok(found)
        };
        let FoundEntries { entries, missing } = self.readers()?.run(find).await?;
        if !missing.is_empty() {
            background::reached(self.progress.clone(), Progress::Indexes).await?;
            let (snapshots, society) = (self.snapshots.clone(), society.clone());
            self.readers()?.run(move |reader| snapshots.check_missing(reader, &society, at, &missing)).await?;
        }
        Ok(entries)
    }

    async fn list_idle(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        let (snapshots, society, listing) = (self.snapshots.clone(), society.clone(), listing.clone());
        self.readers()?.run(move |_| snapshots.list(&society, &listing)).await
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        let society = society.clone();
        self.readers()?.run(move |reader| reader.whole(&society, through)).await
    }

    async fn fork(&self, fork: &Fork) -> Result<(), LogError> {
        let first = encode(&fork.to, fork.at, std::slice::from_ref(&fork.first))?;
        let bytes = first.bodies.len();
        let Fork { from, at, to, aside, .. } = fork.clone();
        self.write(Work::Fork { from, at, to, aside, first }, bytes).await
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.readers()?.run(|reader| reader.societies()).await
    }

    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        let listing = listing.clone();
        self.readers()?.run(move |reader| reader.list_societies(&listing)).await
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        let society = society.clone();
        self.readers()?.run(move |reader| reader.origin(&society)).await
    }

    async fn redact(&self, society: &SocietyId, events: &[Recorded]) -> Result<(), LogError> {
        let redactions = redaction::encode(events)?;
        self.write(Work::Redact { society: society.clone(), redactions }, 0).await
    }

    async fn forget_redacted(&self, society: &SocietyId) -> Result<(), LogError> {
        let (snapshots, society) = (self.snapshots.clone(), society.clone());
        let forget = move |reader: &mut Reader| snapshots.forget(&lineage::related(reader.connection()?, &society)?);
        self.readers()?.run(forget).await?;
        let mut tries = 0;
        loop {
            match self.write(Work::Forget, 0).await {
                Err(LogError::Failed(_)) if tries < MAX_TRIES => tries += 1,
                done => return done,
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
}

/// How often a reader may keep the WAL from being emptied, and how long to wait in between: a minute together.
const MAX_TRIES: u32 = 600;
const BETWEEN_TRIES: Duration = Duration::from_millis(80);

/// Opens the database if its history is complete. A damaged one is left exactly as it is.
fn open_checked(dir: &Path, last_ack: LastAck, options: Options) -> Result<CheckedDatabase, LogError> {
    schema::refuse_newer_file(dir)?;
    memory_texts::refuse_newer(dir)?;
    let bytes = size(&dir.join(schema::FILE)).map_err(from_io)?;
    if bytes == 0 {
        if let Some(last) = last_ack.last {
            return Err(check::lost(last));
        }
        if size(&dir.join(schema::WAL)).map_err(from_io)? > 0 {
            return Err(LogError::Damaged("polis.db is missing or empty, but its WAL is there".to_owned()));
        }
        schema::create(dir)?;
    }
    let connection = schema::connect_to_write(dir)?;
    let version = schema::version(&connection)?;
    match last_ack.last {
        Some(last) if version == 0 => return Err(check::lost(last)),
        None if version == 0 => return Err(schema::foreign()),
        Some(last) => check::acknowledged(&connection, last)?,
        None => {}
    }
    let trusted = last_ack.sums.filter(|_| last_ack.clean && bytes > options.check_up_to_bytes && schema::has_forks(version));
    let sums = match trusted {
        None => check::everything(&connection, version)?,
        Some(StoredSums { indexes, societies }) => {
            if sums::of_societies(&connection)? != societies {
                return Err(LogError::Damaged("the list of societies is not what was written".to_owned()));
            }
            indexes
        }
    };
    schema::update(&connection, version)?;
    // What a killed process left in the WAL may be only in the page cache: it is synced before anybody reads it.
    if size(&dir.join(schema::WAL)).map_err(from_io)? > 0 {
        empty_wal(&connection)?;
    }
    Ok(CheckedDatabase { connection, sums, is_checked: trusted.is_none() })
}

/// A database that passed its checks.
struct CheckedDatabase {
    connection: Connection,
    /// The checksums of its indexes.
    sums: Sums,
    /// Whether every event was checked.
    is_checked: bool,
}

fn size(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(file) => Ok(file.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)?;
    // An existing directory may be readable by others.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir)?.permissions().mode();
        if mode & 0o077 != 0 {
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}
