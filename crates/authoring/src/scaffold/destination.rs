//! Where a new agent goes: into the current crate, or into a project of its own; and where that finds the library.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Value;

use super::ScaffoldError;

/// The checkout that this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where something new is put.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// A folder of modules, and the manifest of its crate.
    Crate { modules: PathBuf, manifest: PathBuf },
    /// A folder that is in no crate.
    Open(PathBuf),
}

/// Where the library is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// A checkout of the repository, at this folder.
    Checkout(PathBuf),
    /// A git address.
    Git(String),
}

impl Destination {
    /// Whether the folder is in a crate.
    pub(super) fn of(folder: &Path) -> Result<Self, ScaffoldError> {
        let bad = |error| ScaffoldError::usage("bad_folder", format!("{}: {error}", folder.display()));
        let whole = std::path::absolute(folder).map_err(bad)?;
        let manifest = whole.ancestors().map(|above| above.join("Cargo.toml")).find(|manifest| manifest.is_file());
        let Some(manifest) = manifest.filter(|manifest| is_package(manifest)) else { return Ok(Self::Open(folder.to_owned())) };
        let sources = manifest.with_file_name("src");
        let modules = if whole.starts_with(&sources) { folder.to_owned() } else { sources };
        Ok(Self::Crate { modules, manifest })
    }
}

impl Library {
    /// The named library, else the checkout that this program was built from.
    pub fn find(named: Option<&str>) -> Result<Self, ScaffoldError> {
        let named = named.unwrap_or(BUILT_FROM);
        if named.contains("://") || named.starts_with("git@") {
            return Ok(Self::Git(named.to_owned()));
        }
        let whole = fs::canonicalize(named).ok();
        let checkout = whole
            .filter(|root| ["polis", "testkit"].iter().all(|name| root.join("crates").join(name).join("Cargo.toml").is_file()));
        checkout.map(Self::Checkout).ok_or_else(|| {
            let message = format!("{named} is not a checkout of Polis; clone its repository and pass --polis FOLDER, or pass --polis with its git address");
            ScaffoldError::usage("no_library", message)
        })
    }

    /// The dependency on one of its crates, as a manifest has it.
    pub(super) fn dependency(&self, folder: &str) -> String {
        match self {
            Self::Checkout(root) => {
                let path = root.join("crates").join(folder).to_string_lossy().into_owned();
                format!("{{ path = {} }}", Value::String(path))
            }
            Self::Git(address) => format!("{{ git = {} }}", Value::String(address.clone())),
        }
    }

    /// Versions that are known to work together.
    pub(super) fn versions(&self) -> Option<String> {
        match self {
            Self::Checkout(root) => fs::read_to_string(root.join("Cargo.lock")).ok(),
            Self::Git(_) => None,
        }
    }
}

/// The dependencies of this crate, those for tests among them, that a new agent needs and that are missing.
pub(super) fn missing(manifest: &Path, needed: &[(&str, &str)]) -> Vec<String> {
    let read: toml::Table = fs::read_to_string(manifest).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let has = |table: &str, name: &str| read.get(table).and_then(|table| table.get(name)).is_some();
    let missing = needed.iter().filter(|(table, name)| !has(table, name) && !has("dependencies", name));
    missing.map(|(table, name)| format!("[{table}] {name}")).collect()
}

fn is_package(manifest: &Path) -> bool {
    let read: Option<toml::Table> = fs::read_to_string(manifest).ok().and_then(|text| text.parse().ok());
    read.is_some_and(|read| read.contains_key("package"))
}
