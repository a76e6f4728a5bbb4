//! What is true and which moves are legal. No async, no I/O, no clock, no randomness: those arrive inside commands.
//!
//! ```text
//! decide(spine, command) -> events | refusal      evolve(spine, event)      outstanding(spine) -> owed work
//! ```

mod budget;
mod command;
mod decide;
mod effect;
mod event;
mod evolve;
mod id;
mod org;
mod outstanding;
mod path;
mod phase;
mod refusal;
mod spine;
mod task;
mod thread;
mod upgrade;

pub use budget::{Account, BadScope, Budget, Budgets, Counted, Level, Reserved, Scope, Spent};
pub use command::{Act, Command, Resolution, Target, TurnResult};
pub use decide::decide;
pub use effect::{
    Allowed, Always, Call, CallResult, Effect, EffectClass, Finish, Outcome, Reply, Ruling, ToolCall, Usage, Verdict,
};
pub use event::{Attempt, Cleared, Event, Leave, Limits, Origin, Recorded, Settlement};
pub use id::{
    AgentId, BadEffectId, Behaviour, Digest, EffectId, MessageId, RoleId, Seq, SocietyId, TaskId, ThreadId, Timestamp, TurnId,
    mix, unique, unique_id,
};
pub use org::Role;
pub use outstanding::{Owed, outstanding};
pub use path::{BadPath, MetaPath, NoSuchThread, Segment, SubThreadPath};
pub use phase::{BadPhase, Phase};
pub use refusal::Refusal;
pub use spine::{Agent, Due, Head, Inbox, OpenEffect, OpenKind, Place, SPINE_VERSION, Spine, Stage, Turn};
pub use task::{Failure, Letter, LetterKind, Payload, ReplyTo, Response, Task, TaskType};
pub use thread::{BriefStatus, Message, MessagePatch, Messages, PhaseUpdateSuggestion, Sender, Settings, Thread, merge, place};
pub use upgrade::{BadEvent, EVENT_VERSION, decode_event};
