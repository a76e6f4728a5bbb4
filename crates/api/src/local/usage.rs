//! Reading what was spent.

use std::collections::BTreeMap;

use polis_domain::{Account, BudgetScope, Spine};

use super::Local;
use crate::{ApiError, Scope, Spending, UsageReport};

impl Local {
    /// What was spent on models.
    pub async fn usage(&self) -> Result<UsageReport, ApiError> {
        self.caller.needs(Scope::Read)?;
        let report = |spine: &Spine| {
            let ledger = spine.ledger.iter().collect::<BTreeMap<_, _>>();
            let accounts = ledger.into_iter().map(|(scope, account)| spending(spine, scope, account)).collect();
            UsageReport { budgets: (*spine.budgets).clone(), accounts }
        };
        Ok(self.society.look(report).await?)
    }
}

fn spending(spine: &Spine, scope: &BudgetScope, account: &Account) -> Spending {
    let levels = account.levels(scope, spine.budgets.of(scope)).collect();
    let Account { spent, reserved, granted } = *account;
    Spending { scope: scope.clone(), spent, reserved, granted, levels }
}
