//! Percent-encoding of texts in addresses and forms.

use std::fmt::Write as _;

/// A text of which only letters, digits, `-`, `.`, `_` and `~` stay as they are, and the bytes in `kept`.
pub(crate) fn encoded(text: &str, kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A form as the body of a request.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encoded(name, b""), encoded(value, b""))).collect();
    fields.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_mean_something_else_is_encoded() {
        assert_eq!(encoded("a.b-v1:0/é ~", b""), "a.b-v1%3A0%2F%C3%A9%20~");
        assert_eq!(encoded("/a%3A/b", b"/"), "/a%253A/b");
        assert_eq!(form(&[("grant_type", "urn:x"), ("a", "1&2=3")]), "grant_type=urn%3Ax&a=1%262%3D3");
    }
}
