//! Logging in at servers over HTTP that want it (OAuth 2.1, as the protocol asks for it).
//!
//! A person logs in once with [`login`]. The tokens are stored in a document, every request carries one, and it is refreshed when it
//! expires. Nothing of them is ever shown or logged.

mod auth_client;
mod challenge;
mod http;
mod login;
mod redirect;
mod stored_login;

use std::fmt;

pub(super) use auth_client::auth_client;
pub(super) use challenge::{Wants, wants};
pub(super) use login::has_authorization;
pub use login::{login, logout};
pub(super) use stored_login::StoredLogin;

/// The folder of the documents that store logins.
pub const LOGINS: &str = "logins/";

/// How we introduce ourselves where a login is given out. Empty is enough for most: we register by ourselves then. All texts
/// may hold `${VARIABLE}`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The name by which we are known there already.
    pub client_id: Option<String>,
    /// What goes with that name, if anything.
    pub client_secret: Option<String>,
    /// An address that describes us, for those who take it instead of a registration.
    pub client_metadata_url: Option<String>,
    /// What to ask for; what the server asks for itself when empty.
    pub scopes: Vec<String>,
    /// The port that the browser is sent back to; any free one when not given.
    pub port: Option<u16>,
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("scopes", &self.scopes).field("port", &self.port).finish_non_exhaustive()
    }
}
