//! How a society moves.
//!
//! One actor per society takes commands, decides, appends the events to the log, evolves, publishes, and then reconciles:
//! it starts what is owed and not running and stops what is running and not owed. Starting, cancelling and recovering after a
//! crash are the same code.
//!
//! Reading order: [`Society`] is the door, `actor` the loop behind it, `scheduler` the turns that run, [`Turn`] what a
//! handler is given, [`Agent`], [`StateHandler`],
//! [`SubThreadAgent`] and [`InteractionUnit`] what anybody writes, [`Cast`] where it is registered.
//!
//! This crate names no HTTP, database or vendor; what it needs from the world are the ports.

mod actor;
mod agent;
mod broadcast;
mod cast;
mod clock;
mod error;
mod fold;
mod fork;
mod listing;
mod live;
mod nothing;
mod offer;
mod own_thread;
mod plant;
mod ready;
mod recent;
mod replay;
mod scheduler;
mod shared;
mod society;
mod sub_thread;
mod text;
mod tool;
mod turn;
mod unread;
mod watch;

pub use agent::{Agent, Operation, OperationWords, Phases, StateHandler};
pub use cast::{Cast, CastError};
pub use clock::SystemClock;
pub use error::{CommandError, OpenError};
pub use fork::{Branch, ForkError, Forked, fork, free_name, is_society_name};
pub use live::LocalLive;
pub use nothing::{NoModel, NoTools};
pub use offer::brief_description;
pub use ready::{ExecuteSubThread, PrepareSubThread};
pub use replay::{Divergence, Replayed, replay};
pub use shared::{Options, Ports};
pub use society::{Imported, Sent, Society, UnfinishedWork};
pub use sub_thread::{Interaction, InteractionUnit, Progress, SubThreadAgent, SubThreadResult, SubThreads, Units};
pub use tool::TurnTool;
pub use turn::{BatchUpdate, Context, NewMessage, Request, Requests, StepSink, SubThreadGroup, Turn};
pub use watch::{Watch, WatchEvent};
