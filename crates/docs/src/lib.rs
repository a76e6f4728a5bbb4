//! The documents of Polis as a static site: which pages there are, in which order, and how they become HTML. Serves nothing itself.
//!
//! [`contents`] is the table of contents, [`Page::find`] a page by its name, and [`site`] all files of the site. Links between pages
//! are relative, nothing is loaded from elsewhere, and the site works from a folder as well as from a server.

mod block;
mod contents;
mod error_code;
mod html;
mod page;
mod site;

pub use block::{Block, Script};
pub use contents::{Section, contents};
pub use error_code::ErrorCode;
pub use html::{Heading, Link, Rendered, render};
pub use page::{Language, Page};
pub use site::{File, site};

/// The pages and pictures, with their paths in the repository.
pub(crate) const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));
