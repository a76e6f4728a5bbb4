//! What a random society is asked: mostly what its state allows, now and then what it must refuse.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{NOON, call, result, role};

/// The kind of the next command; its details are rolled from the state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CommandKind {
    Submit,
    Begin,
    End,
    Act,
    Settle,
    Expire,
    Resolve,
    Doubt,
    Restart,
    Park,
    Resume,
    CancelTask,
    CancelTurn,
    CreateRole,
    Spawn,
    Retry,
    Budgets,
    Terminate,
    Nonsense,
    Inquire,
    Answer,
    Crash,
    Revive,
    Memory,
    Erase,
}

pub(crate) fn commands() -> impl Strategy<Value = CommandKind> {
    prop_oneof![
        8 => Just(CommandKind::Submit),
        16 => Just(CommandKind::Begin),
        8 => Just(CommandKind::End),
        16 => Just(CommandKind::Act),
        12 => Just(CommandKind::Settle),
        5 => Just(CommandKind::Expire),
        8 => Just(CommandKind::Resolve),
        6 => Just(CommandKind::Doubt),
        5 => Just(CommandKind::Restart),
        2 => Just(CommandKind::Park),
        3 => Just(CommandKind::Resume),
        1 => Just(CommandKind::CancelTask),
        3 => Just(CommandKind::CancelTurn),
        2 => Just(CommandKind::CreateRole),
        3 => Just(CommandKind::Spawn),
        2 => Just(CommandKind::Retry),
        2 => Just(CommandKind::Budgets),
        2 => Just(CommandKind::Terminate),
        5 => Just(CommandKind::Nonsense),
        6 => Just(CommandKind::Inquire),
        6 => Just(CommandKind::Answer),
        4 => Just(CommandKind::Crash),
        4 => Just(CommandKind::Revive),
        4 => Just(CommandKind::Memory),
        2 => Just(CommandKind::Erase),
    ]
}

/// Rooms for many, or so small that everything overflows.
pub(crate) fn limits() -> impl Strategy<Value = Limits> {
    let small = Limits {
        text_bytes: 24,
        inbox_entries: 2,
        inbox_bytes: 40,
        open_effects: 2,
        depth: 2,
        children: 2,
        agents: 5,
        spawns_a_minute: 2,
        memories: 1,
        ..Limits::default()
    };
    let patient = Limits { hops: 1, messages_per_pair: 1, turns_per_task: 5, ..Limits::default() };
    prop_oneof![2 => Just(Limits::default()), 1 => Just(small), 1 => Just(patient)]
}

/// Rolls the details of one command.
pub(crate) struct Chooser<'a> {
    pub(crate) spine: &'a Spine,
    now: Timestamp,
    seed: u64,
    rolls: u64,
}

impl<'a> Chooser<'a> {
    pub(crate) fn new(spine: &'a Spine, now: Timestamp, seed: u64) -> Self {
        Self { spine, now, seed, rolls: 0 }
    }

    /// A turn that was told of some of its waits.
    fn told(&self) -> Option<TurnId> {
        self.spine.turns.iter().find(|(_, turn)| turn.has_unread_answers && !turn.is_parked()).map(|(id, _)| *id)
    }

    /// A command and the time at which it comes.
    pub(crate) fn choose(&mut self, command: CommandKind) -> (Command, Timestamp) {
        let command = match command {
            CommandKind::Submit if self.one_in(8) => Some(self.start_conversation()),
            CommandKind::Submit => None,
            CommandKind::Begin => self.begin(),
            CommandKind::End => self.end(),
            CommandKind::Act => self.act(),
            CommandKind::Settle => self.settle(),
            CommandKind::Expire => return self.expire(),
            CommandKind::Resolve => self.resolve(),
            CommandKind::Doubt => self.doubt(),
            CommandKind::Restart => self.restart(),
            CommandKind::Park => self.running().map(|turn| Command::Park { turn, reason: Failure::new("stuck", "stuck") }),
            CommandKind::Revive if self.told().is_some() && self.one_in(2) => self.told().map(|turn| Command::Rest { turn }),
            CommandKind::Revive => self.spine.turns.values().any(|turn| turn.is_owed()).then_some(Command::Revive),
            CommandKind::Crash => {
                self.running().map(|turn| Command::Crash { turn, failure: Failure::new("panicked", "broken") })
            }
            CommandKind::Resume => self.parked().map(|turn| Command::Resume { turn }),
            CommandKind::CancelTask => self.cancel_task(),
            CommandKind::CancelTurn => self.cancel_turn(),
            CommandKind::CreateRole if self.one_in(2) => {
                let patterns = [vec!["*"], vec!["read_*", "plan"], vec![]];
                let role = Role::clone(&role(self.role().as_str())).with_tools(self.pick(&patterns).clone());
                Some(Command::ChangeRole { role: Arc::new(role) })
            }
            CommandKind::CreateRole => Some(Command::CreateRole { role: role(&self.name()) }),
            CommandKind::Spawn => Some(Command::Spawn { agent: self.agent_name(), role: self.role(), parent: self.agent() }),
            CommandKind::Retry => self.retry(),
            CommandKind::Budgets if self.one_in(2) => {
                let newest = CodeVersion(1 + self.roll(3) as u32);
                let versions = [(Behaviour::from("plain"), newest)].into_iter().collect();
                Some(Command::SetVersions { versions: Arc::new(versions) })
            }
            CommandKind::Budgets => Some(Command::SetBudgets { budgets: Arc::new(self.budgets()) }),
            CommandKind::Terminate if self.one_in(6) => Some(self.change_conversation()),
            CommandKind::Erase => Some(self.erase_conversation()),
            CommandKind::Terminate if self.one_in(3) => Some(Command::RestoreContext { thread: self.any_thread() }),
            CommandKind::Terminate => {
                let (agent, children) = (self.agent(), self.children());
                Some(Command::Terminate { agent, children, reason: "enough".to_owned(), now: self.one_in(3) })
            }
            CommandKind::Nonsense => Some(self.nonsense()),
            CommandKind::Inquire => self.inquire(),
            CommandKind::Answer => self.answer(),
            CommandKind::Memory => Some(self.change_memories()),
        };
        let command = command.unwrap_or_else(|| self.submit());
        let command = if self.one_in(8) { self.with_key(command) } else { command };
        (command, Timestamp(self.now.0 + self.roll(50) as u64))
    }

    fn submit(&mut self) -> Command {
        let to = if self.one_in(3) { AgentId::root() } else { self.agent() };
        let envelope = Envelope {
            kind: MessageKind::Message,
            task_id: self.task(),
            reply_to: ReplyTo::User,
            ..self.envelope(AgentId::user(), to)
        };
        Command::Send { envelope: Arc::new(envelope) }
    }

    fn begin(&mut self) -> Option<Command> {
        let id = self.running()?;
        let turn = &self.spine.turns[&id];
        let n = if self.one_in(20) { turn.next + 1 } else { turn.next };
        let effects = (0..=self.roll(3) as u32).map(|i| self.effect(turn, EffectId { turn: id, n: n + i })).collect();
        Some(Command::DeclareEffects { turn: id, n, effects })
    }

    fn effect(&mut self, turn: &Turn, id: EffectId) -> Effect {
        let deadline = if self.one_in(2) { Some(self.later()) } else { None };
        let known = self.spine.reusable.tasks.get(&turn.task).and_then(|calls| calls.back()).map(|known| known.key);
        if let (Some(key), Effect::Tool(call), true) = (known, call(EffectClass::Read), self.one_in(3)) {
            return Effect::Tool(Box::new(Call { key: Some(key), ..*call }));
        }
        match self.roll(10) {
            9 => {
                let own: Vec<_> = self.spine.children(&turn.agent).into_iter().cloned().collect();
                let agent = self.try_pick(&own).cloned().filter(|_| !self.one_in(8)).unwrap_or_else(|| self.agent());
                Effect::Terminate { agent, children: self.children(), reason: String::new(), deadline: self.later() }
            }
            0 => Effect::Model {
                model: "m".into(),
                request: Digest::of(["r"]),
                reserve: self.spent(),
                tools: None,
                aside: false,
                purpose: "".into(),
            },
            1 | 2 => {
                let class = match self.roll(8) {
                    0 => EffectClass::Idempotent,
                    1 | 2 => EffectClass::Write,
                    _ => EffectClass::Read,
                };
                let ask = || Ruling::Ask("it is dear".to_owned());
                let allow = || Ruling::Allow;
                let person =
                    Ruling::Person(Question { text: "which?".to_owned(), wanted: self.wanted(), patience_ms: Some(5) });
                let rulings = [
                    allow(),
                    allow(),
                    allow(),
                    Ruling::Approved,
                    ask(),
                    ask(),
                    Ruling::Deny("no".to_owned()),
                    person,
                    Ruling::Stop("too often".to_owned()),
                ];
                let ruling = self.pick(&rulings).clone();
                match call(class) {
                    Effect::Tool(call) => {
                        let key = Some(Digest::of([["one", "one", "two"][self.roll(3)]])).filter(|_| !self.one_in(6));
                        let fresh = Some("it has changed".into()).filter(|_| self.one_in(6));
                        let own = self.one_in(6);
                        let flow = if self.one_in(2) { self.flow() } else { Flow::default() };
                        let identity =
                            Some(["first", "first", "first", "second"][self.roll(4)].into()).filter(|_| self.one_in(2));
                        let definition = identity.clone();
                        Effect::Tool(Box::new(Call { ruling, key, fresh, own, flow, identity, definition, ..*call }))
                    }
                    effect => effect,
                }
            }
            3 | 4 => {
                let to = self.agent();
                let envelope = Envelope {
                    task_id: self.own_task(turn),
                    reply_to: ReplyTo::Effect(id),
                    hops: turn.hops + 1,
                    ..self.envelope(turn.agent.clone(), to)
                };
                Effect::Ask { envelope: Arc::new(envelope), deadline }
            }
            5 => {
                let (question, details, wanted) = ("may I?".to_owned(), self.value(), self.wanted());
                Effect::Approval { question, details, call: None, deadline, wanted, change: None }
            }
            6 => Effect::Sleep { until: self.later() },
            7 => Effect::Keep(self.artifact()),
            _ => {
                let thread = self.thread_of(turn);
                let task = self.own_task(turn);
                Effect::Unit { thread, behaviour: "unit".into(), task: self.task_for(task) }
            }
        }
    }

    fn end(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let (id, open) = self.open(|open| strays || open.stage == Stage::Working)?;
        let outcome = match (&open.kind, self.roll(8)) {
            (_, 0) => Outcome::Slept,
            (_, 1) => Outcome::Failed(Failure::new("broken", "it broke")),
            (OpenKind::Model(reserved), _) => {
                let Spent { tokens, cost_nanos, .. } = reserved.amount;
                let usage = Usage { output_tokens: self.roll(tokens as usize + 9) as u64, cost_nanos, ..Usage::default() };
                Outcome::Reply(Reply { text: self.text(), usage, ..Reply::default() })
            }
            (OpenKind::Keep, _) => Outcome::Kept(self.artifact()),
            _ if self.one_in(4) => {
                Outcome::Result(CallResult::good("made").with_artifacts(vec![self.artifact(), self.artifact()]))
            }
            _ => result("done"),
        };
        let usage = match &outcome {
            Outcome::Reply(reply) => reply.usage,
            _ => Usage::default(),
        };
        Some(Command::End { id, outcome, spent: Some(Spent::request(usage, self.roll(50) as u64)), at: NOON })
    }

    /// One of few contents under one of few names.
    fn artifact(&mut self) -> Artifact {
        Artifact::new(ArtifactId::new([self.roll(3) as u8; 32]), ["a", "b"][self.roll(2)], "text/plain", 1)
    }

    fn retry(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let (id, _) = self.open(|open| strays || matches!(open.kind, OpenKind::Model(_)))?;
        let failure = Failure::new("model_failed", "down");
        let (model, next) = ("m".into(), "m".into());
        Some(Command::Retry {
            id,
            attempt: Attempt { model, attempt: 1, max_retries: 3, failure, delay_ms: 1_000, next },
            spent: self.spent(),
        })
    }

    /// Budgets for everything or for little, so that calls are told, asked about, put off and refused.
    fn budgets(&mut self) -> Budgets {
        let mut budget = || Budget {
            tokens: [None, Some(20), Some(60)][self.roll(3)],
            cost_nanos: [None, None, Some(50)][self.roll(3)],
            requests: [None, None, Some(3)][self.roll(3)],
            time_ms: [None, None, Some(100)][self.roll(3)],
        };
        let (society, task, agent, call) = (budget(), budget(), budget(), budget());
        let roles = BTreeMap::from([("worker".into(), budget())]);
        if self.one_in(3) { Budgets::default() } else { Budgets { society, task, agent, call, roles } }
    }

    fn spent(&mut self) -> Spent {
        Spent { tokens: self.roll(30) as u64, cost_nanos: self.roll(30) as u64, requests: 1, ..Spent::default() }
    }

    fn settle(&mut self) -> Option<Command> {
        let unawaited = self.spine.turns.iter().find(|(_, turn)| turn.reply_to == ReplyTo::Nobody && !turn.is_parked());
        let turn = unawaited.filter(|_| self.one_in(2)).map(|(id, _)| *id).or_else(|| self.running())?;
        let open = &self.spine.turns[&turn];
        // Most handlers wait for what they asked before they return; units are left behind more often than is their share.
        let has_unit = open.open.iter().any(|open| matches!(open.kind, OpenKind::Unit(_)));
        if !open.open.is_empty() && !self.one_in(if has_unit { 2 } else { 4 }) {
            return None;
        }
        if self.one_in(if open.reply_to == ReplyTo::Nobody { 2 } else { 6 }) {
            return Some(Command::Settle { turn, result: TurnResult::Failed(Failure::new("gave_up", "cannot do it")) });
        }
        let next = (0..[0, 0, 1, 2, 3][self.roll(5)]).map(|_| {
            let task = self.own_task(open);
            self.task_for(task)
        });
        let next = next.collect();
        let message = if self.one_in(3) { None } else { Some(self.message()) };
        Some(Command::Settle { turn, result: TurnResult::Done { message, answer: self.text().into(), next } })
    }

    fn expire(&mut self) -> (Command, Timestamp) {
        let Some((id, open)) = self.open(|open| open.deadline.is_some()) else { return (self.submit(), self.now) };
        let deadline = open.deadline.expect("it has one").max(self.now);
        let at = if self.one_in(4) { self.now } else { deadline };
        (Command::Expire { id }, at)
    }

    fn resolve(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_));
        let (id, open) = self.open(|open| strays || asks(&open.kind) || open.stage == Stage::InDoubt)?;
        let resolution = match (open.stage, self.roll(6)) {
            (_, 0) | (Stage::InDoubt, 1 | 2) => Resolution::Again,
            (Stage::InDoubt, _) | (_, 1) => Resolution::Outcome(result("it was done")),
            _ => {
                let always = *self.pick(&[None, Some(Always::Agent), Some(Always::Task), Some(Always::Tool)]);
                let always = always.filter(|_| self.one_in(3));
                let answer = matches!(open.kind, OpenKind::Question(_)).then(|| self.words());
                let approved = self.one_in(2);
                let matching = always.filter(|_| self.one_in(2)).map(|_| Matching::proposed("{}"));
                Resolution::Outcome(Outcome::Verdict(Verdict { approved, always, matching, answer, ..Verdict::yes() }))
            }
        };
        Some(Command::Resolve { id, resolution })
    }

    /// A call that runs asks for something; mostly one that does run.
    fn inquire(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let runs = |open: &OpenEffect| open.stage == Stage::Working && matches!(open.kind, OpenKind::Tool(_));
        let (id, _) = self.open(|open| strays || runs(open))?;
        let about = self.pick(&["s__sampling", "t__sampling"]).to_string();
        let inquiry = if self.one_in(2) {
            let question = Question { text: self.text(), wanted: self.wanted(), patience_ms: None };
            Inquiry::Person { question, details: self.value(), about: self.one_in(2).then(|| about.into()) }
        } else {
            let ask = Ruling::Ask(String::new());
            let rulings = [Ruling::Allow, Ruling::Allow, Ruling::Approved, ask, Ruling::Deny("no".to_owned())];
            let (reserve, ruling) = (self.spent(), self.pick(&rulings).clone());
            let (model, request, prompt) = ("m".into(), Digest::of(["r"]), "say".to_owned());
            Inquiry::Model { model, request, prompt, reserve, about: about.into(), ruling }
        };
        Some(Command::Inquire { id, by: "s".into(), inquiry })
    }

    fn answer(&mut self) -> Option<Command> {
        let ids: Vec<_> = self.spine.inquiries.iter().collect();
        if ids.is_empty() {
            return None;
        }
        let (id, open) = ids[self.roll(ids.len())];
        let id = if self.one_in(9) { InquiryId { seq: Seq(id.seq.0 + 1), ..*id } } else { *id };
        let answer = match (open, self.roll(8)) {
            (_, 0) => Answer::void(),
            (_, 1) => Answer::Reply(Reply::default()),
            (_, 2) => Answer::Cancelled,
            (OpenInquiry::Model(_), _) => Answer::Reply(Reply { text: self.text(), ..Reply::default() }),
            (OpenInquiry::Person { wanted, .. }, _) => {
                let answer = (*wanted != Wanted::Agreement || self.one_in(6)).then(|| self.words());
                let always = *self.pick(&[None, None, Some(Always::Agent), Some(Always::Tool)]);
                Answer::Verdict(Verdict { approved: !self.one_in(3), always, answer, ..Verdict::yes() })
            }
        };
        let spent = Some(self.spent());
        Some(Command::Answer { id, answer, spent })
    }

    fn doubt(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let writes = OpenKind::Tool(EffectClass::Write);
        let (id, _) = self.open(|open| strays || open.kind == writes && open.stage == Stage::Working)?;
        Some(Command::Doubt { id })
    }

    fn restart(&mut self) -> Option<Command> {
        let strays = self.one_in(6);
        let (id, _) = self.open(|open| strays || open.stage == Stage::Cleared)?;
        Some(Command::Restart { id })
    }

    fn cancel_task(&mut self) -> Option<Command> {
        Some(Command::Cancel { target: Target::Task(self.task()), reason: String::new(), said: Vec::new() })
    }

    fn cancel_turn(&mut self) -> Option<Command> {
        let turns: Vec<_> = self.spine.turns.keys().copied().collect();
        let turn = *self.try_pick(&turns)?;
        let said = if self.one_in(2) { vec![(turn, self.message().into())] } else { Vec::new() };
        Some(Command::Cancel { target: Target::Turn(turn), reason: "enough".to_owned(), said })
    }

    fn act(&mut self) -> Option<Command> {
        let id = self.running()?;
        let turn = &self.spine.turns[&id];
        let n = if self.one_in(20) { turn.next.wrapping_sub(1) } else { turn.next };
        let own = self.spine.threads.iter().filter(|(_, head)| head.agent == turn.agent);
        let mut lengths: BTreeMap<_, _> = own.map(|(id, head)| (id.clone(), head.messages)).collect();
        let acts = (0..[1, 1, 2, 4, 6][self.roll(5)]).map(|_| self.one_act(turn, &mut lengths)).collect();
        Some(Command::Act { id: EffectId { turn: id, n }, acts, at: None })
    }

    fn one_act(&mut self, turn: &Turn, lengths: &mut BTreeMap<ThreadId, u32>) -> Act {
        let known: Vec<_> = lengths.keys().cloned().collect();
        let thread = if self.one_in(25) { self.any_thread() } else { self.pick(&known).clone() };
        let length = lengths.get(&thread).copied().unwrap_or_default();
        let index = if self.one_in(25) { length } else { self.roll(length.max(1) as usize) as u32 };
        match self.roll(23) {
            18 if self.one_in(2) => Act::KeepMemory { memory: self.new_memory(&turn.agent) },
            18 if self.one_in(3) => Act::EraseMemory { id: self.memory_id() },
            16 => {
                let summaries = vec![self.text()];
                Act::CompressContext { thread, from: index + u32::from(self.one_in(2)), summaries }
            }
            17 if self.one_in(3) => Act::TakeMessages,
            17 if self.one_in(2) => Act::RestoreContext { thread },
            17 => Act::KeepContext { thread, failure: Failure::new("not_smaller", "no") },
            18 => {
                let step = Step { text: self.text(), status: StepStatus::InProgress, ..Step::default() };
                Act::SetPlan { thread, plan: Plan { steps: vec![step], ..Plan::default() } }
            }
            0..4 => {
                lengths.entry(thread.clone()).and_modify(|length| *length += 1);
                Act::AddMessage { thread, message: self.message().into() }
            }
            4 | 5 => {
                let text = if self.one_in(2) { Some(self.text()) } else { None };
                Act::UpdateMessage { thread, index, patch: MessagePatch { text, meta: self.meta().into() } }
            }
            6 => Act::UpdateSettings { thread, settings: self.settings() },
            7..9 => Act::SuggestPhase { thread, phase: self.phase() },
            9..12 => {
                let child = if self.one_in(12) { self.any_thread() } else { self.name().into() };
                let slots = ["meta._thread", "meta.threads.a", "meta.threads.b", "meta.threads", "meta.threads.a.deep"];
                let slot = self.pick(&slots);
                let slot = MetaPath::new(slot).expect("a slot");
                lengths.entry(child.clone()).or_default();
                let settings = self.settings();
                let meta = self.meta();
                let held = self.one_in(2).then(|| "nothing: ".into());
                let index = Some(index).filter(|index| index % 4 != 3);
                Act::OpenSubThread { parent: thread, index, slot, child, settings, meta: meta.into(), held }
            }
            12 | 13 | 19.. => {
                let to = match self.roll(4) {
                    0 => AgentId::user(),
                    1 => turn.agent.clone(),
                    _ => self.agent(),
                };
                let kind = if self.one_in(20) { MessageKind::Answer } else { MessageKind::Message };
                let envelope = Envelope {
                    kind,
                    task_id: self.own_task(turn),
                    hops: turn.hops + 1,
                    ..self.envelope(turn.agent.clone(), to)
                };
                Act::Send { envelope: Arc::new(envelope) }
            }
            14 => Act::CreateRole { role: role(&self.name()) },
            _ => Act::Spawn { agent: self.agent_name(), role: self.role() },
        }
    }

    /// Commands that nobody should have, or that come too late, or in a false name.
    fn nonsense(&mut self) -> Command {
        let turn = TurnId(Seq(self.roll(self.spine.seq.0 as usize + 3) as u64));
        let id = EffectId { turn, n: *self.pick(&[0, 0, 1, 2, u32::MAX]) };
        let forged = Envelope { reply_to: ReplyTo::Effect(id), ..self.envelope(AgentId::user(), AgentId::root()) };
        match self.roll(15) {
            0 => Command::Found { seed: 1, limits: Limits::default(), role: role("worker") },
            1 => Command::Send { envelope: Arc::new(self.envelope(AgentId::user(), AgentId::user())) },
            2 => Command::Send { envelope: Arc::new(forged) },
            3 => Command::Send { envelope: Arc::new(self.envelope(AgentId::root(), AgentId::root())) },
            4 => Command::DeclareEffects { turn, n: id.n, effects: vec![call(EffectClass::Read)] },
            5 => Command::End { id, outcome: result("late"), spent: None, at: NOON },
            6 => Command::Act { id, acts: vec![Act::Send { envelope: Arc::new(forged) }], at: None },
            7 => Command::Doubt { id },
            8 => Command::Restart { id },
            9 => Command::Resolve { id, resolution: Resolution::Again },
            10 => Command::Expire { id },
            11 => Command::Resume { turn },
            12 => Command::Settle { turn, result: TurnResult::Failed(Failure::new("late", "late")) },
            13 => match self.running() {
                Some(turn) => {
                    let n = self.spine.turns[&turn].next;
                    let grant = Effect::Grant { lacking: Vec::new(), calls: BTreeMap::new() };
                    Command::DeclareEffects { turn, n, effects: vec![grant] }
                }
                None => Command::Resume { turn },
            },
            _ => Command::CreateRole { role: role("no name") },
        }
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.rolls += 1;
        (mix(self.seed ^ mix(self.rolls)) % sides as u64) as usize
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 1
    }

    pub(crate) fn try_pick<'b, T>(&mut self, from: &'b [T]) -> Option<&'b T> {
        if from.is_empty() { None } else { Some(&from[self.roll(from.len())]) }
    }

    pub(crate) fn pick<'b, T>(&mut self, from: &'b [T]) -> &'b T {
        self.try_pick(from).expect("there is something to pick from")
    }

    fn running(&mut self) -> Option<TurnId> {
        let turns = self.spine.turns.iter().filter(|(_, turn)| !turn.is_parked());
        let turns: Vec<_> = turns.map(|(id, _)| *id).collect();
        self.try_pick(&turns).copied()
    }

    fn parked(&mut self) -> Option<TurnId> {
        let strays = self.one_in(6);
        let turns = self.spine.turns.iter().filter(|(_, turn)| strays || turn.is_parked());
        let turns: Vec<_> = turns.map(|(id, _)| *id).collect();
        self.try_pick(&turns).copied()
    }

    fn open(&mut self, fits: impl Fn(&OpenEffect) -> bool) -> Option<(EffectId, OpenEffect)> {
        let all = self.spine.turns.iter().flat_map(|(id, turn)| turn.open.iter().map(|open| (*id, open)));
        let fitting = all.filter(|(_, open)| fits(open));
        let fitting: Vec<_> = fitting.map(|(turn, open)| (EffectId { turn, n: open.n }, open.clone())).collect();
        self.try_pick(&fitting).cloned()
    }

    pub(crate) fn agent(&mut self) -> AgentId {
        if self.one_in(20) {
            return self.pick(&["nobody", "user"]).to_string().into();
        }
        let mut agents: Vec<_> = self.spine.agents.keys().cloned().collect();
        agents.sort();
        self.pick(&agents).clone()
    }

    fn children(&mut self) -> Children {
        *self.pick(&[Children::Cascade, Children::Cascade, Children::Detach, Children::Refuse])
    }

    pub(crate) fn role(&mut self) -> RoleId {
        if self.one_in(20) {
            return "no_such_role".into();
        }
        let roles: Vec<_> = self.spine.roles.keys().cloned().collect();
        self.pick(&roles).clone()
    }

    /// Agents, sub-threads, roles and tasks draw from one pool of names, so that they meet.
    fn name(&mut self) -> String {
        let is_free = |name: &String| {
            !self.spine.agents.contains_key(&AgentId::from(name.as_str()))
                && !self.spine.threads.contains_key(&ThreadId::from(name.as_str()))
        };
        let free = (0..).map(|n| format!("n{n}")).find(is_free).expect("names do not end");
        if self.one_in(8) { format!("n{}", self.roll(20)) } else { free }
    }

    pub(crate) fn agent_name(&mut self) -> AgentId {
        if self.one_in(12) { self.pick(&["user", "root", "", "a b"]).to_string().into() } else { self.name().into() }
    }

    fn any_thread(&mut self) -> ThreadId {
        let mut threads: Vec<_> = self.spine.threads.keys().cloned().chain(["nowhere".into()]).collect();
        threads.sort();
        self.pick(&threads).clone()
    }

    /// A thread in which a unit of this turn might run.
    fn thread_of(&mut self, turn: &Turn) -> ThreadId {
        let own = self.spine.threads.iter().filter(|(_, head)| head.agent == turn.agent && head.turn.is_none());
        let mut own: Vec<_> = own.map(|(id, _)| id.clone()).collect();
        own.sort();
        if own.is_empty() || self.one_in(12) { self.any_thread() } else { self.pick(&own).clone() }
    }

    fn task(&mut self) -> TaskId {
        let open: Vec<_> = self.spine.turns.values().map(|turn| turn.task.clone()).collect();
        if self.one_in(2) && !open.is_empty() {
            return self.pick(&open).clone();
        }
        self.pick(&["t0", "t1", "t2", "t3", "root", "n0"]).to_string().into()
    }

    fn own_task(&mut self, turn: &Turn) -> TaskId {
        if self.one_in(40) { self.task() } else { turn.task.clone() }
    }

    fn task_for(&mut self, id: TaskId) -> Task {
        let task = if self.one_in(2) { Task::action(id, "next", self.text()) } else { Task::message(id, self.text()) };
        Task { meta: self.meta().into(), ..task }
    }

    pub(crate) fn envelope(&mut self, from: AgentId, to: AgentId) -> Envelope {
        let payload = Payload { text: self.text().into(), meta: self.meta().into() };
        let id = format!("m{}.{}", self.spine.seq, self.rolls).into();
        let person = Some(PersonId::owner()).filter(|_| from.is_user() && self.one_in(2));
        let (task_id, kind) = (self.task(), MessageKind::Message);
        Envelope { id, from, to, task_id, kind, payload, reply_to: ReplyTo::Nobody, person, hops: 0 }
    }

    pub(crate) fn message(&mut self) -> Message {
        let id = format!("s{}.{}", self.spine.seq, self.rolls).into();
        Message { id, sender: Sender::Bot, text: self.text(), timestamp: self.now, meta: self.meta().into() }
    }

    /// Mostly a short text; sometimes none, or one that is too long where the room is small.
    pub(crate) fn text(&mut self) -> String {
        let limit = self.spine.limits.text_bytes;
        match self.roll(24) {
            0 => String::new(),
            1 if limit < 100 => "x".repeat(limit + 1),
            2 => "你好".to_owned(),
            n => format!("text {n}"),
        }
    }

    fn meta(&mut self) -> Map<String, Value> {
        let mut meta = Map::new();
        if self.one_in(5) {
            meta.insert("_ui_action".to_owned(), json!("retry"));
        }
        if self.one_in(3) {
            meta.insert("note".to_owned(), self.value());
        }
        if self.one_in(8) {
            Artifact::attach(&mut meta, &[self.artifact()]);
        }
        meta
    }

    fn value(&mut self) -> Value {
        match self.roll(4) {
            0 => json!(f64::from_bits(mix(self.seed) >> 2)),
            1 => json!({ "list": [1, "two", null, true], "big": u64::MAX }),
            2 => json!((mix(self.seed) as f64) / 1e17),
            _ => json!("text"),
        }
    }

    fn settings(&mut self) -> Settings {
        let phase_update_suggestion = self.one_in(2).then(|| PhaseUpdateSuggestion { phase: self.phase() });
        let brief_status = BriefStatus { phase: self.phase(), rest: self.meta().into() };
        Settings { brief_status, phase_update_suggestion, rest: self.meta().into() }
    }

    fn phase(&mut self) -> Phase {
        Phase::new(self.pick::<&str>(&["initial_phase", "drafting", "review", "completed"])).expect("a phase")
    }

    fn later(&mut self) -> Timestamp {
        Timestamp(self.now.0 + self.roll(200) as u64)
    }
}
