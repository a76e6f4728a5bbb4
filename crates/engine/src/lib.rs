//! The runtime of a society: its actor, its turns, and the programming model for agents.
//!
//! One actor per society takes commands, decides them, appends the events to the log, publishes them, and then reconciles: it
//! starts what is owed and not running and stops what is running and not owed. Starting, cancelling and recovering after a
//! crash are the same code.
//!
//! Reading order: [`Society`] is the public handle, `actor` the loop behind it, `scheduler` the turns in memory, [`Turn`] the
//! context of a handler. [`Agent`], [`StateHandler`], [`SubThreadAgent`] and [`InteractionUnit`] are what a user of the crate
//! implements, and [`Cast`] is where the implementations are registered. `shared` has what all of these need.
//!
//! This crate knows no HTTP, database or vendor; it reaches the world through the ports.

mod actor;
mod agent;
mod broadcast;
mod cast;
mod clock;
mod commands;
mod conversation;
mod deployment;
mod erase;
mod error;
mod find_tools;
mod fold;
mod fork;
mod idle;
mod in_flight;
mod listing;
mod live;
mod memory;
mod nothing;
mod offer;
mod once;
mod own_thread;
mod person;
mod person_log;
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
pub use cast::Cast;
pub use clock::SystemClock;
pub use conversation::ConversationStart;
pub use deployment::{DeployedTurn, DeployedVersion};
pub use error::{CastError, CommandError, OpenError};
pub use find_tools::{FindTools, tool_names};
pub use fork::{Branch, ForkError, Forked, fork, forked_before, free_name, is_society_name};
pub use live::LocalLive;
pub use memory::FoundMemory;
pub use nothing::{NoModel, NoTools};
pub use offer::{brief_description, is_recallable, with_fresh};
pub use ready::{ExecuteSubThread, PrepareSubThread};
pub use replay::{Divergence, Replayed, replay, replay_open};
pub use shared::{Options, Ports};
pub use society::{Imported, Sent, Society, UnfinishedWork};
pub use sub_thread::{Interaction, InteractionUnit, Progress, SubThreadAgent, SubThreadResult, SubThreads, Units};
pub use tool::TurnTool;
pub use turn::{
    BatchUpdate, Context, NewMessage, OpenRequest, REUSED_NOTE, Recalled, Request, Requests, StepSink, SubThreadGroup,
    ThreadPatch, Turn, asking_fresh, take_fresh,
};
pub use watch::{Watch, WatchEvent};
