//! A map of which only a part may be in memory.

use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The entries that are in memory. While the store may have others ([`Table::set_partial`]), each key that is looked up in vain
/// is noted, so that its entry can be loaded and the lookup repeated.
#[derive(Debug)]
pub struct Table<K, V> {
    entries: FxHashMap<K, V>,
    is_partial: bool,
    misses: Mutex<Vec<K>>,
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    /// The entry of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).or_else(|| self.miss(key))
    }

    /// The entry of a key, with the key as the table has it.
    pub fn get_key_value(&self, key: &K) -> Option<(&K, &V)> {
        self.entries.get_key_value(key).or_else(|| self.miss(key))
    }

    /// Whether there is an entry.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Whether the entry is in memory. Asking for it does not load it.
    pub fn is_loaded(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// How many entries are in memory.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry is in memory.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in memory.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.entries.iter()
    }

    /// The keys of the entries in memory.
    pub fn keys(&self) -> impl Iterator<Item = &K> + Clone {
        self.entries.keys()
    }

    /// The entries in memory without their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.entries.values()
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.entries.get_mut(key) {
            Some(entry) => Some(entry),
            None => {
                if self.is_partial {
                    self.misses.get_mut().unwrap_or_else(PoisonError::into_inner).push(key.clone());
                }
                None
            }
        }
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut()
    }

    pub(crate) fn insert(&mut self, key: K, entry: V) {
        self.entries.insert(key, entry);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }

    pub(crate) fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// The keys that were looked up in vain since the last time.
    pub(crate) fn take_misses(&self) -> Vec<K> {
        if !self.is_partial {
            return Vec::new();
        }
        mem::take(&mut *self.misses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn miss<T>(&self, key: &K) -> Option<T> {
        if self.is_partial {
            self.misses.lock().unwrap_or_else(PoisonError::into_inner).push(key.clone());
        }
        None
    }
}

impl<K: Clone, V: Clone> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), is_partial: self.is_partial, misses: Mutex::default() }
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), is_partial: false, misses: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<K: Clone + Eq + Hash, V> std::ops::Index<&K> for Table<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        &self.entries[key]
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = std::collections::hash_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Table<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entries.serialize(serializer)
    }
}

impl<'de, K: Deserialize<'de> + Eq + Hash, V: Deserialize<'de>> Deserialize<'de> for Table<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { entries: FxHashMap::deserialize(deserializer)?, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_partial_table_notes_what_it_lacks() {
        let mut table = Table::default();
        table.insert("a", 1);
        assert_eq!((table.get(&"a"), table.get(&"b")), (Some(&1), None));
        assert_eq!(table.take_misses(), Vec::<&str>::new());
        table.set_partial();
        assert_eq!((table.get(&"a"), table.get(&"b")), (Some(&1), None));
        assert_eq!(table.get_mut(&"c"), None);
        assert!(!table.is_loaded(&"d"), "this asks for nothing");
        assert_eq!(table.take_misses(), ["b", "c"]);
        assert_eq!(table.take_misses(), Vec::<&str>::new());
    }
}
