//! Addresses over which no secret may be sent.

use std::net::IpAddr;

use url::Url;

/// Whether an address is plain http to another machine: whoever is on the way could read what is sent. Loopback is not.
pub fn is_plain_http(address: &str) -> bool {
    let Ok(url) = address.trim().parse::<Url>() else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    url.scheme() == "http" && !is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_to_other_machines_counts() {
        for far in [
            "http://example.org/mcp",
            "HTTP://10.0.0.1",
            "http://127.0.0.1.example.org",
            "http://localhost@example.org/",
            "http://localhost.example.org",
            "http://[::ffff:10.0.0.1]/",
        ] {
            assert!(is_plain_http(far), "{far}");
        }
        for near in
            ["https://example.org", "http://127.0.0.1:8080/x", "http://127.8.8.8", "http://localhost/", "http://[::1]:1"]
        {
            assert!(!is_plain_http(near), "{near}");
        }
    }
}
