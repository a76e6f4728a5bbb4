//! Access tokens: the owner's, made once and readable by its owner only, and the list of further ones.

use std::fs;
use std::io;
use std::path::Path;

use polis_server::{Token, TokenList, TokenListError};
use polis_store_local::write_private;

use crate::config::Config;
use crate::error::CliError;
use crate::{out, store};

const FILE: &str = "token";

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

/// The list of tokens, of the data directory or of all nodes that share the store.
pub(crate) async fn list(config: &Config) -> Result<TokenList, CliError> {
    let documents = store::documents(config).await?;
    Ok(if config.store.is_some() { TokenList::shared(documents) } else { TokenList::new(documents) })
}

/// How a server knows its owner.
pub(crate) enum OwnerToken {
    /// It does not ask.
    Off,
    /// By this token.
    Here(Token),
    /// By a token that another node has made.
    Elsewhere,
}

impl OwnerToken {
    /// The token of the data directory. Where nodes share one, the first of them makes it, and the others have it in `POLIS_TOKEN` or a
    /// copy of the file, or not at all.
    pub(crate) async fn find(config: &Config, list: &TokenList) -> Result<Self, CliError> {
        if config.store.is_none() {
            return read_or_make(&config.data).map(Self::Here);
        }
        let set = of_environment()?;
        let has_owner = list.has_owner().await.map_err(token_error)?;
        let (own, is_made) = match (&set, read(&config.data)?) {
            (Some(token), _) => (Some(token.clone()), false),
            (None, Some(token)) => (Some(token), false),
            (None, None) if has_owner => (None, false),
            (None, None) => (Some(read_or_make(&config.data)?), true),
        };
        if let Some(token) = own
            && list.claim(&token).await.map_err(token_error)?
        {
            return Ok(Self::Here(token));
        }
        if is_made {
            // Another node was faster.
            remove(&config.data)?;
        }
        let place = set.map_or("this node does not have the owner's token", |_| "the token in POLIS_TOKEN is not the owner's");
        out::note(&format!(
            "polis: {place}; it is in the file `token` of the node that made it: set POLIS_TOKEN to it, or make another one with \
             `polis token revoke owner`"
        ));
        Ok(Self::Elsewhere)
    }

    /// What the server is given: one that nobody knows where the shared one counts.
    pub(crate) fn accepted(&self) -> Result<Option<Token>, CliError> {
        Ok(match self {
            Self::Off => None,
            Self::Here(token) => Some(token.clone()),
            Self::Elsewhere => Some(Token::of_bits(random_bits()?)),
        })
    }
}

/// The token in `POLIS_TOKEN`.
pub(crate) fn of_environment() -> Result<Option<Token>, CliError> {
    let Some(text) = std::env::var("POLIS_TOKEN").ok().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    match Token::new(&text) {
        Some(token) => Ok(Some(token)),
        None => {
            let message = "POLIS_TOKEN is not a token; copy the file `token` of the server's data directory";
            Err(CliError::usage("bad_token", message))
        }
    }
}

/// Removes the owner's token of a data directory.
pub(crate) fn remove(data: &Path) -> Result<(), CliError> {
    let path = data.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(bad(&path, &error.to_string())),
        _ => Ok(()),
    }
}

/// An error of the list of tokens.
pub(crate) fn token_error(error: TokenListError) -> CliError {
    match error {
        TokenListError::BadName(_) => CliError::usage(error.code(), error.to_string()),
        _ => CliError::new(error.code(), error.to_string()),
    }
}

fn bad(path: &Path, what: &str) -> CliError {
    CliError::new("bad_token_file", format!("the token {}: {what}", path.display()))
}
