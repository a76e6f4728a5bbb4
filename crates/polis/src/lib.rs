//! A durable society of AI agents, for people who embed it. Everything here is re-exported; nothing is decided here.
//!
//! A society needs five things from the world (its [`Ports`]): a log, a model, tools, a way to tell whoever watches, and a
//! clock. With a scripted model and a log in memory it runs in a test; with the adapters below it is the society that the
//! `polis` program runs.
//!
//! # Features
//!
//! The core has no adapter: no database, no HTTP client, no server. Each feature re-exports one as a module.
//!
//! | feature | adds |
//! |---|---|
//! | `store-local` | `polis::store_local`: the log in SQLite, artifacts in files |
//! | `providers` | `polis::providers`: models over HTTP; `vendors::open` opens one by its name |
//! | `offline` | the model that needs no key, among the `providers` |
//! | `tools` | `polis::tools`: files, commands in a sandbox, web pages, MCP servers |
//! | `serve` | [`serve`]: the whole `polis` program with agents of your own: page, HTTP, protocols, approvals, MCP tools, commands |
//!
//! [`prelude`] has what most agents and programs import: `use polis::prelude::*;`.
//!
//! # A first society
//!
//! ```
//! use polis::Converse;
//! use polis::prelude::*;
//! use polis_testkit::{MemoryLog, ScriptedModel};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ports = Ports::new(MemoryLog::new()).with_model(ScriptedModel::saying("Hello to you."));
//! let cast = Cast::new().with("converse", Converse::default());
//! let root = Role::new("root", "converse").with_prompt("Be kind.");
//! let society = Society::open("main".into(), ports, cast, Options::new(1, root)).await?;
//!
//! let sent = society.submit("Hello!").await?;
//! assert_eq!(&*society.answer(&sent).await?.payload.text, "Hello to you.");
//! # Ok(())
//! # }
//! ```
//!
//! # Writing an agent
//!
//! An agent is ordinary async code that is given a [`Turn`]. Every effect goes through the turn and is in the log before it
//! is used, so the code may be run again from its first line after a crash, and gets the same answers until the log ends.
//!
//! Everything has a default, so an agent says what is its own: here, which handler serves which phase of the conversation.
//! `polis_testkit::society` is a whole society with this agent at its root and a model that says what the test wrote.
//!
//! ```
//! use polis::prelude::*;
//! use polis_testkit::{ScriptedModel, ask, society};
//!
//! struct OutlineHandler;
//! impl StateHandler for OutlineHandler {
//!     async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
//!         let prompt = format!("Outline an article about {}.", turn.task().message);
//!         Ok(Response::new(turn.generate(prompt).await?))
//!     }
//! }
//!
//! struct ArticleAgent;
//! impl Agent for ArticleAgent {
//!     fn phases(&self) -> Phases {
//!         Phases::new().on("initial_phase", OutlineHandler).then("initial_phase")
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Failure> {
//! let society = society(ArticleAgent, ScriptedModel::saying("1. Gills 2. Fins")).await;
//! assert_eq!(ask(&society, "fish").await?, "1. Gills 2. Fins");
//! # Ok(())
//! # }
//! ```
//!
//! An agent that needs no phases takes every task as it comes:
//!
//! ```
//! use polis::ports::ChatMessage;
//! use polis::prelude::*;
//! use polis_testkit::{ScriptedModel, ScriptedReply, ask, society};
//!
//! /// Answers twice: first the model, then a second look at what it said.
//! struct Careful;
//!
//! impl Agent for Careful {
//!     async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
//!         let mut request = ModelRequest::from(&*turn.task().message);
//!         let draft = turn.model(request.clone()).await?;
//!         request.messages.push(ChatMessage::said(&draft));
//!         request.messages.push(ChatMessage::user("Check this, and answer again."));
//!         Ok(Response::new(turn.model(request).await?.text))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Failure> {
//! let model = ScriptedModel::new(|request| ScriptedReply::text(&format!("look {}", request.messages.len())));
//! assert_eq!(ask(&society(Careful, model).await, "Is it so?").await?, "look 3");
//! # Ok(())
//! # }
//! ```
//!
//! # Replacing an agent's code
//!
//! Turns that are open when a program is replaced are run again by the new one. Register the new code of an agent beside the old one:
//! an open turn keeps the version that it began with, new turns begin with the newest, and [`Society::deployment`] says when the old
//! one can be removed.
//!
//! ```
//! use polis::Log;
//! use polis::prelude::*;
//! use polis_testkit::{MemoryLog, ScriptedModel};
//! use std::sync::Arc;
//!
//! /// Asks before it answers.
//! struct ArticleAgent(&'static str);
//! impl Agent for ArticleAgent {
//!     async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
//!         turn.approve("publish?", Default::default(), None).await?;
//!         Ok(Response::new(self.0))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = Arc::new(MemoryLog::new());
//! let open = |cast| {
//!     let ports = Ports { log: log.clone() as Arc<dyn Log>, ..Ports::new(MemoryLog::new()) };
//!     Society::open("main".into(), ports, cast, Options::new(1, Role::new("root", "article")))
//! };
//! let old = open(Cast::new().with("article", ArticleAgent("old"))).await?;
//! let sent = old.submit("fish").await?;
//! old.stop(std::time::Duration::ZERO).await;
//!
//! let cast = Cast::new().with_version("article", 2, ArticleAgent("new")).with_version("article", 1, ArticleAgent("old"));
//! let new = open(cast).await?;
//! let versions = new.deployment().await?;
//! assert_eq!((versions[0].turns.len(), versions[0].is_removable()), (1, false));
//! # let approval = loop {
//! #     let open = |spine: &polis::domain::Spine| spine.turns.iter().find_map(|(id, turn)| Some((*id, turn.open.first()?.n)));
//! #     if let Some((turn, n)) = new.look(open).await? { break polis::domain::EffectId { turn, n } }
//! #     tokio::task::yield_now().await;
//! # };
//! # let yes = polis::domain::Outcome::Verdict(polis::domain::Verdict::yes());
//! # new.resolve(approval, polis::domain::Resolution::Outcome(yes)).await?;
//! // After the approval:
//! assert_eq!(&*new.answer(&sent).await?.payload.text, "old");
//! assert!(new.deployment().await?[0].is_removable());
//! # Ok(())
//! # }
//! ```
//!
//! # Serving your agents
//!
//! With the feature `serve`, three lines make a program that is `polis` with your agents. Without arguments it serves the page, HTTP and
//! all protocols; with arguments it is any command of `polis` (`run "…"`, `chat`, `show root`, `doctor`). It reads the same `polis.toml`
//! and variables, and an existing data directory whose agents need your code.
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     polis::serve(Cast::new().with("article", ArticleAgent), Role::new("root", "article"))
//! }
//! ```
//!
//! # Working in several rounds
//!
//! A [`SubThreadAgent`] works inside one message: in a sub-thread, unit by unit, each a bot message from a [`StateHandler`]
//! and a report of what came of it from an [`InteractionUnit`]. [`PrepareSubThread`] shows a placeholder at once and
//! [`ExecuteSubThread`] fills it; inside a sub-thread, [`Turn::run_sub_thread`] and [`Turn::run_sub_threads`] go deeper.
//!
//! ```
//! use polis::prelude::*;
//! use polis_testkit::{ScriptedModel, ask, society};
//!
//! struct DraftHandler;
//! impl StateHandler for DraftHandler {
//!     async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
//!         Ok(Response::new(turn.generate(format!("Write about {}.", turn.task().message)).await?))
//!     }
//! }
//!
//! /// Does what the bot message says, and reports it. Really.
//! struct WordCountUnit;
//! impl InteractionUnit for WordCountUnit {
//!     async fn user_message(&self, bot: &Message, _: &mut Turn) -> Result<String, Failure> {
//!         Ok(format!("{} words.", bot.text.split_whitespace().count()))
//!     }
//! }
//!
//! struct WritingAgent;
//! impl SubThreadAgent for WritingAgent {
//!     fn units(&self) -> Units {
//!         Units::new()
//!             .on("initial_phase", WordCountUnit).with_handler(DraftHandler).then("text_polishing")
//!             .on("text_polishing", WordCountUnit).with_handler(DraftHandler).then("completed")
//!     }
//! }
//!
//! struct EssayAgent;
//! impl Agent for EssayAgent {
//!     fn phases(&self) -> Phases {
//!         Phases::new()
//!             .on("prepare_subthread", PrepareSubThread::default()).then("execute_subthread")
//!             .on("execute_subthread", ExecuteSubThread::of(WritingAgent)).then("prepare_subthread")
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let society = society(EssayAgent, ScriptedModel::saying("Fish swim.")).await;
//! assert_eq!(ask(&society, "fish").await?, "Fish swim.");
//! let sub_thread = society.thread(&"root".into(), &"messages[1].meta._thread".parse()?).await?;
//! let texts: Vec<_> = sub_thread.messages.iter().map(|message| &*message.text).collect();
//! assert_eq!(texts, ["Fish swim.", "2 words.", "Fish swim."]);
//! # Ok(())
//! # }
//! ```

/// The types and traits that nearly every agent, and the program that opens its society, needs.
///
/// ```
/// use polis::prelude::*;
/// ```
pub mod prelude {
    pub use polis_domain::{Artifact, Failure, Message, Phase, Response, Role, SubThreadRequest};
    pub use polis_engine::{
        Agent, Cast, ExecuteSubThread, Interaction, InteractionUnit, Options, Phases, Ports, PrepareSubThread, Progress,
        Society, StateHandler, SubThreadAgent, SubThreads, Turn, Units,
    };
    pub use polis_ports::{ModelRequest, ModelSettings};
}

#[cfg(feature = "serve")]
pub use polis_app::serve;
#[cfg(feature = "providers")]
pub use polis_providers as providers;
#[cfg(feature = "store-local")]
pub use polis_store_local as store_local;
#[cfg(feature = "tools")]
pub use polis_tools as tools;

pub use polis_agents::{Converse, RoleAgent, role, workflow};
pub use polis_domain as domain;
pub use polis_domain::{
    AgentId, Artifact, ArtifactId, CallResult, CodeVersion, EffectClass, Envelope, Event, Failure, FailureCode, Limits,
    Message, MessageKind, MessagePatch, MetaPath, Phase, Recorded, Response, Role, RoleId, Sender, Seq, Settings, SocietyId,
    SubThreadPath, SubThreadRequest, Target, Task, TaskId, Thread, ThreadId, ToolCall,
};
pub use polis_engine::{
    Agent, BatchUpdate, Branch, Cast, CastError, CommandError, Context, DeployedTurn, DeployedVersion, Divergence,
    ExecuteSubThread, ForkError, Forked, Interaction, InteractionUnit, LocalLive, NewMessage, NoModel, NoTools, OpenError,
    OpenRequest, Operation, OperationWords, Options, Phases, Ports, PrepareSubThread, Progress, Replayed, Request, Requests,
    Sent, Society, StateHandler, StepSink, SubThreadAgent, SubThreadGroup, SubThreadResult, SubThreads, SystemClock,
    ThreadPatch, Turn, TurnTool, UnfinishedWork, Units, Watch, WatchEvent, fork, free_name, is_society_name, replay,
};
pub use polis_ports as ports;
pub use polis_ports::{Artifacts, Clock, Live, Log, Model, ModelRequest, ModelSettings, Tool, ToolSpec, Toolbox};
