//! `write_file`.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::bench::bench;

#[tokio::test]
async fn a_file_is_written_with_its_folders_and_nothing_else() {
    let bench = bench();
    let said = bench.good("write_file", json!({ "path": "a/b/c.txt", "content": "你好" })).await;
    assert_eq!(said, "wrote 6 bytes to `a/b/c.txt`");
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

#[tokio::test]
async fn a_content_that_is_too_long_is_refused() {
    let bench = bench();
    let refused = bench.bad("write_file", json!({ "path": "a", "content": "x".repeat((16 << 20) + 1) })).await;
    assert_eq!(refused, "the arguments cannot be used: content is longer than 16777216 bytes");
    assert!(bench.names().is_empty());
}
