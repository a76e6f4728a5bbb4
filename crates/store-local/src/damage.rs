//! A damaged history is moved aside as it was found and never overwritten; a person decides how to go on (D14).
//!
//! The marker is on the disk before the first file moves, so a crash in between cannot lead to a start on what is left.
//! The folder gets its final name after the last file moved, so whatever lies in the directory later, such as a restored
//! backup, is not mistaken for the rest.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use polis_ports::LogError;

use crate::error::from_io;
use crate::{last_ack, schema, snapshot};

pub(crate) const MARKER: &str = "DAMAGED";
const UNFINISHED: &str = "DAMAGED.unfinished";

/// The files that are moved, in this order. `witness` is last: as long as other files are left behind, it is there and
/// reports them missing.
const FILES: [&str; 5] = [schema::WAL, schema::SHM, snapshot::FOLDER, schema::FILE, last_ack::FILE];

/// Refuses while the marker is there; finishes a move that was cut short.
pub(crate) fn refuse_marked(dir: &Path) -> Result<(), LogError> {
    let text = match fs::read_to_string(dir.join(MARKER)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(from_io(error)),
    };
    if let Some(folder) = folder_in(&text) {
        move_files(dir, &folder).map_err(from_io)?;
    }
    Err(LogError::Damaged(text))
}

/// Refuses while the marker is there, and leaves everything as it is.
pub(crate) fn refuse_marker(dir: &Path) -> Result<(), LogError> {
    match fs::read_to_string(dir.join(MARKER)) {
        Ok(text) => Err(LogError::Damaged(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(from_io(error)),
    }
}

/// Marks the directory as damaged and moves the history aside. Gives back the error to refuse with.
pub(crate) fn set_aside(dir: &Path, what: &str) -> LogError {
    let folder = format!("damaged-{}", unix_ms());
    let text = explain(dir, &folder, what);
    match write_marker(dir, &text).and_then(|()| move_files(dir, &folder)) {
        Ok(()) => LogError::Damaged(text),
        Err(error) => LogError::Damaged(format!("{text}\nThe files could not be moved yet: {error}\n")),
    }
}

fn explain(dir: &Path, folder: &str, what: &str) -> String {
    format!(
        "The history in `{}` is damaged: {what}.

Nothing was deleted. The files are as they were found, in `{folder}`. Polis does not start on half a history, so it will
not start here until you decide:

* To restore a backup of `polis backup`, move this directory away and run `polis restore FILE`.
* To restore a copy of the directory, put its `polis.db` here (with its `polis.db-wal` if it has one, but without
  `witness`), then delete this file, `{MARKER}`.
* To begin anew with an empty history, delete this file.

If you had put an older `polis.db` here on purpose, take it back from `{folder}` in the same way.
",
        dir.display()
    )
}

fn write_marker(dir: &Path, text: &str) -> io::Result<()> {
    let unfinished = dir.join(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, dir.join(MARKER))?;
    sync_dir(dir)
}

fn move_files(dir: &Path, folder: &str) -> io::Result<()> {
    let finished = dir.join(folder);
    if finished.exists() {
        return Ok(());
    }
    let moving = dir.join(format!("{folder}.moving"));
    fs::create_dir_all(&moving)?;
    for file in FILES {
        match fs::rename(dir.join(file), moving.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        sync_dir(&moving)?;
        sync_dir(dir)?;
    }
    fs::rename(moving, finished)?;
    sync_dir(dir)
}

/// The folder that a marker speaks of.
fn folder_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("`damaged-")?;
    let (number, _) = rest.split_once('`')?;
    let number: u64 = number.parse().ok()?;
    Some(format!("damaged-{number}"))
}

/// Makes what was created, renamed or removed in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    // Windows cannot open a directory as a file, and does not need it.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

#[expect(clippy::disallowed_methods, reason = "only names a folder for a person; nothing is decided by it")]
fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
