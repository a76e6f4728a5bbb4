//! Opening, filling and reading back a log in a directory of its own.

use std::path::Path;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};
use polis_store_local::LocalLog;
use polis_testkit::conformance::event;

/// The society of most tests.
pub(crate) fn main_society() -> SocietyId {
    SocietyId::from("main")
}
