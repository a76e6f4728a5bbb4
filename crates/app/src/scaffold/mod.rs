//! Writes new things by the rules of `docs/naming.md`. Never touches a file that is there.

mod agent;
mod place;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use agent::{Names, agent};
pub(crate) use place::Library;

use crate::trouble::Trouble;

/// What is to be written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// In order, with their texts.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// What is left to do by hand.
    pub(crate) advice: Vec<String>,
}

impl Draft {
    /// Writes everything, or nothing when something is in the way.
    pub(crate) fn write(&self) -> Result<(), Trouble> {
        if let Some((path, _)) = self.files.iter().find(|(path, _)| fs::symlink_metadata(path).is_ok()) {
            return Err(in_the_way(path));
        }
        self.files.iter().try_for_each(|(path, text)| {
            write(path, text).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => in_the_way(path),
                _ => Trouble::new("not_written", format!("{}: {error}; nothing that was there is changed", path.display())),
            })
        })
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn in_the_way(path: &Path) -> Trouble {
    Trouble::new("already_there", format!("{} is there already; choose another name or folder", path.display()))
}
