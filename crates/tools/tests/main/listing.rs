//! `list_files`.

use std::os::unix::fs::symlink;

use polis_ports::Toolbox;
use polis_tools::{ProtectedPaths, Workspace};
use serde_json::json;

use crate::bench::{bench, context, laid_out};

#[tokio::test]
async fn a_folder_is_listed_in_order_with_sizes_and_totals() {
    let bench = bench();
    bench.put("b.md", "12345");
    bench.put("a/c.txt", "x");
    bench.put("a/深/d.md", "你好\n");
    bench.put(".git/config", "hidden");
    assert_eq!(bench.good("list_files", json!({})).await, "a/\nb.md (5 bytes)\n[total: 1 files with 5 bytes, 1 folders]");
    assert_eq!(
        bench.good("list_files", json!({ "recursive": true })).await,
        "a/\na/c.txt (1 bytes)\na/深/\na/深/d.md (7 bytes)\nb.md (5 bytes)\n[total: 3 files with 13 bytes, 2 folders]"
    );
    assert_eq!(
        bench.good("list_files", json!({ "path": "./a/", "recursive": true, "pattern": "*.md" })).await,
        "a/深/d.md (7 bytes)\n[total: 1 files with 7 bytes, 0 folders]"
    );
    let hidden = bench.good("list_files", json!({ "hidden": true, "recursive": true, "pattern": "config" })).await;
    assert_eq!(hidden, ".git/config (6 bytes)\n[total: 1 files with 6 bytes, 0 folders]");
    assert_eq!(bench.good("list_files", json!({ "path": ".git" })).await.lines().next(), Some(".git/config (6 bytes)"));
    assert_eq!(
        bench.good("list_files", json!({ "path": "b.md" })).await,
        "b.md (5 bytes)\n[total: 1 files with 5 bytes, 0 folders]",
        "a file alone"
    );
    assert_eq!(bench.bad("list_files", json!({ "path": "none" })).await, "error: `none` does not exist");
}

#[tokio::test]
async fn lines_words_and_characters_are_counted_where_there_is_text() {
    let bench = bench();
    bench.put("a.txt", "one two\n三 four\n");
    bench.put("b.bin", b"\xFF\0");
    bench.put("c.txt", "no end of line");
    assert_eq!(
        bench.good("list_files", json!({ "counts": true })).await,
        "a.txt (17 bytes, 2 lines, 4 words, 15 characters)\nb.bin (2 bytes, not counted)\n\
         c.txt (14 bytes, 1 lines, 4 words, 14 characters)\n\
         [total: 3 files with 33 bytes, 0 folders; 2 text files with 3 lines, 8 words, 29 characters]"
    );
}

#[tokio::test]
async fn a_long_list_goes_on_where_it_was_cut_and_loses_nothing() {
    let bench = bench();
    let names: Vec<String> = (0..1500).map(|n| format!("{n:04}-{}.txt", "x".repeat(40))).collect();
    for name in &names {
        bench.put(name, "");
    }
    let (mut offset, mut listed) = (0, Vec::new());
    for _ in 0..10 {
        let page = bench.good("list_files", json!({ "offset": offset })).await;
        assert!(page.len() < 50_000 && page.ends_with("[total: 1500 files with 0 bytes, 0 folders]"));
        listed.extend(page.lines().filter_map(|line| Some(line.strip_suffix(" (0 bytes)")?.to_owned())));
        let Some((_, next)) = page.split_once("; go on with offset ") else { break };
        offset = next.split(']').next().unwrap().parse().unwrap();
    }
    assert!(offset > 0);
    assert_eq!(listed, names);
    assert_eq!(bench.bad("list_files", json!({ "offset": 1500 })).await, "error: there are only 1500 entries");
}

#[tokio::test]
async fn links_are_named_and_never_followed_and_odd_names_stay_on_their_line() {
    let bench = bench();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "").unwrap();
    symlink(outside.path(), bench.path().join("out")).unwrap();
    symlink(".", bench.path().join("round")).unwrap();
    bench.put("two\nlines", "");
    let listed = bench.good("list_files", json!({ "recursive": true })).await;
    assert_eq!(
        listed,
        "out (a link, not followed)\nround (a link, not followed)\ntwo\\nlines (0 bytes)\n[total: 1 files with 0 bytes, 0 folders]"
    );
}

#[tokio::test]
async fn what_is_closed_is_neither_listed_nor_searched_nor_read_nor_written() {
    let bench = bench();
    bench.put("open.txt", "word");
    bench.put("data/token", "word");
    let hidden = bench.path().canonicalize().unwrap().join("data");
    let protected = ProtectedPaths::new(bench.path()).with_hidden([hidden]);
    let tools = laid_out(&Workspace::open(bench.path()).unwrap().with_protected(protected));
    let closed = "the data directory or the configuration of polis, which no agent may touch";
    for (tool, arguments, want) in [
        ("list_files", json!({ "recursive": true }), "open.txt (4 bytes)\n[total: 1 files with 4 bytes, 0 folders]"),
        ("search_files", json!({ "text": "word" }), "open.txt:1: word\n[total: 1 times on 1 lines in 1 of 1 text files]"),
        ("list_files", json!({ "path": "data" }), &format!("error: `data` is {closed}")),
        ("search_files", json!({ "path": "data", "text": "word" }), &format!("error: `data` is {closed}")),
        ("read_file", json!({ "path": "data/token" }), &format!("error: `data/token` is {closed}")),
        (
            "write_file",
            json!({ "path": "data/new", "content": "" }),
            "error: `data/new` was not written: it belongs to the data directory or the configuration of polis, which no agent may \
             touch. Tell the person what you would change.",
        ),
    ] {
        let result = tools.call(tool, &arguments.to_string(), &context()).await.unwrap();
        assert_eq!(&*result.content, want, "{tool} {arguments}");
    }
    assert!(!bench.path().join("data/new").exists());
}

#[tokio::test]
async fn what_gitignore_leaves_out_is_not_walked_and_is_counted() {
    let bench = bench();
    bench.put(".gitignore", "/target\n*.log\n!keep.log\n[broken\n");
    bench.put("target/debug/a.o", "x");
    bench.put("a.log", "x");
    bench.put("keep.log", "x");
    bench.put("sub/.gitignore", "data/\n!b.log\n");
    bench.put("sub/b.log", "x");
    bench.put("sub/c.log", "x");
    bench.put("sub/data/d.csv", "x");
    bench.put("sub/target", "x");
    assert_eq!(
        bench.good("list_files", json!({ "recursive": true })).await,
        "keep.log (1 bytes)\nsub/\nsub/b.log (1 bytes)\nsub/target (1 bytes)\n\
         [total: 3 files with 3 bytes, 1 folders; 4 entries are left out by .gitignore]"
    );
    assert_eq!(
        bench.good("list_files", json!({ "path": "sub", "recursive": true })).await,
        "sub/b.log (1 bytes)\nsub/target (1 bytes)\n[total: 2 files with 2 bytes, 0 folders; 2 entries are left out by .gitignore]",
        "the rules of the folders above hold"
    );
    for all in [json!({ "recursive": true, "ignored": true }), json!({ "recursive": true, "ignored": true, "pattern": "*" })] {
        let listed = bench.good("list_files", all).await;
        assert!(listed.ends_with("[total: 7 files with 7 bytes, 4 folders]"), "{listed}");
    }
    let listed = bench.good("list_files", json!({})).await;
    assert!(listed.contains("a.log") && listed.contains("target/"), "one folder is shown as it is: {listed}");
    let listed = bench.good("list_files", json!({ "path": "target", "recursive": true })).await;
    assert!(listed.contains("target/debug/a.o"), "a folder that is named is looked into: {listed}");
    let found = bench.good("search_files", json!({ "text": "x" })).await;
    assert!(found.ends_with("in 3 of 3 text files; 4 entries are left out by .gitignore]"), "{found}");
}

#[tokio::test]
async fn gitignore_files_beyond_the_limit_or_outside_the_workspace_do_not_count() {
    let bench = bench();
    bench.put(".gitignore", format!("*.txt\n#{}", "x".repeat(300 << 10)));
    bench.put("a.txt", "x");
    assert!(bench.good("list_files", json!({ "recursive": true })).await.starts_with("a.txt"));
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("rules"), "*.txt\n").unwrap();
    std::fs::remove_file(bench.path().join(".gitignore")).unwrap();
    symlink(outside.path().join("rules"), bench.path().join(".gitignore")).unwrap();
    assert!(bench.good("list_files", json!({ "recursive": true })).await.starts_with("a.txt"));
}
