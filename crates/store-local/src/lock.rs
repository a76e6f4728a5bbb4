//! The lock that reserves a data directory for one process, and the note in it that names the process.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use polis_ports::LogError;

use crate::error::from_io;
use crate::local_log::make_private;
use crate::plain_file;

pub(crate) const FILE: &str = "lock";

/// The note of the process that has `dir` open; none if it wrote none or nobody has it open.
pub fn read_note(dir: &Path) -> io::Result<Option<String>> {
    let file = dir.join(FILE);
    match plain_file::check(&file).and_then(|()| fs::read_to_string(file)) {
        Ok(note) => Ok(Some(note).filter(|note| !note.is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lock on an open directory. The operating system releases it when the process dies.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    pub(crate) fn take(dir: &Path) -> Result<Self, LogError> {
        let file = File::options().create(true).truncate(false).write(true).open(dir.join(FILE)).map_err(from_io)?;
        match file.try_lock() {
            Ok(()) => {
                // A process that was killed has left its note behind.
                let lock = Self(file);
                lock.write_note("").map_err(from_io)?;
                Ok(lock)
            }
            Err(TryLockError::WouldBlock) => Err(LogError::Locked(in_use(dir))),
            Err(TryLockError::Error(error)) => Err(from_io(error)),
        }
    }

    pub(crate) fn write_note(&self, note: &str) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(note.as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being spawned may still have the file open.
        let _ = self.0.unlock();
    }
}

/// A data directory without a log: it has what is local where the log is in a database. One process has it at a time.
#[derive(Debug)]
pub struct DataDirectory(Lock);

impl DataDirectory {
    /// Reserves `dir`, which is created if it is missing, for this process.
    ///
    /// # Errors
    ///
    /// [`LogError::Locked`] when another process has it open.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        make_private(dir).map_err(from_io)?;
        plain_file::check_directory(dir)?;
        Lock::take(dir).map(Self)
    }

    /// Writes into the lock file who has the directory open, for [`read_note`].
    pub fn write_note(&self, note: &str) -> io::Result<()> {
        self.0.write_note(note)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        let _ = self.0.write_note("");
    }
}

fn in_use(dir: &Path) -> String {
    let who = match read_note(dir) {
        Ok(Some(note)) => format!(" ({})", note.trim()),
        _ => String::new(),
    };
    format!(
        "the data directory `{}` is open in another polis{who}; use that one, stop it, or choose another directory",
        dir.display()
    )
}
