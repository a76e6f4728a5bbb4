//! What the program of a server runs: the files that its command line names and the code that lies where it loads modules from.
//! All of it is bound by trust, because agents may write most of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Endings of files that hold data, which a program reads and writes as it works.
const DATA_ENDINGS: &[&str] =
    &["db", "db3", "sqlite", "sqlite3", "duckdb", "csv", "tsv", "parquet", "jsonl", "log", "md", "txt", "pdf", "png", "jpg"];

/// Files that one program loads as code, by their endings: a script loads others of its kind.
const CODE: &[&[&str]] = &[
    &["py", "pyc", "pth", "pyw"],
    &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "json", "wasm"],
    &["sh", "bash", "zsh"],
    &["rb"],
    &["pl", "pm"],
    &["php"],
    &["lua"],
];

/// Code of any kind that programs load.
const LIBRARIES: &[&str] = &["so", "node", "dylib", "dll"];

/// Programs that look for packages in `node_modules`, in the folder of the script and in those above it.
const NODE: &[&str] = &["node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "tsx", "ts-node"];
const PACKAGES: &str = "node_modules";

/// Most files beside a script that are looked at. A program with more belongs in a package that is installed elsewhere.
const MAX_BESIDE: usize = 2_000;

/// A server's command line.
struct CommandLine<'a> {
    program: &'a str,
    cwd: PathBuf,
    words: Vec<&'a str>,
    is_shell: bool,
    untold: &'static [&'static str],
}

impl<'a> CommandLine<'a> {
    fn new(folder: &Path, server: &'a Value) -> Option<Self> {
        let command = server["command"].as_str()?;
        let cwd = server["cwd"].as_str().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
        let args: Vec<&str> = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let env = server["env"].as_object().into_iter().flat_map(|env| env.values()).filter_map(Value::as_str);
        let program = command.rsplit('/').next().unwrap_or_default();
        let is_shell = matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "env" | "xargs");
        let foreign = args.first().is_some_and(|first| matches!(*first, "exec" | "x" | "dlx" | "create"));
        let untold: &[&str] = match program {
            "npm" | "pnpm" | "yarn" | "bun" if !foreign => &["package.json"],
            "make" => &["Makefile", "makefile", "GNUmakefile"],
            _ => &[],
        };
        let words = std::iter::once(command).chain(args.iter().copied()).chain(env).flat_map(|text| {
            let is_gap = |letter: char| letter.is_whitespace() || "\"'`;|&()<>=:,${}".contains(letter);
            // `${NAME:-./server.js}`: what stands behind the dash is used where the variable is not set.
            let parts = text.split(is_gap).flat_map(|word| [word, word.trim_start_matches('-')]);
            std::iter::once(text).chain(parts).filter(|word| !word.is_empty())
        });
        let mut seen = BTreeSet::new();
        let words = words.filter(|word| seen.insert(*word)).collect();
        Some(Self { program, cwd, words, is_shell, untold })
    }

    /// Where its relative paths begin: its folder, and each that a shell may enter first.
    fn starts(&self) -> Vec<PathBuf> {
        let entered = self.words.iter().filter(|_| self.is_shell).map(|word| self.cwd.join(word)).filter(|path| path.is_dir());
        std::iter::once(self.cwd.clone()).chain(entered).collect()
    }

    /// The files that it may run: its words that are files, and what its program runs without being told. Data is left out,
    /// unless a shell could run it or it is the first file that the program is given.
    fn files(&self) -> Vec<PathBuf> {
        let starts = self.starts();
        let is_python = self.program.starts_with("python") || self.words.iter().any(|word| word.starts_with("python"));
        let modules = self.words.iter().filter(|_| is_python).flat_map(|word| module_files(word));
        let names = self.words.iter().chain(self.untold).map(|&word| PathBuf::from(word)).chain(modules);
        let paths = names.flat_map(|name| starts.iter().map(move |start| start.join(&name)).collect::<Vec<_>>());
        let files = paths.filter(|path| path.is_file()).enumerate();
        files.filter(|(n, path)| *n == 0 || self.is_shell || !is_data(path)).map(|(_, path)| path).collect()
    }

    fn is_node(&self) -> bool {
        let of_node = |word: &str| NODE.contains(&word.rsplit('/').next().unwrap_or_default());
        of_node(self.program) || (self.is_shell && self.words.iter().any(|word| of_node(word)))
    }
}

/// The files that one server may run, as they are named.
pub(super) fn named_by(folder: &Path, server: &Value) -> Vec<PathBuf> {
    CommandLine::new(folder, server).map_or_else(Vec::new, |line| line.files())
}

/// The code of a folder that a server may load beside the files that it names: below the folder of a script, or only next to the
/// script where that is the folder itself, all of which belongs to the person's work.
pub(super) fn beside(folder: &Path, server: &Value) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let scripts = named_by(folder, server).into_iter().filter_map(|path| path.canonicalize().ok());
    for script in scripts.filter(|script| script.starts_with(folder)) {
        let Some(endings) = CODE.iter().find(|endings| has_ending(&script, endings)) else { continue };
        let Some(own) = script.parent() else { continue };
        let is_package = |path: &Path| own == folder && has_ending(&script, CODE[0]) && path.join("__init__.py").is_file();
        let mut open = vec![own.to_owned()];
        while let Some(place) = open.pop() {
            for path in entries(&place) {
                if found.len() >= MAX_BESIDE {
                    return found.into_iter().collect();
                }
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_skipped = name.starts_with('.') || name == PACKAGES || name == "__pycache__";
                if path.is_dir() && !path.is_symlink() && !is_skipped {
                    if place != folder {
                        open.push(path);
                    } else if is_package(&path) {
                        found.insert(path.join("__init__.py"));
                    }
                } else if path.is_file() && (has_ending(&path, endings) || has_ending(&path, LIBRARIES)) {
                    found.insert(path);
                }
            }
        }
    }
    found.into_iter().collect()
}

/// The folders of packages that a server may load from. They hold too many files to be compared, so agents may not write there.
pub(super) fn packages(folder: &Path, server: &Value) -> Vec<PathBuf> {
    let Some(line) = CommandLine::new(folder, server).filter(CommandLine::is_node) else { return Vec::new() };
    let scripts = line.files().into_iter().filter_map(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    let starts: Vec<PathBuf> = line.starts().into_iter().chain(scripts).collect();
    let above = starts.iter().flat_map(|start| start.ancestors()).filter(|place| place.starts_with(folder));
    above.map(|place| place.join(PACKAGES)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Where Python looks for a module of this name.
fn module_files(word: &str) -> Vec<PathBuf> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !word.split('.').all(is_name) {
        return Vec::new();
    }
    let path = PathBuf::from(word.replace('.', "/"));
    [path.with_extension("py"), path.join("__main__.py"), path.join("__init__.py")].into()
}

fn is_data(path: &Path) -> bool {
    has_ending(path, DATA_ENDINGS)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|it| endings.iter().any(|ending| it.eq_ignore_ascii_case(ending)))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_code_that_a_program_may_load_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        for name in [
            "server.py",
            "json.py",
            "README.md",
            "web.js",
            "package/__init__.py",
            "package/more.py",
            "data/a.py",
            "fast.so",
            "srv/main.js",
            "srv/lib/deep.mjs",
            "srv/config.json",
            "srv/notes.md",
            "srv/node_modules/x/index.js",
        ] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let below = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect()
        };
        let python = ["fast.so", "json.py", "package/__init__.py", "server.py"];
        let js = ["srv/config.json", "srv/lib/deep.mjs", "srv/main.js"];
        for (server, files, packages_of) in [
            (json!({ "command": "python3", "args": ["server.py"] }), &python[..], &[][..]),
            (json!({ "command": "python3", "args": ["-m", "server"] }), &python[..], &[][..]),
            (
                json!({ "command": "python3", "args": ["-m", "package"] }),
                &["package/__init__.py", "package/more.py"][..],
                &[][..],
            ),
            (json!({ "command": "node", "args": ["srv/main.js"] }), &js[..], &["node_modules", "srv/node_modules"][..]),
            (
                json!({ "command": "sh", "args": ["-c", "cd srv && exec node main.js"] }),
                &js[..],
                &["node_modules", "srv/node_modules"][..],
            ),
            (
                json!({ "command": "node", "args": ["main.js"], "cwd": "srv" }),
                &js[..],
                &["node_modules", "srv/node_modules"][..],
            ),
            (json!({ "command": "npx", "args": ["-y", "some-server", "."] }), &[][..], &["node_modules"][..]),
            (json!({ "command": "uvx", "args": ["some-server"] }), &[][..], &[][..]),
        ] {
            assert_eq!(below(beside(&folder, &server)), files, "{server}");
            assert_eq!(below(packages(&folder, &server)), packages_of, "{server}");
        }
    }
}
