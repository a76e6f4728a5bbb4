//! The log in SQLite: the embedded default.
