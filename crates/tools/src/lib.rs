//! Tools that agents can use.
//!
//! A [`Workbench`] holds tools and runs them; [`built_ins`] are those that come with Polis, confined to a [`Workspace`].
//! To add one: one file, one line in [`built_ins`]. Nothing here decides who may use which tool.

mod read_file;
mod results;
mod workbench;
mod workspace;
mod write_file;

use polis_ports::Tool;

pub use read_file::ReadFile;
pub use workbench::{DuplicateTool, Workbench};
pub use workspace::{Workspace, WorkspaceError};
pub use write_file::WriteFile;

/// The tools that come with Polis.
pub fn built_ins(workspace: &Workspace) -> Vec<Box<dyn Tool>> {
    vec![Box::new(ReadFile::new(workspace.clone())), Box::new(WriteFile::new(workspace.clone()))]
}
