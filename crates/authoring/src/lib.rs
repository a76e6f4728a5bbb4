//! For people who write agents: [`check`] reports what breaks the rules of names and layout, [`scaffold`] generates agents, roles
//! and SOPs that keep them. Reads sources and writes new files; runs no society.

pub mod check;
pub mod scaffold;
