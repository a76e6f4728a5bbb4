//! How an event changes the spine. It never fails: what is in the log has happened.

mod agents;
mod memory;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::inbox::{Cause, Inbox, InboxEntry};
use crate::spine::{
    Agent, DeadLetter, Era, Founder, Head, OpenEffect, OpenKind, PendingTermination, Pin, Place, PlanRef, Spine, Stage, Turn,
    TurnState,
};
use crate::{
    Account, AgentId, BudgetScope, Cleared, Digest, Effect, EffectId, Envelope, Event, FailureCode, Inquiry, InquiryId,
    ListedArtifact, MessageKind, OpenInquiry, Origin, Outcome, Plan, Recorded, ReplyTo, Reserved, ReusableResult, Role,
    Settlement, Source, Spent, Task, TaskId, Timestamp, TurnId,
};

/// How many tool lists are remembered, so that their names need not be logged again.
const NAMED_LISTS: usize = 16;

/// How many positions of plans are kept.
const MAX_PLANS: usize = 1_000;

/// How many dead letters are kept.
const MAX_DEAD_LETTERS: usize = 1_000;

/// The least cost of a model call that was cut off because its turn or tool was stopped: one request.
const UNSEEN: Spent = Spent { requests: 1, tokens: 0, cost_nanos: 0, time_ms: 0, input_tokens: 0, cached_tokens: 0 };

impl Spine {
    /// Applies one event. Events must come in the order of the log, each once.
    pub fn evolve(&mut self, recorded: &Recorded) {
        debug_assert_eq!(recorded.seq, self.seq.next(), "events are folded in the order of the log");
        self.seq = recorded.seq;
        self.list_artifacts(recorded);
        match &recorded.event {
            Event::SocietyFounded { seed, limits } => {
                self.seed = *seed;
                self.limits = *limits;
            }
            Event::SocietyForked { seed, request, .. } => {
                request.iter().for_each(|request| self.requests.insert(*request, recorded.seq, 0));
                let past = Era { seed: self.seed, ended: recorded.seq };
                Arc::make_mut(&mut self.eras).push(past);
                self.seed = *seed;
            }
            Event::RequestDone { request, events } => self.requests.insert(*request, recorded.seq, *events),
            Event::RoleCreated { role, by } => {
                let turn = by.and_then(|by| self.turns.get(&by.turn));
                turn.into_iter().for_each(|turn| self.trails.make_role(&turn.agent, &turn.task, &role.id));
                let created_by = turn.map_or_else(AgentId::user, |turn| turn.agent.clone());
                let person = self.person(&created_by).cloned();
                self.founders.insert(role.id.clone(), Founder { created_by, created_at: recorded.at, person });
                self.roles.insert(role.id.clone(), role.clone());
            }
            Event::RoleChanged { role } => self.change_role(role),
            Event::AgentSpawned { agent, role, parent, by } => self.spawn(agent, role, parent.as_ref(), *by, recorded),
            Event::ConversationStarted { .. } => self.start_conversation(recorded),
            Event::ConversationChanged { agent, change } => self.change_conversation(agent, change),
            Event::ConversationErased { agent, .. } => self.begin_erasure(agent, recorded),
            Event::ErasureDone { agent, .. } => drop(self.erasing.remove(agent)),
            Event::MemoryChanged { change, .. } => self.change_memories(change),
            Event::AgentDismissed { agent, caller, reason, detach, waiter } => {
                let (caller, reason) = (caller.clone(), reason.clone());
                if let Some(agent) = self.agents.get_mut(agent) {
                    agent.termination = Some(Box::new(PendingTermination { caller, reason, detach: *detach, waiter: *waiter }));
                }
            }
            Event::AgentTerminated { agent } => self.terminate(agent, recorded.at),
            Event::MessageSent { envelope, by } => {
                self.close_account(envelope);
                if by.is_none()
                    && envelope.reports_loop()
                    && let Some(activity) = self.activities.get_mut(&envelope.task_id)
                {
                    activity.is_reported = true;
                }
                if envelope.from.is_user() {
                    self.reusable.forget(&envelope.task_id);
                    self.handle_dead_letters(&envelope.task_id, None);
                }
                self.touch_conversation(envelope, recorded);
                self.receive(envelope);
            }
            Event::MessagesTaken { agent, envelopes, .. } => self.take_messages(agent, envelopes),
            Event::InboxCleared { agent, of } => self.clear_inbox(agent, of),
            Event::TurnStarted { .. } => self.start_turn(recorded),
            Event::ToolAllowed { allowed } => {
                if !self.allowed.contains(allowed) {
                    self.allowed.push(allowed.clone());
                }
            }
            Event::ToolPinned { tool, identity, definition } => {
                self.pins.insert(tool.clone(), Pin { identity: identity.clone(), definition: definition.clone() });
            }
            Event::VersionsSet { versions } => self.versions = versions.clone(),
            Event::BudgetsSet { budgets } => self.budgets = budgets.clone(),
            Event::BudgetGranted { scope, more } => {
                let account = self.ledger.entry(scope.clone()).or_default();
                account.granted = account.granted.plus(*more);
            }
            Event::EffectStarted { id, effect, .. } => self.start_effect(*id, effect),
            Event::EffectRetried { id, spent, .. } => self.spend(*id, *spent),
            Event::EffectEnded { id, spent, outcome } => {
                self.spend(*id, spent.unwrap_or_default());
                self.drop_inquiries(|inquiry| inquiry.call == *id);
                self.learn(*id, outcome, recorded);
                if let (Outcome::Reply(reply), Some(turn)) = (outcome, self.turns.get(&id.turn)) {
                    self.trails.follow_reply(*id, &turn.agent, &turn.task, reply);
                }
                self.trails.end_call(*id);
                self.end_effect(*id);
            }
            Event::CallInquired { id, inquiry, .. } => self.inquire(InquiryId { call: *id, seq: recorded.seq }, inquiry),
            Event::CallAnswered { id, spent, .. } => self.answer(*id, spent.unwrap_or_default()),
            Event::EffectDoubted { id } => {
                self.drop_inquiries(|inquiry| inquiry.call == *id);
                self.move_to(*id, Stage::InDoubt);
            }
            Event::EffectCleared { id, .. } => self.move_to(*id, Stage::Cleared),
            Event::EffectRestarted { id } => self.move_to(*id, Stage::Working),
            Event::TurnParked { turn, reason } => {
                // A parked turn must not hold up others: its reservations are released, and made again when it resumes.
                self.reserve_all(*turn, Spent::minus);
                self.drop_inquiries(|inquiry| inquiry.call.turn == *turn);
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.state = TurnState::Parked(Box::new(reason.clone()));
                }
            }
            Event::TurnResumed { turn, .. } => {
                self.reserve_all(*turn, Spent::plus);
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.state = TurnState::Ready;
                }
            }
            Event::TurnSettled { turn, next, settlement, .. } => self.settle_turn(*turn, next, settlement),
            Event::TurnCrashed { turn, until, .. } => {
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.crashes = turn.crashes.saturating_add(1);
                    turn.revived = 0;
                    turn.state = TurnState::Delayed(*until);
                }
            }
            Event::TurnRevived { turn, until } => {
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.revived = turn.revived.saturating_add(u8::from(until.is_none()));
                    turn.state = until.map_or(TurnState::Ready, TurnState::Delayed);
                }
            }
            Event::TurnRested { turn } => {
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.has_unread_answers = false;
                    turn.revived = 0;
                }
            }
            Event::MessageDeadLettered { agent, task, turn, failure, crashed } => {
                if let Some(agent) = self.agents.get_mut(agent) {
                    agent.dead_letters = agent.dead_letters.saturating_add(u8::from(*crashed));
                }
                let (agent, task, failure) = (agent.clone(), task.clone(), failure.clone());
                let handled = self.turns.get(turn).is_some_and(|turn| self.waiter(turn) != ReplyTo::Nobody);
                self.dead_letters.push_back(DeadLetter { agent, task, turn: *turn, failure, at: recorded.at, handled });
                if self.dead_letters.len() > MAX_DEAD_LETTERS {
                    self.dead_letters.pop_front();
                }
            }
            Event::PlanSet { by, plan } => self.note_plan(*by, plan, recorded),
            Event::MessageUpdated { by, index, patch } if patch.text.is_some() => {
                let own = self.turns.get_mut(&by.turn).filter(|turn| recorded.thread.as_ref() == Some(&turn.thread));
                own.into_iter().for_each(|turn| turn.held.retain(|(held, _)| held != index));
            }
            Event::ThreadLinked { by, index, held: Some(says), .. } => {
                let own = self.turns.get_mut(&by.turn).filter(|turn| recorded.thread.as_ref() == Some(&turn.thread));
                own.into_iter().for_each(|turn| turn.held.push((*index, says.clone())));
            }
            Event::EffectRefused { .. }
            | Event::Acted { .. }
            | Event::MessageAdded { .. }
            | Event::MessageUpdated { .. }
            | Event::SettingsUpdated { .. }
            | Event::PhaseSuggested { .. }
            | Event::PhaseApplied { .. }
            | Event::SuggestionDropped
            | Event::ContextCompressed { .. }
            | Event::ContextRestored { .. }
            | Event::ContextKept { .. }
            | Event::ThreadOpened { .. }
            | Event::ThreadLinked { .. } => {}
        }
        self.count(recorded);
        self.evolve_head(recorded);
    }

    /// Adds the artifacts that an event names to the catalogue. Must run before the turn of the event is removed.
    fn list_artifacts(&mut self, recorded: &Recorded) {
        let named = recorded.artifacts();
        if named.is_empty() {
            return;
        }
        let turn = recorded.turn().and_then(|turn| self.turns.get(&turn));
        let envelope = recorded.event.envelope();
        let sender = envelope.map(|envelope| &envelope.from).filter(|from| !from.is_user());
        let agent = turn.map(|turn| &turn.agent).or(sender).cloned();
        let task = turn.map(|turn| &turn.task).or(envelope.map(|envelope| &envelope.task_id)).cloned();
        let person = self.person_of(recorded).cloned();
        for artifact in named {
            let (agent, task, person) = (agent.clone(), task.clone(), person.clone());
            self.artifacts.list(ListedArtifact { artifact, seq: recorded.seq, at: recorded.at, agent, task, person });
        }
    }

    /// Notes a spawn and drops those older than a minute.
    fn note_spawn(&mut self, at: Timestamp) {
        self.spawned.push_back(at);
        while self.spawned.front().is_some_and(|first| is_past(*first, at)) {
            self.spawned.pop_front();
        }
    }
    /// Notes the position of the newest plan of a request and thread.
    fn note_plan(&mut self, by: EffectId, plan: &Plan, recorded: &Recorded) {
        let (Some(turn), Some(thread)) = (self.turns.get_mut(&by.turn), &recorded.thread) else { return };
        turn.planning = plan.steps.is_empty();
        let (task, agent, thread) = (turn.task.clone(), turn.agent.clone(), thread.clone());
        self.plans.retain(|known| known.task != task || known.thread != thread);
        self.plans.push_back(PlanRef { task, agent, thread, seq: recorded.seq });
        if self.plans.len() > MAX_PLANS {
            self.plans.pop_front();
        }
    }

    /// Advances the effect counter of a turn.
    fn count(&mut self, recorded: &Recorded) {
        let Some(id) = recorded.event.effect() else { return };
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            turn.next = turn.next.max(id.n + 1);
            // Events that every restart causes are no progress.
            let is_restart = match &recorded.event {
                Event::EffectRestarted { .. } | Event::EffectDoubted { .. } | Event::EffectCleared { .. } => true,
                Event::EffectRetried { attempt, .. } => attempt.failure.code == FailureCode::ModelInterrupted,
                _ => false,
            };
            if !is_restart {
                turn.revived = 0;
            }
        }
    }

    /// Open turns keep the role that they started with, because a second run must have the same effects.
    fn change_role(&mut self, role: &Arc<Role>) {
        let Some(old) = self.roles.insert(role.id.clone(), role.clone()) else { return };
        for turn in self.turns.values_mut() {
            if self.agents.get(&turn.agent).is_some_and(|agent| agent.role == role.id) {
                turn.role.get_or_insert_with(|| old.clone());
            }
        }
    }

    /// Counts one more turn for a request, running or queued.
    fn begin_activity(&mut self, task: &TaskId) {
        let activity = match self.activities.get_mut(task) {
            Some(activity) => activity,
            None => self.activities.entry(task.clone()).or_default(),
        };
        activity.turns = activity.turns.saturating_add(1);
        activity.open += 1;
    }

    /// Counts a turn for a request as ended, or as never started. The counters of a request are dropped with its last turn.
    fn end_activity(&mut self, task: &TaskId) {
        let Some(activity) = self.activities.get_mut(task) else { return };
        activity.open = activity.open.saturating_sub(1);
        if activity.open == 0 {
            self.activities.remove(task);
            self.trails.end_task(task);
        }
    }

    fn receive(&mut self, envelope: &Arc<Envelope>) {
        let Some(agent) = self.agents.get_mut(&envelope.to) else { return };
        let inbox = agent.inbox.get_or_insert_default();
        inbox.bytes += envelope.payload.text.len();
        inbox.entries.push_back(InboxEntry::Envelope(envelope.clone()));
        if envelope.from.is_user()
            && let Some(activity) = self.activities.get_mut(&envelope.task_id)
        {
            activity.turns = 0;
            activity.messages.clear();
            activity.is_reported = false;
        }
        self.begin_activity(&envelope.task_id);
        if envelope.from.is_user() {
            let conversation = Some(self.top(&envelope.to).clone());
            self.activities.entry(envelope.task_id.clone()).or_default().conversation = conversation;
        }
        if !envelope.from.is_user()
            && envelope.reply_to == ReplyTo::Nobody
            && let Some(activity) = self.activities.get_mut(&envelope.task_id)
        {
            let sent = activity.messages.entry(envelope.from.clone()).or_default().entry(envelope.to.clone()).or_default();
            *sent = sent.saturating_add(1);
        }
    }

    fn clear_inbox(&mut self, agent: &crate::AgentId, of: &Cleared) {
        let Some(agent) = self.agents.get_mut(agent) else { return };
        let mut gone = Vec::new();
        if let Some(inbox) = &mut agent.inbox {
            gone = inbox.entries.iter().filter(|due| of.takes(due, inbox)).map(|due| due.task().clone()).collect();
            inbox.entries = inbox.entries.iter().filter(|due| !of.takes(due, inbox)).cloned().collect();
            inbox.bytes = inbox.entries.iter().map(InboxEntry::bytes).sum();
        }
        agent.shrink_inbox();
        gone.iter().for_each(|task| self.end_activity(task));
    }

    fn take_messages(&mut self, agent: &crate::AgentId, envelopes: &[std::sync::Arc<crate::Envelope>]) {
        let Some(agent) = self.agents.get_mut(agent) else { return };
        if let Some(inbox) = &mut agent.inbox {
            let is_taken = |due: &InboxEntry| matches!(due, InboxEntry::Envelope(envelope) if envelopes.iter().any(|taken| taken.id == envelope.id));
            inbox.entries.retain(|due| !is_taken(due));
            inbox.bytes = inbox.entries.iter().map(InboxEntry::bytes).sum();
        }
        agent.shrink_inbox();
        envelopes.iter().for_each(|envelope| self.end_activity(&envelope.task_id));
    }

    fn start_turn(&mut self, recorded: &Recorded) {
        let Event::TurnStarted { agent, behaviour, version, task, origin, reply_to, message, .. } = &recorded.event else {
            return;
        };
        let Some(thread) = recorded.thread.clone() else { return };
        let id = TurnId(recorded.seq);
        if *origin != Origin::Inbox {
            self.begin_activity(&task.id);
        }
        let mut cause = None;
        if let (Origin::Inbox, Some(owner)) = (origin, self.agents.get_mut(agent)) {
            owner.turn = Some(id);
            if let Some(inbox) = &mut owner.inbox
                && let Some(due) = inbox.entries.pop_front()
            {
                inbox.bytes -= due.bytes();
                cause = Cause::of(&due);
            }
            owner.shrink_inbox();
        }
        if !self.threads.contains_key(&thread) {
            self.threads.insert(thread.clone(), Head::new(agent.clone()));
        }
        if let Some(head) = self.threads.get_mut(&thread) {
            head.turn = Some(id);
            head.messages += u32::from(message.is_some());
        }
        let turn = Turn {
            agent: agent.clone(),
            thread,
            behaviour: behaviour.clone(),
            version: *version,
            task: task.id.clone(),
            hops: task.hops,
            role: None,
            origin: *origin,
            reply_to: *reply_to,
            cause,
            next: 0,
            open: Vec::new(),
            has_unread_answers: false,
            state: TurnState::Ready,
            planning: false,
            crashes: 0,
            revived: 0,
            held: Vec::new(),
        };
        self.trails.turn_to(&turn.agent, &turn.task);
        self.turns.insert(id, Box::new(turn));
    }

    fn start_effect(&mut self, id: EffectId, effect: &Effect) {
        let scopes = match (effect, self.turns.get(&id.turn)) {
            (Effect::Model { .. }, Some(turn)) => self.accounts(&turn.agent, &turn.task),
            _ => Vec::new(),
        };
        match effect {
            Effect::Tool(call) if call.may_write() => self.reusable.forget_all(self.seq),
            Effect::Model { tools: Some(list), .. } if !list.names.is_empty() => self.name_tools(list.digest),
            _ => {}
        }
        if let (Some(call), Some(turn)) = (effect.made_call(), self.turns.get(&id.turn)) {
            self.trails.follow(id, &turn.agent, &turn.task, &call.flow);
        }
        if let (Effect::Model { .. }, Some(turn)) = (effect, self.turns.get(&id.turn))
            && let Some(activity) = self.activities.get_mut(&turn.task)
        {
            match activity.calls.get_mut(&turn.agent) {
                Some(calls) => *calls = calls.saturating_add(1),
                None => drop(activity.calls.insert(turn.agent.clone(), 1)),
            }
        }
        let open = OpenEffect::new(id.n, effect, scopes, self.seq);
        self.reserve(&open, Spent::plus);
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            // Most turns have one open effect, and very many turns may wait, so no spare capacity is kept.
            turn.open.reserve_exact(1);
            turn.open.push(open);
        }
        if let Effect::Ask { envelope, .. } = effect {
            self.receive(envelope);
        }
    }

    fn end_effect(&mut self, id: EffectId) {
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        let Some(place) = turn.open.iter().position(|open| open.n == id.n) else { return };
        let ended = turn.open.remove(place);
        let waits = turn.open.iter().any(|open| !open.own);
        // A turn acts on an answer before the others arrive if it takes them in the order of the log: answers of units and
        // agents, and a person's decisions about calls of one reply.
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Question(_));
        let acts_at_once = match &ended.kind {
            OpenKind::Unit(_) | OpenKind::Ask(_) => true,
            kind => asks(kind) && turn.open.iter().any(|open| asks(&open.kind)),
        };
        turn.has_unread_answers = waits && (turn.has_unread_answers || acts_at_once);
        if !turn.is_parked() {
            self.reserve(&ended, Spent::minus);
        }
    }

    /// Remembers the result of a read for reuse, and forgets all of them after a write (D20).
    fn learn(&mut self, id: EffectId, outcome: &Outcome, recorded: &Recorded) {
        let Some(turn) = self.turns.get(&id.turn) else { return };
        let Some(open) = turn.open.iter().find(|open| open.n == id.n) else { return };
        match (outcome, open.recallable.as_deref().copied()) {
            _ if open.may_write() => self.reusable.forget_all(recorded.seq),
            (Outcome::Result(result), Some((key, began))) if !result.is_error => {
                let source = Source { effect: id, thread: turn.thread.clone(), seq: recorded.seq };
                self.reusable.remember(&turn.task, began, ReusableResult { key, source, at: recorded.at });
            }
            (Outcome::Verdict(_), _) => self.reusable.forget(&turn.task),
            _ => {}
        }
    }

    fn name_tools(&mut self, list: Digest) {
        self.tool_lists.retain(|known| *known != list);
        if self.tool_lists.len() >= NAMED_LISTS {
            self.tool_lists.pop_front();
        }
        self.tool_lists.push_back(list);
    }

    /// Charges the cost of an open model call.
    fn spend(&mut self, id: EffectId, spent: Spent) {
        let open = self.turns.get(&id.turn).and_then(|turn| turn.open.iter().find(|open| open.n == id.n));
        if let Some(open) = open {
            book(&mut self.ledger, open, spent);
        }
    }

    /// Reserves the cost of an open call, or releases the reservation.
    fn reserve(&mut self, open: &OpenEffect, so: fn(Spent, Spent) -> Spent) {
        let OpenKind::Model(reserved) = &open.kind else { return };
        for scope in &reserved.scopes {
            change(&mut self.ledger, scope, |account| account.reserved = so(account.reserved, reserved.amount));
        }
    }

    fn reserve_all(&mut self, turn: TurnId, change: fn(Spent, Spent) -> Spent) {
        let open = self.turns.get(&turn).map(|turn| turn.open.clone()).unwrap_or_default();
        open.iter().for_each(|open| self.reserve(open, change));
    }

    /// Opens a question of a running call.
    fn inquire(&mut self, id: InquiryId, inquiry: &Inquiry) {
        let open = match (inquiry, self.turns.get(&id.call.turn)) {
            (Inquiry::Person { question, about, .. }, _) => {
                OpenInquiry::Person { wanted: question.wanted.clone(), about: about.clone() }
            }
            (Inquiry::Model { reserve, .. }, Some(turn)) => {
                let scopes = self.accounts(&turn.agent, &turn.task);
                OpenInquiry::Model(Reserved { amount: *reserve, scopes })
            }
            (Inquiry::Model { .. }, None) => return,
        };
        if let OpenInquiry::Model(reserved) = &open {
            for scope in &reserved.scopes {
                let account = self.ledger.entry(scope.clone()).or_default();
                account.reserved = account.reserved.plus(reserved.amount);
            }
        }
        self.inquiries.insert(id, open);
    }

    /// Closes a question of a running call and charges its cost.
    fn answer(&mut self, id: InquiryId, spent: Spent) {
        let Some(OpenInquiry::Model(reserved)) = self.inquiries.remove(&id) else { return };
        for scope in reserved.scopes {
            let account = self.ledger.entry(scope).or_default();
            account.reserved = account.reserved.minus(reserved.amount);
            account.spent = account.spent.plus(spent);
        }
    }

    /// Closes the questions of calls that have ended.
    fn drop_inquiries(&mut self, of: impl Fn(&InquiryId) -> bool) {
        if self.inquiries.is_empty() {
            return;
        }
        let gone: Vec<InquiryId> = self.inquiries.keys().filter(|id| of(id)).copied().collect();
        gone.into_iter().for_each(|id| self.answer(id, UNSEEN));
    }

    /// Drops the account and the lasting approvals of an answered request. Its cost is part of the answer.
    fn close_account(&mut self, envelope: &Envelope) {
        if envelope.to.is_user() && envelope.kind != MessageKind::Message {
            self.reusable.forget(&envelope.task_id);
            if let Some(activity) = self.activities.get_mut(&envelope.task_id) {
                activity.calls.clear();
            }
            self.allowed.retain(|allowed| allowed.task.as_ref() != Some(&envelope.task_id));
            let scope = BudgetScope::Task(envelope.task_id.clone());
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

    fn settle_turn(&mut self, id: TurnId, next: &[Task], settlement: &Settlement) {
        self.drop_inquiries(|inquiry| inquiry.call.turn == id);
        let Some(turn) = self.turns.remove(&id) else { return };
        if turn.open.iter().any(OpenEffect::may_write) {
            self.reusable.forget_all(self.seq);
        }
        for open in &turn.open {
            book(&mut self.ledger, open, UNSEEN);
            if !turn.is_parked() {
                self.reserve(open, Spent::minus);
            }
        }
        if let Some(head) = self.threads.get_mut(&turn.thread) {
            head.turn = None;
        }
        if let Some(agent) = self.agents.get_mut(&turn.agent) {
            if *settlement == Settlement::Done {
                agent.dead_letters = 0;
            }
            if agent.turn == Some(id) {
                agent.turn = None;
                agent.follow_up(next, &turn);
                next.iter().for_each(|task| self.begin_activity(&task.id));
            }
        }
        if *settlement == Settlement::Done && turn.origin == Origin::Inbox {
            self.handle_dead_letters(&turn.task, Some(&turn.agent));
        }
        self.trails.turn_from(&turn.agent, &turn.task);
        self.trails.end_turn(id);
        self.end_activity(&turn.task);
    }

    /// Notes that the dead letters of a request, or of one agent for it, need no more attention.
    fn handle_dead_letters(&mut self, task: &TaskId, agent: Option<&AgentId>) {
        let of = |dead: &&mut DeadLetter| dead.task == *task && agent.is_none_or(|agent| dead.agent == *agent);
        self.dead_letters.iter_mut().filter(of).for_each(|dead| dead.handled = true);
    }

    /// Updates the head of the thread that the event is recorded under.
    fn evolve_head(&mut self, recorded: &Recorded) {
        let Some(thread) = &recorded.thread else { return };
        // The most frequent events do not change it.
        if matches!(
            recorded.event,
            Event::MessageSent { .. }
                | Event::TurnStarted { .. }
                | Event::TurnSettled { message: None, .. }
                | Event::EffectStarted { .. }
                | Event::EffectEnded { .. }
        ) {
            return;
        }
        if let Event::ThreadOpened { agent, settings, .. } = &recorded.event {
            let agent = self.agents.get_key_value(agent).map_or(agent, |(id, _)| id).clone();
            let head = Head { phase: settings.brief_status.phase.clone(), ..Head::new(agent) };
            self.threads.insert(thread.clone(), head);
        }
        let Some(head) = self.threads.get_mut(thread) else { return };
        match &recorded.event {
            Event::MessageAdded { .. } | Event::TurnSettled { message: Some(_), .. } => head.messages += 1,
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
            Event::ContextCompressed { from, .. } => {
                let context = head.context.get_or_insert_default();
                context.cuts.push((recorded.seq, *from));
                context.failed = 0;
            }
            Event::ContextRestored { .. } => {
                let context = head.context.get_or_insert_default();
                context.cuts.pop();
                context.failed = 0;
                if context.cuts.is_empty() {
                    head.context = None;
                }
            }
            Event::ContextKept { .. } => head.context.get_or_insert_default().failed += 1,
            Event::ThreadLinked { index, slot, child, .. } => {
                head.link(*index, slot.clone(), child.clone());
                let place = Place { parent: thread.clone(), index: *index, slot: slot.clone() };
                if let Some(child) = self.threads.get_mut(child) {
                    child.place = Some(Box::new(place));
                }
            }
            _ => {}
        }
    }
}

/// Whether a spawn is too old to count against the rate limit.
pub(crate) fn is_past(spawn: Timestamp, now: Timestamp) -> bool {
    spawn.0 + 60_000 <= now.0
}

impl PendingTermination {
    fn nobody() -> Self {
        Self { caller: AgentId::user(), reason: String::new(), detach: false, waiter: None }
    }
}

impl Agent {
    /// Drops an empty inbox, so that idle agents stay small.
    fn shrink_inbox(&mut self) {
        if self.inbox.as_ref().is_some_and(|inbox| inbox.entries.is_empty()) {
            self.inbox = None;
        }
    }

    /// Queues the follow-ups of a turn in order, before messages of other agents.
    fn follow_up(&mut self, tasks: &[Task], turn: &Turn) {
        if tasks.is_empty() {
            return;
        }
        let inbox: &mut Inbox = self.inbox.get_or_insert_default();
        let last = tasks.len() - 1;
        for (i, task) in tasks.iter().enumerate().rev() {
            // Only the last of the chain answers.
            let reply_to = if i == last { turn.reply_to } else { ReplyTo::Nobody };
            let due = InboxEntry::FollowUp { task: task.clone(), reply_to, cause: turn.cause.clone() };
            inbox.bytes += due.bytes();
            inbox.entries.push_front(due);
        }
    }
}

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

fn book(ledger: &mut FxHashMap<BudgetScope, Account>, open: &OpenEffect, spent: Spent) {
    let OpenKind::Model(reserved) = &open.kind else { return };
    for scope in &reserved.scopes {
        change(ledger, scope, |account| account.spent = account.spent.plus(spent));
    }
}

fn change(ledger: &mut FxHashMap<BudgetScope, Account>, scope: &BudgetScope, how: impl Fn(&mut Account)) {
    match ledger.get_mut(scope) {
        Some(account) => how(account),
        None => how(ledger.entry(scope.clone()).or_default()),
    }
}
