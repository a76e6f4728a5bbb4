//! How files of a data directory are opened, created and replaced. Only files are opened: a named pipe would block the reader until something is written to it, and a device
//! may never end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polis_ports::LogError;

use crate::error::from_io;
use crate::{backup_file, damage, last_ack, lock, memory_texts, schema};

/// The files of a data directory that are opened by name.
const NAMES: [&str; 9] = [
    schema::FILE,
    schema::WAL,
    schema::SHM,
    last_ack::FILE,
    lock::FILE,
    memory_texts::FILE,
    memory_texts::JOURNAL,
    damage::MARKER,
    backup_file::TOKENS,
];

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    check(path)?;
    File::open(path)
}

/// Creates a file that only its owner may read, whatever the umask is.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Where [`write_private`] writes a file before it takes its place.
pub fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

/// Writes a file of text lines: aside and renamed, so that a crash leaves no half of it, and readable by its owner only.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    replace(path, format!("{text}\n").as_bytes())
}

/// The same of any bytes.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(path);
    // One that a crash left behind could have been opened by another process since.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create_private(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

/// Refuses a path at which there is something else than a file. A path with nothing there passes.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => {
            let message = format!("`{}` is a directory, a pipe, a socket or a device; move it away", path.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a data directory with something else than a file under the name of one.
pub(crate) fn check_directory(dir: &Path) -> Result<(), LogError> {
    NAMES.iter().try_for_each(|name| check(&dir.join(name))).map_err(from_io)
}
