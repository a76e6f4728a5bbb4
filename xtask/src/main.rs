//! One command per chore.

fn main() {}
