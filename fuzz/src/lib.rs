//! Fuzz targets: one function for each parser of bytes that come from outside. A target panics when the parser breaks a promise; that
//! it does not panic by itself is only the least of them. How inputs are found is the business of `mutate` and of libFuzzer.

pub mod mutate;
mod targets;

use std::path::PathBuf;

/// A parser under test.
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Gives it one input and checks what came of it.
    pub run: fn(&[u8]),
    /// Words that mean something to the parser.
    pub words: &'static [&'static str],
}

/// All targets. A new one is a file in `targets/`, a line here, a folder in `corpus/` and a line in `tests/main.rs`.
pub const TARGETS: &[Target] = &[
    targets::address::TARGET,
    targets::charset::TARGET,
    targets::client_sse::TARGET,
    targets::emulated::TARGET,
    targets::html::TARGET,
    targets::json::TARGET,
    targets::mcp_frames::TARGET,
    targets::mcp_tools::TARGET,
    targets::org::TARGET,
    targets::path::TARGET,
    targets::pattern::TARGET,
    targets::policy::TARGET,
    targets::reply::TARGET,
    targets::role_file::TARGET,
    targets::sop::TARGET,
    targets::sse::TARGET,
    targets::url::TARGET,
    targets::workflow::TARGET,
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// The inputs that are kept for it, by the names of their files.
    pub fn corpus(&self) -> Vec<(String, Vec<u8>)> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name);
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut corpus: Vec<_> = files
            .filter_map(|file| Some((file.file_name()?.to_string_lossy().into_owned(), std::fs::read(&file).ok()?)))
            .collect();
        corpus.sort();
        corpus
    }
}
