//! `polis token`: further tokens for the server, with fewer rights than the owner's. Only hashes of them are kept.

use polis_server::{Scopes, StoredToken, Token, TokenList};
use serde_json::json;

use crate::cli::{TokenCommand, Tokens};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::{out, token};

pub(crate) async fn tokens(config: &Config, args: &Tokens) -> Result<Exit, CliError> {
    if config.url.is_some() {
        let message = "no route of a server makes or revokes tokens; use --data or --store where the server runs, not --url";
        return Err(CliError::usage("bad_url", message));
    }
    if config.store.is_none() && !config.data.is_dir() {
        let message = format!("there is no data directory {}; create one with polis run or polis serve", config.data.display());
        return Err(CliError::new("no_data", message));
    }
    let list = token::list(config).await?;
    match &args.command {
        TokenCommand::New { name, person, scope } => make(&list, name, person.as_deref(), scope, args.json).await,
        TokenCommand::List => print(&list, config, args.json).await,
        TokenCommand::Revoke { name } => {
            let known = list.list().await.map_err(token::token_error)?;
            let meant = |error| token::token_error(error).meant(name, known.iter().map(|token| &*token.name));
            list.revoke(name).await.map_err(meant)?;
            out::note(&format!("polis: token {name} revoked"));
            if name == "owner" {
                // Otherwise it would be the owner's again with the next start.
                token::remove(&config.data)?;
                out::note("polis: remove the file `token` on the other nodes too; the next `polis serve` makes a new one");
            }
            Ok(Exit::Done)
        }
    }
}

async fn make(list: &TokenList, name: &str, person: Option<&str>, scope: &str, as_json: bool) -> Result<Exit, CliError> {
    let scopes: Scopes = scope.parse().map_err(|bad| CliError::usage("bad_scope", format!("{bad}")))?;
    let made = Token::of_bits(token::random_bits()?);
    list.add(name, person, scopes, &made).await.map_err(token::token_error)?;
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

async fn print(list: &TokenList, config: &Config, as_json: bool) -> Result<Exit, CliError> {
    let tokens = list.list().await.map_err(token::token_error)?;
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
        let place = config.store.as_ref().map_or("in the file `token`", |_| "which the nodes share");
        out::note(&format!("polis: there are no tokens but the owner's, {place}; create others with polis token new"));
    }
    Ok(Exit::Done)
}
