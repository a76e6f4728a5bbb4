//! How an event changes the spine. It never refuses: what is in the log has happened.

use std::sync::Arc;

use crate::spine::{Agent, Due, Head, Inbox, OpenEffect, OpenKind, Place, Spine, Stage, Turn};
use crate::{Cleared, Effect, EffectId, Event, Letter, LetterKind, Origin, Recorded, ReplyTo, Scope, Spent, Task, TurnId};

impl Spine {
    /// Folds one more event in. Events come in the order of the log, each once.
    pub fn evolve(&mut self, recorded: &Recorded) {
        debug_assert_eq!(recorded.seq, self.seq.next(), "events are folded in the order of the log");
        self.seq = recorded.seq;
        match &recorded.event {
            Event::SocietyFounded { seed, limits } => {
                self.seed = *seed;
                self.limits = *limits;
            }
            Event::RoleCreated { role, .. } => {
                self.roles.insert(role.id.clone(), role.clone());
            }
            Event::AgentSpawned { agent, role, parent, .. } => {
                // Share the role's one name instead of keeping a copy per agent.
                let role = self.roles.get_key_value(role).map_or(role, |(id, _)| id).clone();
                let parent = parent.as_ref().map(|id| self.agents.get_key_value(id).map_or(id, |(id, _)| id).clone());
                let made = Agent { role, parent, created_at: recorded.at, turn: None, inbox: None };
                self.agents.insert(agent.clone(), made);
            }
            Event::LetterSent { letter, .. } => {
                self.close_account(letter);
                self.receive(Due::Letter(letter.clone()));
            }
            Event::InboxCleared { agent, of } => self.clear_inbox(agent, of),
            Event::TurnStarted { .. } => self.start_turn(recorded),
            Event::ToolAllowed { allowed } => {
                if !self.allowed.contains(allowed) {
                    self.allowed.push(allowed.clone());
                }
            }
            Event::BudgetsSet { budgets } => self.budgets = budgets.clone(),
            Event::BudgetGranted { scope, more } => {
                let account = self.ledger.entry(scope.clone()).or_default();
                account.granted = account.granted.plus(*more);
            }
            Event::EffectStarted { id, effect, .. } => self.start_effect(*id, effect),
            Event::EffectRetried { id, spent, .. } => self.spend(*id, *spent),
            Event::EffectEnded { id, spent, .. } => {
                self.spend(*id, spent.unwrap_or_default());
                self.end_effect(*id);
            }
            Event::EffectDoubted { id } => self.move_to(*id, Stage::InDoubt),
            Event::EffectCleared { id } => self.move_to(*id, Stage::Cleared),
            Event::EffectRestarted { id } => self.move_to(*id, Stage::Working),
            Event::TurnParked { turn, reason } => {
                // What stands still holds nothing up: its reservations come back with it.
                self.reserve_all(*turn, Spent::minus);
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.parked = Some(Box::new(reason.clone()));
                }
            }
            Event::TurnResumed { turn } => {
                self.reserve_all(*turn, Spent::plus);
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.parked = None;
                }
            }
            Event::TurnSettled { turn, next, .. } => self.settle_turn(*turn, next),
            Event::EffectRefused { .. }
            | Event::Acted { .. }
            | Event::MessageAdded { .. }
            | Event::MessageUpdated { .. }
            | Event::SettingsUpdated { .. }
            | Event::PhaseSuggested { .. }
            | Event::PhaseApplied { .. }
            | Event::SuggestionDropped
            | Event::ThreadOpened { .. }
            | Event::ThreadLinked { .. } => {}
        }
        self.count(recorded);
        self.evolve_head(recorded);
    }

    /// An effect that is stated or done moves its turn's counter.
    fn count(&mut self, recorded: &Recorded) {
        let Some(id) = recorded.event.effect() else { return };
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            turn.next = turn.next.max(id.n + 1);
        }
    }

    fn receive(&mut self, due: Due) {
        let Due::Letter(letter) = &due else { return };
        if let Some(agent) = self.agents.get_mut(&letter.to) {
            let inbox = agent.inbox.get_or_insert_default();
            inbox.bytes += due.bytes();
            inbox.entries.push_back(due);
        }
    }

    fn clear_inbox(&mut self, agent: &crate::AgentId, of: &Cleared) {
        let Some(agent) = self.agents.get_mut(agent) else { return };
        if let Some(inbox) = &mut agent.inbox {
            inbox.entries = inbox.entries.iter().filter(|due| !of.takes(due, inbox)).cloned().collect();
            inbox.bytes = inbox.entries.iter().map(Due::bytes).sum();
        }
        agent.shrink_inbox();
    }

    fn start_turn(&mut self, recorded: &Recorded) {
        let Event::TurnStarted { agent, task, origin, reply_to, message, .. } = &recorded.event else { return };
        let Some(thread) = recorded.thread.clone() else { return };
        let id = TurnId(recorded.seq);
        if let (Origin::Inbox, Some(owner)) = (origin, self.agents.get_mut(agent)) {
            owner.turn = Some(id);
            if let Some(inbox) = &mut owner.inbox
                && let Some(due) = inbox.entries.pop_front()
            {
                inbox.bytes -= due.bytes();
            }
            owner.shrink_inbox();
        }
        let head = self.threads.entry(thread.clone()).or_insert_with(|| Head::new(agent.clone()));
        head.turn = Some(id);
        head.messages += u32::from(message.is_some());
        let turn = Turn {
            agent: agent.clone(),
            thread,
            task: task.id.clone(),
            origin: *origin,
            reply_to: *reply_to,
            next: 0,
            open: Vec::new(),
            parked: None,
        };
        self.turns.insert(id, turn);
    }

    fn start_effect(&mut self, id: EffectId, effect: &Effect) {
        let scopes = match (effect, self.turns.get(&id.turn)) {
            (Effect::Model { .. }, Some(turn)) => self.accounts(&turn.agent, &turn.task),
            _ => Vec::new(),
        };
        let open = OpenEffect::new(id.n, effect, scopes);
        self.reserve(&open, Spent::plus);
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            // Most turns have one effect open, and very many may wait.
            turn.open.reserve_exact(1);
            turn.open.push(open);
        }
        if let Effect::Ask { letter, .. } = effect {
            self.receive(Due::Letter(letter.clone()));
        }
    }

    fn end_effect(&mut self, id: EffectId) {
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        let Some(place) = turn.open.iter().position(|open| open.n == id.n) else { return };
        let ended = turn.open.remove(place);
        if turn.parked.is_none() {
            self.reserve(&ended, Spent::minus);
        }
    }

    /// Books what an open model call has cost.
    fn spend(&mut self, id: EffectId, spent: Spent) {
        let open = self.turns.get(&id.turn).and_then(|turn| turn.open.iter().find(|open| open.n == id.n));
        let Some(OpenKind::Model(reserved)) = open.map(|open| &open.kind) else { return };
        for scope in &reserved.scopes {
            let account = self.ledger.entry(scope.clone()).or_default();
            account.spent = account.spent.plus(spent);
        }
    }

    /// Reserves what an open call may cost, or gives it back.
    fn reserve(&mut self, open: &OpenEffect, change: fn(Spent, Spent) -> Spent) {
        let OpenKind::Model(reserved) = &open.kind else { return };
        for scope in &reserved.scopes {
            let account = self.ledger.entry(scope.clone()).or_default();
            account.reserved = change(account.reserved, reserved.amount);
        }
    }

    fn reserve_all(&mut self, turn: TurnId, change: fn(Spent, Spent) -> Spent) {
        let open = self.turns.get(&turn).map(|turn| turn.open.clone()).unwrap_or_default();
        open.iter().for_each(|open| self.reserve(open, change));
    }

    /// A request that is answered needs no account any more, and no word of a person; what it cost stands in the answer.
    fn close_account(&mut self, letter: &Letter) {
        if letter.to.is_user() && letter.kind != LetterKind::Message {
            self.allowed.retain(|allowed| allowed.task.as_ref() != Some(&letter.task_id));
            let scope = Scope::Task(letter.task_id.clone());
            if self.ledger.get(&scope).is_some_and(|account| account.reserved == Spent::default()) {
                self.ledger.remove(&scope);
            }
        }
    }

    fn move_to(&mut self, id: EffectId, stage: Stage) {
        let turn = self.turns.get_mut(&id.turn);
        if let Some(open) = turn.and_then(|turn| turn.open.iter_mut().find(|open| open.n == id.n)) {
            open.stage = stage;
        }
    }

    fn settle_turn(&mut self, id: TurnId, next: &[Task]) {
        let Some(turn) = self.turns.remove(&id) else { return };
        if turn.parked.is_none() {
            turn.open.iter().for_each(|open| self.reserve(open, Spent::minus));
        }
        if let Some(head) = self.threads.get_mut(&turn.thread) {
            head.turn = None;
        }
        let Some(agent) = self.agents.get_mut(&turn.agent).filter(|agent| agent.turn == Some(id)) else { return };
        agent.turn = None;
        agent.follow_up(next, turn.reply_to);
    }

    /// Keeps the head of the thread that the event is recorded under.
    fn evolve_head(&mut self, recorded: &Recorded) {
        let Some(thread) = &recorded.thread else { return };
        if let Event::ThreadOpened { agent, settings, .. } = &recorded.event {
            let agent = self.agents.get_key_value(agent).map_or(agent, |(id, _)| id).clone();
            let head = Head { phase: settings.brief_status.phase.clone(), ..Head::new(agent) };
            self.threads.insert(thread.clone(), head);
        }
        let Some(head) = self.threads.get_mut(thread) else { return };
        match &recorded.event {
            Event::MessageAdded { .. } => head.messages += 1,
            Event::TurnSettled { message: Some(_), .. } => head.messages += 1,
            Event::PhaseSuggested { phase, .. } => head.suggestion = Some(phase.clone()),
            Event::PhaseApplied { phase } => {
                head.phase = phase.clone();
                head.suggestion = None;
            }
            Event::SuggestionDropped => head.suggestion = None,
            Event::SettingsUpdated { settings, .. } => {
                head.phase = settings.brief_status.phase.clone();
                head.suggestion = settings.phase_update_suggestion.as_ref().map(|suggestion| suggestion.phase.clone());
            }
            Event::ThreadLinked { index, slot, child, .. } => {
                head.links.entry(*index).or_default().push((slot.clone(), child.clone()));
                let place = Place { parent: thread.clone(), index: *index, slot: slot.clone() };
                if let Some(child) = self.threads.get_mut(child) {
                    child.place = Some(Box::new(place));
                }
            }
            _ => {}
        }
    }
}

impl Agent {
    /// An empty inbox costs nothing.
    fn shrink_inbox(&mut self) {
        if self.inbox.as_ref().is_some_and(|inbox| inbox.entries.is_empty()) {
            self.inbox = None;
        }
    }

    /// Its own follow-ups come before what others want, in the order in which they were queued.
    fn follow_up(&mut self, tasks: &[Task], reply_to: ReplyTo) {
        if tasks.is_empty() {
            return;
        }
        let inbox: &mut Inbox = self.inbox.get_or_insert_default();
        let last = tasks.len() - 1;
        for (i, task) in tasks.iter().enumerate().rev() {
            // Only the last of the chain answers whoever waits.
            let reply_to = if i == last { reply_to } else { ReplyTo::Nobody };
            let due = Due::FollowUp { task: task.clone(), reply_to };
            inbox.bytes += due.bytes();
            inbox.entries.push_front(due);
        }
    }
}

/// Folds a whole log.
impl<'a> FromIterator<&'a Recorded> for Spine {
    fn from_iter<I: IntoIterator<Item = &'a Recorded>>(log: I) -> Self {
        let mut spine = Self::default();
        log.into_iter().for_each(|recorded| spine.evolve(recorded));
        spine
    }
}

impl FromIterator<Arc<Recorded>> for Spine {
    fn from_iter<I: IntoIterator<Item = Arc<Recorded>>>(log: I) -> Self {
        let mut spine = Self::default();
        log.into_iter().for_each(|recorded| spine.evolve(&recorded));
        spine
    }
}
