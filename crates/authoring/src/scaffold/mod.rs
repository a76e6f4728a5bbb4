//! Writes new things by the rules of `docs/naming.md`. Never touches a file that is there.

mod agent;
mod destination;
mod role;
mod skill;
mod sop;
mod tool;
mod workflow;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use agent::{AgentNames, agent};
pub use destination::Library;
pub use role::role;
pub use skill::skill;
pub use sop::sop;
pub use tool::{tool, tool_section};
pub use workflow::{CodegenOptions, codegen_prompt, workflow};

/// Why nothing was written. The codes stay the same.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The input is wrong.
    #[error("{message}")]
    Usage {
        /// The error's code.
        code: &'static str,
        /// What is wrong, and what to do.
        message: String,
    },
    /// It could not be written.
    #[error("{message}")]
    Failed {
        /// The error's code.
        code: &'static str,
        /// What failed, and what to do.
        message: String,
    },
}

impl ScaffoldError {
    fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::Usage { code, message: message.into() }
    }

    fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into() }
    }
}

/// Files to create.
#[derive(Debug, Default)]
pub struct NewFiles {
    /// In order, with their texts.
    pub files: Vec<(PathBuf, String)>,
    /// What is left to do by hand.
    pub advice: Vec<String>,
}

impl NewFiles {
    /// Writes everything, or nothing when something is in the way.
    pub fn write(&self) -> Result<(), ScaffoldError> {
        if let Some((path, _)) = self.files.iter().find(|(path, _)| fs::symlink_metadata(path).is_ok()) {
            return Err(already_exists(path));
        }
        for (path, text) in &self.files {
            write(path, text).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => already_exists(path),
                _ => ScaffoldError::failed("not_written", format!("{}: {error}; existing files are unchanged", path.display())),
            })?;
        }
        self.format();
        Ok(())
    }

    /// Lays the new sources out as this machine's rustfmt does; names differ in length. Without one they stay as they are.
    fn format(&self) {
        let sources =
            self.files.iter().map(|(path, _)| path).filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
        if sources.clone().next().is_none() {
            return;
        }
        let mut rustfmt = Command::new("rustfmt");
        rustfmt.args(["--quiet", "--edition", "2024"]).args(sources);
        let _ = rustfmt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn already_exists(path: &Path) -> ScaffoldError {
    // The obstacle may be a file where one of the folders should be.
    let is_there = |path: &&Path| fs::symlink_metadata(path).is_ok();
    let path = path.ancestors().find(is_there).unwrap_or(path);
    ScaffoldError::failed("already_there", format!("{} already exists; choose another name or folder", path.display()))
}
