//! What must hold after every event and after every command, judged by a memory of its own that learns from the log only.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::mem::take;

use polis_domain::*;

use crate::budgets::Books;
use crate::chains::{Chains, limiting_roles};
use crate::flows::Flows;
use crate::laws::*;
use crate::reuse::Calls;

/// A law that is broken says how.
pub(crate) type Law = Result<(), String>;

/// What the log has told so far.
#[derive(Default)]
pub(crate) struct Past {
    seq: Seq,
    threads: HashMap<ThreadId, Vec<Recorded>>,
    folds: BTreeMap<ThreadId, (u32, Phase, Option<Phase>)>,
    /// Where each thread should stand by R038-R044: its phase and what is proposed.
    phases: BTreeMap<ThreadId, (Phase, Option<Phase>)>,
    inboxes: BTreeMap<AgentId, VecDeque<Waiting>>,
    envelopes: HashMap<MessageId, Fate>,
    effects: HashMap<EffectId, Progress>,
    counts: HashMap<TurnId, u32>,
    /// The turn for which another one works: it asked, or it runs the unit.
    above: HashMap<TurnId, TurnId>,
    books: Books,
    /// The contents that were named, and the names, in order.
    artifacts: Vec<(ArtifactId, String, Option<PersonId>)>,
    calls: Calls,
    flows: Flows,
    chains: Chains,
    /// The keys of the requests that were done.
    requests: BTreeSet<String>,
}

/// Something that an agent is to turn to.
struct Waiting {
    task: Task,
    envelope: Option<MessageId>,
    reply_to: ReplyTo,
    above: Option<TurnId>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Waits,
    Taken,
    Cleared,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Progress {
    Open,
    Acting,
    Over,
}

/// What must be remembered of the state before a command.
pub(crate) struct Before {
    pub(crate) turns: BTreeMap<TurnId, (ThreadId, TaskId)>,
    pub(crate) owed_to_user: BTreeMap<TaskId, usize>,
    pub(crate) open: BTreeMap<EffectId, OpenEffect>,
    /// The turns whose results nobody waits for, and their agents.
    pub(crate) unawaited: BTreeMap<TurnId, AgentId>,
    /// The requests whose messages between agents were blocked.
    pub(crate) stopped: BTreeSet<TaskId>,
}

impl Before {
    pub(crate) fn of(spine: &Spine) -> Self {
        let turns = spine.turns.iter().map(|(id, turn)| (*id, (turn.thread.clone(), turn.task.clone())));
        let open = spine.turns.iter().flat_map(|(id, turn)| turn.open.iter().map(|open| (*id, open.clone())));
        let open = open.map(|(turn, open)| (EffectId { turn, n: open.n }, open)).collect();
        let unawaited = spine.turns.iter().filter(|(_, turn)| is_unawaited(turn, spine));
        let unawaited = unawaited.map(|(id, turn)| (*id, turn.agent.clone())).collect();
        let stopped = spine.activities.iter().filter(|(_, activity)| activity.is_reported).map(|(id, _)| id.clone()).collect();
        Self { turns: turns.collect(), owed_to_user: owed_to_user(spine), open, unawaited, stopped }
    }
}

impl Past {
    pub(crate) fn owed(&self, spine: &Spine) -> BTreeMap<TurnId, Owed> {
        outstanding(spine).collect()
    }

    /// Every law that holds after every single event. The first that is broken is named.
    pub(crate) fn after_event(&mut self, owed: BTreeMap<TurnId, Owed>, recorded: &Recorded, spine: &Spine) -> Law {
        let laws = [
            ("the sequence has no gap", self.sequence(recorded, spine)),
            ("only the turn that an event names owes otherwise", only_the_named_turn(&owed, recorded, spine)),
            ("effects are numbered without gaps, end once, and belong to open turns", self.effects(recorded, spine)),
            ("texts are no longer than allowed", texts(recorded, spine)),
            ("nobody writes from user to user", from_user_to_user(recorded)),
            ("messages are taken in the order sent, own follow-ups first; none is lost", self.envelopes(recorded, spine)),
            ("the head of a thread equals the fold of its events", self.heads(recorded, spine)),
            ("a phase is applied when a turn starts, dropped on a retry, each thread alone", self.phases(recorded, spine)),
            ("turns, heads and agents agree on what is open", agreement(spine)),
            ("a sub-thread hangs where its parent says, and its address leads to it", places(spine)),
            ("nobody waits in a circle", no_circle(spine)),
            ("a call asks only while it runs", calls_ask_while_they_run(spine)),
            ("who is gone has left nothing behind", gone_for_good(spine)),
            ("a compression shows less than the one before it, and is undone in order", contexts(recorded, spine)),
            ("an inbox weighs what its entries weigh, and messages stay within the limits", weights(spine)),
            ("the ledger is what the log says, and no call begins beyond a budget", self.books.audit(recorded, spine)),
            (
                "the catalogue has what the log names, each content once for each person and name",
                self.catalogue(recorded, spine),
            ),
            ("what was read outside makes nobody send or destroy unasked", self.flows.audit(recorded)),
            ("a call is answered from the log only where nothing can have changed", self.calls.audit(recorded)),
            ("chains of messages end, and what is done for a request is counted", self.chains.audit(recorded, spine)),
            ("who is made has no tool that its maker lacks", limiting_roles(spine)),
            ("a request with a key is done once", self.requests(recorded)),
            ("each conversation is listed once, at its place", conversations(recorded, spine)),
        ];
        first_broken(laws)
    }

    /// Every law that holds once all events of a command are folded in.
    pub(crate) fn after_command(&mut self, before: &Before, command: &Command, events: &[Recorded], spine: &Spine) -> Law {
        self.effects.values_mut().filter(|progress| **progress == Progress::Acting).for_each(|it| *it = Progress::Over);
        let command = if let Command::Once { command, .. } = command { command } else { command };
        let laws = [
            ("a command that is granted leaves events", granted(events)),
            ("an idle agent has an empty inbox", idle(spine)),
            ("each thread stands where it should", self.standing(spine)),
            ("a wait ends in its time, and a doubtful write is not repeated unasked", rightly_moved(before, command, events)),
            ("the last event of an effect is under its turn's own thread", journal(before, events)),
            ("the person is told once what came of each request", told_once(before, command, events, spine)),
            (
                "a failure that nobody waits for is a dead letter and is reported once",
                unawaited_failures(before, events, spine),
            ),
            ("what an open ask or unit waits for is under way exactly once", waits_are_held(spine)),
            ("a turn has no more effects open than allowed", few_effects(spine)),
            ("who is sent away and has nothing to do is gone", nobody_lingers(spine)),
            ("agents make no more agents than they may", room(events, spine)),
            ("a cancel settles everything below, children first", self.cancelled(before, command, events, spine)),
        ];
        first_broken(laws)
    }

    fn requests(&mut self, recorded: &Recorded) -> Law {
        if let Event::RequestDone { request, .. } = &recorded.event {
            law!(self.requests.insert(request.key.to_string()), "{} is done again", request.key);
        }
        Ok(())
    }

    fn sequence(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        self.seq = self.seq.next();
        law!(recorded.seq == self.seq && spine.seq == self.seq, "{} after {}", recorded.seq, self.seq.0 - 1);
        Ok(())
    }

    fn catalogue(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        let result = match &recorded.event {
            Event::EffectEnded { outcome: Outcome::Result(result), .. } => result.artifacts.clone(),
            Event::EffectEnded { outcome: Outcome::Kept(artifact), .. } => vec![artifact.clone()],
            Event::EffectEnded { outcome: Outcome::Verdict(verdict), .. } => verdict.artifacts.clone(),
            Event::ConversationStarted { messages, .. } => {
                messages.iter().flat_map(|message| Artifact::attached(&message.meta)).collect()
            }
            _ => Vec::new(),
        };
        let message = match &recorded.event {
            Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => Some(&message.meta),
            Event::MessageUpdated { patch, .. } => Some(&patch.meta),
            event => event.envelope().map(|envelope| &envelope.payload.meta),
        };
        let attached = message.map(Artifact::attached).unwrap_or_default();
        for artifact in result.into_iter().chain(attached) {
            let named = (artifact.id, artifact.name.to_string(), spine.person_of(recorded).cloned());
            if !self.artifacts.contains(&named) {
                self.artifacts.push(named);
            }
        }
        let entries = spine.artifacts.entries();
        let name = |it: &ListedArtifact| (it.artifact.id, it.artifact.name.to_string(), it.person.clone());
        let listed: Vec<_> = entries.iter().map(name).collect();
        law!(listed == self.artifacts, "{listed:?} is listed, {:?} was named", self.artifacts);
        law!(entries.is_sorted_by_key(|it| it.seq), "{entries:?} is not in order");
        law!(
            entries.iter().all(|it| spine.artifacts.find(&it.artifact.id, &Visibility::Everything).is_some()),
            "one cannot be found"
        );
        Ok(())
    }

    fn effects(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        let turns = match &recorded.event {
            Event::TurnSettled { .. } | Event::TurnStarted { .. } => None,
            _ => recorded.turn(),
        };
        law!(turns.is_none_or(|id| spine.turns.contains_key(&id)), "the turn of {turns:?} is over");
        let Some(id) = recorded.event.effect() else { return Ok(()) };
        let known = self.effects.get(&id).copied();
        let now = match (&recorded.event, known) {
            (Event::EffectStarted { .. }, None) => Progress::Open,
            (Event::EffectRefused { .. }, None) | (Event::EffectEnded { .. }, Some(Progress::Open)) => Progress::Over,
            (Event::EffectDoubted { .. }, Some(Progress::Open))
            | (Event::EffectRetried { .. }, Some(Progress::Open))
            | (Event::EffectCleared { .. }, Some(Progress::Open))
            | (Event::CallInquired { .. }, Some(Progress::Open))
            | (Event::CallAnswered { .. }, Some(Progress::Open))
            | (Event::EffectRestarted { .. }, Some(Progress::Open)) => Progress::Open,
            (event, None | Some(Progress::Acting)) if is_act(event) => Progress::Acting,
            (event, known) => return Err(format!("{id} was {known:?} before {event:?}")),
        };
        let count = self.counts.entry(id.turn).or_default();
        law!(known.is_some() || id.n == *count, "{id} comes after number {count}");
        *count = (*count).max(id.n + 1);
        self.effects.insert(id, now);
        let turn = &spine.turns[&id.turn];
        law!(turn.next == *count, "{} is next, not {count}", turn.next);
        let open = spine.open_effect(id).is_some();
        law!(open == (now == Progress::Open), "{id} is {now:?} and yet open: {open}");
        Ok(())
    }

    fn envelopes(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        if let Some(envelope) = recorded.event.envelope().filter(|envelope| !envelope.to.is_user()) {
            let sent = self.envelopes.insert(envelope.id.clone(), Fate::Waits);
            law!(sent.is_none(), "message {} was sent before", envelope.id);
            let leaving = spine.agents.get(&envelope.to).is_none_or(|agent| agent.termination.is_some());
            law!(!leaving, "{} is about to go and got a message", envelope.to);
            self.inboxes.entry(envelope.to.clone()).or_default().push_back(Waiting::envelope(envelope));
        }
        match &recorded.event {
            Event::TurnStarted { agent, origin: Origin::Inbox, .. } => {
                let front = self.inboxes.entry(agent.clone()).or_default().pop_front();
                let Some(front) = front else { return Err(format!("{agent} has nothing to take")) };
                front.is_taken_by(&recorded.event)?;
                self.above.extend(front.above.map(|above| (TurnId(recorded.seq), above)));
                self.fate(&front, Fate::Taken)?;
            }
            Event::TurnStarted { origin: Origin::Unit(id), .. } => {
                self.above.insert(TurnId(recorded.seq), id.turn);
            }
            Event::TurnSettled { turn, next, .. } => self.follow_up(*turn, next)?,
            Event::AgentTerminated { agent } => {
                let left = self.inboxes.remove(agent).map_or(0, |inbox| inbox.len());
                law!(left == 0, "{agent} is gone and {left} entries wait for it");
            }
            Event::MessagesTaken { agent, envelopes, .. } => {
                let inbox = take(self.inboxes.entry(agent.clone()).or_default());
                let is_taken =
                    |waiting: &Waiting| envelopes.iter().any(|envelope| waiting.envelope.as_ref() == Some(&envelope.id));
                let (gone, kept): (VecDeque<Waiting>, VecDeque<Waiting>) = inbox.into_iter().partition(is_taken);
                self.inboxes.insert(agent.clone(), kept);
                law!(gone.len() == envelopes.len(), "{} messages were taken, {} lay there", envelopes.len(), gone.len());
                gone.iter().try_for_each(|waiting| self.fate(waiting, Fate::Taken))?;
            }
            Event::InboxCleared { agent, of } => {
                let inbox = take(self.inboxes.entry(agent.clone()).or_default());
                let (gone, kept) = inbox.into_iter().partition(|waiting| waiting.leaves(of));
                self.inboxes.insert(agent.clone(), kept);
                let gone: VecDeque<Waiting> = gone;
                law!(!gone.is_empty(), "nothing of {of:?} lies in the inbox of {agent}");
                gone.iter().try_for_each(|waiting| self.fate(waiting, Fate::Cleared))?;
            }
            _ => {}
        }
        let empty = VecDeque::new();
        for (id, agent) in &spine.agents {
            let real = agent.inbox.as_ref().map_or_else(VecDeque::new, |inbox| inbox.entries.clone());
            let expected = self.inboxes.get(id).unwrap_or(&empty);
            let equal = real.len() == expected.len() && real.iter().zip(expected).all(|(due, waiting)| waiting.is(due));
            law!(equal, "the inbox of {id} holds something else");
        }
        Ok(())
    }

    /// Follow-ups go before everything else; only the last of them answers whoever waits.
    fn follow_up(&mut self, turn: TurnId, next: &[Task]) -> Law {
        let started = self.threads.values().flatten().find(|recorded| TurnId(recorded.seq) == turn);
        let Some(Event::TurnStarted { agent, origin, reply_to, .. }) = started.map(|recorded| &recorded.event) else {
            return Err(format!("turn {turn} never started"));
        };
        if *origin != Origin::Inbox {
            return Ok(());
        }
        let inbox = self.inboxes.entry(agent.clone()).or_default();
        for (i, task) in next.iter().enumerate().rev() {
            let reply_to = if i + 1 == next.len() { *reply_to } else { ReplyTo::Nobody };
            let above = self.above.get(&turn).copied();
            inbox.push_front(Waiting { task: task.clone(), envelope: None, reply_to, above });
        }
        Ok(())
    }

    fn fate(&mut self, waiting: &Waiting, fate: Fate) -> Law {
        let Some(envelope) = &waiting.envelope else { return Ok(()) };
        let before = self.envelopes.insert(envelope.clone(), fate);
        law!(before == Some(Fate::Waits), "message {envelope} was {before:?} and is now {fate:?}");
        Ok(())
    }

    fn heads(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        if let Some(thread) = &recorded.thread {
            let length = self.folds.get(thread).map_or(0, |(messages, ..)| *messages);
            let events = self.threads.entry(thread.clone()).or_default();
            events.push(recorded.clone());
            let fold = Thread::fold(thread.clone(), &*events);
            let place = match &recorded.event {
                Event::TurnStarted { index, .. } | Event::MessageAdded { index, .. } | Event::TurnSettled { index, .. } => {
                    *index
                }
                _ => length,
            };
            law!(place == length, "index {place} in `{thread}`, which had {length} messages");
            law!(fold.messages.len() as u32 >= length, "`{thread}` had {length} messages and lost some");
            links_show(&fold, spine)?;
            let suggestion = fold.settings.phase_update_suggestion.as_ref().map(|suggestion| suggestion.phase.clone());
            self.folds.insert(thread.clone(), (fold.messages.len() as u32, fold.phase().clone(), suggestion));
        }
        for (id, head) in &spine.threads {
            let real = (head.messages, head.phase.clone(), head.suggestion.clone());
            law!(self.folds.get(id) == Some(&real), "`{id}` is {:?}, its head says {real:?}", self.folds.get(id));
        }
        Ok(())
    }

    fn phases(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        let Some(thread) = &recorded.thread else { return Ok(()) };
        let standing = self.phases.entry(thread.clone()).or_default();
        match &recorded.event {
            Event::ThreadOpened { settings, .. } => *standing = (settings.brief_status.phase.clone(), None),
            Event::SettingsUpdated { settings, .. } => {
                let suggestion = settings.phase_update_suggestion.as_ref().map(|suggestion| suggestion.phase.clone());
                *standing = (settings.brief_status.phase.clone(), suggestion);
            }
            Event::PhaseSuggested { phase, .. } => standing.1 = Some(phase.clone()),
            Event::TurnStarted { task, phase, .. } => {
                let suggested = standing.1.take().filter(|_| !task.is_retry());
                standing.0 = suggested.unwrap_or_else(|| standing.0.clone());
                let head = &spine.threads[thread];
                law!((&head.phase, &head.suggestion) == (&standing.0, &standing.1), "`{thread}` should be {standing:?}");
                law!(*phase == standing.0, "the turn believes {phase} in `{thread}`, which is {standing:?}");
            }
            _ => {}
        }
        Ok(())
    }

    fn standing(&self, spine: &Spine) -> Law {
        for (id, head) in &spine.threads {
            let (phase, suggestion) = &self.phases[id];
            law!((&head.phase, &head.suggestion) == (phase, suggestion), "`{id}` should be {phase}, then {suggestion:?}");
        }
        Ok(())
    }

    fn cancelled(&self, before: &Before, command: &Command, events: &[Recorded], spine: &Spine) -> Law {
        let Command::Cancel { target, .. } = command else { return Ok(()) };
        let mut gone = BTreeSet::new();
        // A turn is younger than the one it works for, so one pass from old to young finds all.
        for (id, (_, task)) in &before.turns {
            let named = match target {
                Target::Task(cancelled) => cancelled == task,
                Target::Turn(top) => top == id,
            };
            if named || self.above.get(id).is_some_and(|above| gone.contains(above)) {
                gone.insert(*id);
            }
        }
        let settled: Vec<_> = events.iter().filter_map(|recorded| settled_turn(&recorded.event)).collect();
        let settled_set: BTreeSet<_> = settled.iter().copied().collect();
        law!(settled_set == gone && settled.len() == gone.len(), "{gone:?} should be settled, {settled:?} were");
        let place = |id: &TurnId| settled.iter().position(|settled| settled == id);
        for id in &gone {
            let parent = self.above.get(id).filter(|above| gone.contains(above));
            law!(parent.is_none_or(|above| place(id) < place(above)), "{id} is settled after the turn above it");
        }
        law!(gone.iter().all(|id| !spine.turns.contains_key(id)), "one of {gone:?} is still open");
        let left = self.inboxes.values().flatten().find(|waiting| match (target, waiting.above) {
            (Target::Task(task), _) if waiting.task.id == *task => true,
            (_, above) => above.is_some_and(|above| gone.contains(&above)),
        });
        law!(left.is_none(), "{:?} still waits in an inbox", left.map(|waiting| &waiting.task));
        Ok(())
    }
}

impl Waiting {
    fn envelope(envelope: &Envelope) -> Self {
        let above = match envelope.reply_to {
            ReplyTo::Effect(id) => Some(id.turn),
            ReplyTo::User | ReplyTo::Nobody => None,
        };
        let task = Task::message(envelope.task_id.clone(), envelope.payload.text.clone());
        let task = Task { meta: envelope.payload.meta.clone(), hops: envelope.hops, ..task };
        Self { task, envelope: Some(envelope.id.clone()), reply_to: envelope.reply_to, above }
    }

    fn is(&self, due: &InboxEntry) -> bool {
        match due {
            InboxEntry::Envelope(envelope) => {
                self.envelope.as_ref() == Some(&envelope.id) && self.reply_to == envelope.reply_to
            }
            InboxEntry::FollowUp { task, reply_to, .. } => {
                self.envelope.is_none() && self.task == *task && self.reply_to == *reply_to
            }
        }
    }

    fn is_taken_by(&self, started: &Event) -> Law {
        let Event::TurnStarted { task, reply_to, message, .. } = started else { return Ok(()) };
        law!(*task == self.task && *reply_to == self.reply_to, "{:?} was at the front", self.task);
        let shown = self.envelope.is_some() || !self.task.skip_user_message;
        law!(message.is_some() == shown, "the text of the task is in the thread: {}", message.is_some());
        law!(self.envelope.is_none() || *message == self.envelope, "{:?} was at the front", self.envelope);
        Ok(())
    }

    fn leaves(&self, of: &Cleared) -> bool {
        match of {
            Cleared::Everything => true,
            Cleared::Task(task) => self.task.id == *task,
            Cleared::AskedBy(turns) => self.above.is_some_and(|above| turns.contains(&above)),
        }
    }
}

fn first_broken<const N: usize>(laws: [(&str, Law); N]) -> Law {
    laws.into_iter().try_for_each(|(name, law)| law.map_err(|broken| format!("broken law: {name}: {broken}")))
}

fn conversations(recorded: &Recorded, spine: &Spine) -> Law {
    let listed: BTreeMap<_, _> =
        spine.conversations.after(ConversationPlace::START).map(|(place, agent)| (agent, place)).collect();
    let held = spine.agents.iter().filter_map(|(id, agent)| Some((id, agent.conversation.as_ref()?.place())));
    let held: BTreeMap<_, _> = held.collect();
    if listed != held || listed.len() != spine.conversations.len() {
        return Err(format!("{listed:?} are listed, {held:?} are there"));
    }
    let Some(envelope) = recorded.event.envelope() else { return Ok(()) };
    let agent = if envelope.from.is_user() { &envelope.to } else { &envelope.from };
    let is_personal = envelope.from.is_user() || envelope.to.is_user();
    match spine.conversation(agent).filter(|_| is_personal) {
        Some(conversation) if conversation.active != recorded.seq => Err(format!("{agent} has not moved up")),
        _ => Ok(()),
    }
}

fn is_act(event: &Event) -> bool {
    match event {
        Event::Acted { .. }
        | Event::MessageAdded { .. }
        | Event::MessageUpdated { .. }
        | Event::SettingsUpdated { .. }
        | Event::PlanSet { .. }
        | Event::MessagesTaken { .. }
        | Event::PhaseSuggested { .. }
        | Event::ContextCompressed { .. }
        | Event::ContextRestored { .. }
        | Event::ContextKept { .. }
        | Event::ThreadOpened { .. }
        | Event::ThreadLinked { .. }
        | Event::MessageSent { .. }
        | Event::RoleCreated { .. }
        | Event::MemoryChanged { .. }
        | Event::AgentSpawned { .. } => true,
        Event::SocietyFounded { .. }
        | Event::SocietyForked { .. }
        | Event::RequestDone { .. }
        | Event::ToolAllowed { .. }
        | Event::ToolPinned { .. }
        | Event::VersionsSet { .. }
        | Event::BudgetsSet { .. }
        | Event::BudgetGranted { .. }
        | Event::RoleChanged { .. }
        | Event::ConversationStarted { .. }
        | Event::ConversationChanged { .. }
        | Event::ConversationErased { .. }
        | Event::ErasureDone { .. }
        | Event::EffectRetried { .. }
        | Event::CallInquired { .. }
        | Event::CallAnswered { .. }
        | Event::AgentDismissed { .. }
        | Event::AgentTerminated { .. }
        | Event::InboxCleared { .. }
        | Event::TurnStarted { .. }
        | Event::EffectStarted { .. }
        | Event::EffectEnded { .. }
        | Event::EffectDoubted { .. }
        | Event::EffectCleared { .. }
        | Event::EffectRestarted { .. }
        | Event::EffectRefused { .. }
        | Event::PhaseApplied { .. }
        | Event::SuggestionDropped
        | Event::TurnCrashed { .. }
        | Event::TurnRevived { .. }
        | Event::TurnRested { .. }
        | Event::MessageDeadLettered { .. }
        | Event::TurnParked { .. }
        | Event::TurnResumed { .. }
        | Event::TurnSettled { .. } => false,
    }
}

fn settled_turn(event: &Event) -> Option<TurnId> {
    match event {
        Event::TurnSettled { turn, .. } => Some(*turn),
        _ => None,
    }
}
