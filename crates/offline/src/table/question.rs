//! From the words of a question to what is to be reckoned: conditions, groups, figures, an order.
//!
//! Columns are found first, by their names or nearly; what stands around each says what it is there for.

use std::ops::Range;

use super::columns::{Aggregate, Kind, Table};
use super::names::{self, ColumnMention};
use super::unknown_words;
use super::words::{self, AGGREGATES, FILLERS, GROUPING, Relation, WHICH};
use crate::numerals;

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
pub(super) enum Misunderstanding {
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
pub(super) fn parse(asked: &str, table: &Table) -> Result<Question, Misunderstanding> {
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

/// A question that is being understood.
pub(super) struct Reader<'a> {
    pub(super) table: &'a Table,
    pub(super) lower: String,
    /// `lower` without what has been understood.
    pub(super) open: String,
    /// Columns that stand in the text and have no part in it yet.
    pub(super) named: Vec<ColumnMention>,
    pub(super) question: Question,
}

impl Reader<'_> {
    pub(super) fn take(&mut self, range: Range<usize>) {
        self.open = mask(&self.open, std::iter::once(range));
    }

    pub(super) fn filter(&mut self, column: usize, relation: Relation, values: Vec<String>) {
        self.question.filters.push(Filter { column, relation, values });
    }

    /// `how many cities`: of a text, how many there are.
    fn distinct(&mut self) {
        let counts = AGGREGATES.iter().filter(|(_, aggregate)| *aggregate == Aggregate::Count);
        let is_counted = |one: &ColumnMention| {
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
    fn leftover(&self, asked: &str) -> Result<(), Misunderstanding> {
        let filters = &self.question.filters;
        if filters.len() > 1 && words::has(&self.open, &["or", "或者", "或"]) {
            return Err(Misunderstanding::Or);
        }
        if let Some(words) = unknown_words::part(asked, &self.open) {
            return Err(Misunderstanding::Words(words));
        }
        let clause = ["where", "whose"].iter().find_map(|word| words::places(&self.open, word).into_iter().next());
        match clause.filter(|_| filters.is_empty()) {
            Some(clause) => Err(Misunderstanding::Words(asked[clause.start..].trim().to_owned())),
            None => Ok(()),
        }
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
        for ColumnMention { at, column } in std::mem::take(&mut self.named) {
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
    fn unknown(&self) -> Result<(), Misunderstanding> {
        for word in ["by", "per"] {
            for place in words::places(&self.open, word) {
                if let Some(unknown) = next_word(&self.open[place.end..]) {
                    return Err(Misunderstanding::NoColumn(unknown));
                }
            }
        }
        for word in ["按照", "按", "每个", "各"] {
            for place in words::places(&self.open, word) {
                let rest = self.open[place.end..].trim_start();
                let end =
                    rest.find(|c: char| !c.is_alphanumeric() || "的统计分组求计算来看，排".contains(c)).unwrap_or(rest.len());
                if rest[..end].chars().count() >= 2 {
                    return Err(Misunderstanding::NoColumn(rest[..end].to_owned()));
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
                        return Err(Misunderstanding::NoColumn(unknown));
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
pub(super) fn trimmed(mut before: &str) -> &str {
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
