//! How stores keep an idle entry: what it is listed as, in columns, and its checksum.

use polis_domain::{ConversationPlace, Seq};
use polis_ports::{IdleList, StoredEntry};

/// What an entry is listed as, as columns have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListColumns {
    /// 1 for a conversation, 2 for a terminated agent, 3 for a sub-thread; none if it is in no list.
    pub kind: Option<u8>,
    /// Whether the conversation is pinned.
    pub pinned: Option<bool>,
    /// Where the newest message of the conversation is.
    pub active: Option<i64>,
}

impl ListColumns {
    /// The columns of an entry.
    pub fn of(list: Option<IdleList>) -> Self {
        let kind = |kind| Self { kind: Some(kind), ..Self::default() };
        match list {
            Some(IdleList::Conversation(place)) => {
                Self { pinned: Some(place.pinned), active: Some(place.active.0 as i64), ..kind(1) }
            }
            Some(IdleList::Terminated) => kind(2),
            Some(IdleList::Thread) => kind(3),
            None => Self::default(),
        }
    }

    /// What the columns say. Whatever they should not be is noticed by [`checksum`].
    pub fn list(self) -> Option<IdleList> {
        match self {
            Self { kind: Some(1), pinned: Some(pinned), active: Some(active) } => {
                Some(IdleList::Conversation(ConversationPlace { pinned, active: Seq(active as u64) }))
            }
            Self { kind: Some(2), .. } => Some(IdleList::Terminated),
            Self { kind: Some(3), .. } => Some(IdleList::Thread),
            _ => None,
        }
    }
}

/// The checksum over everything in a row.
pub fn checksum(entry: &StoredEntry) -> u32 {
    let StoredEntry { name, message, person, list, body } = entry;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(format!("{name}\0{message:?}\0{person:?}\0{list:?}\0").as_bytes());
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_listed_as_its_columns_say_and_any_change_shows() {
        let place = ConversationPlace { pinned: true, active: Seq(7) };
        let lists = [Some(IdleList::Conversation(place)), Some(IdleList::Terminated), Some(IdleList::Thread), None];
        assert_eq!(lists.map(|list| ListColumns::of(list).list()), lists);
        let entry = |list| StoredEntry { name: "a".into(), message: None, person: None, list, body: b"{}".to_vec() };
        let sums: std::collections::BTreeSet<_> = lists.into_iter().map(|list| checksum(&entry(list))).collect();
        assert_eq!(sums.len(), lists.len());
    }
}
