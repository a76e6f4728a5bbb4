//! The societies of a store: the list, a new one, a fork, and going on from an earlier event.

use polis_domain::{Seq, SocietyId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The societies of the store, by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Societies")]
pub struct SocietyList {
    /// The societies of this page.
    pub societies: Vec<ListedSociety>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A society of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Society")]
pub struct ListedSociety {
    /// Its name.
    pub name: SocietyId,
    /// How many events its log has.
    pub events: Seq,
    /// Whether it is at work here; else it begins to with the next request.
    pub works: bool,
    /// Whether it is the one that is meant where none is named.
    pub first: bool,
    /// The society whose events it has from before it was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SocietyId>,
    /// The last event that both share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<Seq>,
}

/// A society that is to be there.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginSociety {
    /// What to call it.
    pub name: String,
}

/// It is there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct BegunSociety {
    /// Its name.
    pub society: SocietyId,
    /// Whether it was not there before.
    pub begun: bool,
}

/// Where a society parts from this one.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The last event that both share; now, if not given.
    #[serde(default)]
    pub at: Option<u64>,
    /// What to call it.
    #[serde(default)]
    pub name: Option<String>,
}

/// Where the society goes on from.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// The last event that stays.
    pub to: u64,
}

/// A society that was made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeSociety {
    /// Its name.
    pub society: SocietyId,
    /// The society whose events it has.
    pub from: SocietyId,
    /// The last event that both share.
    pub at: Seq,
    /// What the society of before is called now, after a rewind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<SocietyId>,
    /// Turns that are open in it and go on when it works.
    pub open_turns: usize,
    /// Calls whose result is not known in it.
    pub in_doubt: usize,
}
