//! Gets a page: looks a name up once, checks every address, connects to exactly those, and follows redirects by hand with the
//! same care each time.
//!
//! Behind a proxy the name is checked instead (`proxied.rs`), because the proxy looks it up.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use polis_http::{Body, Bytes, HeaderMap, HttpClient, HttpOptions, Request, Resolver, Response, StatusCode, Timeouts, Uri};

use super::address::AllowedAddresses;
use super::proxied::check_proxied;

const MAX_REDIRECTS: usize = 5;
const MAX_URL_BYTES: usize = 8 << 10;
/// Most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPTED: &str = "text/html, application/json, text/plain, text/*;q=0.9, application/xml;q=0.8";

/// Gets pages.
pub(crate) struct Fetcher {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) allowed: AllowedAddresses,
    /// Most bytes of a page that are read.
    pub(crate) max_bytes: usize,
    http: HttpClient,
}

/// A page as it came.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it was in the end.
    pub(crate) url: String,
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Whether there was more than is read.
    pub(crate) is_cut: bool,
}

impl Fetcher {
    pub(crate) fn new(network: &HttpOptions, allowed: AllowedAddresses, max_bytes: usize) -> Self {
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT, ..Timeouts::default() };
        let http = HttpClient::new(HttpOptions { timeouts, max_idle_per_host: 0, ..network.clone() });
        let resolver = network.resolver.clone();
        Self { resolver, allowed, max_bytes, http }
    }

    /// Gets the page at `url`; an error says why there is none, in words for the model.
    pub(crate) async fn get(&self, url: &str) -> Result<Page, String> {
        let mut url = read(url)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(&url).await?;
            match next(&url, response.status(), response.headers())? {
                Some(next) => url = next,
                None => return self.whole(&url, response).await,
            }
        }
        Err(format!("there are more than {MAX_REDIRECTS} redirects, the last to {url}"))
    }

    async fn ask(&self, url: &Uri) -> Result<Response<Body>, String> {
        let (host, port) = host_and_port(url)?;
        let is_proxied = self.http.uses_proxy(url).map_err(|error| format!("{url}: {error}"))?;
        let http = if is_proxied {
            check_proxied(host, port, &self.allowed, &*self.resolver).await?;
            self.http.clone()
        } else {
            self.http.with_resolver(Arc::new(Pinned(self.addresses(host, port).await?)))
        };
        let request = Request::get(url)
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_ENCODING, "identity")
            .body(Bytes::new())
            .map_err(|error| format!("{url} cannot be asked for: {error}"))?;
        http.send(request).await.map_err(|error| format!("{url}: {error}"))
    }

    /// Whether a URL names an address that may not be reached. Of a name this is known only when it is looked up.
    pub(crate) fn is_closed(&self, url: &str) -> bool {
        let Ok(url) = url.parse::<Uri>() else { return false };
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        host.parse().is_ok_and(|address| !self.allowed.permits(host, address))
    }

    /// The addresses of a host, looked up once. One that may not be reached spoils them all: it is no honest name.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let found = self.resolver.resolve(host, port).await.map_err(|error| format!("{host} is not known: {error}"))?;
        if found.is_empty() {
            return Err(format!("{host} has no address"));
        }
        match found.iter().find(|address| !self.allowed.permits(host, address.ip())) {
            Some(closed) => Err(format!("{host} is {}, which is not on the Internet and not allowed here", closed.ip())),
            None => Ok(found.into_iter().take(MAX_ADDRESSES).collect()),
        }
    }

    async fn whole(&self, url: &Uri, response: Response<Body>) -> Result<Page, String> {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let (status, content_type, encoding) = (response.status(), header(CONTENT_TYPE), header(CONTENT_ENCODING));
        if !["", "identity"].contains(&encoding.as_str()) {
            return Err(format!("{url} is sent compressed ({encoding}) although that was not asked for"));
        }
        let read = response.into_body().read_start(self.max_bytes).await;
        let (body, is_whole) = read.map_err(|error| format!("{url} broke off: {error}"))?;
        Ok(Page { url: url.to_string(), status, content_type, body, is_cut: !is_whole })
    }
}

fn host_and_port(url: &Uri) -> Result<(&str, u16), String> {
    let host = url.host().unwrap_or_default();
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let port = authority.strip_prefix(host).unwrap_or_default();
    if port.len() > 1 && url.port_u16().is_none() {
        return Err(format!("{url} has a port that is no number from 0 to 65535"));
    }
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    Ok((host.trim_matches(['[', ']']), port))
}

/// Gives out the addresses that were checked, whatever the name is now said to be.
#[derive(Debug, Clone)]
struct Pinned(Vec<SocketAddr>);

#[async_trait]
impl Resolver for Pinned {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.clone())
    }
}

/// Reads an address as models and pages write them: without its fragment, and with other than ASCII characters in its path.
pub(crate) fn read(url: &str) -> Result<Uri, String> {
    let bad = |why: &str| format!("{url:?} {why}");
    if url.len() > MAX_URL_BYTES {
        return Err(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
    }
    let mut spelled = String::new();
    for byte in url.trim().split('#').next().unwrap_or_default().bytes() {
        match byte {
            b'!'..=b'~' if !b"\"<>\\^`{|}".contains(&byte) => spelled.push(char::from(byte)),
            _ => spelled.push_str(&format!("%{byte:02X}")),
        }
    }
    let uri: Uri = spelled.parse().map_err(|_| bad("is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad("is no http or https URL"));
    }
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    if authority.contains('@') {
        return Err(bad("holds a user or a password, which are not sent"));
    }
    if uri.host().is_none_or(str::is_empty) || authority.contains('%') {
        return Err(bad("has no host that can be looked up; write other than ASCII names as xn--"));
    }
    Ok(uri)
}

/// Where a response sends us, if it does.
fn next(url: &Uri, status: StatusCode, headers: &HeaderMap) -> Result<Option<Uri>, String> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(place) = headers.get(LOCATION) else { return Ok(None) };
    let place = String::from_utf8_lossy(place.as_bytes());
    let (scheme, authority) = (url.scheme_str().unwrap_or_default(), url.authority().map_or("", |part| part.as_str()));
    let whole = if place.contains("://") && !place.starts_with(['/', '?', '.']) {
        place.into_owned()
    } else if let Some(rest) = place.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if place.starts_with('/') {
        format!("{scheme}://{authority}{place}")
    } else if place.starts_with('?') {
        format!("{scheme}://{authority}{}{place}", url.path())
    } else {
        let folder = url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{place}")
    };
    read(&whole).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_they_are_written() {
        for (url, want) in [
            ("http://a.example", Ok("http://a.example/")),
            (" https://a.example:8443/x?y=1#part ", Ok("https://a.example:8443/x?y=1")),
            ("http://a.example/数 据", Ok("http://a.example/%E6%95%B0%20%E6%8D%AE")),
            ("http://[::1]:80/", Ok("http://[::1]:80/")),
            ("file:///etc/passwd", Err("is no")),
            ("ftp://a.example/", Err("is no http or https URL")),
            ("/etc/passwd", Err("is no http or https URL")),
            ("a.example", Err("is no http or https URL")),
            ("http://user:pass@a.example/", Err("holds a user")),
            ("http://例子.example/", Err("")),
            ("http:///x", Err("")),
            ("http://a.example\\@b.example/", Err("")),
        ] {
            match (read(url), want) {
                (Ok(got), Ok(want)) => assert_eq!(got.to_string(), want),
                (Err(got), Err(want)) => assert!(got.contains(want), "{url}: {got}"),
                (got, want) => panic!("{url}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn redirects_are_followed_from_where_they_stand() {
        let from: Uri = "http://a.example/x/y?z".parse().unwrap();
        for (place, want) in [
            ("https://b.example/", "https://b.example/"),
            ("//b.example/c", "http://b.example/c"),
            ("/c?u=http://d", "http://a.example/c?u=http://d"),
            ("c", "http://a.example/x/c"),
            ("?q", "http://a.example/x/y?q"),
        ] {
            let headers = HeaderMap::from_iter([(LOCATION, place.parse().unwrap())]);
            assert_eq!(next(&from, StatusCode::FOUND, &headers).unwrap().unwrap().to_string(), want);
            assert_eq!(next(&from, StatusCode::OK, &headers).unwrap(), None);
        }
        let headers = HeaderMap::from_iter([(LOCATION, "file:///etc/passwd".parse().unwrap())]);
        assert!(next(&from, StatusCode::FOUND, &headers).is_err());
        assert_eq!(next(&from, StatusCode::FOUND, &HeaderMap::new()).unwrap(), None);
    }
}
