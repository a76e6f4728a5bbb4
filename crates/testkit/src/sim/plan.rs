//! What a run will be: drawn from the seed before anything happens.

use polis_domain::{AgentId, Budget, Budgets};

use super::SeededRng;
use crate::{Op, Program};

/// A run: who is there, what is asked, and what goes wrong.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where all of it comes from.
    pub seed: u64,
    /// How many agents there are, root included.
    pub agents: usize,
    /// What is asked, in order.
    pub submissions: Vec<Submission>,
    /// The appends at which the process dies, counted from the last death: before the write is durable, or just after.
    pub kills: Vec<(u64, bool)>,
    /// Of a hundred appends, how many fail without killing anybody.
    pub failures_percent: u64,
    /// The longest that a model, a tool or a write takes.
    pub max_delay_ms: u64,
    /// Whether the model fails now and then.
    pub model_fails: bool,
    /// What may be spent.
    pub budgets: Budgets,
    /// Turns that run at once.
    pub max_running: usize,
    /// Waiting turns that stay in memory.
    pub max_lingering: usize,
}

/// One request of a person.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The agent that receives the request.
    pub agent: AgentId,
    /// The program that the agent runs.
    pub program: Program,
    /// Whether the person may call it off.
    pub cancel: bool,
}

impl Plan {
    /// Draws a plan.
    pub fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        let agents = 2 + rng.below(4) as usize;
        let cancels = rng.chance(25);
        let submissions = (0..1 + rng.below(4)).map(|i| {
            let agent = rng.below(agents as u64) as usize;
            let mut writer = Writer { rng: &mut rng, agents, tag: i };
            let mut program = writer.program(agent, 2);
            program.0.insert(0, Op::Say(format!("request {i}")));
            if writer.rng.chance(25) {
                let next = writer.program(agent, 1);
                program.0.push(Op::Then(next));
            }
            Submission { agent: name(agent), program, cancel: cancels && rng.chance(50) }
        });
        let submissions = submissions.collect();
        let kills = (0..rng.below(7)).map(|_| (rng.below(25), rng.chance(50))).collect();
        let mut plan = Self {
            seed,
            agents,
            submissions,
            kills,
            failures_percent: [0, 0, 3, 10][rng.below(4) as usize],
            max_delay_ms: [0, 5, 60][rng.below(3) as usize],
            model_fails: rng.chance(20),
            max_running: [1, 2, 256][rng.below(3) as usize],
            max_lingering: [0, 1, 1_024][rng.below(3) as usize],
            budgets: Budgets::default(),
        };
        if rng.chance(25) {
            plan.spend(&mut rng);
        }
        plan.keep(&mut rng);
        if rng.chance(30) {
            plan.hire(&mut rng);
        }
        plan
    }

    /// Has some keep contents outside the log, a few of them the same.
    fn keep(&mut self, rng: &mut SeededRng) {
        for submission in &mut self.submissions {
            if rng.chance(40) {
                let place = 1 + rng.below(submission.program.0.len() as u64) as usize;
                submission.program.0.insert(place, Op::Keep(format!("content {}", rng.below(3))));
            }
        }
    }

    /// Sets budgets of a few replies and has everybody think in several places at once, so that calls wait for each other and
    /// the person is asked for more.
    fn spend(&mut self, rng: &mut SeededRng) {
        self.budgets = budgets(rng);
        self.max_delay_ms = self.max_delay_ms.max(5);
        for (i, submission) in self.submissions.iter_mut().enumerate() {
            let think = |unit: u64, step: u64| Op::Think(format!("{i}-{unit}-{step}"));
            let unit = |unit| Program((0..3).map(|step| think(unit, step)).collect());
            submission.program.0.insert(1, Op::Units((0..4).map(unit).collect()));
        }
    }

    /// Has everybody make a helper, ask it, and send it away: idle, or with work that it does first. Some leave it a part that
    /// fails, and do not wait for it.
    fn hire(&mut self, rng: &mut SeededRng) {
        for (i, submission) in self.submissions.iter_mut().enumerate() {
            let helper = format!("helper{i}");
            let work = Program(vec![Op::Sleep(1 + rng.below(50)), Op::Call(vec![("mark".to_owned(), format!("h{i}"))])]);
            let asked = Op::Ask { agent: helper.clone(), program: work, patience_ms: 30 * 60 * 1_000 };
            let left = Op::Send(helper.clone(), Program(vec![Op::Fail("unheard".to_owned())]));
            let left = rng.chance(50).then_some(left);
            let (spawn, terminate) = (Op::Spawn(helper.clone()), Op::Terminate(helper, 60 * 60 * 1_000));
            let hired = [spawn, asked].into_iter().chain(left).chain([terminate]);
            submission.program.0.splice(1..1, hired);
        }
    }

    /// The same requests in a world where nothing goes wrong.
    pub fn undisturbed(&self) -> Self {
        Self { kills: Vec::new(), failures_percent: 0, max_delay_ms: 0, ..self.clone() }
    }

    /// Whether the answers follow from the requests alone: nothing is called off, no model fails, and nobody runs out of money.
    pub fn is_comparable(&self) -> bool {
        !self.model_fails && self.budgets == Budgets::default() && !self.submissions.iter().any(|submission| submission.cancel)
    }
}

fn budgets(rng: &mut SeededRng) -> Budgets {
    let mut budget = || Budget {
        tokens: [None, Some(150), Some(400)][rng.below(3) as usize],
        requests: [None, None, Some(3)][rng.below(3) as usize],
        ..Budget::default()
    };
    Budgets { society: budget(), task: budget(), agent: budget(), ..Budgets::default() }
}

/// The name of the n-th agent.
fn name(agent: usize) -> AgentId {
    if agent == 0 { AgentId::root() } else { format!("a{agent}").into() }
}

/// Writes programs. Agents ask only agents after them, so nobody waits in a circle.
struct Writer<'a> {
    rng: &'a mut SeededRng,
    agents: usize,
    tag: u64,
}

impl Writer<'_> {
    fn program(&mut self, agent: usize, depth: u64) -> Program {
        let steps = 1 + self.rng.below(4);
        Program((0..steps).map(|_| self.op(agent, depth)).collect())
    }

    fn op(&mut self, agent: usize, depth: u64) -> Op {
        let word = format!("{}-{}", self.tag, self.rng.below(1_000));
        match self.rng.below(if depth == 0 { 7 } else { 10 }) {
            0 => Op::Say(word),
            1 => Op::Think(word),
            2 => Op::Call(vec![("mark".to_owned(), word)]),
            3 => self.calls(word),
            4 => Op::Sleep(1 + self.rng.below(200)),
            5 => Op::Tell(word),
            6 => Op::Approve(word),
            7 => Op::Units((0..1 + self.rng.below(3)).map(|_| self.program(agent, depth - 1)).collect()),
            _ if agent + 1 < self.agents => {
                let asked = agent + 1 + self.rng.below((self.agents - agent - 1) as u64) as usize;
                let mut program = self.program(asked, depth - 1);
                if self.rng.chance(10) {
                    program.0.push(Op::Fail("gave_up".to_owned()));
                }
                Op::Ask { agent: name(asked).to_string(), program, patience_ms: 30 * 60 * 1_000 }
            }
            _ => Op::Say(word),
        }
    }

    fn calls(&mut self, word: String) -> Op {
        let count = 1 + self.rng.below(4);
        let call = |i| (["look", "stamp", "mark"][self.rng.below(3) as usize].to_owned(), format!("{word}.{i}"));
        Op::Call((0..count).map(call).collect())
    }
}
