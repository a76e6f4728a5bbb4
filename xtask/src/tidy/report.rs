//! Figures about the structure of the code, as a table for ARCHITECTURE.md. Read from the sources as text: an import that a macro
//! makes is not seen.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::workspace::Workspace;

/// The crates whose types are on the wire.
const WIRE: &[&str] = &["crates/api/", "crates/server/", "crates/client/", "crates/app/"];

/// What a file contains that opens connections itself.
const CLIENTS: &[&str] = &["hyper_util::client", "reqwest::Client", "hyper::client"];

/// Files by their path.
type Sources = BTreeMap<String, String>;

pub(crate) fn print(workspace: &Workspace) -> Result<()> {
    let mut sources = Sources::new();
    for file in workspace.files()? {
        if file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs") {
            sources.insert(file.clone(), std::fs::read_to_string(workspace.root.join(&file))?);
        }
    }
    let circles = circles(&sources);
    let largest_circle = circles.iter().max_by_key(|circle| circle.len());
    let largest = sources.iter().map(|(file, text)| (text.lines().count(), file)).max();
    let twice = defined_twice(&sources);
    let clients = clients(&sources);
    println!("| what | figure |\n|---|---|");
    println!("| files in `crates/*/src` | {} |", sources.len());
    if let Some((lines, file)) = largest {
        println!("| lines of the largest | {lines} (`{file}`) |");
    }
    println!("| circles of files that import each other | {} |", circles.len());
    if let Some(circle) = largest_circle {
        println!("| files in the largest circle | {} (`{}` …) |", circle.len(), circle[0]);
    }
    println!("| wire types that more than one crate defines | {}{} |", twice.len(), listed(&twice));
    println!("| crates that open HTTP connections | {}{} |", clients.len(), listed(&clients));
    println!("\nThe circles:\n");
    circles.iter().for_each(|circle| println!("- {}", circle.join(", ")));
    Ok(())
}

fn listed(names: &BTreeSet<String>) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// The crate of a file, such as `crates/engine/`.
fn crate_of(file: &str) -> &str {
    file.find("/src/").map_or(file, |at| &file[..=at])
}

/// The module of a file, such as `turn::call`; nothing for the root.
fn module_of(file: &str) -> String {
    let path = file.split_once("/src/").map_or(file, |(_, path)| path).trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main" | "mod") { String::new() } else { path.replace('/', "::") }
}

/// Groups of files that reach each other by imports. The root of a crate is a table of contents and joins nothing; a name that it
/// passes on counts as an import from where the name is defined.
fn circles(sources: &Sources) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let crates: BTreeSet<&str> = sources.keys().map(|file| crate_of(file)).collect();
    for of in crates {
        let modules: BTreeMap<String, &String> =
            sources.iter().filter(|(file, _)| crate_of(file) == of).map(|(file, text)| (module_of(file), text)).collect();
        let passed_on = modules.get("").map(|root| passed_on(root)).unwrap_or_default();
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, text) in modules.iter().filter(|(module, _)| !module.is_empty()) {
            for path in imports(module, text) {
                // A module and a name that the root passes on may be called alike: `decide::decide`.
                let first = path.split("::").next().unwrap_or_default();
                let is_module = first != path && modules.contains_key(first);
                let path = passed_on.get(first).filter(|_| !is_module).cloned().unwrap_or(path);
                let target = modules.keys().filter(|other| is_within(&path, other)).max_by_key(|other| other.len());
                if let Some(target) = target.filter(|target| !target.is_empty() && *target != module) {
                    edges.entry(module).or_default().insert(target);
                }
            }
        }
        let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|module| (*module, reachable(module, &edges))).collect();
        let mut seen = BTreeSet::new();
        for (module, reached) in &reach {
            if !seen.contains(module) && reached.contains(module) {
                let is_back = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(module));
                let circle: Vec<String> = reached.iter().filter(is_back).map(|other| format!("{of}src/{other}")).collect();
                seen.extend(reached.iter().filter(is_back).copied());
                found.push(circle);
            }
        }
    }
    found
}

fn is_within(path: &str, module: &str) -> bool {
    path == module || path.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"))
}

fn reachable<'a>(from: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(edges.get(module).into_iter().flatten().copied());
        }
    }
    reached
}

/// The names that a root passes on, with where they come from.
fn passed_on(root: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in statements(root) {
        let Some(path) = statement.strip_prefix("pub use ").or_else(|| statement.strip_prefix("pub(crate) use ")) else {
            continue;
        };
        for path in expanded(path) {
            if let Some((_, name)) = path.rsplit_once("::") {
                names.insert(name.to_owned(), path.clone());
            }
        }
    }
    names
}

/// What a module imports from its own crate, as paths from the root. Tests do not count.
fn imports(module: &str, text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut paths = Vec::new();
    for statement in statements(code) {
        let Some(at) = statement.find("use ").filter(|at| *at == 0 || statement.starts_with("pub")) else { continue };
        for path in expanded(&statement[at + 4..]) {
            if let Some(path) = path.strip_prefix("crate::") {
                paths.push(path.to_owned());
            } else if let Some(path) = path.strip_prefix("super::") {
                let own = if parent.is_empty() { path.to_owned() } else { format!("{parent}::{path}") };
                paths.push(own);
            }
        }
    }
    paths
}

/// The `use` statements of a file, each on one line.
fn statements(code: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open: Option<String> = None;
    for line in code.lines() {
        let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "].iter().any(|start| line.starts_with(start));
        let statement = match open.take() {
            Some(before) => format!("{before} {}", line.trim()),
            None if begins => line.to_owned(),
            None => continue,
        };
        match statement.strip_suffix(';') {
            Some(whole) => statements.push(whole.to_owned()),
            None => open = Some(statement),
        }
    }
    statements
}

/// The paths of an import with braces, one by one.
fn expanded(path: &str) -> Vec<String> {
    let path = path.trim();
    let Some((prefix, rest)) = path.split_once('{') else {
        return vec![path.split(" as ").next().unwrap_or(path).trim().to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let whole = |part: &str| if part == "self" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{part}") };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).flat_map(|part| expanded(&whole(part))).collect()
}

/// The names of serialized types that two or more crates on the wire define.
fn defined_twice(sources: &Sources) -> BTreeSet<String> {
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in sources.iter().filter(|(file, _)| WIRE.iter().any(|start| file.starts_with(start))) {
        let mut is_wire = false;
        for line in text.lines().map(str::trim) {
            match line {
                _ if line.starts_with("#[derive(") => is_wire = line.contains("Serialize") || line.contains("Deserialize"),
                _ if line.starts_with("#[") || line.starts_with("///") => {}
                _ => {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let name =
                        words.iter().position(|word| matches!(*word, "struct" | "enum")).and_then(|at| words.get(at + 1));
                    if let Some(name) = name.filter(|_| is_wire) {
                        let name = name.split(['<', '(', ';', '{']).next().unwrap_or_default();
                        homes.entry(name).or_default().insert(crate_of(file));
                    }
                    is_wire = false;
                }
            }
        }
    }
    homes.into_iter().filter(|(_, crates)| crates.len() > 1).map(|(name, _)| name.to_owned()).collect()
}

/// The crates that open HTTP connections themselves.
fn clients(sources: &Sources) -> BTreeSet<String> {
    let opens = |text: &str| CLIENTS.iter().any(|client| text.contains(client));
    sources.iter().filter(|(_, text)| opens(text)).map(|(file, _)| crate_of(file).trim_end_matches('/').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Sources {
        files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle_also_by_way_of_the_root() {
        let files = sources(&[
            ("crates/a/src/lib.rs", "mod one;\npub use three::{Three, Other};\n"),
            ("crates/a/src/one.rs", "use crate::two::{Two, deep::Thing as Name};\n"),
            ("crates/a/src/two/mod.rs", "use std::fmt;\nuse crate::{\n    Three,\n};\n"),
            ("crates/a/src/three.rs", "use crate::one;\n"),
            ("crates/a/src/four.rs", "use crate::one;\n#[cfg(test)]\nmod tests {\n    use crate::five;\n}\n"),
            ("crates/a/src/five.rs", "use super::four;\n"),
        ]);
        assert_eq!(circles(&files), [["crates/a/src/one", "crates/a/src/three", "crates/a/src/two"]]);
    }

    #[test]
    fn a_module_is_not_taken_for_a_function_of_its_name() {
        let files = sources(&[
            ("crates/a/src/lib.rs", "mod decide;\npub use decide::decide;\n"),
            ("crates/a/src/decide/one.rs", "use super::{Draft, two};\n"),
            ("crates/a/src/decide/two.rs", "use super::one;\n"),
            ("crates/a/src/decide/mod.rs", "mod one;\nmod two;\n"),
        ]);
        assert_eq!(circles(&files), [["crates/a/src/decide::one", "crates/a/src/decide::two"]]);
    }

    #[test]
    fn a_wire_type_counts_once_it_has_two_homes() {
        let files = sources(&[
            ("crates/api/src/task.rs", "#[derive(Debug, Serialize)]\n/// A task.\npub struct Task {\n"),
            ("crates/client/src/wire.rs", "#[derive(Deserialize)]\n#[serde(tag = \"a\")]\npub struct Task {\n"),
            ("crates/client/src/own.rs", "struct Own;\n#[derive(Clone)]\nstruct Wire;\n"),
            ("crates/server/src/own.rs", "#[derive(Serialize)]\nstruct Own(u8);\nstruct Wire;\nuse reqwest::Client;\n"),
        ]);
        assert_eq!(defined_twice(&files), BTreeSet::from(["Task".to_owned()]));
        assert_eq!(clients(&files), BTreeSet::from(["crates/server".to_owned()]));
    }
}
