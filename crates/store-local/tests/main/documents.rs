//! Documents in files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use polis_ports::Documents;
use polis_store_local::LocalDocuments;
use polis_testkit::document_conformance;

use crate::support::{fresh_dir, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_documents_keep_the_contract_of_documents() {
    let dirs = Mutex::new(Vec::new());
    let fresh = || -> Arc<dyn Documents> {
        let dir = fresh_dir();
        let store = LocalDocuments::new(dir.path());
        dirs.lock().unwrap().push(dir);
        Arc::new(store)
    };
    document_conformance::check(fresh).await;
}

#[test]
fn a_document_is_a_file_for_its_owner_alone() {
    let dir = fresh_dir();
    let store = LocalDocuments::new(dir.path());
    for name in ["tokens.json", "telemetry/main.json"] {
        wait(store.replace(name, None, Some(b"{}"))).unwrap();
        let file = dir.path().join(name);
        assert_eq!(fs::read(&file).unwrap(), b"{}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    // What is no file is not waited for.
    fs::remove_file(dir.path().join("tokens.json")).unwrap();
    fs::create_dir(dir.path().join("tokens.json")).unwrap();
    let refused = wait(store.read("tokens.json")).unwrap_err().to_string();
    assert!(refused.contains("tokens.json"), "{refused}");
}
