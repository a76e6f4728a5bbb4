//! `run_command`: what it tells, and every way out of it that we know of. Each case runs with namespaces and without.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polis_domain::CallResult;
use polis_ports::{Tool, ToolError};
use polis_tools::sandbox::{Limits, Sandbox, SandboxFeatures};
use polis_tools::{CommandOptions, ProtectedPaths, RunCommand};
use serde_json::json;
use tempfile::TempDir;

use crate::bench::context;

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_polis-confine"))
}

/// A workspace in a folder, beside which there is a secret.
pub(crate) struct Place {
    pub(crate) around: TempDir,
    sandbox: Sandbox,
    pub(crate) features: SandboxFeatures,
}

impl Place {
    pub(crate) fn workspace(&self) -> PathBuf {
        self.around.path().join("work")
    }

    pub(crate) fn commands(&self) -> CommandOptions {
        CommandOptions::new(self.workspace())
    }

    pub(crate) fn tool(&self, commands: CommandOptions) -> RunCommand {
        RunCommand::new(self.sandbox.clone(), commands)
    }

    pub(crate) async fn run(&self, command: &str) -> String {
        run(&self.tool(self.commands()), command).await.content.to_string()
    }
}

pub(crate) async fn run(tool: &RunCommand, command: &str) -> CallResult {
    tool.call(&json!({ "command": command, "timeout_seconds": 60 }).to_string(), &context()).await.unwrap()
}

/// Both kinds of confinement, as far as this machine has them.
pub(crate) async fn places(test: &str) -> Vec<Place> {
    let mut places = Vec::new();
    for sandbox in [sandbox(), sandbox().without_namespaces()] {
        let features = sandbox.features().await.unwrap();
        if places.iter().any(|place: &Place| place.features == features) {
            skipped(test, "this machine has no namespaces");
            continue;
        }
        if !features.may_run_unattended() {
            skipped(test, &format!("this machine offers only: {features}"));
            continue;
        }
        let around = tempfile::tempdir().unwrap();
        std::fs::create_dir(around.path().join("work")).unwrap();
        std::fs::write(around.path().join("secret"), "the secret").unwrap();
        places.push(Place { around, sandbox, features });
    }
    places
}

pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Whether a process whose command line holds `mark` is there; its own shell is counted too.
fn is_running(mark: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// A word that stands in no other command line.
pub(crate) fn mark(place: &Place) -> String {
    format!(
        "7{}",
        place.around.path().display().to_string().bytes().map(u64::from).fold(7, |sum, byte| sum * 31 % 99_999_989 + byte)
    )
}

#[tokio::test]
async fn what_a_command_printed_and_how_it_ended_is_told() {
    // Somebody left it open for every program that is started from here.
    let leaked = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    for place in places("what_a_command_printed_and_how_it_ended_is_told").await {
        for (command, want) in [
            ("echo out; echo err >&2; exit 3", "exit status 3\nstdout (4 bytes):\nout\nstderr (4 bytes):\nerr"),
            ("printf 你好 | cat > a && cat a", "exit status 0\nstdout (6 bytes):\n你好\nstderr: nothing"),
            ("cat", "exit status 0\nstdout: nothing\nstderr: nothing"),
            ("kill -TERM $$; sleep 9", "ended by signal 15\nstdout: nothing\nstderr: nothing"),
            ("mktemp >/dev/null && cd && touch x && ls", "exit status 0"),
            ("ls /proc/self/fd | wc -l", "exit status 0\nstdout (2 bytes):\n4"),
        ] {
            let said = place.run(command).await;
            assert!(said.starts_with(want), "{command}: {said}");
        }
        let left: Vec<_> = std::fs::read_dir(place.workspace()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["a"]);
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_used_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tool = RunCommand::new(sandbox(), CommandOptions::new(folder.path()));
    for (arguments, want) in [
        (json!({ "command": " " }), "command is empty"),
        (json!({ "command": "touch x\0" }), "NUL"),
        (json!({ "command": "touch x", "timeout_seconds": 0 }), "timeout_seconds is 1 to 600"),
        (json!({ "command": "touch x", "timeout_seconds": 601 }), "timeout_seconds is 1 to 600"),
        (json!({ "command": "touch x", "network": true }), "network is not allowed here"),
        (json!({ "command": "touch x", "root": true }), "unknown field `root`"),
    ] {
        match tool.call(&arguments.to_string(), &context()).await {
            Err(ToolError::BadArguments(why)) => assert!(why.contains(want), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(tool.spec().class, polis_domain::EffectClass::Write);
    assert!(tool.spec().description.contains("It has no network. Files that govern agents"), "{}", tool.spec().description);
}

#[tokio::test]
async fn nothing_outside_can_be_read_or_written() {
    for place in places("nothing_outside_can_be_read_or_written").await {
        let secret = place.around.path().join("secret");
        std::os::unix::fs::symlink(&secret, place.workspace().join("link")).unwrap();
        std::os::unix::fs::symlink(place.around.path(), place.workspace().join("folder")).unwrap();
        let secret_path = secret.display();
        for command in [
            "cat ../secret".to_owned(),
            format!("cat {secret_path}"),
            "cat link".to_owned(),
            "cat folder/secret".to_owned(),
            "cat /proc/self/cwd/../secret".to_owned(),
            format!("cat /proc/self/root{secret_path}"),
            format!("ln -s {secret_path} new; cat new"),
            format!("ln {secret_path} hard; cat hard"),
            format!("mv {secret_path} moved; cat moved"),
            format!("cp {secret_path} copied; cat copied"),
            "ls ..".to_owned(),
            "mount --bind .. . && cat secret".to_owned(),
            "unshare -Ur cat ../secret".to_owned(),
            "chroot .. cat /secret".to_owned(),
            "cat /etc/shadow".to_owned(),
            "ls /root /home /var/lib".to_owned(),
        ] {
            let said = place.run(&command).await;
            assert!(!said.contains("the secret") && !said.contains("exit status 0"), "{command}: {said}");
        }
        for command in [
            "echo x > ../secret",
            "echo x > ../new",
            "echo x > link",
            "mkdir folder/new",
            "rm -rf ../secret",
            "truncate -s 0 ../secret",
            "touch /usr/bin/polis-test",
            "touch /etc/polis-test",
            "touch /polis-test",
            "touch /tmp/polis-test",
            "touch /dev/shm/polis-test",
        ] {
            let said = place.run(command).await;
            assert!(!said.contains("exit status 0"), "{command}: {said}");
        }
        if place.features.namespaces {
            // Landlock alone does not keep modes and times as they are.
            for command in ["chmod 777 ../secret", "touch ../secret", "chmod 777 .."] {
                let said = place.run(command).await;
                assert!(said.contains("Read-only file system"), "{command}: {said}");
            }
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret");
        assert_eq!(std::fs::read_dir(place.around.path()).unwrap().count(), 2);
    }
}

#[tokio::test]
async fn what_is_closed_in_the_workspace_is_not_there_for_a_command() {
    for place in places("what_is_closed_in_the_workspace_is_not_there_for_a_command").await {
        let at = |path: &str| place.workspace().join(path);
        for folder in ["a/.polis", ".git/hooks", "b"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("a/.polis/token"), "the secret").unwrap();
        std::fs::write(at("polis.toml"), "# the secret").unwrap();
        let closed = [at("a/.polis"), at("polis.toml"), at("later.toml")];
        let protected = ProtectedPaths::new(place.workspace()).with_hidden(closed);
        let tool = place.tool(CommandOptions { protected, ..place.commands() });
        for command in [
            "cat a/.polis/token",
            "cat polis.toml",
            "cp -r a b/; cat b/a/.polis/token",
            "mv a c; cat c/.polis/token",
            "mv polis.toml b/x; cat b/x",
            "ln polis.toml b/y; cat b/y",
            "ln -s ../a/.polis b/z; cat b/z/token",
            "umount a/.polis; cat a/.polis/token",
            "rm -rf a/.polis polis.toml",
            "echo evil > a/.polis/token",
            "echo evil > polis.toml",
            "echo evil > later.toml",
        ] {
            let said = run(&tool, command).await.content;
            assert!(!said.contains("the secret"), "{command}: {said}");
            assert_eq!(std::fs::read_to_string(at("a/.polis/token")).unwrap(), "the secret", "{command}");
            assert_eq!(std::fs::read_to_string(at("polis.toml")).unwrap(), "# the secret", "{command}");
            assert!(!at("later.toml").exists(), "{command}");
        }
        if place.features.namespaces {
            for command in ["touch .git/hooks/pre-commit", "mv .git x"] {
                assert!(!run(&tool, command).await.content.contains("exit status 0"), "{command}");
            }
        }
        assert!(run(&tool, "echo x > b/new && cat b/new").await.content.contains("exit status 0"));
        let protected = ProtectedPaths::new(place.workspace()).with_hidden([place.around.path().to_owned()]);
        let inside = place.tool(CommandOptions { protected, ..place.commands() });
        assert!(run(&inside, "true").await.content.contains("closed to commands; nothing was run"));
    }
}

#[tokio::test]
async fn secrets_of_the_environment_and_of_other_processes_are_not_to_be_had() {
    let test = "secrets_of_the_environment_and_of_other_processes_are_not_to_be_had";
    for place in places(test).await {
        let ours = std::process::id();
        // Cargo tells tests where their package is, which stands for any secret.
        assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
        let commands =
            CommandOptions { environment: vec!["CARGO_PKG_NAME".to_owned(), "POLIS_X".to_owned()], ..place.commands() };
        let said = run(&place.tool(commands), "env | cut -d= -f1 | sort | tr '\\n' ' '").await.content;
        let names: Vec<_> = said.lines().nth(2).unwrap().split_whitespace().filter(|name| *name != "_").collect();
        let known = ["ARTIFACTS", "CARGO_PKG_NAME", "HOME", "LANG", "LC_ALL", "PATH", "PWD", "TERM", "TMPDIR"];
        assert!(names.iter().all(|name| known.contains(name)) && names.contains(&"CARGO_PKG_NAME"), "{names:?}");
        let said = place.run("cat /proc/self/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'").await;
        assert!(said.contains("HOME=") && !said.contains("CARGO_MANIFEST_DIR"), "{said}");
        for command in [
            format!("cat /proc/{ours}/environ"),
            format!("ls -l /proc/{ours}/fd/"),
            format!("cat /proc/{ours}/root/etc/hostname"),
            format!("head -c 1 /proc/{ours}/mem"),
            format!("kill -0 {ours}"),
        ] {
            let said = place.run(&command).await;
            assert!(!said.contains("exit status 0"), "{command}: {said}");
        }
    }
}

#[tokio::test]
async fn a_command_has_no_network() {
    for place in places("a_command_has_no_network").await {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        let socket = place.workspace().join("socket");
        let service = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        service.set_nonblocking(true).unwrap();
        for command in [
            format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'"),
            format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'".to_owned(),
            "python3 -c 'import socket; a, b = socket.socketpair(type=socket.SOCK_DGRAM)'".to_owned(),
            format!("curl -s --max-time 5 http://127.0.0.1:{port}/"),
        ] {
            let said = place.run(&command).await;
            assert!(!said.contains("exit status 0"), "{command}: {said}");
        }
        assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody came through");
        assert_eq!(service.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody came through");
        // Where it is allowed and asked for, the same way leads there.
        let tool = place.tool(CommandOptions { network: true, ..place.commands() });
        let command = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
        run(&tool, &command).await;
        assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it was not asked for");
        let asked = json!({ "command": command, "network": true, "timeout_seconds": 60 }).to_string();
        let said = tool.call(&asked, &context()).await.unwrap().content;
        assert!(said.contains("exit status 0") && server.accept().is_ok(), "{said}");
    }
}

#[tokio::test]
async fn nothing_outlives_the_command_that_started_it() {
    for place in places("nothing_outlives_the_command_that_started_it").await {
        let mark = mark(&place);
        let sleep = format!("sleep {mark}");
        for command in [
            format!("{sleep} &"),
            format!("nohup {sleep} >/dev/null 2>&1 &"),
            format!("setsid {sleep} >/dev/null 2>&1 & sleep 0.2"),
            format!("(setsid sh -c '({sleep} &) &' &) ; sleep 0.2"),
            format!("trap '' TERM HUP INT; (trap '' TERM HUP; {sleep}) & sleep 0.1"),
            format!("{sleep} & kill -9 $PPID; sleep 0.5"),
        ] {
            let said = place.run(&command).await;
            assert!(!is_running(&mark), "{command} left something: {said}");
        }
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    for place in places("a_command_that_takes_too_long_is_ended_with_all_that_it_started").await {
        let mark = mark(&place);
        let command = format!("echo begun; setsid sleep {mark} & sleep {mark}");
        let arguments = json!({ "command": command, "timeout_seconds": 1 }).to_string();
        let tool = place.tool(place.commands());
        let result = tool.call(&arguments, &context()).await.unwrap();
        let want = "error: ended because it took longer than 1 seconds\nstdout (6 bytes):\nbegun\nstderr: nothing";
        assert_eq!((&*result.content, result.is_error), (want, true));
        assert!(!is_running(&mark));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_ends_its_command() {
    for place in places("a_call_that_is_dropped_ends_its_command").await {
        let mark = mark(&place);
        let tool = place.tool(place.commands());
        let command = format!("setsid sleep {mark} & touch begun; sleep {mark}");
        let arguments = json!({ "command": command }).to_string();
        let context = context();
        let call = tool.call(&arguments, &context);
        let begun = place.workspace().join("begun");
        tokio::select! {
            result = call => panic!("{result:?}"),
            () = until(|| begun.exists()) => {}
        }
        until(|| !is_running(&mark)).await;
    }
}

/// Looks again and again, for two minutes at most.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "it never came to hold");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_gigabyte_of_output_is_counted_and_only_its_ends_are_kept() {
    for place in places("a_gigabyte_of_output_is_counted_and_only_its_ends_are_kept").await {
        let said = place.run("echo first; yes | head -c 1G; echo last").await;
        let want = "exit status 0\nstdout (1073741835 bytes):\nfirst\ny\n";
        assert!(said.starts_with(want) && said.ends_with("\nlast\nstderr: nothing"), "{}", &said[..200]);
        assert!(said.contains("[cut: 1073721356 bytes are left out here]") && said.len() < 24 << 10, "{}", said.len());
        let peak = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim_end_matches("kB").trim();
        assert!(peak.parse::<u64>().unwrap() < 500 << 10, "{peak} kB");
        let limits = Limits { output_bytes: 1 << 20, ..Limits::default() };
        let result = run(&place.tool(CommandOptions { limits, ..place.commands() }), "yes").await;
        assert!(result.is_error && result.content.starts_with("error: ended because it printed too much"));
    }
}

#[tokio::test]
async fn memory_file_size_and_processes_are_bounded() {
    for place in places("memory_file_size_and_processes_are_bounded").await {
        let limits = Limits { memory_bytes: 256 << 20, file_bytes: 1 << 20, processes: 40, ..Limits::default() };
        let tool = place.tool(CommandOptions { limits, ..place.commands() });
        let said = run(&tool, "head -c 600M /dev/zero | tail -c 500M | wc -c").await.content;
        assert!(!said.contains("524288000"), "{said}");
        run(&tool, "head -c 5M /dev/zero > big").await;
        assert_eq!(std::fs::metadata(place.workspace().join("big")).unwrap().len(), 1 << 20);
        if !place.features.process_limit {
            skipped("memory_file_size_and_processes_are_bounded", "this machine does not bind root's number of processes");
            continue;
        }
        let said = run(&tool, "i=0; while [ $i -lt 500 ]; do sleep 5 & i=$((i+1)); done; echo all").await.content;
        assert!(!said.contains("all"), "{said}");
    }
}

#[tokio::test]
async fn a_bomb_of_forks_ends_with_its_command() {
    for place in places("a_bomb_of_forks_ends_with_its_command").await {
        let mark = mark(&place);
        // It stops by itself: at most two to the eighth processes, each for a few seconds.
        let command = format!(
            "cat > bomb <<'X'\nif [ $1 -gt 0 ]; then sh bomb $(($1-1)) {mark} & sh bomb $(($1-1)) {mark} & fi\nsleep 20\nX\nsh bomb 8 {mark} 2>/dev/null & sleep 1"
        );
        let said = place.run(&command).await;
        assert!(said.starts_with("exit status 0"), "{said}");
        assert!(!is_running(&mark));
    }
}

#[tokio::test]
async fn what_the_machine_offers_is_told() {
    let features = sandbox().features().await.unwrap();
    let without = sandbox().without_namespaces().features().await.unwrap();
    assert!(!without.namespaces);
    assert_eq!((features.landlock, features.seccomp), (without.landlock, without.seccomp));
    let full = SandboxFeatures { landlock: Some(7), seccomp: true, namespaces: true, process_limit: true };
    assert_eq!(full.to_string(), "Landlock 7, seccomp, namespaces, limit on processes");
    for (features, may) in [
        (full.clone(), true),
        (SandboxFeatures { landlock: Some(2), ..full.clone() }, false),
        (SandboxFeatures { landlock: Some(3), namespaces: false, ..full.clone() }, false),
        (SandboxFeatures { landlock: None, ..full.clone() }, false),
        (SandboxFeatures { seccomp: false, ..full }, false),
        (SandboxFeatures::default(), false),
    ] {
        assert_eq!(features.may_run_unattended(), may, "{features}");
    }
    let broken = Sandbox::new(Path::new("/does/not/exist")).features().await.unwrap_err();
    assert!(broken.contains("the sandbox cannot be started"), "{broken}");
    let other = Sandbox::new("/bin/true").features().await.unwrap_err();
    assert!(other.contains("sandbox"), "{other}");
}

#[test]
fn where_nothing_holds_commands_each_is_asked_about_whatever_rules_say() {
    use polis_domain::{AgentId, Ruling, TaskId};
    use polis_ports::{Caller, Toolbox};
    use polis_tools::{PolicyToolbox, Rule, RuleAction, ToolRegistry};

    let (agent, task) = (AgentId::from("a"), TaskId::from("t"));
    let who = Caller { agent: &agent, role: None, task: &task, chosen: polis_ports::Chosen::default() };
    let judged = |caution: Option<&str>, then| {
        let tool = RunCommand::new(sandbox(), CommandOptions::new("/")).with_caution(caution.map(str::to_owned));
        let bench = ToolRegistry::new([Box::new(tool) as Box<dyn Tool>]).unwrap();
        let ruled = PolicyToolbox::new(std::sync::Arc::new(bench), vec![Rule { then, ..Rule::default() }]);
        ruled.ruling("run_command", r#"{"command":"true"}"#, &who)
    };
    let each = Ruling::AskEach("Nothing holds it.".to_owned());
    assert_eq!(judged(Some("Nothing holds it."), RuleAction::Allow), each);
    assert_eq!(judged(Some("Nothing holds it."), RuleAction::Ask), each);
    assert!(matches!(judged(Some("Nothing holds it."), RuleAction::Deny), Ruling::Deny(_)));
    assert_eq!(judged(None, RuleAction::Allow), Ruling::Allow);
}

fn kept_in(store: &polis_testkit::MemoryArtifacts) -> polis_ports::CallContext {
    polis_ports::CallContext {
        artifacts: polis_ports::ArtifactStore { store: std::sync::Arc::new(store.clone()), ..context().artifacts },
        ..context()
    }
}

#[tokio::test]
async fn files_in_the_artifacts_folder_are_kept_and_pictures_are_shown() {
    for place in places("files_in_the_artifacts_folder_are_kept_and_pictures_are_shown").await {
        let store = polis_testkit::MemoryArtifacts::new();
        let tool = place.tool(place.commands());
        let command = "printf 'a,b\\n1,2\\n' > $ARTIFACTS/table.csv; printf '\\211PNG' > $ARTIFACTS/plot.png; echo done";
        let result = tool.call(&json!({ "command": command }).to_string(), &kept_in(&store)).await.unwrap();
        let content = result.content.to_string();
        assert!(content.starts_with("exit status 0\nstdout (5 bytes):\ndone\nstderr: nothing\nkept artifact "), "{content}");
        let names: Vec<_> = result.artifacts.iter().map(|it| (&*it.name, &*it.media_type)).collect();
        assert_eq!(names, [("plot.png", "image/png"), ("table.csv", "text/csv; charset=utf-8")]);
        assert_eq!(result.media.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["plot.png"]);
        use polis_ports::Artifacts;
        assert_eq!(store.read(&result.artifacts[1].id, 0, 99).await.unwrap().bytes, b"a,b\n1,2\n");
        let nothing = tool.call(&json!({ "command": "true" }).to_string(), &kept_in(&store)).await.unwrap();
        assert_eq!(nothing.content.to_string(), "exit status 0\nstdout: nothing\nstderr: nothing");
    }
}

/// The files are read outside the sandbox, so they must not lead anywhere else.
#[tokio::test]
async fn nothing_but_files_of_its_own_is_kept_for_a_command() {
    for place in places("nothing_but_files_of_its_own_is_kept_for_a_command").await {
        let store = polis_testkit::MemoryArtifacts::new();
        let tool = place.tool(place.commands());
        let secret = place.around.path().join("secret.txt");
        std::fs::write(&secret, "the secret").unwrap();
        std::fs::write(place.workspace().join("own.txt"), "own").unwrap();
        let secret = secret.display();
        for command in [
            format!("ln -s {secret} $ARTIFACTS/a"),
            "mkfifo $ARTIFACTS/a".to_owned(),
            "mkdir -p $ARTIFACTS/a; echo x > $ARTIFACTS/a/b; chmod 0 $ARTIFACTS/a".to_owned(),
            "echo x > $HOME/a; ln $HOME/a $ARTIFACTS/a && ln $ARTIFACTS/a $ARTIFACTS/b".to_owned(),
            format!("rmdir $ARTIFACTS; ln -s $(dirname {secret}) $ARTIFACTS"),
            "rmdir $ARTIFACTS; echo x > $ARTIFACTS".to_owned(),
        ] {
            let result = tool.call(&json!({ "command": command }).to_string(), &kept_in(&store)).await.unwrap();
            assert!(result.artifacts.is_empty(), "{command}: {}", result.content);
        }
        let many = "for n in $(seq 100 130); do echo x > $ARTIFACTS/$n; done";
        let result = tool.call(&json!({ "command": many }).to_string(), &kept_in(&store)).await.unwrap();
        assert_eq!(result.artifacts.len(), 20);
        assert!(result.content.contains("not kept: 120 and 10 more; at most 20 are"), "{}", result.content);
    }
}

/// Where nothing is stored, the person is told.
#[tokio::test]
async fn without_a_store_nothing_is_kept_and_the_command_still_ran() {
    for place in places("without_a_store_nothing_is_kept_and_the_command_still_ran").await {
        let said = place.run("echo x > $ARTIFACTS/a.txt; echo ran").await;
        assert!(said.contains("\nran\n") && said.contains("\nnot kept: a.txt: "), "{said}");
    }
}
