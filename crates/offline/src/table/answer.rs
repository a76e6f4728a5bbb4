//! The figures of a table in words, with what speaks for them.

use std::collections::BTreeMap;

use super::columns::{Aggregate, Column, Figure, Kind, Table, iso, month_of};
use super::question::{Filter, Key, Question, Top};
use super::words::Relation;
use crate::language::{Language, tell};
use crate::number::{Exact, Point};

/// Most rows of a table, and of columns.
const MAX_ROWS: usize = 25;
const MAX_COLUMNS: usize = 8;
/// Most values of a column of text that are named.
const MAX_VALUES: usize = 5;
const ALL: [Aggregate; 5] = [Aggregate::Sum, Aggregate::Mean, Aggregate::Median, Aggregate::Min, Aggregate::Max];

/// What is going to be reckoned, in words.
pub(super) fn understood(language: Language, table: &Table, question: &Question) -> String {
    let mut words = Vec::new();
    let name = |column: &usize| table.columns[*column].name.clone();
    if !question.filters.is_empty() {
        words.push(tell!(language, "only rows where {}", "只看 {} 的行", conditions(language, table, question)));
    }
    if !question.keys.is_empty() {
        words.push(tell!(language, "grouped by {}", "按 {} 分组", keys(language, table, question)));
    }
    if !question.aggregates.is_empty() {
        let figures: Vec<_> = question.aggregates.iter().map(|aggregate| called(language, *aggregate)).collect();
        words.push(tell!(language, "figures: {}", "指标：{}", figures.join(", ")));
    }
    if !question.targets.is_empty() {
        let names: Vec<_> = question.targets.iter().map(name).collect();
        words.push(tell!(language, "of {}", "列：{}", names.join(", ")));
    }
    if let Some(top) = question.top {
        words.push(tell!(language, "the first {}", "前 {} 名", top.count));
    }
    match words.is_empty() {
        true => tell!(language, "An overview is asked for.", "要的是总览。"),
        false => tell!(language, "I understand: {}.", "我的理解：{}。", words.join(&tell!(language, "; ", "；"))),
    }
}

/// The answer; as an error what is said where no figure that was asked for can be reckoned.
pub(super) fn answer(language: Language, path: &str, table: &Table, question: &Question) -> Result<String, String> {
    let rows: Vec<usize> =
        (0..table.rows).filter(|&row| question.filters.iter().all(|filter| meets(table, filter, row))).collect();
    let mut scope = match question.filters.is_empty() {
        true => tell!(
            language,
            "`{path}` has {} rows and {} columns.",
            "`{path}` 有 {} 行、{} 列。",
            table.rows,
            table.columns.len()
        ),
        false => tell!(
            language,
            "`{path}`: {} of {} rows where {}.",
            "`{path}`：共 {1} 行，其中 {0} 行满足 {2}。",
            rows.len(),
            table.rows,
            conditions(language, table, question)
        ),
    };
    for (word, column) in &question.taken {
        let name = &table.columns[*column].name;
        scope.push_str(&tell!(language, " I took `{word}` for the column `{name}`.", "我把“{word}”当作列“{name}”。"));
    }
    let report = Report { language, table, question, rows: &rows };
    let body = if rows.is_empty() {
        String::new()
    } else if !question.keys.is_empty() {
        report.groups()
    } else if question.top.is_some() || question.shows_rows {
        report.rows()
    } else if !question.aggregates.is_empty() {
        match report.figures() {
            Ok(figures) => figures,
            Err(refusal) => return Err(format!("{scope}{refusal}")),
        }
    } else if !question.targets.is_empty() {
        report.overview(&question.targets)
    } else {
        report.overview(&(0..table.columns.len()).collect::<Vec<_>>())
    };
    Ok(format!("{scope}{body}"))
}

struct Report<'a> {
    language: Language,
    table: &'a Table,
    question: &'a Question,
    /// The rows that meet the conditions.
    rows: &'a [usize],
}

impl Report<'_> {
    /// Columns of numbers that are asked for; all of them where none is named.
    fn numbers(&self) -> Vec<usize> {
        let is_number = |column: &usize| self.table.columns[*column].kind == Kind::Number;
        let named: Vec<usize> = self.question.targets.iter().copied().filter(is_number).collect();
        if named.is_empty() && self.question.targets.is_empty() { self.table.of_kind(Kind::Number) } else { named }
    }

    /// The column of an order that was not named: one that is asked for, or compared, or else any.
    fn order(&self) -> Option<usize> {
        let is_number = |column: &usize| self.table.columns[*column].kind == Kind::Number;
        let targets = self.question.targets.iter().copied();
        let named = targets.chain(self.question.filters.iter().map(|filter| filter.column)).find(is_number);
        named.or_else(|| self.table.of_kind(Kind::Number).first().copied())
    }

    fn figures(&self) -> Result<String, String> {
        let (language, table) = (self.language, self.table);
        let mut lines = Vec::new();
        for aggregate in &self.question.aggregates {
            match aggregate {
                Aggregate::Count if self.question.targets.is_empty() => {
                    lines.push(tell!(language, "\n- number of rows: {}", "\n- 行数：{}", self.rows.len()));
                }
                Aggregate::Count | Aggregate::Distinct => {
                    let columns = if self.question.targets.is_empty() {
                        (0..table.columns.len()).collect()
                    } else {
                        self.question.targets.clone()
                    };
                    lines.extend(columns.iter().map(|column| self.figure(*aggregate, *column)));
                }
                _ => lines.extend(self.numbers().iter().map(|column| self.figure(*aggregate, *column))),
            }
        }
        if lines.is_empty() {
            let some = self.question.targets.iter().map(|column| &table.columns[*column]).find(|column| column.known > 0);
            if let Some(column) = some {
                let filled = (0..table.rows).filter(|&row| !column.is_empty(row)).count();
                let (known, name) = (column.known, &column.name);
                return Err(tell!(
                    language,
                    "\nOf {filled} filled cells of `{name}` only {known} held a number, so I cannot reckon with it.",
                    "\n“{name}”的 {filled} 个非空格里只有 {known} 个是数字，没法计算。"
                ));
            }
            let names: Vec<_> =
                self.question.targets.iter().map(|column| format!("`{}`", table.columns[*column].name)).collect();
            return Err(tell!(
                language,
                "\n{} holds no numbers, so I cannot reckon with it.",
                "\n{} 不是数字，没法计算。",
                names.join(", ")
            ));
        }
        let columns = self.numbers();
        let check = columns.first().filter(|_| self.question.aggregates.iter().any(|aggregate| ALL.contains(aggregate)));
        let check = check.map_or_else(String::new, |column| self.check_column(*column));
        let odd = self.odd(columns.iter().map(|column| &table.columns[*column]));
        Ok(format!("{}{odd}{check}", lines.concat()))
    }

    fn figure(&self, aggregate: Aggregate, column: usize) -> String {
        let column = &self.table.columns[column];
        let figure = column.figure(aggregate, self.rows).map_or_else(|| "–".to_owned(), |figure| figure.to_string());
        let what = self.called(aggregate, &column.name);
        tell!(self.language, "\n- {what}: {figure}", "\n- {what}：{figure}")
    }

    fn called(&self, aggregate: Aggregate, name: &str) -> String {
        let figure = called(self.language, aggregate);
        tell!(self.language, "{figure} of {name}", "{name}的{figure}")
    }

    /// What speaks for the figures of a column: its cells are all accounted for, and the sum comes out the same from behind.
    fn check_column(&self, column: usize) -> String {
        let language = self.language;
        let column = &self.table.columns[column];
        let numbers = self.rows.iter().filter(|&&row| column.numbers[row].is_some()).count();
        let others = self.rows.len() - numbers;
        let forth = Exact::sum(self.rows.iter().filter_map(|&row| column.numbers[row]));
        let back = Exact::sum(self.rows.iter().rev().filter_map(|&row| column.numbers[row]));
        if forth != back {
            return String::new();
        }
        let name = &column.name;
        tell!(
            language,
            "\n\nChecked: {numbers} numbers and {others} cells without one make {} rows; `{name}` adds up to {forth} from either end.",
            "\n\n核对：{numbers} 个数字加 {others} 个空格等于 {} 行；“{name}”从两头相加都是 {forth}。",
            self.rows.len()
        )
    }

    fn groups(&self) -> String {
        let (language, table, question) = (self.language, self.table, self.question);
        let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        for &row in self.rows {
            let key = question.keys.iter().map(|key| value_of(language, table, *key, row)).collect();
            groups.entry(key).or_default().push(row);
        }
        // Each figure with its column; a count needs none.
        let mut figures: Vec<(Aggregate, Option<usize>)> = Vec::new();
        for aggregate in &question.aggregates {
            match aggregate {
                Aggregate::Count => figures.push((*aggregate, None)),
                Aggregate::Distinct => figures.extend(question.targets.iter().map(|column| (*aggregate, Some(*column)))),
                _ => figures.extend(self.numbers().into_iter().map(|column| (*aggregate, Some(column)))),
            }
        }
        if figures.is_empty() {
            figures.push((Aggregate::Count, None));
        }
        let reckon = |rows: &[usize], (aggregate, column): (Aggregate, Option<usize>)| match column {
            Some(column) => table.columns[column].figure(aggregate, rows),
            None => Some(Figure::count(rows.len())),
        };
        let by_time = question.keys.iter().any(|key| matches!(key, Key::Month(_) | Key::Year(_)))
            || question.keys.iter().any(|key| matches!(key, Key::Column(column) if table.columns[*column].kind == Kind::Date));
        let mut ordered: Vec<(&Vec<String>, &Vec<usize>)> = groups.iter().collect();
        if !by_time || question.top.is_some() {
            let by =
                question.top.and_then(|top| top.by).and_then(|by| figures.iter().position(|(_, column)| *column == Some(by)));
            let is_descending = question.top.is_none_or(|top| top.is_descending);
            ordered.sort_by(|a, b| {
                let figure = figures[by.unwrap_or_default()];
                match (reckon(a.1, figure), reckon(b.1, figure)) {
                    (Some(a), Some(b)) if is_descending => b.cmp(&a),
                    (Some(a), Some(b)) => a.cmp(&b),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                }
            });
        }
        // A winner is shown with those behind it.
        let shown = question.top.map_or(MAX_ROWS, |top| if top.count == 1 { MAX_VALUES } else { top.count });
        let mut header: Vec<String> = question.keys.iter().map(|key| key_name(language, table, *key)).collect();
        let tells_rows = !figures.iter().any(|(aggregate, _)| *aggregate == Aggregate::Count);
        if tells_rows {
            header.push(tell!(language, "rows", "行数"));
        }
        header.extend(figures.iter().map(|(aggregate, column)| match column {
            Some(column) => self.called(*aggregate, &table.columns[*column].name),
            None => tell!(language, "rows", "行数"),
        }));
        let body = ordered.iter().take(shown).map(|(key, rows)| {
            let mut cells = (*key).clone();
            if tells_rows {
                cells.push(rows.len().to_string());
            }
            cells.extend(
                figures.iter().map(|figure| reckon(rows, *figure).map_or_else(|| "–".to_owned(), |figure| figure.to_string())),
            );
            cells
        });
        let rest = ordered.len().saturating_sub(shown);
        let rest =
            if rest == 0 { String::new() } else { tell!(language, "\nand {rest} more groups\n", "\n还有 {rest} 组\n") };
        let best = ordered.first().filter(|_| question.top.is_some_and(|top| top.count == 1)).map_or_else(
            String::new,
            |(key, rows)| {
                let figure = reckon(rows, figures[0]).map_or_else(String::new, |figure| figure.to_string());
                tell!(language, " It is {}, with {figure}.", "答案是{}：{figure}。", key.join(" / "))
            },
        );
        let odd = self.odd(self.numbers().iter().map(|column| &table.columns[*column]));
        format!("{best}\n\n{}{rest}\n{}{odd}", markdown(&header, body), self.check_groups(&groups, &figures))
    }

    fn check_groups(&self, groups: &BTreeMap<Vec<String>, Vec<usize>>, figures: &[(Aggregate, Option<usize>)]) -> String {
        let language = self.language;
        let sizes: Vec<usize> = groups.values().map(Vec::len).collect();
        let sum: usize = sizes.iter().sum();
        let shown = if sizes.len() <= 6 {
            sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" + ")
        } else {
            tell!(language, "{} groups", "{} 组", sizes.len())
        };
        let mut check = tell!(
            language,
            "Checked: {shown} = {sum} rows, and {} were to be grouped",
            "核对：{shown} = {sum} 行，应分组的是 {} 行",
            self.rows.len()
        );
        let summed = figures
            .iter()
            .find(|(aggregate, _)| matches!(aggregate, Aggregate::Sum | Aggregate::Mean))
            .and_then(|(_, column)| *column);
        if let Some(column) = summed {
            let column = &self.table.columns[column];
            let of = |rows: &[usize]| Exact::sum(rows.iter().filter_map(|&row| column.numbers[row]));
            let parts = Exact::sum(groups.values().map(|rows| of(rows)));
            let whole = of(self.rows);
            let name = &column.name;
            check.push_str(&match parts == whole {
                true => tell!(
                    language,
                    "; the sums of `{name}` by group add up to the whole, {whole}",
                    "；各组“{name}”之和等于总和 {whole}"
                ),
                false => tell!(
                    language,
                    "; but the sums by group make {parts} and the whole is {whole}",
                    "；但各组之和为 {parts}，总和为 {whole}"
                ),
            });
        }
        check.push_str(&tell!(language, ".", "。"));
        check
    }

    fn rows(&self) -> String {
        let (language, table, question) = (self.language, self.table, self.question);
        let order = question.top.and_then(|top| top.by).or_else(|| self.order());
        let mut rows = self.rows.to_vec();
        if let (Some(Top { is_descending, .. }), Some(order)) = (question.top, order) {
            let numbers = &table.columns[order].numbers;
            rows.retain(|&row| numbers[row].is_some());
            rows.sort_by(|&a, &b| if is_descending { numbers[b].cmp(&numbers[a]) } else { numbers[a].cmp(&numbers[b]) });
        }
        let wanted = question.top.map_or(MAX_ROWS, |top| top.count);
        // Those that are as good as the last one belong to it.
        let mut shown = wanted.min(rows.len());
        if let (Some(_), Some(order)) = (question.top, order) {
            let numbers = &table.columns[order].numbers;
            while shown > 0
                && shown < rows.len()
                && shown < wanted + MAX_ROWS
                && numbers[rows[shown]] == numbers[rows[shown - 1]]
            {
                shown += 1;
            }
        }
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let columns: Vec<usize> = match all.len() > MAX_COLUMNS {
            true => {
                let named = question
                    .targets
                    .iter()
                    .chain(&order)
                    .chain(question.filters.iter().map(|filter| &filter.column))
                    .chain(&all);
                let mut seen = Vec::new();
                named.for_each(|column| {
                    if !seen.contains(column) {
                        seen.push(*column)
                    }
                });
                seen.truncate(MAX_COLUMNS);
                seen
            }
            false => all,
        };
        let header: Vec<String> = columns.iter().map(|column| table.columns[*column].name.clone()).collect();
        let body = rows
            .iter()
            .take(shown)
            .map(|&row| columns.iter().map(|column| table.columns[*column].cells[row].clone()).collect());
        let ordered = match (question.top, order) {
            (Some(top), Some(order)) => {
                let name = &table.columns[order].name;
                match top.is_descending {
                    true => tell!(language, " The {shown} with the highest {name}:", "{name}最高的 {shown} 行："),
                    false => tell!(language, " The {shown} with the lowest {name}:", "{name}最低的 {shown} 行："),
                }
            }
            _ => String::new(),
        };
        let left = rows.len() - shown;
        let more = if left == 0 || question.top.is_some() {
            String::new()
        } else {
            tell!(language, "\nand {left} more rows\n", "\n还有 {left} 行\n")
        };
        let check = match (question.top, order) {
            (Some(top), Some(order)) => {
                let aggregate = if top.is_descending { Aggregate::Max } else { Aggregate::Min };
                let best = table.columns[order].figure(aggregate, self.rows).map(|figure| figure.to_string());
                let first = rows.first().and_then(|&row| table.columns[order].numbers[row]).map(|number| number.to_string());
                match (best == first, best) {
                    (true, Some(best)) => tell!(
                        language,
                        "\nChecked: the first is {best}, and so is the {} of all {} rows.",
                        "\n核对：第一行是 {best}，全部 {1} 行的{0}也是它。",
                        called(language, aggregate),
                        self.rows.len()
                    ),
                    _ => String::new(),
                }
            }
            _ => String::new(),
        };
        format!("{ordered}\n\n{}{more}{check}", markdown(&header, body)).trim_end().to_owned()
    }

    fn overview(&self, columns: &[usize]) -> String {
        let language = self.language;
        let numbers: Vec<&Column> =
            columns.iter().map(|column| &self.table.columns[*column]).filter(|column| column.kind == Kind::Number).collect();
        let others: Vec<&Column> =
            columns.iter().map(|column| &self.table.columns[*column]).filter(|column| column.kind != Kind::Number).collect();
        let mut body = String::new();
        if !numbers.is_empty() {
            let mut header =
                vec![tell!(language, "column", "列"), tell!(language, "numbers", "数字个数"), tell!(language, "empty", "空")];
            header.extend(ALL.map(|aggregate| called(language, aggregate)));
            let rows = numbers.iter().map(|column| {
                let count = self.rows.iter().filter(|&&row| column.numbers[row].is_some()).count();
                let mut cells = vec![column.name.clone(), count.to_string(), self.gaps(column).to_string()];
                cells.extend(ALL.map(|aggregate| {
                    column.figure(aggregate, self.rows).map_or_else(|| "–".to_owned(), |figure| figure.to_string())
                }));
                cells
            });
            body.push_str(&format!("\n\n{}", markdown(&header, rows)));
        }
        if !others.is_empty() {
            let header = [
                tell!(language, "column", "列"),
                tell!(language, "type", "类型"),
                tell!(language, "different values", "不同值"),
                tell!(language, "empty", "空"),
                tell!(language, "values", "内容"),
            ];
            let rows = others.iter().map(|column| {
                let distinct =
                    column.figure(Aggregate::Distinct, self.rows).map_or_else(String::new, |figure| figure.to_string());
                vec![
                    column.name.clone(),
                    kind(language, column.kind),
                    distinct,
                    self.gaps(column).to_string(),
                    self.values(column),
                ]
            });
            body.push_str(&format!("{}{}", if body.is_empty() { "\n\n" } else { "\n" }, markdown(&header, rows)));
        }
        let odd = self.odd(numbers.iter().copied());
        let commas: Vec<_> =
            numbers.iter().filter(|column| column.point == Point::Comma).map(|column| format!("`{}`", column.name)).collect();
        let commas = if commas.is_empty() {
            String::new()
        } else {
            tell!(language, "\nNote: in {} the comma is the decimal point.", "\n说明：{} 里的逗号是小数点。", commas.join(", "))
        };
        let check = numbers
            .first()
            .and_then(|first| columns.iter().find(|column| self.table.columns[**column].name == first.name))
            .map_or_else(String::new, |column| self.check_column(*column));
        format!("{}{odd}{commas}{check}", body.trim_end())
    }

    /// How many cells were left out for they are no numbers.
    fn odd<'c>(&self, columns: impl Iterator<Item = &'c Column>) -> String {
        let language = self.language;
        let notes = columns.filter(|column| column.odd(self.rows) > 0).map(|column| {
            let (odd, name) = (column.odd(self.rows), &column.name);
            let filled = self.rows.iter().filter(|&&row| !column.is_empty(row)).count();
            tell!(
                language,
                "\nNote: of {filled} filled cells of `{name}` {odd} held no number and stayed out.",
                "\n说明：“{name}”的 {filled} 个非空格里有 {odd} 个不是数字，没有计入。"
            )
        });
        notes.collect()
    }

    fn gaps(&self, column: &Column) -> usize {
        if self.rows.len() == self.table.rows {
            column.gaps()
        } else {
            self.rows.iter().filter(|&&row| column.cells[row].trim().is_empty()).count()
        }
    }

    /// The values that occur most, or the span of dates.
    fn values(&self, column: &Column) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for &row in self.rows {
            let cell = column.cells[row].trim();
            if !cell.is_empty() {
                *counts.entry(cell).or_default() += 1;
            }
        }
        if column.kind == Kind::Date {
            let first = counts.keys().min_by_key(|cell| (month_of(cell), **cell)).copied().unwrap_or_default();
            let last = counts.keys().max_by_key(|cell| (month_of(cell), **cell)).copied().unwrap_or_default();
            return tell!(self.language, "{first} to {last}", "{first} 至 {last}");
        }
        let total = counts.len();
        if total == self.rows.len() && total > MAX_VALUES {
            return tell!(self.language, "all different", "各不相同");
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut shown: Vec<_> = counts.iter().take(MAX_VALUES).map(|(value, count)| format!("{value} ({count})")).collect();
        if total > MAX_VALUES {
            shown.push("…".to_owned());
        }
        shown.join(", ")
    }
}

/// Whether a row meets a condition.
fn meets(table: &Table, filter: &Filter, row: usize) -> bool {
    let column = &table.columns[filter.column];
    let cell = column.cells[row].trim().to_ascii_lowercase();
    let is_one = |value: &String| match (column.numbers[row], Exact::parse(value, Point::Dot)) {
        (Some(number), Some(value)) => number == value,
        _ if column.kind == Kind::Date && iso(value).is_some() => {
            iso(&cell).zip(iso(value)).is_some_and(|(cell, value)| cell.starts_with(&value))
        }
        _ => cell == *value,
    };
    let compared = filter.values.first().and_then(|value| match column.kind {
        Kind::Number => Some(column.numbers[row]?.cmp(&Exact::parse(value, Point::Dot)?)),
        Kind::Date => {
            // A month is compared with months, a year with years.
            let (cell, value) = (iso(&cell)?, iso(value)?);
            Some(cell.get(..value.len()).unwrap_or(&cell).cmp(value.as_str()))
        }
        _ => None,
    });
    match filter.relation {
        Relation::Is => filter.values.iter().any(is_one),
        Relation::IsNot => !filter.values.iter().any(is_one),
        Relation::Contains => filter.values.iter().any(|value| cell.contains(value.as_str())),
        Relation::ContainsNot => !filter.values.iter().any(|value| cell.contains(value.as_str())),
        Relation::Begins => filter.values.iter().any(|value| cell.starts_with(value.as_str())),
        Relation::Empty => column.is_empty(row),
        Relation::Filled => !column.is_empty(row),
        Relation::More => compared.is_some_and(|order| order.is_gt()),
        Relation::Less => compared.is_some_and(|order| order.is_lt()),
        Relation::AtLeast => compared.is_some_and(|order| order.is_ge()),
        Relation::AtMost => compared.is_some_and(|order| order.is_le()),
    }
}

fn conditions(language: Language, table: &Table, question: &Question) -> String {
    let conditions = question.filters.iter().map(|filter| {
        let column = &table.columns[filter.column];
        let sign = match filter.relation {
            Relation::Is => "=",
            Relation::IsNot => "≠",
            Relation::More => ">",
            Relation::Less => "<",
            Relation::AtLeast => "≥",
            Relation::AtMost => "≤",
            Relation::Contains => "~",
            Relation::ContainsNot => "!~",
            Relation::Begins => "^",
            Relation::Empty => return tell!(language, "{} is empty", "{} 为空", column.name),
            Relation::Filled => return tell!(language, "{} is not empty", "{} 不为空", column.name),
        };
        // As it stands in the table, not in the lower case of the question.
        let spelled = |value: &String| {
            let same = column.cells.iter().map(|cell| cell.trim()).find(|cell| cell.to_ascii_lowercase() == *value);
            same.unwrap_or(value).to_owned()
        };
        let values: Vec<_> = filter.values.iter().map(spelled).collect();
        format!("{} {sign} {}", column.name, values.join(&tell!(language, " or ", " 或 ")))
    });
    conditions.collect::<Vec<_>>().join(&tell!(language, " and ", " 且 "))
}

fn keys(language: Language, table: &Table, question: &Question) -> String {
    question.keys.iter().map(|key| key_name(language, table, *key)).collect::<Vec<_>>().join(" / ")
}

fn key_name(language: Language, table: &Table, key: Key) -> String {
    match key {
        Key::Column(column) => table.columns[column].name.clone(),
        Key::Month(_) => tell!(language, "month", "月份"),
        Key::Year(_) => tell!(language, "year", "年份"),
    }
}

fn value_of(language: Language, table: &Table, key: Key, row: usize) -> String {
    let value = match key {
        Key::Column(column) => table.columns[column].cells[row].trim().to_owned(),
        Key::Month(column) => month_of(&table.columns[column].cells[row]).unwrap_or_default(),
        Key::Year(column) => {
            month_of(&table.columns[column].cells[row]).and_then(|month| month.get(..4).map(str::to_owned)).unwrap_or_default()
        }
    };
    if value.is_empty() { tell!(language, "(empty)", "（空）") } else { value }
}

fn called(language: Language, aggregate: Aggregate) -> String {
    match aggregate {
        Aggregate::Count => tell!(language, "count", "个数"),
        Aggregate::Sum => tell!(language, "sum", "总和"),
        Aggregate::Mean => tell!(language, "average", "平均值"),
        Aggregate::Median => tell!(language, "median", "中位数"),
        Aggregate::Min => tell!(language, "minimum", "最小值"),
        Aggregate::Max => tell!(language, "maximum", "最大值"),
        Aggregate::Distinct => tell!(language, "number of different values", "不同值个数"),
    }
}

fn kind(language: Language, kind: Kind) -> String {
    match kind {
        Kind::Number => tell!(language, "number", "数字"),
        Kind::Date => tell!(language, "date", "日期"),
        Kind::Text => tell!(language, "text", "文本"),
        Kind::Empty => tell!(language, "empty", "空"),
    }
}

fn markdown(header: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    let rows: String = rows.map(|cells| line(&cells)).collect();
    format!("{}{rule}{rows}", line(header))
}
