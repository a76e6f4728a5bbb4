//! `polis drain`, and the options of `polis serve` for one of several nodes.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct NodeOptions {
    /// Be one of several nodes that share the log of --store: the address at which to listen for the others
    ///
    /// Any node takes a request and passes it on to the one that owns the society. Connections between nodes are encrypted, and only
    /// nodes that are in the database's table of nodes are let in.
    #[arg(long, value_name = "ADDRESS", env = "POLIS_NODE_LISTEN")]
    pub(crate) node_listen: Option<String>,

    /// The address at which the other nodes reach this one, as HOST:PORT [default: that of --node-listen]
    #[arg(long, value_name = "ADDRESS", env = "POLIS_NODE_ADDRESS")]
    pub(crate) node_address: Option<String>,

    /// How the name of this node begins [default: the name of the machine]
    #[arg(long, value_name = "NAME", env = "POLIS_NODE_NAME")]
    pub(crate) node_name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// The node, by its name or how that begins; `polis nodes` lists them
    pub(crate) node: String,

    /// Let it take societies again
    #[arg(long)]
    pub(crate) undo: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
