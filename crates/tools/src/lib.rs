//! Tools that agents can use.
//!
//! A [`ToolRegistry`] holds tools and runs them; [`built_ins`] are those that come with Polis, confined to a [`Workspace`].
//! To add one: one file, one line in [`built_ins`]. Tools of MCP servers come through [`mcp`]. A tool knows nothing of who may
//! use it: [`PolicyToolbox`] says so, from rules.

pub mod a2a;
mod artifacts;
mod ask_person;
mod edit_file;
mod fetch;
mod fetch_url;
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod http_client;
mod ignore_rules;
#[cfg(target_os = "linux")]
mod kept_files;
mod list_files;
pub mod mcp;
mod now;
mod plain_http;
mod policy;
mod protected;
mod read_file;
mod results;
#[cfg(target_os = "linux")]
mod run_command;
#[cfg(target_os = "linux")]
pub mod sandbox;
mod search_files;
mod spill;
mod text;
mod tool_registry;
mod top_level;
mod vendor_tool;
mod walk;
mod web_search;
mod workspace;
mod write_file;

use std::sync::Arc;

use polis_ports::{Clock, Tool};

pub use artifacts::{GetArtifact, ListArtifacts, PutArtifact, media_type};
pub use ask_person::AskPerson;
pub use edit_file::EditFile;
pub use fetch::{AllowedAddresses, BadAddressRule, Resolver, SystemResolver};
pub use fetch_url::FetchUrl;
pub use list_files::ListFiles;
pub use now::{Now, local_date};
pub use plain_http::is_plain_http;
pub use policy::{PolicyToolbox, Rule, RuleAction};
pub use polis_http::HttpOptions;
pub use protected::ProtectedPaths;
pub use read_file::ReadFile;
#[cfg(target_os = "linux")]
pub use run_command::{CommandOptions, RunCommand};
pub use search_files::SearchFiles;
pub use tool_registry::{DuplicateTool, ToolRegistry};
pub use top_level::top_level;
pub use vendor_tool::OfVendor;
pub use web_search::{SearchService, WebSearch};
pub use workspace::{Workspace, WorkspaceError};
pub use write_file::WriteFile;

/// The tools that come with Polis.
pub fn built_ins(workspace: &Workspace, clock: Arc<dyn Clock>) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(ReadFile::new(workspace.clone())),
        Box::new(WriteFile::new(workspace.clone())),
        Box::new(EditFile::new(workspace.clone())),
        Box::new(ListFiles::new(workspace.clone())),
        Box::new(SearchFiles::new(workspace.clone())),
        Box::new(Now::new(clock)),
        Box::new(PutArtifact::new(workspace.clone())),
        Box::new(GetArtifact),
        Box::new(ListArtifacts),
        Box::new(AskPerson),
    ]
}
