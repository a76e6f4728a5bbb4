//! `write_file`.

use std::os::unix::fs::PermissionsExt;

use polis_ports::{Tool, Toolbox};
use polis_tools::{ProtectedPaths, Workspace, WriteFile};
use serde_json::json;

use crate::bench::{bench, context, laid_out};

#[tokio::test]
async fn a_file_is_written_with_its_folders_and_nothing_else() {
    let bench = bench();
    let said = bench.good("write_file", json!({ "path": "a/b/c.txt", "content": "你好" })).await;
    assert_eq!(said, "wrote 6 bytes to `a/b/c.txt`");
    assert_eq!(bench.good("write_file", json!({ "path": "d", "content": "x" })).await, "wrote 1 byte to `d`");
    assert_eq!(std::fs::read_to_string(bench.path().join("a/b/c.txt")).unwrap(), "你好");
    assert_eq!(std::fs::read_dir(bench.path().join("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_is_replaced_whole_and_keeps_its_permissions() {
    let bench = bench();
    bench.put("run.sh", "a much longer text that was there before");
    std::fs::set_permissions(bench.path().join("run.sh"), PermissionsExt::from_mode(0o750)).unwrap();
    bench.good("write_file", json!({ "path": "run.sh", "content": "short" })).await;
    assert_eq!(std::fs::read_to_string(bench.path().join("run.sh")).unwrap(), "short");
    let mode = std::fs::metadata(bench.path().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(bench.names(), ["run.sh"]);
}

#[tokio::test]
async fn another_name_of_the_same_file_keeps_the_old_content() {
    // A reader never sees half a file: the new one takes the old one's place.
    let bench = bench();
    bench.put("old", "old");
    std::fs::hard_link(bench.path().join("old"), bench.path().join("other")).unwrap();
    bench.good("write_file", json!({ "path": "old", "content": "new" })).await;
    assert_eq!(std::fs::read_to_string(bench.path().join("other")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(bench.path().join("old")).unwrap(), "new");
}

#[tokio::test]
async fn what_cannot_be_written_changes_nothing_and_leaves_nothing_behind() {
    let bench = bench();
    bench.put("file", "kept");
    std::fs::create_dir(bench.path().join("folder")).unwrap();
    for (path, want) in [
        ("folder", "error: `folder` is a folder, not a file; nothing was written".to_owned()),
        ("file/below", "error: `file/below` leads through something that is no folder; nothing was written".to_owned()),
        (&"n".repeat(300), format!("error: `{}`: File name too long (os error 36); nothing was written", "n".repeat(300))),
    ] {
        assert_eq!(bench.bad("write_file", json!({ "path": path, "content": "x" })).await, want);
    }
    assert_eq!(bench.names(), ["file", "folder"]);
    assert_eq!(std::fs::read_to_string(bench.path().join("file")).unwrap(), "kept");
}

/// Each kind of protected file, and what the model does instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "AGENTS.md",
        "programs obey it unasked, so only the person may write it, not by commands either. Give its text in your answer, or write \
         it under another name such as AGENTS.md.proposed, and tell the person.",
    ),
    (
        "sub/CLAUDE.md",
        "programs obey it unasked, so only the person may write it, not by commands either. Give its text in your answer, or write \
         it under another name such as sub/CLAUDE.md.proposed, and tell the person.",
    ),
    // Beside it is as closed as itself.
    (
        "roles/root.md",
        "it governs agents, so only the person may write it, not by commands either. Give its text in your answer, or write it \
         under another name such as root.md.proposed, and tell the person.",
    ),
    (
        "node_modules/a.js",
        "a trusted MCP server loads its code from there, so only the person may write it, not by commands either. Tell the person \
         what to install or change there.",
    ),
    (
        ".git/config",
        "it belongs to a git repository, which no file tool writes. Use git by a command; hooks and settings only the person may \
         write.",
    ),
    ("server.py", "an MCP server of the settings runs it, so no agent may touch it. Tell the person what you would change."),
    (
        "data/x",
        "it belongs to the data directory or the configuration of polis, which no agent may touch. Tell the person what you would \
         change.",
    ),
];

#[tokio::test]
async fn what_only_the_person_may_write_is_refused_with_what_to_do_instead_and_nobody_is_asked_first() {
    let bench = bench();
    let root = bench.path().canonicalize().unwrap();
    for (path, _) in REFUSED.iter().chain(&[("plain.md", "")]) {
        bench.put(path, "as it was");
    }
    let list = ProtectedPaths::new(&root).with_hidden([root.join("data")]).with_loaded([root.join("node_modules")]);
    let workspace = Workspace::open(&root).unwrap().with_protected(list.with_scripts([root.join("server.py")]));
    let tools = laid_out(&workspace);
    let flow = |path: &str| WriteFile::new(workspace.clone()).flow(&json!({ "path": path, "content": "x" }).to_string());
    for (path, why) in REFUSED {
        let arguments = json!({ "path": path, "content": "x" }).to_string();
        let said = tools.call("write_file", &arguments, &context()).await.unwrap();
        assert_eq!(&*said.content, format!("error: `{path}` was not written: {why}"));
        assert!(!flow(path).destroys, "{path}: a call that cannot succeed destroys nothing");
    }
    assert!(flow("plain.md").destroys && !flow("new.md").destroys);
    let read = tools.call("read_file", &json!({ "path": "server.py" }).to_string(), &context()).await.unwrap();
    assert_eq!(
        &*read.content,
        "error: `server.py` is a file that an MCP server of the settings runs, which no agent may touch"
    );
}

#[tokio::test]
async fn a_content_that_is_too_long_is_refused() {
    let bench = bench();
    let refused = bench.bad("write_file", json!({ "path": "a", "content": "x".repeat((16 << 20) + 1) })).await;
    assert_eq!(refused, "the arguments cannot be used: content is longer than 16777216 bytes");
    assert!(bench.names().is_empty());
}
