//! What kind of content something is, as far as its name and its bytes tell.

use std::borrow::Cow;

const KINDS: &[(&str, &str)] = &[
    ("md", "text/markdown; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("zip", "application/zip"),
];

/// The media type of a content whose maker did not say it.
pub fn media_type(name: &str, is_text: bool) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase()).unwrap_or_default();
    let known = KINDS.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind);
    known.unwrap_or(if is_text { crate::spill::PLAIN } else { "application/octet-stream" })
}

/// Whether a part of a content can be a part of a text.
#[cfg(target_os = "linux")]
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    text_of(bytes).is_some()
}

/// The text in a part of a content; none if it is no text. Characters that the part cuts in two are left out, and how many bytes
/// that is at the beginning and at the end is told.
pub(super) fn text_of(bytes: &[u8]) -> Option<(Cow<'_, str>, usize, usize)> {
    let is_middle = |byte: &&u8| **byte & 0xc0 == 0x80;
    let start = bytes.iter().take(3).take_while(is_middle).count();
    let rest = &bytes[start..];
    let (text, cut) = match std::str::from_utf8(rest) {
        Ok(text) => (text, 0),
        // A character that only lacks its end.
        Err(error) if error.error_len().is_none() => {
            let whole = std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
            (whole, rest.len() - error.valid_up_to())
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some((text.into(), start, cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_a_text_is_text_and_anything_else_is_not() {
        let text = "a长b".as_bytes();
        assert_eq!(text_of(text), Some(("a长b".into(), 0, 0)));
        assert_eq!(text_of(&text[..3]), Some(("a".into(), 0, 2)));
        assert_eq!(text_of(&text[2..]), Some(("b".into(), 2, 0)));
        assert_eq!(text_of(b""), Some(("".into(), 0, 0)));
        for binary in [&[0u8, 1][..], &[0xff, 0xfe], b"\x89PNG\r\n\x1a\n\0", &[b'a', 0xc0, b'b']] {
            assert_eq!(text_of(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn an_ending_tells_the_kind() {
        assert_eq!(media_type("Report.MD", true), "text/markdown; charset=utf-8");
        assert_eq!(media_type("picture.png", false), "image/png");
        assert_eq!(
            (media_type("LICENSE", true), media_type("x.bin", false)),
            (crate::spill::PLAIN, "application/octet-stream")
        );
    }
}
