//! Budgets: what is checked before a model call, and what happens when a budget is used up.

use std::sync::Arc;

use super::draft::Draft;
use crate::spine::{OpenKind, Turn};
use crate::{BudgetScope, Budgets, Counted, EffectId, Event, Level, Outcome, Permit, Refusal, Spent, Verdict};

pub(super) fn set(draft: &mut Draft<'_>, budgets: Arc<Budgets>) {
    // Requests for more budget that the new budgets satisfy are answered.
    for (id, turn) in &draft.spine.turns {
        for open in &turn.open {
            let OpenKind::Grant(scopes) = &open.kind else { continue };
            let lacks = |scope: &BudgetScope| {
                let account = draft.spine.ledger.get(scope).copied().unwrap_or_default();
                account.used_up(scope, budgets.of(scope)).next().is_some()
            };
            if !scopes.iter().any(lacks) {
                let (id, outcome) = (EffectId { turn: *id, n: open.n }, Outcome::Verdict(Verdict::yes()));
                draft.push(Some(&turn.thread), Event::EffectEnded { id, outcome, spent: None });
            }
        }
    }
    draft.push(None, Event::BudgetsSet { budgets });
}

/// Checks the limits of a single call.
pub(super) fn check_call(draft: &Draft<'_>, call: Spent) -> Result<(), Refusal> {
    let limit = draft.spine.budgets.call;
    for (of, wanted) in [(Counted::Tokens, call.tokens), (Counted::Cost, call.cost_nanos)] {
        if let Some(limit) = limit.get(of).filter(|limit| wanted > *limit) {
            return Err(Refusal::CallTooLarge { of, wanted, limit });
        }
    }
    Ok(())
}

/// Whether a model call may be made.
pub(super) enum Allowance {
    /// Yes, on these terms.
    May(Option<Permit>),
    /// Only after a person has granted more: these accounts are used up.
    Ask(Vec<Level>),
    /// Not now: reservations of other calls must end first.
    Later,
}

/// Whether a turn may call a model now.
pub(super) fn permit(draft: &Draft<'_>, turn: &Turn, call: Spent) -> Allowance {
    let budgets = &draft.spine.budgets;
    if **budgets == Budgets::default() {
        return Allowance::May(None);
    }
    let (mut near, mut used_up, mut has_room, mut ample) = (Vec::new(), Vec::new(), true, true);
    for scope in draft.spine.accounts(&turn.agent, &turn.task) {
        let budget = budgets.of(&scope);
        if budget.is_open() {
            continue;
        }
        let mut account = draft.spine.ledger.get(&scope).copied().unwrap_or_default();
        account.reserved = account.reserved.plus(draft.reserved());
        used_up.extend(account.used_up(&scope, budget));
        has_room &= account.has_room(&scope, budget, call);
        ample &= account.is_ample(&scope, budget, call);
        near.extend(account.levels(&scope, budget).filter(Level::is_near));
    }
    match (used_up.is_empty(), has_room) {
        (false, _) => Allowance::Ask(used_up),
        (true, true) => {
            let ample = ample && budgets.call.tokens.is_none() && budgets.call.cost_nanos.is_none();
            Allowance::May(Some(Permit { near, time_ms: budgets.call.time_ms, ample }))
        }
        (true, false) => Allowance::Later,
    }
}

/// Grants more to each of these accounts that is used up.
pub(super) fn grant(draft: &mut Draft<'_>, scopes: &[BudgetScope]) {
    for scope in scopes {
        let more = draft.spine.ledger.get(scope).map(|account| account.grant(draft.spine.budgets.of(scope)));
        if let Some(more) = more.filter(|more| *more != Spent::default()) {
            draft.push(None, Event::BudgetGranted { scope: scope.clone(), more });
        }
    }
}
