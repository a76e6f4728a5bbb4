//! Contents in files that are named by their SHA-256. A file appears whole and synced or not at all, and is never changed.
//!
//! Who has the data directory's lock may open it, and nobody else: drafts of a process that died are removed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, ArtifactLimits, Artifacts, Draft, Hasher, StoredArtifact, Window};

use crate::damage::sync_dir;
use crate::local_log::make_private;
use crate::plain_file;

const FOLDER: &str = "artifacts";
const DRAFTS: &str = "drafts";

/// A shorter content is looked through each time that it is read.
const WORTH_REMEMBERING_BYTES: u64 = 1 << 20;

/// Most contents that are remembered to be whole.
const MAX_REMEMBERED: usize = 1_024;

/// The contents of a data directory.
#[derive(Debug, Clone)]
pub struct LocalArtifacts {
    store: Arc<Store>,
}

#[derive(Debug)]
struct Store {
    data: PathBuf,
    dir: PathBuf,
    limits: ArtifactLimits,
    /// What is kept; none until somebody needs to know. Whoever puts a file in place or takes one away holds it.
    usage: Mutex<Option<Usage>>,
    drafts: AtomicU64,
    /// The state of long files in which they were seen to be whole.
    whole: Mutex<HashMap<ArtifactId, Stamp>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    count: u64,
    bytes: u64,
}

/// Changes when somebody writes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

impl LocalArtifacts {
    /// Opens the contents of a data directory whose lock this process has. Nothing is made until something is kept.
    pub fn open(data: &Path, limits: ArtifactLimits) -> io::Result<Self> {
        let dir = data.join(FOLDER);
        match fs::remove_dir_all(dir.join(DRAFTS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (usage, drafts, whole) = (Mutex::default(), AtomicU64::new(0), Mutex::default());
        Ok(Self { store: Arc::new(Store { data: data.to_owned(), dir, limits, usage, drafts, whole }) })
    }
}

#[async_trait]
impl Artifacts for LocalArtifacts {
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError> {
        Ok(Box::new(FileDraft::begin(self.store.clone())?))
    }

    async fn put(&self, content: Arc<[u8]>) -> Result<ArtifactId, ArtifactError> {
        let store = self.store.clone();
        let put = move || {
            let mut draft = FileDraft::begin(store)?;
            draft.write(&content)?;
            Box::new(draft).keep().map(|(id, _)| id)
        };
        joined(tokio::task::spawn_blocking(put).await)
    }

    async fn list(&self, after: Option<ArtifactId>, limit: usize) -> Result<Vec<StoredArtifact>, ArtifactError> {
        let store = self.store.clone();
        joined(tokio::task::spawn_blocking(move || store.list(after, limit).map_err(failed)).await)
    }

    async fn remove(&self, ids: Vec<ArtifactId>, before: Timestamp) -> Result<Vec<ArtifactId>, ArtifactError> {
        let store = self.store.clone();
        let before = SystemTime::UNIX_EPOCH + Duration::from_millis(before.0);
        let remove = move || {
            let mut removed = Vec::new();
            for id in ids {
                if store.remove(&id, before).map_err(failed)? {
                    removed.push(id);
                }
            }
            Ok(removed)
        };
        joined(tokio::task::spawn_blocking(remove).await)
    }

    async fn read(&self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError> {
        let (store, id) = (self.store.clone(), *id);
        joined(tokio::task::spawn_blocking(move || store.read(id, offset, limit)).await)
    }
}

fn joined<T>(done: Result<Result<T, ArtifactError>, tokio::task::JoinError>) -> Result<T, ArtifactError> {
    done.unwrap_or_else(|stopped| Err(ArtifactError::Failed(stopped.to_string())))
}

/// Where the content of an artifact is in a data directory.
pub(crate) fn path_of(data: &Path, id: &ArtifactId) -> PathBuf {
    let name = id.to_string();
    data.join(FOLDER).join(&name[..2]).join(&name[2..])
}

/// All files of a data directory with a content's name. What is called otherwise is not ours.
pub(crate) fn stored_files(data: &Path) -> io::Result<Vec<(ArtifactId, PathBuf)>> {
    let mut files = Vec::new();
    for folder in folders(data)? {
        files.append(&mut files_in(&folder)?);
    }
    Ok(files)
}

/// The folders with contents, in the order of their ids.
fn folders(data: &Path) -> io::Result<Vec<PathBuf>> {
    let found = entries(&data.join(FOLDER))?.into_iter().filter(|folder| folder.file_name().len() == 2);
    let mut folders: Vec<_> = found.map(|folder| folder.path()).collect();
    folders.sort();
    Ok(folders)
}

fn files_in(folder: &Path) -> io::Result<Vec<(ArtifactId, PathBuf)>> {
    let start = folder.file_name().unwrap_or_default().display();
    let id = |file: &fs::DirEntry| format!("{start}{}", file.file_name().display()).parse().ok();
    Ok(entries(folder)?.into_iter().filter_map(|file| Some((id(&file)?, file.path()))).collect())
}

impl Store {
    fn path(&self, id: &ArtifactId) -> PathBuf {
        path_of(&self.data, id)
    }

    /// The next contents in the order of their ids. Folders before `after` are not read.
    fn list(&self, after: Option<ArtifactId>, limit: usize) -> io::Result<Vec<StoredArtifact>> {
        let begins = after.map(|after| self.path(&after)).and_then(|path| path.parent().map(Path::to_owned));
        let mut found = Vec::new();
        for folder in folders(&self.data)?.into_iter().filter(|folder| begins.as_ref().is_none_or(|first| folder >= first)) {
            let mut files = files_in(&folder)?;
            files.sort();
            for (id, path) in files.into_iter().filter(|(id, _)| after.is_none_or(|after| *id > after)) {
                if found.len() >= limit {
                    return Ok(found);
                }
                match fs::metadata(path) {
                    Ok(file) => found.push(StoredArtifact { id, bytes: file.len(), at: timestamp(file.modified()?) }),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    /// What is kept. The files are counted once.
    fn usage<'a>(&self, usage: &'a mut Option<Usage>) -> io::Result<&'a mut Usage> {
        if usage.is_none() {
            let mut counted = Usage::default();
            for (_, path) in stored_files(&self.data)? {
                counted.count += 1;
                counted.bytes += fs::metadata(path)?.len();
            }
            *usage = Some(counted);
        }
        Ok(usage.get_or_insert_default())
    }

    fn check_room(&self, bytes: u64) -> Result<(), ArtifactError> {
        let ArtifactLimits { max_bytes, max_total_bytes, .. } = self.limits;
        if bytes > max_bytes {
            return Err(ArtifactError::TooLarge { limit: max_bytes });
        }
        let kept = self.usage(&mut lock(&self.usage)).map_err(failed)?.bytes;
        if kept.saturating_add(bytes) > max_total_bytes {
            return Err(ArtifactError::NoRoom(format!("{kept} of {max_total_bytes} bytes are used")));
        }
        Ok(())
    }

    /// Removes a content that was stored before a time. Returns whether it is not there any more.
    fn remove(&self, id: &ArtifactId, before: SystemTime) -> io::Result<bool> {
        let path = self.path(id);
        let mut usage = lock(&self.usage);
        match fs::metadata(&path) {
            Ok(file) if file.modified()? > before => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        }
        fs::remove_file(&path)?;
        *usage = None;
        path.parent().map_or(Ok(()), sync_dir)?;
        Ok(true)
    }

    fn read(&self, id: ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError> {
        let mut file = plain_file::open(&self.path(&id)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ArtifactError::Unknown(id),
            io::ErrorKind::InvalidInput => ArtifactError::Damaged(id),
            _ => failed(error),
        })?;
        let state = file.metadata().map_err(failed)?;
        let stamp = Stamp { bytes: state.len(), modified: state.modified().map_err(failed)? };
        if lock(&self.whole).get(&id) != Some(&stamp) {
            self.check(&mut file, id, stamp)?;
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset.min(stamp.bytes))).map_err(failed)?;
        file.take(limit as u64).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Window { bytes, total: stamp.bytes })
    }

    /// Looks through all of a file.
    fn check(&self, file: &mut File, id: ArtifactId, stamp: Stamp) -> Result<(), ArtifactError> {
        let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 256 << 10]);
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => break,
                read => hasher.update(&buffer[..read]),
            }
        }
        if hasher.id() != id {
            return Err(ArtifactError::Damaged(id));
        }
        if stamp.bytes >= WORTH_REMEMBERING_BYTES {
            let mut whole = lock(&self.whole);
            if whole.len() >= MAX_REMEMBERED {
                whole.clear();
            }
            whole.insert(id, stamp);
        }
        Ok(())
    }
}

/// A file that is being written.
struct FileDraft {
    store: Arc<Store>,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    bytes: u64,
}

impl FileDraft {
    fn begin(store: Arc<Store>) -> Result<Self, ArtifactError> {
        let folder = store.dir.join(DRAFTS);
        if !folder.exists() {
            make_private(&folder).and_then(|()| sync_dir(&store.data)).map_err(failed)?;
        }
        let path = folder.join(store.drafts.fetch_add(1, Ordering::Relaxed).to_string());
        let file = plain_file::create_private(&path).map_err(failed)?;
        Ok(Self { store, path, file, hasher: Hasher::default(), bytes: 0 })
    }
}

impl Draft for FileDraft {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        let length = self.bytes + bytes.len() as u64;
        self.store.check_room(length)?;
        self.file.write_all(bytes).map_err(failed)?;
        self.hasher.update(bytes);
        self.bytes = length;
        Ok(())
    }

    /// A content that is there already is put there again: it may have been damaged, and its age tells a sweep that somebody is
    /// about to name it.
    fn keep(self: Box<Self>) -> Result<(ArtifactId, u64), ArtifactError> {
        self.file.sync_all().map_err(failed)?;
        let (store, id) = (&*self.store, self.hasher.clone().id());
        let path = store.path(&id);
        let folder = path.parent().unwrap_or(&store.dir);
        let mut guard = lock(&store.usage);
        let usage = store.usage(&mut guard).map_err(failed)?;
        let replaced = fs::metadata(&path).map(|file| file.len()).ok();
        if replaced.is_none() && usage.count >= store.limits.max_count {
            return Err(ArtifactError::NoRoom(format!("there are {} already", usage.count)));
        }
        if !folder.exists() {
            make_private(folder).and_then(|()| sync_dir(&store.dir)).map_err(failed)?;
        }
        fs::rename(&self.path, &path).and_then(|()| sync_dir(folder)).map_err(failed)?;
        usage.count += u64::from(replaced.is_none());
        usage.bytes = (usage.bytes + self.bytes).saturating_sub(replaced.unwrap_or_default());
        Ok((id, self.bytes))
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        // Gone already when it was kept; otherwise the next opening removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Milliseconds are enough; what was stored within one is as young.
fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn entries(dir: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn failed(error: io::Error) -> ArtifactError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ArtifactError::Full,
        _ => ArtifactError::Failed(error.to_string()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
