//! The artifacts that a log names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::redacted::is_erased;
use crate::{AgentId, Artifact, ArtifactId, Event, Outcome, PersonId, Recorded, Seq, TaskId, Timestamp, Visibility};

/// A reference with its position in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedArtifact {
    /// The reference.
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The first event that referred to it under this name.
    pub seq: Seq,
    /// The time of that event.
    pub at: Timestamp,
    /// The agent that it belongs to; none if a person sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The request that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The person whose conversation names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
}

/// All artifacts that a log names, in order; each content once for each person and each of its names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Catalogue {
    entries: Vec<ListedArtifact>,
    /// The positions in `entries`, by content.
    places: BTreeMap<ArtifactId, Vec<u32>>,
}

impl Catalogue {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them, in the order of the log.
    pub fn entries(&self) -> &[ListedArtifact] {
        &self.entries
    }

    /// The first reference to a content that can be seen.
    pub fn find(&self, id: &ArtifactId, visibility: &Visibility) -> Option<&ListedArtifact> {
        let entries = self.places.get(id)?.iter().filter_map(|place| self.entries.get(*place as usize));
        entries.into_iter().find(|listed| visibility.artifact(listed))
    }

    pub(crate) fn list(&mut self, entry: ListedArtifact) {
        let places = self.places.entry(entry.artifact.id).or_default();
        let is_same = |other: &ListedArtifact| other.artifact.name == entry.artifact.name && other.person == entry.person;
        let is_known = places.iter().any(|place| is_same(&self.entries[*place as usize]));
        if !is_known {
            places.push(self.entries.len() as u32);
            self.entries.push(entry);
        }
    }
}

impl Recorded {
    /// The artifacts that the event refers to.
    pub fn artifacts(&self) -> Vec<Artifact> {
        match &self.event {
            Event::EffectEnded { outcome: Outcome::Result(result), .. } => {
                result.artifacts.iter().chain(&result.media).cloned().collect()
            }
            Event::EffectEnded { outcome: Outcome::Kept(artifact), .. } if is_erased(artifact) => Vec::new(),
            Event::EffectEnded { outcome: Outcome::Kept(artifact), .. } => vec![artifact.clone()],
            Event::EffectEnded { outcome: Outcome::Verdict(verdict), .. } => verdict.artifacts.clone(),
            Event::ConversationStarted { messages, .. } => {
                messages.iter().flat_map(|message| Artifact::attached(&message.meta)).collect()
            }
            Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => {
                Artifact::attached(&message.meta)
            }
            Event::MessageUpdated { patch, .. } => Artifact::attached(&patch.meta),
            event => event.envelope().map(|envelope| Artifact::attached(&envelope.payload.meta)).unwrap_or_default(),
        }
    }
}
