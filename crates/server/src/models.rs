//! Which models can be asked, and what was spent on them.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use futures_util::future::join_all;
use polis_domain::{Account, Budgets, Level, Scope, Spent, Spine};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::problem::Problem;
use crate::state::{About, SocietyState};

/// Which models can be asked.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Models {
    /// The one that answers where none is named.
    default: String,
    /// Whether that is the offline model.
    offline: bool,
    vendors: Vec<ModelVendor>,
}

/// A vendor of models.
#[derive(Serialize, JsonSchema)]
struct ModelVendor {
    name: String,
    /// Whether it can be asked.
    ready: bool,
    /// What must be set before it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<String>,
    /// The variable that its key is wanted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Where it is, if that is the server's own machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Whether somebody answers at that address just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<bool>,
}

/// How long whoever is on this machine may take to answer the door.
const DOOR: Duration = Duration::from_millis(300);

pub(crate) async fn models(State(state): State<SocietyState>) -> axum::Json<Models> {
    axum::Json(Models::now(&state.about).await)
}

/// Looks whether a vendor on this machine is there.
async fn look(vendor: &mut ModelVendor) {
    if let (true, Some(address)) = (vendor.ready, &vendor.address) {
        vendor.answers = Some(is_there(address).await);
    }
}

/// Whether anything listens at an address.
async fn is_there(address: &str) -> bool {
    let Ok(uri) = address.parse::<Uri>() else { return false };
    let Some(host) = uri.host() else { return false };
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let door = (host.trim_matches(['[', ']']), uri.port_u16().unwrap_or(usual));
    matches!(timeout(DOOR, TcpStream::connect(door)).await, Ok(Ok(_)))
}

impl Models {
    /// What there is just now.
    async fn now(about: &About) -> Self {
        let vendors = about.vendors.iter().map(|vendor| ModelVendor {
            name: vendor.name.clone(),
            ready: vendor.needs.is_none(),
            needs: vendor.needs.clone(),
            key: vendor.key.clone(),
            address: vendor.address.clone(),
            answers: None,
        });
        let mut vendors: Vec<_> = vendors.collect();
        join_all(vendors.iter_mut().map(look)).await;
        Self { default: about.model.clone(), offline: about.is_offline, vendors }
    }
}

impl About {
    /// Which models can be asked, as `/api/models` says it.
    pub async fn models(&self) -> Value {
        serde_json::to_value(Models::now(self).await).unwrap_or_default()
    }
}

/// What was spent on models.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageReport")]
pub(crate) struct Usage {
    budgets: Budgets,
    accounts: Vec<Spending>,
}

/// One account. Of requests only those that are not answered yet have one; what an answered one cost stands in its answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Spending {
    scope: Scope,
    spent: Spent,
    reserved: Spent,
    granted: Spent,
    /// How full it is wherever it has a limit.
    levels: Vec<Level>,
}

pub(crate) async fn usage(State(state): State<SocietyState>) -> Result<axum::Json<Usage>, Problem> {
    let account = |spine: &Spine, scope: &Scope, account: &Account| {
        let levels = account.levels(scope, spine.budgets.of(scope)).collect();
        let Account { spent, reserved, granted } = *account;
        Spending { scope: scope.clone(), spent, reserved, granted, levels }
    };
    let usage = state.society.look(move |spine| {
        let ledger = spine.ledger.iter().collect::<BTreeMap<_, _>>();
        let accounts = ledger.into_iter().map(|(scope, kept)| account(spine, scope, kept)).collect();
        Usage { budgets: (*spine.budgets).clone(), accounts }
    });
    Ok(axum::Json(usage.await?))
}
