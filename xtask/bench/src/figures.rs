//! The table: what was measured, against what, and whether it reaches its goal.

use std::fmt;

use serde_json::{Value, json};

/// All figures of a run.
#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<Figure>,
}

/// One figure. `value` is what the goal speaks of: a ratio where there is a floor.
struct Figure {
    name: &'static str,
    value: f64,
    goal: Goal,
    detail: String,
}

/// What is wanted.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "≤ {}", short(*limit)),
            Self::AtLeast(limit) => write!(f, "≥ {}", short(*limit)),
        }
    }
}

impl Figures {
    pub(crate) fn add(&mut self, name: &'static str, value: f64, goal: Goal, detail: String) {
        eprintln!("  {name}: {} ({goal}) — {detail}", short(value));
        self.rows.push(Figure { name, value, goal, detail });
    }

    pub(crate) fn json(&self) -> String {
        let row = |figure: &Figure| {
            json!({
                "name": figure.name, "value": figure.value, "goal": figure.goal.to_string(),
                "met": figure.goal.is_met(figure.value), "detail": figure.detail,
            })
        };
        Value::from_iter(self.rows.iter().map(row)).to_string()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
        for Figure { name, value, goal, detail } in &self.rows {
            let mark = if goal.is_met(*value) { "met   " } else { "MISSED" };
            writeln!(f, "{mark}  {name:width$}  {:>10}  {:<10}  {detail}", short(*value), goal.to_string())?;
        }
        Ok(())
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
