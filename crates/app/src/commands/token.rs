//! `polis token`: further tokens for the server, with fewer rights than the owner's. Only hashes of them are kept.

use polis_server::{Scopes, StoredToken, Token, TokenFile};
use serde_json::json;

use crate::cli::{TokenCommand, Tokens};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::{out, token};

pub(crate) fn tokens(config: &Config, args: &Tokens) -> Result<Exit, CliError> {
    if !config.data.is_dir() {
        let message = format!("there is no data directory {}; create one with polis run or polis serve", config.data.display());
        return Err(CliError::new("no_data", message));
    }
    let file = token::further(&config.data);
    match &args.command {
        TokenCommand::New { name, person, scope } => make(&file, name, person.as_deref(), scope, args.json),
        TokenCommand::List => list(&file, args.json),
        TokenCommand::Revoke { name } => {
            let known = file.list().map_err(token::token_error)?;
            file.revoke(name).map_err(|error| token::token_error(error).meant(name, known.iter().map(|token| &*token.name)))?;
            out::note(&format!("polis: token {name} revoked"));
            Ok(Exit::Done)
        }
    }
}

fn make(file: &TokenFile, name: &str, person: Option<&str>, scope: &str, as_json: bool) -> Result<Exit, CliError> {
    let scopes: Scopes = scope.parse().map_err(|bad| CliError::usage("bad_scope", format!("{bad}")))?;
    let made = Token::of_bits(token::random_bits()?);
    file.add(name, person, scopes, &made).map_err(token::token_error)?;
    if as_json {
        let person = person.unwrap_or(name);
        let described = json!({ "name": name, "person": person, "scopes": scopes.to_string(), "token": made.as_str() });
        out::line(&described.to_string())?;
    } else {
        out::line(made.as_str())?;
        out::note("polis: it is shown only this once");
    }
    Ok(Exit::Done)
}

fn list(file: &TokenFile, as_json: bool) -> Result<Exit, CliError> {
    let tokens = file.list().map_err(token::token_error)?;
    if as_json {
        let describe = |token: &StoredToken| {
            let person = token.person();
            json!({ "name": token.name, "person": person, "scopes": token.scopes })
        };
        let tokens: Vec<_> = tokens.iter().map(describe).collect();
        out::line(&json!({ "tokens": tokens }).to_string())?;
        return Ok(Exit::Done);
    }
    for token in &tokens {
        let person = token.person.as_ref().map(|person| format!("  of {person}")).unwrap_or_default();
        out::line(&format!("{}  {}{person}", token.name, token.scopes))?;
    }
    if tokens.is_empty() {
        out::note("polis: there are no tokens but the owner's, in the file `token`; create others with polis token new");
    }
    Ok(Exit::Done)
}
