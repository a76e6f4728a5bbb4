//! Pages of the Internet: which addresses may be reached, how a page is got, and what of it is text.

mod address;
mod charset;
mod html;
mod page;
mod proxied;

pub use address::{AllowedAddresses, BadAddressRule};
pub(crate) use charset::text;
pub(crate) use html::readable;
pub(crate) use page::{Fetcher, Page, read};
pub use polis_http::{Resolver, SystemResolver};
pub(crate) use proxied::check_proxied;
