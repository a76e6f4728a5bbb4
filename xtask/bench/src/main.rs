//! `cargo xtask bench`: every figure is measured against a floor in the same run, as a ratio, and held against its goal.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod append;
mod conversations;
mod figures;
mod memory;
mod messages;
mod mock;
mod nodes;
mod opening;
mod pace;
mod postgres;
mod product;
mod runs;
mod server;
mod sides;
mod society;
mod streams;
mod tasks;
mod team;
mod tools;
mod views;
mod workflow;
mod world;
mod writers;
mod years;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use figures::Figures;

/// The same as the program's.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["model", "run"] => mock::serve(mock::run),
        ["model", "team"] => mock::serve(team::reply),
        ["model", "product"] => mock::serve(product::reply),
        ["model", "pace"] => pace::serve(),
        ["mcp"] => tools::serve(),
        ["open", streams, url] => streams::resident(streams, url),
        ["server", kind, dir] => server::serve(kind, dir.as_ref()),
        ["society", agents, dir] => society::live(agents, dir.as_ref()),
        ["resident", what, dir] => memory::resident(what, dir.as_ref()),
        chosen => measure(chosen),
    }
}

/// Measures what is named, or everything, and writes the figures down.
fn measure(chosen: &[&str]) -> Result<()> {
    type Measure = fn(&mut Figures) -> Result<()>;
    let all: [(&str, Measure); 18] = [
        ("append", append::measure),
        ("writers", writers::measure),
        ("postgres", postgres::measure),
        ("nodes", nodes::measure),
        ("runs", runs::measure),
        ("memory", memory::measure),
        ("opening", opening::measure),
        ("messages", messages::measure),
        ("streams", streams::measure),
        ("tools", tools::measure),
        ("workflow", workflow::measure),
        ("society", society::measure),
        ("server", server::measure),
        ("views", views::measure),
        ("conversations", conversations::measure),
        ("tasks", tasks::measure),
        ("years", years::measure),
        ("product", product::measure),
    ];
    if let Some(unknown) = chosen.iter().find(|name| !all.iter().any(|(known, _)| known == *name)) {
        bail!("there is no measurement `{unknown}`; there are: {}", all.map(|(name, _)| name).join(", "));
    }
    let mut figures = Figures::default();
    for (name, measure) in all.into_iter().filter(|(name, _)| chosen.is_empty() || chosen.contains(name)) {
        eprintln!("measuring {name} …");
        measure(&mut figures).with_context(|| format!("measuring {name}"))?;
    }
    println!("{figures}");
    let file = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into())).join("bench.json");
    std::fs::create_dir_all(file.parent().context("it lies in a folder")?)?;
    std::fs::write(&file, figures.json())?;
    println!("written to {}", file.display());
    Ok(())
}
