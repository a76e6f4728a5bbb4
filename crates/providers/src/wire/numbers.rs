//! Numbers in JSON that no parser takes: too large for any type, `NaN`, `Infinity`, or written in a form that JSON does not have.

/// The JSON with such numbers as texts, everything else as it was; none if it has none of them.
pub(super) fn readable(json: &str) -> Option<String> {
    let mut readable = String::with_capacity(json.len() + 16);
    let (mut rest, mut has_changed) = (json, false);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest),
            first if is_of_word(first) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if is_of_word(first) && !is_readable(token) {
            has_changed = true;
            readable.extend(["\"", token, "\""]);
        } else {
            readable.push_str(token);
        }
        rest = after;
    }
    has_changed.then_some(readable)
}

/// The bytes of the text that begins here, with its quotes.
fn text_length(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Whether a character may be part of a number or of a word without quotes.
fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

fn is_readable(token: &str) -> bool {
    matches!(token, "true" | "false" | "null") || serde_json::from_str::<f64>(token).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_parser_takes_becomes_a_text() {
        let many = "9".repeat(400);
        for (json, want) in [
            (r#"{"a":1e400,"b":[-1e400, 2]}"#, Some(r#"{"a":"1e400","b":["-1e400", 2]}"#.to_owned())),
            (r#"{"a":NaN,"b":-Infinity}"#, Some(r#"{"a":"NaN","b":"-Infinity"}"#.to_owned())),
            (&many, Some(format!("\"{many}\""))),
            (r#"[+1,01,.5,1.]"#, Some(r#"["+1","01",".5","1."]"#.to_owned())),
            (r#"{"a":"1e400 \" 1e400","é\\":-1.5e3,"c":[true,false,null]}"#, None),
            (r#"{"a\\":1e400}"#, Some(r#"{"a\\":"1e400"}"#.to_owned())),
            (r#"{"a":"1e400"#, None),
            ("", None),
        ] {
            assert_eq!(readable(json), want, "{json}");
        }
    }
}
