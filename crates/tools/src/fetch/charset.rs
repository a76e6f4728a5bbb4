//! Which pages are text, and their characters.

/// The media type of a page and its characters, if it is text that can be read.
pub(crate) fn text(content_type: &str, body: &[u8]) -> Result<String, String> {
    let lower = content_type.to_lowercase();
    let kind = lower.split(';').next().unwrap_or_default().trim().to_owned();
    let named = |kind: &str| {
        let words = ["json", "xml", "javascript", "yaml", "toml", "ndjson", "x-www-form-urlencoded", "sql", "graphql"];
        kind.starts_with("text/")
            || kind.strip_prefix("application/").is_some_and(|kind| words.iter().any(|word| kind.ends_with(word)))
    };
    let is_unnamed = ["", "application/octet-stream", "binary/octet-stream"].contains(&kind.as_str());
    if !named(&kind) && !is_unnamed {
        return Err(format!("it is no text but {kind}"));
    }
    let charset =
        lower.split("charset=").nth(1).map(|name| name.trim_matches(['"', '\'', ' ']).split(';').next().unwrap_or_default());
    match charset {
        Some("iso-8859-1" | "latin1" | "windows-1252") => Ok(body.iter().map(|byte| char::from(*byte)).collect()),
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => match std::str::from_utf8(body) {
            Ok(text) if !text.contains('\0') => Ok(text.trim_start_matches('\u{feff}').to_owned()),
            // The end may have been cut in the middle of a character.
            Err(error) if !is_unnamed || body.len() - error.valid_up_to() < 4 => Ok(String::from_utf8_lossy(body).into_owned()),
            Ok(_) | Err(_) => Err("it is no text".to_owned()),
        },
        Some(other) => Err(format!("its characters are {other}, which cannot be read here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_read() {
        for (kind, body, want) in [
            ("text/html; charset=utf-8", "数".as_bytes(), Ok("数")),
            ("application/json", b"{}", Ok("{}")),
            ("application/problem+json", b"{}", Ok("{}")),
            ("", b"\xef\xbb\xbfplain", Ok("plain")),
            ("text/plain; charset=\"ISO-8859-1\"", b"\xe9", Ok("é")),
            ("text/plain", b"a\xe6", Ok("a\u{fffd}")),
            ("image/png", b"x", Err("it is no text but image/png")),
            ("application/pdf", b"x", Err("it is no text but application/pdf")),
            ("application/octet-stream", b"\xff\xfe\x00\x01\x02", Err("it is no text")),
            ("text/plain", b"a\0b", Err("it is no text")),
            ("text/html; charset=gbk", b"x", Err("its characters are gbk, which cannot be read here")),
        ] {
            assert_eq!(text(kind, body), want.map(str::to_owned).map_err(str::to_owned), "{kind}");
        }
    }
}
