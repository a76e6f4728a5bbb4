//! What is true and which moves are legal. No async, no I/O, no clock, no randomness: those arrive inside commands.
//!
//! ```text
//! decide(spine, command) -> events | refusal      evolve(spine, event)      outstanding(spine) -> owed work
//! ```

mod activity;
mod answer_rules;
mod artifact;
mod budget;
mod catalogue;
mod command;
mod conversation;
mod decide;
mod effect;
mod erasure;
mod event;
mod evolve;
mod failure;
mod flow;
mod grant;
mod hidden;
mod id;
mod idle;
mod inbox;
mod inquiry;
pub mod iso;
mod limits;
mod memory;
mod meta;
mod model_settings;
mod one_or_many;
mod org;
mod org_document;
mod outstanding;
mod past_step;
mod path;
mod pattern;
mod phase;
mod plan;
mod question;
mod redacted;
mod refusal;
mod request;
mod reuse;
#[cfg(feature = "schema")]
mod schema;
mod shape;
mod spine;
mod strict;
mod table;
mod task;
mod text;
mod thread;
mod thread_fold;
mod upgrade;
mod usage;
mod vendor_tool;
mod version;
mod visibility;

pub use activity::TaskActivity;
pub use answer_rules::{AnswerRules, Format};
pub use artifact::{Artifact, ArtifactId, BadArtifactId};
pub use budget::{Account, BadBudgetScope, Budget, BudgetScope, Budgets, Counted, Level, Reserved, Spent};
pub use catalogue::{Catalogue, ListedArtifact};
pub use command::{Act, Command, Resolution, Target, TurnResult};
pub use conversation::{
    Conversation, ConversationChange, ConversationPlace, ConversationSettings, Conversations, NewConversation,
    RESERVED_PREFIXES,
};
pub use decide::decide;
pub use effect::{
    Allowed, Call, CallNote, CallResult, Changed, Children, Effect, EffectClass, Finish, Outcome, ReadTool, Reply, Review,
    Ruling, ToolCall,
};
pub use erasure::Erasure;
pub use event::{Attempt, Cleared, ContextState, Event, Origin, Permit, Recorded, Settlement};
pub use failure::{Failure, FailureCode, OtherCode};
pub use flow::{Flow, Trail, Trails, names};
pub use grant::{LastingApproval, Matching, Pattern, amounts, targets};
pub use hidden::is_hidden;
pub use id::{
    AgentId, BadEffectId, Behaviour, Digest, Digesting, EffectId, MemoryId, MemoryTextId, MessageId, PersonId, RoleId, Seq,
    SocietyId, TaskId, ThreadId, Timestamp, TurnId, mix, unique, unique_id,
};
pub use idle::{IdleEntry, IdleKey};
pub use inbox::{Cause, Inbox, InboxEntry};
pub use inquiry::{Answer, Inquiry, InquiryId, OpenInquiry};
pub use limits::Limits;
pub use memory::{MAX_MEMORY_BYTES, Memories, Memory, MemoryChange, MemoryCommand, MemoryScope, MemoryScopeKind, NewMemory};
pub use meta::{Meta, value_weight};
pub use model_settings::{BadSetting, CacheMode, Effort, ModelSettings, ToolChoice};
pub use org::{Role, RoleLimits};
pub use org_document::{BadOrg, Org, OrgAgent, OrgChange, OrgRole, OrgStatus, OrgTermination};
pub use outstanding::{Owed, outstanding};
pub use past_step::{ENVIRONMENT, History, PastStep, PastStepKind, WORK_NOTE};
pub use path::{BadPath, MetaPath, NoSuchThread, Segment, SubThreadPath};
pub use pattern::fits;
pub use phase::{BadPhase, Phase};
pub use plan::{Approach, PLAN, Plan, Step, StepStatus};
pub use question::{Always, Question, Verdict, Wanted};
pub use redacted::ERASED;
pub use refusal::Refusal;
pub use request::{DoneRequest, IdempotencyKey, Request, Requests};
pub use reuse::{MAX_RESULTS, ReusableResult, ReusableResults, Source, ToolList, canonical, roughly};
pub use shape::misfits;
pub use spine::{
    Agent, Compressions, DeadLetter, Era, Founder, Head, OpenEffect, OpenKind, PendingTermination, Pin, Place, PlanRef,
    SPINE_VERSION, Spine, Stage, Termination, Turn, TurnState,
};
pub use table::Table;
pub use task::{Envelope, MessageKind, Payload, ReplyTo, Response, ResponseParts, SubThreadRequest, Task, TaskType};
pub use text::Text;
pub use thread::{BriefStatus, Message, MessagePatch, PhaseUpdateSuggestion, Sender, Settings, Thread, merge, place};
pub use thread_fold::Messages;
pub use upgrade::{BadEvent, EVENT_VERSION, decode_event};
pub use usage::Usage;
pub use vendor_tool::{Citation, VendorCall, VendorTool};
pub use version::{CodeVersion, CodeVersions};
pub use visibility::Visibility;
