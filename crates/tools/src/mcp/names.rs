//! The names by which models call tools of servers: `server__tool` (D23), safe for every model API, always the same.

/// Longest name that every model API takes.
const MAX_CHARS: usize = 64;

/// The name of a server's tool. It depends on nothing but the two: servers that come and go do not rename others' tools.
///
/// Where plain joining would not do (strange characters, too long, or a server's name in which the two underscores could
/// be sought in vain) a fingerprint of both names makes it unique again.
pub(super) fn wire_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    let begins_well = server.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_clear = begins_well && !server.contains("__") && !server.ends_with('_') && !tool.is_empty();
    if is_clear && plain.len() <= MAX_CHARS && plain.chars().all(is_safe) {
        return plain;
    }
    let mark = format!("_{:08x}", fingerprint(server, tool));
    let safe = plain.chars().map(|c| if is_safe(c) { c } else { '_' });
    let safe: String = "_".chars().filter(|_| !begins_well).chain(safe).take(MAX_CHARS - mark.len()).collect();
    safe + &mark
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// FNV-1a, folded: the same on every machine and in every version.
pub(super) fn fingerprint(server: &str, tool: &str) -> u32 {
    let bytes = server.bytes().chain([0]).chain(tool.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_plain_where_they_can_be() {
        assert_eq!(wire_name("time", "get_current_time"), "time__get_current_time");
        assert_eq!(wire_name("a", "b__c"), "a__b__c");
        assert_eq!(
            wire_name("my server", "read/file"),
            format!("my_server__read_file_{:08x}", fingerprint("my server", "read/file"))
        );
    }

    #[test]
    fn names_are_safe_unique_and_always_the_same() {
        let long = "x".repeat(80);
        let pairs = [
            ("a", "b"),
            ("a_", "b"),
            ("a", "_b"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("a.b", "c"),
            ("a:b", "c"),
            ("工具", "读"),
            ("工具", "写"),
            ("", "x"),
            ("x", ""),
            ("7", "a"),
            ("-7", "a"),
            (&long, "a"),
            (&long, "b"),
            ("a", &long),
        ];
        let names: BTreeSet<String> = pairs.iter().map(|(server, tool)| wire_name(server, tool)).collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
        assert!(names.iter().all(|name| name.len() <= MAX_CHARS && name.chars().all(is_safe)), "{names:?}");
        assert_eq!(wire_name("工具", "读"), "_______7fc2edc0");
    }
}
