//! Documents in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_ports::{DocumentError, Documents};

/// Keeps documents as long as it lives. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct MemoryDocuments(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

#[async_trait]
impl Documents for MemoryDocuments {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
        let documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(documents.keys().filter(|name| name.starts_with(folder)).cloned().collect())
    }

    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if documents.get(name).map(Vec::as_slice) != old {
            return Err(DocumentError::Changed(name.to_owned()));
        }
        match new {
            Some(new) => drop(documents.insert(name.to_owned(), new.to_vec())),
            None => drop(documents.remove(name)),
        }
        Ok(())
    }
}
