//! How the actor gets along with a spine of which only a part is in memory.

use polis_domain::{Seq, Spine, Timestamp};
use polis_ports::LogError;

use super::Actor;
use crate::CommandError;
use crate::fold::fold_on;
use crate::idle::IdleStore;
use crate::shared::{ActorMessage, Look};

/// A large snapshot makes the interval until the next one longer, by one event for each of this many bytes, so that the cost of
/// snapshots per event does not grow with the open work.
const SNAPSHOT_BYTES_AN_EVENT: u64 = 64;

/// How many entries may be loaded before a snapshot unloads them, in a society that is only read.
const MAX_LOADED: usize = 4_096;

impl Actor {
    /// Loads the parts of the spine that the commands of a batch name, so that deciding needs no wait.
    pub(super) async fn load_for(&mut self, batch: &[ActorMessage]) -> Result<(), LogError> {
        self.asked.clear();
        if !self.spine.is_partial() {
            return Ok(());
        }
        // What was looked up in vain between two passes is of no interest.
        self.spine.take_misses();
        let sent = batch.iter().filter_map(|message| match message {
            ActorMessage::Command { command, .. } => Some(command),
            _ => None,
        });
        let missing: Vec<_> =
            self.ended_at_once.iter().chain(sent).flat_map(|command| self.spine.missing_for(command)).collect();
        if !missing.is_empty() {
            self.loaded += missing.len();
            self.asked = self.idle.load(&mut self.spine, missing).await?;
        }
        Ok(())
    }

    /// Answers the commands of a batch that could not be decided. Queries wait until the log can be read.
    pub(super) fn refuse(&mut self, batch: &mut Vec<ActorMessage>, error: &LogError) {
        for message in batch.drain(..) {
            match message {
                ActorMessage::Command { reply: Some(reply), .. } | ActorMessage::Flush { reply } => {
                    // An error means that the sender no longer waits.
                    let _ = reply.send(Err(CommandError::unavailable(error)));
                }
                ActorMessage::Look(look) => self.unanswered.push(look),
                ActorMessage::Stop { grace } => {
                    self.stopping = Some(Timestamp(self.shared.ports.clock.now().0 + grace.as_millis() as u64));
                }
                // Dropping the reply of a new state says that it is not wanted.
                ActorMessage::Command { reply: None, .. } | ActorMessage::Rest { .. } | ActorMessage::Refold { .. } => {}
            }
        }
    }

    /// Answers queries from the committed state. If the store fails, those that are left wait for the recovery.
    pub(super) async fn answer_looks(&mut self, looks: Vec<Look>) -> Result<(), LogError> {
        let mut looks = looks.into_iter();
        while let Some(look) = looks.next() {
            match self.idle.answer(&mut self.spine, &look).await {
                Ok(release) => release(),
                Err(error) => {
                    self.unanswered.push(look);
                    self.unanswered.extend(looks);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// In debug builds: a command that needs a part of the spine must name it, so that it is loaded before it is decided.
    pub(super) fn check_loaded(&self) {
        if cfg!(debug_assertions) && self.spine.is_partial() {
            let unasked: Vec<_> = self.spine.take_misses().into_iter().filter(|key| !self.asked.contains(key)).collect();
            assert!(unasked.is_empty(), "{unasked:?} was needed and not loaded");
        }
    }

    pub(super) fn is_snapshot_due(&self) -> bool {
        let is_due = self.spine.seq >= self.next_snapshot_at || self.loaded > MAX_LOADED;
        self.refolded.is_some() || is_due && !self.idle.is_saving()
    }

    /// Begins a snapshot when one is due, so that the next opening folds only what follows it and what is idle leaves memory.
    ///
    /// Called only when the spine equals the committed log, never with a pass in progress or in flight: a snapshot of events that
    /// are not in the log would survive a crash that they do not. Here the idle entries are taken out and the rest is copied; all
    /// else is done by the store. The next position is set before the save is tried, so that a disk that refuses snapshots is not
    /// asked again at every pass.
    pub(super) async fn keep_snapshots(&mut self) -> Result<(), LogError> {
        if let Some((spine, reply)) = self.refolded.take() {
            let is_saved = self.replace_spine(*spine).await?;
            // An error means that the erasure was dropped; the next opening does it again.
            let _ = reply.send(is_saved);
        }
        if self.idle.is_saved()
            && let Some(bytes) = self.idle.saved(&mut self.spine).await
        {
            self.next_snapshot_at = Seq(self.idle.at.0 + self.options.snapshot_every.max(bytes / SNAPSHOT_BYTES_AN_EVENT));
        }
        if self.is_snapshot_due() {
            self.loaded = 0;
            self.next_snapshot_at = Seq(self.spine.seq.0 + self.options.snapshot_every);
            self.idle.begin_save(&mut self.spine);
        }
        Ok(())
    }

    /// Puts a state that was folded anew, because texts were erased from the log, in the place of the present one, and saves it with
    /// all that is idle. Returns whether it was saved. It is the same state but for these texts, so turns and timers go on.
    async fn replace_spine(&mut self, mut spine: Spine) -> Result<bool, LogError> {
        self.idle.saved(&mut self.spine).await;
        let log = self.shared.ports.log.clone();
        fold_on(&*log, &self.shared.society, &mut spine, None, self.committed).await?;
        self.spine = spine;
        self.idle = IdleStore::new(log, self.shared.society.clone(), Seq(0));
        self.shared.recent.clear();
        (self.loaded, self.next_snapshot_at) = (0, Seq(self.spine.seq.0 + self.options.snapshot_every));
        self.idle.begin_save(&mut self.spine);
        Ok(self.idle.saved(&mut self.spine).await.is_some())
    }
}
