//! `polis archive`: old events take less room and are read, replayed, forked and exported as before.

use serde_json::Value;

use super::support::Home;

#[test]
fn archived_events_are_read_replayed_forked_and_exported_as_before() {
    let home = Home::new();
    home.write("sales.csv", "city,amount\nParis,3\nOslo,5\n");
    let todos = "how many files are here?; what is 31*3; what is the total amount by city in sales.csv?";
    for _ in 0..2 {
        home.polis(&["run", "--strategy", "workflow", todos]).ok();
    }
    let bytes = || std::fs::metadata(home.data().join("polis.db")).unwrap().len();
    let looks = || {
        let chain: Value = serde_json::from_str(&home.polis(&["verify", "--json"]).ok()).unwrap();
        [&["log", "--json"][..], &["show", "root", "--json"], &["conversations", "--json"], &["export"], &["replay", "--json"]]
            .map(|args| home.polis(args).stdout)
            .into_iter()
            .chain([chain["societies"].to_string()])
            .collect::<Vec<_>>()
    };
    let (before, bytes_before) = (looks(), bytes());
    let young: Value = serde_json::from_str(&home.polis(&["archive", "--json"]).ok()).unwrap();
    assert_eq!(young["events"], 0, "nothing is 90 days old");
    let archived: Value = serde_json::from_str(&home.polis(&["archive", "--days", "0", "--json"]).ok()).unwrap();
    assert!(archived["events"].as_u64().unwrap() > 100, "{archived}");
    assert!(bytes() < bytes_before * 3 / 4, "{bytes_before} bytes became {}: {archived}", bytes());
    assert_eq!(looks(), before);
    home.polis(&["fork", "--at", "60", "side"]).ok();
    assert!(home.polis(&["--society", "side", "run", "what is 3 + 4?"]).ok().contains('7'));
    assert!(home.polis(&["run", "--continue", "what is 6 * 7?"]).ok().contains("42"));
    let served = home.serve(&[]);
    let running = home.polis(&["archive", "--days", "0"]);
    running.fails(1, "data_locked");
    assert!(running.stderr.contains("archive_after"), "{}", running.stderr);
    served.stop();
    home.polis(&["--data", "nowhere", "archive"]).fails(1, "no_data");
}

#[test]
fn an_age_that_cannot_be_read_is_refused() {
    let home = Home::new();
    home.write("polis.toml", "[retention]\narchive_after = \"soon\"\n");
    let refused = home.polis(&["log"]);
    assert!(refused.code != 0 && refused.stderr.contains("is not a time"), "{}", refused.stderr);
}
