//! The society as a turn's tools see it: queries, and resolving names of agents.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AgentId, Effect, EffectId, Failure, ReplyTo, Spine};

use super::Turn;
use super::ask::answer;

impl Turn {
    /// Queries the present state of the society; none if it cannot be read. A second run may see a different state, so only
    /// the result of a [`crate::TurnTool`] may depend on it (the log keeps that), never which effects the tool has.
    pub async fn look<T: Send + 'static>(&self, question: impl Fn(&Spine) -> T + Send + Sync + 'static) -> Option<T> {
        self.start.shared.look(question).await
    }

    /// Resolves a name: an agent of that name, or the only agent of the role of that name (D30). Any other name is returned
    /// as it is, and sending to it is refused. In a second run, a message that is in the log keeps its logged receiver.
    pub async fn addressee(&self, name: &str) -> AgentId {
        self.addressee_of(name, self.n).await
    }

    /// Asks several agents by name in parallel and waits for all of them, at most `patience`. Returns each agent and its
    /// answer.
    pub async fn ask_each(
        &mut self,
        requests: &[(String, String)],
        patience: Duration,
    ) -> Vec<(AgentId, Result<Arc<str>, Failure>)> {
        let deadline = Some(self.after(patience));
        let (turn, first) = (self.start.id, self.n);
        let mut effects = Vec::with_capacity(requests.len());
        let mut asked = Vec::with_capacity(requests.len());
        for (n, (name, text)) in (first..).zip(requests) {
            let to = self.addressee_of(name, n).await;
            let envelope = Arc::new(self.envelope(&to, text, ReplyTo::Effect(EffectId { turn, n })));
            effects.push(Effect::Ask { envelope, deadline });
            asked.push(to);
        }
        let outcomes = self.wait_for_all(effects).await;
        asked.into_iter().zip(outcomes.into_iter().map(answer)).collect()
    }

    async fn addressee_of(&self, name: &str, n: u32) -> AgentId {
        let plain = AgentId::from(name);
        if plain.is_user() {
            return plain;
        }
        if let Some(envelope) = self.journal.envelope(n) {
            return envelope.to.clone();
        }
        if let Some(agent) = self.journal.terminated_agent(n) {
            return agent;
        }
        let (wanted, own, task) = (name.to_owned(), self.start.agent.clone(), self.task().id.clone());
        let find = move |spine: &Spine| spine.addressee(&wanted, |id| spine.can_reach(&own, id, Some(&task))).cloned();
        let found = self.look(find).await;
        found.flatten().unwrap_or(plain)
    }
}
