//! Proxies and certificates from environment variables, read once and passed on as a value.
//!
//! Proxies follow curl: `http_proxy`, `https_proxy` and `all_proxy` name a proxy for plain addresses, encrypted ones, and those
//! that have none of their own; `no_proxy` lists names, addresses and networks that are reached without one. Lower case goes
//! before upper case. `HTTP_PROXY` in upper case is ignored in a CGI program, because there a web client can set it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::HttpError;

/// The variables that count.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Proxy for `http` addresses, from `http_proxy` or `HTTP_PROXY`.
    pub http_proxy: Option<String>,
    /// Proxy for `https` addresses, from `https_proxy` or `HTTPS_PROXY`.
    pub https_proxy: Option<String>,
    /// Proxy for addresses that have no other, from `all_proxy` or `ALL_PROXY`.
    pub all_proxy: Option<String>,
    /// Where no proxy is used, from `no_proxy` or `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// PEM file that takes the place of the system's certificates, from `SSL_CERT_FILE`.
    pub cert_file: Option<PathBuf>,
    /// Folders that take the place of the system's certificates, from `SSL_CERT_DIR`.
    pub cert_dirs: Vec<PathBuf>,
}

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads variables from elsewhere.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |lower: &str, upper: &str| set(lower).or_else(|| set(upper));
        let is_cgi = variable("REQUEST_METHOD").is_some();
        Self {
            http_proxy: if is_cgi { set("http_proxy") } else { either("http_proxy", "HTTP_PROXY") },
            https_proxy: either("https_proxy", "HTTPS_PROXY"),
            all_proxy: either("all_proxy", "ALL_PROXY"),
            no_proxy: either("no_proxy", "NO_PROXY"),
            cert_file: set("SSL_CERT_FILE").map(PathBuf::from),
            cert_dirs: set("SSL_CERT_DIR").map(|dirs| std::env::split_paths(&dirs).collect()).unwrap_or_default(),
        }
    }

    /// The same without proxies.
    pub fn without_proxies(self) -> Self {
        Self { http_proxy: None, https_proxy: None, all_proxy: None, no_proxy: None, ..self }
    }

    /// The proxies by what they are for, without users and passwords.
    pub fn proxies(&self) -> Vec<(&'static str, String)> {
        let all = [("http", &self.http_proxy), ("https", &self.https_proxy), ("other", &self.all_proxy)];
        let shown = |proxy: &String| proxy.trim().rsplit('@').next().unwrap_or_default().to_owned();
        all.into_iter().filter_map(|(scheme, proxy)| Some((scheme, shown(proxy.as_ref()?)))).collect()
    }

    /// The same with this proxy for every address, or the text that names none.
    pub fn with_proxy(self, proxy: &str) -> Result<Self, BadProxy> {
        let proxy = Some(proxy.trim().to_owned()).filter(|proxy| is_proxy(proxy)).ok_or(BadProxy)?;
        Ok(Self { http_proxy: Some(proxy.clone()), https_proxy: Some(proxy), all_proxy: None, ..self })
    }
}

/// A text that names no proxy. It is not quoted, because it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no address of a proxy; write it like http://proxy.example:3128, https://… or socks5h://…")]
pub struct BadProxy;

/// Without the values of the proxies, which may hold passwords.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("has_proxy", &(self.http_proxy.is_some() || self.https_proxy.is_some() || self.all_proxy.is_some()))
            .field("cert_file", &self.cert_file)
            .field("cert_dirs", &self.cert_dirs)
            .finish_non_exhaustive()
    }
}

/// Which proxy leads to an address.
pub(crate) struct Proxies {
    matcher: Matcher,
    /// The variable that is set and names no proxy, for `http` and for `https`.
    bad: [Option<&'static str>; 2],
    has_loopback: bool,
}

impl Proxies {
    /// `has_loopback` says whether addresses of this machine are reached through a proxy too.
    pub(crate) fn new(environment: &Environment, has_loopback: bool) -> Self {
        let Environment { http_proxy, https_proxy, all_proxy, no_proxy, .. } = environment;
        let given = |value: &Option<String>| value.as_deref().unwrap_or_default().trim().to_owned();
        let matcher = Matcher::builder()
            .http(given(http_proxy))
            .https(given(https_proxy))
            .all(given(all_proxy))
            .no(given(no_proxy))
            .build();
        let bad = |own: &Option<String>, name: &'static str| match (own, all_proxy) {
            (Some(own), _) => (!is_proxy(own)).then_some(name),
            (None, Some(all)) => (!is_proxy(all)).then_some("ALL_PROXY"),
            (None, None) => None,
        };
        let bad = [bad(http_proxy, "HTTP_PROXY"), bad(https_proxy, "HTTPS_PROXY")];
        Self { matcher, bad, has_loopback }
    }

    /// The proxy for an address, if one is to be used.
    pub(crate) fn for_target(&self, target: &Uri) -> Result<Option<Intercept>, HttpError> {
        if !self.has_loopback && target.host().is_some_and(is_local) {
            return Ok(None);
        }
        let bad = self.bad[usize::from(target.scheme_str() == Some("https"))];
        match (bad, self.matcher.intercept(target)) {
            (Some(variable), _) => Err(HttpError::Proxy {
                proxy: format!("of the variable {variable}"),
                reason: "has no address that can be used, such as http://proxy.example:3128".to_owned(),
            }),
            (None, proxy) => Ok(proxy),
        }
    }
}

fn is_proxy(value: &str) -> bool {
    let matcher = Matcher::builder().all(value.trim().to_owned()).build();
    let found = matcher.intercept(&Uri::from_static("http://polis.invalid"));
    found.is_some_and(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https" | "socks5" | "socks5h")))
}

/// Whether only this machine reaches the host: it is the machine itself, or one on its own link, as the services are that give
/// machines of a cloud their credentials.
fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_unspecified() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local(),
        Err(_) => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let find = |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
        Environment::from_variables(find)
    }

    /// Where a request for `target` goes first: a proxy's address, nothing, or an error.
    fn route(variables: &[(&str, &str)], target: &'static str) -> Result<Option<String>, String> {
        let proxies = Proxies::new(&environment(variables), false);
        let proxy = proxies.for_target(&Uri::from_static(target)).map_err(|error| error.to_string())?;
        Ok(proxy.map(|proxy| proxy.uri().to_string()))
    }

    #[test]
    fn proxies_are_chosen_as_curl_chooses_them() {
        let check = |variables: &[(&str, &str)], target, want: Option<&str>| {
            assert_eq!(route(variables, target), Ok(want.map(str::to_owned)), "{variables:?} {target}");
        };
        let (http, https) = ("http://a.example/", "https://a.example/");
        check(&[], https, None);
        check(&[("HTTPS_PROXY", "http://p:1")], https, Some("http://p:1/"));
        check(&[("HTTPS_PROXY", "p:1")], https, Some("http://p:1/"));
        check(&[("HTTPS_PROXY", "http://p:1")], http, None);
        check(&[("HTTP_PROXY", "http://p:1")], http, Some("http://p:1/"));
        check(&[("http_proxy", "http://l:1"), ("HTTP_PROXY", "http://u:1")], http, Some("http://l:1/"));
        check(&[("HTTP_PROXY", "http://u:1"), ("REQUEST_METHOD", "GET")], http, None);
        check(&[("http_proxy", "http://l:1"), ("REQUEST_METHOD", "GET")], http, Some("http://l:1/"));
        check(&[("ALL_PROXY", "socks5h://s:1")], https, Some("socks5h://s:1/"));
        check(&[("ALL_PROXY", "http://all:1"), ("HTTPS_PROXY", "http://p:1")], https, Some("http://p:1/"));
        check(&[("HTTPS_PROXY", " ")], https, None);
        let none = |list: &'static str| [("ALL_PROXY", "http://p:1"), ("NO_PROXY", list)];
        check(&none("a.example"), https, None);
        check(&none("example"), https, None);
        check(&none("b.example,ample"), https, Some("http://p:1/"));
        check(&none("*"), http, None);
        check(&none("10.0.0.0/8"), "http://10.1.2.3/", None);
        let machine =
            ["http://127.0.0.1:1/", "http://localhost/", "https://[::1]/", "http://LOCALHOST/", "http://a.localhost:2/"];
        for own in machine.into_iter().chain(["http://169.254.169.254/latest", "http://[fe80::1]/"]) {
            check(&[("ALL_PROXY", "http://p:1")], own, None);
        }
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_an_error_and_not_a_direct_connection() {
        for bad in ["ftp://secret@p:1", "http://", "a b", "socks4://p:1"] {
            let error = route(&[("HTTPS_PROXY", bad)], "https://a.example/").unwrap_err();
            assert!(error.contains("HTTPS_PROXY") && !error.contains("secret"), "{bad}: {error}");
            assert_eq!(route(&[("HTTPS_PROXY", bad)], "http://a.example/"), Ok(None));
        }
        assert!(route(&[("ALL_PROXY", "?")], "http://a.example/").unwrap_err().contains("ALL_PROXY"));
    }

    #[test]
    fn a_configured_proxy_replaces_those_of_the_variables() {
        let set = environment(&[("HTTP_PROXY", "http://p:1"), ("ALL_PROXY", "http://q:1"), ("NO_PROXY", "b.example")]);
        let proxies = Proxies::new(&set.clone().with_proxy(" http://u:secret@own:3 ").unwrap(), false);
        let route = |target| proxies.for_target(&Uri::from_static(target)).unwrap().map(|proxy| proxy.uri().to_string());
        for target in ["http://a.example/", "https://a.example/"] {
            assert_eq!(route(target).as_deref(), Some("http://own:3/"));
        }
        assert_eq!(route("https://b.example/"), None, "the list of exceptions stays");
        let own = set.clone().with_proxy("http://u:secret@own:3").unwrap();
        assert_eq!(own.proxies(), [("http", "own:3".to_owned()), ("https", "own:3".to_owned())]);
        for bad in ["", "ftp://u:secret@p:1", "a b"] {
            let error = set.clone().with_proxy(bad).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn certificates_are_named_by_two_variables() {
        let read = environment(&[("SSL_CERT_FILE", "a.pem"), ("SSL_CERT_DIR", "b"), ("HTTP_PROXY", "http://u:secret@p")]);
        assert_eq!((read.cert_file.clone(), read.cert_dirs.clone()), (Some("a.pem".into()), vec!["b".into()]));
        assert!(!format!("{read:?}").contains("secret"), "{read:?}");
        assert_eq!(environment(&[("SSL_CERT_FILE", "")]), Environment::default());
    }
}
