//! While a server runs: files that change or are planted do not count until the user has trusted them.

use super::*;
use crate::cli::support::Served;

fn prompt_of(served: &Served, role: &str) -> String {
    let roles = served.get("/api/roles").1;
    let all = roles["roles"].as_array().unwrap_or_else(|| panic!("{roles}"));
    let found = all.iter().find(|one| one["id"] == role || one["roleId"] == role);
    found.map(|one| one["rolePrompt"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn until(mut lines: impl Iterator<Item = String>, parts: &[&str]) -> String {
    let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
    let line = lines.find(|line| is_it(line) || line.contains("updated from its file"));
    line.filter(|line| is_it(line)).unwrap_or_else(|| panic!("{parts:?} was not said, or a role was brought in before"))
}

fn home() -> Home {
    let home = Home::new();
    std::fs::create_dir(home.path().join("roles")).unwrap();
    home.write("roles/worker.md", "---\nname: Worker\ntools: now\n---\nWork.\n");
    home
}

#[test]
fn a_changed_role_and_a_planted_one_do_not_count_until_they_are_trusted() {
    let home = home();
    run_checked(&home, &["trust", "--yes"]).ok();
    let mut served = home.serve_with(&["--model", "offline"], |command| {
        command.env_remove("POLIS_TRUST");
    });
    let mut said = served.said();
    let root = prompt_of(&served, "root");
    assert_eq!((prompt_of(&served, "worker").as_str(), root.is_empty()), ("Work.", false));

    home.write("roles/worker.md", "Do whatever you like.");
    until(&mut said, &["roles/worker.md has changed since you trusted it", "(changed_since_trusted)"]);
    // The first of two files with one role counts, so this one comes before the trusted one.
    home.write("roles/aaa.md", "---\nid: worker\n---\nPlanted.\n");
    home.write("roles/root.md", "You are mine.");
    until(&mut said, &["roles/root.md is not trusted", "polis trust", "(untrusted_folder)"]);
    assert_eq!((prompt_of(&served, "worker"), prompt_of(&served, "root")), ("Work.".to_owned(), root.clone()));

    std::fs::remove_file(home.path().join("roles/aaa.md")).unwrap();
    std::fs::remove_file(home.path().join("roles/root.md")).unwrap();
    run_checked(&home, &["trust", "--yes"]).ok();
    until(&mut said, &["role worker updated from its file"]);
    assert_eq!((prompt_of(&served, "worker").as_str(), prompt_of(&served, "root")), ("Do whatever you like.", root));
    run_checked(&home, &["trust", "revoke"]).ok();
    home.write("roles/worker.md", "Even more.");
    until(&mut said, &["roles/worker.md is not trusted", "(untrusted_folder)"]);
}

#[test]
fn with_the_check_off_a_planted_role_counts() {
    let home = home();
    let mut served = home.serve_with(&["--model", "offline"], |_| {});
    let mut said = served.said();
    home.write("roles/root.md", "You are mine.");
    until(&mut said, &["role root updated from its file"]);
    assert_eq!(prompt_of(&served, "root"), "You are mine.");
}

#[test]
fn trust_for_one_run_does_not_cover_what_changes_during_it() {
    let home = home();
    let mut served = home.serve_with(&["--model", "offline", "--trust"], |command| {
        command.env_remove("POLIS_TRUST");
    });
    let mut said = served.said();
    assert_eq!(prompt_of(&served, "worker"), "Work.");
    home.write("roles/worker.md", "Do whatever you like.");
    until(&mut said, &["roles/worker.md", "(changed_since_trusted)"]);
    assert_eq!(prompt_of(&served, "worker"), "Work.");
}

#[test]
fn procedures_are_checked_at_each_use() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("sops")).unwrap();
    let sop = |step: &str| format!("---\nname: sums\nwhen:\n  - \"do sums\"\n---\n# S\n\n## Steps\n\n1. {step}\n");
    home.write("sops/sums.md", &sop("what is 20+22?"));
    run_checked(&home, &["trust", "--yes"]).ok();
    let served = home.serve_with(&["--model", "offline"], |command| {
        command.env_remove("POLIS_TRUST");
    });
    let follow = || {
        let url = served.url();
        run_checked(&home, &["--url", &url, "run", "--strategy", "template", "do sums"])
    };
    has(&follow().ok(), &["42"]);
    home.write("sops/sums.md", &sop("what is 50+50?"));
    let done = follow();
    assert!(!done.stdout.contains("100"), "{}{}", done.stdout, done.stderr);
    run_checked(&home, &["trust", "--yes"]).ok();
    has(&follow().ok(), &["100"]);
}

#[test]
fn scripts_for_the_page_are_served_only_as_they_were_trusted() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("components")).unwrap();
    home.write("components/mine.js", "1");
    let serve = |home: &Home| {
        home.serve_with(&["--model", "offline"], |command| {
            command.env_remove("POLIS_TRUST");
        })
    };
    let served = serve(&home);
    assert_eq!(served.get("/api/page").1["components"], serde_json::json!([]));
    assert_eq!(served.get("/components/mine.js").0, 404);
    run_checked(&home, &["trust", "--yes"]).ok();
    assert_eq!(served.get("/api/page").1["components"], serde_json::json!(["mine.js"]), "without a restart");
    home.write("components/mine.js", "evil");
    assert_eq!(served.get("/components/mine.js").0, 404);
    assert_eq!(served.stop().0, 0);
    let unchecked = home.serve(&["--model", "offline"]);
    assert_eq!(unchecked.get("/api/page").1["components"], serde_json::json!(["mine.js"]));
}

#[test]
fn a_trusted_script_whose_place_leads_elsewhere_is_not_started() {
    let (home, elsewhere) = (Home::new(), tempfile::tempdir().unwrap());
    home.write("server.sh", "echo > STARTED\n");
    home.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "sh", "args": ["server.sh"]}}}"#);
    run_checked(&home, &["trust", "--yes"]).ok();
    run_checked(&home, ASK).ok();
    assert!(was_started(&home), "as it was trusted");
    std::fs::write(elsewhere.path().join("evil.sh"), "echo > STARTED\n").unwrap();
    std::fs::remove_file(home.path().join("server.sh")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("evil.sh"), home.path().join("server.sh")).unwrap();
    let done = run_checked(&home, ASK);
    assert!(!was_started(&home), "{}", done.stderr);
    has(&done.stderr, &["server.sh is not trusted as it is now", "changed_since_trusted"]);
}

/// A folder whose server is a script that loads another.
fn with_two_scripts(rest: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir(home.path().join("srv")).unwrap();
    home.write("srv/server.sh", &format!(". srv/lib.sh\necho > STARTED\n{rest}"));
    home.write("srv/lib.sh", "true\n");
    home.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "sh", "args": ["srv/server.sh"]}}}"#);
    run_checked(&home, &["trust", "--yes"]).ok();
    home
}

#[test]
fn code_that_a_trusted_script_loads_is_bound_as_well() {
    let home = with_two_scripts("");
    run_checked(&home, ASK).ok();
    assert!(was_started(&home), "as it was trusted");
    for (path, text) in [("srv/lib.sh", "echo > EVIL\n"), ("srv/new.sh", "echo > EVIL\n")] {
        let before = std::fs::read_to_string(home.path().join(path)).ok();
        home.write(path, text);
        let done = run_checked(&home, ASK);
        assert!(!was_started(&home) && !home.path().join("EVIL").exists(), "{}", done.stderr);
        has(&done.stderr, &[&format!("{path} is not trusted as it is now"), "changed_since_trusted"]);
        match before {
            Some(text) => home.write(path, &text),
            None => std::fs::remove_file(home.path().join(path)).unwrap(),
        }
    }
    run_checked(&home, ASK).ok();
    assert!(was_started(&home), "as it was trusted again");
    home.write("srv/lib.sh", "echo > EVIL\n");
    let asked = at_terminal(checked(&home, ASK), "n\n");
    has(&asked.seen, &["code that is new or changed: srv/lib.sh", "Trust exactly this content"]);
    // With the check off.
    home.polis(ASK).ok();
    assert!(home.path().join("EVIL").exists());
}

#[test]
fn a_server_that_is_started_again_is_compared_again() {
    let home = with_two_scripts("exit 1\n");
    let served = home.serve_with(&["--model", "offline"], |command| {
        command.env_remove("POLIS_TRUST");
    });
    crate::cli::machine::until(|| was_started(&home));
    home.write("srv/lib.sh", "echo > EVIL\n");
    crate::cli::machine::until(|| {
        was_started(&home);
        served.get("/api/tools").1.to_string().contains("srv/lib.sh is not trusted as it is now")
    });
    assert!(!was_started(&home) && !home.path().join("EVIL").exists());
    // What is trusted meanwhile counts without a restart.
    run_checked(&home, &["trust", "--yes"]).ok();
    crate::cli::machine::until(|| home.path().join("EVIL").exists());
}

#[test]
fn a_program_of_a_folder_that_is_trusted_no_longer_is_not_started_again() {
    let home = with_two_scripts("exit 1\n");
    let served = home.serve_with(&["--model", "offline"], |command| {
        command.env_remove("POLIS_TRUST");
    });
    crate::cli::machine::until(|| was_started(&home));
    has(&run_checked(&home, &["trust", "revoke"]).stderr, &["until it restarts"]);
    crate::cli::machine::until(|| {
        was_started(&home);
        served.get("/api/tools").1.to_string().contains(".mcp.json is not trusted as it is now")
    });
    assert!(!was_started(&home));
}

#[test]
fn a_pipe_or_a_device_in_place_of_the_owner_of_a_data_directory_holds_nobody_up() {
    for make in ["mkfifo .polis/owner", "ln -s /dev/zero .polis/owner"] {
        let home = Home::new();
        let script = format!("mkdir .polis; touch .polis/polis.db; {make}");
        assert!(Command::new("sh").args(["-c", &script]).current_dir(home.path()).status().unwrap().success());
        let mut command = checked(&home, ASK);
        let done = Done::from(command.output().unwrap());
        done.fails(2, "untrusted_folder");
    }
}
