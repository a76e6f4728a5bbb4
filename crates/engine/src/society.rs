//! The door of a society: a cheap handle for everybody who asks something of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use polis_domain::{
    AgentId, Answer, BadOrg, Behaviour, Children, Command, EffectId, Envelope, Event, Failure, InquiryId, MessageId,
    MessageKind, Org, OrgRole, Payload, Recorded, Refusal, ReplyTo, Resolution, Role, RoleId, Seq, SocietyId, Spine,
    SubThreadPath, Target, TaskId, Thread, ThreadId, Timestamp, Verdict, mix, place, unique, unique_id,
};
use polis_ports::{Artifacts, Frame, Listing, Log, LogError, ThreadRange, ToolSpec, Toolbox};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::{Actor, Standby};
use crate::fold::fold;
use crate::own_thread::run_on_own_thread;
use crate::shared::{ActorMessage, Committed, Options, Ports, Shared};
use crate::{Cast, CommandError, OpenError, Operation, Watch};

/// Questions that may queue at a society that is only looked at.
const MAX_QUEUED_LOOKS: usize = 64;

/// What came of a document that was brought in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Roles that are new.
    pub roles: usize,
    /// Roles that were here and are others now.
    pub changed: usize,
    /// Agents that are new.
    pub agents: usize,
    /// What of the document did not come in, in words.
    pub left: Vec<String>,
}

/// A message that is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The message.
    pub message_id: MessageId,
    /// The request that it belongs to.
    pub task_id: TaskId,
    /// Its place in the log.
    pub seq: Seq,
}

/// What a society leaves behind when it has come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// The last event of its log.
    pub last: Seq,
    /// Turns that are not settled.
    pub open_turns: usize,
    /// Messages that nobody has taken up.
    pub pending_messages: usize,
}

/// The door of a society. Clones lead to the same one; it runs until [`Society::stop`] or until the last handle is gone.
#[derive(Clone)]
pub struct Society {
    handle: Arc<Handle>,
}

/// What all clones of a handle share.
struct Handle {
    shared: Arc<Shared>,
    /// Where ids of what comes from outside are drawn from, and how many were.
    entropy: u64,
    draws: AtomicU64,
    /// Closed when the society has ended; before that, why, where it was not told to.
    ended: watch::Receiver<Option<Arc<LogError>>>,
}

/// When the last handle is gone, nobody can ask for anything any more: the society ends. What is cut is owed again.
impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Relaxed);
        // Wakes the actor; when its mailbox is full, it is awake.
        let _ = self.shared.actor.try_send(ActorMessage::Stop { grace: Duration::ZERO });
    }
}

impl Society {
    /// Opens a society: folds its log and takes up whatever is owed. An empty log is founded.
    pub async fn open(id: SocietyId, ports: Ports, cast: Cast, options: Options) -> Result<Self, OpenError> {
        cast.check()?;
        let (actor, mailbox) = mpsc::channel(options.mailbox);
        let entropy = mix(options.entropy);
        let (models, client_patience) = (options.models.clone(), options.client_patience);
        let shared = Arc::new(Shared { models, client_patience, ..Shared::new(id, ports, cast, actor) });
        let own_thread = options.own_thread;
        let actor = Actor::new(shared.clone(), options, mailbox);
        let (opened, open) = oneshot::channel();
        let (living, ended) = watch::channel(None);
        let running = shared.clone();
        let life = async move {
            let lost = keep_running(actor, &running, opened).await;
            // Whoever hears of it may want the log for himself at once.
            drop(running);
            living.send_replace(lost.map(Arc::new));
        };
        if own_thread {
            run_on_own_thread(life)?;
        } else {
            tokio::spawn(life);
        }
        open.await.unwrap_or_else(|_| Err(LogError::Failed("the society ended while it was opened".into())))?;
        Ok(Self { handle: Arc::new(Handle { shared, entropy, draws: AtomicU64::new(0), ended }) })
    }

    /// Opens a society only to look at it: nothing is founded, no turn runs, no time passes, and every command is refused.
    pub async fn open_to_look(id: SocietyId, ports: Ports) -> Result<Self, LogError> {
        let (spine, _) = fold(&ports, &id).await?;
        let (actor, mailbox) = mpsc::channel(MAX_QUEUED_LOOKS);
        let (living, ended) = watch::channel(None);
        tokio::spawn(async move {
            answer_looks(spine, mailbox).await;
            drop(living);
        });
        let shared = Arc::new(Shared::new(id, ports, Cast::new(), actor));
        Ok(Self { handle: Arc::new(Handle { shared, entropy: 0, draws: AtomicU64::new(0), ended }) })
    }

    /// Its name.
    pub fn id(&self) -> &SocietyId {
        &self.handle.shared.society
    }

    /// The log behind it.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.ports().log
    }

    /// What the agents of a behaviour offer to a person.
    pub fn operations(&self, behaviour: &Behaviour) -> &[Operation] {
        self.handle.shared.cast.operations(behaviour)
    }

    /// The tools that its agents have.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.ports().toolbox
    }

    /// Keeps what is too long for the log.
    pub fn artifacts(&self) -> &Arc<dyn Artifacts> {
        &self.ports().artifacts
    }

    /// Knows which artifacts its log names.
    pub fn listing(&self) -> &dyn Listing {
        &*self.handle.shared
    }

    /// The tools that its turns do themselves.
    pub fn own_tools(&self) -> Vec<ToolSpec> {
        self.handle.shared.cast.tools()
    }

    /// The time, as its clock tells it.
    pub fn now(&self) -> Timestamp {
        self.ports().clock.now()
    }

    /// A name for a new request that nobody has used.
    pub fn new_task(&self) -> TaskId {
        let task = TaskId::from(self.draw(unique));
        self.handle.shared.recent.begin(task.thread());
        task
    }

    /// Gives root a new request.
    pub async fn submit(&self, text: &str) -> Result<Sent, CommandError> {
        self.send(AgentId::root(), text, None).await
    }

    /// Says something to an agent, as the person; within a request of before, or as a new one.
    pub async fn send(&self, to: AgentId, text: &str, task: Option<TaskId>) -> Result<Sent, CommandError> {
        self.send_with_meta(to, text, task, Map::new()).await
    }

    /// Says something to an agent, with data for its handler, such as `_ui_action: retry`.
    pub async fn send_with_meta(
        &self,
        to: AgentId,
        text: &str,
        task: Option<TaskId>,
        meta: Map<String, Value>,
    ) -> Result<Sent, CommandError> {
        let id = self.draw(|seed, at, draw| unique_id("msg", seed, at, draw));
        let task = task.unwrap_or_else(|| self.new_task());
        self.send_named(id, task, to, text, meta).await
    }

    /// The same with names that the sender chose; whether a message of that name was sent before is for the sender to know.
    pub async fn send_named(
        &self,
        id: MessageId,
        task_id: TaskId,
        to: AgentId,
        text: &str,
        meta: Map<String, Value>,
    ) -> Result<Sent, CommandError> {
        let envelope = Envelope {
            id,
            from: AgentId::user(),
            to,
            task_id,
            kind: MessageKind::Message,
            payload: Payload { text: text.into(), meta: meta.into() },
            reply_to: ReplyTo::User,
            hops: 0,
        };
        let (message_id, task_id) = (envelope.id.clone(), envelope.task_id.clone());
        let events = self.command(Command::Send { envelope: Arc::new(envelope) }).await?;
        Ok(Sent { message_id, task_id, seq: events.first().map_or(Seq(0), |event| event.seq) })
    }

    /// Makes a role.
    pub async fn create_role(&self, role: Role) -> Result<(), CommandError> {
        self.command(Command::CreateRole { role: Arc::new(role) }).await.map(drop)
    }

    /// Puts another role in the place of one of the same name. Turns under way go on with what it was.
    pub async fn change_role(&self, role: Role) -> Result<(), CommandError> {
        self.command(Command::ChangeRole { role: Arc::new(role) }).await.map(drop)
    }

    /// Makes an agent below another.
    pub async fn spawn(&self, agent: AgentId, role: RoleId, parent: AgentId) -> Result<(), CommandError> {
        self.command(Command::Spawn { agent, role, parent }).await.map(drop)
    }

    /// Answers an approval, or settles a write that is in doubt.
    pub async fn resolve(&self, id: EffectId, resolution: Resolution) -> Result<(), CommandError> {
        self.command(Command::Resolve { id, resolution }).await.map(drop)
    }

    /// Answers what a running call asks of the person; nothing to turn away from it.
    pub async fn reply(&self, id: InquiryId, verdict: Option<Verdict>) -> Result<(), CommandError> {
        let answer = verdict.map_or(Answer::Cancelled, Answer::Verdict);
        self.command(Command::Answer { id, answer, spent: None }).await.map(drop)
    }

    /// Lets a parked turn try again.
    pub async fn resume(&self, turn: polis_domain::TurnId) -> Result<(), CommandError> {
        self.command(Command::Resume { turn }).await.map(drop)
    }

    /// Calls off a request or a turn, with everything below it.
    pub async fn cancel(&self, target: Target, reason: &str) -> Result<(), CommandError> {
        self.command(Command::Cancel { target, reason: reason.to_owned() }).await.map(drop)
    }

    /// Sends an agent away. It does first what waits for it; or, with `now`, goes with its work undone.
    pub async fn terminate(&self, agent: AgentId, children: Children, reason: &str, now: bool) -> Result<(), CommandError> {
        self.command(Command::Terminate { agent, children, reason: reason.to_owned(), now }).await.map(drop)
    }

    /// Makes the roles and agents of a document that are not there yet; all of them or none. Root's role becomes what the document
    /// says only with `root`.
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

    /// Whether somebody here runs the agents of these roles, and whether their models can be.
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

    /// Whom a name means: an agent of that name, or the one agent of the role of that name; else whoever it names (D30).
    pub async fn addressee(&self, name: AgentId) -> Result<AgentId, CommandError> {
        if name.is_user() {
            return Ok(name);
        }
        self.look(
            move |spine| {
                if spine.agents.contains_key(&name) { name } else { spine.addressee(name.as_str()).cloned().unwrap_or(name) }
            },
        )
        .await
    }

    /// Has an agent compress its conversation as its next task. Whether it can is up to its code.
    pub async fn compress(&self, agent: AgentId) -> Result<Sent, CommandError> {
        let meta = Map::from_iter([("_ui_action".to_owned(), "compress".into())]);
        self.send_with_meta(agent, "[compress]", None, meta).await
    }

    /// Undoes the last compression of a thread; from the next turn on the model is shown what it was shown before.
    pub async fn restore_context(&self, thread: ThreadId) -> Result<(), CommandError> {
        self.command(Command::RestoreContext { thread }).await.map(drop)
    }

    /// Why nothing can be written just now, such as `disk_full`; none while all is well. What is in the log can still be read.
    pub fn standby(&self) -> Option<Failure> {
        self.handle.shared.standby.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the spine as the log has it. While the log cannot be written, that is its last committed state.
    pub async fn look<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Spine) -> T + Send + 'static,
    ) -> Result<T, CommandError> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |spine: &Spine| {
            let _ = reply.send(question(spine));
        });
        if self.handle.shared.actor.send(ActorMessage::Look(look)).await.is_err() {
            return Err(self.over().await);
        }
        match answer.await {
            Ok(answer) => Ok(answer),
            // A question that was still on its way when the society ended is not answered either.
            Err(_) if self.handle.shared.actor.is_closed() => Err(self.over().await),
            // The log itself says best what is wrong with it.
            Err(_) => Err(match self.ports().log.head(self.id()).await {
                Err(error) => error.into(),
                Ok(_) => CommandError::Unavailable(Failure::new("unavailable", "the log is out of order just now; try again")),
            }),
        }
    }

    /// What passed between the person and the society about a request, in order; nothing if there is no such request.
    pub async fn messages(&self, task: &TaskId) -> Result<Vec<(Recorded, Arc<Envelope>)>, CommandError> {
        let events = self.ports().log.read_thread(self.id(), &task.thread(), ThreadRange::ALL).await?;
        let envelope = |recorded: Recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } => Some((recorded.clone(), envelope.clone())),
            _ => None,
        };
        Ok(events.into_iter().filter_map(envelope).collect())
    }

    /// One thread, addressed from a main thread. Its sub-threads appear by name only.
    pub async fn thread(&self, main: &ThreadId, path: &SubThreadPath) -> Result<Thread, CommandError> {
        let (from, to) = (main.clone(), path.clone());
        let known = self.look(move |spine| {
            let found = spine.resolve(&from, &to)?;
            let idle = spine.agents.contains_key(&AgentId::from(found.as_str()));
            Some(found).filter(|found| idle || spine.threads.contains_key(found))
        });
        let address = || ThreadId::from(if path.is_main() { main.to_string() } else { format!("{main}.{path}") });
        let thread = known.await?.ok_or_else(|| Refusal::UnknownThread(address()))?;
        let events = self.ports().log.read_thread(self.id(), &thread, ThreadRange::ALL).await?;
        Ok(Thread::fold(thread, &events))
    }

    /// One thread with all its sub-threads in place, in the documents' shape.
    pub async fn tree(&self, main: &ThreadId, path: &SubThreadPath) -> Result<Thread, CommandError> {
        let mut thread = self.thread(main, path).await?;
        let id = thread.id.clone();
        let links = self.look(move |spine| spine.threads.get(&id).map(|head| head.links.clone()).unwrap_or_default()).await?;
        for (index, links) in links {
            for (slot, _) in links {
                let below = Box::pin(self.tree(main, &path.child_at(index, slot.clone()))).await?;
                let Ok(value) = serde_json::to_value(&below) else { continue };
                if let Some(message) = thread.messages.get_mut(index as usize) {
                    place(&mut Arc::make_mut(message).meta, &slot, value);
                }
            }
        }
        Ok(thread)
    }

    /// Everything that happens after a place of the log, without a gap, and live from then on until the society has ended.
    pub fn watch(&self, after: Seq) -> Watch {
        self.watcher(None, after)
    }

    /// What happens in one thread, not in those below it, after a place of the log, and live from then on. What happens elsewhere
    /// costs this watcher nothing.
    pub fn watch_thread(&self, thread: ThreadId, after: Seq) -> Watch {
        self.watcher(Some(thread), after)
    }

    /// Waits for the message that ends a request; where the society ends without it, that is why.
    pub async fn answer(&self, sent: &Sent) -> Result<Arc<Envelope>, CommandError> {
        let mut watch = self.watch_thread(sent.task_id.thread(), sent.seq);
        loop {
            let Some(recorded) = watch.next_event().await? else { return Err(self.over().await) };
            if let Event::MessageSent { envelope, .. } = &recorded.event
                && envelope.task_id == sent.task_id
                && envelope.to.is_user()
                && envelope.kind != MessageKind::Message
            {
                return Ok(envelope.clone());
            }
        }
    }

    /// Takes in no more, gives running turns until `grace` to reach a safe point, then ends. What is cut is owed again at the
    /// next opening.
    pub async fn stop(&self, grace: Duration) {
        // A closed door means that it has ended already.
        let _ = self.handle.shared.actor.send(ActorMessage::Stop { grace }).await;
        // Nothing is ever told there; it closes.
        let _ = self.handle.ended.clone().changed().await;
    }

    /// Waits until it has ended. Where it was not told to, says why: its log is not its own any more.
    pub fn ended(&self) -> impl Future<Output = Option<Arc<LogError>>> + Send + use<> {
        let mut ended = self.handle.ended.clone();
        async move {
            // Either it is told why, or it closes.
            let _ = ended.changed().await;
            ended.borrow().clone()
        }
    }

    /// Why nothing comes of a command any more.
    async fn over(&self) -> CommandError {
        self.ended().await.as_deref().map_or(CommandError::Stopping, CommandError::unavailable)
    }

    /// What its log says is unfinished; also when it has ended.
    pub async fn at_rest(&self) -> Result<Rest, LogError> {
        let (spine, _) = fold(self.ports(), self.id()).await?;
        Ok(Rest { last: spine.seq, open_turns: spine.turns.len(), pending_messages: spine.pending() })
    }

    /// Its organisation as its log says it; also when it has ended.
    pub async fn org_at_rest(&self) -> Result<Org, LogError> {
        let (spine, _) = fold(self.ports(), self.id()).await?;
        Ok(Org::of(&spine))
    }

    fn ports(&self) -> &Ports {
        &self.handle.shared.ports
    }

    async fn command(&self, command: Command) -> Committed {
        let (reply, answer) = oneshot::channel();
        let mailbox = ActorMessage::Command { command, reply: Some(reply) };
        if self.handle.shared.actor.send(mailbox).await.is_err() {
            return Err(self.over().await);
        }
        match answer.await {
            Ok(committed) => committed,
            Err(_) if self.handle.shared.actor.is_closed() => Err(self.over().await),
            // Nothing is done where one only looks.
            Err(_) => Err(CommandError::Stopping),
        }
    }

    fn watcher(&self, thread: Option<ThreadId>, after: Seq) -> Watch {
        Watch::new(self.id().clone(), thread, self.ports(), self.handle.ended.clone(), after)
    }

    /// Draws the next id of what comes from outside.
    fn draw<T>(&self, id: impl FnOnce(u64, Timestamp, u64) -> T) -> T {
        id(self.handle.entropy, self.ports().clock.now(), self.handle.draws.fetch_add(1, Ordering::Relaxed))
    }
}

/// Answers questions about a spine that does not change.
async fn answer_looks(spine: Spine, mut mailbox: mpsc::Receiver<ActorMessage>) {
    while let Some(mailbox) = mailbox.recv().await {
        match mailbox {
            ActorMessage::Look(look) => look(&spine),
            // Dropping the reply tells whoever commands that nothing comes of it.
            ActorMessage::Command { .. } | ActorMessage::Rest { .. } => {}
            ActorMessage::Stop { .. } => return,
        }
    }
}

/// Runs the actor; when the log fails, stands by and takes the log's state again. An owner that was fenced off ends, and says why.
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
                    tracing::info!("the log works again; going on");
                    // It may have written what it said that it had not.
                    shared.ports.live.publish(&shared.society, Frame::Missed);
                    actor.run().await
                }
                Err(error) => Err(error),
            },
        };
        let Err(error) = ended else { return None };
        tracing::error!(%error, code = error.code(), "the log failed; taking nothing in");
        if matches!(error, LogError::Conflict { .. }) {
            return Some(error);
        }
        match actor.standby(&error).await {
            Standby::TryAgain => failed = Some(error),
            Standby::Stop => return None,
        }
    }
}
