//! Whether the society is well. No scope is needed for it.

use super::Local;
use crate::{ApiError, Health, HealthModel, HealthStatus, HealthStore, Scope, Version};

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Local {
    /// Whether the society is well; a society that is not is no error.
    pub async fn health(&self) -> Health {
        let society = &self.society;
        let head = society.log().readable_head(society.id()).await;
        // A society that has ended, or whose log cannot be read, answers no look.
        let alive = society.look(|_| ()).await;
        let standby = society.standby();
        let is_readable = head.is_ok() && alive.is_ok();
        let store = match (head, alive) {
            (Ok(seq), Ok(())) => {
                HealthStore { ok: standby.is_none(), seq: Some(seq), code: standby.map(|failure| failure.code.to_string()) }
            }
            (Ok(seq), Err(rejected)) => HealthStore { ok: false, seq: Some(seq), code: Some(rejected.code().to_owned()) },
            (Err(error), _) => HealthStore { ok: false, seq: None, code: Some(error.code().to_owned()) },
        };
        let status = match (store.ok, is_readable) {
            (true, _) => HealthStatus::Ok,
            (false, true) => HealthStatus::Degraded,
            (false, false) => HealthStatus::Down,
        };
        let model = HealthModel { name: self.host.model.clone(), offline: self.host.is_offline };
        Health { status, version: VERSION.to_owned(), model, store }
    }

    /// What runs here.
    pub async fn version(&self) -> Result<Version, ApiError> {
        self.caller.needs(Scope::Read)?;
        Ok(Version { name: "polis".to_owned(), version: VERSION.to_owned() })
    }
}
