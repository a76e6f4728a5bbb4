//! Budgets for model calls and the accounts that they limit: one for the society, and one for each role, agent and task (P20).
//!
//! Before a call, its estimated cost is reserved in every account that it is charged to; when it has ended, the real cost
//! replaces the reservation. An agent's account includes what all agents below it spend.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AgentId, RoleId, TaskId, Usage};

/// The owner of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetScope {
    /// The whole society.
    Society,
    /// All agents of a role together.
    Role(RoleId),
    /// One agent and all below it.
    Agent(AgentId),
    /// Everything that is done for a person's request.
    Task(TaskId),
}

impl BudgetScope {
    /// The agent whose account it is.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Society | Self::Role(_) | Self::Task(_) => None,
        }
    }
}

/// An amount of each thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Spent {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Billionths of a US dollar.
    pub cost_nanos: u64,
    /// Requests to a vendor, failed ones included.
    pub requests: u64,
    /// Milliseconds of waiting for models.
    pub time_ms: u64,
    /// Of the tokens, those of requests.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Of the tokens of requests, those that came from a vendor's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The most that may be spent; a field that is not set has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Billionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<u64>,
    /// Requests to a vendor, failed ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Milliseconds of waiting for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// All budgets of a society.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Budgets {
    /// The budget of the whole society.
    pub society: Budget,
    /// The budget of each request of a person.
    pub task: Budget,
    /// The budget of each agent, with all below it.
    pub agent: Budget,
    /// The limit of each model call.
    pub call: Budget,
    /// The budget of all agents of a role together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<RoleId, Budget>,
}

/// What was spent, what is reserved, and what a person has granted on top of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Account {
    /// Spent so far.
    pub spent: Spent,
    /// Reserved for calls in progress.
    pub reserved: Spent,
    /// Granted on top of the budget.
    pub granted: Spent,
}

/// How full one account is in one respect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Level {
    /// The owner of an account.
    pub scope: BudgetScope,
    /// What a budget limits.
    pub of: Counted,
    /// Spent and reserved.
    pub used: u64,
    /// The budget, including grants.
    pub limit: u64,
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Counted {
    /// Input and output tokens.
    Tokens,
    /// Cost in US dollars.
    Cost,
    /// Requests to vendors.
    Requests,
    /// Time spent waiting for models.
    Time,
}

/// The reservation of an open call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reserved {
    /// The reserved amount.
    pub amount: Spent,
    /// The accounts that it is reserved in.
    pub scopes: Vec<BudgetScope>,
}

/// The share of a budget, in percent, from which the agent is warned.
const NEAR_PERCENT: u128 = 80;

/// While this many calls of the same size are left, a reply has no token limit.
const AMPLE_CALLS: u64 = 4;

const COUNTED: [Counted; 4] = [Counted::Tokens, Counted::Cost, Counted::Requests, Counted::Time];

impl Spent {
    /// The cost of one request that took `time_ms`.
    pub fn request(usage: Usage, time_ms: u64) -> Self {
        Self { requests: 1, time_ms, ..usage.into() }
    }

    fn get(&self, of: Counted) -> u64 {
        match of {
            Counted::Tokens => self.tokens,
            Counted::Cost => self.cost_nanos,
            Counted::Requests => self.requests,
            Counted::Time => self.time_ms,
        }
    }

    fn zip(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            tokens: join(self.tokens, other.tokens),
            cost_nanos: join(self.cost_nanos, other.cost_nanos),
            requests: join(self.requests, other.requests),
            time_ms: join(self.time_ms, other.time_ms),
            input_tokens: join(self.input_tokens, other.input_tokens),
            cached_tokens: join(self.cached_tokens, other.cached_tokens),
        }
    }

    /// How many of the tokens of requests came from a vendor's cache, in percent; none before the first request.
    pub fn cached_percent(&self) -> Option<u64> {
        let percent = u128::from(self.cached_tokens) * 100 / u128::from(self.input_tokens.max(1));
        (self.input_tokens > 0).then(|| u64::try_from(percent).unwrap_or(100).min(100))
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The difference, at least 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let Usage { input_tokens, cached_tokens, cost_nanos, .. } = usage;
        Self { tokens, cost_nanos, input_tokens, cached_tokens, ..Self::default() }
    }
}

impl Budget {
    /// The limit of one counted thing.
    pub fn get(&self, of: Counted) -> Option<u64> {
        match of {
            Counted::Tokens => self.tokens,
            Counted::Cost => self.cost_nanos,
            Counted::Requests => self.requests,
            Counted::Time => self.time_ms,
        }
    }

    /// Whether it has no limits.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

impl Budgets {
    /// The defaults of the `polis` program for one request of a person: 200 model calls, 4 million tokens, 5 US dollars and
    /// 60 minutes of waiting for models. Nothing else is limited.
    pub fn recommended() -> Self {
        let task = Budget {
            tokens: Some(4_000_000),
            cost_nanos: Some(5_000_000_000),
            requests: Some(200),
            time_ms: Some(60 * 60 * 1_000),
        };
        Self { task, ..Self::default() }
    }

    /// The budget of an account.
    pub fn of(&self, scope: &BudgetScope) -> Budget {
        match scope {
            BudgetScope::Society => self.society,
            BudgetScope::Role(role) => self.roles.get(role).copied().unwrap_or_default(),
            BudgetScope::Agent(_) => self.agent,
            BudgetScope::Task(_) => self.task,
        }
    }
}

impl Account {
    /// The level of everything that has a limit.
    pub fn levels(&self, scope: &BudgetScope, budget: Budget) -> impl Iterator<Item = Level> {
        let (used, granted) = (self.spent.plus(self.reserved), self.granted);
        let scope = scope.clone();
        COUNTED.into_iter().filter_map(move |of| {
            let limit = budget.get(of)?.saturating_add(granted.get(of));
            Some(Level { scope: scope.clone(), of, used: used.get(of), limit })
        })
    }

    /// What is used up.
    pub(crate) fn used_up(&self, scope: &BudgetScope, budget: Budget) -> impl Iterator<Item = Level> {
        let spent = self.spent;
        self.levels(scope, budget).filter(move |level| spent.get(level.of) >= level.limit)
    }

    /// Whether one more call fits beside the reservations. A single call may exceed a budget that is not used up, so a budget
    /// is exceeded by at most one reply and never left unused.
    pub(crate) fn has_room(&self, scope: &BudgetScope, budget: Budget, call: Spent) -> bool {
        let fits = |level: Level| level.used.saturating_add(call.get(level.of)) <= level.limit;
        self.reserved == Spent::default() || self.levels(scope, budget).all(fits)
    }

    /// Whether the remaining tokens and money are several times what a call reserves, so that its reply needs no token limit.
    pub(crate) fn is_ample(&self, scope: &BudgetScope, budget: Budget, call: Spent) -> bool {
        let is_enough = |level: Level| match level.of {
            Counted::Tokens | Counted::Cost => {
                level.limit.saturating_sub(level.used) >= call.get(level.of).saturating_mul(AMPLE_CALLS)
            }
            Counted::Requests | Counted::Time => true,
        };
        self.levels(scope, budget).all(is_enough)
    }

    /// The grant for everything that is used up: one more full budget on top of what is spent.
    pub(crate) fn grant(&self, budget: Budget) -> Spent {
        let more = |of| match budget.get(of) {
            Some(limit) => {
                let (spent, allowed) = (self.spent.get(of), limit.saturating_add(self.granted.get(of)));
                if spent >= allowed { (spent - allowed).saturating_add(limit.max(1)) } else { 0 }
            }
            None => 0,
        };
        Spent {
            tokens: more(Counted::Tokens),
            cost_nanos: more(Counted::Cost),
            requests: more(Counted::Requests),
            time_ms: more(Counted::Time),
            ..Spent::default()
        }
    }
}

impl Level {
    /// How much is used, in percent.
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.used) * 100 / u128::from(self.limit.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    /// The text for an agent. It names no request, because the prompt must be the same in every run.
    pub fn to_agent(&self) -> String {
        let whose = match &self.scope {
            BudgetScope::Society => "the society",
            BudgetScope::Role(_) => "your role",
            BudgetScope::Agent(_) => "you and those above you",
            BudgetScope::Task(_) => "this task",
        };
        format!("{} % of the {} of {whose} are used", self.percent(), self.of.amount(self.limit))
    }

    /// Whether a call that reserves this much is probably the last that fits.
    pub fn ends_with(&self, call: Spent) -> bool {
        self.used.saturating_add(call.get(self.of)) >= self.limit
    }

    /// Whether the agent is warned.
    pub(crate) fn is_near(&self) -> bool {
        u128::from(self.used) * 100 >= u128::from(self.limit) * NEAR_PERCENT
    }
}

impl Counted {
    /// An amount as text for people.
    pub(crate) fn amount(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Requests => format!("{amount} model requests"),
            Self::Cost => format!("${:.4}", amount as f64 / 1e9),
            Self::Time => format!("{} s of model time", amount / 1_000),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match &self.scope {
            BudgetScope::Society => "the society".to_owned(),
            BudgetScope::Role(role) => format!("role `{role}`"),
            BudgetScope::Agent(agent) => format!("agent `{agent}`"),
            BudgetScope::Task(task) => format!("task `{task}`"),
        };
        let used = match self.of {
            Counted::Cost => format!("${:.4}", self.used as f64 / 1e9),
            Counted::Time => format!("{} s", self.used / 1_000),
            Counted::Tokens | Counted::Requests => self.used.to_string(),
        };
        write!(f, "{used} of {} of {whose} are used", self.of.amount(self.limit))
    }
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Society => f.write_str("society"),
            Self::Role(role) => write!(f, "role:{role}"),
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::Task(task) => write!(f, "task:{task}"),
        }
    }
}

/// The text names no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no account; write society, role:NAME, agent:NAME or task:ID")]
pub struct BadBudgetScope(String);

impl FromStr for BudgetScope {
    type Err = BadBudgetScope;

    fn from_str(text: &str) -> Result<Self, BadBudgetScope> {
        match text.split_once(':') {
            Some(("role", name)) => Ok(Self::Role(name.into())),
            Some(("agent", name)) => Ok(Self::Agent(name.into())),
            Some(("task", name)) => Ok(Self::Task(name.into())),
            None if text == "society" => Ok(Self::Society),
            _ => Err(BadBudgetScope(text.to_owned())),
        }
    }
}

impl Serialize for BudgetScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BudgetScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: u64) -> Spent {
        Spent { tokens, ..Spent::default() }
    }

    fn account(spent: u64, reserved: u64, granted: u64) -> Account {
        Account { spent: tokens(spent), reserved: tokens(reserved), granted: tokens(granted) }
    }

    const HUNDRED: Budget = Budget { tokens: Some(100), cost_nanos: None, requests: None, time_ms: None };

    #[test]
    fn a_call_fits_beside_others_only_within_the_budget_and_alone_while_anything_is_left() {
        let fits = |spent, reserved, call| account(spent, reserved, 0).has_room(&BudgetScope::Society, HUNDRED, tokens(call));
        assert!(fits(0, 50, 50) && !fits(0, 50, 51) && fits(99, 0, 1_000) && !fits(0, 200, 0));
        assert!(account(5, 5, 0).has_room(&BudgetScope::Society, Budget::default(), tokens(9)));
        let is_used_up =
            |spent, reserved, granted| account(spent, reserved, granted).used_up(&BudgetScope::Society, HUNDRED).count() > 0;
        assert!(is_used_up(100, 0, 0) && !is_used_up(99, 99, 0) && !is_used_up(100, 0, 1));
    }

    #[test]
    fn a_grant_gives_one_more_measure_of_what_is_used_up_and_of_nothing_else() {
        for used in [99, 100, 130] {
            let mut account = account(used, 0, 0);
            account.granted = account.granted.plus(account.grant(HUNDRED));
            let level = account.levels(&BudgetScope::Society, HUNDRED).next().unwrap();
            assert_eq!(level.limit, if used < 100 { 100 } else { used + 100 });
        }
    }

    #[test]
    fn a_scope_is_written_as_it_is_read() {
        let scopes = [
            BudgetScope::Society,
            BudgetScope::Role("r".into()),
            BudgetScope::Agent("a:b".into()),
            BudgetScope::Task("t".into()),
        ];
        for scope in scopes {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert!("nobody".parse::<BudgetScope>().is_err() && "nobody:x".parse::<BudgetScope>().is_err());
    }
}
