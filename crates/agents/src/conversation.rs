//! The conversation that the model sees, compressed before it is too long (D10, D11).

use polis_domain::{Artifact, Failure, Meta, RoleLimits, Sender, Task};
use polis_engine::{Context, Turn};
use polis_ports::{ChatMessage, ModelRequest};
use serde_json::Value;

/// What stands before a summary (R186).
pub(crate) const SUMMARY: &str = "[历史摘要]";

/// Of a model's window, the part that a conversation may fill before it is compressed. The rest is for instructions, tools
/// and the reply; tools come and go, so they are not counted: a second run must decide alike.
const FULL_PERCENT: u64 = 60;

/// Of what it may be before it is compressed, the part from which on the agent is told so (D11).
const NEAR_PERCENT: u64 = 80;

/// Tokens that a summary may have.
const SUMMARY_TOKENS: u32 = 1_000;

const SUMMARISE: &str = "Summarise the conversation for the assistant who goes on with it and will not see it again. Keep what was \
asked and decided, names, numbers, paths and ids word for word, what was tried and what came of it, and what is still to do. \
Leave out greetings and repetitions. Write in the language of the conversation, as short notes, in at most 300 words. \
Answer with the notes alone.";

/// How much of a conversation the model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// Messages above which the agent is warned, and the conversation compressed (R185).
    pub max_context_messages: usize,
    /// Messages that a compression keeps (R184).
    pub keep_recent_count: usize,
    /// Whether a conversation that is too long is compressed unasked.
    pub compress: bool,
}

impl ContextLimits {
    /// The same limits where a role sets none of its own.
    pub fn within(self, role: &RoleLimits) -> Self {
        let most = role.context_messages.unwrap_or(self.max_context_messages).max(1);
        Self { max_context_messages: most, keep_recent_count: self.keep_recent_count.min(most / 2), ..self }
    }
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self { max_context_messages: 50, keep_recent_count: 10, compress: true }
    }
}

/// How full a context is (R188).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextUsage {
    /// Messages that are shown.
    pub current_count: usize,
    /// Messages that should be shown at most.
    pub max_count: usize,
    /// Tokens in them, about.
    pub tokens: u64,
    /// Tokens that the model can see, if that is known.
    pub window: Option<u64>,
}

impl ContextUsage {
    pub(crate) fn of(context: &Context, limits: &ContextLimits, window: Option<u64>) -> Self {
        let current_count = context.messages.len();
        Self { current_count, max_count: limits.max_context_messages, tokens: context.tokens(), window }
    }

    /// Whether it is time to compress.
    pub fn warning(&self) -> bool {
        let crowded = self.window.is_some_and(|window| self.tokens.saturating_mul(100) > window.saturating_mul(FULL_PERCENT));
        self.current_count > self.max_count || crowded
    }

    /// Whether it will soon be.
    pub fn is_near(&self) -> bool {
        let nears = |count: u64, most: u64| count.saturating_mul(100) >= most.saturating_mul(NEAR_PERCENT);
        let crowded = self.window.is_some_and(|window| nears(self.tokens, Self::most(window)));
        nears(self.current_count as u64, self.max_count as u64) || crowded
    }

    /// The tokens of a conversation that a window has room for.
    pub(crate) fn most(window: u64) -> u64 {
        window.saturating_mul(FULL_PERCENT) / 100
    }

    /// The notice for the agent while there is still room.
    fn early_notice(&self) -> String {
        let Self { current_count, max_count, tokens, .. } = self;
        let most = self.window.map(|window| format!(" of {}", Self::most(window))).unwrap_or_default();
        format!(
            "[上下文 context] Used so far: {current_count} of {max_count} messages, about {tokens}{most} tokens. Beyond that the older \
             messages are summarised for you; call compress_context first if you want to choose what is kept."
        )
    }

    /// The notice for the agent when it is time to compress.
    fn notice(&self) -> String {
        let Self { current_count, max_count, tokens, .. } = self;
        let window = self.window.map(|window| format!(" of {window}")).unwrap_or_default();
        format!(
            "[上下文 context] This conversation has {current_count} messages (at most {max_count} are wise) and about \
             {tokens}{window} tokens. Compress it, or finish soon."
        )
    }
}

/// What the model sees: notes for its instructions, and the messages.
pub(crate) struct Conversation {
    pub(crate) notes: String,
    pub(crate) messages: Vec<ChatMessage>,
}

/// The conversation of a turn's own thread. One that is too long is compressed first, unless that has come to nothing twice.
pub(crate) async fn conversation(turn: &mut Turn, limits: &ContextLimits) -> Result<Conversation, Failure> {
    if turn.is_first_message() {
        let task = turn.task();
        let messages = vec![user_message(&task.message, &task.meta)];
        return Ok(Conversation { notes: String::new(), messages });
    }
    // More than are wise, so that nothing is left out unsaid where it could not be compressed.
    let most = limits.max_context_messages.saturating_mul(4);
    let mut context = turn.context(most).await?;
    let mut context_usage = ContextUsage::of(&context, limits, turn.window());
    if context_usage.warning() && limits.compress && turn.may_compress() && compress(turn, &context, limits).await.is_ok() {
        context = turn.context(most).await?;
        context_usage = ContextUsage::of(&context, limits, turn.window());
    }
    let mut notes: Vec<_> = context.summaries.iter().map(|summary| format!("{SUMMARY} {summary}")).collect();
    notes.extend(match (context_usage.warning(), context_usage.is_near()) {
        (true, _) => Some(context_usage.notice()),
        (false, true) => Some(context_usage.early_notice()),
        (false, false) => None,
    });
    Ok(Conversation { notes: notes.join("\n\n"), messages: chat_messages(&context) })
}

/// Has the model summarise all but the newest messages, and puts that in their place. Gives how many it stands for.
pub(crate) async fn compress(turn: &mut Turn, context: &Context, limits: &ContextLimits) -> Result<usize, Failure> {
    let mut messages = chat_messages(context);
    // The newest ones stay as they are; the last of them is what this turn is to answer.
    messages.truncate(messages.len().saturating_sub(limits.keep_recent_count + 1));
    if messages.is_empty() {
        return Ok(0);
    }
    let earlier = context.summaries.iter().map(|summary| format!("\n\n{SUMMARY} {summary}")).collect::<String>();
    messages.push(ChatMessage::user("Now write the notes."));
    let request = ModelRequest {
        system: format!("{SUMMARISE}{earlier}").into(),
        messages,
        max_tokens: Some(SUMMARY_TOKENS),
        aside: true,
        ..ModelRequest::default()
    };
    let reply = turn.model(request).await?;
    turn.compress_context(reply.text.trim(), limits.keep_recent_count).await
}

fn chat_messages(context: &Context) -> Vec<ChatMessage> {
    let chat_messages = context.messages.iter().map(|(_, message)| match message.sender {
        Sender::User => user_message(&message.text, &message.meta),
        Sender::Bot => ChatMessage::assistant(message.text.clone()),
    });
    chat_messages.skip_while(|message| !matches!(message, ChatMessage::User { .. })).collect()
}

/// What was said, who said it where it was another agent, and what was sent along: its name, and itself where models take it.
pub(crate) fn user_message(text: &str, meta: &Meta) -> ChatMessage {
    let from = meta.get(Task::FROM).and_then(Value::as_str);
    let text = from.map_or_else(|| text.to_owned(), |from| format!("[from {from}]\n{text}"));
    let attached = Artifact::attached(meta);
    ChatMessage::user_with(naming(text, &attached), &attached)
}

/// A text with the names of what was sent along, by which agents can read it.
pub(crate) fn naming(text: String, artifacts: &[Artifact]) -> String {
    artifacts.iter().fold(text, |text, artifact| format!("{text}\n[sent along: {artifact}]"))
}
