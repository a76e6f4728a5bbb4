//! Models that can be called, and what was spent on them.

use polis_domain::{BudgetScope, Budgets, Level, Spent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which models can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Models {
    /// The one that answers where none is named.
    pub default: String,
    /// Whether that is the offline model.
    pub offline: bool,
    /// Their vendors.
    pub vendors: Vec<ModelVendor>,
}

/// A vendor of models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ModelVendor {
    /// Its name, as the part of a model's name before the `/`.
    pub name: String,
    /// Whether it can be asked.
    pub ready: bool,
    /// What must be set before it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The variable that its key is wanted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it is, if that is the server's own machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether a server answers at that address at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
}

/// What was spent on models.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct UsageReport {
    /// The limits.
    pub budgets: Budgets,
    /// The accounts, in the order of their owners.
    pub accounts: Vec<Spending>,
}

/// One account. Of requests only those that are not answered yet have one; what an answered one cost stands in its answer.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spending {
    /// The owner of the account.
    pub scope: BudgetScope,
    /// What finished calls took.
    pub spent: Spent,
    /// What calls under way may still take.
    pub reserved: Spent,
    /// What a person has allowed beyond the limit.
    pub granted: Spent,
    /// How full it is wherever it has a limit.
    pub levels: Vec<Level>,
}
