//! What the actor does while the log is failing.

use polis_domain::{Failure, Timestamp};
use polis_ports::LogError;

use super::Actor;
use crate::CommandError;
use crate::fold::fold_through;
use crate::shared::ActorMessage;

/// What to do after [`Actor::standby`].
pub(crate) enum Standby {
    TryAgain,
    Stop,
}

impl Actor {
    /// While the log is failing: rejects commands and answers queries from the last committed state, until it is time to try
    /// again.
    pub(crate) async fn standby(&mut self, error: &LogError) -> Standby {
        self.set_standby(Some(Failure::new(error.code(), error.to_string())));
        self.scheduler.clear().await;
        let mut is_readable = self.roll_back().await.is_ok();
        let looks = std::mem::take(&mut self.unanswered);
        if is_readable {
            // A query that is dropped fails at its sender.
            let _ = self.answer_looks(looks).await;
            self.unanswered.clear();
        }
        let clock = self.shared.ports.clock.clone();
        let mut wake = clock.sleep_until(Timestamp(clock.now().0 + self.options.retry_ms));
        loop {
            let message = tokio::select! {
                biased;
                message = self.mailbox.recv() => message,
                () = &mut wake => return Standby::TryAgain,
            };
            match message {
                Some(ActorMessage::Command { reply: Some(reply), .. } | ActorMessage::Flush { reply }) => {
                    // An error means that the sender no longer waits.
                    let _ = reply.send(Err(CommandError::unavailable(error)));
                }
                Some(ActorMessage::Look(look)) => {
                    is_readable = is_readable || self.roll_back().await.is_ok();
                    if is_readable && let Ok(release) = self.idle.answer(&mut self.spine, &look).await {
                        release();
                    }
                }
                Some(ActorMessage::Command { reply: None, .. } | ActorMessage::Rest { .. } | ActorMessage::Refold { .. }) => {}
                Some(ActorMessage::Stop { .. }) | None => return Standby::Stop,
            }
        }
    }

    /// Discards the changes of a failed pass: folds the log again up to the last certain event. Needs reads only, so queries
    /// can be answered while the disk is full.
    pub(super) async fn roll_back(&mut self) -> Result<(), LogError> {
        if self.spine.seq != self.committed {
            self.idle.saved(&mut self.spine).await;
            (self.spine, self.idle) = fold_through(&self.shared.ports, &self.shared.society, self.committed).await?;
        }
        Ok(())
    }
}
