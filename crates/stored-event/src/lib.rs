//! How stores keep an event, whatever their tables are made of: its checksum, its version, its body packed; and an idle entry.

pub mod body;
mod event;
pub mod idle;
pub mod moving;

pub use event::{Batch, LAST_SEQ, NewRow, Original, REDACTED, StoredEvent, damaged, encode, is_last, is_redacted};
