//! `now`.

use serde_json::json;

use crate::bench::bench;

#[tokio::test]
async fn the_time_is_the_clocks_in_the_zone_that_was_asked_for() {
    let bench = bench();
    let tokyo = bench.good("now", json!({ "zone": "Asia/Tokyo" })).await;
    assert_eq!(tokyo, "2023-11-15T07:13:20+09:00 Asia/Tokyo Wednesday");
    let here = bench.good("now", json!({})).await;
    assert!(here.starts_with("2023-11-1") && here.contains(":13:20"), "{here}");
    let unknown = bench.bad("now", json!({ "zone": "Atlantis" })).await;
    assert!(unknown.starts_with("error: `Atlantis` is no zone that is known here"), "{unknown}");
    assert!(bench.bad("now", json!({ "zone": "x".repeat(100) })).await.contains("longer than 60 characters"));
}
