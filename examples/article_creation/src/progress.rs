//! What happens, a line for each step, for whoever waits.

use polis::ports::LogError;
use polis::{Event, Watch, WatchEvent};

use crate::tell;

/// Tells of each step that begins, until the log cannot be read.
pub(crate) async fn tell_of(watch: &mut Watch) -> LogError {
    loop {
        match watch.next().await {
            Ok(Some(WatchEvent::Event(recorded))) => {
                if let Event::TurnStarted { behaviour, phase, task, .. } = &recorded.event {
                    let depth = behaviour.to_string().matches('/').count();
                    let about: String = task.message.lines().next().unwrap_or_default().chars().take(60).collect();
                    tell(&format!("{}{phase}: {about}", "  ".repeat(depth)));
                }
            }
            Ok(Some(WatchEvent::Delta(_) | WatchEvent::Step(_))) => {}
            Ok(None) => std::future::pending().await,
            Err(error) => return error,
        }
    }
}
