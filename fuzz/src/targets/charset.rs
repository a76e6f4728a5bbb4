//! Pages as bytes with a type: what is called text has no zero in it, and a type that is none is refused. The first line is the type.

use polis_tools::fuzzing::characters;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "charset",
    run,
    words: &[
        "text/html",
        "; charset=utf-8",
        "charset=gbk",
        "application/json",
        "image/png",
        "iso-8859-1",
        "\"",
        "application/octet-stream",
        "\n",
    ],
};

fn run(input: &[u8]) {
    let (kind, body) = match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[][..]),
    };
    let Ok(kind) = std::str::from_utf8(kind) else { return };
    let read = characters(kind, body);
    if let Ok(text) = &read {
        assert!(text.len() <= body.len() * 3);
        let is_latin = ["iso-8859-1", "latin1", "windows-1252"].iter().any(|name| kind.to_lowercase().contains(name));
        assert!(is_latin || !text.contains('\0') || std::str::from_utf8(body).is_err(), "{kind:?}");
    }
    assert!(!kind.starts_with("image/") || read.is_err());
}
