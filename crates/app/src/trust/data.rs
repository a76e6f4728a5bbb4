//! Whose a data directory is. A folder can come with a `.polis` of another user: a log with roles, permissions and open work, a
//! token, logins. The user's own has an id in it that only the user's list of trusted folders knows.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use polis_store_local::{unfinished, write_private};

use super::store::{OwnData, TrustStore, Trusted, create_private};
use crate::error::CliError;
use crate::token::random_bits;

/// The file with the id, and the longest id.
const ID: &str = "owner";
const MAX_ID_BYTES: u64 = 256;

/// What may lie in a directory in which nothing was begun yet.
const BEFORE: [&str; 3] = [crate::config::FILE, crate::mcp_servers::FILE, ID];

/// The data directory of this process, and whether it has to be known.
#[derive(Debug)]
pub(crate) struct DataOwner {
    /// Not resolved: a link to another directory is not that directory.
    path: PathBuf,
    /// Whether it is the one that is used where none is named.
    is_usual: bool,
    /// The user named it, or has switched the check off.
    is_free: bool,
}

impl DataOwner {
    /// A directory in a folder, of which the check may be off.
    pub(super) fn new(folder: &Path, data: &Path, is_free: bool) -> Self {
        let path = folder.join(data);
        Self { is_usual: path == folder.join(super::DATA), path, is_free }
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Whether another user began it, as far as anybody here knows.
    pub(super) fn is_foreign(&self, store: Option<&TrustStore>) -> bool {
        if self.is_free || !self.is_there() || self.is_empty() {
            return false;
        }
        let (Some(store), Some(name), Some(id)) = (store, self.path.to_str(), self.id()) else { return true };
        let is_own = |all: Trusted| all.data.get(name).is_some_and(|own| own.id == id) || was_moved(&all, &id);
        !store.read().is_ok_and(is_own)
    }

    /// Makes it the user's own before anything is begun in it.
    pub(super) fn claim(&self, store: Option<&TrustStore>) -> Result<(), CliError> {
        let is_begun = self.is_there() && !self.is_empty();
        let is_moved = || {
            let known = store.and_then(|store| store.read().ok());
            known.zip(self.id()).is_some_and(|(all, id)| was_moved(&all, &id))
        };
        if !self.is_usual || (is_begun && !is_moved()) {
            return Ok(());
        }
        let claimed = store.ok_or_else(super::no_home).and_then(|store| self.record(store, false));
        // Whoever checks nothing needs not to know that the next check will fail.
        if self.is_free { Ok(()) } else { claimed }
    }

    /// Makes it the user's own although another user began it.
    pub(super) fn accept(&self, store: &TrustStore) -> Result<(), CliError> {
        if self.is_there() && self.is_foreign(Some(store)) { self.record(store, true) } else { Ok(()) }
    }

    /// Writes a new id, in the directory and in the list. One process at a time: of several that begin, the first does it.
    fn record(&self, store: &TrustStore, accepted: bool) -> Result<(), CliError> {
        let failed = |error: std::io::Error| CliError::new("bad_folder", format!("{}: {error}", self.path.display()));
        let name = self.path.to_str().ok_or_else(|| CliError::new("bad_folder", "the folder's name is not UTF-8"))?;
        let id = random_bits()?.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        store.change(|all| {
            if self.id().is_some_and(|there| all.data.get(name).is_some_and(|own| own.id == there)) {
                return Ok(());
            }
            // A directory of the user's that is reached over a link, or was moved, keeps its id.
            let known = self.id().filter(|there| all.data.values().any(|known| known.id == *there));
            let id = match known {
                Some(known) => known,
                None => {
                    create_private(&self.path).map_err(failed)?;
                    write_private(&self.path.join(ID), &id).map_err(failed)?;
                    id
                }
            };
            all.data.insert(name.to_owned(), OwnData { id, accepted });
            Ok(())
        })?
    }

    fn id(&self) -> Option<String> {
        id_in(&self.path)
    }

    /// Whether nothing was begun in it yet.
    fn is_empty(&self) -> bool {
        let is_link = self.path.symlink_metadata().is_ok_and(|about| about.is_symlink());
        let entries = || Some(fs::read_dir(&self.path).ok()?.flatten().map(|entry| entry.file_name()));
        // Another process may be claiming it at this moment.
        let claiming = unfinished(Path::new(ID));
        let is_before = |name: OsString| name == claiming.as_os_str() || BEFORE.iter().any(|before| name == *before);
        !is_link && entries().is_some_and(|mut names| names.all(is_before))
    }
}

fn id_in(path: &Path) -> Option<String> {
    let file = path.join(ID);
    // A pipe would be waited for, and a device never ends.
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(MAX_ID_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|id| id.len() >= 32)
}

/// Whether the user began a directory with this id elsewhere and it is no longer there. A copy is not the one that was begun.
fn was_moved(all: &Trusted, id: &str) -> bool {
    let is_left = |(path, own): (&String, &OwnData)| own.id == *id && id_in(Path::new(path)).as_deref() != Some(id);
    let is_there = |(path, own): (&String, &OwnData)| own.id == *id && id_in(Path::new(path)).as_deref() == Some(id);
    all.data.iter().any(is_left) && !all.data.iter().any(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_another_process_is_claiming_is_not_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join(super::super::DATA);
        let is_foreign = || DataOwner::new(folder.path(), Path::new(super::super::DATA), false).is_foreign(None);
        fs::create_dir(&data).unwrap();
        write_private(&data.join(ID), "an id").unwrap();
        fs::rename(data.join(ID), unfinished(&data.join(ID))).unwrap();
        assert!(!is_foreign());
        fs::write(data.join("polis.db"), "").unwrap();
        assert!(is_foreign());
    }
}
