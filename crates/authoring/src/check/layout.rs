//! Where things are: a folder for each agent, three files for each sub-thread, folders as deep as the sub-threads.

use super::naming::{alike, is_snake, snake};
use super::source::{Kind, Part};
use super::tree::{File, Folder, Tree};
use super::{Findings, Rule};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (at, folder) in tree.folders.iter().enumerate() {
        style(folder, findings);
        names_of_files(folder, findings);
        missing(tree, at, findings);
        depth(tree, at, findings);
        levels(tree, at, findings);
        for file in &folder.files {
            homes(file, findings);
        }
    }
    tree.strays.iter().for_each(|file| homes(file, findings));
    called_from_elsewhere(tree, findings);
}

fn style(folder: &Folder, findings: &mut Findings) {
    if !is_snake(&folder.name) && !folder.is_root_of_crate() {
        let (wrong, remedy) =
            (format!("the folder `{}` is not in snake_case", folder.name), format!("call it `{}`", snake(&folder.name)));
        findings.add(&anchor(folder).path, 1, Rule::NamingStyle, wrong, remedy);
    }
    for file in folder.files.iter().filter(|file| file.kind.is_some()) {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        if !is_snake(&stem) {
            findings.add(
                &file.path,
                1,
                Rule::NamingStyle,
                format!("`{stem}.rs` is not in snake_case"),
                format!("call it `{}.rs`", snake(&stem)),
            );
        }
        if let Some((why, line)) = &file.source.unreadable {
            findings.add(
                &file.path,
                *line,
                Rule::Unreadable,
                format!("this is not Rust: {why}"),
                "make it compile, then check again",
            );
        }
    }
}

/// The files of a folder begin with its name.
fn names_of_files(folder: &Folder, findings: &mut Findings) {
    let own = if folder.is_root_of_crate() { folder.file(Kind::Agent).map_or("", |file| &file.owner) } else { &folder.name };
    for file in &folder.files {
        let Some(kind) = file.kind.filter(|_| !own.is_empty() && !alike(&file.owner, own)) else { continue };
        let named = format!("{}{}.rs", snake(own), kind.ending());
        let (wrong, remedy) = match file.owner.as_str() {
            "" => ("the file name does not name its agent".to_owned(), format!("call it `{named}`")),
            owner => {
                let theirs = snake(owner);
                (
                    format!("this file of `{theirs}` is in the folder of `{own}`"),
                    format!("move it to a folder `{theirs}/`, or call it `{named}`"),
                )
            }
        };
        findings.add(&file.path, 1, Rule::FolderName, wrong, remedy);
    }
}

/// A sub-thread has all three files; an agent with phases has its handlers beside it.
fn missing(tree: &Tree, at: usize, findings: &mut Findings) {
    let folder = &tree.folders[at];
    let (wanted, why): (&[Kind], _) = match () {
        () if folder.is_sub_thread() => {
            (&Kind::ALL, "the folder of a sub-thread has an agent, interaction units and state handlers")
        }
        _ if folder.files.iter().any(|file| !file.source.registered.is_empty() || file.kind != Some(Kind::Agent)) => {
            (&[Kind::Agent, Kind::StateHandlers], "the folder of an agent has the agent and its state handlers")
        }
        () => return,
    };
    for &kind in wanted.iter().filter(|kind| folder.file(**kind).is_none()) {
        let owner =
            folder.file(Kind::Agent).filter(|_| folder.is_root_of_crate()).map_or(folder.name.as_str(), |file| &file.owner);
        let named = format!("{}{}.rs", snake(owner), kind.ending());
        if !folder.present.contains(&named) {
            findings.add(
                &anchor(folder).path,
                1,
                Rule::MissingPart,
                format!("`{named}` is missing: {why}"),
                format!("write `{named}` beside this file"),
            );
        }
    }
}

/// A folder for every level, and no level without a folder.
fn depth(tree: &Tree, at: usize, findings: &mut Findings) {
    let folder = &tree.folders[at];
    let (path, agent) = (&anchor(folder).path, folder.declared().find(|(_, found)| found.part.home() == Kind::Agent));
    let Some(parent) = folder.parent.map(|parent| &tree.folders[parent]) else { return };
    if folder.path.parent() != Some(&parent.path) {
        let between = folder.path.parent().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
        let wrong =
            format!("`{}` is nested deeper in folders than in sub-threads: `{between}/` is not a sub-thread", folder.name);
        findings.add(path, 1, Rule::FolderDepth, wrong, format!("move the folder `{}/` into `{}/`", folder.name, parent.name));
    }
    if let Some((file, found)) = agent.filter(|(_, found)| found.part == Part::Agent) {
        let wrong = format!("`{}` is a separate agent inside the folder of `{}`", found.spot.name, parent.name);
        let remedy = format!("move its folder next to `{}/`, or make it a SubThreadAgent", parent.name);
        findings.add(&file.path, found.spot.line, Rule::FolderDepth, wrong, remedy);
    }
}

/// Handlers and units of one level are not used by another one.
fn levels(tree: &Tree, at: usize, findings: &mut Findings) {
    for (file, found) in tree.folders[at].declared().filter(|(_, found)| matches!(found.part, Part::Handler | Part::Unit)) {
        if tree.home_of(&found.spot.name, found.part) != Some(at) {
            continue;
        }
        let others = tree.folders.iter().filter(|other| {
            let path = &tree.folders[at].path;
            other.path != *path && (other.path.starts_with(path) || path.starts_with(&other.path))
        });
        for other in others {
            let users = other.files.iter().filter(|file| file.kind.is_some());
            if users.flat_map(|file| &file.source.mentioned).any(|spot| spot.name == found.spot.name) {
                let wrong = format!("`{}` serves `{}`, which is another level", found.spot.name, other.name);
                let remedy = format!(
                    "move it to `{}{}.rs` in the folder of `{}`",
                    snake(&other.name),
                    found.part.home().ending(),
                    other.name
                );
                findings.add(&file.path, found.spot.line, Rule::MixedLevels, wrong, remedy);
            }
        }
    }
}

/// Each kind of type has its own file.
fn homes(file: &File, findings: &mut Findings) {
    for found in file.source.declared.iter().filter(|found| file.kind != Some(found.part.home())) {
        let home = found.part.home();
        let owner = match (file.kind, home) {
            (Some(_), _) => snake(&file.owner),
            (None, Kind::Agent) => snake(found.spot.name.strip_suffix("Agent").unwrap_or(&found.spot.name)),
            (None, _) => "[agent]".to_owned(),
        };
        let wrong = format!("`{}` is in the wrong file", found.spot.name);
        findings.add(&file.path, found.spot.line, Rule::FileOfPart, wrong, format!("move it to `{owner}{}.rs`", home.ending()));
    }
}

/// A sub-thread is inside the folder of an agent that starts it.
fn called_from_elsewhere(tree: &Tree, findings: &mut Findings) {
    for (at, folder) in tree.folders.iter().enumerate() {
        let own = folder.declared().filter(|(_, found)| found.part == Part::SubThreadAgent);
        for (file, found) in own.filter(|(_, found)| tree.home_of(&found.spot.name, found.part) == Some(at)) {
            let mentions = |other: &&Folder| {
                let files = other.files.iter().filter(|file| file.kind.is_some());
                files.flat_map(|file| &file.source.mentioned).any(|spot| spot.name == found.spot.name)
            };
            let starters: Vec<&Folder> =
                tree.folders.iter().filter(|other| other.path != folder.path).filter(mentions).collect();
            let parent = folder.parent.map(|parent| &tree.folders[parent].path);
            if let Some(starter) = starters.first().filter(|_| starters.iter().all(|starter| Some(&starter.path) != parent)) {
                let wrong = format!("`{}` is started by `{}` and is not in its folder", found.spot.name, starter.name);
                let remedy = format!("move the folder `{}/` into `{}/`", folder.name, starter.name);
                findings.add(&file.path, found.spot.line, Rule::FolderDepth, wrong, remedy);
            }
        }
    }
}

/// The file that stands for a folder.
fn anchor(folder: &Folder) -> &File {
    folder.file(Kind::Agent).unwrap_or(&folder.files[0])
}
