//! `polis models`: which vendors can be asked, and which models one of them has.

use std::time::Duration;

use futures_util::future::join_all;
use polis_api::ModelVendor;
use polis_ports::Capabilities;
use polis_providers::{ListedModel, Price};
use serde_json::{Value, json};

use crate::cli::Models;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::transport::Transport;
use crate::{out, suggest, wiring};

/// How long one vendor may take to list its models, where all of them are shown.
const MAX_LISTING: Duration = Duration::from_secs(3);

/// The word in the place of a vendor that asks how to get a model for this machine.
const PULL: &str = "pull";

const PULL_HINT: &str = "\
A small model that calls tools and runs on this machine:

  1. install Ollama: https://ollama.com/download
  2. ollama pull qwen3:4b        about 2.5 GB; qwen3:1.7b is smaller, qwen3:8b is better
  3. polis run \"hello\"           it is found by itself, or choose it with --model ollama/qwen3:4b

LM Studio, llama.cpp and vLLM are found on their usual ports too.";

pub(crate) async fn models(config: &Config, args: &Models) -> Result<Exit, CliError> {
    match args.vendor.as_deref() {
        Some(PULL) => out::line(PULL_HINT).map(|()| Exit::Done),
        Some(vendor) => of_vendor(config, vendor, args.json).await,
        None => list_all(config, args.json).await,
    }
}

async fn list_all(config: &Config, json: bool) -> Result<Exit, CliError> {
    let here = wiring::models(config).await?;
    let listed = match Transport::running(config).await {
        Some(transport) => transport.api().models().await?,
        None => {
            let mut listed = wiring::host_settings(&here).models().await;
            // The settings of this machine are no secret to a person on it; the API leaves their addresses out.
            let configured = listed.vendors.iter_mut().filter(|vendor| config.providers.contains_key(&vendor.name));
            configured.for_each(|vendor| vendor.address = here.address(&vendor.name).map(str::to_owned));
            listed
        }
    };
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    let offline = if listed.offline { "  (no real model: see polis doctor and polis models pull)" } else { "" };
    out::line(&format!("default  {}{offline}", listed.default))?;
    if let Some(model) = config.embeddings.model.as_deref().filter(|_| config.memory.is_enabled()) {
        out::line(&format!("memory   {model}  (embeddings)"))?;
    }
    let states = join_all(listed.vendors.iter().map(|vendor| state(&here, vendor))).await;
    for (vendor, state) in listed.vendors.iter().zip(states) {
        out::line(&format!("{:<18} {state}", vendor.name))?;
    }
    Ok(Exit::Done)
}

/// What can be said about a vendor. A server of one's own is asked for its models, if it runs.
async fn state(models: &polis_providers::Models, vendor: &ModelVendor) -> String {
    let ModelVendor { name, ready, needs, address, answers, .. } = vendor;
    match (ready, address, answers) {
        (false, _, _) => needs.clone().unwrap_or_default(),
        (true, Some(address), Some(false)) => format!("not running at {address}"),
        (true, Some(address), Some(true)) => match tokio::time::timeout(MAX_LISTING, models.list(name)).await {
            Ok(Ok(listed)) => format!("running at {address}, {}", out::count(listed.len(), "model")),
            Ok(Err(error)) => format!("listens at {address}, but its models cannot be listed: {error}"),
            Err(_) => format!("listens at {address}, but lists no models within {} s", MAX_LISTING.as_secs()),
        },
        (true, Some(address), None) => format!("ready at {address}"),
        (true, None, _) => "ready".to_owned(),
    }
}

async fn of_vendor(config: &Config, vendor: &str, json: bool) -> Result<Exit, CliError> {
    let models = wiring::models(config).await?;
    models.vendor(vendor).map_err(|error| suggest::about_model(&error))?;
    let listed = models.list(vendor).await.map_err(|error| CliError::new(error.code(), error.to_string()))?;
    if json {
        let one = |ListedModel { model, capabilities, price }: &ListedModel| {
            let price = price.map(|price| json!({ "input": price.input, "output": price.output }));
            json!({ "model": model, "window": capabilities.window, "capabilities": capabilities, "usdPerMillionTokens": price })
        };
        let listed: Vec<Value> = listed.iter().map(one).collect();
        return out::line(&format!("{:#}", json!({ "models": listed }))).map(|()| Exit::Done);
    }
    let rows = listed.iter().map(|ListedModel { model, capabilities, price }| {
        [model.clone(), describe_window(capabilities), describe(capabilities), describe_price(*price)]
    });
    table(&rows.collect::<Vec<_>>())
}

/// Writes rows in columns.
fn table(rows: &[[String; 4]]) -> Result<Exit, CliError> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    for [model, window, can, price] in rows {
        let cells = [(model, widths[0]), (window, widths[1]), (can, widths[2])].into_iter().filter(|(_, width)| *width > 0);
        let line: String = cells.map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        out::line(format!("{line}{price}").trim_end())?;
    }
    Ok(Exit::Done)
}

fn describe_window(capabilities: &Capabilities) -> String {
    capabilities.window.map_or_else(String::new, |window| format!("{window} tokens"))
}

/// What a model can do in words; what is not known is left out.
fn describe(capabilities: &Capabilities) -> String {
    let Capabilities { tools, images, pdf, audio, efforts, .. } = capabilities;
    let thinks = efforts.as_ref().map(|efforts| !efforts.is_empty());
    let known = [("tools", *tools), ("images", *images), ("pdf", *pdf), ("audio", *audio), ("thinking", thinks)];
    let words = known.into_iter().filter_map(|(word, can)| match (word, can) {
        (word, Some(true)) => Some(word),
        ("tools", Some(false)) => Some("no tools"),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

fn describe_price(price: Option<Price>) -> String {
    match price {
        None => "price unknown".to_owned(),
        Some(Price { input, output, .. }) if input == 0.0 && output == 0.0 => "free".to_owned(),
        Some(Price { input, output, .. }) => format!("${input} in, ${output} out a million tokens"),
    }
}
