//! What pages and servers send, read without a network, for the fuzz targets. It is no part of the interface and may change at any
//! time.

use std::net::IpAddr;

use crate::AllowedAddresses;
use crate::fetch;

pub use crate::mcp::fuzzing::{mcp_tools, received};

/// The scheme, host and authority of an address that a model or a page wrote.
pub fn url(text: &str) -> Result<(String, String, String), String> {
    let uri = fetch::read(text)?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    Ok((uri.scheme_str().unwrap_or_default().to_owned(), uri.host().unwrap_or_default().to_owned(), authority))
}

/// Whether a host at an address may be reached.
pub fn permits(allowed: &AllowedAddresses, host: &str, address: IpAddr) -> bool {
    allowed.permits(host, address)
}

/// The readable text of a page.
pub fn html(page: &str) -> String {
    fetch::readable(page)
}

/// The characters of a page.
pub fn characters(content_type: &str, body: &[u8]) -> Result<String, String> {
    fetch::text(content_type, body)
}
