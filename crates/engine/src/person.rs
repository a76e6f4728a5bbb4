//! Handles of a society for persons: who acts, what they see, and what their commands reach.

use polis_domain::{
    AgentId, Command, EffectId, OpenEffect, PersonId, Refusal, Spine, Target, TaskId, ThreadId, TurnId, Visibility,
};
use polis_ports::ThreadRange;

use crate::error::CommandError;
use crate::society::Society;

impl Society {
    /// Who acts through this handle.
    pub fn person(&self) -> &PersonId {
        &self.person
    }

    /// A handle for a person: what is sent and started through it is theirs.
    #[must_use]
    pub fn for_person(&self, person: PersonId) -> Self {
        let mut society = self.clone();
        society.person = person;
        society
    }

    /// The same for somebody who sees and reaches only what is theirs. What belongs to others does not exist for them.
    #[must_use]
    pub fn limited_to(&self, person: PersonId) -> Self {
        self.for_person(person.clone()).with_visibility(Visibility::Person(person))
    }

    /// The same without limits.
    #[must_use]
    pub fn unlimited(&self) -> Self {
        self.clone().with_visibility(Visibility::Everything)
    }

    /// What can be seen through this handle.
    pub fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// Whether the person decides the approvals of others.
    pub fn is_approver(&self) -> bool {
        self.approvers().contains(&self.person)
    }

    /// The persons who decide the approvals of this person; none if they may do so themselves.
    pub fn other_approvers(&self) -> &[PersonId] {
        let decides = self.visibility == Visibility::Everything || self.is_approver();
        if decides { &[] } else { self.approvers() }
    }

    /// Refuses a request that belongs to another person, as if it did not exist. One that does not exist is nobody's.
    pub async fn check_task(&self, task: &TaskId) -> Result<(), CommandError> {
        let first = ThreadRange { oldest: 1, ..ThreadRange::ALL };
        let first = self.ports().log.read_thread(self.id(), &task.thread(), first).await?;
        let visibility = self.visibility.clone();
        match self.look(move |spine| first.iter().all(|first| visibility.event(spine, first))).await? {
            true => Ok(()),
            false => Err(Refusal::UnknownTask(task.clone()).into()),
        }
    }

    /// Refuses a command about what belongs to others, as if that did not exist.
    pub(crate) async fn check_reach(&self, command: &Command) -> Result<(), CommandError> {
        if self.visibility == Visibility::Everything {
            return Ok(());
        }
        let (visibility, aim) = (self.visibility.clone(), Aim::of(command));
        // A request belongs to whom its first message was for, also after it has ended.
        if let Aim::Agent(_, Some(task)) | Aim::Task(task) = &aim {
            self.check_task(task).await?;
        }
        if let Aim::Effect(id) = aim
            && let approvers = self.approvers()
            && !approvers.is_empty()
            && self.look(move |spine| spine.open_effect(id).is_some_and(OpenEffect::is_approval)).await?
        {
            if self.is_approver() {
                return Ok(());
            }
            if self.look(move |spine| visibility.turn(spine, id.turn)).await? {
                let names: Vec<_> = approvers.iter().map(PersonId::as_str).collect();
                return Err(CommandError::NotApprover(names.join(" or ")));
            }
            return Err(Refusal::NotOpen(id).into());
        }
        let refusal = self.look(move |spine| aim.refusal(spine, &visibility)).await?;
        refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
    }
}

/// What a command is about.
enum Aim {
    /// An agent, for a request if one is named.
    Agent(AgentId, Option<TaskId>),
    Conversation(AgentId),
    Task(TaskId),
    Turn(TurnId, Refusal),
    Effect(EffectId),
    Thread(ThreadId),
    /// The society as a whole. Who may change that is decided by the caller's scopes.
    Society,
}

impl Aim {
    fn of(command: &Command) -> Self {
        match command {
            Command::Once { command, .. } | Command::By { command, .. } => Self::of(command),
            Command::Send { envelope } => Self::Agent(envelope.to.clone(), Some(envelope.task_id.clone())),
            Command::StartConversation { envelope: Some(envelope), .. } => Self::Task(envelope.task_id.clone()),
            Command::ChangeConversation { agent, .. } | Command::EraseConversation { agent, .. } => {
                Self::Conversation(agent.clone())
            }
            Command::Terminate { agent, .. } | Command::Spawn { parent: agent, .. } => Self::Agent(agent.clone(), None),
            Command::RestoreContext { thread } => Self::Thread(thread.clone()),
            Command::Resolve { id, .. } => Self::Effect(*id),
            Command::Answer { id, .. } => Self::Turn(id.call.turn, Refusal::NotAsked(*id)),
            Command::Resume { turn } | Command::Cancel { target: Target::Turn(turn), .. } => {
                Self::Turn(*turn, Refusal::TurnNotOpen(*turn))
            }
            Command::Cancel { target: Target::Task(task), .. } => Self::Task(task.clone()),
            _ => Self::Society,
        }
    }

    /// Why somebody who sees this much is refused.
    fn refusal(&self, spine: &Spine, visibility: &Visibility) -> Option<Refusal> {
        match self {
            Self::Effect(id) => (!visibility.turn(spine, id.turn)).then_some(Refusal::NotOpen(*id)),
            Self::Agent(agent, _) => (!visibility.agent(spine, agent)).then(|| Refusal::UnknownAgent(agent.clone())),
            Self::Conversation(agent) => (!visibility.agent(spine, agent)).then(|| Refusal::UnknownConversation(agent.clone())),
            Self::Turn(turn, refusal) => (!visibility.turn(spine, *turn)).then(|| refusal.clone()),
            Self::Thread(thread) => (!visibility.thread(spine, thread)).then(|| Refusal::UnknownThread(thread.clone())),
            Self::Task(_) | Self::Society => None,
        }
    }
}
