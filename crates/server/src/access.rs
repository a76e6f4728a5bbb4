//! Who is let in: a token, and a `Host` and an `Origin` that are ours. Checked before anything else, for every route.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::caller::Caller;
use crate::problem::Problem;

/// A secret that opens the door. It is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// Takes a secret as it stands in its file; none when it is too short to be one.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let plain = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_graphic());
        plain.then(|| Self(text.into()))
    }

    /// The secret, for whoever may have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that tells nothing about where two secrets differ.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// What is checked.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// None lets everybody in who is on this machine.
    pub(crate) token: Option<Token>,
    /// The address that we listen on.
    pub(crate) listen: IpAddr,
}

/// Lets a request pass with the name of who sent it, or says why not.
pub(crate) async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let mut response = match guard.admit(&request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl Guard {
    fn admit(&self, request: &Request) -> Result<Caller, Problem> {
        let headers = request.headers();
        let host = self.check_host(request.uri().authority(), headers)?;
        check_origin(&host, headers)?;
        Ok(self.caller(headers))
    }

    /// A page of somebody else's, whose name was made to point here, still says its own name.
    fn check_host(&self, named: Option<&Authority>, headers: &HeaderMap) -> Result<String, Problem> {
        let mut given = headers.get_all(HOST).iter();
        let host = match (named, given.next(), given.next()) {
            (Some(authority), _, None) => Some(authority.as_str()),
            (None, Some(host), None) => host.to_str().ok(),
            _ => None,
        };
        let host = host.filter(|host| self.is_ours(host));
        host.map(str::to_owned).ok_or_else(|| {
            let detail = "the Host header does not name this server; use the address that it printed at its start";
            Problem::new(StatusCode::FORBIDDEN, "bad_host", detail)
        })
    }

    fn is_ours(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        if authority.as_str().contains('@') {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        // Only names can be made to point elsewhere; who listens for others is reached under any of its addresses.
        address.is_ok_and(|address| address.is_loopback() || address == self.listen || !self.listen.is_loopback())
    }

    fn caller(&self, headers: &HeaderMap) -> Caller {
        let Some(token) = &self.token else { return Caller::owner() };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if given.is_some_and(|(_, given)| token.is(given.trim())) { Caller::owner() } else { Caller::unknown() }
    }
}

/// A browser says which page asks. Only our own may, and that one has the same host and port.
fn check_origin(host: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let ours = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        from.is_some_and(|from| from.eq_ignore_ascii_case(host))
    };
    if headers.get_all(ORIGIN).iter().all(ours) {
        return Ok(());
    }
    let detail = "the Origin header names another site; only this server's own page may ask";
    Err(Problem::new(StatusCode::FORBIDDEN, "bad_origin", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let ours = |listen: &str, host: &str| Guard { token: None, listen: listen.parse().unwrap() }.is_ours(host);
        for host in ["127.0.0.1", "127.0.0.1:3000", "localhost:9", "LocalHost", "[::1]:3000", "127.9.9.9:1"] {
            assert!(ours("127.0.0.1", host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:3000", "10.0.0.1", "a@127.0.0.1", "::1x"]
        {
            assert!(!ours("127.0.0.1", host), "{host}");
        }
        assert!(ours("0.0.0.0", "10.0.0.1:3000"));
        assert!(!ours("0.0.0.0", "evil.example"));
    }

    #[test]
    fn a_token_shows_in_no_debug_output_and_is_long() {
        let token = Token::new(" 0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token(***)");
        assert!(token.is("0123456789abcdef0123456789abcdef"));
        assert!(!token.is("0123456789abcdef0123456789abcdee"));
        assert_eq!(Token::new("short"), None);
    }
}
