//! Ways out of the workspace, and none of them leads anywhere.

use std::os::unix::fs::symlink;

use polis_ports::Toolbox;
use polis_tools::{ProtectedPaths, Workspace};
use serde_json::json;

use crate::bench::{Bench, bench, context, laid_out, over};

/// A workspace beside a folder with a secret.
fn beside_a_secret() -> (Bench, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "the secret").unwrap();
    (bench(), outside)
}

/// Neither tool gets out by `path`, and the secret stays as it is.
async fn check(bench: &Bench, outside: &tempfile::TempDir, path: &str, want: &str) {
    let before = bench.names();
    let read = bench.bad("read_file", json!({ "path": path })).await;
    assert!(read.contains(want) && !read.contains("the secret"), "read {path:?}: {read}");
    let written = bench.bad("write_file", json!({ "path": path, "content": "overwritten" })).await;
    assert!(!written.contains("the secret"), "write {path:?}: {written}");
    for (tool, arguments) in [
        ("edit_file", json!({ "path": path, "edits": [{ "old_text": "the", "new_text": "no" }] })),
        ("list_files", json!({ "path": path, "recursive": true, "hidden": true })),
        ("search_files", json!({ "path": path, "text": "secret" })),
    ] {
        let looked = bench.bad(tool, arguments).await;
        assert!(looked.contains(want) && !looked.contains("the secret"), "{tool} {path:?}: {looked}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "the secret", "{path:?}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{path:?} left something outside");
    assert_eq!(bench.names(), before, "{path:?} left something inside");
}

#[tokio::test]
async fn paths_that_say_that_they_lead_out_are_refused() {
    let (bench, outside) = beside_a_secret();
    bench.put("inside/file", "");
    let secret = outside.path().join("secret").display().to_string();
    let up = "../".repeat(20);
    check(&bench, &outside, &secret, "is absolute").await;
    check(&bench, &outside, &format!("/{secret}"), "is absolute").await;
    check(&bench, &outside, "/proc/self/environ", "is absolute").await;
    check(&bench, &outside, &format!("{up}{secret}"), "holds `..`").await;
    check(&bench, &outside, &format!("inside/{up}{secret}"), "holds `..`").await;
    check(&bench, &outside, "inside/../inside/file", "holds `..`").await;
    check(&bench, &outside, "..", "holds `..`").await;
    check(&bench, &outside, "inside/file\0/../../x", "NUL").await;
    for nameless in ["", ".", "./", "inside/", "//"] {
        assert!(bench.bad("read_file", json!({ "path": nameless })).await.contains("path"), "{nameless:?}");
    }
    assert!(bench.bad("read_file", json!({ "path": "x".repeat(5000) })).await.contains("longer than 4096 bytes"));
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    let (bench, outside) = beside_a_secret();
    let at = |name: &str| bench.path().join(name);
    symlink(outside.path().join("secret"), at("file")).unwrap();
    symlink(outside.path(), at("folder")).unwrap();
    symlink(at("folder"), at("twice")).unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    symlink(format!("../{name}"), at("relative")).unwrap();
    symlink("/proc/self/root", at("proc")).unwrap();
    symlink(outside.path().join("nothing"), at("dangling")).unwrap();
    let leads_out = "leads out of the workspace";
    check(&bench, &outside, "file", leads_out).await;
    check(&bench, &outside, "folder/secret", leads_out).await;
    check(&bench, &outside, "twice/secret", leads_out).await;
    check(&bench, &outside, "relative/secret", leads_out).await;
    check(&bench, &outside, &format!("proc{}", outside.path().join("secret").display()), leads_out).await;
    check(&bench, &outside, "dangling", leads_out).await;
    check(&bench, &outside, "folder/new/deep/file", leads_out).await;
}

#[tokio::test]
async fn a_link_that_stays_inside_is_read_through_and_never_written_over() {
    let bench = bench();
    bench.put("real/file", "real");
    symlink("real/file", bench.path().join("link")).unwrap();
    symlink("real", bench.path().join("folder")).unwrap();
    assert_eq!(bench.good("read_file", json!({ "path": "link" })).await, "real");
    let refused = bench.bad("write_file", json!({ "path": "link", "content": "x" })).await;
    assert_eq!(refused, "error: `link` is a symbolic link, not a file; nothing was written");
    bench.good("write_file", json!({ "path": "folder/other", "content": "x" })).await;
    assert_eq!(std::fs::read_to_string(bench.path().join("real/other")).unwrap(), "x");
}

#[tokio::test]
async fn what_is_hidden_stays_hidden_behind_a_link() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("data/below")).unwrap();
    std::fs::write(folder.path().join("data/token"), "the secret").unwrap();
    symlink("data", folder.path().join("link")).unwrap();
    let hidden = folder.path().canonicalize().unwrap().join("data");
    let protected = ProtectedPaths::new(folder.path()).with_hidden([hidden]);
    let tools = laid_out(&Workspace::open(folder.path()).unwrap().with_protected(protected));
    for (tool, arguments) in [
        ("read_file", json!({ "path": "link/token" })),
        ("write_file", json!({ "path": "link/token", "content": "x" })),
        ("write_file", json!({ "path": "link/new", "content": "x" })),
        ("edit_file", json!({ "path": "link/token", "edits": [{ "old_text": "the", "new_text": "no" }] })),
        ("list_files", json!({ "path": "link" })),
        ("search_files", json!({ "path": "link", "text": "secret" })),
    ] {
        let result = tools.call(tool, &arguments.to_string(), &context()).await.unwrap();
        assert!(result.is_error && result.content.contains("no agent may touch"), "{tool} {arguments}: {}", result.content);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("data/token")).unwrap(), "the secret");
    assert_eq!(std::fs::read_dir(folder.path().join("data")).unwrap().count(), 2);
}

#[tokio::test]
async fn links_in_a_circle_end() {
    let bench = bench();
    symlink("b", bench.path().join("a")).unwrap();
    symlink("a", bench.path().join("b")).unwrap();
    assert!(bench.bad("read_file", json!({ "path": "a" })).await.contains("symbolic links"));
}

#[tokio::test]
async fn pipes_and_sockets_are_refused_and_block_nobody() {
    let bench = bench();
    let pipe = bench.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path().join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        let special = format!("error: `{path}` is a pipe, a socket or a device, not a file");
        assert_eq!(bench.bad("read_file", json!({ "path": path })).await, special);
        let written = bench.bad("write_file", json!({ "path": path, "content": "x" })).await;
        assert_eq!(written, format!("{special}; nothing was written"));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_workspace_at_the_very_root_opens_no_window_into_the_kernel() {
    let everything = over(std::path::Path::new("/"));
    for path in ["proc/version", "proc/self/status", "proc/self/root/etc/passwd", "sys/devices/system/cpu/online", "dev/zero"] {
        let result = everything.call("read_file", &json!({ "path": path }).to_string(), &context()).await.unwrap();
        assert!(result.is_error, "{path}: {}", result.content);
    }
}

#[tokio::test]
async fn what_git_runs_is_read_and_never_written() {
    let bench = bench();
    for path in [".git/config", ".git/hooks/pre-commit", "sub/.git/config", "kept/.git"] {
        bench.put(path, "as it was");
    }
    symlink(".git", bench.path().join("link")).unwrap();
    assert!(bench.good("read_file", json!({ "path": ".git/config" })).await.contains("as it was"));
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        ".GIT/hooks/new",
        "link/config",
        "link/hooks/new",
        "sub/.git/config",
        "kept/.git",
        "new/.git",
    ] {
        let written = bench.bad("write_file", json!({ "path": path, "content": "x" })).await;
        assert!(written.contains("which no file tool writes") || written.contains("symbolic link"), "{path}: {written}");
    }
    let edits = json!([{ "old_text": "was", "new_text": "is" }]);
    bench.bad("edit_file", json!({ "path": ".git/config", "edits": edits })).await;
    for path in [".git/config", ".git/hooks/pre-commit", "sub/.git/config", "kept/.git"] {
        assert_eq!(std::fs::read_to_string(bench.path().join(path)).unwrap(), "as it was", "{path}");
    }
    bench.good("write_file", json!({ "path": ".gitignore", "content": "target" })).await;
}
