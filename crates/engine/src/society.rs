//! The public handle of a society: commands, queries, watching, stopping.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use polis_domain::{
    AgentId, Answer, BadOrg, Behaviour, Call, Children, Command, EffectId, Envelope, Event, Failure, InquiryId, Message,
    MessageId, MessageKind, Org, OrgRole, Payload, PersonId, Recorded, Refusal, ReplyTo, Request, Resolution, Role, RoleId,
    Sender, Seq, SocietyId, Spine, SubThreadPath, Target, TaskId, Thread, ThreadId, Timestamp, TurnId, Verdict, Visibility,
    mix, place, unique, unique_id,
};
use polis_ports::{Artifacts, Caller, Frame, Listing, Log, LogError, TextChange, ThreadRange, ToolSpec, Toolbox};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::{Actor, Standby};
use crate::deployment::deployment;
use crate::erase::finish_erasures;
use crate::fold::{fold, fold_from_zero};
use crate::idle::IdleStore;
use crate::listing::{Viewer, VisibleArtifacts};
use crate::memory::remove_erased;
use crate::own_thread::run_on_own_thread;
use crate::person_log::PersonLog;
use crate::shared::{ActorMessage, Committed, Options, Ports, Shared, query};
use crate::turn::chosen;
use crate::{Cast, CommandError, DeployedVersion, OpenError, Operation, Watch};

/// The mailbox capacity of a society that is open read-only.
const MAX_QUEUED_LOOKS: usize = 64;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// How many roles were created.
    pub roles: usize,
    /// How many existing roles were changed.
    pub changed: usize,
    /// How many agents were created.
    pub agents: usize,
    /// What was skipped and why, one sentence each.
    pub left: Vec<String>,
}

/// The receipt of a message that is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The id of the message.
    pub message_id: MessageId,
    /// The agent that it goes to.
    pub to: AgentId,
    /// The request that it belongs to.
    pub task_id: TaskId,
    /// The position of its event in the log.
    pub seq: Seq,
}

impl Sent {
    /// The first message that a command sent.
    pub fn of(events: &[Arc<Recorded>]) -> Option<Self> {
        events.iter().find_map(|recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } => {
                let (message_id, to, task_id) = (envelope.id.clone(), envelope.to.clone(), envelope.task_id.clone());
                Some(Self { message_id, to, task_id, seq: recorded.seq })
            }
            _ => None,
        })
    }
}

/// The receipt of the message that a command sent.
pub(crate) fn sent(events: &[Arc<Recorded>]) -> Result<Sent, CommandError> {
    Sent::of(events).ok_or_else(|| LogError::Damaged("a message was sent and the log does not have it".to_owned()).into())
}

/// The work that a log says is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// The last event of its log.
    pub last: Seq,
    /// How many turns are not settled.
    pub open_turns: usize,
    /// How many messages wait in inboxes.
    pub pending_messages: usize,
}

/// A handle of a running society. Clones share it; the society runs until [`Society::stop`] or until the last handle is
/// dropped.
#[derive(Clone)]
pub struct Society {
    handle: Arc<Handle>,
    /// The idempotency key of the one command sent through this handle.
    pub(crate) once: Option<Once>,
    /// Who acts through this handle.
    pub(crate) person: PersonId,
    /// What can be seen and reached through this handle.
    pub(crate) visibility: Visibility,
    /// The log with what can be seen.
    pub(crate) log: Arc<dyn Log>,
    /// The artifacts that can be seen.
    pub(crate) listing: Arc<VisibleArtifacts>,
}

/// The request of a handle, and whether it turned out to be a repeat. Clones share that.
#[derive(Clone)]
pub(crate) struct Once {
    pub(crate) request: Request,
    pub(crate) replayed: Arc<AtomicBool>,
}

/// What all clones of a [`Society`] share.
struct Handle {
    shared: Arc<Shared>,
    /// The seed for ids of messages and requests from outside.
    entropy: u64,
    /// How many such ids were made.
    draws: AtomicU64,
    /// Closed when the society has ended. Holds the error if it ended because of one.
    ended: watch::Receiver<Option<Arc<LogError>>>,
}

/// Without a handle nobody can send a command, so the society stops. Turns that are cut off are owed a run at the next opening.
impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Relaxed);
        // Wakes the actor. If the mailbox is full, the actor is awake anyway and reads the flag.
        let _ = self.shared.actor.try_send(ActorMessage::Stop { grace: Duration::ZERO });
    }
}

impl Society {
    /// Opens a society: folds its log and runs the turns that are owed. An empty log is founded.
    pub async fn open(id: SocietyId, ports: Ports, cast: Cast, options: Options) -> Result<Self, OpenError> {
        cast.check()?;
        let (actor, mailbox) = mpsc::channel(options.mailbox);
        let entropy = mix(options.entropy);
        let (models, client_patience) = (options.models.clone(), options.client_patience);
        let approvers = options.approvers.clone();
        let shared = Arc::new(Shared { models, client_patience, approvers, ..Shared::new(id, ports, cast, actor) });
        let own_thread = options.own_thread;
        let actor = Actor::new(shared.clone(), options, mailbox);
        let (opened, open) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(None);
        let running = shared.clone();
        let life = async move {
            let lost = keep_running(actor, &running, opened).await;
            // The log is released before the end is announced: the receiver may open it at once.
            drop(running);
            ended_sender.send_replace(lost.map(Arc::new));
        };
        if own_thread {
            run_on_own_thread(life)?;
        } else {
            tokio::spawn(life);
        }
        open.await.unwrap_or_else(|_| Err(LogError::Failed("the society ended while it was opened".into())))?;
        // A process may have ended between the erasure of a memory and the removal of its text. What cannot be removed now is
        // removed with the next erasure or at the next opening.
        let _ = remove_erased(&shared).await;
        if let Err(error) = finish_erasures(&shared).await {
            tracing::warn!(%error, "the content of a conversation is not erased yet; it is tried again at the next opening");
        }
        Ok(Self::new(Handle { shared, entropy, draws: AtomicU64::new(0), ended }))
    }

    /// Opens a society read-only: nothing is founded, no turn runs, no timer fires, and every command is rejected.
    pub async fn open_read_only(id: SocietyId, ports: Ports, cast: Cast) -> Result<Self, LogError> {
        let (spine, idle) = fold(&ports, &id).await?;
        let (actor, mailbox) = mpsc::channel(MAX_QUEUED_LOOKS);
        let (ended_sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            answer_looks(spine, idle, mailbox).await;
            drop(ended_sender);
        });
        let shared = Arc::new(Shared::new(id, ports, cast, actor));
        Ok(Self::new(Handle { shared, entropy: 0, draws: AtomicU64::new(0), ended }))
    }

    /// A handle of the owner, without limits.
    fn new(handle: Handle) -> Self {
        let shared = handle.shared.clone();
        let (visibility, log) = (Visibility::Everything, shared.ports.log.clone());
        let listing = Arc::new(VisibleArtifacts { shared, viewer: Viewer::Caller(visibility.clone()) });
        Self { handle: Arc::new(handle), once: None, person: PersonId::owner(), visibility, log, listing }
    }

    /// The same handle for somebody who sees less, or more.
    pub(crate) fn with_visibility(mut self, visibility: Visibility) -> Self {
        let shared = self.handle.shared.clone();
        self.log = match visibility {
            Visibility::Everything => shared.ports.log.clone(),
            Visibility::Person(_) => Arc::new(PersonLog { shared: shared.clone(), visibility: visibility.clone() }),
        };
        self.listing = Arc::new(VisibleArtifacts { shared, viewer: Viewer::Caller(visibility.clone()) });
        self.visibility = visibility;
        self
    }

    /// The id of the society.
    pub fn id(&self) -> &SocietyId {
        &self.handle.shared.society
    }

    /// The log port.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// The versions of behaviours that are registered or that an open turn needs, with these turns.
    pub async fn deployment(&self) -> Result<Vec<DeployedVersion>, CommandError> {
        let (shared, visibility) = (self.handle.shared.clone(), self.visibility.clone());
        self.look(move |spine| deployment(spine, &shared.cast, &visibility)).await
    }

    /// The operations that agents of a behaviour offer to a person.
    pub fn operations(&self, behaviour: &Behaviour) -> &[Operation] {
        self.handle.shared.cast.operations(behaviour)
    }

    /// The tool port.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.ports().toolbox
    }

    /// What a call of an open turn would do to a text file (see [`Toolbox::change`]).
    pub async fn file_change(&self, turn: TurnId, call: &Call) -> Result<Option<Result<TextChange, String>>, CommandError> {
        let asking = self.look(move |spine| {
            let turn = spine.turns.get(&turn)?;
            let role = spine.role_of(turn).map(|role| role.id.clone());
            Some((turn.agent.clone(), role, turn.task.clone(), chosen(spine, &turn.agent)))
        });
        let Some((agent, role, task, chosen)) = asking.await? else { return Ok(None) };
        let who = Caller { agent: &agent, role: role.as_ref(), task: &task, chosen };
        Ok(self.toolbox().change(&call.tool, &call.arguments, &who).await)
    }

    /// The artifact port.
    pub fn artifacts(&self) -> &Arc<dyn Artifacts> {
        &self.ports().artifacts
    }

    /// Lists the artifacts that the log names.
    pub fn listing(&self) -> &dyn Listing {
        &*self.listing
    }

    /// The tools that run inside turns (see [`crate::TurnTool`]).
    pub fn own_tools(&self) -> Vec<ToolSpec> {
        self.handle.shared.cast.tools()
    }

    /// The time of the clock port.
    pub fn now(&self) -> Timestamp {
        self.ports().clock.now()
    }

    /// A new, unused id for a request.
    pub fn new_task(&self) -> TaskId {
        let task = TaskId::from(self.draw(unique));
        self.handle.shared.recent.begin(task.thread());
        task
    }

    /// Sends root a new request. Requests to root are done one after another; [`Society::converse`] starts a conversation of its
    /// own for one.
    pub async fn submit(&self, text: &str) -> Result<Sent, CommandError> {
        self.send(AgentId::root(), text, None).await
    }

    /// Sends a message from the person to an agent, as part of an existing request or as a new one.
    pub async fn send(&self, to: AgentId, text: &str, task: Option<TaskId>) -> Result<Sent, CommandError> {
        self.send_with_meta(to, text, task, Map::new()).await
    }

    /// Like [`Society::send`], with data for the handler, such as `_ui_action: retry`.
    pub async fn send_with_meta(
        &self,
        to: AgentId,
        text: &str,
        task: Option<TaskId>,
        meta: Map<String, Value>,
    ) -> Result<Sent, CommandError> {
        let envelope = self.envelope(to, text, task, meta);
        let events = self.command(Command::Send { envelope }).await?;
        sent(&events)
    }

    /// A message of the person who acts through this handle.
    pub(crate) fn envelope(&self, to: AgentId, text: &str, task: Option<TaskId>, meta: Map<String, Value>) -> Arc<Envelope> {
        Arc::new(Envelope {
            id: self.draw(|seed, at, draw| unique_id("msg", seed, at, draw)),
            from: AgentId::user(),
            to,
            task_id: task.unwrap_or_else(|| self.new_task()),
            kind: MessageKind::Message,
            payload: Payload { text: text.into(), meta: meta.into() },
            reply_to: ReplyTo::User,
            person: Some(self.person.clone()),
            hops: 0,
        })
    }

    /// Creates a role.
    pub async fn create_role(&self, role: Role) -> Result<(), CommandError> {
        self.command(Command::CreateRole { role: Arc::new(role) }).await.map(drop)
    }

    /// Replaces the role of the same id. Turns in progress keep the old one.
    pub async fn change_role(&self, role: Role) -> Result<(), CommandError> {
        self.command(Command::ChangeRole { role: Arc::new(role) }).await.map(drop)
    }

    /// Creates an agent as a child of another.
    pub async fn spawn(&self, agent: AgentId, role: RoleId, parent: AgentId) -> Result<(), CommandError> {
        self.command(Command::Spawn { agent, role, parent }).await.map(drop)
    }

    /// Answers an approval, or resolves a write that is in doubt.
    pub async fn resolve(&self, id: EffectId, resolution: Resolution) -> Result<(), CommandError> {
        self.decision(Command::Resolve { id, resolution }).await
    }

    /// Answers a question that a running call asked the person; `None` declines to answer.
    pub async fn reply(&self, id: InquiryId, verdict: Option<Verdict>) -> Result<(), CommandError> {
        let answer = verdict.map_or(Answer::Cancelled, Answer::Verdict);
        self.decision(Command::Answer { id, answer, spent: None }).await
    }

    /// Runs a parked turn again.
    pub async fn resume(&self, turn: polis_domain::TurnId) -> Result<(), CommandError> {
        self.decision(Command::Resume { turn }).await
    }

    /// Cancels a request or a turn, with everything below it.
    pub async fn cancel(&self, target: Target, reason: &str) -> Result<(), CommandError> {
        let cancelled = target.clone();
        let find = move |spine: &Spine| {
            let task = match &cancelled {
                Target::Task(task) => Some(task),
                Target::Turn(turn) => spine.turns.get(turn).map(|turn| &turn.task),
            };
            spine.turns.iter().filter(|(_, turn)| Some(&turn.task) == task).map(|(id, _)| *id).collect::<Vec<_>>()
        };
        let turns = self.look(find).await?;
        let said = turns.into_iter().filter_map(|turn| Some((turn, self.said_so_far(turn)?))).collect();
        self.command(Command::Cancel { target, reason: reason.to_owned(), said }).await.map(drop)
    }

    /// What a turn has said of the reply that it is just receiving.
    fn said_so_far(&self, turn: TurnId) -> Option<Arc<Message>> {
        let text = self.ports().live.partial_text(self.id(), turn).filter(|text| !text.trim().is_empty())?;
        let id = self.draw(|seed, at, draw| unique_id("bot", seed, at, draw));
        let meta = Map::from_iter([(Message::STOPPED.to_owned(), true.into())]).into();
        Some(Arc::new(Message { id, sender: Sender::Bot, text, timestamp: self.ports().clock.now(), meta }))
    }

    /// Terminates an agent. It finishes its inbox first; with `now`, it stops at once with its work undone.
    pub async fn terminate(&self, agent: AgentId, children: Children, reason: &str, now: bool) -> Result<(), CommandError> {
        self.command(Command::Terminate { agent, children, reason: reason.to_owned(), now }).await.map(drop)
    }

    /// Creates the roles and agents of a document that do not exist yet, all or none of them. Root's role is replaced only with
    /// `root`.
    pub async fn import(&self, org: Org, root: bool) -> Result<Imported, CommandError> {
        self.check_roles(&org)?;
        let imported = org.clone();
        let left = self.look(move |spine| imported.left_out(spine, root)).await?;
        let events = self.command(Command::Import { org: Box::new(org), root }).await?;
        let count = |which: fn(&Event) -> bool| events.iter().filter(|recorded| which(&recorded.event)).count();
        Ok(Imported {
            roles: count(|event| matches!(event, Event::RoleCreated { .. })),
            changed: count(|event| matches!(event, Event::RoleChanged { .. })),
            agents: count(|event| matches!(event, Event::AgentSpawned { .. })),
            left,
        })
    }

    /// Why this is not a valid model name, and what to write instead; none if it is valid.
    pub fn refuses_model(&self, model: &str) -> Option<String> {
        self.ports().model.refuses(model)
    }

    /// Checks that code is registered for the behaviours of these roles and that the model port accepts their models.
    fn check_roles(&self, org: &Org) -> Result<(), CommandError> {
        let behaviours = self.handle.shared.cast.behaviours();
        for OrgRole { role, .. } in &org.roles {
            let (id, behaviour) = (&role.id, &role.behaviour);
            if !behaviour.as_str().is_empty() && !behaviours.contains(behaviour) {
                let there = behaviours.iter().map(Behaviour::as_str).collect::<Vec<_>>().join(", ");
                let wrong = format!("role `{id}` has the behaviour `{behaviour}`, which nobody here knows; there are {there}");
                return Err(Refusal::from(BadOrg(wrong)).into());
            }
            if let Some(wrong) = role.models.iter().find_map(|model| self.ports().model.refuses(model)) {
                return Err(Refusal::from(BadOrg(format!("role `{id}`: {wrong}"))).into());
            }
        }
        Ok(())
    }

    /// Resolves a name: an agent of that name, or the only agent of the role of that name; otherwise the name itself (D30).
    pub async fn addressee(&self, name: AgentId) -> Result<AgentId, CommandError> {
        if name.is_user() {
            return Ok(name);
        }
        let visibility = self.visibility.clone();
        let find = move |spine: &Spine| match spine.agents.contains_key(&name) {
            true => name.clone(),
            false => spine.addressee(name.as_str(), |id| visibility.agent(spine, id)).unwrap_or(&name).clone(),
        };
        self.look(find).await
    }

    /// Asks an agent to compress its conversation as its next task. Its code decides whether it can.
    pub async fn compress(&self, agent: AgentId) -> Result<Sent, CommandError> {
        let meta = Map::from_iter([("_ui_action".to_owned(), "compress".into())]);
        self.send_with_meta(agent, "[compress]", None, meta).await
    }

    /// Undoes the last compression of a thread. From the next turn on the model sees the original messages again.
    pub async fn restore_context(&self, thread: ThreadId) -> Result<(), CommandError> {
        self.command(Command::RestoreContext { thread }).await.map(drop)
    }

    /// Why nothing can be written at present, such as `disk_full`; none when the log works. Reads still work meanwhile.
    pub fn standby(&self) -> Option<Failure> {
        self.handle.shared.standby.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes no new requests from now on, for this reason, or takes them again. Open requests go on either way.
    pub fn take_requests(&self, closed_because: Option<Failure>) {
        *self.handle.shared.closed_because.lock().unwrap_or_else(PoisonError::into_inner) = closed_because;
    }

    /// Runs a query on the committed state. It runs on the actor, so it must be short.
    pub async fn look<T: Send + 'static>(
        &self,
        question: impl Fn(&Spine) -> T + Send + Sync + 'static,
    ) -> Result<T, CommandError> {
        let (look, answer) = query(question);
        if self.handle.shared.actor.send(ActorMessage::Look(look)).await.is_err() {
            return Err(self.stop_error().await);
        }
        match answer.await {
            Ok(answer) => Ok(answer),
            // The query was still in the mailbox when the society ended.
            Err(_) if self.handle.shared.actor.is_closed() => Err(self.stop_error().await),
            // The actor could not read the log; ask the log for its error.
            Err(_) => Err(match self.ports().log.head(self.id()).await {
                Err(error) => error.into(),
                Ok(_) => {
                    CommandError::Unavailable(Failure::new("unavailable", "the log is not working at the moment; try again"))
                }
            }),
        }
    }

    /// The state after an earlier event, folded from the log. This takes as long as the log up to there is.
    pub async fn spine_at(&self, seq: Seq) -> Result<Spine, CommandError> {
        Ok(fold_from_zero(&*self.ports().log, self.id(), seq).await?)
    }

    /// The messages between the person and the society about a request, in order; empty if there is no such request.
    pub async fn messages(&self, task: &TaskId) -> Result<Vec<(Recorded, Arc<Envelope>)>, CommandError> {
        let events = self.log.read_thread(self.id(), &task.thread(), ThreadRange::ALL).await?;
        let envelope = |recorded: Recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } => Some((recorded.clone(), envelope.clone())),
            _ => None,
        };
        Ok(events.into_iter().filter_map(envelope).collect())
    }

    /// One thread, addressed from a main thread. Sub-threads appear by id only.
    pub async fn thread(&self, main: &ThreadId, path: &SubThreadPath) -> Result<Thread, CommandError> {
        let (id, events) = self.thread_events(main, path).await?;
        Ok(Thread::fold(id, &events))
    }

    async fn thread_events(&self, main: &ThreadId, path: &SubThreadPath) -> Result<(ThreadId, Vec<Recorded>), CommandError> {
        let (from, to, visibility) = (main.clone(), path.clone(), self.visibility.clone());
        let known = self.look(move |spine| {
            let found = spine.resolve(&from, &to).filter(|found| visibility.thread(spine, found))?;
            let idle = spine.agents.contains_key(&AgentId::from(found.as_str()));
            Some(found).filter(|found| idle || spine.threads.contains_key(found))
        });
        let address = || ThreadId::from(if path.is_main() { main.to_string() } else { format!("{main}.{path}") });
        let thread = known.await?.ok_or_else(|| Refusal::UnknownThread(address()))?;
        let events = self.ports().log.read_thread(self.id(), &thread, ThreadRange::ALL).await?;
        Ok((thread, events))
    }

    /// One thread with all sub-threads embedded in the meta of their messages.
    pub async fn tree(&self, main: &ThreadId, path: &SubThreadPath) -> Result<Thread, CommandError> {
        let (id, events) = self.thread_events(main, path).await?;
        let mut thread = Thread::fold(id, &events);
        let links = events.iter().filter_map(|recorded| match &recorded.event {
            Event::ThreadLinked { index, slot, .. } => Some((*index, slot)),
            _ => None,
        });
        for (index, slot) in links {
            let below = Box::pin(self.tree(main, &path.child_at(index, slot.clone()))).await?;
            let Ok(value) = serde_json::to_value(&below) else { continue };
            if let Some(message) = thread.messages.get_mut(index as usize) {
                place(&mut Arc::make_mut(message).meta, slot, value);
            }
        }
        Ok(thread)
    }

    /// All events after a position of the log, without a gap, then live until the society has ended.
    pub fn watch(&self, after: Seq) -> Watch {
        self.watcher(None, after)
    }

    /// The events of one thread, without its sub-threads, after a position of the log, then live. Events of other threads do
    /// not wake this watcher.
    pub fn watch_thread(&self, thread: ThreadId, after: Seq) -> Watch {
        self.watcher(Some(thread), after)
    }

    /// Waits for the message that ends a request.
    pub async fn answer(&self, sent: &Sent) -> Result<Arc<Envelope>, CommandError> {
        let mut watch = self.watch_thread(sent.task_id.thread(), sent.seq);
        loop {
            let Some(recorded) = watch.next_event().await? else { return Err(self.stop_error().await) };
            if let Event::MessageSent { envelope, .. } = &recorded.event
                && envelope.task_id == sent.task_id
                && envelope.to.is_user()
                && envelope.kind != MessageKind::Message
            {
                return Ok(envelope.clone());
            }
        }
    }

    /// Rejects new commands, gives running turns `grace` to reach a safe point, then stops. Turns that are cut off are owed a
    /// run at the next opening.
    pub async fn stop(&self, grace: Duration) {
        // An error means that it has ended already.
        let _ = self.handle.shared.actor.send(ActorMessage::Stop { grace }).await;
        // Resolves when the channel closes, or when an error is stored there.
        let _ = self.handle.ended.clone().changed().await;
    }

    /// Waits until the society has ended. Returns the error if it was not stopped: another owner has appended to its log.
    pub fn ended(&self) -> impl Future<Output = Option<Arc<LogError>>> + Send + use<> {
        let mut ended = self.handle.ended.clone();
        async move {
            // Resolves when an error is stored or the channel closes.
            let _ = ended.changed().await;
            ended.borrow().clone()
        }
    }

    /// The error for a command to a society that has ended.
    async fn stop_error(&self) -> CommandError {
        self.ended().await.as_deref().map_or(CommandError::Stopping, CommandError::unavailable)
    }

    /// The unfinished work by the log. Works also after the society has ended.
    pub async fn unfinished_work(&self) -> Result<UnfinishedWork, LogError> {
        let (spine, _) = fold(self.ports(), self.id()).await?;
        Ok(UnfinishedWork { last: spine.seq, open_turns: spine.turns.len(), pending_messages: spine.pending() })
    }

    /// The organisation by the log. Works also after the society has ended.
    pub async fn stored_org(&self) -> Result<Org, LogError> {
        let (spine, _) = fold(self.ports(), self.id()).await?;
        Ok(Org::of(&spine))
    }

    pub(crate) fn approvers(&self) -> &[PersonId] {
        &self.handle.shared.approvers
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.handle.shared.ports
    }

    /// A command whose events say who gave it.
    pub(crate) async fn decision(&self, command: Command) -> Result<(), CommandError> {
        self.command(Command::By { person: self.person.clone(), command: Box::new(command) }).await.map(drop)
    }

    pub(crate) async fn command(&self, command: Command) -> Committed {
        self.check_reach(&command).await?;
        let (reply, answer) = oneshot::channel();
        let message = ActorMessage::Command { command: self.wrapped(command), reply: Some(reply) };
        if self.handle.shared.actor.send(message).await.is_err() {
            return Err(self.stop_error().await);
        }
        match answer.await {
            Ok(committed) => self.unwrapped(committed).await,
            Err(_) if self.handle.shared.actor.is_closed() => Err(self.stop_error().await),
            // A read-only society drops commands.
            Err(_) => Err(CommandError::Stopping),
        }
    }

    fn watcher(&self, thread: Option<ThreadId>, after: Seq) -> Watch {
        let shared = self.handle.shared.clone();
        Watch::new(shared, thread, self.log.clone(), self.visibility.clone(), self.handle.ended.clone(), after)
    }

    /// Makes the next id for a message or request from outside.
    pub(crate) fn draw<T>(&self, id: impl FnOnce(u64, Timestamp, u64) -> T) -> T {
        id(self.handle.entropy, self.ports().clock.now(), self.handle.draws.fetch_add(1, Ordering::Relaxed))
    }
}

/// The actor of a read-only society: answers queries and nothing else.
async fn answer_looks(mut spine: Spine, idle: IdleStore, mut mailbox: mpsc::Receiver<ActorMessage>) {
    while let Some(message) = mailbox.recv().await {
        match message {
            // A query that cannot be answered is dropped, and fails at its sender.
            ActorMessage::Look(look) => idle.answer(&mut spine, &look).await.into_iter().for_each(|release| release()),
            // Dropping the reply channel rejects the command.
            ActorMessage::Command { .. }
            | ActorMessage::Rest { .. }
            | ActorMessage::Refold { .. }
            | ActorMessage::Flush { .. } => {}
            ActorMessage::Stop { .. } => return,
        }
    }
}

/// Runs the actor. When the log fails, it goes into standby and recovers from the log until that works again. A conflict ends
/// it: another owner has appended, so this one must not go on. Returns that error.
async fn keep_running(mut actor: Actor, shared: &Shared, opened: oneshot::Sender<Result<(), LogError>>) -> Option<LogError> {
    let began = actor.recover().await;
    let may_run = began.is_ok();
    let is_wanted = opened.send(began).is_ok();
    if !may_run || !is_wanted {
        return None;
    }
    let mut failed = None;
    loop {
        let ended = match failed {
            None => actor.run().await,
            Some(_) => match actor.recover().await {
                Ok(()) => {
                    tracing::info!("the log works again; continuing");
                    // An append that failed may have happened all the same; watchers must read the log again.
                    shared.ports.live.publish(&shared.society, Frame::Missed);
                    actor.run().await
                }
                Err(error) => Err(error),
            },
        };
        let Err(error) = ended else { return None };
        tracing::error!(%error, code = error.code(), "the log failed; accepting nothing");
        if matches!(error, LogError::Conflict { .. }) {
            return Some(error);
        }
        match actor.standby(&error).await {
            Standby::TryAgain => failed = Some(error),
            Standby::Stop => return None,
        }
    }
}
