//! `search_files`.

use serde_json::json;

use crate::bench::bench;

#[tokio::test]
async fn every_line_is_found_with_its_place_and_counted_per_file() {
    let bench = bench();
    bench.put("a.md", "buy milk\nnothing\nMilk and milk\r\n");
    bench.put("b/c.txt", "milk");
    bench.put("b/d.txt", "bread");
    bench.put("e.bin", b"milk\0\xFF");
    bench.put(".hidden/f.txt", "milk");
    assert_eq!(
        bench.good("search_files", json!({ "text": "milk" })).await,
        "a.md:1: buy milk\na.md:3: Milk and milk\nb/c.txt:1: milk\na.md: 2 times\nb/c.txt: 1 times\n\
         [total: 3 times on 3 lines in 2 of 3 text files; 1 files are no text]"
    );
    assert_eq!(
        bench.good("search_files", json!({ "text": "MILK", "ignore_case": true, "pattern": "*.md" })).await,
        "a.md:1: buy milk\na.md:3: Milk and milk\n[total: 3 times on 2 lines in 1 of 1 text files]"
    );
    assert_eq!(
        bench.good("search_files", json!({ "text": "M*m", "wildcard": true, "path": "a.md" })).await,
        "a.md:3: Milk and milk\n[total: 1 times on 1 lines in 1 of 1 text files]"
    );
    let hidden = bench.good("search_files", json!({ "text": "milk", "hidden": true, "pattern": "f.*" })).await;
    assert!(hidden.starts_with(".hidden/f.txt:1: milk\n"), "{hidden}");
    let nothing = bench.good("search_files", json!({ "text": "cheese", "path": "b" })).await;
    assert_eq!(nothing, "[total: 0 times on 0 lines in 0 of 2 text files]");
    assert_eq!(bench.bad("search_files", json!({ "text": "x", "path": "none" })).await, "error: `none` does not exist");
}

#[tokio::test]
async fn what_is_shown_is_bounded_and_what_is_counted_is_not() {
    let bench = bench();
    bench.put("many.txt", format!("x{}\n", "长".repeat(5_000)).repeat(1_000));
    let found = bench.good("search_files", json!({ "text": "x" })).await;
    assert!(found.len() < 200_000, "{}", found.len());
    assert!(found.ends_with("…\n[cut: these are 200 of 1000 lines]\n[total: 1000 times on 1000 lines in 1 of 1 text files]"));
}

#[tokio::test]
async fn a_regular_expression_is_looked_for_if_it_is_asked_for() {
    let bench = bench();
    bench.put("a.rs", "fn main() {}\nlet x = 12;\nfn other() {}\n");
    assert_eq!(
        bench.good("search_files", json!({ "text": r"^fn \w+|\d{2}", "regex": true })).await,
        "a.rs:1: fn main() {}\na.rs:2: let x = 12;\na.rs:3: fn other() {}\n[total: 3 times on 3 lines in 1 of 1 text files]"
    );
    for bad in [json!({ "text": "(", "regex": true }), json!({ "text": "a", "regex": true, "wildcard": true })] {
        assert!(bench.call("search_files", &bad.to_string()).await.is_err());
    }
}
