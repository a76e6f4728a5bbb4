//! Which models can be asked, and what was spent on them.

use std::collections::BTreeMap;

use axum::extract::State;
use polis_domain::{Account, Budgets, Level, Scope, Spent, Spine};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::desk::{About, Desk};
use crate::problem::Problem;

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
}

pub(crate) async fn models(State(desk): State<Desk>) -> axum::Json<Models> {
    axum::Json(Models::of(&desk.about))
}

impl Models {
    fn of(about: &About) -> Self {
        let vendors = about.vendors.iter().map(|vendor| ModelVendor {
            name: vendor.name.clone(),
            ready: vendor.needs.is_none(),
            needs: vendor.needs.clone(),
        });
        Self { default: about.model.clone(), offline: about.is_offline, vendors: vendors.collect() }
    }
}

impl About {
    /// Which models can be asked, as `/api/models` says it.
    pub fn models(&self) -> Value {
        serde_json::to_value(Models::of(self)).unwrap_or_default()
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

pub(crate) async fn usage(State(desk): State<Desk>) -> Result<axum::Json<Usage>, Problem> {
    let account = |spine: &Spine, scope: &Scope, account: &Account| {
        let levels = account.levels(scope, spine.budgets.of(scope)).collect();
        let Account { spent, reserved, granted } = *account;
        Spending { scope: scope.clone(), spent, reserved, granted, levels }
    };
    let usage = desk.society.look(move |spine| {
        let ledger = spine.ledger.iter().collect::<BTreeMap<_, _>>();
        let accounts = ledger.into_iter().map(|(scope, kept)| account(spine, scope, kept)).collect();
        Usage { budgets: (*spine.budgets).clone(), accounts }
    });
    Ok(axum::Json(usage.await?))
}
