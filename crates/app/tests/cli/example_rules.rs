//! The examples keep the rules of names and layout that `polis check` reports.

use serde_json::{Value, json};

use super::support::Home;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[test]
fn the_article_example_keeps_the_rules_two_levels_deep() {
    let report = Home::new().polis(&["check", &format!("{EXAMPLES}/article_creation"), "--json"]);
    let report: Value = serde_json::from_str(&report.ok()).unwrap();
    assert_eq!(report, json!({ "findings": [], "agents": 4 }));
}
