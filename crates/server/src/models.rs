//! Which models can be asked, and what was spent on them.

use std::collections::BTreeMap;

use axum::extract::State;
use polis_domain::{Account, Budgets, Level, Scope, Spent, Spine};
use serde::Serialize;
use serde_json::{Value, json};

use crate::desk::{About, Desk, Vendor};
use crate::problem::Problem;

pub(crate) async fn models(State(desk): State<Desk>) -> axum::Json<Value> {
    axum::Json(desk.about.models())
}

impl About {
    /// Which models can be asked, as `/api/models` says it.
    pub fn models(&self) -> Value {
        let vendor = |vendor: &Vendor| match &vendor.needs {
            None => json!({ "name": vendor.name, "ready": true }),
            Some(needs) => json!({ "name": vendor.name, "ready": false, "needs": needs }),
        };
        let vendors: Vec<Value> = self.vendors.iter().map(vendor).collect();
        json!({ "default": self.model, "offline": self.is_offline, "vendors": vendors })
    }
}

#[derive(Serialize)]
pub(crate) struct Usage {
    budgets: Budgets,
    accounts: Vec<Spending>,
}

/// One account. Of requests only those that are not answered yet have one; what an answered one cost stands in its answer.
#[derive(Serialize)]
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
