//! Failures that nobody waits for: the sender of the message is notified, or an agent above it, or the person.
//!
//! The sender of the message is notified, unless it is below the agent that failed. If it cannot take messages, the agents above
//! it are tried, and at last the person. A turn that fails on such a notice is reported to the agents above its own agent, so a
//! failure only moves up and never back.

use super::draft::Draft;
use super::message;
use crate::spine::{Spine, Turn};
use crate::{AgentId, Envelope, Failure, MessageKind, Payload, ReplyTo, Task, unique_id};

/// Notifies the first agent that can take the message, otherwise the person. `runs` is how often the turn was run.
///
/// Once the person knows that messages about the request were blocked, nobody is notified: each notice would start one more turn
/// of agents that do not come to an end. The dead letter stays, and so the request is not done.
pub(super) fn report(draft: &mut Draft<'_>, turn: &Turn, failure: &Failure, runs: u8) {
    if draft.spine.activities.get(&turn.task).is_some_and(|activity| activity.is_reported) {
        return;
    }
    let agent = &turn.agent;
    let times = if runs > 1 { format!(" in {runs} runs") } else { String::new() };
    let asked = turn.cause.as_ref().map(|cause| format!(" It was asked: {}", cause.start)).unwrap_or_default();
    let blocked = if draft.is_crashing(agent) { format!(" `{agent}` is blocked until a person acts.") } else { String::new() };
    let mut text = format!(
        "`{agent}` failed{times}: {failure}. Nobody waited for its result; the message is a dead letter.{blocked}{asked}"
    );
    text.truncate(text.floor_char_boundary(draft.spine.limits.text_bytes));
    for to in receivers(draft.spine, turn) {
        // People talk to agents without a parent. What such an agent makes of the failure is for the person to read.
        let is_top = draft.spine.agents.get(&to).is_some_and(|agent| agent.parent.is_none());
        let mut payload = Payload::text(&*text);
        payload.meta.insert(Task::FROM.to_owned(), agent.as_str().into());
        let envelope = Envelope {
            id: unique_id("msg", draft.spine.seed, draft.at, draft.next_draw()),
            from: agent.clone(),
            to,
            task_id: turn.task.clone(),
            kind: MessageKind::Failure(failure.clone()),
            payload,
            reply_to: if is_top { ReplyTo::User } else { ReplyTo::Nobody },
            person: None,
            hops: turn.hops.saturating_add(1),
        };
        if message::send_if_allowed(draft, envelope, Some(&turn.thread)) {
            return;
        }
    }
    message::notify_user(draft, agent, &turn.task, failure, text.into());
}

/// The agents that may act on the failure of a turn, in the order in which they are tried.
fn receivers(spine: &Spine, turn: &Turn) -> Vec<AgentId> {
    let has_parent = spine.agents.get(&turn.agent).is_some_and(|agent| agent.parent.is_some());
    if !has_parent {
        // People talk to it, so its failures are for them.
        return Vec::new();
    }
    let is_below = |agent: &AgentId| spine.with_ancestors(agent).any(|above| *above == turn.agent);
    let cause = turn.cause.as_deref().filter(|cause| !cause.is_notice && !cause.from.is_user());
    let sender = cause.map(|cause| &cause.from).filter(|from| !is_below(from));
    let (first, skipped) = sender.map_or((&turn.agent, 1), |sender| (sender, 0));
    let conversation = spine.activities.get(&turn.task).and_then(|activity| activity.conversation.as_ref());
    let top = spine.top(first);
    // Agents below root work for all conversations: the one that the request came from is notified, and not root.
    let of_request = |agent| if agent == top && Some(agent) != sender { conversation.unwrap_or(agent) } else { agent };
    spine.with_ancestors(first).skip(skipped).map(of_request).cloned().collect()
}
