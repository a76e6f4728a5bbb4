//! The tools of the pipeline: files and commands of one folder that belongs to it alone.

#![cfg(target_os = "linux")]

use std::io;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use polis::domain::{CallResult, EffectClass};
use polis::ports::{CallContext, Tool, ToolError, ToolSpec};
use polis::tools::sandbox::{Limits, Sandbox};
use polis::tools::{CommandOptions, PutArtifact, RunCommand, ToolRegistry, Workspace, WriteFile};

/// How long one script may run.
const WALL: Duration = Duration::from_secs(120);

/// The tools, for the tables and scripts in `workspace`. Nothing else may write there.
pub fn tools(workspace: &Path, sandbox: Sandbox) -> io::Result<ToolRegistry> {
    let open = Workspace::open(workspace)?;
    let limits = Limits { wall: WALL, memory_bytes: 2 << 30, output_bytes: 64 << 20, ..Limits::default() };
    let commands = CommandOptions { limits, ..CommandOptions::new(workspace) };
    let tools: [Box<dyn Tool>; 3] = [
        Box::new(Repeatable(WriteFile::new(open.clone()))),
        Box::new(Repeatable(RunCommand::new(sandbox, commands))),
        Box::new(PutArtifact::new(open)),
    ];
    ToolRegistry::new(tools).map_err(io::Error::other)
}

/// A tool that may be called again after a crash. Here that is so: a file is written whole, and a script that was cut begins
/// anew, with the same input, in a folder that only this request has.
struct Repeatable<T>(T);

#[async_trait]
impl<T: Tool> Tool for Repeatable<T> {
    fn spec(&self) -> ToolSpec {
        ToolSpec { class: EffectClass::Idempotent, ..self.0.spec() }
    }

    async fn call(&self, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.0.call(arguments, context).await
    }
}
