//! Why there is no response, or not a whole one. Messages name the address that was tried and what to check. They hold no
//! password, header or query.

use std::error::Error;
use std::time::Duration;

/// Why there is no response, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Not a valid address.
    #[error("`{address}` is not an http or https address")]
    BadAddress {
        /// The address, without user and password.
        address: String,
    },
    /// The name has no address.
    #[error(
        "the name {host} was not found ({reason}); check its spelling and the DNS of this machine; behind a proxy set `proxy` in [network] of polis.toml, or HTTPS_PROXY"
    )]
    NameNotFound {
        /// The name.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// Nothing listens at the address.
    #[error("connection refused at {address}; check that the server runs and listens there")]
    Refused {
        /// Host and port.
        address: String,
    },
    /// No connection was made.
    #[error(
        "{address} cannot be reached: {reason}; check the address and the network; behind a proxy set `proxy` in [network] of polis.toml, or HTTPS_PROXY"
    )]
    Unreachable {
        /// Host and port.
        address: String,
        /// The reason that the system gives.
        reason: String,
    },
    /// The server's certificate is not trusted.
    #[error(
        "the certificate of {address} is not trusted by {by}: {reason}; if a private authority issued it, set `ca` in [network] of polis.toml, or SSL_CERT_FILE, to the PEM file of that authority"
    )]
    Untrusted {
        /// Host and port.
        address: String,
        /// Where the trusted certificates come from.
        by: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The certificates that are to be trusted or presented cannot be used.
    #[error("{0}; give a PEM file with certificates")]
    BadCertificates(String),
    /// The proxy cannot reach the server.
    #[error(
        "the proxy {proxy} {reason}; check `proxy` and `no_proxy` in polis.toml, or HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
    )]
    Proxy {
        /// Its address, without user and password.
        proxy: String,
        /// What went wrong.
        reason: String,
    },
    /// The connection ended too early. The server may have received the request.
    #[error("{address} closed the connection before the response was complete: {reason}")]
    Cut {
        /// Host and port.
        address: String,
        /// How it ended.
        reason: String,
    },
    /// Nothing came for too long. The server may have received the request.
    #[error("{address} sent nothing for {} s", .after.as_secs_f32())]
    Silent {
        /// Host and port.
        address: String,
        /// The time limit that passed.
        after: Duration,
    },
    /// The whole response takes too long. The server may have received the request.
    #[error("the response of {address} took more than {} s", .after.as_secs_f32())]
    Late {
        /// Host and port.
        address: String,
        /// The time limit that passed.
        after: Duration,
    },
    /// The response has more bytes than are read.
    #[error("the response of {address} has more than {max_bytes} bytes")]
    TooLong {
        /// Host and port.
        address: String,
        /// How many are read.
        max_bytes: usize,
    },
}

impl HttpError {
    /// Whether no byte of the request can have reached the server: only then may a request with effects be sent again.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::BadAddress { .. }
            | Self::NameNotFound { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::BadCertificates(_)
            | Self::Proxy { .. } => true,
            Self::Cut { .. } | Self::Silent { .. } | Self::Late { .. } | Self::TooLong { .. } => false,
        }
    }
}

/// An error and its causes in one line: the outermost alone says too little.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}

/// The first of an error and its causes that is a `T`.
pub(crate) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(found) = one.downcast_ref() {
            return Some(found);
        }
        error = one.source();
    }
    None
}
