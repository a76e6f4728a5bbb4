//! A durable society of AI agents, for people who embed it. Everything here is re-exported; nothing is decided here.
//!
//! A society needs five things from the world (its [`Ports`]): a log, a model, tools, a way to tell whoever watches, and a
//! clock. With a scripted model and a log in memory it runs in a test; with `polis_store_local::LocalLog` and
//! `polis_providers::vendors::open` it is the society that the `polis` program runs.
//!
//! ```
//! use std::sync::Arc;
//!
//! use polis::{Cast, Converse, LocalLive, Options, Ports, Role, Society, SystemClock};
//! use polis_testkit::{MemoryLog, ScriptedModel, ScriptedTools};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ports = Ports {
//!     log: Arc::new(MemoryLog::new()),
//!     model: Arc::new(ScriptedModel::saying("Hello to you.")),
//!     toolbox: Arc::new(ScriptedTools::new()),
//!     live: Arc::new(LocalLive::default()),
//!     clock: Arc::new(SystemClock),
//! };
//! let root = Role { id: "root".into(), name: "Root".into(), prompt: "Be kind.".into(), behaviour: "converse".into(), models: vec![] };
//! let cast = Cast::new().with("converse", Converse::default());
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
//! ```
//! use polis::{Agent, Failure, ModelRequest, Response, Turn, ports::ChatMessage};
//!
//! /// Answers twice: first the model, then a second look at what it said.
//! struct Careful;
//!
//! impl Agent for Careful {
//!     async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
//!         let mut messages = vec![ChatMessage::user(turn.task().message.clone())];
//!         let draft = turn.model(ModelRequest { messages: messages.clone(), ..ModelRequest::default() }).await?;
//!         messages.push(ChatMessage::said(&draft));
//!         messages.push(ChatMessage::user("Check this, and answer again."));
//!         let checked = turn.model(ModelRequest { messages, ..ModelRequest::default() }).await?;
//!         Ok(Response::new(checked.text))
//!     }
//! }
//! # use std::sync::Arc;
//! # use polis::{Cast, LocalLive, Options, Ports, Role, Society, SystemClock};
//! # use polis_testkit::{Line, MemoryLog, ScriptedModel, ScriptedTools};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let ports = Ports {
//! #     log: Arc::new(MemoryLog::new()),
//! #     model: Arc::new(ScriptedModel::new(|request| Line::text(&format!("look {}", request.messages.len())))),
//! #     toolbox: Arc::new(ScriptedTools::new()),
//! #     live: Arc::new(LocalLive::default()),
//! #     clock: Arc::new(SystemClock),
//! # };
//! # let root = Role { id: "root".into(), name: "Root".into(), prompt: "".into(), behaviour: "careful".into(), models: vec![] };
//! # let society = Society::open("main".into(), ports, Cast::new().with("careful", Careful), Options::new(1, root)).await?;
//! # let sent = society.submit("Is it so?").await?;
//! # assert_eq!(&*society.answer(&sent).await?.payload.text, "look 3");
//! # Ok(())
//! # }
//! ```

pub use polis_agents::{Converse, workflow};
pub use polis_domain as domain;
pub use polis_domain::{
    AgentId, Event, Failure, Letter, Limits, Message, Phase, Recorded, Response, Role, RoleId, Seq, SocietyId, SubThreadPath,
    Task, TaskId, Thread, ThreadId,
};
pub use polis_engine::{
    Agent, BatchUpdate, Cast, LocalLive, Options, PhaseConfig, Phased, Ports, Rejected, Seen, Sent, Society, StateHandler,
    SystemClock, Turn, Watch,
};
pub use polis_ports as ports;
pub use polis_ports::{Clock, Live, Log, Model, ModelRequest, Tool, ToolSpec, Toolbox};
