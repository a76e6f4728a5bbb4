//! The contract that every log keeps.

use std::sync::{Arc, Mutex};

use polis_ports::Log;
use polis_store_local::LocalLog;
use polis_testkit::conformance;

use crate::support::fresh_dir;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_log_keeps_the_contract_of_the_log() {
    let dirs = Mutex::new(Vec::new());
    let fresh = || {
        let dir = fresh_dir();
        let log: Arc<dyn Log> = Arc::new(LocalLog::open(dir.path()).unwrap());
        dirs.lock().unwrap().push(dir);
        log
    };
    conformance::check(fresh).await;
}
