//! What vendors send, read without a network, for the fuzz targets. It is no part of the interface and may change at any time.

use polis_domain::Reply;

use crate::{Dialect, wire};

/// The reply that the body of a response gives in a dialect, or why it gives none.
pub fn reply(dialect: Dialect, chunks: &[&[u8]]) -> Result<Reply, String> {
    wire::fuzzing::reply(dialect.reader(""), chunks)
}
