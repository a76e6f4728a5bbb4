//! Documents of an organisation: what is imported is what would be exported, and changes are made or refused, never half.

use polis_domain::{Org, Spine};
use serde_json::Value;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "org",
    run,
    words: &[
        "\"roles\":[",
        "\"agents\":[",
        "\"terminations\":[",
        "\"id\":\"root\"",
        "\"roleId\":",
        "\"parentAgentId\":",
        "\"createdAt\":",
        "\"status\":\"active\"",
        "\"behaviour\":\"x\"",
        "\"tools\":[]",
        "\"user\"",
        "\"2026-01-01T00:00:00.000Z\"",
        "\"rolePrompt\":",
    ],
};

fn run(input: &[u8]) {
    let Ok(written) = serde_json::from_slice::<Value>(input) else { return };
    let Ok(org) = Org::read(written) else { return };
    let exported = serde_json::to_value(&org).expect("an organisation is JSON");
    let again = Org::read(exported.clone()).unwrap_or_else(|error| panic!("what was read cannot be read again: {error}"));
    assert_eq!(serde_json::to_value(&again).ok(), Some(exported));
    let spine = Spine::default();
    for root in [false, true] {
        if let Ok(changes) = org.changes(&spine, root) {
            assert!(changes.len() <= org.roles.len() + org.agents.len());
            let named = org.left_out(&spine, root).len();
            assert!(named <= org.roles.len() + org.agents.len() + org.terminations.len() + 1);
        }
    }
}
