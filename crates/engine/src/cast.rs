//! The registry of agent code: agents by behaviour name and, below them, every unit that they may run.
//!
//! A unit runs as a turn of its own, so it needs a name that is stable across restarts:
//! `article/execute_subthread/initial_phase` is the unit of phase `initial_phase` in the sub-thread that the handler of phase
//! `execute_subthread` of behaviour `article` runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use polis_domain::{Behaviour, CodeVersion, CodeVersions, Failure, FailureCode, Phase, Response};
use polis_ports::ToolSpec;
use rustc_hash::FxHashMap;

use crate::agent::PhaseStep;
use crate::error::CastError;
use crate::sub_thread::UnitStep;
use crate::tool::{AnyTurnTool, TurnTool};
use crate::{
    Agent, Interaction, InteractionUnit, Operation, Phases, Progress, StateHandler, SubThreadAgent, SubThreads, Turn, Units,
};

/// How deep sub-thread declarations may nest. A declaration that contains itself would never end.
const MAX_DEPTH: usize = 32;

/// Maps each behaviour name and version to the code that runs it.
///
/// Registration never fails: what does not fit is collected in `faults`, and [`Cast::check`] reports all of it at once.
#[derive(Default, Clone)]
pub struct Cast {
    registrations: FxHashMap<Behaviour, BTreeMap<CodeVersion, Arc<Registration>>>,
    /// Tools that run inside turns, with their names.
    tools: Vec<(Arc<str>, Arc<dyn AnyTurnTool>)>,
    faults: Vec<String>,
}

impl Cast {
    /// An empty cast.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers an agent and all units of the sub-threads that it declares, as version 1.
    pub fn with(self, behaviour: impl Into<Behaviour>, agent: impl Agent) -> Self {
        self.with_version(behaviour, CodeVersion::FIRST.0, agent)
    }

    /// Registers an agent in one of several versions, so that its code can be replaced while turns are open. New turns begin with the
    /// newest version, whatever the order of registration. An open turn, with the units that it runs, keeps the version that it
    /// began with. [`crate::Society::deployment`] says when no open turn needs an old version any more.
    ///
    /// ```
    /// # use polis_engine::{Agent, Cast, Turn};
    /// # use polis_domain::{Failure, Response};
    /// # struct ArticleAgent;
    /// # impl Agent for ArticleAgent {
    /// #     async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> { Ok(Response::new("new")) }
    /// # }
    /// # struct OldArticleAgent;
    /// # impl Agent for OldArticleAgent {
    /// #     async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> { Ok(Response::new("old")) }
    /// # }
    /// let cast = Cast::new().with_version("article", 2, ArticleAgent).with_version("article", 1, OldArticleAgent);
    /// assert!(cast.check().is_ok());
    /// ```
    pub fn with_version(mut self, behaviour: impl Into<Behaviour>, version: u32, agent: impl Agent) -> Self {
        let (behaviour, version) = (behaviour.into(), CodeVersion(version));
        if version < CodeVersion::FIRST {
            self.faults.push(format!("`{behaviour}` has version {version}; versions begin at 1"));
        }
        if behaviour.owner() != behaviour.as_str() {
            self.faults.push(format!("`{behaviour}` has a `/` in its name; those are the names of units"));
        }
        let Declaration { registrations, faults } = Declaration::of(behaviour, agent);
        self.faults.extend(faults);
        for (name, registration) in registrations {
            self.register(name, version, Arc::new(registration));
        }
        self
    }

    /// Adds all that another cast has. Its tools replace earlier ones of the same name.
    pub fn and(mut self, other: Self) -> Self {
        self.faults.extend(other.faults);
        for (name, versions) in other.registrations {
            for (version, registration) in versions {
                self.register(name.clone(), version, registration);
            }
        }
        for (name, tool) in other.tools {
            self.add_tool(name, tool);
        }
        self
    }

    fn register(&mut self, name: Behaviour, version: CodeVersion, registration: Arc<Registration>) {
        let versions = self.registrations.entry(name.clone()).or_default();
        if versions.insert(version, registration).is_some() {
            let which = if version == CodeVersion::FIRST { String::new() } else { format!(" in version {version}") };
            self.faults.push(format!("`{name}` is registered twice{which}"));
        }
    }

    /// Registers a tool that runs inside turns. It replaces an earlier one of the same name.
    pub fn with_tool(mut self, tool: impl TurnTool) -> Self {
        let tool: Arc<dyn AnyTurnTool> = Arc::new(tool);
        self.add_tool(tool.spec().name, tool);
        self
    }

    fn add_tool(&mut self, name: Arc<str>, tool: Arc<dyn AnyTurnTool>) {
        self.tools.retain(|(known, _)| *known != name);
        self.tools.push((name, tool));
    }

    /// The specs of the registered [`TurnTool`]s.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|(_, tool)| tool.spec()).collect()
    }

    /// The names of those that models find by a search where they have many tools.
    pub(crate) fn deferred_tools(&self) -> impl Iterator<Item = Arc<str>> {
        self.tools.iter().filter(|(_, tool)| tool.is_deferred()).map(|(name, _)| name.clone())
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<dyn AnyTurnTool>> {
        self.tools.iter().find(|(known, _)| **known == *name).map(|(_, tool)| tool.clone())
    }

    /// Reports every fault found during registration.
    pub fn check(&self) -> Result<(), CastError> {
        if self.faults.is_empty() { Ok(()) } else { Err(CastError(self.faults.clone())) }
    }

    /// The operations that agents of this behaviour offer to a person.
    pub fn operations(&self, behaviour: &Behaviour) -> &[Operation] {
        let newest = self.registrations.get(behaviour).and_then(BTreeMap::last_key_value);
        newest.map_or(&[], |(_, registration)| &registration.operations)
    }

    /// The names of all registered behaviours, units included, sorted.
    pub fn behaviours(&self) -> Vec<Behaviour> {
        let mut names: Vec<_> = self.registrations.keys().cloned().collect();
        names.sort();
        names
    }

    pub(crate) fn find(&self, behaviour: &Behaviour, version: CodeVersion) -> Option<Arc<Registration>> {
        self.registrations.get(behaviour)?.get(&version).cloned()
    }

    /// Why a turn cannot run whose code [`Self::find`] does not find.
    pub(crate) fn missing(&self, behaviour: &Behaviour, version: CodeVersion) -> Failure {
        let owner = behaviour.owner();
        match self.registrations.get(&Behaviour::from(owner)) {
            Some(versions) if !versions.contains_key(&version) => {
                let there = versions.keys().map(CodeVersion::to_string).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "the turn began with version {version} of `{owner}`, and version {there} is registered; register version \
                     {version} as well, then the turn continues by itself"
                );
                Failure::new(FailureCode::VersionMissing, message)
            }
            _ => {
                let message = format!(
                    "no code is registered for `{behaviour}`; start the program that has it (`polis::serve` makes one), then the turn continues by itself"
                );
                Failure::new(FailureCode::NoBehaviour, message)
            }
        }
    }

    /// The registered versions of each agent, which its units share.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&Behaviour, impl DoubleEndedIterator<Item = CodeVersion> + Clone)> {
        let agents = self.registrations.iter().filter(|(name, _)| name.owner() == name.as_str());
        agents.map(|(name, versions)| (name, versions.keys().copied()))
    }

    /// The newest version of each agent.
    pub(crate) fn newest_versions(&self) -> CodeVersions {
        self.versions().filter_map(|(name, mut versions)| Some((name.clone(), versions.next_back()?))).collect()
    }
}

/// What one agent brings with it: its own code and that of its units.
#[derive(Default)]
struct Declaration {
    registrations: Vec<(Behaviour, Registration)>,
    faults: Vec<String>,
}

impl Declaration {
    fn of(behaviour: Behaviour, agent: impl Agent) -> Self {
        let mut this = Self::default();
        let agent = Arc::new(agent);
        let prompt_source: Arc<dyn SystemPromptSource> = agent.clone();
        let own = agent.clone().as_sub_thread().map(|own| this.declare(behaviour.as_str(), &own, 0));
        let sub_threads = this.declare_all(behaviour.as_str(), agent.sub_threads(), 0);
        let phases = this.handlers(&behaviour, agent.phases(), &prompt_source, &sub_threads);
        let operations = agent.operations();
        let scope = Arc::new(CodeScope { prompt_source, sub_threads });
        this.registrations.push((behaviour, Registration { scope, code: Code::Agent { agent, phases, own }, operations }));
        this
    }

    fn handlers(
        &mut self,
        behaviour: &Behaviour,
        phases: Phases,
        prompt_source: &Arc<dyn SystemPromptSource>,
        own: &DeclaredSubThreads,
    ) -> Handlers {
        let mut handlers = Handlers::default();
        let names = phases.steps.iter().map(|step| (&step.phase, &step.next));
        self.check_phases(behaviour.as_str(), names, "handler", Phase::is_terminal);
        for PhaseStep { phase, next, handler } in phases.steps {
            let place = format!("{behaviour}/{phase}");
            let Ok(phase) = Phase::try_from(phase) else { continue };
            let next = next.and_then(|next| Phase::try_from(next).ok());
            let sub_threads = self.merge_sub_threads(&place, own, handler.sub_threads(), 0);
            let scope = Arc::new(CodeScope { prompt_source: prompt_source.clone(), sub_threads });
            handlers.first.get_or_insert_with(|| phase.clone());
            handlers.by_phase.insert(phase, RegisteredHandler { handler, next, scope });
        }
        handlers
    }

    /// Registers the units of a sub-thread agent below `place`.
    fn declare(&mut self, place: &str, agent: &Arc<dyn AnySubThreadAgent>, depth: usize) -> Arc<DeclaredSubThread> {
        let steps = if depth < MAX_DEPTH { agent.units().steps } else { Vec::new() };
        if depth == MAX_DEPTH {
            self.faults.push(format!("`{place}` is a sub-thread inside {depth} others; does it contain itself?"));
        } else if steps.is_empty() {
            self.faults.push(format!("`{place}` has no units"));
        }
        self.check_phases(place, steps.iter().map(|step| (&step.phase, &step.next)), "unit", |phase| agent.is_terminal(phase));
        let prompt_source = agent.clone().into_prompt_source();
        let mut units = BTreeMap::new();
        let mut first = None;
        for UnitStep { phase, next, handler, unit } in steps {
            let name = Behaviour::from(format!("{place}/{phase}"));
            let Ok(phase) = Phase::try_from(phase) else { continue };
            let next = next.and_then(|next| Phase::try_from(next).ok());
            let sub_threads = self.declare_all(name.as_str(), unit.sub_threads(), depth + 1);
            let below = handler.as_ref().map(|handler| handler.sub_threads()).unwrap_or_default();
            let sub_threads = self.merge_sub_threads(name.as_str(), &sub_threads, below, depth + 1);
            let scope = Arc::new(CodeScope { prompt_source: prompt_source.clone(), sub_threads });
            let code = Code::Unit(RegisteredUnit { unit, handler, next, agent: agent.clone() });
            first.get_or_insert_with(|| phase.clone());
            units.insert(phase, name.clone());
            self.registrations.push((name, Registration { scope, code, operations: Vec::new() }));
        }
        let first = if units.contains_key(&Phase::default()) { Phase::default() } else { first.unwrap_or_default() };
        Arc::new(DeclaredSubThread {
            agent: agent.clone(),
            units,
            first,
            scope: Arc::new(CodeScope { prompt_source, sub_threads: DeclaredSubThreads::new() }),
        })
    }

    fn declare_all(&mut self, place: &str, declared: SubThreads, depth: usize) -> DeclaredSubThreads {
        self.merge_sub_threads(place, &DeclaredSubThreads::new(), declared, depth)
    }

    /// Adds newly declared sub-threads to those that are inherited from the agent or unit above.
    fn merge_sub_threads(
        &mut self,
        place: &str,
        inherited: &DeclaredSubThreads,
        declared: SubThreads,
        depth: usize,
    ) -> DeclaredSubThreads {
        let mut sub_threads = inherited.clone();
        for (name, agent) in declared.agents {
            let below = if name.is_empty() { place.to_owned() } else { format!("{place}/{name}") };
            if sub_threads.contains_key(&name) {
                self.faults.push(format!("`{place}` declares two sub-threads of the name `{name}`"));
                continue;
            }
            let sub_thread = self.declare(&below, &agent, depth);
            sub_threads.insert(name, sub_thread);
        }
        sub_threads
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

/// The code behind one version of a behaviour.
pub(crate) struct Registration {
    pub(crate) scope: Arc<CodeScope>,
    code: Code,
    operations: Vec<Operation>,
}

/// An agent or a unit. Units are registered by the agent that declares them, never directly.
enum Code {
    Agent { agent: Arc<dyn AnyAgent>, phases: Handlers, own: Option<Arc<DeclaredSubThread>> },
    Unit(RegisteredUnit),
}

/// The handlers that an agent declared when it was registered.
#[derive(Default)]
struct Handlers {
    by_phase: BTreeMap<Phase, RegisteredHandler>,
    first: Option<Phase>,
}

/// A handler, the phase that follows it, and the scope that its code runs in.
pub(crate) struct RegisteredHandler {
    pub(crate) handler: Arc<dyn AnyHandler>,
    pub(crate) next: Option<Phase>,
    pub(crate) scope: Arc<CodeScope>,
}

/// A unit, its handler, and the sub-thread agent that it belongs to.
pub(crate) struct RegisteredUnit {
    unit: Arc<dyn AnyUnit>,
    pub(crate) handler: Option<Arc<dyn AnyHandler>>,
    pub(crate) next: Option<Phase>,
    pub(crate) agent: Arc<dyn AnySubThreadAgent>,
}

/// What running code can reach: the system prompt for its model calls and the sub-threads that it may run.
pub(crate) struct CodeScope {
    pub(crate) prompt_source: Arc<dyn SystemPromptSource>,
    pub(crate) sub_threads: DeclaredSubThreads,
}

/// Declared sub-threads by name.
pub(crate) type DeclaredSubThreads = BTreeMap<Arc<str>, Arc<DeclaredSubThread>>;

/// A declared sub-thread: its agent and the behaviour names of its units.
pub(crate) struct DeclaredSubThread {
    pub(crate) agent: Arc<dyn AnySubThreadAgent>,
    pub(crate) units: BTreeMap<Phase, Behaviour>,
    /// The phase in which a new sub-thread starts.
    pub(crate) first: Phase,
    pub(crate) scope: Arc<CodeScope>,
}

impl Registration {
    pub(crate) fn run<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Response> {
        match &self.code {
            Code::Agent { agent, .. } => agent.execute_task(turn),
            Code::Unit(RegisteredUnit { unit, .. }) => Box::pin(async {
                // The unit has added both messages to the sub-thread already, so the response must not add another.
                let Interaction { bot, .. } = unit.execute(turn).await?;
                Ok(Response::standing_in(bot.id.clone(), &*bot.text))
            }),
        }
    }

    pub(crate) fn handler(&self, phase: &Phase) -> Option<&RegisteredHandler> {
        let Code::Agent { phases, .. } = &self.code else { return None };
        let first = phases.first.as_ref().filter(|_| *phase == Phase::default());
        phases.by_phase.get(phase).or_else(|| phases.by_phase.get(first?))
    }

    pub(crate) fn unit(&self) -> Option<&RegisteredUnit> {
        match &self.code {
            Code::Unit(unit) => Some(unit),
            Code::Agent { .. } => None,
        }
    }

    pub(crate) fn own_sub_thread(&self) -> Option<&Arc<DeclaredSubThread>> {
        match &self.code {
            Code::Agent { own, .. } => own.as_ref(),
            Code::Unit(_) => None,
        }
    }
}

/// A boxed call into agent code.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Provides the system prompt for model calls: an agent or a sub-thread agent, behind a pointer.
pub trait SystemPromptSource: Send + Sync {
    /// The system prompt to use in this turn.
    fn system_prompt<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Arc<str>>;
}

impl<A: Agent> SystemPromptSource for A {
    fn system_prompt<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Arc<str>> {
        Box::pin(Agent::system_prompt(self, turn))
    }
}

/// [`Agent`] behind a pointer.
trait AnyAgent: Send + Sync {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Response>;
}

impl<A: Agent> AnyAgent for A {
    fn execute_task<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Response> {
        Box::pin(Agent::execute_task(self, turn))
    }
}

/// [`StateHandler`] behind a pointer.
pub(crate) trait AnyHandler: Send + Sync {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Response>;
    fn sub_threads(&self) -> SubThreads;
}

impl<H: StateHandler> AnyHandler for H {
    fn handle<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Response> {
        Box::pin(StateHandler::handle(self, turn))
    }

    fn sub_threads(&self) -> SubThreads {
        StateHandler::sub_threads(self)
    }
}

/// [`InteractionUnit`] behind a pointer.
pub(crate) trait AnyUnit: Send + Sync {
    fn execute<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Interaction>;
    fn sub_threads(&self) -> SubThreads;
}

impl<U: InteractionUnit> AnyUnit for U {
    fn execute<'a>(&'a self, turn: &'a mut Turn) -> BoxFuture<'a, Interaction> {
        Box::pin(InteractionUnit::execute(self, turn))
    }

    fn sub_threads(&self) -> SubThreads {
        InteractionUnit::sub_threads(self)
    }
}

/// [`SubThreadAgent`] behind a pointer. Public only because a hidden method of [`Agent`] returns it.
pub trait AnySubThreadAgent: Send + Sync {
    /// See [`SubThreadAgent::units`].
    fn units(&self) -> Units;
    /// See [`SubThreadAgent::max_interactions`].
    fn max_interactions(&self) -> usize;
    /// See [`SubThreadAgent::is_terminal`].
    fn is_terminal(&self, phase: &Phase) -> bool;
    /// See [`SubThreadAgent::next_unit`].
    fn next_unit<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> BoxFuture<'a, Phase>;
    /// See [`SubThreadAgent::summarize`].
    fn summarize<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> BoxFuture<'a, String>;
    /// The same agent as a [`SystemPromptSource`].
    fn into_prompt_source(self: Arc<Self>) -> Arc<dyn SystemPromptSource>;
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

    fn next_unit<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> BoxFuture<'a, Phase> {
        Box::pin(SubThreadAgent::next_unit(self, progress, turn))
    }

    fn summarize<'a>(&'a self, progress: &'a Progress, turn: &'a mut Turn) -> BoxFuture<'a, String> {
        Box::pin(SubThreadAgent::summarize(self, progress, turn))
    }

    fn into_prompt_source(self: Arc<Self>) -> Arc<dyn SystemPromptSource> {
        self
    }
}
