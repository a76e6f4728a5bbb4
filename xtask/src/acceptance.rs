//! The chore `acceptance`: every row of `docs/acceptance.csv` names where it lives and tests that ran and passed.
//! It knows nothing of what the rows ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::Usage;
use crate::csv::{self, Row};
use crate::record::Record;
use crate::workspace::Workspace;

const TABLE: &str = "docs/acceptance.csv";
const HEADER: [&str; 4] = ["id", "where", "test", "note"];

pub(crate) fn run_with_args(args: &[String]) -> Result<()> {
    match args {
        [] => run(&Workspace::load()?, None).map(drop),
        [flag, file] if flag == "--ran" => run(&Workspace::load()?, Some(Path::new(file))).map(drop),
        _ => Err(Usage("acceptance takes `--ran FILE` or nothing".to_owned()).into()),
    }
}

/// Checks the table against the record at `ran`, or against the latest run of the tests. Gives the rows that this machine cannot show,
/// because tests of theirs were skipped.
pub(crate) fn run(workspace: &Workspace, ran: Option<&Path>) -> Result<Option<String>> {
    let text = std::fs::read_to_string(workspace.root.join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let rows = csv::rows(&text).with_context(|| TABLE.to_owned())?;
    let record = Record::read(ran.unwrap_or(&Record::path(workspace)))?;
    let tally = check(&rows, &record, |path| workspace.root.join(path).exists());
    for complaint in &tally.complaints {
        println!("{TABLE}:{complaint}");
    }
    if !tally.complaints.is_empty() {
        bail!("{TABLE} does not hold, see the {} lines above", tally.complaints.len());
    }
    println!("{} rows shown by {} tests", tally.rows - tally.skipped.len(), tally.tests.len());
    let skipped: Vec<&str> = tally.skipped.into_iter().collect();
    Ok((!skipped.is_empty())
        .then(|| format!("{} rows are not shown, their tests were skipped: {}", skipped.len(), skipped.join(", "))))
}

#[derive(Debug, Default)]
struct Tally<'a> {
    rows: usize,
    tests: BTreeSet<&'a str>,
    /// The rows of which a test was skipped. They are not shown.
    skipped: BTreeSet<&'a str>,
    /// Each begins with the line of the table it is about.
    complaints: Vec<String>,
}

fn check<'a>(rows: &'a [Row], record: &Record, exists: impl Fn(&str) -> bool) -> Tally<'a> {
    let mut tally = Tally::default();
    let Some((header, rows)) = rows.split_first() else {
        tally.complaints.push(format!("1: is empty; begin with the line `{}`", HEADER.join(",")));
        return tally;
    };
    if header.fields != HEADER {
        tally.complaints.push(format!("1: the first line must be `{}`", HEADER.join(",")));
        return tally;
    }
    let mut line_of = BTreeMap::new();
    for row in rows {
        let line = row.line;
        let [id, places, tests, _note] = &row.fields[..] else {
            tally.complaints.push(format!("{line}: has {} fields instead of {}", row.fields.len(), HEADER.len()));
            continue;
        };
        tally.rows += 1;
        let mut complain = |complaint: String| tally.complaints.push(format!("{line}: {complaint}"));
        if !is_id(id) {
            complain(format!("`{id}` is no id; write R, D or P and a number"));
        }
        if let Some(earlier) = line_of.insert(id, line) {
            complain(format!("{id} stands on line {earlier} already; merge the two rows"));
        }
        if entries(places).next().is_none() {
            complain(format!("{id} does not say where it lives"));
        }
        for place in entries(places).filter(|place| !exists(place)) {
            complain(format!("{id} lives in {place}, which does not exist"));
        }
        if entries(tests).next().is_none() {
            complain(format!("{id} names no test"));
        }
        for test in entries(tests) {
            if record.skipped.contains(test) {
                tally.skipped.insert(id);
                continue;
            }
            if let Some(what) = why_not_shown(test, record) {
                complain(format!("{id} is not shown: {test} {what}"));
            }
            tally.tests.insert(test);
        }
    }
    tally
}

fn why_not_shown(test: &str, record: &Record) -> Option<&'static str> {
    if record.passed.contains(test) {
        None
    } else if record.failed.contains(test) {
        Some("failed")
    } else if record.ignored.contains(test) {
        Some("is ignored")
    } else {
        Some("does not exist or did not run (CONTRIBUTING.md tells how tests are named)")
    }
}

fn is_id(id: &str) -> bool {
    id.strip_prefix(['R', 'D', 'P'])
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn entries(field: &str) -> impl Iterator<Item = &str> {
    field.split(';').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Record {
            passed: set(&["a::good", "a/main::good"]),
            failed: set(&["a::bad"]),
            ignored: set(&["a::lazy"]),
            skipped: set(&["page::a"]),
        }
    }

    fn complaints(table: &str) -> Vec<String> {
        let rows = csv::rows(table).unwrap();
        check(&rows, &record(), |path| path.starts_with("crates/")).complaints
    }

    #[test]
    fn rows_shown_by_passed_tests_are_counted() {
        let table = "id,where,test,note\n\
            R001,crates/a.rs,a::good,\n\
            D01,crates/a.rs; crates/b.rs,a::good; a/main::good,\"why, so\"\n";
        let rows = csv::rows(table).unwrap();
        let tally = check(&rows, &record(), |path| path.starts_with("crates/"));
        assert_eq!((tally.rows, tally.tests.len(), tally.complaints), (2, 2, vec![]));
    }

    #[test]
    fn a_row_with_a_skipped_test_is_neither_shown_nor_wrong() {
        let table = "id,where,test,note\nR001,crates/a.rs,a::good;page::a,\nR002,crates/a.rs,a::good,\n";
        let rows = csv::rows(table).unwrap();
        let tally = check(&rows, &record(), |path| path.starts_with("crates/"));
        assert_eq!((tally.rows, tally.tests.len(), tally.complaints.len()), (2, 1, 0));
        assert_eq!(tally.skipped, ["R001"].into());
    }

    #[test]
    fn every_way_to_be_wrong_is_reported() {
        let cases = [
            ("", "1: is empty"),
            ("id,test\n", "1: the first line must be"),
            ("id,where,test,note\nR1,crates/a.rs,a::good\n", "2: has 3 fields"),
            ("id,where,test,note\nX1,crates/a.rs,a::good,\n", "2: `X1` is no id"),
            ("id,where,test,note\nR,crates/a.rs,a::good,\n", "2: `R` is no id"),
            ("id,where,test,note\nR1,crates/a.rs,a::good,\nR1,crates/a.rs,a::good,\n", "3: R1 stands on line 2"),
            ("id,where,test,note\nR1,,a::good,\n", "2: R1 does not say where"),
            ("id,where,test,note\nR1,gone.rs,a::good,\n", "2: R1 lives in gone.rs, which"),
            ("id,where,test,note\nR1,crates/a.rs,,\n", "2: R1 names no test"),
            ("id,where,test,note\nR1,crates/a.rs,a::new,\n", "2: R1 is not shown: a::new does not exist"),
            ("id,where,test,note\nR1,crates/a.rs,a::bad,\n", "2: R1 is not shown: a::bad failed"),
            ("id,where,test,note\nR1,crates/a.rs,a::lazy,\n", "2: R1 is not shown: a::lazy is ignored"),
        ];
        for (table, expected) in cases {
            let complaints = complaints(table);
            assert!(complaints.len() == 1 && complaints[0].starts_with(expected), "{table:?}: {complaints:?}");
        }
    }
}
