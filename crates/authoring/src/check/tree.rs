//! The agents of a folder: which folders are theirs, which files, and who is inside whom. Reads; judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use polis_agents::{ROLES_FOLDER, role_files};

use super::naming::{self, Abbreviations};
use super::source::{Kind, Part, Source, Text};

/// Folders that hold no sources of the project.
const ELSEWHERE: &[&str] = &["node_modules", "target", "vendor"];

/// Where prompts live.
pub(crate) const PROMPT: &str = "prompt";

/// How a prompt's file ends.
pub(crate) const PROMPT_ENDING: &str = "_system_prompt.md";

/// Larger files are data.
const MAX_BYTES: u64 = 4 << 20;

/// The agents below a folder.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Folders of agents, parents first.
    pub(crate) folders: Vec<Folder>,
    /// Files that declare parts of agents and are in no folder of one.
    pub(crate) strays: Vec<File>,
    /// Abbreviations that the project defines.
    pub(crate) abbreviations: Abbreviations,
    /// The files of roles, with their texts.
    pub(crate) roles: Vec<(PathBuf, String)>,
}

/// The folder of one agent or sub-thread.
#[derive(Debug)]
pub(crate) struct Folder {
    /// From the folder that is checked; empty for that one.
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    /// The folder of the agent that it is inside of.
    pub(crate) parent: Option<usize>,
    pub(crate) files: Vec<File>,
    /// The names of everything in it, for what must be there.
    pub(crate) present: BTreeSet<String>,
    /// Markdown in the folder `prompt`, and prompts that are not.
    pub(crate) prompts: Vec<PathBuf>,
}

/// A Rust file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) kind: Option<Kind>,
    /// The agent that it belongs to, by its name.
    pub(crate) owner: String,
    pub(crate) source: Source,
}

impl Tree {
    /// Reads everything below a folder.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut walk = Walk { root: root.to_owned(), ..Walk::default() };
        walk.folder(Path::new(""))?;
        walk.leave_tests();
        let role = |path: PathBuf| {
            let text = String::from_utf8_lossy(&fs::read(&path).ok()?).into_owned();
            Some((Path::new(ROLES_FOLDER).join(path.file_name()?), text))
        };
        let roles = role_files(&root.join(ROLES_FOLDER)).into_iter().filter_map(role).collect();
        let mut tree = Self { abbreviations: walk.abbreviations, roles, ..Self::default() };
        let mut prompts = walk.prompts;
        for (path, mut files) in walk.files {
            let is_agents = files.iter().any(File::is_of_an_agent);
            // What came through another module counts where the three files are, and nowhere else.
            for file in &mut files {
                let named = is_agents && file.kind.is_some();
                file.source.declared.retain(|found| found.certain || named);
            }
            let broken = |file: &File| is_agents && file.kind.is_some() && file.source.unreadable.is_some();
            let files =
                files.into_iter().filter(|file| file.is_of_an_agent() || !file.source.declared.is_empty() || broken(file));
            if !is_agents {
                tree.strays.extend(files);
                continue;
            }
            let parent = tree.folders.iter().rposition(|folder| path.starts_with(&folder.path) && folder.path != path);
            let present = walk.present.remove(&path).unwrap_or_default();
            let name = name_of(root, &path);
            tree.folders.push(Folder { name, parent, files: files.collect(), present, prompts: Vec::new(), path });
        }
        for (path, at) in prompts.drain(..) {
            let holder = if at.file_name().is_some_and(|name| name == PROMPT) { at.parent().unwrap_or(&at) } else { &at };
            let inside = tree.folders.iter().rposition(|folder| match at.file_name().is_some_and(|name| name == PROMPT) {
                true => folder.path == holder,
                false => path.to_string_lossy().ends_with(PROMPT_ENDING) && at.starts_with(&folder.path),
            });
            if let Some(inside) = inside {
                tree.folders[inside].prompts.push(path);
            }
        }
        Ok(tree)
    }

    /// The folders inside this one, at any depth, and itself.
    pub(crate) fn within(&self, at: usize) -> impl Iterator<Item = &Folder> {
        let path = &self.folders[at].path;
        self.folders.iter().filter(move |folder| folder.path.starts_with(path))
    }

    /// The only folder that declares this type, if there is one.
    pub(crate) fn home_of(&self, name: &str, part: Part) -> Option<usize> {
        let declares = |folder: &Folder| folder.declared().any(|(_, found)| found.part == part && found.spot.name == name);
        let mut homes = self.folders.iter().enumerate().filter(|(_, folder)| declares(folder)).map(|(at, _)| at);
        homes.next().filter(|_| homes.next().is_none())
    }
}

impl Folder {
    /// Every part that its files declare.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (&File, &super::source::Declaration)> {
        self.files.iter().flat_map(|file| file.source.declared.iter().map(move |declared| (file, declared)))
    }

    /// The file of this kind that is its own, else the first one there is.
    pub(crate) fn file(&self, kind: Kind) -> Option<&File> {
        let of_kind = || self.files.iter().filter(move |file| file.kind == Some(kind));
        of_kind().find(|file| naming::alike(&file.owner, &self.name)).or_else(|| of_kind().next())
    }

    /// The text, with the constants of this folder.
    pub(crate) fn resolve<'a>(&'a self, text: &'a Text) -> Option<&'a str> {
        match text {
            Text::Literal(text) => Some(text),
            Text::Constant(name) => self.files.iter().find_map(|file| file.source.constants.get(name)).map(String::as_str),
            Text::Unknown => None,
        }
    }

    /// Whether each of its files can be read: one that cannot may hold anything.
    pub(crate) fn is_readable(&self) -> bool {
        self.files.iter().all(|file| file.source.unreadable.is_none())
    }

    /// Whether its agent runs in a sub-thread: it says so, or it is inside the folder of another one.
    pub(crate) fn is_sub_thread(&self) -> bool {
        self.parent.is_some() || self.declared().any(|(_, found)| found.part == Part::SubThreadAgent)
    }

    /// Whether the crate's own root is the agent's folder, so that its name is not the agent's.
    pub(crate) fn is_root_of_crate(&self) -> bool {
        self.name == "src" || self.present.contains("Cargo.toml")
    }
}

impl File {
    /// One of the three files of an agent: by its name, and because it has to do with the library.
    fn is_of_an_agent(&self) -> bool {
        self.kind.is_some() && self.source.uses_library
    }
}

#[derive(Default)]
struct Walk {
    root: PathBuf,
    files: BTreeMap<PathBuf, Vec<File>>,
    present: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Markdown and the folder that it is in.
    prompts: Vec<(PathBuf, PathBuf)>,
    abbreviations: Abbreviations,
    /// Modules that are there for tests alone, by their paths without `.rs`.
    tests: Vec<PathBuf>,
}

impl Walk {
    /// Forgets the modules that are there for tests alone.
    fn leave_tests(&mut self) {
        let tests = std::mem::take(&mut self.tests);
        for files in self.files.values_mut() {
            files.retain(|file| !tests.iter().any(|module| file.path.with_extension("").starts_with(module)));
        }
        self.files.retain(|_, files| !files.is_empty());
    }

    fn folder(&mut self, path: &Path) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            names.insert(entry.file_name().to_string_lossy().into_owned(), entry.file_type()?);
        }
        let is_crate = names.contains_key("Cargo.toml");
        for (name, kind) in &names {
            let inside = path.join(name);
            if kind.is_dir() {
                // Cargo's tests name things for tests.
                let for_tests = name == "tests" || (is_crate && name == "benches");
                if !name.starts_with('.') && !ELSEWHERE.contains(&name.as_str()) && !for_tests {
                    // A folder that may not be read holds nothing that we could judge.
                    match self.folder(&inside) {
                        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
                        _ => {}
                    }
                }
            } else if kind.is_file() {
                self.file(path, &inside, name)?;
            }
        }
        self.present.insert(path.to_owned(), names.into_keys().collect());
        Ok(())
    }

    fn file(&mut self, folder: &Path, path: &Path, name: &str) -> io::Result<()> {
        if name.ends_with(".md") {
            self.prompts.push((path.to_owned(), folder.to_owned()));
            if name.eq_ignore_ascii_case("readme.md") || name == "naming.md" {
                self.abbreviations.append(&mut naming::defined_in(&self.text(path)?));
            }
        }
        let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "tests") else { return Ok(()) };
        let kind = Kind::of(stem);
        let text = self.text(path)?;
        let is_read = text.contains("polis") || kind.is_some();
        if is_read || (text.contains("cfg") && text.contains("test") && text.contains("mod ")) {
            let source = Source::read(&text);
            let inside = if ["lib", "main", "mod"].contains(&stem) { folder.to_owned() } else { folder.join(stem) };
            self.tests.extend(source.test_modules.iter().map(|module| inside.join(module)));
            if !is_read {
                return Ok(());
            }
            let owner = kind.map_or("", |(_, owner)| owner).to_owned();
            let file = File { path: path.to_owned(), kind: kind.map(|(kind, _)| kind), owner, source };
            self.files.entry(folder.to_owned()).or_default().push(file);
        }
        Ok(())
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        let path = self.root.join(path);
        if fs::metadata(&path)?.len() > MAX_BYTES {
            return Ok(String::new());
        }
        Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
    }
}

fn name_of(root: &Path, path: &Path) -> String {
    let whole = if path.as_os_str().is_empty() { fs::canonicalize(root).unwrap_or_default() } else { path.to_owned() };
    whole.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
