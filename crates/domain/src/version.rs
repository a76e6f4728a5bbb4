//! CodeVersions of behaviours: the code of one name in several shapes, side by side, while turns that began with an older one are open.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Behaviour;

/// The version of the code behind a behaviour. A turn keeps the one that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CodeVersion(pub u32);

impl CodeVersion {
    /// The version of code that was registered without one, and of turns in logs from before there were versions.
    pub const FIRST: Self = Self(1);

    pub(crate) fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl Default for CodeVersion {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for CodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The newest versions of behaviours, without those that are at the first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CodeVersions(BTreeMap<Behaviour, CodeVersion>);

impl CodeVersions {
    /// The version that a new turn of this behaviour begins with.
    pub fn newest(&self, behaviour: &Behaviour) -> CodeVersion {
        self.0.get(behaviour).copied().unwrap_or_default()
    }

    /// The version of a unit that a turn opens: its own for units of its own behaviour. Their names say whose they are, see
    /// [`Behaviour::owner`].
    pub(crate) fn of_unit(&self, behaviour: &Behaviour, version: CodeVersion, unit: &Behaviour) -> CodeVersion {
        match behaviour.owner() == unit.owner() {
            true => version,
            false => self.newest(&unit.owner().into()),
        }
    }
}

impl FromIterator<(Behaviour, CodeVersion)> for CodeVersions {
    fn from_iter<I: IntoIterator<Item = (Behaviour, CodeVersion)>>(newest: I) -> Self {
        Self(newest.into_iter().filter(|(_, version)| !version.is_first()).collect())
    }
}

impl Behaviour {
    /// The part of the name that has versions: `article` of the unit `article/execute_subthread/initial_phase`.
    pub fn owner(&self) -> &str {
        self.as_str().split_once('/').map_or(self.as_str(), |(owner, _)| owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, decode_event};

    #[test]
    fn a_turn_in_a_log_from_before_there_were_versions_has_the_first() {
        let started = serde_json::json!({ "turnStarted": { "agent": "root", "behaviour": "role", "phase": "initial_phase",
            "task": { "id": "t", "name": "message", "type": "message", "message": "hello" }, "origin": "inbox", "index": 0 } });
        for version in 1..=crate::EVENT_VERSION {
            let event = decode_event(version, started.to_string().as_bytes()).unwrap();
            assert!(matches!(&event, Event::TurnStarted { version: CodeVersion::FIRST, .. }), "{event:?}");
            assert!(!serde_json::to_string(&event).unwrap().contains("version"), "the first is not written");
        }
    }

    #[test]
    fn units_follow_the_turn_that_opens_them_and_units_of_other_code_the_newest() {
        let versions: CodeVersions =
            [("article".into(), CodeVersion(3)), ("plain".into(), CodeVersion::FIRST), ("other".into(), CodeVersion(2))]
                .into_iter()
                .collect();
        assert_eq!(serde_json::to_string(&versions).unwrap(), r#"{"article":3,"other":2}"#);
        let unit =
            |behaviour: &str, version, unit: &str| versions.of_unit(&behaviour.into(), CodeVersion(version), &unit.into()).0;
        assert_eq!(unit("article", 2, "article/write/initial_phase"), 2);
        assert_eq!(unit("article/write/initial_phase", 1, "article/write/below/x"), 1);
        assert_eq!(unit("article", 2, "other/x"), 2);
        assert_eq!(unit("other", 1, "article/x"), 3);
        assert_eq!(unit("other", 2, "plain"), 1);
        assert_eq!(versions.newest(&"article".into()), CodeVersion(3));
    }
}
