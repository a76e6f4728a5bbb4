//! `edit_file`.

use std::os::unix::fs::{PermissionsExt, symlink};

use polis_domain::{AgentId, TaskId};
use polis_ports::{Caller, Chosen, TextChange, Toolbox};
use polis_tools::{ProtectedPaths, Workspace};
use serde_json::{Value, json};

use crate::bench::{bench, laid_out};

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

#[tokio::test]
async fn what_a_call_would_change_is_shown_and_nothing_is_changed() {
    let bench = bench();
    bench.put("a.txt", "one\ntwo\n");
    bench.put("bytes", [b'x', 0xff]);
    bench.put("AGENTS.md", "be kind\n");
    bench.put("secret.txt", "the key\n");
    let secret = bench.path().join("secret.txt");
    let protected = ProtectedPaths::new(bench.path()).with_hidden([secret]);
    let tools = laid_out(&Workspace::open(bench.path()).unwrap().with_protected(protected));
    let large = "x".repeat(TextChange::MAX_BYTES + 1);
    let (agent, task) = (AgentId::root(), TaskId::from("task"));
    let who = Caller { agent: &agent, role: None, task: &task, chosen: Chosen::default() };
    let changed = |path: &str, before: Option<&str>, after: &str| {
        Ok(TextChange { path: path.to_owned(), before: before.map(str::to_owned), after: after.to_owned() })
    };
    let edit = |path: &str, old: &str| json!({ "path": path, "edits": [{ "old_text": old, "new_text": "2" }] });
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    bench.put("large.txt", "\n".repeat(TextChange::MAX_BYTES + 1));
    let before = bench.names();
    let cases: [(&str, Value, Result<TextChange, &str>); 13] = [
        ("edit_file", edit("a.txt", "two"), changed("a.txt", Some("one\ntwo\n"), "one\n2\n")),
        ("edit_file", edit("a.txt", "ten"), Err("is not in it")),
        ("edit_file", edit("none", "x"), Err("does not exist")),
        ("edit_file", edit("secret.txt", "key"), Err("secret.txt")),
        ("write_file", write("a.txt"), changed("a.txt", Some("one\ntwo\n"), "new\n")),
        ("write_file", write("folder/b.txt"), changed("folder/b.txt", None, "new\n")),
        ("write_file", write("bytes"), Err("is not a text file")),
        ("write_file", write("secret.txt"), Err("secret.txt")),
        ("write_file", write("AGENTS.md"), Err("was not written")),
        ("write_file", write("large.txt"), Err("is larger than 1048576 bytes")),
        ("edit_file", edit("large.txt", "x"), Err("is larger than 1048576 bytes")),
        ("write_file", json!({ "path": "a.txt", "content": large }), Err("would be larger than 1048576 bytes")),
        ("edit_file", json!({ "path": "a.txt", "edits": [{ "old_text": "two", "new_text": large }] }), Err("would be larger")),
    ];
    for (tool, arguments, want) in cases {
        let got = tools.change(tool, &arguments.to_string(), &who).await.unwrap();
        match (&got, want) {
            (Ok(got), Ok(want)) => assert_eq!(*got, want),
            (Err(got), Err(want)) => assert!(got.contains(want) && !got.contains("the key"), "{arguments}: {got}"),
            (got, want) => panic!("{arguments}: {got:?}, not {want:?}"),
        }
    }
    assert_eq!(tools.change("read_file", &json!({ "path": "a.txt" }).to_string(), &who).await, None);
    assert_eq!(tools.change("write_file", "[]", &who).await, None);
    assert_eq!(bench.names(), before);
}
