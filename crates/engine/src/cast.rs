//! Who runs what: agents under the names of their behaviours, and below them every unit that they may run.
//!
//! A unit is a turn of its own, so it has a name of its own that is the same in every run of the program:
//! `article/execute_subthread/initial_phase` is the unit of phase `initial_phase` in the sub-thread that the handler of phase
//! `execute_subthread` of behaviour `article` runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use polis_domain::{Behaviour, Failure, Phase, Response};
use polis_ports::ToolSpec;
use rustc_hash::FxHashMap;

use crate::agent::PhaseStep;
use crate::sub_thread::UnitStep;
use crate::tool::{AnyTurnTool, TurnTool};
use crate::{
    Agent, Interaction, InteractionUnit, Operation, Phases, Progress, StateHandler, SubThreadAgent, SubThreads, Turn, Units,
};

/// How deep sub-threads may be declared inside each other. One that contains itself has no end.
const MAX_DEPTH: usize = 32;

/// Which code runs which behaviour.
#[derive(Default, Clone)]
pub struct Cast {
    posts: FxHashMap<Behaviour, Arc<Post>>,
    /// By their names.
    tools: Vec<(Arc<str>, Arc<dyn AnyTurnTool>)>,
    faults: Vec<String>,
}

/// Agents do not fit together; nothing is opened with them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agents cannot be used as they are: {}", .0.join("; "))]
pub struct BadCast(Vec<String>);

impl Cast {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same cast with one more agent, and with all units of the sub-threads that it declares.
    pub fn with(mut self, behaviour: impl Into<Behaviour>, agent: impl Agent) -> Self {
        let behaviour = behaviour.into();
        let agent = Arc::new(agent);
        let voice: Arc<dyn Voice> = agent.clone();
        let own = agent.clone().as_sub_thread().map(|own| self.course(behaviour.as_str(), &own, 0));
        let courses = self.courses(behaviour.as_str(), agent.sub_threads(), 0);
        let phases = self.handlers(&behaviour, agent.phases(), &voice, &courses);
        let operations = agent.operations();
        let scope = Arc::new(Scope { voice, courses });
        self.post(behaviour, Post { scope, part: Part::Agent { agent, phases, own }, operations });
        self
    }

    /// The same cast with one more tool that turns do themselves. It takes the place of any other of its name.
    pub fn with_tool(mut self, tool: impl TurnTool) -> Self {
        let tool: Arc<dyn AnyTurnTool> = Arc::new(tool);
        let name = tool.spec().name;
        self.tools.retain(|(known, _)| *known != name);
        self.tools.push((name, tool));
        self
    }

    /// What its tools are.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|(_, tool)| tool.spec()).collect()
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<dyn AnyTurnTool>> {
        self.tools.iter().find(|(known, _)| **known == *name).map(|(_, tool)| tool.clone())
    }

    /// Whether all that is registered fits together.
    pub fn check(&self) -> Result<(), BadCast> {
        if self.faults.is_empty() { Ok(()) } else { Err(BadCast(self.faults.clone())) }
    }

    /// What the agents of a behaviour offer.
    pub fn operations(&self, behaviour: &Behaviour) -> &[Operation] {
        self.posts.get(behaviour).map_or(&[], |post| &post.operations)
    }

    /// The names of everything that runs, units included, in order.
    pub fn behaviours(&self) -> Vec<Behaviour> {
        let mut names: Vec<_> = self.posts.keys().cloned().collect();
        names.sort();
        names
    }

    pub(crate) fn find(&self, behaviour: &Behaviour) -> Option<Arc<Post>> {
        self.posts.get(behaviour).cloned()
    }

    fn post(&mut self, behaviour: Behaviour, post: Post) {
        if self.posts.contains_key(&behaviour) {
            self.faults.push(format!("`{behaviour}` is registered twice"));
        }
        self.posts.insert(behaviour, Arc::new(post));
    }

    fn handlers(&mut self, behaviour: &Behaviour, phases: Phases, voice: &Arc<dyn Voice>, own: &Courses) -> Handlers {
        let mut handlers = Handlers::default();
        let names = phases.steps.iter().map(|step| (&step.phase, &step.next));
        self.check_phases(behaviour.as_str(), names, "handler", Phase::is_terminal);
        for PhaseStep { phase, next, handler } in phases.steps {
            let place = format!("{behaviour}/{phase}");
            let Ok(phase) = Phase::try_from(phase) else { continue };
            let next = next.and_then(|next| Phase::try_from(next).ok());
            let courses = self.both(&place, own, handler.sub_threads(), 0);
            let scope = Arc::new(Scope { voice: voice.clone(), courses });
            handlers.first.get_or_insert_with(|| phase.clone());
            handlers.by_phase.insert(phase, Handler { handler, next, scope });
        }
        handlers
    }

    /// What a sub-thread agent runs, registered below `place`.
    fn course(&mut self, place: &str, agent: &Arc<dyn AnySubThreadAgent>, depth: usize) -> Arc<Course> {
        let steps = if depth < MAX_DEPTH { agent.units().steps } else { Vec::new() };
        if depth == MAX_DEPTH {
            self.faults.push(format!("`{place}` is a sub-thread inside {depth} others; does it contain itself?"));
        } else if steps.is_empty() {
            self.faults.push(format!("`{place}` has no units"));
        }
        self.check_phases(place, steps.iter().map(|step| (&step.phase, &step.next)), "unit", |phase| agent.is_terminal(phase));
        let voice = agent.clone().voice();
        let mut units = BTreeMap::new();
        let mut first = None;
        for UnitStep { phase, next, handler, unit } in steps {
            let name = Behaviour::from(format!("{place}/{phase}"));
            let Ok(phase) = Phase::try_from(phase) else { continue };
            let next = next.and_then(|next| Phase::try_from(next).ok());
            let courses = self.courses(name.as_str(), unit.sub_threads(), depth + 1);
            let below = handler.as_ref().map(|handler| handler.sub_threads()).unwrap_or_default();
            let courses = self.both(name.as_str(), &courses, below, depth + 1);
            let scope = Arc::new(Scope { voice: voice.clone(), courses });
            let part = Part::Unit(UnitPart { unit, handler, next, agent: agent.clone() });
            first.get_or_insert_with(|| phase.clone());
            units.insert(phase, name.clone());
            self.post(name, Post { scope, part, operations: Vec::new() });
        }
        let first = if units.contains_key(&Phase::default()) { Phase::default() } else { first.unwrap_or_default() };
        Arc::new(Course { agent: agent.clone(), units, first, scope: Arc::new(Scope { voice, courses: Courses::new() }) })
    }

    fn courses(&mut self, place: &str, declared: SubThreads, depth: usize) -> Courses {
        self.both(place, &Courses::new(), declared, depth)
    }

    /// What is declared in two places, together.
    fn both(&mut self, place: &str, known: &Courses, declared: SubThreads, depth: usize) -> Courses {
        let mut courses = known.clone();
        for (name, agent) in declared.agents {
            let below = if name.is_empty() { place.to_owned() } else { format!("{place}/{name}") };
            if courses.contains_key(&name) {
                self.faults.push(format!("`{place}` declares two sub-threads of the name `{name}`"));
                continue;
            }
            let course = self.course(&below, &agent, depth);
            courses.insert(name, course);
        }
        courses
    }

    fn check_phases<'a>(
        &mut self,
        place: &str,
        steps: impl Iterator<Item = (&'a Arc<str>, &'a Option<Arc<str>>)> + Clone,
        what: &str,
        is_end: impl Fn(&Phase) -> bool,
    ) {
        for (i, (phase, next)) in steps.clone().enumerate() {
            if let Err(bad) = Phase::new(phase) {
                self.faults.push(format!("`{place}`: {bad}"));
            }
            if steps.clone().take(i).any(|(other, _)| other == phase) {
                self.faults.push(format!("`{place}` has two {what}s for phase `{phase}`"));
            }
            let Some(next) = next else { continue };
            let is_there = steps.clone().any(|(other, _)| other == next);
            if !is_there && !Phase::new(next).is_ok_and(|next| is_end(&next)) {
                self.faults.push(format!("`{place}`: `{phase}` is followed by `{next}`, which has no {what}"));
            }
        }
    }
}

/// One piece of code under its name.
pub(crate) struct Post {
    pub(crate) scope: Arc<Scope>,
    part: Part,
    operations: Vec<Operation>,
}

enum Part {
    Agent { agent: Arc<dyn AnyAgent>, phases: Handlers, own: Option<Arc<Course>> },
    Unit(UnitPart),
}

/// The handlers of an agent, as they were when it was registered.
#[derive(Default)]
struct Handlers {
    by_phase: BTreeMap<Phase, Handler>,
    first: Option<Phase>,
}

/// A handler, what follows it, and what its code can reach.
pub(crate) struct Handler {
    pub(crate) handler: Arc<dyn AnyHandler>,
    pub(crate) next: Option<Phase>,
    pub(crate) scope: Arc<Scope>,
}

/// A unit, what it holds, and whose it is.
pub(crate) struct UnitPart {
    unit: Arc<dyn AnyUnit>,
    pub(crate) handler: Option<Arc<dyn AnyHandler>>,
    pub(crate) next: Option<Phase>,
    pub(crate) agent: Arc<dyn AnySubThreadAgent>,
}

/// What the code that runs just now can reach: whose words the model hears, and which sub-threads can be run.
pub(crate) struct Scope {
    pub(crate) voice: Arc<dyn Voice>,
    pub(crate) courses: Courses,
}

/// Sub-threads by the names that they are declared under.
pub(crate) type Courses = BTreeMap<Arc<str>, Arc<Course>>;

/// A sub-thread agent and the names of its units.
pub(crate) struct Course {
    pub(crate) agent: Arc<dyn AnySubThreadAgent>,
    pub(crate) units: BTreeMap<Phase, Behaviour>,
    /// Where its sub-threads begin.
    pub(crate) first: Phase,
    pub(crate) scope: Arc<Scope>,
}

impl Post {
    pub(crate) fn run<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Response> {
        match &self.part {
            Part::Agent { agent, .. } => agent.execute_task(turn),
            Part::Unit(UnitPart { unit, .. }) => Box::pin(async {
                // Both messages stand in the sub-thread by now.
                let Interaction { bot, .. } = unit.execute(turn).await?;
                Ok(Response::standing_in(bot.id.clone(), &*bot.text))
            }),
        }
    }

    pub(crate) fn handler(&self, phase: &Phase) -> Option<&Handler> {
        let Part::Agent { phases, .. } = &self.part else { return None };
        let first = phases.first.as_ref().filter(|_| *phase == Phase::default());
        phases.by_phase.get(phase).or_else(|| phases.by_phase.get(first?))
    }

    pub(crate) fn unit(&self) -> Option<&UnitPart> {
        match &self.part {
            Part::Unit(unit) => Some(unit),
            Part::Agent { .. } => None,
        }
    }

    pub(crate) fn own_course(&self) -> Option<&Arc<Course>> {
        match &self.part {
            Part::Agent { own, .. } => own.as_ref(),
            Part::Unit(_) => None,
        }
    }
}

/// What comes of a chunk of user's code, some time.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Whoever has a system prompt.
pub trait Voice: Send + Sync {
    /// Gives it.
    fn system_prompt<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Arc<str>>;
}

impl<A: Agent> Voice for A {
    fn system_prompt<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Arc<str>> {
        Box::pin(Agent::system_prompt(self, turn))
    }
}

/// [`Agent`] behind a pointer.
trait AnyAgent: Send + Sync {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Response>;
}

impl<A: Agent> AnyAgent for A {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Response> {
        Box::pin(Agent::execute_task(self, turn))
    }
}

/// [`StateHandler`] behind a pointer.
pub(crate) trait AnyHandler: Send + Sync {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Response>;
    fn sub_threads(&self) -> SubThreads;
}

impl<H: StateHandler> AnyHandler for H {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Response> {
        Box::pin(StateHandler::handle(self, turn))
    }

    fn sub_threads(&self) -> SubThreads {
        StateHandler::sub_threads(self)
    }
}

/// [`InteractionUnit`] behind a pointer.
pub(crate) trait AnyUnit: Send + Sync {
    fn execute<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Interaction>;
    fn sub_threads(&self) -> SubThreads;
}

impl<U: InteractionUnit> AnyUnit for U {
    fn execute<'a>(&'a self, turn: &'a mut Turn) -> Boxed<'a, Interaction> {
        Box::pin(InteractionUnit::execute(self, turn))
    }

    fn sub_threads(&self) -> SubThreads {
        InteractionUnit::sub_threads(self)
    }
}

/// [`SubThreadAgent`] behind a pointer. Nobody outside can name it; a hidden method of [`Agent`] gives it.
pub trait AnySubThreadAgent: Send + Sync {
    /// Its units.
    fn units(&self) -> Units;
    /// How many it may run.
    fn max_interactions(&self) -> usize;
    /// Whether nothing follows.
    fn is_terminal(&self, phase: &Phase) -> bool;
    /// Which is next.
    fn next_unit<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> Boxed<'a, Phase>;
    /// What it comes to.
    fn summarize<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> Boxed<'a, String>;
    /// Itself, as one who has a system prompt.
    fn voice(self: Arc<Self>) -> Arc<dyn Voice>;
}

impl<S: SubThreadAgent> AnySubThreadAgent for S {
    fn units(&self) -> Units {
        SubThreadAgent::units(self)
    }

    fn max_interactions(&self) -> usize {
        SubThreadAgent::max_interactions(self)
    }

    fn is_terminal(&self, phase: &Phase) -> bool {
        SubThreadAgent::is_terminal(self, phase)
    }

    fn next_unit<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> Boxed<'a, Phase> {
        Box::pin(SubThreadAgent::next_unit(self, progress, turn))
    }

    fn summarize<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> Boxed<'a, String> {
        Box::pin(SubThreadAgent::summarize(self, progress, turn))
    }

    fn voice(self: Arc<Self>) -> Arc<dyn Voice> {
        self
    }
}
