//! Addresses that models and pages write. What comes through is plain http or https, names one host, and holds no password.

use std::net::IpAddr;

use polis_tools::AllowedAddresses;
use polis_tools::fuzzing::{permits, url};

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "url",
    run,
    words: &[
        "http://",
        "https://",
        "file://",
        "@",
        "#",
        "?",
        "%40",
        "%2f",
        "\\",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        ":80",
        ":99999",
        "user:pass@",
        "localhost",
        "xn--",
        "。",
        "\u{200b}",
        " ",
    ],
};

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let Ok((scheme, host, authority)) = url(text) else { return };
    assert!(matches!(&*scheme, "http" | "https"), "{text:?}");
    let is_plain = |c: char| c.is_ascii_graphic() && !"@%/\\?#<>\"".contains(c);
    assert!(!host.is_empty() && authority.chars().all(is_plain), "{text:?} gives {authority:?}");
    // Whoever looks at the text sees the same host.
    let seen = text.trim().split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let seen = seen.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(seen.eq_ignore_ascii_case(&authority), "{text:?} looks like {seen:?} and goes to {authority:?}");
    // A name that is an address is judged as that address.
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>()
        && address.is_loopback()
    {
        assert!(!permits(&AllowedAddresses::default(), &host, address), "{text:?}");
    }
}
