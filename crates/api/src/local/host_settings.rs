//! The settings of the program that hosts a society: its models and its policy.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::Local;
use crate::{ApiError, ModelVendor, Models, Policy, PolicyRule, Scope};

/// How long a vendor on this machine may take to accept a connection.
const CONNECT: Duration = Duration::from_millis(300);

/// What the program that hosts a society has set up.
#[derive(Debug, Clone, Default)]
pub struct HostSettings {
    /// The model that answers where none is named.
    pub model: String,
    /// Whether that is the offline model.
    pub is_offline: bool,
    /// What the operator should know about that model, such as why it was chosen; empty if nothing.
    pub note: String,
    /// The vendors of models.
    pub vendors: Vec<Vendor>,
    /// The operator's rules for calls, in order.
    pub policy: Vec<PolicyRule>,
}

/// A vendor of models.
#[derive(Debug, Clone)]
pub struct Vendor {
    /// Its name.
    pub name: String,
    /// What must be set before it can be called, if anything.
    pub needs: Option<String>,
    /// The variable for its key, if only the key is missing.
    pub key: Option<String>,
    /// Its address, if that is on this machine: then it can be seen whether a server listens there.
    pub address: Option<String>,
}

impl Local {
    /// The available models.
    pub async fn models(&self) -> Result<Models, ApiError> {
        self.caller.needs(Scope::Read)?;
        Ok(self.host.models().await)
    }

    /// The operator's rules for calls.
    pub async fn policy(&self) -> Result<Policy, ApiError> {
        self.caller.needs(Scope::Read)?;
        Ok(Policy { rules: self.host.policy.clone() })
    }
}

impl HostSettings {
    /// The available models. Vendors on this machine are probed briefly.
    pub async fn models(&self) -> Models {
        let vendors = join_all(self.vendors.iter().map(Vendor::state)).await;
        Models { default: self.model.clone(), offline: self.is_offline, vendors }
    }
}

impl Vendor {
    async fn state(&self) -> ModelVendor {
        let Self { name, needs, key, address } = self.clone();
        let answers = match &address {
            Some(address) if needs.is_none() => Some(is_listening(address).await),
            _ => None,
        };
        ModelVendor { name, ready: needs.is_none(), needs, key, address, answers }
    }
}

/// Whether anything listens at an address.
async fn is_listening(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    matches!(timeout(CONNECT, TcpStream::connect((host.trim_matches(['[', ']']), port))).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_vendor_on_this_machine_is_tried_and_another_is_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let vendor = |address: Option<String>, needs: Option<&str>| Vendor {
            name: "v".to_owned(),
            needs: needs.map(str::to_owned),
            key: None,
            address,
        };
        let here = Some(format!("http://127.0.0.1:{port}/v1"));
        let answers = |vendor: Vendor| async move { vendor.state().await.answers };
        assert_eq!(answers(vendor(here.clone(), None)).await, Some(true));
        assert_eq!(answers(vendor(here.clone(), Some("a key"))).await, None);
        assert_eq!(answers(vendor(None, None)).await, None);
        drop(listener);
        assert_eq!(answers(vendor(here, None)).await, Some(false));
    }
}
