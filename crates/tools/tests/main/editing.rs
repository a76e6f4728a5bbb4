//! `edit_file`.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::bench::bench;

#[tokio::test]
async fn chunks_are_replaced_and_the_file_keeps_its_permissions() {
    let bench = bench();
    bench.put("run.sh", "one\ntwo\nthree\n");
    std::fs::set_permissions(bench.path().join("run.sh"), PermissionsExt::from_mode(0o750)).unwrap();
    let edits = json!([{ "old_text": "two\n", "new_text": "" }, { "old_text": "three", "new_text": "三" }]);
    assert_eq!(bench.good("edit_file", json!({ "path": "run.sh", "edits": edits })).await, "wrote 8 bytes to `run.sh`");
    assert_eq!(std::fs::read_to_string(bench.path().join("run.sh")).unwrap(), "one\n三\n");
    assert_eq!(std::fs::metadata(bench.path().join("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(bench.names(), ["run.sh"]);
}

#[tokio::test]
async fn one_edit_that_cannot_be_made_leaves_all_undone() {
    let bench = bench();
    bench.put("a.txt", "x y y");
    bench.put("real", "x y y");
    bench.put("bytes", [b'x', 0xff]);
    symlink("real", bench.path().join("link")).unwrap();
    for (path, second, want) in [
        ("a.txt", "z", "error: `a.txt`: the old_text of edit 2 is not in it; nothing was written"),
        ("a.txt", "y", "is in it more than once, at lines 1 and 1; take more of its surroundings; nothing was written"),
        ("link", "w", "error: `link` is a symbolic link, not a file; nothing was written"),
        ("bytes", "w", "error: `bytes` is not a text file (no UTF-8); nothing was written"),
        ("none", "w", "error: `none` does not exist; nothing was written"),
        ("new/none", "w", "error: `new/none` does not exist; nothing was written"),
    ] {
        let edits = json!([{ "old_text": "x", "new_text": "w" }, { "old_text": second, "new_text": "" }]);
        let said = bench.bad("edit_file", json!({ "path": path, "edits": edits })).await;
        assert!(said.ends_with(want), "{path}: {said}");
    }
    assert_eq!(bench.names(), ["a.txt", "bytes", "link", "real"]);
    for path in ["a.txt", "real"] {
        assert_eq!(std::fs::read_to_string(bench.path().join(path)).unwrap(), "x y y", "{path}");
    }
}
