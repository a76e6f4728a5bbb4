//! Which hosts a proxy may be asked for. A proxy looks names up itself, so the addresses that it connects to cannot be checked
//! here. Whatever can be recognised as an inside host is refused before the proxy is asked: private addresses in any notation,
//! names of local networks, and names that resolve to a private address on this machine too.

use std::net::IpAddr;
use std::time::Duration;

use polis_http::Resolver;

use super::address::AllowedAddresses;

/// How long this machine may take to resolve a name. Behind a proxy many machines resolve inside names only.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The last part of names that exist in local networks only.
const LOCAL_NAMES: &[&str] =
    &["arpa", "corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost", "private"];

/// Refuses a host that is not on the Internet, as far as that is known here.
pub(crate) async fn check_proxied(
    host: &str,
    port: u16,
    allowed: &AllowedAddresses,
    resolver: &dyn Resolver,
) -> Result<(), String> {
    let closed = |what: &dyn std::fmt::Display| format!("{host} {what}, which is not on the Internet and not allowed here");
    if allowed.names(host) {
        return Ok(());
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let is_open = allowed.permits(host, address);
        return if is_open { Ok(()) } else { Err(closed(&"is a private address")) };
    }
    if is_local_name(host) {
        return Err(closed(&"is a name of a local network"));
    }
    match tokio::time::timeout(LOOKUP_TIMEOUT, resolver.resolve(host, port)).await {
        Ok(Ok(found)) => match found.iter().find(|address| !allowed.permits(host, address.ip())) {
            Some(inside) => Err(closed(&format_args!("is {}", inside.ip()))),
            None => Ok(()),
        },
        // Only the proxy knows the name.
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let Some((_, last)) = host.rsplit_once('.') else { return true };
    // `127.1` and `0x7f.0.0.1` are addresses for many programs.
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    is_number || LOCAL_NAMES.contains(&last)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;

    use async_trait::async_trait;

    use super::*;

    /// Knows one inside name and one outside name.
    struct Names;

    #[async_trait]
    impl Resolver for Names {
        async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            match host {
                "wiki.company.example" => Ok(vec![SocketAddr::from(([10, 1, 2, 3], port))]),
                "open.example" => Ok(vec![SocketAddr::from(([8, 8, 8, 8], port))]),
                _ => Err(io::Error::other("not known")),
            }
        }
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_no_host_that_is_recognisably_inside() {
        let allowed = AllowedAddresses::read(&["build.corp", "10.9.0.0/16"]).unwrap();
        for (host, is_open) in [
            ("open.example", true),
            ("only.the.proxy.example", true),
            ("8.8.8.8", true),
            ("wiki.company.example", false),
            ("127.0.0.1", false),
            ("::1", false),
            ("169.254.169.254", false),
            ("127.1", false),
            ("2130706433", false),
            ("0x7f.0.0.0x1", false),
            ("localhost", false),
            ("printer", false),
            ("metadata.google.internal", false),
            ("metadata.google.internal.", false),
            ("NAS.LOCAL", false),
            ("build.corp", true),
            ("test.corp", false),
            ("10.9.1.1", true),
        ] {
            let checked = check_proxied(host, 443, &allowed, &Names).await;
            assert_eq!(checked.is_ok(), is_open, "{host}: {checked:?}");
        }
    }
}
