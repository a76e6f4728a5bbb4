//! `polis nodes` and `polis drain`: the nodes that share a log. They ask the database, so they work whatever nodes run; with `--url`
//! they ask that node.

use std::collections::BTreeSet;

use polis_api::{Drained, ListedNode, NodeList};

use crate::cli::Drain;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::postgres_store::NodeTable;
use crate::purpose::Purpose;
use crate::transport::Transport;

/// Who knows the nodes.
enum Source {
    Table(NodeTable),
    Server(Box<Transport>),
}

impl Source {
    async fn open(config: &Config) -> Result<Self, CliError> {
        match &config.store {
            Some(address) if config.url.is_none() => Ok(Self::Table(NodeTable::open(address).await?)),
            None if config.url.is_none() => Err(CliError::usage(
                "no_nodes",
                "several nodes share a log in PostgreSQL; say which with --store or POLIS_STORE",
            )),
            _ => Ok(Self::Server(Box::new(Transport::open(config, Purpose::Read).await?))),
        }
    }

    async fn nodes(&self) -> Result<Vec<ListedNode>, CliError> {
        match self {
            Self::Table(table) => Ok(table.nodes().await?.into_iter().map(ListedNode::from).collect()),
            Self::Server(server) => Ok(server.api().nodes().await?.nodes),
        }
    }
}

pub(crate) async fn nodes(config: &Config, json: bool) -> Result<Exit, CliError> {
    let nodes = Source::open(config).await?.nodes().await?;
    if json {
        return out::json(&NodeList { nodes }).map(|()| Exit::Done);
    }
    let setups: BTreeSet<_> = nodes.iter().filter(|node| node.lease_ms > 0).map(|node| node.setup.clone()).collect();
    for ListedNode { name, address, lease_ms, draining, societies, setup, .. } in nodes {
        let state = match (lease_ms, draining) {
            (0, _) => "gone".to_owned(),
            (_, true) => "draining".to_owned(),
            (_, false) => format!("lease {} s", lease_ms.div_ceil(1_000)),
        };
        out::line(&format!("{name:<32} {address:<24} societies {societies:<6} setup {setup:<12} {state}"))?;
    }
    if setups.len() > 1 {
        out::note(
            "polis: nodes have different settings, roles, SOPs, skills or prompts (setup), so answers may differ with the node; give all the \
             same files and start them again",
        );
    }
    Ok(Exit::Done)
}

pub(crate) async fn drain(config: &Config, args: &Drain) -> Result<Exit, CliError> {
    let source = Source::open(config).await?;
    let (node, draining) = (named(&source.nodes().await?, &args.node)?, !args.undo);
    match &source {
        Source::Table(table) => drop(table.set_draining(&node, draining).await?),
        Source::Server(server) => drop(server.api().drain(node.clone(), polis_api::Drain { undo: args.undo }).await?),
    }
    if args.json {
        return out::json(&Drained { node, draining }).map(|()| Exit::Done);
    }
    match draining {
        true => out::line(&format!("{node} gives its societies to the other nodes; `polis nodes` shows how many it has left"))?,
        false => out::line(&format!("{node} takes societies again"))?,
    }
    Ok(Exit::Done)
}

/// The node with this name, or the only one whose name begins with it.
fn named(nodes: &[ListedNode], wanted: &str) -> Result<String, CliError> {
    if let Some(node) = nodes.iter().find(|node| node.name == wanted) {
        return Ok(node.name.clone());
    }
    let mut found = nodes.iter().filter(|node| node.lease_ms > 0 && node.name.starts_with(wanted));
    match (found.next(), found.next()) {
        (Some(node), None) => Ok(node.name.clone()),
        (None, _) => Err(CliError::new("unknown_node", format!("there is no node {wanted}; `polis nodes` lists them"))),
        (Some(one), Some(other)) => Err(CliError::new(
            "unknown_node",
            format!(
                "the names of several nodes begin with {wanted}, for example {} and {}; write one of them",
                one.name, other.name
            ),
        )),
    }
}
