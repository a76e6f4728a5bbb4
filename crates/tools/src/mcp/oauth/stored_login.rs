//! A stored login: a document for each server, which nodes that use one store share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_ports::{DocumentError, Documents};
use ring::rand::{SecureRandom, SystemRandom};
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::mcp::names::fingerprint;

/// How often a document that others change at the same time is written again.
const TRIES: usize = 8;

/// How long a node may take to refresh a token, longer than a request for one may. After that, another node does it.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two looks at whether another node has refreshed a token.
const LOOK: Duration = Duration::from_millis(200);

/// The login at one address.
#[derive(Clone)]
pub(in crate::mcp) struct StoredLogin {
    documents: Arc<dyn Documents>,
    name: String,
    url: String,
}

/// What the document holds.
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

impl StoredLogin {
    /// The login of a server.
    pub(in crate::mcp) fn new(documents: Arc<dyn Documents>, server: &str, url: &str) -> Self {
        let safe: String = server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        let name = format!("{}{safe}-{:08x}.json", super::LOGINS, fingerprint(server, url));
        Self { documents, name, url: url.to_owned() }
    }

    /// Reads the login. One that has another form is as good as none: a new login replaces it.
    pub(super) async fn read(&self) -> Result<Option<Record>, DocumentError> {
        Ok(self.documents.read(&self.name).await?.and_then(|text| self.parse(&text)))
    }

    fn parse(&self, text: &[u8]) -> Option<Record> {
        serde_json::from_slice::<Record>(text).ok().filter(|record| record.url == self.url)
    }

    /// Changes the login, or does nothing if `change` says so.
    pub(super) async fn update(&self, change: impl Fn(&mut Record) -> bool) -> Result<(), DocumentError> {
        let mut tries = 0;
        loop {
            let old = self.documents.read(&self.name).await?;
            let mut record = old.as_deref().and_then(|text| self.parse(text)).unwrap_or_else(|| self.empty());
            if !change(&mut record) {
                return Ok(());
            }
            let new = serde_json::to_vec(&record).map_err(|error| DocumentError::Failed(error.to_string()))?;
            tries += 1;
            match self.documents.replace(&self.name, old.as_deref(), Some(&new)).await {
                Err(DocumentError::Changed(_)) if tries < TRIES => {}
                done => return done,
            }
        }
    }

    /// Removes the login; says whether there was one.
    pub(super) async fn remove(&self) -> Result<bool, DocumentError> {
        let old = self.documents.read(&self.name).await?;
        self.documents.replace(&self.name, old.as_deref(), None).await?;
        Ok(old.is_some())
    }

    /// Keeps what the server said when it wanted a login, for the login.
    pub(in crate::mcp) async fn note(&self, challenge: &str) {
        let noted = self.update(|record| {
            let is_new = record.challenge.as_deref() != Some(challenge);
            record.challenge = Some(challenge.to_owned());
            is_new
        });
        if let Err(error) = noted.await {
            tracing::warn!("what a server wants for a login cannot be stored: {error}");
        }
    }

    /// The tokens as a text, to see whether a person has logged in; an error if they cannot be read now.
    pub(in crate::mcp) async fn tokens(&self) -> Result<String, DocumentError> {
        let credentials = self.read().await?.and_then(|record| record.credentials);
        serde_json::to_string(&credentials).map_err(|error| DocumentError::Failed(error.to_string()))
    }

    pub(super) fn empty(&self) -> Record {
        Record { url: self.url.clone(), client: None, credentials: None, challenge: None }
    }
}

fn failed(error: DocumentError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for StoredLogin {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read().await.map_err(failed)?.and_then(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let save = self.update(|record| {
            record.credentials = Some(credentials.clone());
            true
        });
        save.await.map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let clear = self.update(|record| {
            (record.credentials, record.client) = (None, None);
            true
        });
        clear.await.map_err(failed)
    }

    /// A refresh token may be good for one use: nodes refresh one after the other, each with what the one before it got.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let name = format!("{}.refresh", self.name);
        let content = nonce()?;
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            let old = self.documents.read(&name).await.map_err(failed)?;
            if old != seen {
                (seen, since) = (old.clone(), Instant::now());
            }
            if old.is_none() || since.elapsed() > REFRESH_TIMEOUT {
                match self.documents.replace(&name, old.as_deref(), Some(&content)).await {
                    Ok(()) => return Ok(Some(CredentialRefreshGuard::new(Refresh { login: self.clone(), name, content }))),
                    Err(DocumentError::Changed(_)) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A refresh that is under way. Its document is removed when this is dropped.
struct Refresh {
    login: StoredLogin,
    name: String,
    content: Vec<u8>,
}

impl Drop for Refresh {
    fn drop(&mut self) {
        let (documents, name) = (self.login.documents.clone(), std::mem::take(&mut self.name));
        let content = std::mem::take(&mut self.content);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // If this fails, the next refresh waits for the timeout.
            drop(runtime.spawn(async move { documents.replace(&name, Some(&content), None).await }));
        }
    }
}

/// What no other node writes.
fn nonce() -> Result<Vec<u8>, AuthError> {
    let mut bytes = vec![0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| AuthError::InternalError("the system has no randomness".to_owned()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use polis_testkit::MemoryDocuments;

    use super::*;

    fn login(documents: &MemoryDocuments, url: &str) -> StoredLogin {
        StoredLogin::new(Arc::new(documents.clone()), "a/server", url)
    }

    #[tokio::test]
    async fn a_login_is_of_one_address() {
        let documents = MemoryDocuments::default();
        let here = login(&documents, "https://here/mcp");
        let client = Client { id: "me".to_owned(), secret: Some("secret".to_owned()), redirect: String::new() };
        let set = |record: &mut Record| {
            record.client = Some(client.clone());
            true
        };
        here.update(set).await.unwrap();
        assert_eq!(here.read().await.unwrap().unwrap().client.unwrap().id, "me");
        assert!(login(&documents, "https://there/mcp").read().await.unwrap().is_none());
        let moved = StoredLogin { url: "https://there/mcp".to_owned(), ..here.clone() };
        assert!(moved.read().await.unwrap().is_none(), "also where the names of documents would meet");
        assert!(here.remove().await.unwrap() && !here.remove().await.unwrap());
    }

    #[tokio::test]
    async fn a_challenge_is_noted_beside_a_login() {
        let documents = MemoryDocuments::default();
        let here = login(&documents, "https://here/mcp");
        here.note("Bearer scope=\"a\"").await;
        let credentials = StoredCredentials::new("me".to_owned(), None, Vec::new(), None);
        here.save(credentials).await.unwrap();
        here.note("Bearer scope=\"b\"").await;
        let record = here.read().await.unwrap().unwrap();
        assert_eq!(record.challenge.as_deref(), Some("Bearer scope=\"b\""));
        assert_eq!(record.credentials.unwrap().client_id, "me");
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_refresh_a_token_one_after_the_other() {
        let documents = MemoryDocuments::default();
        let (one, other) = (login(&documents, "https://here/mcp"), login(&documents, "https://here/mcp"));
        let first = one.acquire_refresh_guard().await.unwrap();
        let second = tokio::spawn(async move { other.acquire_refresh_guard().await.map(drop) });
        tokio::time::sleep(LOOK * 3).await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
        // A node that is gone is waited for no longer than it may take.
        std::mem::forget(one.acquire_refresh_guard().await.unwrap());
        let began = Instant::now();
        drop(one.acquire_refresh_guard().await.unwrap());
        assert!(began.elapsed() >= REFRESH_TIMEOUT);
    }
}
