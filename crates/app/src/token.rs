//! The token of a data directory: made once, readable by its owner only.

use std::fs;
use std::io;
use std::path::Path;

use polis_server::{Token, TokenFile, TokenFileError, write_private};

use crate::error::CliError;

const FILE: &str = "token";
const FURTHER: &str = "tokens.json";

/// The token that is there, if there is one.
pub(crate) fn read(data: &Path) -> Result<Option<Token>, CliError> {
    let path = data.join(FILE);
    // A pipe would be waited for, and a device never ends.
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(bad(&path, "it is not a file; delete it, and the next start creates a new one"));
    }
    match fs::read_to_string(&path) {
        Ok(text) => match Token::new(&text) {
            Some(token) => Ok(Some(token)),
            None => Err(bad(&path, "it does not contain a token; delete it, and the next start creates a new one")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(bad(&path, &error.to_string())),
    }
}

/// The token that is there, or a new one of 256 random bits.
pub(crate) fn read_or_make(data: &Path) -> Result<Token, CliError> {
    if let Some(token) = read(data)? {
        return Ok(token);
    }
    let (path, token) = (data.join(FILE), Token::of_bits(random_bits()?));
    write_private(&path, token.as_str()).map_err(|error| bad(&path, &error.to_string()))?;
    Ok(token)
}

/// 256 random bits.
pub(crate) fn random_bits() -> Result<[u8; 32], CliError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|error| CliError::new("no_randomness", error.to_string()))?;
    Ok(bits)
}

/// The file with the further tokens of a data directory.
pub(crate) fn further(data: &Path) -> TokenFile {
    TokenFile::new(data.join(FURTHER))
}

/// An error of the token file.
pub(crate) fn token_error(error: TokenFileError) -> CliError {
    match error {
        TokenFileError::BadName(_) => CliError::usage(error.code(), error.to_string()),
        _ => CliError::new(error.code(), error.to_string()),
    }
}

fn bad(path: &Path, what: &str) -> CliError {
    CliError::new("bad_token_file", format!("the token {}: {what}", path.display()))
}
