//! This process as one of several nodes (`--node-listen`): its settings, its socket and its key.

use std::net::{SocketAddr, TcpListener};

use polis_http::peer::PeerKey;
use polis_ports::Hasher;
use serde_json::Value;

use crate::cli::NodeOptions;
use crate::config::parse_listen;
use crate::config_file::ClusterSection;
use crate::error::CliError;
use crate::trust::{Contents, Trust};

/// How the other nodes reach this one.
#[derive(Debug, Clone)]
pub(crate) struct NodeSettings {
    listen: SocketAddr,
    address: Option<String>,
    /// How its name begins.
    pub(crate) name: Option<String>,
}

impl NodeSettings {
    /// The settings of the command line, else of the file. None: this process works alone.
    pub(crate) fn resolve(args: &NodeOptions, file: ClusterSection, has_store: bool) -> Result<Option<Self>, CliError> {
        let given = |flag: &Option<String>, file: Option<String>| flag.clone().or(file).filter(|text| !text.trim().is_empty());
        let bad = |message: &str| CliError::usage("bad_node", message);
        let address = given(&args.node_address, file.address);
        let name = given(&args.node_name, file.name);
        let Some(listen) = given(&args.node_listen, file.listen) else {
            return match address.or(name) {
                Some(_) => Err(bad("a node needs --node-listen, the address at which it listens for the others")),
                None => Ok(None),
            };
        };
        if !has_store {
            return Err(bad("several nodes share a log in PostgreSQL; say which with --store or POLIS_STORE"));
        }
        let listen = parse_listen(&listen)?;
        if listen.ip().is_unspecified() && address.is_none() {
            return Err(bad(
                "--node-listen names no address that others can reach; say with --node-address where they reach it",
            ));
        }
        if address.as_ref().is_some_and(|address| !is_reachable(address)) {
            return Err(bad("--node-address is a host and a port, for example 10.0.0.1:3001"));
        }
        if name.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(bad("--node-name has letters, digits, `-`, `_` and `.`, up to 60"));
        }
        Ok(Some(Self { listen, address, name }))
    }
}

fn is_reachable(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_name(name: &str) -> bool {
    name.len() <= 60 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// The socket and the key of this node.
pub(crate) struct OwnNode {
    pub(crate) socket: TcpListener,
    pub(crate) key: PeerKey,
    /// Where the others reach it.
    pub(crate) address: String,
    pub(crate) name: Option<String>,
    /// A digest of what all nodes should have the same.
    pub(crate) setup: String,
}

impl OwnNode {
    /// Begins to listen for the other nodes.
    pub(crate) fn bind(settings: &NodeSettings, trust: &Trust) -> Result<Self, CliError> {
        let NodeSettings { listen, address, name } = settings.clone();
        let failed = |error: std::io::Error| {
            CliError::new(
                "cannot_listen",
                format!("cannot listen for other nodes on {listen}: {error}; choose another --node-listen"),
            )
        };
        let socket = TcpListener::bind(listen).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let key = PeerKey::generate().map_err(|error| CliError::new("no_randomness", error.to_string()))?;
        let address = address.unwrap_or_else(|| bound.to_string());
        Ok(Self { socket, key, address, name, setup: setup(trust) })
    }
}

/// Digits of the digest that are enough to see a difference.
const DIGITS: usize = 12;

/// A digest of the settings, roles, SOPs, skills and prompts of the folder and of the user, without what is of one node.
fn setup(trust: &Trust) -> String {
    let users = trust.user().map(|user| Contents::scan(user, None, true));
    let mut hasher = Hasher::default();
    for contents in users.iter().chain([trust.contents()]) {
        let mut digests = contents.digests();
        let settings = contents.settings().into_iter();
        digests.extend(settings.filter_map(|(name, settings)| Some((name.to_owned(), without_node(settings)?))));
        for (name, digest) in digests {
            hasher.update(format!("{name} {digest}\0").as_bytes());
        }
    }
    hasher.id().to_string().chars().take(DIGITS).collect()
}

/// Settings without `[cluster]`, as a text.
fn without_node(mut settings: Value) -> Option<String> {
    settings.as_object_mut()?.remove("cluster");
    Some(settings.to_string())
}
