//! How events change memories.

use super::change;
use crate::{BudgetScope, MemoryChange, Spine};

impl Spine {
    /// The cost of a search is booked for the society, the role and the agents, not for the request: that may be answered
    /// before the search ends.
    pub(super) fn change_memories(&mut self, changed: &MemoryChange) {
        self.memories.change(changed);
        let MemoryChange::Embedded { spent, agent, .. } = changed else { return };
        let accounts = agent.as_ref().map(|agent| self.accounts(agent, &"".into())).unwrap_or_default();
        let accounts = accounts.into_iter().filter(|scope| matches!(scope, BudgetScope::Role(_) | BudgetScope::Agent(_)));
        for scope in accounts.chain([BudgetScope::Society]) {
            change(&mut self.ledger, &scope, |account| account.spent = account.spent.plus(*spent));
        }
    }
}
