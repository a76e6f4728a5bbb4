//! How a society behaves, seen through its door.

mod bed;
mod phases;
mod society;
mod threads;
mod turns;
