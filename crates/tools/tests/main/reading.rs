//! `read_file`.

use serde_json::json;

use crate::bench::bench;

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let bench = bench();
    bench.put("docs/笔记.md", "one\n二\nthree\n");
    assert_eq!(bench.good("read_file", json!({ "path": "docs/笔记.md" })).await, "one\n二\nthree\n");
    assert_eq!(bench.good("read_file", json!({ "path": "./docs//笔记.md", "start_line": 2, "end_line": 2 })).await, "二\n");
    assert_eq!(bench.good("read_file", json!({ "path": "docs/笔记.md", "start_line": null })).await, "one\n二\nthree\n");
    let beyond = bench.bad("read_file", json!({ "path": "docs/笔记.md", "start_line": 9 })).await;
    assert_eq!(beyond, "error: `docs/笔记.md` has 3 lines");
}

#[tokio::test]
async fn what_is_no_text_file_is_refused_politely() {
    let bench = bench();
    bench.put("bytes", b"\xFF\xFE\x00");
    bench.put("nul", b"text\0text");
    std::fs::create_dir(bench.path().join("folder")).unwrap();
    for (path, want) in [
        ("bytes", "error: `bytes` is not a text file (no UTF-8)"),
        ("nul", "error: `nul` is not a text file (no UTF-8)"),
        ("folder", "error: `folder` is a folder, not a file"),
        ("missing", "error: `missing` does not exist"),
        ("bytes/below", "error: `bytes/below` leads through something that is no folder"),
    ] {
        assert_eq!(bench.bad("read_file", json!({ "path": path })).await, want);
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_it_fills_memory() {
    let bench = bench();
    let file = std::fs::File::create(bench.path().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    let refused = bench.bad("read_file", json!({ "path": "huge" })).await;
    assert_eq!(refused, "error: `huge` is larger than 16777216 bytes");
}
