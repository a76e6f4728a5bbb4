//! Every block of code in the documents is run, written, compiled or parsed, in both languages, and what it prints is compared with what
//! the page says. A block that nothing is done with has a comment with the reason: `<!-- not run: a drawing -->`.
//!
//! | block | what is done |
//! |---|---|
//! | after a sentence that ends with the name of a file | the file is written into the page's folder |
//! | `sh` | run there; what stands after `# →` is what the command before it prints |
//! | `text` after `sh` | its lines are printed, in this order |
//! | `rust` | compiled: it stands word for word in `<!-- compiled in: FILE -->`, or else in the library's first page or its tests |
//! | `toml` | read as `polis.toml` by a test beside the reader (`crates/app/src/reference.rs`) |
//! | `json` | parsed |
//! | `<!-- run by: TEST -->` | that test runs it |
//!
//! `<!-- given: COMMANDS -->` makes what a block needs, and `<!-- given: a server -->` starts one, in place of 127.0.0.1:3000.

use std::fs;
use std::path::{Path, PathBuf};

use polis_docs::{Block, Script};

use super::support::{Done, Home, Served};

/// The checkout.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages, by their paths, with their texts. Error codes and the reference have no blocks to run.
pub(super) fn pages() -> Vec<(String, String)> {
    let root = repository();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders =
        vec![root.clone(), root.join("docs"), root.join("docs/errors"), root.join("packaging"), root.join("examples")];
    let examples = fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    folders.extend(examples.filter(|path| path.is_dir()));
    for folder in folders {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    files.sort();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// How a block of a page is shown to work.
#[derive(Debug, PartialEq)]
enum Way {
    NotRun,
    RunBy,
    Write,
    Shell,
    Output,
    Rust,
    Settings,
    Json,
}

fn way(block: &Block, before: Option<&Block>) -> Result<Way, String> {
    let follows_shell = before.is_some_and(|before| before.language == "sh");
    Ok(match (&*block.language, block) {
        _ if block.mark("not run").is_some_and(|why| why.len() > 5) => Way::NotRun,
        _ if block.mark("run by").is_some() => Way::RunBy,
        (language, Block { file: Some(file), .. }) if !["sh", "text", ""].contains(&language) => {
            let endings = match language {
                "rust" => [".rs"],
                "markdown" | "md" => [".md"],
                "toml" => [".toml"],
                other => return Err(format!("a file of the language `{other}`")),
            };
            if !endings.iter().any(|end| file.ends_with(end)) {
                return Err(format!("`{file}` is not of the language `{language}`"));
            }
            Way::Write
        }
        ("sh", _) => Way::Shell,
        ("text", _) if follows_shell => Way::Output,
        ("rust", _) => Way::Rust,
        ("toml", _) => Way::Settings,
        ("json", _) => Way::Json,
        (other, _) => return Err(format!("nothing is done with a block of `{other}`; say why not: <!-- not run: … -->")),
    })
}

#[test]
fn every_block_of_the_documents_works_as_the_page_says() {
    let (mut wrong, mut blocks) = (Vec::new(), 0);
    for (name, text) in pages() {
        // A project is made and built there: `the_tutorial…` follows it.
        if name.starts_with("docs/tutorial") {
            continue;
        }
        let mut folder = Folder::default();
        let all = Block::all(&text);
        for (at, block) in all.iter().enumerate() {
            blocks += 1;
            let before = at.checked_sub(1).and_then(|at| all.get(at));
            let done = way(block, before).and_then(|way| folder.show(way, block));
            if let Err(why) = done {
                wrong.push(format!("{name}:{}: {why}", block.line));
            }
        }
        if let Err(why) = folder.sources_are_right() {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {blocks} blocks:\n{}", wrong.len(), wrong.join("\n"));
    assert!(blocks > 150, "only {blocks} blocks were seen");
}

#[test]
fn a_block_that_nothing_is_done_with_and_one_that_prints_something_else_are_told() {
    let told = |page: &str| {
        let mut folder = Folder::default();
        let all = Block::all(page);
        let results = all
            .iter()
            .enumerate()
            .map(|(at, block)| way(block, at.checked_sub(1).map(|at| &all[at])).and_then(|way| folder.show(way, block)));
        results.collect::<Vec<_>>().into_iter().collect::<Result<(), String>>()
    };
    assert_eq!(told("```sh\necho a b  # → b\n```\n```text\na\n```\n"), Ok(()));
    for (page, why) in [
        ("```\ndrawing\n```\n", "nothing is done"),
        ("```sh\necho a\n```\n", "says nothing of what it prints"),
        ("```sh\necho a  # → b\n```\n", "does not print `b`"),
        ("```sh\nfalse  # → b\n```\n", "ends with 1"),
        ("```sh\necho a  # → a\n```\n```text\nb\n```\n", "does not print `b`"),
        ("```json\n{\n```\n", "EOF"),
        ("```rust\nfn nowhere_at_all() {}\n```\n", "is not in"),
        ("<!-- run by: no_such_test -->\n```js\n```\n", "no test"),
    ] {
        let error = told(page).unwrap_err();
        assert!(error.contains(why), "{page}: {error}");
    }
}

/// Where the blocks of a page are run.
#[derive(Default)]
struct Folder {
    home: Option<Home>,
    server: Option<Served>,
    /// What the newest `sh` printed.
    printed: String,
    has_sources: bool,
}

impl Folder {
    fn home(&mut self) -> &Home {
        self.home.get_or_insert_with(Home::new)
    }

    fn show(&mut self, way: Way, block: &Block) -> Result<(), String> {
        match way {
            Way::NotRun | Way::Settings => Ok(()),
            Way::RunBy => is_run_by(block.mark("run by").unwrap_or_default()),
            Way::Json => serde_json::from_str::<serde_json::Value>(&block.text).map(drop).map_err(|error| error.to_string()),
            Way::Rust => is_compiled(block),
            Way::Write => {
                let path = self.home().path().join(block.file.as_deref().unwrap_or_default());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, &block.text).unwrap();
                self.has_sources = true;
                Ok(())
            }
            Way::Shell => self.run(block),
            Way::Output => Script::in_order(&self.printed, block.text.lines()),
        }
    }

    /// Roles, SOPs and skills that the page had written.
    fn sources_are_right(&mut self) -> Result<(), String> {
        if !self.has_sources {
            return Ok(());
        }
        let done = self.home().polis(&["check"]);
        if done.code == 0 { Ok(()) } else { Err(format!("polis check: {}{}", done.stdout, done.stderr)) }
    }

    fn run(&mut self, block: &Block) -> Result<(), String> {
        for (_, given) in block.marks.iter().filter(|(word, _)| word == "given") {
            if given == "a server" {
                self.home();
                let home = self.home.as_ref().expect("it was just made");
                self.server.get_or_insert_with(|| home.serve(&[]));
            } else {
                let done = self.shell(given);
                assert_eq!(done.code, 0, "{given}: {}{}", done.stdout, done.stderr);
            }
        }
        let text = match &self.server {
            Some(server) => block.text.replace("127.0.0.1:3000", &server.address),
            None => block.text.clone(),
        };
        let script = Script::of(&text);
        let done = self.shell(&script.text);
        if done.code != 0 {
            return Err(format!("ends with {}: {}{}", done.code, done.stdout, done.stderr));
        }
        if script.wanted.is_empty() {
            return Err("says nothing of what it prints: # → …".to_owned());
        }
        self.printed = script.check(&done.stdout)?;
        Ok(())
    }

    fn shell(&mut self, script: &str) -> Done {
        let home = self.home();
        let polis = Path::new(env!("CARGO_BIN_EXE_polis"));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = home.program("sh", &["-ec", script]);
        shell.env("POLIS_MODEL", "offline").env("HOME", home.path());
        shell.env("PATH", format!("{}:{path}", polis.parent().unwrap().display()));
        shell.output().unwrap().into()
    }
}

/// A text without spaces and line breaks.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The code stands word for word in a file that is compiled and run as a test.
fn is_compiled(block: &Block) -> Result<(), String> {
    let files = match block.mark("compiled in") {
        Some(file) => vec![file],
        None => vec!["crates/polis/src/lib.rs", "crates/polis/tests/main.rs"],
    };
    let read = |file: &&str| fs::read_to_string(repository().join(file)).map_err(|error| format!("{file}: {error}"));
    for text in files.iter().map(read) {
        // The first page of a library is its comment.
        let text: String =
            text?.lines().map(|line| format!("{}\n", line.trim_start().trim_start_matches("//!").trim_start())).collect();
        let plain = |text: &str| -> String { text.lines().map(|line| line.trim_start_matches("# ")).collect() };
        if bare(&text).contains(&bare(&block.text)) || bare(&plain(&text)).contains(&bare(&block.text)) {
            return Ok(());
        }
    }
    Err(format!("the code is not in {}, so nothing compiles it", files.join(" or ")))
}

/// There is such a test.
fn is_run_by(test: &str) -> Result<(), String> {
    let folders = ["crates/app/tests/cli", "crates/server/tests", "crates/agents/tests"];
    let sources = folders.iter().flat_map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let is_there = sources
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .any(|path| fs::read_to_string(path).unwrap().contains(&format!("fn {test}()")));
    if is_there { Ok(()) } else { Err(format!("there is no test `{test}`")) }
}
