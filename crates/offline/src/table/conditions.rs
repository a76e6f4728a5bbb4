//! The conditions of a question: comparisons, ranges, dates, empty cells, and values that are wanted or left out.

use std::ops::Range;

use super::columns::{Kind, iso};
use super::names::ColumnMention;
use super::question::{Filter, Misunderstanding, Reader, trimmed};
use super::unknown_words;
use super::words::{self, AGGREGATES, EMPTY, EXCLUDED, EXCLUDING, FILLED, FILLERS, LACKING, RELATIONS, Relation, TEMPORAL};
use crate::language::is_han;
use crate::number::{Exact, Point};
use crate::numerals;

impl Reader<'_> {
    /// `rows without a price`, `where city is empty`, 没有价格的.
    pub(super) fn empties(&mut self) {
        for ColumnMention { at, column } in self.named.clone() {
            let before = trimmed(&self.lower[..at.start]);
            let behind = self.lower[at.end..].trim_start();
            let ends = |words: &[&str]| {
                let word = words.iter().find(|word| words::begins_with(behind, word))?;
                Some(self.lower.len() - behind.len() + word.len())
            };
            // `without the city Paris` wants no empty cell.
            let cells = &self.table.columns[column].cells;
            let is_value =
                cells.iter().any(|cell| !cell.trim().is_empty() && behind.starts_with(&cell.trim().to_ascii_lowercase()));
            let lacking = LACKING.iter().filter(|_| !is_value).find_map(|word| words::ends_with(before, word));
            let (relation, range) = match (ends(FILLED), ends(EMPTY), lacking) {
                (Some(end), _, _) => (Relation::Filled, at.start..end),
                (None, Some(end), _) => (Relation::Empty, at.start..end),
                (None, None, Some(before)) => (Relation::Empty, before.len()..at.end),
                (None, None, None) => continue,
            };
            self.take(range);
            self.named.retain(|one| one.at != at);
            self.filter(column, relation, Vec::new());
        }
    }

    /// `price between 5 and 50`, `from 2024-01-01 to 2024-01-31`.
    pub(super) fn ranges(&mut self) -> Result<(), Misunderstanding> {
        for (word, and) in [("between", " and "), ("from", " to "), ("介于", "和"), ("从", "到"), ("在", "到")] {
            for place in words::places(&self.open, word) {
                let start = place.end + self.lower[place.end..].len() - self.lower[place.end..].trim_start().len();
                let Some(least) = literal(&self.lower, start) else { continue };
                let Some(rest) = self.lower[least.1..].trim_start().strip_prefix(and.trim()) else { continue };
                let Some(most) = literal(&self.lower, self.lower.len() - rest.trim_start().len()) else { continue };
                let before = ["is", "是"].iter().find_map(|word| words::ends_with(self.lower[..place.start].trim_end(), word));
                let before = before.unwrap_or(&self.lower[..place.start]).trim_end();
                let kind = if iso(&least.0).is_some() && least.0.contains('-') { Kind::Date } else { Kind::Number };
                let is_meant = |one: &&ColumnMention| one.at.end == before.len() && self.table.columns[one.column].kind == kind;
                let named = self.named.iter().find(is_meant).cloned();
                let column = match (named, &self.table.of_kind(kind)[..]) {
                    (Some(one), _) => {
                        self.named.retain(|other| *other != one);
                        one.column
                    }
                    (None, [only]) => *only,
                    (None, _) => return Err(Misunderstanding::Compared(self.lower[place.start..most.1].trim().to_owned())),
                };
                self.take(before.len()..most.1);
                self.filter(column, Relation::AtLeast, vec![least.0]);
                self.filter(column, Relation::AtMost, vec![most.0]);
                let behind = self.open[most.1..].trim_start();
                if let Some(word) = ["之间", "间"].iter().find(|word| behind.starts_with(**word)) {
                    let start = self.open.len() - behind.len();
                    self.take(start..start + word.len());
                }
            }
        }
        Ok(())
    }

    /// `price > 100`, `city is Paris`, 金额大于100.
    pub(super) fn filters(&mut self) {
        for ColumnMention { at, column } in self.named.clone() {
            let Some((relation, value, end)) = self.condition(at.end, Some(column)) else { continue };
            self.named.retain(|one| one.at != at);
            self.take(at.start..end);
            self.filter(column, relation, vec![value]);
        }
    }

    /// A relation and a value at a place of the text, and where they end.
    fn condition(&self, at: usize, column: Option<usize>) -> Option<(Relation, String, usize)> {
        let rest = self.lower[at..].trim_start();
        let rest = ["的值", "值"].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest).trim_start();
        let bare =
            rest.strip_prefix("is ").map(str::trim_start).filter(|rest| rest.starts_with(['>', '<', '=', '!', '≥', '≤']));
        let rest = bare.unwrap_or(rest);
        let (word, relation) = RELATIONS.iter().find(|(word, _)| words::begins_with(rest, word))?;
        let behind = &rest[word.len()..];
        let start = self.lower.len() - behind.trim_start().len();
        let (value, end) = value_at(&self.lower, start)?;
        if TEMPORAL.contains(word) && column.is_none_or(|column| self.table.columns[column].kind != Kind::Date) {
            return None;
        }
        let is_weak = ["is", "是", "为", "is not", "不是"].contains(word);
        if let Some(column) = column {
            let column = &self.table.columns[column];
            let needs_number = matches!(relation, Relation::AtLeast | Relation::AtMost | Relation::More | Relation::Less);
            let is_number = Exact::parse(&value, Point::Dot).is_some();
            if column.kind == Kind::Number && (needs_number || *relation == Relation::Is) && !is_number {
                return None;
            }
            if column.kind == Kind::Date && needs_number && iso(&value).is_none() {
                return None;
            }
            let equals = matches!(relation, Relation::Is | Relation::IsNot);
            if equals && column.kind == Kind::Text && holds_cell(&column.cells, &value) {
                return None;
            }
            // `what is` and 是多少 are no conditions.
            let asks =
                ["多少", "哪", "什么", "几", "谁", "怎", "what", "which", "how"].iter().any(|word| value.starts_with(word));
            let is_cell = || column.cells.iter().any(|cell| cell.trim().to_ascii_lowercase() == value);
            let is_clause = || words::has(&self.lower[..at], &["where", "when", "whose", "with", "if"]) || !word.is_ascii();
            if is_weak && (asks || !(is_number || is_cell() || is_clause())) {
                return None;
            }
        }
        Some((*relation, value, end))
    }

    /// `in Paris`, 北京的, `excluding Paris`, 北京以外: values of a column of text that stand in the question.
    pub(super) fn values(&mut self) {
        let mut found: Vec<(Range<usize>, usize, String)> = Vec::new();
        for column in self.table.of_kind(Kind::Text) {
            let mut cells: Vec<&str> = self.table.columns[column].cells.iter().map(|cell| cell.trim()).collect();
            cells.sort_unstable();
            cells.dedup();
            for cell in cells {
                let value = cell.to_ascii_lowercase();
                let is_telling = (value.chars().count() >= 2 || value.contains(is_han))
                    && value.contains(char::is_alphabetic)
                    && !unknown_words::is_harmless(&value)
                    && !FILLERS.contains(&value.as_str())
                    && !AGGREGATES.iter().any(|(word, _)| *word == value);
                if is_telling {
                    found.extend(words::places(&self.open, &value).into_iter().map(|at| (at, column, value.clone())));
                }
            }
        }
        found.sort_by_key(|(at, column, _)| (usize::MAX - at.len(), at.start, *column));
        let mut kept: Vec<(Range<usize>, usize, String)> = Vec::new();
        for one in found {
            if !kept.iter().any(|(at, ..)| one.0.start < at.end && at.start < one.0.end) {
                kept.push(one);
            }
        }
        kept.sort_by_key(|(at, ..)| at.start);
        let mut n = 0;
        while n < kept.len() {
            // Values that are joined are meant alike.
            let mut last = n;
            while let Some((next, ..)) = kept.get(last + 1)
                && let between = self.open[kept[last].0.end..next.start].trim()
                && ["and", "or", "nor", ",", "&", "and in", "or in", "、", "和", "与", "及", "或", "，", "或者"]
                    .contains(&between)
            {
                last += 1;
            }
            let (start, end) = (kept[n].0.start, kept[last].0.end);
            let before = trimmed(self.open[..start].trim_end_matches(['\u{1}', ' ']));
            let leaving = EXCLUDING.iter().find_map(|word| words::ends_with(before, word)).map(str::len);
            let behind = self.open[end..].trim_start();
            let left = EXCLUDED.iter().find(|word| behind.starts_with(**word));
            let end = left.map_or(end, |word| self.open.len() - behind.len() + word.len());
            self.take(leaving.unwrap_or(start)..end);
            for (_, column, value) in kept[n..=last].iter().cloned() {
                if leaving.is_some() || left.is_some() {
                    self.filter(column, Relation::IsNot, vec![value]);
                    continue;
                }
                let filters = &mut self.question.filters;
                match filters.iter_mut().find(|filter| filter.column == column && filter.relation == Relation::Is) {
                    Some(filter) if !filter.values.contains(&value) => filter.values.push(value),
                    Some(_) => {}
                    None => self.filter(column, Relation::Is, vec![value]),
                }
            }
            n = last + 1;
        }
    }

    /// `after 2024-02-01`, `in 2023`, 2024年1月的: of the one column of dates.
    pub(super) fn dates(&mut self) {
        let [date] = self.table.of_kind(Kind::Date)[..] else { return };
        let mut at = 0;
        while at < self.open.len() {
            let is_border =
                self.open.is_char_boundary(at) && !self.open[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
            let Some((value, mut end)) = is_border.then(|| date_at(&self.open, at)).flatten() else {
                at += 1;
                continue;
            };
            let before = self.open[..at].trim_end();
            let behind = self.open[end..].trim_start();
            let compared = RELATIONS.iter().find_map(|(word, relation)| Some((words::ends_with(before, word)?, *relation)));
            let after =
                [("之后", Relation::More), ("以后", Relation::More), ("之前", Relation::Less), ("以前", Relation::Less)]
                    .into_iter()
                    .find(|(word, _)| behind.starts_with(word));
            let mut start = at;
            let relation = match (compared, after) {
                (Some((before, relation)), None) => {
                    start = before.len();
                    relation
                }
                (None, Some((word, relation))) => {
                    end = self.open.len() - behind.len() + word.len();
                    relation
                }
                (None, None) => Relation::Is,
                (Some(_), Some(_)) => return,
            };
            self.take(start..end);
            self.filter(date, relation, vec![value]);
            at = end;
        }
    }

    /// `orders over 100`: a comparison that stands behind no column.
    pub(super) fn loose_filters(&mut self) -> Result<(), Misunderstanding> {
        let numbers = self.table.of_kind(Kind::Number);
        let mut at = 0;
        while at < self.open.len() {
            let is_border =
                self.open.is_char_boundary(at) && !(at > 0 && self.open[..at].ends_with(|c: char| c.is_ascii_alphanumeric()));
            let condition = is_border.then(|| self.condition_here(at)).flatten();
            let Some((relation, value, end)) = condition else {
                at += 1;
                continue;
            };
            let named: Vec<usize> = self.named.iter().map(|one| one.column).filter(|column| numbers.contains(column)).collect();
            // `at least 3 units`
            let next = end + self.lower[end..].len() - self.lower[end..].trim_start().len();
            let behind = self.named.iter().find(|one| one.at.start == next && numbers.contains(&one.column)).cloned();
            let column = match (&behind, &named[..], &numbers[..]) {
                (Some(one), ..) => {
                    self.named.retain(|other| other != one);
                    one.column
                }
                (None, [only], _) | (None, [], [only]) => *only,
                _ => return Err(Misunderstanding::Compared(self.lower[at..end].trim().to_owned())),
            };
            self.question.filters.push(Filter { column, relation, values: vec![value] });
            self.take(at..end);
            at = end;
        }
        Ok(())
    }

    fn condition_here(&self, at: usize) -> Option<(Relation, String, usize)> {
        let rest = &self.open[at..];
        let compares =
            |relation: &Relation| matches!(relation, Relation::AtLeast | Relation::AtMost | Relation::More | Relation::Less);
        RELATIONS.iter().find(|(word, relation)| words::begins_with(rest, word) && compares(relation))?;
        let (relation, value, end) = self.condition(at, None)?;
        Exact::parse(&value, Point::Dot).is_some().then_some((relation, value, end))
    }
}

/// Whether a value is no cell but has one among its words, as in `either Paris`.
fn holds_cell(cells: &[String], value: &str) -> bool {
    let mut cells = cells.iter().map(|cell| cell.trim().to_ascii_lowercase()).filter(|cell| cell.chars().count() > 1);
    let is_cell = cells.clone().any(|cell| cell == value);
    !is_cell && cells.any(|cell| !words::places(value, &cell).is_empty())
}

/// A date or a number at a place of the text, and where it ends.
fn literal(lower: &str, start: usize) -> Option<(String, usize)> {
    date_at(lower, start).filter(|(value, _)| value.len() > 4).or_else(|| {
        let (value, end) = value_at(lower, start)?;
        Exact::parse(&value, Point::Dot).map(|_| (value, end))
    })
}

/// A year, a month or a day at a place of the text, and where it ends: `2024`, `2024-02`, `2024/2/3`, 2024年2月.
fn date_at(text: &str, start: usize) -> Option<(String, usize)> {
    let rest = &text[start..];
    let mut end = 0;
    for c in rest.chars() {
        let next_is_digit = rest[end + c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        let is_part =
            c.is_ascii_digit() || (matches!(c, '-' | '/') && next_is_digit) || (end > 0 && matches!(c, '年' | '月' | '日'));
        if !is_part {
            break;
        }
        end += c.len_utf8();
    }
    let is_apart = !rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '.' | ','))
        || rest[end..].trim_start_matches(['.', ',']).trim().is_empty();
    let is_year = rest.starts_with("19") || rest.starts_with("20");
    let value = iso(&rest[..end])?;
    (is_year && is_apart).then_some((value, start + end))
}

/// The value of a condition, which begins at `start`, and where it ends.
fn value_at(lower: &str, start: usize) -> Option<(String, usize)> {
    let rest = &lower[start..];
    let quotes = [('"', '"'), ('\'', '\''), ('“', '”'), ('「', '」'), ('`', '`')];
    if let Some((open, close)) = quotes.iter().find(|(open, _)| rest.starts_with(*open)) {
        let inner = &rest[open.len_utf8()..];
        let end = inner.find(*close)?;
        return Some((inner[..end].to_owned(), start + open.len_utf8() + end + close.len_utf8()));
    }
    let signed = rest.strip_prefix(['-', '−']).map_or((rest, ""), |rest| (rest, "-"));
    let unpriced = signed.0.trim_start_matches(['$', '€', '£', '¥', '￥']);
    if let Some((number, end)) = numerals::digits(unpriced) {
        let mut at = start + (rest.len() - unpriced.len()) + end;
        let mut value = format!("{}{number}", signed.1);
        if let Some((unit, end)) = numerals::unit_behind(&lower[at..]) {
            let scaled = Exact::parse(&value, Point::Dot)?;
            value = scaled.times(unit)?.to_string();
            at += end;
        }
        let is_date = lower[at..].starts_with(['-', '/']) && lower[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        if !is_date && !lower[at..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some((value, at));
        }
    }
    let stops = [
        " and ", " or ", " by ", " per ", " in ", " group", " sort", " order", " with ", " where ", ",", "，", "。", "？", "?",
        "的", "且", "并", "和", "时", "、", "；", ";",
    ];
    let end = stops.iter().filter_map(|stop| rest.find(stop)).min().unwrap_or(rest.len());
    let value = rest[..end].trim().trim_end_matches(['.', '!', '！']);
    (!value.is_empty() && value.chars().count() <= 60 && !value.contains('\u{1}')).then(|| (value.to_owned(), start + end))
}
