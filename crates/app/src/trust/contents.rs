//! What a folder has that would steer Polis: each governed file with its digest and the bytes that the digest is of.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use polis_agents::role::Sops;
use polis_agents::{INSTRUCTIONS_FILE, ROLES_FOLDER, SHARED_SKILLS_FOLDERS, SKILLS_FOLDER, Skills, role_files};
use polis_ports::Hasher;
use serde_json::Value;

use super::loaded_code::{beside, named_by};
use crate::config::FILE;
use crate::{mcp_servers, wiring};

/// Largest governed file, and most files of one folder. A file beyond that is never trusted.
pub(super) const MAX_BYTES: u64 = 4 << 20;
const MAX_FILES: usize = 1_000;

/// Longest file that a command names, and how much is read of all of them. What is beyond is never trusted.
const MAX_NAMED_BYTES: u64 = 1 << 30;
const MAX_ALL_BYTES: u64 = 2 << 30;

/// A file that has to be trusted, as it was when the folder was scanned.
#[derive(Debug, Clone)]
pub(crate) struct Governed {
    /// SHA-256 of its content, in hexadecimal digits.
    pub(crate) digest: String,
    /// The content itself; none for a file that a command names or loads.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Whether it only lies where a program of the settings loads code from.
    pub(crate) beside: bool,
}

/// The governed files of a folder, by their paths below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub(crate) files: BTreeMap<String, Governed>,
}

impl Contents {
    /// Reads everything that would count in a folder. `data` is the data directory if it lies in the folder. Scripts for the page
    /// count only for `polis serve`.
    pub(crate) fn scan(folder: &Path, data: Option<&Path>, serves: bool) -> Self {
        let mut paths = vec![PathBuf::from(FILE), PathBuf::from(mcp_servers::FILE)];
        paths.extend(data.into_iter().flat_map(|data| [data.join(FILE), data.join(mcp_servers::FILE)]));
        let below = |files: Vec<PathBuf>| files.into_iter().filter_map(|path| Some(path.strip_prefix(folder).ok()?.to_owned()));
        paths.extend(below(role_files(&folder.join(ROLES_FOLDER))));
        paths.extend(below(Sops::files(&folder.join(wiring::SOPS))));
        for prompts in wiring::PROMPTS {
            paths.extend(below(with_ending(&folder.join(prompts), "md")));
        }
        if serves {
            paths.extend(below(with_ending(&folder.join(wiring::COMPONENTS), "js")));
        }
        paths.push(INSTRUCTIONS_FILE.into());
        for skills in [SKILLS_FOLDER].into_iter().chain(SHARED_SKILLS_FOLDERS) {
            paths.extend(below(files_of_skills(&folder.join(skills))));
        }
        paths.truncate(MAX_FILES);
        let governed = |path: PathBuf| {
            let whole = folder.join(&path);
            (!leads_out(folder, &whole)).then_some(())?;
            Some((key(&path)?, read(&whole)?))
        };
        let mut contents = Self { files: paths.into_iter().filter_map(governed).collect() };
        let settings: Vec<Value> = contents.settings().into_iter().map(|(_, settings)| settings).collect();
        let named: BTreeSet<PathBuf> = settings.iter().flat_map(|settings| named(folder, settings)).collect();
        let beside: BTreeSet<PathBuf> =
            settings.iter().flat_map(programs_in).flat_map(|program| beside(folder, &program).unwrap_or_default()).collect();
        let mut room = MAX_ALL_BYTES;
        for (path, beside) in named.iter().map(|path| (path, false)).chain(beside.iter().map(|path| (path, true))) {
            let Some(key) = path.strip_prefix(folder).ok().and_then(key) else { continue };
            let bytes = path.metadata().map_or(0, |about| about.len());
            if let Entry::Vacant(entry) = contents.files.entry(key)
                && bytes <= room
                && let Some(digest) = digest_of_file(path)
            {
                room -= bytes;
                entry.insert(Governed { digest, bytes: None, beside });
            }
        }
        contents
    }

    /// The files with settings that can be read, as values: by name, in order.
    pub(crate) fn settings(&self) -> Vec<(&str, Value)> {
        let parsed = |(name, file): (&String, &Governed)| {
            let text = std::str::from_utf8(file.bytes.as_deref()?).ok()?;
            if is_named(name, FILE) {
                return serde_json::to_value(toml::from_str::<toml::Table>(text).ok()?).ok();
            }
            is_named(name, mcp_servers::FILE).then(|| serde_json::from_str(text).ok()).flatten()
        };
        self.files.iter().filter_map(|entry| Some((entry.0.as_str(), parsed(entry)?))).collect()
    }

    /// The digests by path.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        self.files.iter().map(|(name, file)| (name.clone(), file.digest.clone())).collect()
    }

    /// All of it as one digest.
    pub(crate) fn digest(&self) -> String {
        let all: String = self.files.iter().map(|(name, file)| format!("{} {name}\0", file.digest)).collect();
        digest(all.as_bytes())
    }
}

/// The programs and texts of each MCP server in a file of settings: its name, its settings.
pub(crate) fn servers_in(settings: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let groups = ["mcp", "mcpServers", "servers"].into_iter().filter_map(|group| settings.get(group)?.as_object());
    groups.flatten()
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Hasher::id_of(bytes).to_string()
}

/// How a path below the folder is written down. None where it leaves the folder or is not UTF-8.
pub(crate) fn key(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn is_named(key: &str, file: &str) -> bool {
    key.rsplit('/').next() == Some(file)
}

/// Whether a path is a link to what is not in the folder. A person who trusts a folder does not trust with it what such a link names:
/// a file of theirs would be shown to models as if it were the folder's.
pub(crate) fn leads_out(folder: &Path, path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| !real.starts_with(folder))
}

/// A governed file. What is no ordinary file, or too long, is none.
fn read(path: &Path) -> Option<Governed> {
    let about = std::fs::metadata(path).ok().filter(|about| about.is_file() && about.len() <= MAX_BYTES)?;
    let mut bytes = Vec::with_capacity(about.len() as usize);
    File::open(path).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_BYTES).then(|| Governed { digest: digest(&bytes), bytes: Some(bytes), beside: false })
}

/// All files of the skills in a folder. A skill with too many of them is never trusted.
fn files_of_skills(folder: &Path) -> Vec<PathBuf> {
    let skills = Skills::files(folder).into_iter().filter_map(|file| file.parent().map(Path::to_owned));
    let files = |skill: PathBuf| Skills::parts(&skill).unwrap_or_default().into_iter().map(move |part| skill.join(part));
    skills.flat_map(files).collect()
}

fn with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == ending) && path.is_file()).collect();
    files.sort();
    files
}

/// The MCP servers and the programs that print keys, each with its `command` and `args`.
fn programs_in(settings: &Value) -> Vec<Value> {
    let of_keys = providers_in(settings).filter_map(|provider| {
        let (command, args) = provider["key_command"].as_array()?.split_first()?;
        Some(serde_json::json!({ "command": command, "args": args }))
    });
    servers_in(settings).map(|(_, server)| server.clone()).chain(of_keys).collect()
}

fn providers_in(settings: &Value) -> impl Iterator<Item = &Value> {
    settings["providers"].as_object().into_iter().flat_map(|providers| providers.values())
}

/// The files of the folder that the settings name: prices, keys, certificates, and what programs run.
fn named(folder: &Path, settings: &Value) -> Vec<PathBuf> {
    let certificates = providers_in(settings).chain([&settings["network"]]);
    let certificates = certificates
        .flat_map(|it| ["key_file", "ca", "client_certificate", "client_key"].into_iter().filter_map(|key| it[key].as_str()));
    let files = settings["prices"].as_str().into_iter().chain(certificates).map(|path| folder.join(path));
    let all = files.chain(programs_in(settings).into_iter().flat_map(|program| named_by(folder, &program)));
    all.filter_map(|path| path.canonicalize().ok()).filter(|path| path.starts_with(folder) && path.is_file()).collect()
}

/// SHA-256 of a file that is too long to be kept, in hexadecimal digits.
pub(crate) fn digest_of_file(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > MAX_NAMED_BYTES {
        return None;
    }
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.id().to_string()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_would_count_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("README.md", "x");
        write("src/main.rs", "x");
        write("roles/README.md", "x");
        write("components/button.js", "x");
        assert!(Contents::scan(&folder, Some(Path::new(".polis")), false).files.is_empty());
        for name in [".polis/polis.toml", ".polis/.mcp.json", "roles/root.md", "sops/a.md", "prompts/planner.md"] {
            write(name, "");
        }
        write("agents/prompts/executor.md", "");
        write(
            "polis.toml",
            "prices = \"prices.toml\"\n[network]\nca = \"ca.pem\"\n[providers.x]\nca = \"/etc/hostname\"\nclient_key = \"x.pem\"\nkey_command = [\"./key.sh\"]\nkey_file = \"key\"\n[mcp.a]\ncommand = \"./run.sh\"\ncwd = \"tools\"\n",
        );
        write("prices.toml", "");
        ["ca.pem", "x.pem", "key.sh", "key"].iter().for_each(|name| write(name, ""));
        write("tools/run.sh", "");
        write("tools/lib.so", "");
        write("package.json", "{}");
        write("data.db", "");
        write("Makefile", "");
        write("server.js", "");
        write(
            ".mcp.json",
            r#"{"mcpServers": {"b": {"command": "node", "args": ["--require=./server.js", "/etc/hostname", "sh -c 'tools/lib.so'", "--db", "data.db"]},
                "c": {"command": "npm", "args": ["start"]}, "d": {"command": "npx", "args": ["-y", "x", "."]}}}"#,
        );
        let contents = Contents::scan(&folder, Some(Path::new(".polis")), true);
        let found: Vec<&str> = contents.files.keys().map(String::as_str).collect();
        let want = [
            ".mcp.json",
            ".polis/.mcp.json",
            ".polis/polis.toml",
            "Makefile",
            "agents/prompts/executor.md",
            "ca.pem",
            "components/button.js",
            "key",
            "key.sh",
            "package.json",
            "polis.toml",
            "prices.toml",
            "prompts/planner.md",
            "roles/root.md",
            "server.js",
            "sops/a.md",
            "src/main.rs",
            "tools/lib.so",
            "tools/run.sh",
            "x.pem",
        ];
        assert_eq!(found, want);
        let before = contents.digest();
        write("server.js", "changed");
        assert_ne!(Contents::scan(&folder, Some(Path::new(".polis")), true).digest(), before);
    }

    #[test]
    fn a_path_is_written_down_in_one_way_only() {
        assert_eq!(key(Path::new("./roles//a.md")).as_deref(), Some("roles/a.md"));
        assert_eq!(key(Path::new("roles/../a.md")), None);
        assert_eq!(key(Path::new("/roles")), None);
    }
}
