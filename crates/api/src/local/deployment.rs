//! Which versions of behaviours there are, and which of them open turns need.

use polis_engine::{DeployedTurn, DeployedVersion};

use super::Local;
use crate::{ApiError, BehaviourVersion, Deployment, OpenTurn, Scope};

impl Local {
    /// The versions of behaviours, with the open turns that the caller can see.
    pub async fn deployment(&self) -> Result<Deployment, ApiError> {
        self.caller.needs(Scope::Read)?;
        let versions = self.society.deployment().await?.into_iter().map(version).collect();
        Ok(Deployment { versions })
    }
}

fn version(of: DeployedVersion) -> BehaviourVersion {
    let removable = of.is_removable();
    let DeployedVersion { behaviour, version, is_registered, is_newest, turns } = of;
    let open = |DeployedTurn { id, agent, thread, parked }| OpenTurn { id, agent, thread, parked };
    let turns = turns.into_iter().map(open).collect();
    BehaviourVersion { behaviour, version, registered: is_registered, newest: is_newest, removable, turns }
}
