//! From the words of a question to what is to be reckoned: conditions, groups, figures, an order.
//!
//! Columns are found first, by their names or nearly; what stands around each says what it is there for.

use std::ops::Range;

use super::columns::{Aggregate, Kind, Table, iso};
use super::leftover;
use super::names::{self, Named};
use super::words::{
    self, AGGREGATES, EMPTY, EXCLUDED, EXCLUDING, FILLED, FILLERS, GROUPING, LACKING, RELATIONS, Relation, TEMPORAL, WHICH,
};
use crate::offline::language::is_han;
use crate::offline::number::{Exact, Point};
use crate::offline::numerals;

/// What is asked of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Question {
    pub(super) filters: Vec<Filter>,
    pub(super) keys: Vec<Key>,
    pub(super) aggregates: Vec<Aggregate>,
    /// The columns that it is about.
    pub(super) targets: Vec<usize>,
    pub(super) top: Option<Top>,
    pub(super) shows_rows: bool,
    /// Words that were taken for a column that is called nearly so.
    pub(super) taken: Vec<(String, usize)>,
}

/// A condition that rows must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) column: usize,
    pub(super) relation: Relation,
    /// One of these; several only for a text that is one or the other.
    pub(super) values: Vec<String>,
}

/// By what rows are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Column(usize),
    Month(usize),
    Year(usize),
}

/// The first ones of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) count: usize,
    pub(super) is_descending: bool,
    /// The column of the order, where it was named.
    pub(super) by: Option<usize>,
}

/// Why a question is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Puzzle {
    /// No column is called so.
    NoColumn(String),
    /// Which column is to be compared is not said.
    Compared(String),
    /// Words that may change what is asked.
    Words(String),
    /// One condition or the other, which is more than this grammar has.
    Or,
}

/// Understands a question.
pub(super) fn parse(asked: &str, table: &Table) -> Result<Question, Puzzle> {
    let lower = asked.to_ascii_lowercase();
    let (named, taken) = names::find(&lower, table);
    // `cheapest` names the price and says how to order it.
    let names = named.iter().map(|one| one.at.clone()).filter(|at| !["cheapest", "贵", "便宜"].contains(&&lower[at.clone()]));
    let open = mask(&lower, names);
    let mut reader = Reader { table, open, lower, named, question: Question { taken, ..Question::default() } };
    reader.empties();
    reader.ranges()?;
    reader.filters();
    reader.values();
    reader.loose_filters()?;
    reader.dates();
    reader.top();
    reader.aggregates();
    reader.distinct();
    reader.roles();
    reader.periods();
    reader.unknown()?;
    reader.leftover(asked)?;
    reader.settle();
    Ok(reader.question)
}

/// The text with marks in place of what has been understood; the rest keeps its place.
fn mask(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        bytes[range].fill(1);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

struct Reader<'a> {
    table: &'a Table,
    lower: String,
    /// `lower` without what has been understood.
    open: String,
    /// Columns that stand in the text and have no part in it yet.
    named: Vec<Named>,
    question: Question,
}

impl Reader<'_> {
    fn take(&mut self, range: Range<usize>) {
        self.open = mask(&self.open, std::iter::once(range));
    }

    fn filter(&mut self, column: usize, relation: Relation, values: Vec<String>) {
        self.question.filters.push(Filter { column, relation, values });
    }

    /// `rows without a price`, `where city is empty`, 没有价格的.
    fn empties(&mut self) {
        for Named { at, column } in self.named.clone() {
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
    fn ranges(&mut self) -> Result<(), Puzzle> {
        for (word, and) in [("between", " and "), ("from", " to "), ("介于", "和"), ("从", "到"), ("在", "到")] {
            for place in words::places(&self.open, word) {
                let start = place.end + self.lower[place.end..].len() - self.lower[place.end..].trim_start().len();
                let Some(least) = literal(&self.lower, start) else { continue };
                let Some(rest) = self.lower[least.1..].trim_start().strip_prefix(and.trim()) else { continue };
                let Some(most) = literal(&self.lower, self.lower.len() - rest.trim_start().len()) else { continue };
                let before = ["is", "是"].iter().find_map(|word| words::ends_with(self.lower[..place.start].trim_end(), word));
                let before = before.unwrap_or(&self.lower[..place.start]).trim_end();
                let kind = if iso(&least.0).is_some() && least.0.contains('-') { Kind::Date } else { Kind::Number };
                let is_meant = |one: &&Named| one.at.end == before.len() && self.table.columns[one.column].kind == kind;
                let named = self.named.iter().find(is_meant).cloned();
                let column = match (named, &self.table.of_kind(kind)[..]) {
                    (Some(one), _) => {
                        self.named.retain(|other| *other != one);
                        one.column
                    }
                    (None, [only]) => *only,
                    (None, _) => return Err(Puzzle::Compared(self.lower[place.start..most.1].trim().to_owned())),
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
    fn filters(&mut self) {
        for Named { at, column } in self.named.clone() {
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
    fn values(&mut self) {
        let mut found: Vec<(Range<usize>, usize, String)> = Vec::new();
        for column in self.table.of_kind(Kind::Text) {
            let mut cells: Vec<&str> = self.table.columns[column].cells.iter().map(|cell| cell.trim()).collect();
            cells.sort_unstable();
            cells.dedup();
            for cell in cells {
                let value = cell.to_ascii_lowercase();
                let is_telling = (value.chars().count() >= 2 || value.contains(is_han))
                    && value.contains(char::is_alphabetic)
                    && !leftover::is_harmless(&value)
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
    fn dates(&mut self) {
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

    /// `how many cities`: of a text, how many there are.
    fn distinct(&mut self) {
        let counts = AGGREGATES.iter().filter(|(_, aggregate)| *aggregate == Aggregate::Count);
        let is_counted = |one: &Named| {
            let before = trimmed(&self.lower[..one.at.start]);
            let bare = words::ends_with(before, "of").unwrap_or(before).trim_end();
            let asks = |word: &str| words::ends_with(before, word).or_else(|| words::ends_with(bare, word)).is_some();
            self.table.columns[one.column].kind == Kind::Text && counts.clone().any(|(word, _)| asks(word))
        };
        if self.named.iter().any(is_counted) {
            self.question.aggregates.retain(|aggregate| *aggregate != Aggregate::Count);
            if !self.question.aggregates.contains(&Aggregate::Distinct) {
                self.question.aggregates.push(Aggregate::Distinct);
            }
        }
    }

    /// Words that are left and may stand for a condition.
    fn leftover(&self, asked: &str) -> Result<(), Puzzle> {
        let filters = &self.question.filters;
        if filters.len() > 1 && words::has(&self.open, &["or", "或者", "或"]) {
            return Err(Puzzle::Or);
        }
        if let Some(words) = leftover::part(asked, &self.open) {
            return Err(Puzzle::Words(words));
        }
        let clause = ["where", "whose"].iter().find_map(|word| words::places(&self.open, word).into_iter().next());
        match clause.filter(|_| filters.is_empty()) {
            Some(clause) => Err(Puzzle::Words(asked[clause.start..].trim().to_owned())),
            None => Ok(()),
        }
    }

    /// `orders over 100`: a comparison that stands behind no column.
    fn loose_filters(&mut self) -> Result<(), Puzzle> {
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
                _ => return Err(Puzzle::Compared(self.lower[at..end].trim().to_owned())),
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

    /// `top 5`, `3 cheapest`, 前三名, 最高的 5 个.
    fn top(&mut self) {
        const FIRST: &[(&str, bool)] = &[
            ("top", true),
            ("largest", true),
            ("highest", true),
            ("biggest", true),
            ("best", true),
            ("bottom", false),
            ("lowest", false),
            ("smallest", false),
            ("cheapest", false),
            ("worst", false),
            ("倒数前", false),
            ("最后", false),
            ("倒数", false),
            ("前", true),
            ("最高的", true),
            ("最大的", true),
            ("最多的", true),
            ("最贵的", true),
            ("最低的", false),
            ("最小的", false),
            ("最少的", false),
            ("最便宜的", false),
        ];
        for (word, is_descending) in FIRST {
            for place in words::places(&self.open, word) {
                let rest = &self.open[place.end..];
                let spaces = rest.len() - rest.trim_start().len();
                let found = numerals::small(rest.trim_start());
                let (count, end) = match found {
                    Some((count, end)) => (count, place.end + spaces + end),
                    None if *word == "top" => (5, place.end),
                    None => continue,
                };
                self.question.top = Some(Top { count: count.clamp(1, 1_000), is_descending: *is_descending, by: None });
                self.take(place.start..end);
                return;
            }
        }
        // `the 3 largest`
        for (word, is_descending) in &FIRST[..10] {
            for place in words::places(&self.open, word) {
                let before = self.open[..place.start].trim_end().trim_end_matches(" most").trim_end();
                let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
                if let Ok(count) = before[start..].parse::<usize>() {
                    self.question.top = Some(Top { count: count.clamp(1, 1_000), is_descending: *is_descending, by: None });
                    self.take(start..place.end);
                    return;
                }
            }
        }
    }

    fn aggregates(&mut self) {
        let mut sorted: Vec<_> = AGGREGATES.iter().collect();
        sorted.sort_by_key(|(word, _)| usize::MAX - word.len());
        for (word, aggregate) in sorted {
            for place in words::places(&self.open, word) {
                if !self.open[place.clone()].starts_with('\u{1}') {
                    self.take(place);
                    self.question.aggregates.push(*aggregate);
                }
            }
        }
        self.question.aggregates.sort_unstable();
        self.question.aggregates.dedup();
        let has = |aggregate: Aggregate| self.question.aggregates.contains(&aggregate);
        if has(Aggregate::Count) && has(Aggregate::Distinct) {
            self.question.aggregates.retain(|aggregate| *aggregate != Aggregate::Count);
        }
        if self.question.aggregates.is_empty() && words::has(&self.open, &["多少"]) && self.named.is_empty() {
            self.question.aggregates.push(Aggregate::Count);
        }
    }

    /// What each column that was named is there for.
    fn roles(&mut self) {
        let mut last_key_end = None;
        for Named { at, column } in std::mem::take(&mut self.named) {
            let kind = self.table.columns[column].kind;
            let before = trimmed(&self.lower[..at.start]);
            let behind = self.lower[at.end..].trim_start();
            let is_sorted = ["排序", "排名", "排列", "从高到低", "从大到小", "从低到高", "从小到大", "降序", "升序"]
                .iter()
                .any(|word| behind.starts_with(word));
            let grouping = GROUPING.iter().find_map(|word| words::ends_with(before, word));
            let orders = grouping.map(str::trim_end).is_some_and(|before| {
                ["sorted", "sort", "order", "ordered", "ranked", "rank"]
                    .iter()
                    .any(|word| words::ends_with(before, word).is_some())
            });
            // `top 3 cities by total sales`
            let by_figure = self.question.top.is_some() && words::ends_with(without_figures(before), "by").is_some();
            let joined = last_key_end.is_some_and(|end: usize| {
                let between = self.lower.get(end..at.start).map(str::trim);
                between.is_some_and(|between| ["and", "&", ",", "、", "和", "与", "及", "，"].contains(&between))
            });
            let which = WHICH.iter().any(|word| words::ends_with(before, word).is_some());
            if is_sorted
                || orders
                || (by_figure && kind == Kind::Number)
                || (grouping.is_some() && self.question.top.is_some() && kind == Kind::Number)
            {
                self.question.top.get_or_insert(Top { count: 10, is_descending: true, by: None }).by = Some(column);
                if !self.question.targets.contains(&column) {
                    self.question.targets.push(column);
                }
            } else if grouping.is_some() || joined {
                self.push_key(Key::Column(column));
                last_key_end = Some(at.end);
            } else if which && kind != Kind::Number {
                self.which(column);
            } else if !self.question.targets.contains(&column) {
                self.question.targets.push(column);
            }
        }
        let is_text = |target: &usize| self.table.columns[*target].kind == Kind::Text;
        let texts: Vec<usize> = self.question.targets.iter().copied().filter(is_text).collect();
        // 总销售额最高的城市是哪个
        if let [text] = texts[..]
            && self.question.keys.is_empty()
            && words::has(&self.lower, &["which", "who", "哪", "谁", "什么"])
        {
            self.question.targets.retain(|target| *target != text);
            self.which(text);
        }
        if ["从低到高", "从小到大", "升序", "ascending"].iter().any(|word| self.lower.contains(word))
            && let Some(top) = &mut self.question.top
        {
            top.is_descending = false;
        }
    }

    fn push_key(&mut self, key: Key) {
        if !self.question.keys.contains(&key) {
            self.question.keys.push(key);
        }
    }

    /// `which city has the highest average price`
    fn which(&mut self, column: usize) {
        let superlative =
            self.question.aggregates.iter().find(|aggregate| matches!(aggregate, Aggregate::Max | Aggregate::Min)).copied();
        let Some(superlative) = superlative else {
            self.question.targets.push(column);
            return;
        };
        let is_descending = superlative == Aggregate::Max;
        let figures = self.question.aggregates.iter().any(|aggregate| *aggregate != superlative);
        let is_amount =
            words::has(&self.lower, &["most", "least", "fewest", "最多", "最少"]) && !words::has(&self.lower, &["expensive"]);
        self.question.aggregates.retain(|aggregate| *aggregate != superlative);
        self.question.top = Some(Top { count: 1, is_descending, by: None });
        if figures || is_amount {
            self.push_key(Key::Column(column));
        } else {
            self.question.targets.push(column);
        }
    }

    /// `by month`, 按年, of the one column of dates.
    fn periods(&mut self) {
        let dates = self.table.of_kind(Kind::Date);
        let Some(&date) = dates.first() else { return };
        let month =
            ["by month", "per month", "each month", "every month", "monthly", "按月份", "按月", "每个月", "每月", "各月"];
        let year = ["by year", "per year", "each year", "every year", "yearly", "按年份", "按年", "每年", "各年"];
        for (spellings, key) in [(&month[..], Key::Month(date)), (&year[..], Key::Year(date))] {
            let place = spellings.iter().find_map(|word| words::places(&self.open, word).into_iter().next());
            if let Some(place) = place {
                self.take(place);
                self.push_key(key);
                self.question.targets.retain(|target| *target != date);
            }
        }
    }

    /// A word that stands where a column should and is none.
    fn unknown(&self) -> Result<(), Puzzle> {
        for word in ["by", "per"] {
            for place in words::places(&self.open, word) {
                if let Some(unknown) = next_word(&self.open[place.end..]) {
                    return Err(Puzzle::NoColumn(unknown));
                }
            }
        }
        for word in ["按照", "按", "每个", "各"] {
            for place in words::places(&self.open, word) {
                let rest = self.open[place.end..].trim_start();
                let end =
                    rest.find(|c: char| !c.is_alphanumeric() || "的统计分组求计算来看，排".contains(c)).unwrap_or(rest.len());
                if rest[..end].chars().count() >= 2 {
                    return Err(Puzzle::NoColumn(rest[..end].to_owned()));
                }
            }
        }
        // Figures are masked in `open`, so their words are looked for in the whole text.
        if self.question.targets.is_empty() {
            for (word, aggregate) in AGGREGATES.iter().filter(|(word, _)| word.is_ascii()) {
                if matches!(aggregate, Aggregate::Count | Aggregate::Distinct) {
                    continue;
                }
                for place in words::places(&self.lower, word) {
                    if let Some(unknown) = next_word(&self.open[place.end..]) {
                        return Err(Puzzle::NoColumn(unknown));
                    }
                }
            }
        }
        Ok(())
    }

    /// Fills in what people leave out.
    fn settle(&mut self) {
        let table = self.table;
        let question = &mut self.question;
        let number_targets = question.targets.iter().filter(|&&target| table.columns[target].kind == Kind::Number).count();
        // `total` and 一共 beside a count say the same again.
        if question.aggregates.contains(&Aggregate::Count) && number_targets == 0 {
            question.aggregates.retain(|aggregate| *aggregate != Aggregate::Sum);
        }
        if question.top.is_some() && question.keys.is_empty() {
            // `top 3 cities by sales`: a text whose values repeat is put together.
            let repeats = |column: usize| {
                let cells: std::collections::BTreeSet<&str> = table.columns[column].cells.iter().map(String::as_str).collect();
                cells.len() < table.rows
            };
            let asks_one = question.top.is_some_and(|top| top.count == 1 && top.by.is_none());
            let text = question.targets.iter().copied().find(|&target| matches!(table.columns[target].kind, Kind::Text));
            let figures = question.aggregates.iter().any(|aggregate| !matches!(aggregate, Aggregate::Max | Aggregate::Min));
            let order = question
                .top
                .and_then(|top| top.by)
                .or_else(|| question.targets.iter().copied().find(|&target| table.columns[target].kind == Kind::Number));
            let adds_up = order.is_none_or(|order| names::adds_up(&table.columns[order].name));
            if let Some(text) = text.filter(|&text| figures || (repeats(text) && !asks_one && adds_up)) {
                question.targets.retain(|target| *target != text);
                question.keys.push(Key::Column(text));
            }
        }
        if question.top.is_some() && (question.keys.is_empty() || question.aggregates.len() > 1) {
            question.aggregates.retain(|aggregate| !matches!(aggregate, Aggregate::Max | Aggregate::Min));
        }
        if !question.keys.is_empty() && question.aggregates.is_empty() {
            question.aggregates.push(if number_targets > 0 { Aggregate::Sum } else { Aggregate::Count });
        }
        // `the most expensive product`
        let superlative = match question.aggregates[..] {
            [Aggregate::Max] => Some(true),
            [Aggregate::Min] => Some(false),
            _ => None,
        };
        let has_text = question.targets.iter().any(|&target| table.columns[target].kind != Kind::Number);
        if let Some(is_descending) = superlative.filter(|_| has_text && number_targets == 1 && question.keys.is_empty()) {
            question.aggregates.clear();
            question.top = Some(Top { count: 1, is_descending, by: None });
        }
        let shows = words::has(
            &self.lower,
            &["show", "list", "which", "find", "rows where", "rows with", "列出", "显示", "哪些", "哪几", "找出", "有哪"],
        );
        question.shows_rows = question.aggregates.is_empty()
            && question.keys.is_empty()
            && (shows || (!question.filters.is_empty() && question.targets.is_empty()));
    }
}

/// The next word if it stands where a column should: behind nothing but articles.
fn next_word(rest: &str) -> Option<String> {
    let mut rest = rest;
    loop {
        let word: String = rest.trim_start_matches(' ').chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').collect();
        if word.is_empty() {
            return None;
        }
        if !["the", "of", "a", "an", "its", "their", "each"].contains(&word.as_str()) {
            let is_known = FILLERS.contains(&word.as_str()) || AGGREGATES.iter().any(|(known, _)| *known == word);
            return (!is_known).then_some(word);
        }
        rest = &rest.trim_start_matches(' ')[word.len()..];
    }
}

/// What stands before a column, without articles.
fn trimmed(mut before: &str) -> &str {
    loop {
        before = before.trim_end();
        let shorter = ["the", "a", "an", "their", "its", "column", "列"].iter().find_map(|word| words::ends_with(before, word));
        match shorter {
            Some(shorter) => before = shorter,
            None => return before,
        }
    }
}

/// The same without words that ask for a figure.
fn without_figures(mut before: &str) -> &str {
    loop {
        before = trimmed(before);
        let figures = AGGREGATES.iter().map(|(word, _)| *word).chain(["of"]);
        match figures.filter_map(|word| words::ends_with(before, word)).next() {
            Some(shorter) => before = shorter,
            None => return before,
        }
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
