//! `--budget`: what each request may spend, against what the configuration says.

use std::fmt;
use std::str::FromStr;

use polis_domain::{Budget, Budgets};

/// What each request may spend, against what the configuration says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RequestBudget {
    None,
    Times(f64),
}

impl RequestBudget {
    /// The same budgets with another one for each request.
    pub(crate) fn apply(self, budgets: Budgets) -> Budgets {
        let task = match self {
            Self::None => Budget::default(),
            Self::Times(times) => {
                let more = |limit: Option<u64>| limit.map(|limit| (limit as f64 * times).round() as u64);
                let Budget { tokens, cost_nanos, requests, time_ms } = budgets.task;
                Budget { tokens: more(tokens), cost_nanos: more(cost_nanos), requests: more(requests), time_ms: more(time_ms) }
            }
        };
        Budgets { task, ..budgets }
    }
}

impl FromStr for RequestBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let times = |text: &str| text.parse().ok().filter(|times| (0.001..=1e6).contains(times));
        match text {
            "none" => Ok(Self::None),
            _ => text
                .strip_suffix(['x', '×'])
                .and_then(times)
                .map(Self::Times)
                .ok_or_else(|| "write `none`, or a factor such as `3x`".to_owned()),
        }
    }
}

impl fmt::Display for RequestBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Times(times) => write!(f, "{times}x"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_lifted_or_multiplied_for_requests_alone() {
        let all = Budgets { society: Budgets::recommended().task, ..Budgets::recommended() };
        let read = |text: &str| text.parse::<RequestBudget>();
        assert_eq!(read("none").unwrap().apply(all.clone()), Budgets { task: Budget::default(), ..all.clone() });
        let more = read("2.5x").unwrap();
        assert_eq!((more.apply(all.clone()).task.requests, more.apply(all.clone()).society), (Some(500), all.society));
        assert_eq!(more.to_string(), "2.5x");
        assert!(["", "much", "3", "0x", "-1x", "NaNx", "infx"].into_iter().all(|text| read(text).is_err()));
    }
}
