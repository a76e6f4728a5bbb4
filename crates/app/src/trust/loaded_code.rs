//! What the program of a server runs: the files that its command line names, the settings that its runtime obeys, and the code
//! that it may load. All of it is bound by trust, because agents may write most of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polis_tools::mcp::variables;
use serde_json::Value;

/// Endings of files that hold data, which a program reads and writes as it works.
const DATA_ENDINGS: &[&str] =
    &["db", "db3", "sqlite", "sqlite3", "duckdb", "csv", "tsv", "parquet", "jsonl", "log", "md", "txt", "pdf", "png", "jpg"];

/// Endings of files that programs load as code, of whatever kind: a shell script starts others.
const CODE: &[&str] = &[
    "py", "pyc", "pth", "pyw", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "wasm", "sh", "bash", "zsh", "rs", "go",
    "rb", "pl", "pm", "php", "lua", "mk", "so", "node", "dylib", "dll", "exe", "jar", "class",
];

/// Names of files that say which code is run.
const MANIFESTS: &[&str] = &["package.json", "Makefile", "makefile", "GNUmakefile", "Cargo.toml", "go.mod", "pyproject.toml"];

/// A runtime that looks for code and settings by itself.
struct Runtime {
    /// The programs that start it.
    programs: &'static [&'static str],
    /// How it completes a name that it is given.
    completions: &'static [&'static str],
    /// The files that it obeys where it starts, in the folder of the script, and in those above.
    settings: &'static [&'static str],
    /// The folders that it loads packages from, wherever they are. They hold too many files to be compared, so that agents may not
    /// write there, nor make a folder look like one.
    packages: &'static [&'static str],
}

const NODE: Runtime = Runtime {
    programs: &["node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "tsx", "ts-node"],
    completions: &[".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.mjs", "/index.cjs", "/index.ts", "/package.json"],
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
    packages: &[".venv", "venv", ENVIRONMENT],
};

/// Most words of a command line, most folders among them that paths may begin in, most entries of folders that are looked at, and
/// most files that are bound for one server. A server with more words, entries or files is not started.
const MAX_WORDS: usize = 500;
const MAX_STARTS: usize = 16;
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
    /// The folders in which its runtime looks for modules by name.
    paths: Vec<PathBuf>,
}

impl<'a> CommandLine<'a> {
    fn new(folder: &'a Path, server: &Value) -> Option<Self> {
        let command = server["command"].as_str()?;
        let cwd = server["cwd"].as_str().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
        let args: Vec<&str> = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let env = server["env"].as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?)));
        let env: Vec<(&String, &str)> = env.collect();
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
        for text in std::iter::once(command).chain(args.iter().copied()).chain(env.iter().map(|(_, value)| *value)) {
            // As it is written, and as it will be.
            for text in std::iter::once(text.to_owned()).chain(variables(text)) {
                let is_gap = |envelope: char| envelope.is_whitespace() || "\"'`;|&()<>=:,${}".contains(envelope);
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
        let runtimes: Vec<&Runtime> = [&NODE, &PYTHON].into_iter().filter(starts).collect();
        let named = env.iter().filter(|(name, _)| name.ends_with("PATH")).flat_map(|(_, value)| value.split(':'));
        let mut paths: Vec<PathBuf> = named.filter(|path| !path.is_empty()).map(|path| cwd.join(path)).collect();
        let first = args.iter().find(|argument| !argument.starts_with('-'));
        // `python3 -m`, `python3 -c` and `node .` look for modules where they are started.
        let flags =
            args.iter().filter(|argument| !is_shell || **argument != "-c").flat_map(|argument| argument.split_whitespace());
        let from_here = flags.into_iter().any(|flag| matches!(flag, "-m" | "-c")) || first.is_some_and(|first| *first == ".");
        // A shell finds files by names that are not written out: what it may load is everything that is there.
        let computes_names = is_shell && args.iter().any(|argument| argument.contains(['$', '*', '?', '`', '[']));
        paths.extend((computes_names || (from_here && !runtimes.is_empty())).then(|| cwd.clone()));
        Some(Self { folder, cwd, words, is_shell, untold, runtimes, paths })
    }

    /// Where its relative paths may begin: its folder, and each that it names below it.
    fn starts(&self) -> Vec<PathBuf> {
        let named = self.words.iter().map(|word| self.cwd.join(word)).filter(|path| path.is_dir());
        let inside =
            named.filter(|path| path.canonicalize().is_ok_and(|path| path.starts_with(self.folder) && path != self.folder));
        std::iter::once(self.cwd.clone()).chain(inside.take(MAX_STARTS)).collect()
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
            // The folder itself is where programs work, and few are started from it.
            let is_below = whole.canonicalize().map_or(true, |whole| whole != self.folder) || self.paths.contains(&self.cwd);
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

    /// The names of packages' folders, of all runtimes where there is one: a program of one starts those of another.
    fn packages(&self) -> impl Iterator<Item = &'static str> {
        let all = if self.runtimes.is_empty() { &[][..] } else { &[&NODE, &PYTHON] };
        all.iter().flat_map(|runtime| runtime.packages.iter().copied())
    }

    /// Whether a folder is closed to agents, or holds nothing that is loaded.
    fn is_set_apart(&self, place: &Path) -> bool {
        let packages = self.packages().any(|name| is_named(place, &[name]));
        let environment = place.join(ENVIRONMENT).is_file()
            && self.words.iter().any(|word| self.cwd.join(word).starts_with(place.join("bin")));
        packages || environment || is_named(place, &[".git", "__pycache__"]) || place == self.folder.join(super::DATA)
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

/// What else of a folder a server may load: the settings that its runtime obeys, and all code in the folder of a script and below
/// it, and where the runtime looks for modules.
pub(super) fn beside(folder: &Path, server: &Value) -> Result<Vec<PathBuf>, TooMuch> {
    let Some(line) = CommandLine::new(folder, server) else { return Ok(Vec::new()) };
    let mut found: BTreeSet<PathBuf> = line.settings().into_iter().collect();
    let scripts = line.scripts()?.into_iter().filter_map(|path| path.canonicalize().ok());
    let scripts = scripts.filter(|path| has_ending(path, CODE) || is_named(path, MANIFESTS) || is_program(path));
    let own = scripts.filter_map(|path| path.parent().map(Path::to_owned));
    let paths = line.paths.iter().filter_map(|path| path.canonicalize().ok());
    let mut open: Vec<PathBuf> = own.chain(paths).filter(|place| place.starts_with(folder)).collect();
    let (mut walked, mut looked_at) = (BTreeSet::new(), 0);
    while let Some(place) = open.pop() {
        // Links may lead around in a circle.
        if !walked.insert(place.clone()) {
            continue;
        }
        for path in entries(&place) {
            looked_at += 1;
            if looked_at > MAX_LOOKED_AT || found.len() > MAX_FILES {
                return Err(TooMuch);
            }
            if path.is_dir() {
                let inside = path.canonicalize().ok().filter(|real| real.starts_with(folder));
                open.extend(inside.filter(|real| !line.is_set_apart(real) && !line.is_set_apart(&path)));
            } else if path.is_file() && (is_named(&path, MANIFESTS) || has_ending(&path, CODE) || is_program(&path)) {
                found.insert(path);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The names of folders and files with which a server's runtime finds packages, and the Python environments that it is started
/// from. Agents may write none of them.
pub(super) fn packages(folder: &Path, server: &Value) -> (Vec<&'static str>, Vec<PathBuf>) {
    let Some(line) = CommandLine::new(folder, server) else { return (Vec::new(), Vec::new()) };
    let names = line.packages().collect();
    let named = line.words.iter().map(|word| line.cwd.join(word)).flat_map(|path| {
        path.ancestors().filter(|part| part.join(ENVIRONMENT).is_file()).map(Path::to_owned).collect::<Vec<_>>()
    });
    (names, named.filter(|path| path.starts_with(folder)).collect::<BTreeSet<_>>().into_iter().collect())
}

/// What agents may not write because a server loads it that trust does not bind: a script with its folder, unless that is the whole
/// workspace. `bound` is the folder whose content is compared instead.
pub(super) fn closed(workspace: &Path, bound: Option<&Path>, server: &Value) -> Vec<PathBuf> {
    let Some(line) = CommandLine::new(workspace, server) else { return Vec::new() };
    let scripts = line.scripts().unwrap_or_default().into_iter().filter_map(|path| path.canonicalize().ok());
    let own = scripts.filter(|path| path.starts_with(workspace)).map(|path| match path.parent() {
        Some(folder) if folder != workspace => folder.to_owned(),
        _ => path,
    });
    let all = own.chain(packages(workspace, server).1);
    all.filter(|path| bound.is_none_or(|bound| !path.starts_with(bound))).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a Python environment has.
const ENVIRONMENT: &str = "pyvenv.cfg";

fn is_named(path: &Path, names: &[&str]) -> bool {
    path.file_name().is_some_and(|name| names.iter().any(|it| name == *it))
}

/// Whether a file without an ending can be run.
fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let is_executable =
        path.metadata().is_ok_and(|about| std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o111 != 0);
    #[cfg(not(unix))]
    let is_executable = true;
    path.extension().is_none() && is_executable
}

/// Whether this follows the name of a program: nothing, or a version such as `3.12`.
fn is_version(rest: &str) -> bool {
    rest.chars().all(|envelope| envelope.is_ascii_digit() || envelope == '.')
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
            "app/env/lib/x.py",
            "app/fast.so",
            "app/json.py",
            "app/package/__init__.py",
            "app/package/more.py",
            "app/server.py",
            "app/web.js",
            "elsewhere/linked.py",
        ];
        let js = [".npmrc", "srv/index.js", "srv/lib/deep.mjs", "srv/main.js"];
        let check = |command: &str, args: &[&str], files: &[&str]| {
            let server = json!({ "command": command, "args": args });
            assert_eq!(below(beside(&folder, &server).unwrap()), files, "{server}");
        };
        check("python3.12", &["app/server.py"], &python);
        check("uv", &["--directory", "app", "run", "server.py"], &python);
        check("sh", &["-c", "python3 app/server.py"], &python);
        let env: Vec<&str> = python.iter().copied().filter(|path| !path.contains("/env/")).collect();
        check("app/env/bin/python", &["app/server.py"], &env);
        let all = |server: Value| below(beside(&folder, &server).unwrap());
        let here = all(json!({ "command": "python3", "args": ["-m", "app.server"] }));
        assert!(
            python.iter().all(|path| here.contains(&(*path).to_owned())) && here.contains(&"srv/main.js".to_owned()),
            "{here:?}"
        );
        let path = all(json!({ "command": "python3", "args": ["srv/x.py"], "env": { "PYTHONPATH": "app" } }));
        assert_eq!(path, python);
        for args in
            [&["srv/main.js"][..], &["srv/main"], &["srv"], &["--prefix", "srv", "main.js"], &["${NO_SUCH:-srv}/main.js"]]
        {
            check("node", args, &js);
        }
        check("sh", &["-c", "cd srv && exec node main.js"], &js);
        for text in ["source $PWD/x.sh", "cat lib/*.sh | sh", "for f in x; do . ./$f.sh; done", "sh `echo x.sh`"] {
            let bound = all(json!({ "command": "sh", "args": ["-c", text] }));
            assert!(bound.contains(&"srv/main.js".to_owned()), "{text}: {bound:?}");
        }
        check("npx", &["-y", "some-server", "."], &js[..1]);
        check("some-server", &["."], &[]);
        assert!(all(json!({ "command": "node", "args": ["."] })).contains(&"srv/lib/deep.mjs".to_owned()));
        assert_eq!(all(json!({ "command": "node", "args": ["main.js"], "cwd": "srv" })), js);
        let of = |command: &str, args: &[&str]| packages(&folder, &json!({ "command": command, "args": args }));
        let names = vec!["node_modules", ".venv", "venv", ENVIRONMENT];
        assert_eq!(of("npx", &["x"]), (names.clone(), vec![]));
        assert_eq!(of("app/env/bin/python", &["x.py"]), (names, vec![folder.join("app/env")]));
        assert_eq!(of("some-server", &["."]), (vec![], vec![]));
        let long = json!({ "command": "node", "args": (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>() });
        assert_eq!(beside(&folder, &long), Err(TooMuch));
    }
}
