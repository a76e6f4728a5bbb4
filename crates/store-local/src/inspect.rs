//! Looks through a data directory, also one that another process has open, or through a backup. It changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polis_domain::{ArtifactId, MemoryTextId, Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Hasher, LogError};
use polis_stored_event::moving::{Chain, MovedSociety};
use rusqlite::Connection;

use crate::artifacts::stored_files;
use crate::backup::BackupError;
use crate::error::{from_io, from_sqlite};
use crate::extent::{Extent, SocietyStart, societies};
use crate::keys::ThreadNames;
use crate::reader::Reader;
use crate::row::{self, StoredEvent, damaged};
use crate::{backup_file, check, damage, last_ack, memory_texts, plain_file, redaction, schema, segment};

/// How many events are checked in one read, so that a running writer is not held up.
const CHUNK: usize = 500;

/// The chain after further events: those of the society after the first position up to the second. Each is verified and passed to
/// `each`.
pub(crate) fn extended(
    mut chain: Chain,
    connection: &Connection,
    names: &mut ThreadNames,
    (key, society): (i64, &SocietyId),
    range: (Seq, Seq),
    mut each: impl FnMut(&StoredEvent<'_>, Option<&ThreadId>) -> Result<(), LogError>,
) -> Result<Chain, LogError> {
    walk(connection, names, (key, society), range, |stored, thread| {
        chain.add(stored, society, thread);
        each(stored, thread)
    })?;
    Ok(chain)
}

/// The chain over all events as backups of versions 1 and 2 have it: over the bodies themselves.
fn chain_of_bodies(
    connection: &Connection,
    names: &mut ThreadNames,
    (key, society): (i64, &SocietyId),
    range: (Seq, Seq),
) -> Result<Chain, LogError> {
    let mut chain = Chain::default();
    walk(connection, names, (key, society), range, |stored, thread| {
        chain.add_bytes(|hasher| stored.feed(society, thread, |bytes| hasher.update(bytes)));
        Ok(())
    })?;
    Ok(chain)
}

/// Passes the events of a society after a position up to another to `take`, each verified.
pub(crate) fn walk(
    connection: &Connection,
    names: &mut ThreadNames,
    (key, society): (i64, &SocietyId),
    (after, through): (Seq, Seq),
    mut take: impl FnMut(&StoredEvent<'_>, Option<&ThreadId>) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let mut last = after;
    while last < through {
        let before = last;
        segment::each_of_log(connection, (row::id(key, last), row::id(key, through)), CHUNK, |stored, thread| {
            if stored.seq != last.next() {
                return Err(damaged(society, last.next(), "it is missing"));
            }
            last = stored.seq;
            let thread = thread.map(|thread| names.get(connection, thread)).transpose()?;
            stored.verify(society, thread.as_ref())?;
            take(&stored, thread.as_ref())
        })?;
        if last == before {
            return Err(damaged(society, last.next(), "it is missing"));
        }
    }
    Ok(())
}

/// How far a backup has a society.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) seq: Seq,
    pub(crate) chain: Chain,
}

impl Head {
    /// All heads of a backup, by the keys of the societies.
    pub(crate) fn all(backup: &Connection) -> Result<BTreeMap<i64, Self>, LogError> {
        let read = || {
            let mut statement = backup.prepare("SELECT society, seq, chain FROM heads")?;
            let rows = statement.query_map([], |row| {
                let chain = Chain(row.get(2)?);
                Ok((row.get(0)?, Self { seq: Seq(row.get::<_, i64>(1)? as u64), chain }))
            })?;
            rows.collect::<Result<_, _>>()
        };
        read().map_err(from_sqlite)
    }
}

/// A society as an inspection found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedSociety {
    /// Its present name.
    pub name: SocietyId,
    /// Its last event.
    pub head: Seq,
    /// The hash over its own events, in hexadecimal digits. Two copies with the same hash have the same history.
    pub chain: String,
    /// Its own events whose content was erased.
    pub redacted: Vec<Seq>,
}

/// A data directory or a backup that is being looked through.
pub struct Inspection {
    source: Source,
    /// The texts of memories that were there before the heads were noted. One that is erased meanwhile is named by these heads.
    texts_before: Vec<MemoryTextId>,
    reader: Reader,
    societies: BTreeMap<i64, (SocietyStart, SocietyId, Seq)>,
}

enum Source {
    Data(PathBuf),
    Backup,
}

impl Inspection {
    /// Begins with the data directory or the backup at `path`. What is added later is no part of it.
    ///
    /// # Errors
    ///
    /// [`BackupError`] if it can be neither, or if it is too new.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        if !path.is_dir() {
            let connection = backup_file::open_to_read(path)?;
            return Self::of(Source::Backup, Vec::new(), connection);
        }
        plain_file::check_directory(path)?;
        schema::refuse_newer_file(path)?;
        memory_texts::refuse_newer(path)?;
        damage::refuse_marker(path)?;
        if !path.join(schema::FILE).exists() {
            return Err(LogError::Failed(format!("there is no society in `{}`", path.display()).into()).into());
        }
        let texts_before = texts_of(path)?;
        Self::of(Source::Data(path.to_owned()), texts_before, schema::connect_to_read(path)?)
    }

    fn of(source: Source, texts_before: Vec<MemoryTextId>, connection: Connection) -> Result<Self, BackupError> {
        let (starts, heads) = match &source {
            Source::Data(_) => {
                connection.execute_batch("BEGIN").map_err(from_sqlite)?;
                let extent = Extent::of(&connection, schema::version(&connection)?)?;
                connection.execute_batch("COMMIT").map_err(from_sqlite)?;
                (extent.societies, extent.heads.into_iter().collect::<BTreeMap<_, _>>())
            }
            Source::Backup => {
                let heads = Head::all(&connection)?.into_iter().map(|(key, head)| (key, head.seq)).collect();
                (societies(&connection, schema::TABLES_VERSION << 16)?, heads)
            }
        };
        let mut found = BTreeMap::new();
        for (key, start) in starts {
            let name = connection.query_row("SELECT name FROM societies WHERE key = ?1", [key], |row| row.get::<_, String>(0));
            let head = heads.get(&key).copied().unwrap_or(start.after);
            found.insert(key, (start, SocietyId::from(name.map_err(from_sqlite)?), head));
        }
        Ok(Self { source, texts_before, reader: Reader::on(connection), societies: found })
    }

    /// The societies, to be moved.
    pub(crate) fn moved(&self) -> Vec<MovedSociety> {
        let moved = |(key, (start, name, head)): (&i64, &(SocietyStart, SocietyId, Seq))| MovedSociety {
            key: *key,
            name: name.clone(),
            checksum_name: start.checksum_name.clone(),
            parent: start.parent,
            after: start.after,
            head: *head,
        };
        self.societies.iter().map(moved).collect()
    }

    pub(crate) fn connection(&self) -> Result<&Connection, LogError> {
        self.reader.connection()
    }

    /// When a backup was made, in milliseconds since 1970; none for a data directory.
    pub fn made_at(&self) -> Result<Option<u64>, BackupError> {
        match self.source {
            Source::Data(_) => Ok(None),
            Source::Backup => Ok(backup_file::made_at(self.reader.connection()?)?),
        }
    }

    /// Verifies every event and the hash chain of each society, that nothing that was acknowledged is missing, and that forks have
    /// what they share.
    pub fn check_events(&self) -> Result<Vec<InspectedSociety>, BackupError> {
        let connection = self.reader.connection()?;
        if let Source::Data(dir) = &self.source {
            // A commit is in the database before the file names it, so this file is never ahead of what is read after it.
            if let Some(last) = last_ack::read(dir).last {
                check::acknowledged(connection, last)?;
            }
        }
        check::structure(connection)?;
        let expected = match self.source {
            Source::Data(_) => None,
            Source::Backup => Some(Head::all(connection)?),
        };
        let mut names = ThreadNames::default();
        let mut checked = Vec::new();
        for (key, (start, name, head)) in &self.societies {
            if let Some(parent) = start.parent {
                let is_there = self.societies.get(&parent).is_some_and(|(_, _, end)| *end >= start.after) && parent < *key;
                if !is_there {
                    return Err(damaged(name, start.after, "it belongs to a society that is not there").into());
                }
            }
            let range = (start.after, *head);
            let society = (*key, &start.checksum_name);
            let mut redacted = Vec::new();
            let chain = extended(Chain::default(), connection, &mut names, society, range, |stored, _| {
                if stored.original.is_some() {
                    redacted.push(stored.seq);
                }
                Ok(())
            })?;
            let of_backup = match expected.is_some() && backup_file::has_chains_of_bodies(connection)? {
                true => chain_of_bodies(connection, &mut names, society, range)?,
                false => chain,
            };
            if expected.as_ref().is_some_and(|heads| heads.get(key).map(|head| head.chain) != Some(of_backup)) {
                let message = format!("the events of `{name}` are not those that were backed up: their hash chain differs");
                return Err(BackupError::Damaged(message));
            }
            if expected.is_none() {
                redaction::check_listed(connection, *key, name, &redacted)?;
            }
            checked.push(InspectedSociety { name: name.clone(), head: *head, chain: chain.to_hex(), redacted });
        }
        Ok(checked)
    }

    /// The events of a society after a position, those that a fork shares included.
    pub fn read(&mut self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, BackupError> {
        let head = self.societies.values().find(|(_, name, _)| name == society).map_or(Seq(0), |(.., head)| *head);
        let left = usize::try_from(head.0.saturating_sub(after.0)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(Vec::new());
        }
        Ok(self.reader.read(society, after, limit.min(left))?)
    }

    /// The society that an event of a society belongs to: the society itself, or one that it is a fork of.
    pub fn owner(&self, society: &SocietyId, seq: Seq) -> Option<&SocietyId> {
        let mut found = self.societies.values().find(|(_, name, _)| name == society)?;
        while seq <= found.0.after {
            found = self.societies.get(&found.0.parent?)?;
        }
        Some(&found.1)
    }

    /// The artifacts that are there, and whether each is what its name says.
    pub fn check_artifacts(&self) -> Result<BTreeMap<ArtifactId, bool>, BackupError> {
        let mut checked = BTreeMap::new();
        match &self.source {
            Source::Data(dir) => {
                for (id, path) in stored_files(dir).map_err(from_io)? {
                    let mut hasher = Hasher::default();
                    let mut file = match plain_file::open(&path) {
                        Ok(file) => file,
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                            checked.insert(id, false);
                            continue;
                        }
                        Err(error) => return Err(from_io(error).into()),
                    };
                    let mut buffer = vec![0; 256 << 10];
                    loop {
                        match std::io::Read::read(&mut file, &mut buffer).map_err(from_io)? {
                            0 => break,
                            read => hasher.update(&buffer[..read]),
                        }
                    }
                    checked.insert(id, hasher.id() == id);
                }
            }
            Source::Backup => {
                for id in backup_file::artifacts(self.reader.connection()?)? {
                    let mut hasher = Hasher::default();
                    each_part(self.reader.connection()?, id, |bytes| {
                        hasher.update(bytes);
                        Ok(())
                    })?;
                    checked.insert(id, hasher.id() == id);
                }
            }
        }
        Ok(checked)
    }

    /// The ids of the texts of memories that are there.
    pub fn memory_texts(&self) -> Result<Vec<MemoryTextId>, BackupError> {
        match &self.source {
            Source::Backup => Ok(text_ids(self.reader.connection()?).map_err(from_sqlite)?),
            Source::Data(dir) => {
                let mut texts = texts_of(dir)?;
                texts.extend_from_slice(&self.texts_before);
                texts.sort();
                texts.dedup();
                Ok(texts)
            }
        }
    }
}

/// The ids of the texts of memories of a data directory.
fn texts_of(dir: &Path) -> Result<Vec<MemoryTextId>, LogError> {
    match dir.join(memory_texts::FILE) {
        file if file.exists() => Connection::open(file).and_then(|connection| text_ids(&connection)).map_err(from_sqlite),
        _ => Ok(Vec::new()),
    }
}

fn text_ids(connection: &Connection) -> rusqlite::Result<Vec<MemoryTextId>> {
    let mut statement = connection.prepare("SELECT id FROM texts")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    rows.map(|id| Ok(MemoryTextId::from(id?))).collect()
}

/// Reads an artifact of a backup part by part.
pub(crate) fn each_part(
    connection: &Connection,
    id: ArtifactId,
    mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), BackupError> {
    let sql = "SELECT bytes FROM artifacts WHERE id = ?1 ORDER BY part";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let mut rows = statement.query([id.to_string()]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let bytes = row.get_ref(0).and_then(|value| Ok(value.as_blob()?)).map_err(from_sqlite)?;
        take(bytes).map_err(from_io)?;
    }
    Ok(())
}
