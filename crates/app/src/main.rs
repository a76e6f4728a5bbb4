//! The `polis` binary.

fn main() {}
