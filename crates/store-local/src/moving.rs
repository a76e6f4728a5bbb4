//! A log on its way from or to a data directory, see `polis_stored_event::moving`.
//!
//! What comes is built in a folder below the data directory and gets its place, in one rename, when it is whole and checked. So one that
//! was stopped has left nothing, and the next one removes its folder.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polis_domain::{Seq, ThreadId};
use polis_ports::LogError;
use polis_stored_event::moving::{Chain, MOVED_TOGETHER, MovedEvent, MovedSociety};
use rusqlite::{Connection, params};

use crate::damage::sync_dir;
use crate::error::{from_io, from_sqlite};
use crate::inspect::{Inspection, walk};
use crate::keys::ThreadNames;
use crate::local_log::{LocalLog, make_private};
use crate::lock::DataDirectory;
use crate::snapshot::Snapshots;
use crate::writer::empty_wal;
use crate::{damage, last_ack, memory_texts, plain_file, row, schema};

/// Where a log is built.
const BUILDING: &str = "migrating";

/// The log of a data directory that is read to be moved. Nobody else has the directory open meanwhile.
pub struct LeavingLog {
    inspection: Inspection,
    names: ThreadNames,
    _directory: DataDirectory,
}

impl LeavingLog {
    /// Opens the log of a data directory and checks all of it. Blocks.
    ///
    /// # Errors
    ///
    /// [`LogError::Locked`] when it is open elsewhere, [`LogError::Damaged`] when it is not what was written.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        // The opening also finishes what a kill has left.
        drop(LocalLog::open(dir)?);
        let directory = DataDirectory::open(dir)?;
        let inspection = Inspection::open(dir).map_err(LogError::from)?;
        inspection.check_events().map_err(LogError::from)?;
        Ok(Self { inspection, names: ThreadNames::default(), _directory: directory })
    }

    /// Its societies.
    pub fn societies(&self) -> Vec<MovedSociety> {
        self.inspection.moved()
    }

    /// The next own events of a society after a position. Blocks.
    ///
    /// # Errors
    ///
    /// [`LogError`] if they cannot be read.
    pub fn events(&mut self, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
        let through = Seq(society.head.0.min(after.0.saturating_add(MOVED_TOGETHER as u64)));
        let mut found = Vec::new();
        let of = (society.key, &society.checksum_name);
        walk(self.inspection.connection()?, &mut self.names, of, (after, through), |stored, thread| {
            found.push(MovedEvent::of(stored, thread));
            Ok(())
        })?;
        Ok(found)
    }
}

/// A log that comes into a data directory.
pub struct ComingLog {
    dir: PathBuf,
    building: PathBuf,
    connection: Connection,
    /// The numbers of the societies here, by those where they come from.
    keys: HashMap<i64, i64>,
    threads: HashMap<(i64, ThreadId), i64>,
    _directory: DataDirectory,
}

impl ComingLog {
    /// Begins in a data directory without a log; other files stay. Blocks.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`] if it has a log, [`LogError::Locked`] when it is open elsewhere.
    pub fn begin(dir: &Path) -> Result<Self, LogError> {
        let directory = DataDirectory::open(dir)?;
        refuse_log(dir)?;
        let building = dir.join(BUILDING);
        remove(&building)?;
        make_private(&building).map_err(from_io)?;
        schema::create(&building)?;
        let connection = schema::connect_to_write(&building)?;
        connection.execute_batch("BEGIN").map_err(from_sqlite)?;
        let (keys, threads) = (HashMap::new(), HashMap::new());
        Ok(Self { dir: dir.to_owned(), building, connection, keys, threads, _directory: directory })
    }

    /// Adds a society. The one that it is a fork of has been added before.
    ///
    /// # Errors
    ///
    /// [`LogError`] if it cannot be written.
    pub fn society(&mut self, society: &MovedSociety) -> Result<(), LogError> {
        let key = self.keys.len() as i64 + 1;
        let parent = society.parent.map(|parent| self.key(parent)).transpose()?;
        let seal = (society.checksum_name != society.name).then(|| society.checksum_name.as_str());
        let at = society.parent.map(|_| society.after.0 as i64);
        let sql = "INSERT INTO societies (key, name, seal, parent, at) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.connection.execute(sql, params![key, society.name.as_str(), seal, parent, at]).map_err(from_sqlite)?;
        self.keys.insert(society.key, key);
        Ok(())
    }

    /// Adds the next own events of a society. Blocks.
    ///
    /// # Errors
    ///
    /// [`LogError`] if they cannot be written, or are not what was written elsewhere.
    pub fn events(&mut self, society: &MovedSociety, events: &[MovedEvent]) -> Result<(), LogError> {
        let key = self.key(society.key)?;
        for event in events {
            let stored = event.stored(society)?;
            let thread = event.thread.as_ref().map(|thread| self.thread(key, thread)).transpose()?;
            let id = row::id(key, event.seq);
            let add = || {
                let sql = "INSERT INTO events (id, at, thread, version, crc, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let values = params![id, event.at.0 as i64, thread, event.version, event.crc, stored.packed()];
                self.connection.prepare_cached(sql)?.execute(values)?;
                if stored.original.is_some() {
                    self.connection.prepare_cached("INSERT INTO redacted (id) VALUES (?1)")?.execute([id])?;
                }
                Ok(())
            };
            add().map_err(from_sqlite)?;
        }
        Ok(())
    }

    /// Where the log is built. The texts of memories that are put there get their place with the log.
    pub fn building(&self) -> &Path {
        &self.building
    }

    /// Checks everything and puts the log into its place. `chains` has the hash chain of each society, by its name. Blocks.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if what has come is not what was sent; nothing is there then.
    pub fn finish(self, chains: &HashMap<String, (Seq, Chain)>) -> Result<(), LogError> {
        self.connection.execute_batch("COMMIT").map_err(from_sqlite)?;
        empty_wal(&self.connection)?;
        drop(self.connection);
        // An opening checks everything, and a clean stop leaves everything in one file.
        drop(LocalLog::open(&self.building)?);
        let come = Inspection::open(&self.building).map_err(LogError::from)?.check_events().map_err(LogError::from)?;
        let is_sent = |name: &str, head: Seq, chain: &str| {
            chains.get(name).is_some_and(|(last, sent)| *last == head && sent.to_hex() == chain)
        };
        if come.len() != chains.len() || !come.iter().all(|it| is_sent(it.name.as_str(), it.head, &it.chain)) {
            return Err(LogError::Damaged("what has come is not what was sent".to_owned()));
        }
        sync_dir(&self.building).map_err(from_io)?;
        refuse_log(&self.dir)?;
        // It is of another log. Without it, the next opening checks everything.
        match fs::remove_file(self.dir.join(last_ack::FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(from_io(error)),
            _ => {}
        }
        // Those of an earlier log may have texts that were erased since.
        Snapshots::new(&self.dir).remove();
        // So may those of memories. A journal must not meet another database.
        for file in [memory_texts::JOURNAL, memory_texts::FILE] {
            match fs::remove_file(self.dir.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(from_io(error)),
                _ => {}
            }
        }
        let texts = self.building.join(memory_texts::FILE);
        if texts.exists() {
            fs::rename(texts, self.dir.join(memory_texts::FILE)).map_err(from_io)?;
        }
        fs::rename(self.building.join(schema::FILE), self.dir.join(schema::FILE)).map_err(from_io)?;
        sync_dir(&self.dir).map_err(from_io)?;
        remove(&self.building)
    }

    fn key(&self, key: i64) -> Result<i64, LogError> {
        self.keys.get(&key).copied().ok_or_else(|| LogError::Damaged(format!("society number {key} is missing")))
    }

    fn thread(&mut self, society: i64, thread: &ThreadId) -> Result<i64, LogError> {
        if let Some(key) = self.threads.get(&(society, thread.clone())) {
            return Ok(*key);
        }
        let add = || {
            let sql = "INSERT INTO threads (society, name) VALUES (?1, ?2)";
            self.connection.prepare_cached(sql)?.execute(params![society, thread.as_str()])?;
            Ok(self.connection.last_insert_rowid())
        };
        let key = add().map_err(from_sqlite)?;
        self.threads.insert((society, thread.clone()), key);
        Ok(key)
    }
}

/// Refuses a data directory that has a log.
fn refuse_log(dir: &Path) -> Result<(), LogError> {
    damage::refuse_marked(dir)?;
    match [schema::FILE, schema::WAL].iter().any(|file| dir.join(file).exists()) {
        true => Err(LogError::Failed(
            format!("`{}` has a log already; choose another directory, or move its {} away", dir.display(), schema::FILE)
                .into(),
        )),
        false => Ok(()),
    }
}

fn remove(building: &Path) -> Result<(), LogError> {
    plain_file::check(&building.join(schema::FILE)).map_err(from_io)?;
    match fs::remove_dir_all(building) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(from_io(error)),
        _ => Ok(()),
    }
}
