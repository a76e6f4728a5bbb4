//! The log of one data directory: opening, the port, closing.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Fork, ForkOrigin, Log, LogError, Snapshot, ThreadListing, ThreadRange};
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
use crate::snapshot::{self, SnapshotRow};
use crate::sums::{self, Sums};
use crate::writer::{Job, Work, Writer, empty_wal};
use crate::{check, damage, memory_texts, plain_file, schema};

/// The log in a local directory.
///
/// Dropping it finishes queued writes, moves everything into `polis.db`, and releases the lock.
pub struct LocalLog {
    dir: PathBuf,
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
        snapshot::sweep(dir, &connection)?;
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
        Ok(Self { dir: dir.to_owned(), queue, health, readers, background, progress, writer, lock })
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
        let (dir, society) = (self.dir.clone(), society.clone());
        let load = move |reader: &mut Reader| {
            let row = SnapshotRow::find(reader.connection()?, &society)?;
            Ok(row.and_then(|row| row.read_body(&dir, &society)))
        };
        self.readers()?.run(load).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: Snapshot) -> Result<(), LogError> {
        let (dir, name) = (self.dir.clone(), society.clone());
        let write_body = move |reader: &mut Reader| {
            let old = SnapshotRow::find(reader.connection()?, &name)?;
            let new = SnapshotRow::of(&snapshot);
            if old.is_some_and(|old| new == old || new.is_older_than(old)) {
                return Ok(None);
            }
            new.write_body(&dir, &name, &snapshot.body).map_err(from_io)?;
            Ok(Some((old, new)))
        };
        let Some((old, row)) = self.readers()?.run(write_body).await? else { return Ok(()) };
        self.write(Work::SaveSnapshot { society: society.clone(), row }, 0).await?;
        if let Some(old) = old {
            let (dir, society) = (self.dir.clone(), society.clone());
            let remove = move |_: &mut Reader| {
                old.remove_body(&dir, &society);
                Ok(())
            };
            self.readers()?.run(remove).await?;
        }
        Ok(())
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

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        let society = society.clone();
        self.readers()?.run(move |reader| reader.origin(&society)).await
    }
}

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
