//! Which addresses a fetch may reach: those of the Internet, and those that the operator names. Nothing of this machine, its
//! network or its cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hosts and addresses that may be reached although they are not on the Internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    hosts: Vec<String>,
    blocks: Vec<(IpAddr, u8)>,
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host, address or block of addresses such as 10.0.0.0/8")]
pub struct BadAddressRule(pub String);

impl AllowedAddresses {
    /// Reads hosts (`intranet.example`), addresses (`10.1.2.3`) and blocks of them (`10.0.0.0/8`, `fd00::/8`).
    pub fn read<S: AsRef<str>>(rules: &[S]) -> Result<Self, BadAddressRule> {
        let mut allowed = Self::default();
        for rule in rules.iter().map(AsRef::as_ref) {
            let bad = || BadAddressRule(rule.to_owned());
            let (base, length) = match rule.split_once('/') {
                Some((base, length)) => (base, Some(length.parse::<u8>().map_err(|_| bad())?)),
                None => (rule, None),
            };
            match (base.parse::<IpAddr>(), length) {
                (Ok(base), length) => {
                    let most = if base.is_ipv4() { 32 } else { 128 };
                    let length = length.unwrap_or(most);
                    (length <= most).then_some(()).ok_or_else(bad)?;
                    allowed.blocks.push((base, length));
                }
                (Err(_), None) if is_host(rule) => allowed.hosts.push(rule.to_lowercase()),
                (Err(_), _) => return Err(bad()),
            }
        }
        Ok(allowed)
    }

    /// Whether `host` is allowed by its name.
    pub(crate) fn names(&self, host: &str) -> bool {
        self.hosts.contains(&host.trim_end_matches('.').to_lowercase())
    }

    /// Whether `host`, which is `address`, may be reached.
    pub(crate) fn permits(&self, host: &str, address: IpAddr) -> bool {
        is_public(address)
            || self.names(host)
            || self.blocks.iter().any(|(base, length)| is_within(address.to_canonical(), *base, *length))
    }
}

fn is_host(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    text.len() < 254 && text.split('.').all(part)
}

fn is_within(address: IpAddr, base: IpAddr, length: u8) -> bool {
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or_default();
            (address.to_bits() ^ base.to_bits()) & mask == 0
        }
        (IpAddr::V6(address), IpAddr::V6(base)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or_default();
            (address.to_bits() ^ base.to_bits()) & mask == 0
        }
        _ => false,
    }
}

/// Blocks of IPv4 that are not the Internet, and one address at which a cloud answers its machines.
const CLOSED_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Parts of the global IPv6 that lead elsewhere: tunnels, examples, benchmarks.
const CLOSED_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// What a network without IPv4 uses to reach it.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

fn is_public(address: IpAddr) -> bool {
    let within = |address: Ipv6Addr, (base, length): (Ipv6Addr, u8)| is_within(address.into(), base.into(), length);
    match address.to_canonical() {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|(base, length)| is_within(address.into(), IpAddr::V4(*base), *length)),
        IpAddr::V6(address) if within(address, NAT64) => is_public(Ipv4Addr::from_bits(address.to_bits() as u32).into()),
        IpAddr::V6(address) => within(address, GLOBAL_V6) && !CLOSED_V6.iter().any(|block| within(address, *block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_open() {
        for open in ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(is_public(open.parse().unwrap()), "{open}");
        }
        for closed in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
        ] {
            assert!(!is_public(closed.parse().unwrap()), "{closed}");
        }
    }

    #[test]
    fn what_the_operator_names_is_open_too() {
        let allowed = AllowedAddresses::read(&["Intranet.example", "10.1.0.0/16", "192.168.7.7", "fd00::/8"]).unwrap();
        for (host, address, open) in [
            ("intranet.example", "10.9.9.9", true),
            ("INTRANET.example.", "127.0.0.1", true),
            ("x.intranet.example", "127.0.0.1", false),
            ("other", "10.1.255.1", true),
            ("other", "::ffff:10.1.0.1", true),
            ("other", "10.2.0.1", false),
            ("other", "192.168.7.7", true),
            ("other", "192.168.7.8", false),
            ("other", "fd12::1", true),
            ("other", "fe80::1", false),
            ("other", "8.8.8.8", true),
        ] {
            assert_eq!(allowed.permits(host, address.parse().unwrap()), open, "{host} {address}");
        }
        assert!(AllowedAddresses::read(&["0.0.0.0/0"]).unwrap().permits("x", "10.0.0.1".parse().unwrap()));
        for bad in ["", "10.0.0.0/33", "10.0.0.0/x", "a/8", "a b", "http://a", "fd00::/129", "a..b"] {
            assert_eq!(AllowedAddresses::read(&[bad]), Err(BadAddressRule(bad.to_owned())));
        }
    }
}
