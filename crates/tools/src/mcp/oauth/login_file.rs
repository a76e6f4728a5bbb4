//! The file that stores a login: one for each server, readable by its owner only, written atomically.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

use crate::mcp::names::fingerprint;

/// The login at one address.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct LoginFile {
    path: PathBuf,
    url: String,
}

/// What the file holds.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The address that the tokens are for; they are sent to no other.
    pub(super) url: String,
    /// As whom we are known where the tokens come from.
    pub(super) client: Option<Client>,
    pub(super) credentials: Option<StoredCredentials>,
    /// What the server said when it wanted a login, or a better one.
    pub(super) challenge: Option<String>,
}

/// Who we are there.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) redirect: String,
}

impl LoginFile {
    /// The login of a server in a folder of logins.
    pub(in crate::mcp) fn new(folder: &Path, server: &str, url: &str) -> Self {
        let safe: String = server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        let path = folder.join(format!("{safe}-{:08x}.json", fingerprint(server, url)));
        Self { path, url: url.to_owned() }
    }

    /// What is there. Something that cannot be read is as good as nothing: a new login takes its place.
    pub(super) fn read(&self) -> Option<Record> {
        let text = std::fs::read(&self.path).ok()?;
        serde_json::from_slice::<Record>(&text).ok().filter(|record| record.url == self.url)
    }

    /// Puts it there, whole.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder)?;
        // Readable by its owner alone from the first moment on.
        let mut file = tempfile::Builder::new().prefix(".login-").tempfile_in(folder)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }

    /// Takes it away; says whether there was one.
    pub(super) fn remove(&self) -> io::Result<bool> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Remembers what the server said when it wanted a login, for the login. Makes no data directory where there is none.
    pub(in crate::mcp) fn note(&self, challenge: &str) {
        let has_home = self.path.parent().and_then(Path::parent).is_some_and(Path::is_dir);
        let mut record = self.read().unwrap_or_else(|| self.empty());
        if !has_home || record.challenge.as_deref() == Some(challenge) {
            return;
        }
        record.challenge = Some(challenge.to_owned());
        if let Err(error) = self.write(&record) {
            tracing::warn!("what a server wants for a login cannot be kept: {error}");
        }
    }

    /// Changes whenever the file does.
    pub(in crate::mcp) fn modified(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok()
    }

    pub(super) fn empty(&self) -> Record {
        Record { url: self.url.clone(), client: None, credentials: None, challenge: None }
    }
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for LoginFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read().and_then(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let mut record = self.read().unwrap_or_else(|| self.empty());
        record.credentials = Some(credentials);
        self.write(&record).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let mut record = self.read().unwrap_or_else(|| self.empty());
        (record.credentials, record.client) = (None, None);
        self.write(&record).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login_file(home: &Path, url: &str) -> LoginFile {
        LoginFile::new(&home.join("logins"), "a/server", url)
    }

    #[test]
    fn a_login_is_its_owners_alone_and_of_one_address() {
        let home = tempfile::tempdir().unwrap();
        let here = login_file(home.path(), "https://here/mcp");
        let client = Client { id: "me".to_owned(), secret: Some("secret".to_owned()), redirect: String::new() };
        here.write(&Record { client: Some(client), ..here.empty() }).unwrap();
        assert_eq!(here.read().unwrap().client.unwrap().id, "me");
        assert!(login_file(home.path(), "https://there/mcp").read().is_none());
        let moved = LoginFile { url: "https://there/mcp".to_owned(), ..here.clone() };
        assert!(moved.read().is_none(), "also where the names of files would meet");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&here.path), mode(here.path.parent().unwrap())), (0o600, 0o700));
        }
        assert_eq!((here.remove().unwrap(), here.remove().unwrap()), (true, false));
    }

    #[test]
    fn a_challenge_is_noted_beside_a_login_and_only_where_there_is_a_data_directory() {
        let home = tempfile::tempdir().unwrap();
        let nowhere = login_file(&home.path().join("none"), "https://here/mcp");
        nowhere.note("Bearer");
        assert!(!home.path().join("none").exists());
        let here = login_file(home.path(), "https://here/mcp");
        here.note("Bearer scope=\"a\"");
        let modified = here.modified();
        here.note("Bearer scope=\"a\"");
        assert_eq!(here.modified(), modified, "the same is not written twice");
        assert_eq!(here.read().unwrap().challenge.as_deref(), Some("Bearer scope=\"a\""));
    }
}
