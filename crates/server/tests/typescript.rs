//! The types that the page is built with are those of the server.

use std::path::Path;

#[test]
fn the_pages_types_are_those_of_the_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/wire.ts");
    let wanted = polis_server::typescript();
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == wanted,
        "web/src/wire.ts is stale; write it anew with UPDATE_WIRE=1 cargo test -p polis-server typescript"
    );
    assert!(wanted.contains("export type Recorded = {") && wanted.contains("\"POST /api/submit\": {"));
}
