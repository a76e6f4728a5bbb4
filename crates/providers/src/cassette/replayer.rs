//! A model that answers from a cassette and from nothing else.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream;
use polis_ports::{
    Capabilities, ChatMessage, Delta, DeltaStream, MediaKind, Model, ModelDescription, ModelError, ModelRequest,
};

use super::diff::{difference, render, similarity};
use super::format::{End, Interaction, RecordedRequest};
use super::{CassetteError, read};

/// Answers each request with the recorded interaction of the same request, each of them once, in their order; it does not
/// matter in which order different requests come. Every other request is rejected, with the nearest one and what differs.
#[derive(Debug)]
pub struct Replayer {
    file: PathBuf,
    entries: Mutex<Vec<RecordedEntry>>,
}

#[derive(Debug)]
struct RecordedEntry {
    line: usize,
    key: String,
    interaction: Interaction,
    used: bool,
}

impl Replayer {
    /// Reads the whole cassette.
    pub fn open(file: &Path) -> Result<Self, CassetteError> {
        let (interactions, _) = read(file)?;
        let entry = |(line, interaction): (usize, Interaction)| {
            let key = interaction.request.key();
            RecordedEntry { line, key, interaction, used: false }
        };
        Ok(Self { file: file.to_owned(), entries: Mutex::new(interactions.into_iter().map(entry).collect()) })
    }

    /// The interactions that nobody asked for, as line and last words. Those that were dropped half-way do not count.
    pub fn unused(&self) -> Vec<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let left = entries.iter().filter(|entry| !entry.used && entry.interaction.end != End::Dropped);
        left.map(|entry| format!("line {}: {}", entry.line, entry.interaction.request.last_message())).collect()
    }

    fn take(&self, request: &RecordedRequest) -> Result<Interaction, String> {
        let key = request.key();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same: Vec<_> = entries.iter_mut().filter(|entry| entry.key == key).collect();
        // One that was dropped was followed by another try, so it is worth something only when nothing else is left.
        same.sort_by_key(|entry| entry.interaction.end == End::Dropped);
        let times = same.len();
        if let Some(entry) = same.into_iter().find(|entry| !entry.used) {
            entry.used = true;
            return Ok(entry.interaction.clone());
        }
        let file = self.file.display();
        if times > 0 {
            return Err(format!(
                "{file} has this request {times} times, and it was asked once more: {}",
                request.last_message()
            ));
        }
        let requested = render(request);
        let mut nearest: Option<(f64, &RecordedEntry, Vec<String>)> = None;
        for entry in entries.iter() {
            let recorded = render(&entry.interaction.request);
            let similarity = similarity(&recorded, &requested);
            let is_nearer = |(best, other, _): &(f64, &RecordedEntry, _)| {
                similarity > *best || (similarity == *best && other.used && !entry.used)
            };
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some((similarity, entry, recorded));
            }
        }
        Err(match nearest {
            Some((_, entry, recorded)) => format!(
                "{file} has no such request; the nearest is in line {}{} (- recorded, + asked):\n{}",
                entry.line,
                if entry.used { ", used already" } else { "" },
                difference(&recorded, &requested)
            ),
            None => format!("{file} has no requests, and this was asked: {}", request.last_message()),
        })
    }
}

#[async_trait]
impl Model for Replayer {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let Interaction { deltas, end, .. } =
            self.take(&RecordedRequest::from(&request)).map_err(|reason| ModelError::Rejected { reason })?;
        let last = match end {
            End::Done | End::Cut => None,
            End::Dropped => Some(ModelError::Cut { reason: "the recording of this reply is incomplete".to_owned() }),
            End::Error(refusal) if deltas.is_empty() => return Err(refusal.into()),
            End::Error(refusal) => Some(refusal.into()),
        };
        let deltas = deltas.into_iter().map(|delta| Ok(Delta::from(delta)));
        Ok(Box::pin(stream::iter(deltas.chain(last.map(Err)))))
    }

    /// The recorded model was told in words about media that it did not take, so no request that is left has any. It had the
    /// vendor's tools that the requests name.
    fn description(&self, _model: &str) -> ModelDescription {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let left = || entries.iter().filter(|entry| !entry.used).map(|entry| &entry.interaction.request);
        let media = || left().flat_map(|request| &request.messages).flat_map(ChatMessage::media);
        let is_shown = |kind| media().any(|media| media.kind() == Some(kind));
        let absent = MediaKind::ALL.into_iter().filter(|kind| !is_shown(*kind));
        let mut capabilities = absent.fold(Capabilities::default(), Capabilities::without);
        capabilities.vendor_tools = Some(left().flat_map(|request| request.vendor_tools.iter().copied()).collect());
        ModelDescription { capabilities, ..ModelDescription::default() }
    }
}
