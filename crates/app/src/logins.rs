//! Where logins at MCP servers are stored: in the data directory, or encrypted in the database that nodes share.

use std::sync::Arc;

use async_trait::async_trait;
use polis_ports::{DocumentError, Documents};
use polis_store_local::LocalDocuments;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};

use crate::config::Config;
use crate::error::CliError;

/// The variable with the key that nodes share.
pub(crate) const KEY: &str = "POLIS_LOGINS_KEY";

/// A shorter key could be guessed.
const MIN_CHARS: usize = 32;

/// The logins of this node, or those in `shared` if nodes share a store and a key. A database has no secret that can be read.
pub(crate) fn logins(config: &Config, shared: impl FnOnce() -> Arc<dyn Documents>) -> Result<Arc<dyn Documents>, CliError> {
    Ok(match LoginsKey::from_environment()?.filter(|_| config.store.is_some()) {
        Some(key) => Arc::new(EncryptedDocuments::new(shared(), key)),
        None => Arc::new(LocalDocuments::new(&config.data)),
    })
}

/// The key that logins in a database are encrypted with.
pub(crate) struct LoginsKey {
    key: LessSafeKey,
    /// Where the documents of this key are. Those of another key are left alone, so that nodes can change theirs one after the other.
    folder: String,
}

impl LoginsKey {
    pub(crate) fn from_environment() -> Result<Option<Self>, CliError> {
        std::env::var(KEY).ok().filter(|text| !text.is_empty()).map(|text| Self::parse(&text)).transpose()
    }

    fn parse(text: &str) -> Result<Self, CliError> {
        let bad = |what: String| CliError::usage("bad_key", what);
        if text.chars().count() < MIN_CHARS {
            let what = format!("{KEY} has fewer than {MIN_CHARS} characters; make one with `openssl rand -hex 32`");
            return Err(bad(what));
        }
        let bytes = digest(&SHA256, text.as_bytes());
        let key = UnboundKey::new(&AES_256_GCM, bytes.as_ref()).map_err(|_| bad(format!("{KEY} cannot be used")))?;
        let print: String = digest(&SHA256, bytes.as_ref()).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { key: LessSafeKey::new(key), folder: format!("encrypted/{print}/") })
    }

    /// The name under which the document of a name is stored.
    pub(crate) fn stored(&self, name: &str) -> String {
        format!("{}{name}", self.folder)
    }

    /// Encrypts the document of a name: a random nonce, then the text with its tag.
    pub(crate) fn encrypt(&self, name: &str, text: &[u8]) -> Result<Vec<u8>, DocumentError> {
        let failed = || DocumentError::Failed(format!("{name} cannot be encrypted"));
        let (mut nonce, mut text) = ([0; NONCE_LEN], text.to_vec());
        getrandom::fill(&mut nonce).map_err(|_| failed())?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, Aad::from(name), &mut text).map_err(|_| failed())?;
        Ok([&nonce[..], &text].concat())
    }

    fn decrypt(&self, name: &str, encrypted: &[u8]) -> Result<Vec<u8>, DocumentError> {
        let failed = || DocumentError::Failed(format!("{name} is damaged: it cannot be decrypted with {KEY}"));
        let (nonce, text) = encrypted.split_first_chunk().ok_or_else(failed)?;
        let mut text = text.to_vec();
        let opened = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(name), &mut text);
        opened.map(|text| text.to_vec()).map_err(|_| failed())
    }
}

/// Encrypts what is written to other documents.
pub(crate) struct EncryptedDocuments {
    documents: Arc<dyn Documents>,
    key: LoginsKey,
}

impl EncryptedDocuments {
    pub(crate) fn new(documents: Arc<dyn Documents>, key: LoginsKey) -> Self {
        Self { documents, key }
    }
}

#[async_trait]
impl Documents for EncryptedDocuments {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
        let encrypted = self.documents.read(&self.key.stored(name)).await?;
        encrypted.map(|encrypted| self.key.decrypt(name, &encrypted)).transpose()
    }

    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
        let names = self.documents.names(&self.key.stored(folder)).await?;
        Ok(names.iter().filter_map(|name| name.strip_prefix(&self.key.folder)).map(str::to_owned).collect())
    }

    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
        let stored = self.key.stored(name);
        let encrypted = self.documents.read(&stored).await?;
        let found = encrypted.as_deref().map(|encrypted| self.key.decrypt(name, encrypted)).transpose()?;
        if found.as_deref() != old {
            return Err(DocumentError::Changed(name.to_owned()));
        }
        let new = new.map(|new| self.key.encrypt(name, new)).transpose()?;
        self.documents.replace(&stored, encrypted.as_deref(), new.as_deref()).await.map_err(|error| match error {
            DocumentError::Changed(_) => DocumentError::Changed(name.to_owned()),
            failed => failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use polis_testkit::{MemoryDocuments, document_conformance};

    use super::*;

    const ONE: &str = "a key of at least thirty-two characters";

    fn with(documents: &MemoryDocuments, key: &str) -> EncryptedDocuments {
        EncryptedDocuments::new(Arc::new(documents.clone()), LoginsKey::parse(key).unwrap())
    }

    #[tokio::test]
    async fn encrypted_documents_keep_the_contract_of_documents() {
        document_conformance::check(|| -> Arc<dyn Documents> { Arc::new(with(&MemoryDocuments::default(), ONE)) }).await;
    }

    #[tokio::test]
    async fn documents_of_different_keys_and_names_are_apart() {
        let stored = MemoryDocuments::default();
        let (one, other) = (with(&stored, ONE), with(&stored, &ONE.replace("key", "lock")));
        one.replace("logins/a", None, Some(b"a secret")).await.unwrap();
        let [name] = &*stored.names("encrypted/").await.unwrap() else { panic!("there is one") };
        let encrypted = stored.read(name).await.unwrap().unwrap();
        assert!(!encrypted.windows(6).any(|six| six == b"secret"));
        // A node with another key neither sees it nor replaces it.
        assert_eq!(other.read("logins/a").await, Ok(None));
        other.replace("logins/a", None, Some(b"another")).await.unwrap();
        assert_eq!(one.read("logins/a").await, Ok(Some(b"a secret".to_vec())));
        assert_eq!(one.names("logins/").await, Ok(vec!["logins/a".to_owned()]));
        // One that was put in the place of another is not taken for it.
        stored.replace(&name.replace("logins/a", "logins/b"), None, Some(&encrypted)).await.unwrap();
        assert!(one.read("logins/b").await.is_err_and(|error| error.to_string().contains("damaged")));
        assert!(LoginsKey::parse("short").is_err_and(|error| error.to_string().contains("fewer than 32 characters")));
    }
}
