//! What must hold after every event and after every wish, judged by a memory of its own that learns from the log only.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::mem::take;

use polis_domain::*;
use serde_json::Value;

/// A law that is broken says which one it is and how.
type Law = Result<(), String>;

macro_rules! law {
    ($holds:expr, $($broken:tt)+) => {
        if !$holds {
            return Err(format!($($broken)+));
        }
    };
}

/// What the log has told so far.
#[derive(Default)]
pub(crate) struct Past {
    seq: Seq,
    threads: HashMap<ThreadId, Vec<Recorded>>,
    folds: BTreeMap<ThreadId, (u32, Phase, Option<Phase>)>,
    /// Where each thread should stand by R038-R044: its phase and what is proposed.
    phases: BTreeMap<ThreadId, (Phase, Option<Phase>)>,
    inboxes: BTreeMap<AgentId, VecDeque<Waiting>>,
    letters: HashMap<MessageId, Fate>,
    effects: HashMap<EffectId, Progress>,
    counts: HashMap<TurnId, u32>,
    /// The turn for which another one works: it asked, or it runs the unit.
    above: HashMap<TurnId, TurnId>,
}

/// Something that an agent is to turn to.
struct Waiting {
    task: Task,
    letter: Option<MessageId>,
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

/// What must be remembered of the state before a wish.
pub(crate) struct Before {
    turns: BTreeMap<TurnId, (ThreadId, TaskId)>,
    owed_to_user: BTreeMap<TaskId, usize>,
}

impl Before {
    pub(crate) fn of(spine: &Spine) -> Self {
        let turns = spine.turns.iter().map(|(id, turn)| (*id, (turn.thread.clone(), turn.task.clone())));
        Self { turns: turns.collect(), owed_to_user: owed_to_user(spine) }
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
            ("letters are taken in the order sent, own follow-ups first; none is lost", self.letters(recorded, spine)),
            ("the head of a thread equals the fold of its events", self.heads(recorded, spine)),
            ("a phase is applied when a turn starts, dropped on a retry, each thread alone", self.phases(recorded, spine)),
            ("turns, heads and agents agree on what is open", agreement(spine)),
            ("a sub-thread hangs where its parent says, and its address leads to it", places(spine)),
            ("nobody waits in a circle", no_circle(spine)),
            ("an inbox weighs what its entries weigh, and letters stay within the limits", weights(spine)),
        ];
        first_broken(laws)
    }

    /// Every law that holds once all events of a wish are folded in.
    pub(crate) fn after_command(&mut self, before: &Before, wish: &Command, events: &[Recorded], spine: &Spine) -> Law {
        self.effects.values_mut().filter(|progress| **progress == Progress::Acting).for_each(|it| *it = Progress::Over);
        let laws = [
            ("a wish that is granted leaves events", granted(events)),
            ("an idle agent has an empty inbox", idle(spine)),
            ("each thread stands where it should", self.standing(spine)),
            ("the last event of an effect is under its turn's own thread", journal(before, events)),
            ("the person is told once what came of each request", told_once(before, wish, events, spine)),
            ("what an open ask or unit waits for is under way exactly once", waits_are_held(spine)),
            ("a turn has no more effects open than allowed", few_effects(spine)),
            ("a cancel settles everything below, children first", self.cancelled(before, wish, events, spine)),
        ];
        first_broken(laws)
    }

    fn sequence(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        self.seq = self.seq.next();
        law!(recorded.seq == self.seq && spine.seq == self.seq, "{} after {}", recorded.seq, self.seq.0 - 1);
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
            | (Event::EffectCleared { .. }, Some(Progress::Open))
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

    fn letters(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        if let Some(letter) = recorded.event.letter().filter(|letter| !letter.to.is_user()) {
            let sent = self.letters.insert(letter.id.clone(), Fate::Waits);
            law!(sent.is_none(), "letter {} was sent before", letter.id);
            self.inboxes.entry(letter.to.clone()).or_default().push_back(Waiting::letter(letter));
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
            inbox.push_front(Waiting { task: task.clone(), letter: None, reply_to, above });
        }
        Ok(())
    }

    fn fate(&mut self, waiting: &Waiting, fate: Fate) -> Law {
        let Some(letter) = &waiting.letter else { return Ok(()) };
        let before = self.letters.insert(letter.clone(), fate);
        law!(before == Some(Fate::Waits), "letter {letter} was {before:?} and is now {fate:?}");
        Ok(())
    }

    fn heads(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        if let Some(thread) = &recorded.thread {
            let length = self.folds.get(thread).map_or(0, |(messages, ..)| *messages);
            let events = self.threads.entry(thread.clone()).or_default();
            events.push(recorded.clone());
            let fold = Thread::fold(thread.clone(), &*events);
            let place = match &recorded.event {
                Event::TurnStarted { index, .. } | Event::MessageAdded { index, .. } | Event::TurnSettled { index, .. } => *index,
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

    fn cancelled(&self, before: &Before, wish: &Command, events: &[Recorded], spine: &Spine) -> Law {
        let Command::Cancel { target, .. } = wish else { return Ok(()) };
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
    fn letter(letter: &Letter) -> Self {
        let above = match letter.reply_to {
            ReplyTo::Effect(id) => Some(id.turn),
            ReplyTo::User | ReplyTo::Nobody => None,
        };
        let task = Task::message(letter.task_id.clone(), letter.payload.text.clone());
        let task = Task { meta: letter.payload.meta.clone(), ..task };
        Self { task, letter: Some(letter.id.clone()), reply_to: letter.reply_to, above }
    }

    fn is(&self, due: &Due) -> bool {
        match due {
            Due::Letter(letter) => self.letter.as_ref() == Some(&letter.id) && self.reply_to == letter.reply_to,
            Due::FollowUp { task, reply_to } => self.letter.is_none() && self.task == *task && self.reply_to == *reply_to,
        }
    }

    fn is_taken_by(&self, started: &Event) -> Law {
        let Event::TurnStarted { task, reply_to, message, .. } = started else { return Ok(()) };
        law!(*task == self.task && *reply_to == self.reply_to, "{:?} was at the front", self.task);
        let shown = self.letter.is_some() || !self.task.skip_user_message;
        law!(message.is_some() == shown, "the text of the task is in the thread: {}", message.is_some());
        law!(self.letter.is_none() || *message == self.letter, "{:?} was at the front", self.letter);
        Ok(())
    }

    fn leaves(&self, of: &Cleared) -> bool {
        match of {
            Cleared::Task(task) => self.task.id == *task,
            Cleared::AskedBy(turns) => self.above.is_some_and(|above| turns.contains(&above)),
        }
    }
}

fn first_broken<const N: usize>(laws: [(&str, Law); N]) -> Law {
    laws.into_iter().try_for_each(|(name, law)| law.map_err(|broken| format!("broken law: {name}: {broken}")))
}

fn is_act(event: &Event) -> bool {
    match event {
        Event::Acted { .. }
        | Event::MessageAdded { .. }
        | Event::MessageUpdated { .. }
        | Event::SettingsUpdated { .. }
        | Event::PhaseSuggested { .. }
        | Event::ThreadOpened { .. }
        | Event::ThreadLinked { .. }
        | Event::LetterSent { .. }
        | Event::RoleCreated { .. }
        | Event::AgentSpawned { .. } => true,
        Event::SocietyFounded { .. }
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

fn only_the_named_turn(owed: &BTreeMap<TurnId, Owed>, recorded: &Recorded, spine: &Spine) -> Law {
    let now: BTreeMap<_, _> = outstanding(spine).collect();
    let mut changed = owed.keys().chain(now.keys()).filter(|id| owed.get(id) != now.get(id));
    let other = changed.find(|id| recorded.turn() != Some(**id));
    law!(other.is_none(), "{other:?} changed");
    Ok(())
}

fn texts(recorded: &Recorded, spine: &Spine) -> Law {
    let text = match &recorded.event {
        Event::TurnStarted { message: Some(_), task, .. } => &*task.message,
        Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => &message.text,
        Event::MessageUpdated { patch, .. } => patch.text.as_deref().unwrap_or_default(),
        // What the person is told in the end may be the words of a failure; those are ours.
        Event::LetterSent { letter, by: None } if letter.to.is_user() => "",
        event => event.letter().map_or("", |letter| &letter.payload.text),
    };
    let limit = spine.limits.text_bytes;
    law!(text.len() <= limit, "{} bytes, {limit} are allowed", text.len());
    Ok(())
}

fn from_user_to_user(recorded: &Recorded) -> Law {
    let talks = |letter: &Letter| letter.from.is_user() && letter.to.is_user();
    law!(!recorded.event.letter().is_some_and(|letter| talks(letter)), "{:?}", recorded.event);
    Ok(())
}

/// A sub-thread is named in the message that holds it.
fn links_show(fold: &Thread, spine: &Spine) -> Law {
    let links = spine.threads.get(&fold.id).map(|head| &head.links);
    for (index, slot, child) in links.into_iter().flatten().flat_map(|(index, at)| at.iter().map(move |(slot, child)| (index, slot, child))) {
        let message = fold.messages.get(*index as usize);
        let found = message.and_then(|message| {
            let mut keys = slot.keys();
            let first = message.meta.get(keys.next()?)?;
            keys.try_fold(first, |meta, key| meta.get(key))
        });
        let named = found.and_then(|found| found.get("id")).and_then(Value::as_str);
        law!(named == Some(child.as_str()), "message {index} of `{}` shows {named:?} at {slot}, not `{child}`", fold.id);
    }
    Ok(())
}

fn agreement(spine: &Spine) -> Law {
    for (id, turn) in &spine.turns {
        let head = spine.threads.get(&turn.thread);
        let held = head.is_some_and(|head| head.turn == Some(*id) && head.agent == turn.agent);
        law!(held, "turn {id} is open, but not in its thread `{}`", turn.thread);
        let is_main = turn.thread == turn.agent.main_thread();
        law!(is_main == (turn.origin == Origin::Inbox), "turn {id} of {:?} is in `{}`", turn.origin, turn.thread);
        law!(!is_main || spine.agents[&turn.agent].turn == Some(*id), "{} does not know turn {id}", turn.agent);
    }
    for (thread, head) in &spine.threads {
        let known = head.turn.is_none_or(|id| spine.turns.get(&id).is_some_and(|turn| turn.thread == *thread));
        law!(known, "`{thread}` believes in turn {:?}", head.turn);
    }
    for (name, agent) in &spine.agents {
        let known = agent.turn.is_none_or(|id| spine.turns.get(&id).is_some_and(|turn| turn.agent == *name));
        law!(known, "{name} believes in turn {:?}", agent.turn);
    }
    Ok(())
}

fn places(spine: &Spine) -> Law {
    for (id, head) in &spine.threads {
        let (main, path) = spine.address(id);
        law!(spine.resolve(&main, &path).as_ref() == Some(id), "{main}.{path} is not `{id}`");
        // Between the two events of an opening a sub-thread hangs nowhere yet; it has no messages and no turn.
        let hangs = head.place.is_some() || head.messages == 0 && head.turn.is_none();
        law!(hangs || *id == head.agent.main_thread(), "`{id}` hangs nowhere");
        let Some(place) = head.place.as_deref() else { continue };
        law!(main == head.agent.main_thread(), "`{id}` of {} hangs below `{main}`", head.agent);
        let Some(parent) = spine.threads.get(&place.parent) else { return Err(format!("`{id}` has no parent")) };
        law!(parent.agent == head.agent && place.index < parent.messages, "`{id}` hangs in nothing");
        let here = parent.links.get(&place.index).into_iter().flatten();
        let times = here.filter(|(slot, child)| *slot == place.slot && child == id).count();
        law!(times == 1, "the parent of `{id}` names it {times} times");
    }
    for (index, (_, child)) in spine.threads.values().flat_map(|head| &head.links).flat_map(|(index, at)| at.iter().map(move |it| (index, it))) {
        let place = spine.threads.get(child).and_then(|head| head.place.as_deref());
        law!(place.is_some_and(|place| place.index == *index), "`{child}` does not know where it hangs");
    }
    Ok(())
}

/// No turn waits, through asks and units, for itself.
fn no_circle(spine: &Spine) -> Law {
    let waits_for = |id: &TurnId| {
        let open = spine.turns.get(id).map_or(&[][..], |turn| &turn.open);
        open.iter().filter_map(|open| match &open.kind {
            OpenKind::Ask(agent) => spine.agents[agent].turn,
            OpenKind::Unit(thread) => spine.threads[thread].turn,
            OpenKind::Model | OpenKind::Tool(_) | OpenKind::Approval | OpenKind::Sleep => None,
        })
    };
    for top in spine.turns.keys() {
        let (mut seen, mut next) = (BTreeSet::new(), waits_for(top).collect::<Vec<_>>());
        while let Some(id) = next.pop() {
            law!(id != *top, "turn {top} waits for itself");
            if seen.insert(id) {
                next.extend(waits_for(&id));
            }
        }
    }
    Ok(())
}

fn weights(spine: &Spine) -> Law {
    let limits = &spine.limits;
    for (name, inbox) in spine.agents.iter().filter_map(|(name, agent)| Some((name, agent.inbox.as_ref()?))) {
        law!(!inbox.entries.is_empty(), "{name} keeps an empty inbox");
        let bytes: usize = inbox.entries.iter().map(Due::bytes).sum();
        law!(inbox.bytes == bytes, "the inbox of {name} has {bytes} bytes and says {}", inbox.bytes);
        let letters = || inbox.entries.iter().filter(|due| matches!(due, Due::Letter(_)));
        let (count, bytes) = (letters().count(), letters().map(Due::bytes).sum::<usize>());
        let fits = count <= limits.inbox_entries && bytes <= limits.inbox_bytes;
        law!(fits, "{count} letters of {bytes} bytes wait for {name}");
    }
    Ok(())
}

fn granted(events: &[Recorded]) -> Law {
    law!(!events.is_empty(), "it left none");
    Ok(())
}

fn idle(spine: &Spine) -> Law {
    let left = spine.agents.iter().find(|(_, agent)| agent.turn.is_none() && agent.inbox.is_some());
    law!(left.is_none(), "{:?}", left);
    Ok(())
}

fn journal(before: &Before, events: &[Recorded]) -> Law {
    let last: BTreeMap<_, _> = events.iter().filter_map(|recorded| Some((recorded.event.effect()?, recorded))).collect();
    for (id, recorded) in last {
        let own = before.turns.get(&id.turn).map(|(thread, _)| thread);
        law!(recorded.thread.as_ref() == own, "the last of {id} is under {:?}, not {own:?}", recorded.thread);
    }
    Ok(())
}

fn owed_to_user(spine: &Spine) -> BTreeMap<TaskId, usize> {
    let mut owed = BTreeMap::new();
    let turns = spine.turns.values().map(|turn| (turn.reply_to, &turn.task));
    let inboxes = spine.agents.values().filter_map(|agent| agent.inbox.as_ref());
    let waiting = inboxes.flat_map(|inbox| &inbox.entries).map(|due| (due.reply_to(), due.task()));
    for (_, task) in turns.chain(waiting).filter(|(reply_to, _)| *reply_to == ReplyTo::User) {
        *owed.entry(task.clone()).or_default() += 1;
    }
    owed
}

fn told_once(before: &Before, wish: &Command, events: &[Recorded], spine: &Spine) -> Law {
    let after = owed_to_user(spine);
    let letters = || events.iter().filter_map(|recorded| recorded.event.letter());
    let tasks: BTreeSet<_> = before.owed_to_user.keys().chain(after.keys()).chain(letters().map(|letter| &letter.task_id)).collect();
    for task in tasks {
        let of_task = || letters().filter(|letter| letter.task_id == *task);
        let asked = of_task().filter(|letter| letter.reply_to == ReplyTo::User).count();
        let told = of_task().filter(|letter| letter.to.is_user() && letter.kind != LetterKind::Message).count();
        let owed = before.owed_to_user.get(task).unwrap_or(&0) + asked;
        let ended = owed - after.get(task).unwrap_or(&0);
        // Who calls off several requests of one task hears of it once.
        let expected = if matches!(wish, Command::Cancel { .. }) { ended.min(1) } else { ended };
        law!(told == expected, "{ended} requests of {task} ended and the person was told {told} times");
    }
    Ok(())
}

fn waits_are_held(spine: &Spine) -> Law {
    let turns = spine.turns.values().map(|turn| turn.reply_to);
    let inboxes = spine.agents.values().filter_map(|agent| agent.inbox.as_ref());
    let waiting = inboxes.flat_map(|inbox| &inbox.entries).map(Due::reply_to);
    let mut held = HashMap::<EffectId, usize>::new();
    for reply_to in turns.chain(waiting) {
        if let ReplyTo::Effect(id) = reply_to {
            *held.entry(id).or_default() += 1;
        }
    }
    for (turn, open) in spine.turns.iter().flat_map(|(id, turn)| turn.open.iter().map(move |open| (*id, open))) {
        let times = held.get(&EffectId { turn, n: open.n }).copied().unwrap_or_default();
        let expected = usize::from(matches!(open.kind, OpenKind::Ask(_) | OpenKind::Unit(_)));
        law!(times == expected, "{turn}.{} ({:?}) will be answered {times} times", open.n, open.kind);
    }
    Ok(())
}

fn few_effects(spine: &Spine) -> Law {
    let limit = spine.limits.open_effects;
    let many = spine.turns.iter().find(|(_, turn)| turn.open.len() > limit);
    law!(many.is_none(), "{many:?}");
    Ok(())
}
