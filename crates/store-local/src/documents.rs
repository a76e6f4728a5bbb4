//! Documents as files of a data directory. Only this process is kept from changing one at the same time.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_ports::{DocumentError, Documents};

use crate::local_log::make_private;
use crate::plain_file;

/// The documents of a data directory: the name of each is that of its file.
#[derive(Debug, Clone)]
pub struct LocalDocuments {
    data: PathBuf,
    replacing: Arc<Mutex<()>>,
}

impl LocalDocuments {
    /// The documents of a data directory. Nothing is created until one is written.
    pub fn new(data: &Path) -> Self {
        Self { data: data.to_owned(), replacing: Arc::default() }
    }
}

#[async_trait]
impl Documents for LocalDocuments {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
        let path = self.data.join(name);
        run(move || read(&path)).await
    }

    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
        let (path, folder) = (self.data.join(folder), folder.to_owned());
        run(move || {
            let mut names = match fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
                Ok(entries) => entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(failed(&path, &error)),
            };
            names.retain(|name| !name.ends_with(".unfinished"));
            names.sort_unstable();
            Ok(names.into_iter().map(|name| folder.clone() + &name).collect())
        })
        .await
    }

    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
        let (path, replacing, name) = (self.data.join(name), self.replacing.clone(), name.to_owned());
        let (old, new) = (old.map(<[u8]>::to_vec), new.map(<[u8]>::to_vec));
        run(move || {
            let _replacing = replacing.lock().unwrap_or_else(PoisonError::into_inner);
            if read(&path)? != old {
                return Err(DocumentError::Changed(name));
            }
            let folder = path.parent().unwrap_or(Path::new("."));
            let done = match new {
                Some(new) if folder.exists() => plain_file::replace(&path, &new),
                Some(new) => make_private(folder).and_then(|()| plain_file::replace(&path, &new)),
                None if old.is_some() => fs::remove_file(&path),
                None => Ok(()),
            };
            done.map_err(|error| failed(&path, &error))
        })
        .await
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, DocumentError> {
    let mut body = Vec::new();
    match plain_file::open(path).and_then(|mut file| file.read_to_end(&mut body)) {
        Ok(_) => Ok(Some(body)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

fn failed(path: &Path, error: &io::Error) -> DocumentError {
    DocumentError::Failed(format!("{}: {error}", path.display()))
}

async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T, DocumentError> + Send + 'static) -> Result<T, DocumentError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|stopped| Err(DocumentError::Failed(stopped.to_string())))
}
