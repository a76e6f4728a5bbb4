//! The nodes that share the log, for an operator.

use polis_ports::Node;

use super::{Local, no_nodes};
use crate::{ApiError, Drain, Drained, ListedNode, NodeList, Scope};

impl Local {
    /// The nodes, by name.
    pub async fn nodes(&self) -> Result<NodeList, ApiError> {
        self.caller.needs(Scope::Admin)?;
        let nodes = self.registry.as_ref().ok_or_else(no_nodes)?.nodes().await?;
        Ok(NodeList { nodes: nodes.into_iter().map(ListedNode::from).collect() })
    }

    /// Has a node give its societies away, or take some again.
    pub async fn drain(&self, node: String, request: Drain) -> Result<Drained, ApiError> {
        self.caller.needs(Scope::Admin)?;
        let draining = !request.undo;
        match self.registry.as_ref().ok_or_else(no_nodes)?.set_draining(&node, draining).await? {
            true => Ok(Drained { node, draining }),
            false => Err(ApiError::new(404, "unknown_node", format!("there is no node {node}; GET /api/nodes lists them"))),
        }
    }
}

impl From<Node> for ListedNode {
    fn from(node: Node) -> Self {
        let Node { name, address, since, lease, is_draining, societies, setup, .. } = node;
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        Self { name, address, since, lease_ms, draining: is_draining, societies, setup }
    }
}
