//! A model that answers from a cassette and from nothing else.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream;
use polis_ports::{Delta, DeltaStream, Model, ModelError, ModelRequest};

use super::diff::{difference, likeness, rendering};
use super::wire::{Asked, End, Interaction};
use super::{CassetteError, read};

/// Answers each request with the recorded interaction of the same request, each of them once, in their order; it does not
/// matter in which order different requests come. Every other request is rejected, with the nearest one and what differs.
#[derive(Debug)]
pub struct Replayer {
    file: PathBuf,
    tracks: Mutex<Vec<Track>>,
}

#[derive(Debug)]
struct Track {
    line: usize,
    key: String,
    interaction: Interaction,
    used: bool,
}

impl Replayer {
    /// Reads the whole cassette.
    pub fn open(file: &Path) -> Result<Self, CassetteError> {
        let (interactions, _) = read(file)?;
        let track = |(line, interaction): (usize, Interaction)| {
            let key = interaction.request.key();
            Track { line, key, interaction, used: false }
        };
        Ok(Self { file: file.to_owned(), tracks: Mutex::new(interactions.into_iter().map(track).collect()) })
    }

    /// The interactions that nobody asked for, as line and last words. Those that were dropped half-way do not count.
    pub fn unused(&self) -> Vec<String> {
        let tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
        let left = tracks.iter().filter(|track| !track.used && track.interaction.end != End::Dropped);
        left.map(|track| format!("line {}: {}", track.line, track.interaction.request.last_words())).collect()
    }

    fn take(&self, asked: &Asked) -> Result<Interaction, String> {
        let key = asked.key();
        let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same: Vec<_> = tracks.iter_mut().filter(|track| track.key == key).collect();
        // One that was dropped was followed by another try, so it is worth something only when nothing else is left.
        same.sort_by_key(|track| track.interaction.end == End::Dropped);
        let times = same.len();
        if let Some(track) = same.into_iter().find(|track| !track.used) {
            track.used = true;
            return Ok(track.interaction.clone());
        }
        let file = self.file.display();
        if times > 0 {
            return Err(format!("{file} has this request {times} times, and it was asked once more: {}", asked.last_words()));
        }
        let wanted = rendering(asked);
        let mut nearest: Option<(f64, &Track, Vec<String>)> = None;
        for track in tracks.iter() {
            let recorded = rendering(&track.interaction.request);
            let alike = likeness(&recorded, &wanted);
            let is_nearer =
                |(best, other, _): &(f64, &Track, _)| alike > *best || (alike == *best && other.used && !track.used);
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some((alike, track, recorded));
            }
        }
        Err(match nearest {
            Some((_, track, recorded)) => format!(
                "{file} has no such request; the nearest is in line {}{} (- recorded, + asked):\n{}",
                track.line,
                if track.used { ", used already" } else { "" },
                difference(&recorded, &wanted)
            ),
            None => format!("{file} has no requests, and this was asked: {}", asked.last_words()),
        })
    }
}

#[async_trait]
impl Model for Replayer {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let Interaction { deltas, end, .. } =
            self.take(&Asked::from(&request)).map_err(|reason| ModelError::Rejected { reason })?;
        let last = match end {
            End::Done | End::Cut => None,
            End::Dropped => Some(ModelError::Cut { reason: "the recording of this reply is incomplete".to_owned() }),
            End::Error(refusal) if deltas.is_empty() => return Err(refusal.into()),
            End::Error(refusal) => Some(refusal.into()),
        };
        let deltas = deltas.into_iter().map(|piece| Ok(Delta::from(piece)));
        Ok(Box::pin(stream::iter(deltas.chain(last.map(Err)))))
    }
}
