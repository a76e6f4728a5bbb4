//! A table by its columns: which are numbers, dates or text, and what they come to.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::csv::Sheet;
use crate::number::{Exact, Point};

/// A table that can be asked.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: usize,
}

/// One column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) cells: Vec<String>,
    /// The cells of a column of numbers, where they are some.
    pub(super) numbers: Vec<Option<Exact>>,
    pub(super) point: Point,
    /// Cells that would be numbers, in a column of any kind.
    pub(super) known: usize,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Date,
    Text,
    Empty,
}

/// A figure: a sum over a count, so that nothing is rounded before it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    sum: Exact,
    over: usize,
}

/// What is asked of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aggregate {
    Count,
    Sum,
    Mean,
    Median,
    Min,
    Max,
    Distinct,
}

/// What stands in cells that are left empty.
const GAPS: &[&str] = &["", "n/a", "na", "null", "nan", "-", "--", "—", "无"];

impl Table {
    pub(super) fn new(sheet: Sheet) -> Self {
        let rows = sheet.rows.len();
        let mut cells: Vec<Vec<String>> = sheet.header.iter().map(|_| Vec::with_capacity(rows)).collect();
        for row in sheet.rows {
            for (column, cell) in cells.iter_mut().zip(row) {
                column.push(cell);
            }
        }
        let columns = sheet.header.into_iter().zip(cells).map(|(name, cells)| Column::new(name, cells)).collect();
        Self { columns, rows }
    }

    pub(super) fn of_kind(&self, kind: Kind) -> Vec<usize> {
        (0..self.columns.len()).filter(|&n| self.columns[n].kind == kind).collect()
    }
}

impl Column {
    fn new(name: String, cells: Vec<String>) -> Self {
        let point = point_of(&cells);
        let numbers: Vec<Option<Exact>> = cells.iter().map(|cell| Exact::parse(cell, point)).collect();
        let given = cells.iter().filter(|cell| !is_gap(cell)).count();
        let known = numbers.iter().flatten().count();
        let dates = cells.iter().filter(|cell| month_of(cell).is_some()).count();
        let kind = if given == 0 {
            Kind::Empty
        } else if known * 2 > given && !(names_rows(&name) && are_different(&cells)) {
            Kind::Number
        } else if dates == given {
            Kind::Date
        } else {
            Kind::Text
        };
        let numbers = if kind == Kind::Number { numbers } else { vec![None; cells.len()] };
        Self { name, kind, cells, numbers, point, known }
    }

    /// Cells that hold nothing.
    pub(super) fn gaps(&self) -> usize {
        (0..self.cells.len()).filter(|&row| self.is_empty(row)).count()
    }

    /// Whether the cell of a row holds nothing.
    pub(super) fn is_empty(&self, row: usize) -> bool {
        let cell = &self.cells[row];
        if self.kind == Kind::Number { is_gap(cell) } else { cell.trim().is_empty() }
    }

    /// Cells of a column of numbers that are none, among some rows.
    pub(super) fn odd(&self, rows: &[usize]) -> usize {
        let is_odd = |row: &&usize| self.kind == Kind::Number && self.numbers[**row].is_none() && !self.is_empty(**row);
        rows.iter().filter(is_odd).count()
    }

    /// What some of the rows come to; none where there is nothing to go by.
    pub(super) fn figure(&self, aggregate: Aggregate, rows: &[usize]) -> Option<Figure> {
        let whole = |sum| Figure { sum, over: 1 };
        let mut numbers: Vec<Exact> = rows.iter().filter_map(|&row| self.numbers[row]).collect();
        match aggregate {
            Aggregate::Count => {
                let filled = rows.iter().filter(|&&row| !self.cells[row].trim().is_empty()).count();
                Some(whole(Exact::from_count(filled)))
            }
            Aggregate::Distinct => {
                let cells: std::collections::BTreeSet<&str> =
                    rows.iter().map(|&row| self.cells[row].trim()).filter(|cell| !cell.is_empty()).collect();
                Some(whole(Exact::from_count(cells.len())))
            }
            Aggregate::Sum => (!numbers.is_empty()).then(|| whole(Exact::sum(numbers))),
            Aggregate::Mean => (!numbers.is_empty()).then(|| Figure { over: numbers.len(), sum: Exact::sum(numbers) }),
            Aggregate::Min => numbers.into_iter().min().map(whole),
            Aggregate::Max => numbers.into_iter().max().map(whole),
            Aggregate::Median => {
                numbers.sort_unstable();
                let middle = numbers.len() / 2;
                match numbers.len() {
                    0 => None,
                    n if n % 2 == 1 => Some(whole(numbers[middle])),
                    _ => Some(Figure { sum: Exact::sum([numbers[middle - 1], numbers[middle]]), over: 2 }),
                }
            }
        }
    }
}

impl Figure {
    pub(super) fn count(count: usize) -> Self {
        Self { sum: Exact::from_count(count), over: 1 }
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        let scaled = |figure: &Self, over: usize| figure.sum.to_big() * BigInt::from(over);
        scaled(self, other.over).cmp(&scaled(other, self.over))
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.over == 1 { write!(f, "{}", self.sum) } else { f.write_str(&self.sum.over(self.over)) }
    }
}

/// Whether a column is called as if it numbered the rows; nobody wants the sum of that.
fn names_rows(name: &str) -> bool {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    words.contains(&"id") || ["编号", "序号", "单号"].iter().any(|word| name.contains(word))
}

fn are_different(cells: &[String]) -> bool {
    let different: std::collections::BTreeSet<&str> = cells.iter().map(String::as_str).collect();
    cells.len() > 1 && different.len() == cells.len()
}

fn is_gap(cell: &str) -> bool {
    GAPS.contains(&cell.trim().to_lowercase().as_str())
}

/// A comma is the point where some cell makes no sense otherwise.
fn point_of(cells: &[String]) -> Point {
    let only_with = |point: Point, other: Point| {
        cells
            .iter()
            .any(|cell| cell.contains(',') && Exact::parse(cell, point).is_some() && Exact::parse(cell, other).is_none())
    };
    if only_with(Point::Comma, Point::Dot) && !only_with(Point::Dot, Point::Comma) { Point::Comma } else { Point::Dot }
}

/// A date that begins with its year, as far as it goes: `2024`, `2024-05`, `2024-05-07`.
pub(super) fn iso(text: &str) -> Option<String> {
    let text = text.trim();
    let year = text.trim_end_matches('年');
    if year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(year.to_owned());
    }
    let month = month_of(text)?;
    let day = text.split(['-', '/', '.', '年', '月', '日', 'T', 't', ' ']).nth(2).filter(|day| !day.is_empty());
    Some(day.map_or(month.clone(), |day| format!("{month}-{day:0>2}")))
}

/// Year and month of a date that begins with its year, as `2024-05`.
pub(super) fn month_of(cell: &str) -> Option<String> {
    let mut parts = cell.trim().split(['-', '/', '.', '年', '月', '日', 'T', ' ']);
    let (year, month) = (parts.next()?, parts.next()?);
    let is_number = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date = is_number(year, 4..=4) && is_number(month, 1..=2) && (1..=12).contains(&month.parse::<u32>().unwrap_or(0));
    let day = parts.next().filter(|day| !day.is_empty());
    let is_day = day.is_none_or(|day| is_number(day, 1..=2) && (1..=31).contains(&day.parse::<u32>().unwrap_or(0)));
    (is_date && is_day).then(|| format!("{year}-{month:0>2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &[&str]) -> Column {
        Column::new("c".to_owned(), cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn the_kind_of_a_column_is_that_of_its_cells() {
        for (cells, want) in [
            (&["1", "2.5", "", "n/a"][..], Kind::Number),
            (&["1,234", "5"], Kind::Number),
            (&["1,5", "2,25", "1.234,5"], Kind::Number),
            (&["$1", "2%", "-3"], Kind::Number),
            (&["1", "2", "3", "4", "x"], Kind::Number),
            (&["1", "2", "x"], Kind::Number),
            (&["1", "x"], Kind::Text),
            (&["1", "x", "y"], Kind::Text),
            (&["2024-01-02", "2024/1/3", ""], Kind::Date),
            (&["2024-13-02"], Kind::Text),
            (&["Paris", ""], Kind::Text),
            (&["", ""], Kind::Empty),
        ] {
            assert_eq!(column(cells).kind, want, "{cells:?}");
        }
        assert_eq!((column(&["1", "2", "3", "4", "x", "-"]).odd(&[0, 1, 2, 3, 4, 5]), column(&["1", "-", ""]).gaps()), (1, 2));
    }

    #[test]
    fn a_comma_is_a_point_only_where_it_must_be() {
        let sum = |cells: &[&str]| {
            let column = column(cells);
            column.figure(Aggregate::Sum, &(0..cells.len()).collect::<Vec<_>>()).unwrap().to_string()
        };
        assert_eq!(sum(&["1,234", "1,000"]), "2234");
        assert_eq!(sum(&["1,234", "1,5"]), "2.734");
        assert_eq!(sum(&["1.234,50", "0,50"]), "1235");
        assert_eq!(sum(&["1,234.50", "0.50"]), "1235");
    }

    #[test]
    fn figures_are_exact() {
        let column = column(&["0.1", "0.2", "", "10", "-3"]);
        let rows: Vec<usize> = (0..5).collect();
        let figures = [
            Aggregate::Count,
            Aggregate::Sum,
            Aggregate::Mean,
            Aggregate::Median,
            Aggregate::Min,
            Aggregate::Max,
            Aggregate::Distinct,
        ]
        .map(|aggregate| column.figure(aggregate, &rows).unwrap().to_string());
        assert_eq!(figures, ["4", "7.3", "1.825", "0.15", "-3", "10", "4"]);
        assert!(column.figure(Aggregate::Mean, &[2]).is_none());
        let third = |sum: usize, over: usize| Figure { sum: Exact::from_count(sum), over };
        assert_eq!((third(1, 3).cmp(&third(2, 6)), third(1, 3).cmp(&third(334, 1000))), (Ordering::Equal, Ordering::Less));
    }
}
