//! What an erasure leaves of an event: its kind, ids, times, costs and all that other events refer to, without any text of
//! its content. It is still a valid event, so that every fold and every fork works on.
//!
//! Each function takes its value apart field by field, so that the compiler asks for a decision about every new one. Names stay
//! (of agents, roles, models, tools, phases) and ids; texts, arguments, results, free data and references to artifacts go. What
//! concerns the society beyond one conversation is no part of it: roles, budgets, lasting approvals, memories.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Answer, Artifact, ArtifactId, Attempt, BriefStatus, Call, CallResult, Citation, ConversationChange, ConversationSettings,
    Digest, Effect, Envelope, Event, Failure, Flow, Inquiry, Message, MessageKind, MessagePatch, Meta, Outcome, Payload, Plan,
    Question, Reply, Ruling, Settings, Settlement, Step, Task, ToolCall, VendorCall, Verdict, Wanted,
};

/// What stands in the place of an erased text.
pub const ERASED: &str = "[erased]";

/// How the digest of an erased file name begins.
const NAME_DIGEST: &str = "erased:";

impl Event {
    /// What an erasure leaves of it. To erase it again changes nothing.
    #[must_use]
    pub fn redacted(&self) -> Self {
        match self.clone() {
            Self::ConversationStarted { agent, role, person, title: _, settings: _, messages } => {
                let (title, settings) = (ERASED.into(), ConversationSettings::default());
                Self::ConversationStarted { agent, role, person, title, settings, messages: each(&messages, shared(message)) }
            }
            Self::ConversationChanged { agent, change: ConversationChange { title, pinned, archived, settings } } => {
                let settings = settings.map(|_| ConversationSettings::default());
                let change = ConversationChange { title: title.map(|_| ERASED.into()), pinned, archived, settings };
                Self::ConversationChanged { agent, change }
            }
            Self::AgentDismissed { agent, caller, reason: _, detach, waiter } => {
                Self::AgentDismissed { agent, caller, reason: String::new(), detach, waiter }
            }
            Self::MessageSent { envelope: sent, by } => Self::MessageSent { envelope: shared(envelope)(&sent), by },
            Self::MessagesTaken { by, agent, envelopes } => {
                Self::MessagesTaken { by, agent, envelopes: each(&envelopes, shared(envelope)) }
            }
            Self::TurnStarted { agent, behaviour, version, phase, task: asked, origin, reply_to, message, index, shown } => {
                Self::TurnStarted {
                    agent,
                    behaviour,
                    version,
                    phase,
                    task: task(&asked),
                    origin,
                    reply_to,
                    message,
                    index,
                    shown,
                }
            }
            Self::EffectStarted { id, effect: started, permit } => Self::EffectStarted { id, effect: effect(started), permit },
            Self::EffectRetried { id, attempt, spent } => {
                let Attempt { model, attempt, max_retries, failure: failed, delay_ms, next } = attempt;
                let attempt = Attempt { model, attempt, max_retries, failure: failure(failed), delay_ms, next };
                Self::EffectRetried { id, attempt, spent }
            }
            Self::EffectEnded { id, outcome: ended, spent } => Self::EffectEnded { id, outcome: outcome(ended), spent },
            Self::CallInquired { id, by, inquiry: asked, permit } => {
                Self::CallInquired { id, by, inquiry: inquiry(asked), permit }
            }
            Self::CallAnswered { id, answer: given, spent } => Self::CallAnswered { id, answer: answer(given), spent },
            Self::EffectRefused { id, failure: why } => Self::EffectRefused { id, failure: failure(why) },
            Self::MessageAdded { by, index, message: added } => {
                Self::MessageAdded { by, index, message: shared(message)(&added) }
            }
            Self::MessageUpdated { by, index, patch: MessagePatch { text, meta: _ } } => {
                let patch = MessagePatch { text: text.map(|_| ERASED.to_owned()), meta: Meta::new() };
                Self::MessageUpdated { by, index, patch }
            }
            Self::SettingsUpdated { by, settings: now } => Self::SettingsUpdated { by, settings: settings(now) },
            Self::PlanSet { by, plan: set } => Self::PlanSet { by, plan: plan(set) },
            Self::ContextCompressed { by, from, summaries } => {
                Self::ContextCompressed { by, from, summaries: each(&summaries, |_| ERASED.to_owned()) }
            }
            Self::ContextKept { by, failure: why } => Self::ContextKept { by, failure: failure(why) },
            Self::ThreadOpened { by, agent, parent, settings: first, meta: _ } => {
                Self::ThreadOpened { by, agent, parent, settings: settings(first), meta: Meta::new() }
            }
            Self::ThreadLinked { by, index, slot, child, held } => {
                Self::ThreadLinked { by, index, slot, child, held: held.map(|_| ERASED.into()) }
            }
            Self::TurnCrashed { turn, failure: why, until } => Self::TurnCrashed { turn, failure: failure(why), until },
            Self::MessageDeadLettered { agent, task, turn, failure: why, crashed } => {
                Self::MessageDeadLettered { agent, task, turn, failure: failure(why), crashed }
            }
            Self::TurnParked { turn, reason } => Self::TurnParked { turn, reason: failure(reason) },
            Self::TurnSettled { turn, settlement, message: last, index, next } => {
                let settlement = match settlement {
                    Settlement::Done => Settlement::Done,
                    Settlement::Failed(why) => Settlement::Failed(failure(why)),
                    Settlement::Cancelled(why) => Settlement::Cancelled(failure(why)),
                };
                let message = last.as_ref().map(shared(message));
                Self::TurnSettled { turn, settlement, message, index, next: each(&next, task) }
            }
            // These have no text of a conversation, or they concern the society as a whole.
            whole @ (Self::SocietyFounded { .. }
            | Self::SocietyForked { .. }
            | Self::RequestDone { .. }
            | Self::ToolAllowed { .. }
            | Self::ToolPinned { .. }
            | Self::VersionsSet { .. }
            | Self::BudgetsSet { .. }
            | Self::BudgetGranted { .. }
            | Self::RoleCreated { .. }
            | Self::RoleChanged { .. }
            | Self::AgentSpawned { .. }
            | Self::MemoryChanged { .. }
            | Self::AgentTerminated { .. }
            | Self::InboxCleared { .. }
            | Self::EffectDoubted { .. }
            | Self::EffectCleared { .. }
            | Self::EffectRestarted { .. }
            | Self::Acted { .. }
            | Self::PhaseSuggested { .. }
            | Self::PhaseApplied { .. }
            | Self::SuggestionDropped
            | Self::ContextRestored { .. }
            | Self::TurnRevived { .. }
            | Self::TurnRested { .. }
            | Self::TurnResumed { .. }
            | Self::ConversationErased { .. }
            | Self::ErasureDone { .. }) => whole,
        }
    }
}

fn each<T, U>(all: &[T], one: impl Fn(&T) -> U) -> Vec<U> {
    all.iter().map(one).collect()
}

fn shared<T>(one: impl Fn(&T) -> T) -> impl Fn(&Arc<T>) -> Arc<T> {
    move |value| Arc::new(one(value))
}

fn message(Message { id, sender, text: _, timestamp, meta: _ }: &Message) -> Message {
    Message { id: id.clone(), sender: *sender, text: ERASED.to_owned(), timestamp: *timestamp, meta: Meta::new() }
}

fn envelope(envelope: &Envelope) -> Envelope {
    let Envelope { id, from, to, task_id, kind, payload: Payload { text: _, meta }, reply_to, person, hops } = envelope.clone();
    let mut payload = Payload::text(ERASED);
    // Whether a message names a failure decides what it means.
    if let Some(named) = meta.get(Payload::FAILURE) {
        let named = serde_json::from_value(named.clone()).map(failure).and_then(serde_json::to_value);
        payload.meta.insert(Payload::FAILURE.to_owned(), named.unwrap_or_default());
    }
    let kind = match kind {
        MessageKind::Message => MessageKind::Message,
        MessageKind::Answer => MessageKind::Answer,
        MessageKind::Failure(why) => MessageKind::Failure(failure(why)),
    };
    Envelope { id, from, to, task_id, kind, payload, reply_to, person, hops }
}

fn task(task: &Task) -> Task {
    let Task { id, name, kind, message: _, meta: _, skip_user_message, hops } = task.clone();
    let name = if *name == *"message" { name } else { ERASED.into() };
    Task { id, name, kind, message: ERASED.into(), meta: Meta::new(), skip_user_message, hops }
}

fn failure(Failure { code, message: _ }: Failure) -> Failure {
    Failure { code, message: ERASED.to_owned() }
}

fn settings(settings: Settings) -> Settings {
    let Settings { brief_status: BriefStatus { phase, rest: _ }, phase_update_suggestion, rest: _ } = settings;
    Settings { brief_status: BriefStatus { phase, rest: Meta::new() }, phase_update_suggestion, rest: Meta::new() }
}

fn plan(Plan { id: _, strategy: _, steps, status, result: _ }: Plan) -> Plan {
    let step = |Step { id: _, text: _, status, target: _, result: _ }: &Step| Step {
        text: ERASED.to_owned(),
        status: *status,
        ..Step::default()
    };
    Plan { steps: each(&steps, step), status, ..Plan::default() }
}

fn artifact(Artifact { id: _, name: _, media_type: _, bytes: _ }: &Artifact) -> Artifact {
    // No content has this id.
    Artifact::new(ArtifactId::new([0; 32]), ERASED, "application/octet-stream", 0)
}

/// Whether a reference is an erased one.
pub(crate) fn is_erased(reference: &Artifact) -> bool {
    *reference == artifact(reference)
}

fn effect(effect: Effect) -> Effect {
    match effect {
        Effect::Tool(called) => Effect::Tool(Box::new(call(*called))),
        Effect::Ask { envelope: sent, deadline } => Effect::Ask { envelope: shared(envelope)(&sent), deadline },
        Effect::Approval { question: _, details: _, call: called, deadline, wanted: form, change: _ } => Effect::Approval {
            question: ERASED.to_owned(),
            details: Value::Null,
            call: called.map(|called| Box::new(call(*called))),
            deadline,
            wanted: wanted(form),
            change: None,
        },
        Effect::Terminate { agent, children, reason: _, deadline } => {
            Effect::Terminate { agent, children, reason: String::new(), deadline }
        }
        Effect::Unit { thread, behaviour, task: asked } => Effect::Unit { thread, behaviour, task: task(&asked) },
        Effect::Keep(kept) => Effect::Keep(artifact(&kept)),
        whole @ (Effect::Model { .. } | Effect::Grant { .. } | Effect::Sleep { .. }) => whole,
    }
}

fn call(call: Call) -> Call {
    let Call {
        call_id,
        tool,
        wrote: _,
        arguments: _,
        class,
        ruling: ruled,
        key,
        fresh: _,
        from,
        volatile,
        own,
        flow: flows,
        identity,
        definition,
        reads,
    } = call;
    let (wrote, arguments, fresh) = (None, "{}".into(), None);
    let (ruling, flow) = (ruling(ruled), flow(flows));
    Call { call_id, tool, wrote, arguments, class, ruling, key, fresh, from, volatile, own, flow, identity, definition, reads }
}

/// Content from outside stays so, also where it was stored: a file is still found by the digest of its name.
fn flow(flow: Flow) -> Flow {
    let Flow { outside, private, recalls, recalls_artifacts, stores, file, sends, destroys, target, named, exempt } = flow;
    let (outside, target) = (outside.map(|_| ERASED.into()), target.map(|_| ERASED.into()));
    let file = file.map(|file| if file.starts_with(NAME_DIGEST) { file } else { name_digest(&file) });
    Flow { outside, private, recalls, recalls_artifacts, stores, file, sends, destroys, target, named, exempt }
}

/// What stands for the name of a file that only an erased conversation has named.
pub(crate) fn name_digest(file: &str) -> Arc<str> {
    format!("{NAME_DIGEST}{:?}", Digest::of([file])).into()
}

fn ruling(ruling: Ruling) -> Ruling {
    match ruling {
        Ruling::Ask(_) => Ruling::Ask(ERASED.to_owned()),
        Ruling::AskEach(_) => Ruling::AskEach(ERASED.to_owned()),
        Ruling::Deny(_) => Ruling::Deny(ERASED.to_owned()),
        Ruling::Stop(_) => Ruling::Stop(ERASED.to_owned()),
        Ruling::Person(asked) => Ruling::Person(question(asked)),
        Ruling::Refuse(why) => Ruling::Refuse(failure(why)),
        whole @ (Ruling::Allow | Ruling::Approved) => whole,
    }
}

fn question(Question { text: _, wanted: form, patience_ms }: Question) -> Question {
    Question { text: ERASED.to_owned(), wanted: wanted(form), patience_ms }
}

fn wanted(form: Wanted) -> Wanted {
    match form {
        Wanted::Agreement => Wanted::Agreement,
        Wanted::Text { options: _ } => Wanted::Text { options: Vec::new() },
        Wanted::Form { schema: _ } => Wanted::Form { schema: Value::Object(serde_json::Map::new()) },
        Wanted::Visit { url: _ } => Wanted::Visit { url: ERASED.to_owned() },
    }
}

fn outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Reply(said) => Outcome::Reply(reply(said)),
        Outcome::Result(CallResult { content: _, is_error, artifacts: _, media: _, from, changed: _, note: _ }) => {
            Outcome::Result(CallResult { is_error, from, ..CallResult::good(ERASED) })
        }
        Outcome::Answer(_) => Outcome::Answer(ERASED.into()),
        Outcome::Verdict(given) => Outcome::Verdict(verdict(given)),
        Outcome::Slept => Outcome::Slept,
        Outcome::Kept(kept) => Outcome::Kept(artifact(&kept)),
        Outcome::Failed(why) => Outcome::Failed(failure(why)),
    }
}

fn reply(reply: Reply) -> Reply {
    let Reply { text: _, reasoning: _, tool_calls, cut_call, finish, usage, model, vendor_calls, citations, echo: _ } = reply;
    let tool_call = |ToolCall { id, name, arguments: _ }: &ToolCall| ToolCall {
        id: id.clone(),
        name: name.clone(),
        arguments: "{}".into(),
    };
    let vendor_call = |VendorCall { tool, input: _, output: _, found: _, uses }: &VendorCall| VendorCall {
        uses: *uses,
        ..VendorCall::new(*tool, "")
    };
    // That something was cited says that it came from outside.
    let citation = |Citation { title: _, url }: &Citation| Citation::new("", if url.is_empty() { "" } else { ERASED });
    Reply {
        text: ERASED.to_owned(),
        reasoning: String::new(),
        tool_calls: each(&tool_calls, tool_call),
        cut_call,
        finish,
        usage,
        model,
        vendor_calls: each(&vendor_calls, vendor_call).into(),
        citations: each(&citations, citation).into(),
        echo: None,
    }
}

fn verdict(verdict: Verdict) -> Verdict {
    let Verdict { approved, reason: _, arguments, always, matching: _, answer, by, rules: _, artifacts: _ } = verdict;
    let (arguments, answer) = (arguments.map(|_| "{}".into()), answer.map(|_| Value::from(ERASED)));
    Verdict { approved, arguments, always, answer, by, ..Verdict::yes() }
}

fn inquiry(inquiry: Inquiry) -> Inquiry {
    match inquiry {
        Inquiry::Person { question: asked, details: _, about } => {
            Inquiry::Person { question: question(asked), details: Value::Null, about: about.map(|_| ERASED.into()) }
        }
        Inquiry::Model { model, request, prompt: _, reserve, about: _, ruling: ruled } => {
            let (prompt, about) = (ERASED.to_owned(), ERASED.into());
            Inquiry::Model { model, request, prompt, reserve, about, ruling: ruling(ruled) }
        }
    }
}

fn answer(answer: Answer) -> Answer {
    match answer {
        Answer::Verdict(given) => Answer::Verdict(verdict(given)),
        Answer::Cancelled => Answer::Cancelled,
        Answer::Reply(said) => Answer::Reply(reply(said)),
        Answer::Failed(why) => Answer::Failed(failure(why)),
    }
}
