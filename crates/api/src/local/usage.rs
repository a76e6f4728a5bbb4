//! Reading what was spent.

use std::collections::{BTreeMap, BTreeSet};

use polis_domain::{Account, AgentId, BudgetScope, Budgets, ConversationPlace, IdleEntry, Spine, Visibility};

use super::Local;
use crate::{ApiError, Scope, Spending, UsageReport};

/// How many conversations are read at a time.
const PAGE: usize = 1_000;

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
            let accounts = ledger.into_iter().map(|(scope, account)| spending(&spine.budgets, scope, account)).collect();
            UsageReport { budgets: (*spine.budgets).clone(), accounts }
        };
        let mut report = self.society.look(report).await?;
        let known: BTreeSet<_> = report.accounts.iter().map(|spending| spending.scope.clone()).collect();
        let idle = self.idle_accounts().await?.into_iter().filter(|(scope, _)| !known.contains(scope));
        let idle = idle.map(|(scope, account)| spending(&report.budgets, &scope, &account)).collect::<Vec<_>>();
        report.accounts.extend(idle);
        report.accounts.sort_by(|one, other| one.scope.cmp(&other.scope));
        Ok(report)
    }

    /// The accounts of conversations and terminated agents that are not in memory.
    async fn idle_accounts(&self) -> Result<Vec<(BudgetScope, Account)>, ApiError> {
        let mut idle = self.society.idle_terminated().await?;
        let mut after = ConversationPlace::START;
        loop {
            let page = self.society.idle_conversations(after, PAGE).await?;
            let last = page.last().and_then(|(_, entry)| entry.place());
            let is_full = page.len() == PAGE;
            idle.extend(page);
            match last.filter(|_| is_full) {
                Some(last) => after = last,
                None => break,
            }
        }
        let account = |(agent, entry): (AgentId, IdleEntry)| Some((BudgetScope::Agent(agent), *entry.account()?));
        Ok(idle.into_iter().filter_map(account).collect())
    }
}

fn spending(budgets: &Budgets, scope: &BudgetScope, account: &Account) -> Spending {
    let levels = account.levels(scope, budgets.of(scope)).collect();
    let Account { spent, reserved, granted } = *account;
    Spending { scope: scope.clone(), spent, reserved, granted, levels }
}
