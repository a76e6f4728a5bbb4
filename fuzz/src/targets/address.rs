//! Addresses and the rules that open some of them. Lines are rules; the last line is a host and an address. No address is open that
//! the standard library knows to be private, in any of the forms in which IPv6 carries IPv4, unless a rule names it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polis_tools::AllowedAddresses;
use polis_tools::fuzzing::permits;

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "address",
    run,
    words: &[
        "10.0.0.0/8",
        "127.0.0.1",
        "::ffff:",
        "64:ff9b::",
        "2002:",
        "fd00::/8",
        "/0",
        "/33",
        "host",
        "169.254.169.254",
        "\n",
        " ",
    ],
};

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (rules, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let rules: Vec<&str> = rules.lines().collect();
    let Some((host, address)) = last.split_once(' ') else { return };
    let Ok(address) = address.parse::<IpAddr>() else { return };
    let nothing = permits(&AllowedAddresses::default(), host, address);
    assert!(!(nothing && is_private(address)), "{address} is open");
    let Ok(allowed) = AllowedAddresses::read(&rules) else { return };
    let is_open = permits(&allowed, host, address);
    assert!(!nothing || is_open, "a rule closes nothing");
    let named = rules.iter().any(|rule| names(rule, host, address));
    assert_eq!(is_open, nothing || named, "{rules:?} {host} {address}");
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let [first, second, third, ..] = address.segments();
            let embedded = match (first, second) {
                // Mapped, translated, and 6to4.
                _ if bits >> 32 == 0xffff => Some(bits as u32),
                (0x64, 0xff9b) if (bits >> 32) & ((1 << 64) - 1) == 0 => Some(bits as u32),
                (0x2002, _) => Some((u32::from(second) << 16) | u32::from(third)),
                _ => None,
            };
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || embedded.is_some_and(|bits| is_private_v4(Ipv4Addr::from_bits(bits)))
        }
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation()
        || address.octets()[0] == 0
}

/// Whether a rule names a host or an address, bit by bit.
fn names(rule: &str, host: &str, address: IpAddr) -> bool {
    let (base, length) = match rule.split_once('/') {
        Some((base, length)) => (base, length.parse::<usize>().ok()),
        None => (rule, Some(usize::MAX)),
    };
    let Ok(base) = base.parse::<IpAddr>() else {
        return !rule.is_empty() && host.trim_end_matches('.').to_lowercase() == rule.to_lowercase();
    };
    let address = match address {
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4),
        address => address,
    };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => format!("{:032b}", address.to_bits()),
        IpAddr::V6(address) => format!("{:0128b}", Ipv6Addr::to_bits(address)),
    };
    let (own, others) = (bits(base), bits(address));
    let length = length.unwrap_or(usize::MAX).min(own.len());
    own.len() == others.len() && own[..length] == others[..length]
}
