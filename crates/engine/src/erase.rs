//! Erasing the content of conversations: the intent, then the texts in the log, then everything that was made of them.
//!
//! The log says first what is erased. Then the texts are taken out of the events, the state is folded anew from what is left and
//! takes the place of the present one, nothing of the old texts stays in free room or snapshots, and artifacts that nothing else
//! names are removed. At last the log says that it is done; until then, an opening does it again.

use std::collections::BTreeSet;

use polis_domain::{
    AgentId, ArtifactId, Command, ConversationPlace, Erasure, Event, Recorded, Refusal, Seq, Spine, Target, TaskId,
    Termination, ThreadId, Timestamp,
};
use polis_ports::LogError;
use tokio::sync::oneshot;

use crate::error::CommandError;
use crate::fold::fold_from_zero;
use crate::shared::{ActorMessage, Shared};
use crate::society::Society;

/// How many conversations are erased together: each time the log is read.
const ERASED_AT_ONCE: usize = 100;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// What the events of conversations refer to.
#[derive(Default)]
struct Found {
    artifacts: BTreeSet<ArtifactId>,
    /// The threads of turns, also those of agents elsewhere.
    threads: BTreeSet<ThreadId>,
}

/// An erasure that the log says is to be done.
struct Pending {
    agent: AgentId,
    said: Event,
    seq: Seq,
    at: Timestamp,
}

impl Society {
    /// Erases the content of a conversation for good. One that goes on is ended first, with all of its requests. Returns when it is
    /// done; false if there was nothing left to erase.
    ///
    /// # Errors
    ///
    /// [`CommandError`]. After the log has said what is erased, it is done at the next opening at the latest.
    pub async fn erase_conversation(&self, agent: AgentId) -> Result<bool, CommandError> {
        let (asked, visibility) = (agent.clone(), self.visibility.clone());
        let is_known = move |spine: &Spine| {
            let is_ended = spine.terminated.get(&asked).is_some_and(|gone| gone.person.is_some());
            visibility.agent(spine, &asked) && (is_ended || spine.conversation(&asked).is_some())
        };
        if !self.look(is_known).await? {
            return Err(Refusal::UnknownConversation(agent).into());
        }
        if agent == AgentId::root() {
            return Err(Refusal::RootStays.into());
        }
        if self.done_before().await?.is_none() {
            self.end_requests(&agent).await?;
        }
        let found = scan(self.shared(), std::slice::from_ref(&agent)).await?.pop().unwrap_or_default();
        let is_new = self.record_erasure(agent, found, None).await?;
        finish_erasures(self.shared()).await?;
        Ok(is_new)
    }

    /// Erases the content of the conversations without a message since a time: those that are neither pinned nor have open requests,
    /// and those that were deleted before that time. Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Self::erase_conversation`].
    pub async fn erase_older(&self, before: Timestamp) -> Result<usize, CommandError> {
        let mut erased = 0;
        for some in self.conversations_older(before).await?.chunks(ERASED_AT_ONCE) {
            for (agent, found) in some.iter().zip(scan(self.shared(), some).await?) {
                match self.record_erasure(agent.clone(), found, Some(before)).await {
                    Ok(is_new) => erased += usize::from(is_new),
                    // It has been used since, or another agent still works for it.
                    Err(CommandError::Refused(refusal)) => tracing::debug!(%agent, %refusal, "not erased"),
                    Err(error) => return Err(error),
                }
            }
            finish_erasures(self.shared()).await?;
        }
        Ok(erased)
    }

    /// The conversations that [`Self::erase_older`] takes, the oldest first. Some of them may have been used since they were stored.
    async fn conversations_older(&self, before: Timestamp) -> Result<Vec<AgentId>, CommandError> {
        // A place of the list is that of a message, pinned ones come first.
        let place = ConversationPlace { pinned: false, active: self.first_at(before).await? };
        let loaded = move |spine: &Spine| {
            let known: BTreeSet<AgentId> =
                spine.conversations.after(ConversationPlace::START).map(|(_, agent)| agent.clone()).collect();
            let old: Vec<AgentId> = spine.conversations.after(place).map(|(_, agent)| agent.clone()).collect();
            let terminated = spine.terminated.iter().filter(|(_, it)| is_to_erase(it, before));
            (known, old, terminated.map(|(agent, _)| agent.clone()).collect::<Vec<_>>())
        };
        let (known, loaded, terminated) = self.look(loaded).await?;
        let idle = self.idle_conversations(place, usize::MAX).await?;
        let idle_terminated = self.idle_terminated().await?.into_iter();
        let idle_terminated =
            idle_terminated.filter(|(_, entry)| entry.termination().is_some_and(|it| is_to_erase(it, before)));
        let mut old: Vec<AgentId> = terminated.into_iter().chain(idle_terminated.map(|(agent, _)| agent)).collect();
        // The lists begin with the newest. An entry of a conversation that is in memory is as it was when it was stored.
        let idle = idle.into_iter().rev().map(|(agent, _)| agent).filter(|agent| !known.contains(agent));
        old.extend(idle.chain(loaded.into_iter().rev()));
        let mut seen = BTreeSet::new();
        old.retain(|agent| *agent != AgentId::root() && seen.insert(agent.clone()));
        Ok(old)
    }

    /// The place of the first event that is not older than a time, or the place after the last one.
    async fn first_at(&self, time: Timestamp) -> Result<Seq, CommandError> {
        let log = &self.shared().ports.log;
        let (mut low, mut high) = (0, log.head(self.id()).await?.0);
        while low < high {
            let middle = low + (high - low) / 2;
            match log.read(self.id(), Seq(middle), 1).await?.first() {
                Some(recorded) if recorded.at < time => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(Seq(low + 1))
    }

    /// Records that the content of a conversation is erased; false if that was recorded before.
    async fn record_erasure(
        &self,
        agent: AgentId,
        found: Found,
        unused_since: Option<Timestamp>,
    ) -> Result<bool, CommandError> {
        let (threads, own) = (found.threads, agent.clone());
        let busy = self
            .look(move |spine| {
                let is_elsewhere = |id: &AgentId| spine.top(id) != &own;
                let mut turns = spine.turns.values().filter(|turn| is_elsewhere(&turn.agent) && threads.contains(&turn.thread));
                turns.next().map(|turn| (turn.agent.clone(), turn.task.clone()))
            })
            .await?;
        if let Some((agent, task)) = busy {
            return Err(Refusal::ConversationBusy { agent, task }.into());
        }
        let artifacts = found.artifacts.into_iter().collect();
        match self.decision(Command::EraseConversation { agent, artifacts, unused_since }).await {
            Ok(()) => Ok(true),
            Err(CommandError::Refused(Refusal::ErasedAlready(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Cancels the requests of a conversation that other agents still work on.
    async fn end_requests(&self, agent: &AgentId) -> Result<(), CommandError> {
        let asked = agent.clone();
        let open = move |spine: &Spine| {
            let of = spine.activities.iter().filter(|(_, activity)| activity.conversation.as_ref() == Some(&asked));
            of.map(|(task, _)| task.clone()).collect::<Vec<TaskId>>()
        };
        let society = self.unkeyed();
        for task in self.look(open).await? {
            match society.cancel(Target::Task(task), "the conversation is erased").await {
                Ok(()) | Err(CommandError::Refused(Refusal::UnknownTask(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes the state anew from the log, because events that this society shares with another one were redacted.
    pub async fn forget_redacted(&self) -> Result<(), CommandError> {
        Ok(refold(self.shared()).await?)
    }
}

/// Does what the log says is to be erased, and records that. Does nothing if there is nothing.
pub(crate) async fn finish_erasures(shared: &Shared) -> Result<(), LogError> {
    let _one_at_a_time = shared.erasing.lock().await;
    let pending = pending(shared).await?;
    let Some(through) = pending.iter().map(|erasure| erasure.seq).max() else { return Ok(()) };
    redact(shared, &pending, through).await?;
    refold(shared).await?;
    shared.ports.log.forget_redacted(&shared.society).await?;
    for Pending { agent, said, at, .. } in pending {
        let Event::ConversationErased { artifacts, .. } = said else { continue };
        let artifacts = remove_artifacts(shared, artifacts, at).await?;
        let (reply, answer) = oneshot::channel();
        let command = Command::ConfirmErased { agent, artifacts };
        let message = ActorMessage::Command { command, reply: Some(reply) };
        // If this fails, everything is done once more at the next opening, which changes nothing.
        if shared.actor.send(message).await.is_ok() {
            let _ = answer.await;
        }
    }
    Ok(())
}

async fn pending(shared: &Shared) -> Result<Vec<Pending>, LogError> {
    let erasing = shared.look(|spine: &Spine| spine.erasing.clone()).await.ok_or_else(stopped)?;
    let mut pending = Vec::new();
    for (agent, seq) in erasing {
        let said = shared.ports.log.read(&shared.society, Seq(seq.0 - 1), 1).await?;
        let Some(Recorded { at, event, .. }) = said.into_iter().next() else { continue };
        pending.push(Pending { agent, said: event, seq, at });
    }
    Ok(pending)
}

/// Takes the texts out of the events.
async fn redact(shared: &Shared, pending: &[Pending], through: Seq) -> Result<(), LogError> {
    let mut erasure = Erasure::of(pending.iter().map(|erasure| erasure.agent.clone()));
    let mut after = Seq(0);
    while let Some(page) = next_page(shared, after, through).await? {
        after = page.last().map_or(through, |last| last.seq);
        let covered = page.into_iter().filter(|recorded| erasure.covers(recorded));
        let redacted = covered.filter_map(|recorded| {
            let event = recorded.event.redacted();
            (event != recorded.event).then_some(Recorded { event, ..recorded })
        });
        let redacted: Vec<_> = redacted.collect();
        if !redacted.is_empty() {
            shared.ports.log.redact(&shared.society, &redacted).await?;
        }
    }
    Ok(())
}

/// What the events of each of these conversations refer to.
async fn scan(shared: &Shared, agents: &[AgentId]) -> Result<Vec<Found>, LogError> {
    let mut all: Vec<_> = agents.iter().map(|agent| (Erasure::of([agent.clone()]), Found::default())).collect();
    let head = shared.ports.log.head(&shared.society).await?;
    let mut after = Seq(0);
    while let Some(page) = next_page(shared, after, head).await? {
        after = page.last().map_or(head, |last| last.seq);
        for (erasure, found) in &mut all {
            for recorded in page.iter().filter(|recorded| erasure.covers(recorded)) {
                found.artifacts.extend(recorded.artifacts().iter().map(|artifact| artifact.id));
                if let (Event::TurnStarted { .. }, Some(thread)) = (&recorded.event, &recorded.thread) {
                    found.threads.insert(thread.clone());
                }
            }
        }
    }
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// Whether this conversation was terminated before the given time and still has its content.
fn is_to_erase(termination: &Termination, before: Timestamp) -> bool {
    termination.person.is_some() && !termination.erased && termination.terminated_at < before
}

/// The next events of a society up to a position; none at its end.
async fn next_page(shared: &Shared, after: Seq, through: Seq) -> Result<Option<Vec<Recorded>>, LogError> {
    let limit = usize::try_from(through.0.saturating_sub(after.0)).unwrap_or(PAGE).min(PAGE);
    if limit == 0 {
        return Ok(None);
    }
    let page = shared.ports.log.read(&shared.society, after, limit).await?;
    Ok(Some(page).filter(|page| !page.is_empty()))
}

/// Folds the log and gives the state to the actor, which puts it in the place of its own. Nothing that runs is disturbed: the two
/// differ in texts of what has ended.
async fn refold(shared: &Shared) -> Result<(), LogError> {
    let head = shared.ports.log.head(&shared.society).await?;
    let spine = Box::new(fold_from_zero(&*shared.ports.log, &shared.society, head).await?);
    let (reply, answer) = oneshot::channel();
    shared.actor.send(ActorMessage::Refold { spine, reply }).await.map_err(|_| stopped())?;
    match answer.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(LogError::Failed("the state without the erased texts could not be saved".into())),
        Err(_) => Err(stopped()),
    }
}

/// Removes those artifacts that no event of any society names any more.
async fn remove_artifacts(
    shared: &Shared,
    mut artifacts: Vec<ArtifactId>,
    before: Timestamp,
) -> Result<Vec<ArtifactId>, LogError> {
    for society in shared.ports.log.societies().await? {
        let mut after = Seq(0);
        while !artifacts.is_empty() {
            let page = shared.ports.log.read(&society, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for recorded in page.iter().filter(|recorded| !is_erasure(&recorded.event)) {
                let text = serde_json::to_string(&recorded.event).map_err(|error| LogError::Failed(error.into()))?;
                artifacts.retain(|id| !text.contains(&id.to_string()));
            }
        }
    }
    let removed = shared.ports.artifacts.remove(artifacts, before).await;
    removed.map_err(|error| LogError::Failed(error.into()))
}

/// Events that say which artifacts are erased do not refer to them.
fn is_erasure(event: &Event) -> bool {
    matches!(event, Event::ConversationErased { .. } | Event::ErasureDone { .. })
}

fn stopped() -> LogError {
    LogError::Failed("the society has stopped; the erasure goes on when it is opened again".into())
}
