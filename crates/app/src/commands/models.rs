//! `polis models`: which vendors can be asked, and which models one of them has.

use polis_api::ModelVendor;
use polis_providers::{ListedModel, Price};
use serde_json::{Value, json};

use crate::cli::Models;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::transport::Transport;
use crate::{out, wiring};

pub(crate) async fn models(config: &Config, args: &Models) -> Result<Exit, CliError> {
    match &args.vendor {
        Some(vendor) => of_vendor(config, vendor, args.json).await,
        None => list_all(config, args.json).await,
    }
}

async fn list_all(config: &Config, json: bool) -> Result<Exit, CliError> {
    let listed = match Transport::running(config).await {
        Some(transport) => transport.api().models().await?,
        None => {
            let models = wiring::models(config).await?;
            let mut listed = wiring::host_settings(&models).models().await;
            // The settings of this machine are no secret to a person on it; the API leaves their addresses out.
            let configured = listed.vendors.iter_mut().filter(|vendor| config.providers.contains_key(&vendor.name));
            configured.for_each(|vendor| vendor.address = models.address(&vendor.name).map(str::to_owned));
            listed
        }
    };
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    let offline = if listed.offline { "  (no real model: see polis doctor)" } else { "" };
    out::line(&format!("default  {}{offline}", listed.default))?;
    for ModelVendor { name, ready, needs, address, .. } in listed.vendors {
        let at = address.map(|address| format!(" at {address}")).unwrap_or_default();
        let state = if ready { format!("ready{at}") } else { needs.unwrap_or_default() };
        out::line(&format!("{name:<18} {state}"))?;
    }
    Ok(Exit::Done)
}

async fn of_vendor(config: &Config, vendor: &str, json: bool) -> Result<Exit, CliError> {
    let models = wiring::models(config).await?;
    models.vendor(vendor).map_err(|error| CliError::usage("bad_model", error.to_string()))?;
    let listed = models.list(vendor).await.map_err(|error| CliError::new(error.code(), error.to_string()))?;
    if json {
        let one = |ListedModel { model, window, price }: &ListedModel| {
            let price = price.map(|price| json!({ "input": price.input, "output": price.output }));
            json!({ "model": model, "window": window, "usdPerMillionTokens": price })
        };
        let listed: Vec<Value> = listed.iter().map(one).collect();
        return out::line(&format!("{:#}", json!({ "models": listed }))).map(|()| Exit::Done);
    }
    for ListedModel { model, window, price } in &listed {
        let window = window.map_or_else(String::new, |window| format!("  {window} tokens"));
        out::line(&format!("{model}{window}{}", price.map_or_else(|| "  price unknown".to_owned(), describe_price)))?;
    }
    Ok(Exit::Done)
}

fn describe_price(Price { input, output, .. }: Price) -> String {
    if input == 0.0 && output == 0.0 { "  free".to_owned() } else { format!("  ${input} in, ${output} out a million tokens") }
}
