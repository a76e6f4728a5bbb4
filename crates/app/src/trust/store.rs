//! What the user has trusted, kept outside the folders in the user's own configuration folder: `trust.json`, mode 0600.
//!
//! Every change is made under a lock and written aside and renamed, so that several processes at once lose nothing. A file that
//! cannot be read trusts nothing, and nothing is written over it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use polis_store_local::write_private;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::CliError;

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";

/// Largest file that is read, and most folders that are kept. Folders that are no longer there are forgotten first.
const MAX_BYTES: u64 = 16 << 20;
const MAX_FOLDERS: usize = 2_000;

/// Where the user's own configuration is: `$XDG_CONFIG_HOME/polis`, else `~/.config/polis`. None without a home.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("polis"))
}

/// The file with what is trusted.
#[derive(Debug, Clone)]
pub(crate) struct TrustStore {
    folder: PathBuf,
}

/// Everything that the file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trusted {
    /// By the absolute path of the folder.
    #[serde(default)]
    pub(crate) folders: BTreeMap<String, FolderTrust>,
    /// Data directories that this user began or accepted: the absolute path, and the id that lies in it.
    #[serde(default)]
    pub(crate) data: BTreeMap<String, OwnData>,
}

/// A data directory that counts as the user's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnData {
    /// What lies in it to know it by.
    pub(crate) id: String,
    /// Somebody else began it, and the user accepted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) accepted: bool,
}

/// What was decided about one folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FolderTrust {
    /// The trusted content: SHA-256 by path below the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, String>,
    /// What was shown about it, to tell what has changed since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) shown: BTreeMap<String, String>,
    /// The rules that ask or deny, and the budgets, of the trusted `polis.toml`: they hold also while a changed one does not.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) restrictions: Value,
    /// The content that the user did not want to trust, as one digest: nobody is asked about it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declined: Option<String>,
    /// When it was decided, in seconds since 1970.
    #[serde(default)]
    pub(crate) at: u64,
}

/// Tells whether the file has changed: when, how long it is, and which file it is.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

impl TrustStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let about = fs::metadata(self.path()).ok()?;
        #[cfg(unix)]
        let which = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let which = 0;
        Some((about.modified().ok()?, about.len(), which))
    }

    /// What is trusted; nothing where there is no file.
    pub(crate) fn read(&self) -> Result<Trusted, CliError> {
        let path = self.path();
        let text = match fs::metadata(&path) {
            Ok(about) if about.len() > MAX_BYTES => return Err(self.bad(&format!("has more than {MAX_BYTES} bytes"))),
            Ok(_) => fs::read_to_string(&path).map_err(|error| self.bad(&format!("cannot be read: {error}")))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Trusted::default()),
            Err(error) => return Err(self.bad(&format!("cannot be read: {error}"))),
        };
        serde_json::from_str(&text).map_err(|error| self.bad(&format!("is damaged at line {}", error.line())))
    }

    /// Changes what is trusted, alone among all processes.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Trusted) -> T) -> Result<T, CliError> {
        let failed = |error: io::Error| self.bad(&format!("cannot be written: {error}"));
        create_private(&self.folder).map_err(failed)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(self.folder.join(LOCK)).map_err(failed)?;
        File::lock(&lock).map_err(failed)?;
        let mut trusted = self.read()?;
        let result = change(&mut trusted);
        trusted.forget_oldest();
        let text = serde_json::to_string_pretty(&trusted).map_err(|error| self.bad(&error.to_string()))?;
        write_private(&self.path(), &text).map_err(failed)?;
        Ok(result)
    }

    fn bad(&self, what: &str) -> CliError {
        let message = format!("the list of trusted folders {} {what}; repair or remove it", self.path().display());
        CliError::new("bad_trust_store", message)
    }
}

impl Trusted {
    fn forget_oldest(&mut self) {
        if self.folders.len() > MAX_FOLDERS {
            self.folders.retain(|path, _| Path::new(path).is_dir());
        }
        while self.folders.len() > MAX_FOLDERS {
            let oldest = self.folders.iter().min_by_key(|(_, trust)| trust.at).map(|(path, _)| path.clone());
            oldest.map(|path| self.folders.remove(&path));
        }
        if self.data.len() > MAX_FOLDERS {
            self.data.retain(|path, _| Path::new(path).is_dir());
        }
    }
}

/// A folder of the user's alone, with those above it.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_many_at_once_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::new(dir.path().join("polis"));
        std::thread::scope(|scope| {
            for n in 0..8 {
                let store = store.clone();
                scope.spawn(move || {
                    for m in 0..5 {
                        store
                            .change(|trusted| {
                                trusted.data.insert(format!("/{n}/{m}"), OwnData { id: "id".to_owned(), accepted: false })
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(store.read().unwrap().data.len(), 40);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&store.path()), mode(&store.folder)), (0o600, 0o700));
        }
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::new(dir.path().to_owned());
        fs::write(store.path(), "{ \"folders\": ").unwrap();
        assert_eq!(store.read().unwrap_err().code, "bad_trust_store");
        assert_eq!(store.change(|_| ()).unwrap_err().code, "bad_trust_store");
        assert_eq!(fs::read_to_string(store.path()).unwrap(), "{ \"folders\": ");
    }

    #[test]
    fn the_oldest_folders_are_forgotten_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let here = |n: usize| dir.path().join(n.to_string()).display().to_string();
        let mut trusted = Trusted::default();
        for n in 0..=MAX_FOLDERS {
            fs::create_dir(here(n)).unwrap();
            trusted.folders.insert(here(n), FolderTrust { at: n as u64 + 1, ..FolderTrust::default() });
        }
        trusted.folders.insert("/no/such/folder".to_owned(), FolderTrust { at: u64::MAX, ..FolderTrust::default() });
        trusted.forget_oldest();
        assert_eq!(trusted.folders.len(), MAX_FOLDERS);
        assert!(!trusted.folders.contains_key("/no/such/folder") && !trusted.folders.contains_key(&here(0)));
    }
}
