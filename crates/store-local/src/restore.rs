//! Makes a data directory of a backup. It is built and checked under another name, and gets its own when it is whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polis_domain::Seq;
use polis_ports::{Hasher, LogError};
use rusqlite::{Connection, params};

use crate::artifacts::path_of;
use crate::backup::{BackupError, SMALL_FILES, value};
use crate::backup_file::{self, in_use};
use crate::damage::sync_dir;
use crate::error::{from_io, from_sqlite};
use crate::inspect::{Head, InspectedSociety, Inspection, each_part};
use crate::local_log::{LocalLog, make_private};
use crate::writer::empty_wal;
use crate::{memory_texts, plain_file, row, schema};

/// Restores the backup in `file` to `data`, which must not exist or be empty. A link is followed. Blocks.
///
/// # Errors
///
/// [`BackupError`]; `data` is then as it was before.
pub fn restore(file: &Path, data: &Path) -> Result<Vec<InspectedSociety>, BackupError> {
    let data = &behind_links(data);
    refuse_taken(data)?;
    let societies = Inspection::open(file)?.check_events()?;
    let (parent, building) = building_of(data);
    remove(&building)?;
    let restored = build(file, &building, &societies).and_then(|()| {
        refuse_taken(data)?;
        // Nobody has put anything into an empty directory if it can be removed.
        match fs::remove_dir(data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(from_io(error).into()),
            _ => {}
        }
        Ok(fs::rename(&building, data).map_err(from_io)?)
    });
    if let Err(error) = restored {
        // The next restore removes what cannot be removed now.
        let _ = remove(&building);
        return Err(match in_use(error, file) {
            BackupError::Log(LogError::Full(_)) => BackupError::NoRoom(format!(
                "there is no room to restore to `{}`. Free some, or restore to another disk with --to; nothing was left there",
                data.display()
            )),
            error => error,
        });
    }
    sync_dir(&parent).map_err(from_io)?;
    Ok(societies)
}

/// Makes a whole and checked data directory.
fn build(file: &Path, building: &Path, societies: &[InspectedSociety]) -> Result<(), BackupError> {
    let backup = backup_file::open_to_read(file)?;
    make_private(building).map_err(from_io)?;
    copy_events(file, &backup, building)?;
    copy_texts(&backup, building)?;
    copy_files(&backup, building)?;
    // An opening checks everything, and a clean stop leaves everything in one file.
    drop(LocalLog::open(building)?);
    let copied = Inspection::open(building)?.check_events()?;
    if copied != societies {
        return Err(BackupError::Damaged("what was restored is not what is in the backup".to_owned()));
    }
    Ok(sync_dir(building).map_err(from_io)?)
}

fn remove(building: &Path) -> Result<(), BackupError> {
    match fs::remove_dir_all(building) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(from_io(error).into()),
        _ => Ok(()),
    }
}

/// The path that a link leads to, so that the directory is built beside it and the link stays.
fn behind_links(data: &Path) -> PathBuf {
    let leads_nowhere = || Some(data.parent()?.join(fs::read_link(data).ok()?));
    data.canonicalize().ok().or_else(leads_nowhere).unwrap_or_else(|| data.to_owned())
}

fn refuse_taken(data: &Path) -> Result<(), BackupError> {
    match fs::read_dir(data).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(BackupError::NotEmpty(data.display().to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(BackupError::NotEmpty(data.display().to_string())),
        Err(error) => Err(from_io(error).into()),
    }
}

/// The directory above, and the name under which a restore builds. It is the same each time, so that what a kill left is found.
fn building_of(data: &Path) -> (PathBuf, PathBuf) {
    let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let name = data.file_name().map_or_else(|| "polis".into(), |name| name.to_string_lossy().into_owned());
    let building = parent.join(format!(".{}.restoring", name.trim_start_matches('.')));
    (parent, building)
}

fn copy_events(file: &Path, backup: &Connection, building: &Path) -> Result<(), BackupError> {
    schema::create(building)?;
    let target = schema::connect_to_write(building)?;
    let path = file.to_str().ok_or_else(|| LogError::Failed("the path of the backup is not valid UTF-8".into()))?;
    target.execute("ATTACH ?1 AS backup", [path]).map_err(from_sqlite)?;
    let copy = |heads: Vec<(i64, Seq)>| {
        // Deferred: an immediate transaction would also lock the backup for writing.
        target.execute_batch(
            "BEGIN;
             INSERT INTO societies (key, name, seal, parent, at) SELECT key, name, seal, parent, at FROM backup.societies;
             INSERT INTO threads (key, society, name) SELECT key, society, name FROM backup.threads
                 WHERE key <= (SELECT threads FROM backup.point);",
        )?;
        for (society, head) in heads {
            let add = "INSERT INTO events (id, at, thread, version, crc, body) SELECT id, at, thread, version, crc, body \
                       FROM backup.events WHERE id > ?1 AND id <= ?2 ORDER BY id";
            target.execute(add, params![row::id(society, Seq(0)), row::id(society, head)])?;
        }
        target.execute("INSERT INTO redacted (id) SELECT id FROM events WHERE version & ?1", [row::REDACTED])?;
        target.execute_batch("COMMIT; DETACH backup;")
    };
    let heads = Head::all(backup)?.into_iter().map(|(society, head)| (society, head.seq)).collect();
    copy(heads).map_err(from_sqlite)?;
    empty_wal(&target)?;
    Ok(())
}

fn copy_texts(backup: &Connection, building: &Path) -> Result<(), BackupError> {
    let count: i64 = backup.query_row("SELECT count(*) FROM texts", [], |row| row.get(0)).map_err(from_sqlite)?;
    if count == 0 {
        return Ok(());
    }
    let target = memory_texts::open(&building.join(memory_texts::FILE))?;
    let copy = || {
        target.execute_batch("BEGIN IMMEDIATE")?;
        let mut read = backup.prepare("SELECT id, text, model, vector FROM texts")?;
        let mut add = target.prepare("INSERT INTO texts (id, text, model, vector) VALUES (?1, ?2, ?3, ?4)")?;
        let mut rows = read.query([])?;
        while let Some(row) = rows.next()? {
            add.execute(params![value(row, 0)?, value(row, 1)?, value(row, 2)?, value(row, 3)?])?;
        }
        target.execute_batch("COMMIT")
    };
    Ok(copy().map_err(from_sqlite)?)
}

fn copy_files(backup: &Connection, building: &Path) -> Result<(), BackupError> {
    for id in backup_file::artifacts(backup)? {
        let path = path_of(building, &id);
        let folder = path.parent().unwrap_or(building);
        make_private(folder).map_err(from_io)?;
        let mut file = plain_file::create_private(&path).map_err(from_io)?;
        let mut hasher = Hasher::default();
        each_part(backup, id, |bytes| {
            hasher.update(bytes);
            file.write_all(bytes)
        })?;
        if hasher.id() != id {
            return Err(BackupError::Damaged(format!("artifact {id} is not what was backed up")));
        }
        file.sync_all().and_then(|()| sync_dir(folder)).map_err(from_io)?;
    }
    let read = || {
        let mut statement = backup.prepare("SELECT name, bytes FROM files")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        rows.collect::<Result<Vec<_>, _>>()
    };
    for (name, bytes) in read().map_err(from_sqlite)? {
        // Only names that we write ourselves: a name from a file must not lead anywhere else.
        if !SMALL_FILES.contains(&&*name) {
            continue;
        }
        let mut file = plain_file::create_private(&building.join(name)).map_err(from_io)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(from_io)?;
    }
    let artifacts = building.join("artifacts");
    if artifacts.exists() {
        sync_dir(&artifacts).map_err(from_io)?;
    }
    Ok(())
}
