//! What governs agents, and what a person's programs obey: every way of writing there, with file tools and with commands.

use std::path::{Path, PathBuf};

use polis_ports::{Tool, Toolbox};
use polis_tools::sandbox::{Limits, recover};
use polis_tools::{CommandOptions, ProtectedPaths, RunCommand, Workspace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::{context, laid_out};
use crate::commands::{Place, mark, places, run, skipped, until};

/// One path of each kind that is protected.
const PATHS: &[&str] = &[
    "roles/root.md",
    "sops/a.md",
    "prompts/planner.md",
    "agents/prompts/planner.md",
    "skills/a/SKILL.md",
    "components/chart.js",
    "polis.toml",
    ".mcp.json",
    "AGENTS.md",
    "deep/er/CLAUDE.md",
    ".envrc",
    "deep/.bashrc",
    ".vscode/tasks.json",
    "deep/.idea/workspace.xml",
    ".husky/pre-commit",
    ".github/copilot-instructions.md",
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/modules/sub/hooks/pre-commit",
    ".git/modules/sub/config",
    "sub/.git/hooks/pre-commit",
    "sub/.git/config",
];

/// Those that are not protected.
const ORDINARY: &[&str] = &["src/one/a.md", "src/two/b.js", "src/roles/c.md", "src/components/d.js"];

/// What is done to each path: `$P`, whose folder is `$D` and whose name is `$N`. `plain` is an ordinary folder.
const WAYS: &[(&str, &str)] = &[
    ("written", r#"mkdir -p $D; echo evil > $P"#),
    ("appended to", r#"mkdir -p $D; echo evil >> $P"#),
    ("written in place", r#"mkdir -p $D; printf evil | dd of=$P conv=notrunc status=none"#),
    ("edited", r#"sed -i 's/.*/evil/' $P"#),
    ("copied over", r#"mkdir -p $D; echo evil > plain/x; cp plain/x $P"#),
    ("moved over", r#"mkdir -p $D; echo evil > plain/x; mv -f plain/x $P"#),
    ("hard-linked", r#"mkdir -p $D; echo evil > plain/x; ln -f plain/x $P"#),
    ("symlinked", r#"mkdir -p $D; echo evil > plain/x; rm -f $P; ln -s $PWD/plain/x $P"#),
    ("removed and made anew", r#"rm -rf $D; mkdir -p $D; echo evil > $P"#),
    ("reached by a link to its folder", r#"ln -sfn $PWD/$D plain/l; echo evil > plain/l/$N; rm -f plain/l"#),
    (
        "moved with its folder",
        r#"mkdir -p plain/o; echo evil > plain/o/$N; mv $D plain/old; mv -T plain/o $D; rm -rf plain/o plain/old"#,
    ),
    ("linked with its folder", r#"mkdir -p plain/e$D; echo evil > plain/e$D/$N; mv $D plain/old; ln -s $PWD/plain/e$D $D"#),
    ("exchanged", r#"mkdir -p plain/o; echo evil > plain/o/$N; mv --exchange plain/o $D; rm -rf plain/o"#),
    ("copied as a tree", r#"mkdir -p plain/t/$D; echo evil > plain/t/$P; cp -r plain/t/. .; rm -rf plain/t"#),
    (
        "unpacked",
        r#"mkdir -p plain/t/$D; echo evil > plain/t/$P; tar cf plain/a.tar -C plain/t $P; tar xf plain/a.tar; rm -rf plain/t"#,
    ),
    ("mounted over", r#"mkdir -p plain/o $D; echo evil > plain/o/$N; mount --bind plain/o $D"#),
    ("hidden in a folder that cannot be read", r#"mkdir -p $D; echo evil > $P; chmod 311 $D"#),
    ("guarded by a name that is taken", r#"mkdir -p $P.set-aside/x $D.set-aside/x $D; echo evil > $P"#),
];

/// Makes a workspace in which `paths` are there.
fn lay(root: &Path, paths: &[&str]) {
    std::fs::create_dir_all(root.join("plain")).unwrap();
    // What git takes for the repository of a submodule.
    for folder in ["src", ".git/modules/sub/objects", ".git/modules/sub/refs"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join(".git/modules/sub/HEAD"), "ref: refs/heads/main").unwrap();
    for path in paths {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "as it was").unwrap();
    }
}

fn script(way: &str, paths: &[&str]) -> String {
    let paths = paths.join(" ");
    format!("for P in {paths}; do D=$(dirname $P); N=$(basename $P); {way}; done 2>/dev/null; true")
}

/// Whether a person's program would read something evil there.
fn is_evil(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.contains("evil"))
}

#[tokio::test]
async fn no_way_of_writing_leaves_anything_that_governs() {
    let test = "no_way_of_writing_leaves_anything_that_governs";
    for (way, command) in WAYS {
        for before in [PATHS, &[]] {
            for place in places(test).await {
                let root = place.workspace();
                lay(&root, before);
                let said = run(&place.tool(place.commands()), &script(command, PATHS)).await.content;
                assert!(said.starts_with("exit status 0"), "{way}: {said}");
                // A way that takes the rest of a submodule's repository away leaves something that git does not read.
                let has_module = root.join(".git/modules/sub/HEAD").exists();
                for path in PATHS.iter().filter(|path| has_module || !path.contains("/modules/")) {
                    let namespaces = place.features.namespaces;
                    assert!(
                        !is_evil(&root.join(path)),
                        "{path} {way}, there before: {}, {namespaces}: {said}",
                        !before.is_empty()
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn the_same_ways_work_where_nothing_is_protected() {
    let test = "the_same_ways_work_where_nothing_is_protected";
    for (way, command) in WAYS.iter().filter(|(way, _)| !["mounted over", "exchanged"].contains(way)) {
        for place in places(test).await {
            let root = place.workspace();
            lay(&root, PATHS);
            lay(&root, ORDINARY);
            let said = run(&place.tool(place.commands()), &script(command, ORDINARY)).await.content;
            for path in ORDINARY {
                assert!(is_evil(&root.join(path)), "{path} {way}: {said}");
            }
            assert!(!said.contains("[polis]"), "{way}: {said}");
            for path in PATHS {
                assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), "as it was", "{path}");
            }
        }
    }
}

#[tokio::test]
async fn what_was_set_aside_is_told_and_what_was_there_is_back() {
    let test = "what_was_set_aside_is_told_and_what_was_there_is_back";
    for place in places(test).await {
        let root = place.workspace();
        lay(&root, &["deep/.envrc", "deep/.git/hooks/pre-commit"]);
        let plant = "mkdir roles && echo evil > roles/root.md && echo evil > .envrc && echo evil > deep/.envrc && echo evil > deep/.git/hooks/pre-commit";
        let said = run(&place.tool(place.commands()), plant).await.content;
        for want in [
            "\n\n[polis] After the command ended, these were renamed, because only the person may write such files:\n",
            "\n- files that govern agents: roles -> roles.set-aside\n",
            "\n- files that programs obey unasked: .envrc -> .envrc.set-aside; deep/.envrc -> deep/.envrc.set-aside (what was \
             there before is back)\n",
            "\n- files that decide which programs git runs: deep/.git/hooks/pre-commit -> deep/.git/hooks/pre-commit.set-aside \
             (what was there before is back)\nTheir content is kept. Do not move them back: that is undone again. Tell the person.",
        ] {
            assert!(said.contains(want), "{want}: {said}");
        }
        for path in ["deep/.envrc", "deep/.git/hooks/pre-commit"] {
            assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), "as it was", "{path}");
        }
        assert!(is_evil(&root.join("roles.set-aside/root.md")));
        // Set aside is not in the way: the next command finds nothing to do.
        assert!(!run(&place.tool(place.commands()), "true").await.content.contains("[polis]"));
    }
}

#[tokio::test]
async fn another_name_of_a_protected_file_does_not_change_it() {
    for place in places("another_name_of_a_protected_file_does_not_change_it").await {
        let root = place.workspace();
        let paths = ["AGENTS.md", "roles/root.md", "deep/.envrc", ".git/hooks/pre-commit"];
        lay(&root, &paths);
        for (n, path) in paths.iter().enumerate() {
            std::fs::hard_link(root.join(path), root.join(format!("plain/{n}"))).unwrap();
        }
        std::fs::write(root.join("src/claude.md"), "as it was").unwrap();
        std::os::unix::fs::symlink("../src/claude.md", root.join("deep/CLAUDE.md")).unwrap();
        let command = "for n in 0 1 2 3; do echo evil > plain/$n; done; echo evil > src/claude.md; true";
        let said = run(&place.tool(place.commands()), command).await.content;
        for path in paths.iter().chain(&["deep/CLAUDE.md"]) {
            assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), "as it was", "{path}: {said}");
        }
    }
}

#[tokio::test]
async fn git_goes_on_working_and_what_it_would_run_is_set_aside() {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        return skipped("git_goes_on_working_and_what_it_would_run_is_set_aside", "there is no git");
    }
    for place in places("git_goes_on_working_and_what_it_would_run_is_set_aside").await {
        let root = place.workspace();
        let tool = place.tool(CommandOptions { readable: vec!["/usr/local".into()], ..place.commands() });
        let identity = "git config user.email a@b && git config user.name a";
        let plain = format!(
            "mkdir new && cd new && git init -q && {identity} && echo x > a && git add a && git commit -qm x && git remote add origin https://example.com/x \
             && git worktree add -q ../tree && cd .. && git clone -q new copy && cd copy && git checkout -qb other && echo y > a && {identity} && git commit -qam y && git log --oneline | wc -l"
        );
        let said = run(&tool, &plain).await.content;
        assert!(said.starts_with("exit status 0\nstdout (2 bytes):\n2") && !said.contains("[polis]"), "{said}");
        // The next command finds it there and goes on with it.
        let more = "cd copy && git checkout -q -b third && echo z > a && git commit -qam z && cd ../tree && echo t > t && git add t && git commit -qm t";
        let said = run(&tool, more).await.content;
        assert!(said.contains("exit status 0") && !said.contains("[polis]"), "{said}");
        for (plant, evil) in [
            ("mkdir p && cd p && git init -q && printf '#!/bin/sh\\n' > .git/hooks/pre-commit", "p/.git/hooks/pre-commit"),
            ("mkdir q && cd q && git init -q && git config core.fsmonitor ./x", "q/.git/config"),
            ("git -C copy config core.hooksPath ../x", ""),
            ("git init -q --bare r && git -C r config core.sshCommand x", "r/config"),
            (
                "mkdir -p s/objects s/refs && echo 'ref: refs/heads/main' > s/HEAD && printf '[alias]\\n\\tx = !y\\n' > s/config",
                "s/config",
            ),
            ("echo ../../plain/evil > tree/x && echo ../../../plain > new/.git/worktrees/tree/commondir", ""),
        ] {
            let said = run(&tool, plant).await.content;
            assert!(said.contains("[polis] After the command ended"), "{plant}: {said}");
            assert!(evil.is_empty() || !root.join(evil).exists(), "{plant}: {said}");
        }
        let config = std::fs::read_to_string(root.join("copy/.git/config")).unwrap();
        assert!(config.contains("origin") && !config.contains("hooksPath"), "{config}");
    }
}

#[tokio::test]
async fn what_is_deep_may_go_with_its_folder() {
    for place in places("what_is_deep_may_go_with_its_folder").await {
        let root = place.workspace();
        let paths = ["deep/node_modules/a/.vscode/x", "deep/node_modules/b/AGENTS.md", "deep/clone/.git/config"];
        lay(&root, &paths);
        let said = run(&place.tool(place.commands()), "rm -rf deep/node_modules deep/clone").await.content;
        assert!(said.starts_with("exit status 0") && !said.contains("[polis]"), "{said}");
        assert!(!root.join("deep/clone").exists());
    }
}

/// Starts a command that plants something and then waits, and gives what its note was as soon as it has.
async fn planted<T>(place: &Place, journal: &Path, then: impl Fn(&str) -> T) -> (T, String) {
    let mark = mark(place);
    let tool = place.tool(CommandOptions { journal: Some(journal.to_owned()), ..place.commands() });
    let arguments = json!({ "command": format!("echo evil > .envrc; touch plain/begun; while [ ! -e plain/go ]; do sleep 0.01; done # {mark}") }).to_string();
    let context = context();
    let call = tool.call(&arguments, &context);
    let begun = place.workspace().join("plain/begun");
    tokio::pin!(call);
    tokio::select! {
        result = &mut call => panic!("{result:?}"),
        () = until(|| begun.exists()) => {}
    }
    let done = then(&mark);
    let said = call.await.unwrap().content.to_string();
    (done, said)
}

/// The warden above the process with this mark, as the kernel has it.
fn warden_of(mark: &str) -> Pid {
    let read = |pid: &str, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let parent = |pid: &str| {
        let stat = String::from_utf8_lossy(&read(pid, "stat")).into_owned();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut pid = entries.filter(|pid| String::from_utf8_lossy(&read(pid, "cmdline")).contains(mark)).min().unwrap();
    while !String::from_utf8_lossy(&read(&pid, "cmdline")).contains("__warden") {
        pid = parent(&pid);
        assert_ne!(pid, "1");
    }
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warden_that_is_killed_leaves_nothing_planted() {
    for place in places("a_warden_that_is_killed_leaves_nothing_planted").await {
        if !place.features.namespaces {
            // Without them the command itself would go on.
            continue;
        }
        lay(&place.workspace(), &[]);
        let journal = place.around.path().join("journal");
        let ((), said) = planted(&place, &journal, |mark| kill_process(warden_of(mark), Signal::KILL).unwrap()).await;
        assert!(said.contains("ended together with its sandbox") && said.contains(": .envrc -> .envrc.set-aside"), "{said}");
        assert!(!place.workspace().join(".envrc").exists() && place.workspace().join(".envrc.set-aside").exists());
        assert_eq!(notes(&journal).len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_planted_is_set_aside_by_the_next_start() {
    for place in places("what_a_crash_left_planted_is_set_aside_by_the_next_start").await {
        lay(&place.workspace(), &["deep/AGENTS.md"]);
        let journal = place.around.path().join("journal");
        let (note, _) = planted(&place, &journal, |_| {
            let note = notes(&journal).pop().unwrap();
            let content = std::fs::read(&note).unwrap();
            std::fs::write(place.workspace().join("plain/go"), "").unwrap();
            (note, content)
        })
        .await;
        // As it would be if the machine had stopped.
        std::fs::rename(place.workspace().join(".envrc.set-aside"), place.workspace().join(".envrc")).unwrap();
        std::fs::write(&note.0, &note.1).unwrap();
        let told = recover(&journal);
        assert!(told.len() == 1 && told[0].starts_with("`.envrc` is now `.envrc.set-aside`"), "{told:?}");
        assert!(!place.workspace().join(".envrc").exists() && place.workspace().join("deep/AGENTS.md").exists());
        assert_eq!((recover(&journal), notes(&journal).len()), (Vec::new(), 0));
    }
}

fn notes(journal: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_command_planted_does_not_pass_for_old_to_another() {
    for place in places("what_one_command_planted_does_not_pass_for_old_to_another").await {
        let root = place.workspace();
        lay(&root, &[]);
        let tool = std::sync::Arc::new(place.tool(place.commands()));
        let both = [
            "mkdir -p deep; echo evil > deep/.envrc; touch plain/planted; while [ ! -e plain/go ]; do sleep 0.01; done",
            "while [ -e deep/.envrc ]; do sleep 0.01; done; mkdir -p deep; echo evil > deep/.envrc",
        ];
        let first = tokio::spawn({
            let tool = tool.clone();
            async move { run(&tool, both[0]).await.content }
        });
        until(|| root.join("plain/planted").exists()).await;
        let second = tokio::spawn({
            let tool = tool.clone();
            async move { run(&tool, &format!("touch plain/second; {}", both[1])).await.content }
        });
        until(|| root.join("plain/second").exists()).await;
        std::fs::write(root.join("plain/go"), "").unwrap();
        let said = [first.await.unwrap(), second.await.unwrap()];
        assert!(said.iter().all(|said| said.contains(": deep/.envrc -> ")), "{said:?}");
        assert!(!root.join("deep/.envrc").exists(), "{said:?}");
    }
}

#[tokio::test]
async fn file_tools_write_nothing_that_governs() {
    for before in [PATHS, &[]] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        lay(root, before);
        std::fs::create_dir_all(root.join("bare/objects")).unwrap();
        std::fs::create_dir_all(root.join("bare/refs")).unwrap();
        std::os::unix::fs::symlink(".", root.join("here")).unwrap();
        std::fs::write(root.join("src/shared.md"), "as it was").unwrap();
        std::os::unix::fs::symlink("../src/shared.md", root.join("plain/AGENTS.md")).unwrap();
        let tools = laid_out(&Workspace::open(root).unwrap().with_protected(ProtectedPaths::new(root)));
        let more = ["bare/HEAD", "src/shared.md", "sub/.git", "Roles/root.md", "components/other.js", "x/.ENVRC"];
        for path in PATHS.iter().chain(&more).flat_map(|path| [(*path).to_owned(), format!("./{path}"), format!("here/{path}")])
        {
            let edits = json!([{ "old_text": "as it was", "new_text": "evil" }]);
            for (tool, arguments) in [
                ("write_file", json!({ "path": path, "content": "evil" })),
                ("edit_file", json!({ "path": path, "edits": edits })),
            ] {
                let result = tools.call(tool, &arguments.to_string(), &context()).await.unwrap();
                assert!(result.is_error, "{tool} {path}: {}", result.content);
                let says_why = ["so only the person may write it", "which no file tool writes", "a folder", "does not exist"];
                assert!(says_why.iter().any(|why| result.content.contains(why)), "{tool} {path}: {}", result.content);
                assert!(!is_evil(&root.join(&path)), "{tool} {path}");
            }
        }
        if !before.is_empty() {
            let read = tools.call("read_file", &json!({ "path": "roles/root.md" }).to_string(), &context()).await.unwrap();
            assert_eq!((read.is_error, &*read.content), (false, "as it was"));
        }
        for path in ORDINARY.iter().chain(&["components/Button.tsx", "new.md", "plain/HEAD", ".gitignore", ".env"]) {
            let arguments = json!({ "path": path, "content": "fine" }).to_string();
            let result = tools.call("write_file", &arguments, &context()).await.unwrap();
            assert!(!result.is_error, "{path}: {}", result.content);
        }
    }
}

#[tokio::test]
async fn a_command_leaves_no_file_that_runs_with_its_owners_rights() {
    use std::os::unix::fs::PermissionsExt;
    for place in places("a_command_leaves_no_file_that_runs_with_its_owners_rights").await {
        let root = place.workspace();
        lay(&root, &[]);
        let said = place
            .run(
                "cd plain; for m in 4755 2755 6755 u+s g+s; do cp /bin/true f$m; chmod $m f$m; done 2>/dev/null; install -m 4755 /bin/true installed; \
                 python3 -c 'import os\nfor n, make in enumerate([lambda: os.open(\"p0\", os.O_CREAT | os.O_WRONLY, 0o4755), lambda: os.mknod(\"p1\", 0o104755), lambda: os.chmod(os.open(\"p2\", os.O_CREAT | os.O_RDWR), 0o6755)]):\n  try: make()\n  except OSError as e: print(n, e.errno)'; \
                 cp /bin/true plain && chmod 750 plain && chmod +t . && echo done",
            )
            .await;
        assert!(said.contains("done"), "{said}");
        for entry in std::fs::read_dir(root.join("plain")).unwrap().flatten() {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0, "{}: {mode:o}: {said}", entry.path().display());
        }
        assert_eq!(std::fs::metadata(root.join("plain/plain")).unwrap().permissions().mode() & 0o7777, 0o750);
    }
}

#[tokio::test]
async fn what_a_command_writes_in_all_is_bounded() {
    for place in places("what_a_command_writes_in_all_is_bounded").await {
        let root = place.workspace();
        lay(&root, &[]);
        let limits = Limits { written_bytes: 16 << 20, ..Limits::default() };
        let tool: RunCommand = place.tool(CommandOptions { limits, ..place.commands() });
        let said = run(&tool, "head -c 4M /dev/zero > plain/small; head -c 4M /dev/zero > $HOME/small; echo fine").await;
        assert!(!said.is_error && said.content.contains("fine"), "{}", said.content);
        // None takes much more than the limit: the machine of a test may have little space.
        // Where nothing is sent to a disk, only the space counts that is taken.
        let is_on_disk = rustix::fs::statfs(&root).unwrap().f_type != 0x0102_1994;
        for command in [
            if is_on_disk {
                "while :; do dd if=/dev/zero of=plain/same bs=4M count=1 conv=fsync status=none; sleep 0.05; done"
            } else {
                "i=0; while :; do head -c 4M /dev/zero > plain/e$i; i=$((i+1)); sleep 0.05; done"
            },
            "i=0; while :; do head -c 4M /dev/zero > plain/f$i; i=$((i+1)); sleep 0.05; done",
            "i=0; while :; do head -c 4M /dev/zero > $HOME/f$i; i=$((i+1)); sleep 0.05; done",
            "i=0; while [ $i -lt 10 ]; do fallocate -l 4M plain/g$i; i=$((i+1)); done; while :; do sleep 1; done",
        ] {
            let said = run(&tool, command).await;
            let want = "error: ended because it wrote more than 16 MB into files";
            assert!(said.is_error && said.content.starts_with(want), "{command}: {}", said.content);
        }
    }
}

#[tokio::test]
async fn packages_that_a_trusted_server_loads_stay_as_they_are() {
    let paths = ["node_modules/a/index.js", "srv/node_modules/a/index.js"];
    for (way, command) in
        WAYS.iter().chain(&[("replaced with what is around it", "mv srv plain/s; mkdir -p $D; echo evil > $P")])
    {
        for before in [&paths[..], &[]] {
            for place in places("packages_that_a_trusted_server_loads_stay_as_they_are").await {
                let root = place.workspace();
                lay(&root, before);
                let loaded = ["node_modules", "srv/node_modules"].map(|path| root.canonicalize().unwrap().join(path));
                let protected = ProtectedPaths::new(&root).with_loaded(loaded);
                let tool = place.tool(CommandOptions { protected, ..place.commands() });
                let said = run(&tool, &script(command, &paths)).await.content;
                for path in paths {
                    assert!(!is_evil(&root.join(path)), "{path} {way}, there before: {}: {said}", !before.is_empty());
                }
            }
        }
    }
}

#[tokio::test]
async fn a_rebase_that_is_under_way_gets_no_program_to_run() {
    for place in places("a_rebase_that_is_under_way_gets_no_program_to_run").await {
        let root = place.workspace();
        lay(&root, &[]);
        for folder in [".git/objects", ".git/refs", ".git/rebase-merge"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        let todo = root.join(".git/rebase-merge/git-rebase-todo");
        std::fs::write(&todo, "pick 1 one\npick 2 two\n").unwrap();
        let tool = place.tool(place.commands());
        run(&tool, "echo 'pick 2 two' > .git/rebase-merge/git-rebase-todo").await;
        assert_eq!(std::fs::read_to_string(&todo).unwrap(), "pick 2 two\n", "git goes on as usual");
        run(&tool, "echo 'exec evil' >> .git/rebase-merge/git-rebase-todo").await;
        assert!(!is_evil(&todo));
    }
}
