//! The token of a data directory: made once, readable by its owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use polis_server::Token;

use crate::trouble::Trouble;

const FILE: &str = "token";

/// The token that is there, if there is one.
pub(crate) fn read(data: &Path) -> Result<Option<Token>, Trouble> {
    let path = data.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => match Token::new(&text) {
            Some(token) => Ok(Some(token)),
            None => Err(bad(&path, "it holds no token; delete it, and the next start makes a new one")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(bad(&path, &error.to_string())),
    }
}

/// The token that is there, or a new one of 256 random bits.
pub(crate) fn read_or_make(data: &Path) -> Result<Token, Trouble> {
    if let Some(token) = read(data)? {
        return Ok(token);
    }
    let path = data.join(FILE);
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|error| bad(&path, &error.to_string()))?;
    let text: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    write(data, &text).map_err(|error| bad(&path, &error.to_string()))?;
    Token::new(&text).ok_or_else(|| bad(&path, "the new token cannot be used"))
}

/// Written aside and renamed, so that a crash leaves no half of a token.
fn write(data: &Path, text: &str) -> io::Result<()> {
    let unfinished = data.join("token.unfinished");
    let mut file = create_private(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(unfinished, data.join(FILE))
}

fn create_private(path: &Path) -> io::Result<File> {
    // One that a crash left behind could have been opened by somebody since.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn bad(path: &Path, what: &str) -> Trouble {
    Trouble::new("bad_token_file", format!("the token {}: {what}", path.display()))
}
