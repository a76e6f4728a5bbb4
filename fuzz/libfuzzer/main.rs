//! Gives the target that `POLIS_FUZZ_TARGET` names the inputs that libFuzzer makes.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use polis_fuzz::{Target, find};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("POLIS_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("POLIS_FUZZ_TARGET names no target: `{name}`"))
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input));
