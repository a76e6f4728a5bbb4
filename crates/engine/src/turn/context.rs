//! The part of a thread that the model sees: all of it, or summaries in place of its oldest messages (D10, D11).

use std::sync::Arc;

use polis_domain::{
    Act, CallResult, ContextState, Event, Failure, History, Message, PastStep, PastStepKind, Sender, Seq, ThreadId, ToolCall,
};
use polis_ports::{ThreadRange, estimate_tokens};

use super::Turn;
use super::threads::{EVENTS_OF_A_MESSAGE, MIN_EVENTS};

/// After this many failed compressions in a row, no more are made automatically.
const MAX_FAILED: u32 = 2;

/// The part of a thread that the model sees.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// Summaries of the messages that are left out, oldest first.
    pub summaries: Vec<String>,
    /// When the last of them was made.
    pub compressed: Option<Seq>,
    /// The messages with their indices, oldest first.
    pub messages: Vec<(u32, Arc<Message>)>,
    /// What happened between them in earlier turns, oldest first.
    pub steps: Vec<PastStep>,
}

impl Context {
    /// An estimate of its tokens.
    pub fn tokens(&self) -> u64 {
        let messages = self.messages.iter().map(|(_, message)| message.text.as_str());
        let texts = self.summaries.iter().map(String::as_str).chain(messages).map(estimate_tokens);
        texts.sum::<u64>() + self.steps.iter().map(tokens_of).sum::<u64>()
    }
}

/// Whether a step belongs to the messages from an index on. What a turn was told about its environment stands before its message.
fn is_after(step: &PastStep, first: u32) -> bool {
    step.before > first || (step.before == first && matches!(step.kind, PastStepKind::Environment(_)))
}

fn tokens_of(step: &PastStep) -> u64 {
    match &step.kind {
        PastStepKind::Calls { text, calls } => {
            let of_call =
                |(call, result): &(ToolCall, CallResult)| estimate_tokens(&call.arguments) + estimate_tokens(&result.content);
            estimate_tokens(text) + calls.iter().map(of_call).sum::<u64>()
        }
        PastStepKind::Ended(failure) => estimate_tokens(&failure.message),
        PastStepKind::Environment(text) | PastStepKind::Work(text) => estimate_tokens(text),
    }
}

impl Turn {
    /// The context of the turn's own thread, with at most `limit` of its newest messages.
    pub async fn context(&mut self, limit: usize) -> Result<Context, Failure> {
        let (from, summaries) = self.compression().await?;
        let (messages, mut steps) = self.history(from, limit).await?;
        steps.retain(|step| is_after(step, from));
        Ok(Context { summaries, compressed: self.context_state.compression, messages, steps })
    }

    /// The context of the main thread up to the message that this turn's sub-thread hangs in, with at most `limit` of its
    /// newest messages. In the main thread it is the turn's own context.
    pub async fn context_above(&mut self, limit: usize) -> Result<Context, Failure> {
        let holder = self.path().segments().first().map(|segment| segment.message_index);
        let Some(holder) = holder else { return self.context(limit).await };
        if holder == 0 {
            return Ok(Context::default());
        }
        let thread = self.start.agent.main_thread();
        let mut newest = limit.min(holder as usize).saturating_mul(EVENTS_OF_A_MESSAGE).max(MIN_EVENTS);
        loop {
            let through = self.committed_position().await;
            let events = self.read_newest(&thread, newest, through).await;
            let compression = events.iter().rev().find_map(|recorded| match &recorded.event {
                Event::TurnStarted { shown, .. } => Some(shown.compression),
                Event::ContextCompressed { .. } => Some(Some(recorded.seq)),
                Event::ContextRestored { to, .. } => Some(*to),
                _ => None,
            });
            let mut history = History::default();
            events.iter().for_each(|event| history.apply(event));
            let History { messages, mut steps, .. } = history;
            let is_all = events.len() < newest;
            if compression.is_none() && !is_all {
                newest = newest.saturating_mul(2);
                continue;
            }
            let (from, summaries) = self.compression_of(&thread, compression.flatten()).await?;
            let shown = messages.indexed().filter(|(index, _)| (from..holder).contains(index));
            let mut before: Vec<_> = shown.map(|(index, message)| (index, message.clone())).collect();
            let is_enough = before.len() >= limit || messages.indexed().next().is_some_and(|(index, _)| index <= from);
            if !is_enough && !is_all {
                newest = newest.saturating_mul(2);
                continue;
            }
            before.drain(..before.len().saturating_sub(limit));
            let first = before.first().map_or(u32::MAX, |(index, _)| *index);
            steps.retain(|step| is_after(step, first) && step.before <= holder);
            return Ok(Context { summaries, compressed: compression.flatten(), messages: before, steps });
        }
    }

    /// Replaces the messages before the newest `keep`, and an earlier summary, by a summary. The message that this turn answers does not count. The
    /// cut never separates an answer from its question. Returns how many messages are left out now, 0 if there were too few
    /// (R187).
    pub async fn compress_context(&mut self, summary: &str, keep: usize) -> Result<usize, Failure> {
        let (shown_from, summaries) = self.compression().await?;
        let own = self.own_index;
        let Some(mut cut) = (own as usize).checked_sub(keep).map(|cut| cut as u32).filter(|cut| *cut > shown_from) else {
            return Ok(0);
        };
        let (all, steps) = self.history(shown_from, usize::MAX).await?;
        let asks = |at: u32| all.iter().any(|(index, message)| *index == at && message.sender == Sender::User);
        while cut > shown_from && !asks(cut) && cut != own {
            cut -= 1;
        }
        if cut <= shown_from {
            return Ok(0);
        }
        let messages = all.iter().filter(|(index, _)| (shown_from..cut).contains(index));
        let is_told = |step: &PastStep| matches!(step.kind, PastStepKind::Environment(_));
        let steps = steps.iter().filter(|step| step.before > shown_from && step.before <= cut && !is_told(step));
        let gone = messages.map(|(_, message)| estimate_tokens(&message.text)).sum::<u64>()
            + steps.map(tokens_of).sum::<u64>()
            + summaries.iter().map(|summary| estimate_tokens(summary)).sum::<u64>();
        let thread = self.start.thread.clone();
        if summary.trim().is_empty() || estimate_tokens(summary) >= gone {
            let message = match summary.trim() {
                "" => "the summary says nothing; write what must be kept of the older messages".to_owned(),
                _ => format!("the summary is not shorter than what it stands for (about {gone} tokens); write a shorter one"),
            };
            let failure = Failure::new("not_smaller", message);
            self.act(vec![Act::KeepContext { thread, failure: failure.clone() }]).await?;
            self.context_state.failed += 1;
            return Err(failure);
        }
        let summaries = vec![summary.to_owned()];
        let done = self.act(vec![Act::CompressContext { thread, from: cut, summaries }]).await?;
        self.context_state = ContextState { compression: done.first().map(|recorded| recorded.seq), failed: 0 };
        Ok((cut - shown_from) as usize)
    }

    /// Undoes the last compression of the turn's own thread.
    pub async fn restore_context(&mut self) -> Result<(), Failure> {
        let thread = self.start.thread.clone();
        let done = self.act(vec![Act::RestoreContext { thread }]).await?;
        let compression = done.iter().find_map(|recorded| match &recorded.event {
            Event::ContextRestored { to, .. } => *to,
            _ => None,
        });
        self.context_state = ContextState { compression, failed: 0 };
        Ok(())
    }

    /// Whether to compress automatically: not after two failed attempts in a row.
    pub fn may_compress(&self) -> bool {
        self.context_state.failed < MAX_FAILED
    }

    /// The index of the first message that is shown, and the summaries of those before it.
    async fn compression(&mut self) -> Result<(u32, Vec<String>), Failure> {
        let thread = self.start.thread.clone();
        self.compression_of(&thread, self.context_state.compression).await
    }

    async fn compression_of(&mut self, thread: &ThreadId, at: Option<Seq>) -> Result<(u32, Vec<String>), Failure> {
        let Some(seq) = at else { return Ok((0, Vec::new())) };
        self.committed_position().await;
        let range = ThreadRange { after: Seq(seq.0 - 1), ..ThreadRange::through(seq) };
        let events = self.read(thread, range).await;
        let found = events.iter().find_map(|recorded| match &recorded.event {
            Event::ContextCompressed { from, summaries, .. } => Some((*from, summaries.clone())),
            _ => None,
        });
        found.ok_or_else(|| Failure::new("data_damaged", format!("event {seq} compresses nothing")))
    }
}
