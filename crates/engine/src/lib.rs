//! How a society moves.
//!
//! One actor per society takes commands, decides, appends the events to the log, evolves, publishes, and then reconciles:
//! it starts what is owed and not running and stops what is running and not owed. Starting, cancelling and recovering after a
//! crash are the same code.
//!
//! Reading order: [`Society`] is the door, `actor` the loop behind it, `bench` the turns that run, [`Turn`] what a
//! handler is given, [`Agent`] and [`StateHandler`] what anybody writes.
//!
//! This crate names no HTTP, database or vendor; what it needs from the world are the ports.

mod actor;
mod agent;
mod bench;
mod clock;
mod live;
mod offer;
mod plant;
mod society;
mod tool;
mod turn;
mod watch;

pub use agent::{Agent, Cast, PhaseConfig, Phased, StateHandler};
pub use clock::SystemClock;
pub use live::LocalLive;
pub use society::{Options, Ports, Rejected, Sent, Society};
pub use tool::TurnTool;
pub use turn::{BatchUpdate, Turn};
pub use watch::{Seen, Watch};
