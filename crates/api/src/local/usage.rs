//! Reading what was spent.

use std::collections::BTreeMap;

use polis_domain::{Account, BudgetScope, Spine, Visibility};

use super::Local;
use crate::{ApiError, Scope, Spending, UsageReport};

impl Local {
    /// What was spent on models: by everybody, or by the agents of the caller.
    pub async fn usage(&self) -> Result<UsageReport, ApiError> {
        self.caller.needs(Scope::Read)?;
        let visibility = self.society.visibility().clone();
        let report = move |spine: &Spine| {
            let is_visible = |scope: &BudgetScope| match scope {
                BudgetScope::Agent(agent) => visibility.agent(spine, agent),
                BudgetScope::Task(task) => {
                    let conversation = spine.activities.get(task).and_then(|activity| activity.conversation.as_ref());
                    conversation.is_some_and(|agent| visibility.agent(spine, agent))
                }
                _ => false,
            };
            let accounts = spine.ledger.iter();
            let ledger = accounts.filter(|(scope, _)| visibility == Visibility::Everything || is_visible(scope));
            let ledger = ledger.collect::<BTreeMap<_, _>>();
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
