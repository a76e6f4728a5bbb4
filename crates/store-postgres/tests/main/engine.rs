//! A society on the log.

use std::sync::Arc;

use polis_testkit::outage;
use tokio::task::block_in_place;

use crate::server::{Logs as _, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_society_works_on_when_its_sessions_were_ended_and_writes_nothing_twice() {
    let test = "engine::a_society_works_on_when_its_sessions_were_ended_and_writes_nothing_twice";
    let Some(server) = Server::own(test) else { return };
    let log = Arc::new(server.log(&server.fresh_schema()).await);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'polis'";
    outage::check(log, || block_in_place(|| drop(server.psql(end)))).await;
}
