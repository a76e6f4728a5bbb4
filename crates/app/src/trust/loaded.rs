//! What the program of a server runs: the files that its command line names, the settings that its runtime obeys, and the code
//! that it may load. All of it is bound by trust, because agents may write most of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polis_tools::mcp::variables;
use serde_json::Value;

/// Endings of files that hold data, which a program reads and writes as it works.
const DATA_ENDINGS: &[&str] =
    &["db", "db3", "sqlite", "sqlite3", "duckdb", "csv", "tsv", "parquet", "jsonl", "log", "md", "txt", "pdf", "png", "jpg"];

/// Files that one program loads as code, by their endings: a script loads others of its kind.
const CODE: &[&[&str]] = &[
    &["py", "pyc", "pth", "pyw"],
    &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "wasm"],
    &["sh", "bash", "zsh"],
    &["rs", "toml"],
    &["go", "mod"],
    &["rb"],
    &["pl", "pm"],
    &["php"],
    &["lua"],
];

/// Code of any kind that programs load.
const LIBRARIES: &[&str] = &["so", "node", "dylib", "dll"];

/// A runtime that looks for code and settings by itself.
struct Runtime {
    /// The programs that start it.
    programs: &'static [&'static str],
    /// How it completes a name that it is given.
    completions: &'static [&'static str],
    /// The files that it obeys where it starts, in the folder of the script, and in those above.
    settings: &'static [&'static str],
    /// The folders that it loads packages from, in the same places. They hold too many files to be compared.
    packages: &'static [&'static str],
}

const NODE: Runtime = Runtime {
    programs: &["node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "tsx", "ts-node"],
    completions: &[".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.mjs", "/index.cjs", "/index.ts"],
    settings: &[
        "package.json",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        "pnpm-workspace.yaml",
        "bunfig.toml",
        "deno.json",
        "deno.jsonc",
        "tsconfig.json",
        ".env",
    ],
    packages: &["node_modules"],
};

const PYTHON: Runtime = Runtime {
    programs: &["python", "python3", "pypy", "pypy3", "uv", "uvx", "poetry", "pdm", "hatch", "pipx", "pipenv"],
    completions: &[".py", ".pyc", "/__main__.py", "/__init__.py"],
    settings: &[
        "pyproject.toml",
        "uv.toml",
        "uv.lock",
        ".python-version",
        "setup.py",
        "setup.cfg",
        "Pipfile",
        "poetry.toml",
        "poetry.lock",
        "pdm.toml",
        "sitecustomize.py",
        "usercustomize.py",
        ".env",
    ],
    packages: &[".venv", "venv"],
};

/// Most words of a command line, most entries of folders that are looked at, and most files that are bound for one server. A
/// server with more is not started.
const MAX_WORDS: usize = 500;
const MAX_LOOKED_AT: usize = 100_000;
const MAX_FILES: usize = 5_000;

/// There is more than is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

/// A server's command line.
struct CommandLine<'a> {
    folder: &'a Path,
    cwd: PathBuf,
    words: Vec<String>,
    is_shell: bool,
    /// What its program runs without being told.
    untold: &'static [&'static str],
    runtimes: Vec<&'static Runtime>,
}

impl<'a> CommandLine<'a> {
    fn new(folder: &'a Path, server: &Value) -> Option<Self> {
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
            "cargo" => &["Cargo.toml"],
            "go" => &["go.mod"],
            "docker" | "podman" => &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "Dockerfile"],
            _ => &[],
        };
        let mut words = Vec::new();
        for text in std::iter::once(command).chain(args).chain(env) {
            // As it is written, and as it will be.
            for text in std::iter::once(text.to_owned()).chain(variables(text)) {
                let is_gap = |letter: char| letter.is_whitespace() || "\"'`;|&()<>=:,${}".contains(letter);
                // `${NAME:-./server.js}`: what stands behind the dash is used where the variable is not set.
                let parts = text.split(is_gap).flat_map(|word| [word, word.trim_start_matches('-')]);
                words.extend(std::iter::once(text.as_str()).chain(parts).filter(|word| !word.is_empty()).map(str::to_owned));
            }
        }
        let mut seen = BTreeSet::new();
        words.retain(|word| seen.insert(word.clone()));
        let starts = |runtime: &&Runtime| {
            let is_program = |word: &String| {
                let name = word.rsplit('/').next().unwrap_or_default();
                runtime.programs.iter().any(|program| name.strip_prefix(program).is_some_and(is_version))
            };
            words.iter().any(is_program)
        };
        let runtimes = [&NODE, &PYTHON].into_iter().filter(starts).collect();
        Some(Self { folder, cwd, words, is_shell, untold, runtimes })
    }

    /// Where its relative paths may begin: its folder, and each that it names below it.
    fn starts(&self) -> Vec<PathBuf> {
        let named = self.words.iter().map(|word| self.cwd.join(word)).filter(|path| path.is_dir());
        let inside =
            named.filter(|path| path.canonicalize().is_ok_and(|path| path.starts_with(self.folder) && path != self.folder));
        std::iter::once(self.cwd.clone()).chain(inside).collect()
    }

    /// The files that it may run: its words that are files, as they are or as a runtime completes them, and what its program runs
    /// without being told. Data is left out, unless a shell could run it or it is the first file that the program is given.
    fn scripts(&self) -> Result<Vec<PathBuf>, TooMuch> {
        if self.words.len() > MAX_WORDS {
            return Err(TooMuch);
        }
        let starts = self.starts();
        let mut files = Vec::new();
        let names = self.words.iter().map(String::as_str).chain(self.untold.iter().copied());
        for (name, start) in names.flat_map(|name| starts.iter().map(move |start| (name, start))) {
            let whole = start.join(name);
            files.extend(whole.is_file().then(|| whole.clone()));
            let is_below = whole.canonicalize().map_or(true, |whole| whole != self.folder);
            let modules = [whole, start.join(name.replace('.', "/"))];
            for (runtime, path) in self.runtimes.iter().flat_map(|runtime| modules.iter().map(move |path| (runtime, path))) {
                let completed = runtime.completions.iter().map(|ending| with_ending(path, ending));
                files.extend(completed.filter(|path| is_below && path.is_file()));
            }
        }
        let mut seen = BTreeSet::new();
        files.retain(|path| seen.insert(path.clone()));
        let files = files.into_iter().enumerate();
        Ok(files
            .filter(|(n, path)| *n == 0 || self.is_shell || !has_ending(path, DATA_ENDINGS))
            .map(|(_, path)| path)
            .collect())
    }

    /// The folders in which its runtime looks: where it starts, those of its scripts, and all above them.
    fn places(&self) -> BTreeSet<PathBuf> {
        let scripts = self.scripts().unwrap_or_default();
        let scripts = scripts.iter().filter_map(|path| path.canonicalize().ok()?.parent().map(Path::to_owned));
        let starts = self.starts().into_iter().filter_map(|path| path.canonicalize().ok()).chain(scripts);
        let above = starts.flat_map(|start| start.ancestors().map(Path::to_owned).collect::<Vec<_>>());
        above.filter(|place| place.starts_with(self.folder)).collect()
    }

    /// The settings that its runtime obeys.
    fn settings(&self) -> Vec<PathBuf> {
        let places = self.places();
        let names = self.runtimes.iter().flat_map(|runtime| runtime.settings);
        names.flat_map(|name| places.iter().map(move |place| place.join(name))).filter(|path| path.is_file()).collect()
    }
}

/// The files that one server may run, as they are named.
pub(super) fn named_by(folder: &Path, server: &Value) -> Vec<PathBuf> {
    CommandLine::new(folder, server).and_then(|line| line.scripts().ok()).unwrap_or_default()
}

/// What else of a folder a server may load: the settings that its runtime obeys, and all code of the same kind in the folder of a
/// script and below it.
pub(super) fn beside(folder: &Path, server: &Value) -> Result<Vec<PathBuf>, TooMuch> {
    let Some(line) = CommandLine::new(folder, server) else { return Ok(Vec::new()) };
    let mut found: BTreeSet<PathBuf> = line.settings().into_iter().collect();
    let mut looked_at = 0;
    let scripts = line.scripts()?.into_iter().filter_map(|path| path.canonicalize().ok());
    let mut walked = BTreeSet::new();
    for script in scripts.filter(|script| script.starts_with(folder)) {
        let kind = CODE.iter().position(|endings| has_ending(&script, endings));
        let kind = kind.or_else(|| (script.file_name()? == "package.json").then_some(1));
        let (Some(kind), Some(own)) = (kind, script.parent()) else { continue };
        let mut open = vec![own.to_owned()];
        while let Some(place) = open.pop() {
            // Links may lead around in a circle.
            if !walked.insert((kind, place.clone())) || is_set_apart(&place) {
                continue;
            }
            for path in entries(&place) {
                looked_at += 1;
                if looked_at > MAX_LOOKED_AT || found.len() > MAX_FILES {
                    return Err(TooMuch);
                }
                let is_manifest = path.file_name().is_some_and(|name| name == "package.json");
                if path.is_dir() {
                    open.extend(path.canonicalize().ok().filter(|path| path.starts_with(folder)));
                } else if path.is_file() && (is_manifest || has_ending(&path, CODE[kind]) || has_ending(&path, LIBRARIES)) {
                    found.insert(path);
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The folders of packages that a server may load from. Agents may not write there.
pub(super) fn packages(folder: &Path, server: &Value) -> Vec<PathBuf> {
    let Some(line) = CommandLine::new(folder, server) else { return Vec::new() };
    let places = line.places();
    let names = line.runtimes.iter().flat_map(|runtime| runtime.packages);
    let usual = names.flat_map(|name| places.iter().map(move |place| place.join(name)));
    let named = line.words.iter().map(|word| line.cwd.join(word)).flat_map(|path| {
        path.ancestors().filter(|part| part.join(ENVIRONMENT).is_file()).map(Path::to_owned).collect::<Vec<_>>()
    });
    usual.chain(named).filter(|path| path.starts_with(folder)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What agents may not write because a server loads it that trust does not bind: a script with its folder, unless that is the whole
/// workspace, and what its runtime obeys. `bound` is the folder whose content is compared instead.
pub(super) fn closed(workspace: &Path, bound: Option<&Path>, server: &Value) -> Vec<PathBuf> {
    let Some(line) = CommandLine::new(workspace, server) else { return Vec::new() };
    let scripts = line.scripts().unwrap_or_default().into_iter().filter_map(|path| path.canonicalize().ok());
    let own = scripts.filter(|path| path.starts_with(workspace)).map(|path| match path.parent() {
        Some(folder) if folder != workspace => folder.to_owned(),
        _ => path,
    });
    let places = line.places();
    let names = line.runtimes.iter().flat_map(|runtime| runtime.settings);
    let settings = names.flat_map(|name| places.iter().map(move |place| place.join(name)));
    let all = own.chain(settings).chain(packages(workspace, server));
    all.filter(|path| bound.is_none_or(|bound| !path.starts_with(bound))).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a Python environment has.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// Whether a folder is protected in another way, or holds nothing that is loaded.
fn is_set_apart(place: &Path) -> bool {
    let is_named = place.file_name().is_some_and(|name| name == "node_modules" || name == ".git" || name == "__pycache__");
    is_named || [ENVIRONMENT, "polis.db"].iter().any(|mark| place.join(mark).is_file())
}

/// Whether this follows the name of a program: nothing, or a version such as `3.12`.
fn is_version(rest: &str) -> bool {
    rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(ending);
    whole.into()
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|it| endings.iter().any(|ending| it.eq_ignore_ascii_case(ending)))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
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
            "app/server.py",
            "app/json.py",
            "app/README.md",
            "app/web.js",
            "app/.hidden/a.py",
            "app/package/__init__.py",
            "app/package/more.py",
            "app/fast.so",
            "app/env/pyvenv.cfg",
            "app/env/lib/x.py",
            "app/__pycache__/json.pyc",
            "elsewhere/linked.py",
            "srv/main.js",
            "srv/index.js",
            "srv/lib/deep.mjs",
            "srv/config.json",
            "srv/notes.md",
            "srv/node_modules/x/index.js",
            ".npmrc",
            ".polis/polis.db",
            ".polis/x.js",
        ] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("../elsewhere", folder.join("app/link")).unwrap();
        std::os::unix::fs::symlink("..", folder.join("srv/lib/up")).unwrap();
        let below = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect()
        };
        let python = [
            "app/.hidden/a.py",
            "app/fast.so",
            "app/json.py",
            "app/package/__init__.py",
            "app/package/more.py",
            "app/server.py",
            "elsewhere/linked.py",
        ];
        let (js, node) = ([".npmrc", "srv/index.js", "srv/lib/deep.mjs", "srv/main.js"], ["node_modules", "srv/node_modules"]);
        let environments = [".venv", "app/.venv", "app/venv", "venv"];
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        let check = |command: &str, args: &[&str], files: &[&str], closed: &[&str]| {
            let server = json!({ "command": command, "args": args });
            assert_eq!(below(beside(&folder, &server).unwrap()), files, "{server}");
            assert_eq!(sorted(below(packages(&folder, &server))), closed, "{server}");
        };
        check("python3.12", &["app/server.py"], &python, &environments);
        check("python3", &["-m", "app.server"], &python, &environments);
        check("uv", &["--directory", "app", "run", "server.py"], &python, &environments);
        check("app/env/bin/python", &["app/server.py"], &python, &[".venv", "app/.venv", "app/env", "app/venv", "venv"]);
        check(
            "python3",
            &["-m", "app.package"],
            &python[3..5],
            &[".venv", "app/.venv", "app/package/.venv", "app/package/venv", "app/venv", "venv"],
        );
        for args in
            [&["srv/main.js"][..], &["srv/main"], &["srv"], &["--prefix", "srv", "main.js"], &["${NO_SUCH:-srv}/main.js"]]
        {
            check("node", args, &js, &node);
        }
        check("sh", &["-c", "cd srv && exec node main.js"], &js, &node);
        check("npx", &["-y", "some-server", "."], &js[..1], &node[..1]);
        check("some-server", &["."], &[], &[]);
        assert_eq!(below(beside(&folder, &json!({ "command": "node", "args": ["main.js"], "cwd": "srv" })).unwrap()), js);
        let long = json!({ "command": "node", "args": (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>() });
        assert_eq!(beside(&folder, &long), Err(TooMuch));
    }
}
