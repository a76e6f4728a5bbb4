//! Columns that a question names: by their own names, in the plural, by a word of the other language, or nearly.

use std::ops::Range;

use super::columns::Table;
use super::words::{self, AGGREGATES, FILLERS, SYNONYMS};
use crate::files::distance;

/// A column, and where the question names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnMention {
    pub(super) at: Range<usize>,
    pub(super) column: usize,
}

/// Every column that the question names, in order, and the words that were taken for one.
pub(super) fn find(lower: &str, table: &Table) -> (Vec<ColumnMention>, Vec<(String, usize)>) {
    let mut found: Vec<(ColumnMention, bool)> = Vec::new();
    for (column, one) in table.columns.iter().enumerate() {
        let own = spellings(&one.name);
        let others = synonyms(&own);
        for (spelling, is_own) in own.iter().map(|own| (own, true)).chain(others.iter().map(|other| (other, false))) {
            let places = words::places(lower, spelling);
            found.extend(places.into_iter().filter(|at| is_meant(lower, at)).map(|at| (ColumnMention { at, column }, is_own)));
        }
    }
    // Of two that stand in the same place the longer one, and the one with its own name.
    found.sort_by_key(|(named, is_own)| (usize::MAX - named.at.len(), !is_own, named.at.start, named.column));
    let mut kept: Vec<ColumnMention> = Vec::new();
    for (named, is_own) in found {
        let overlaps = kept.iter().any(|other| named.at.start < other.at.end && other.at.start < named.at.end);
        // A synonym that could mean two columns means neither of them while one is there by its own name.
        let is_second = !is_own && kept.iter().any(|other| other.at == named.at);
        if !overlaps && !is_second {
            kept.push(named);
        }
    }
    let taken = nearly(lower, table, &mut kept);
    kept.sort_by_key(|named| named.at.start);
    (kept, taken)
}

/// A single message is a column only where it cannot be an article.
fn is_meant(lower: &str, at: &Range<usize>) -> bool {
    !["a", "i"].contains(&&lower[at.clone()]) || lower[..at.start].trim_end().ends_with("column")
}

/// How a column may be written: as it is, with spaces for other signs, in the plural.
fn spellings(name: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let spaced = name.replace(['_', '-', '.'], " ");
    // 价格(元) is called 价格.
    let bare = name.split(['(', '（', '[']).next().unwrap_or(&name).trim().to_owned();
    let mut all = vec![name.clone(), spaced.clone(), spaced.replace(' ', ""), bare];
    if spaced.ends_with(|c: char| c.is_ascii_alphabetic()) {
        all.push(format!("{spaced}s"));
        all.push(format!("{spaced}es"));
        all.extend(spaced.strip_suffix('y').map(|stem| format!("{stem}ies")));
        all.extend(spaced.strip_suffix('s').filter(|stem| stem.len() > 2).map(str::to_owned));
    }
    all.retain(|spelling| !spelling.is_empty());
    all.sort_unstable();
    all.dedup();
    all
}

fn synonyms(own: &[String]) -> Vec<String> {
    let groups = SYNONYMS.iter().filter(|group| own.iter().any(|name| group.contains(&name.as_str())));
    let words = groups.flat_map(|group| group.iter());
    let mut all: Vec<String> =
        words.flat_map(|word| if word.is_ascii() { spellings(word) } else { vec![(*word).to_owned()] }).collect();
    all.retain(|word| !own.contains(word));
    all
}

/// Whether the sum of such a column means something: amounts do, prices and ages do not.
pub(super) fn adds_up(name: &str) -> bool {
    const ALONE: &[&str] =
        &["price", "age", "score", "weight", "height", "rate", "rating", "temperature", "year", "比率", "温度", "评分"];
    let own = spellings(name);
    let others = synonyms(&own);
    !own.iter().chain(&others).any(|name| ALONE.contains(&name.as_str()))
}

/// Words that no column is called, but one nearly.
fn nearly(lower: &str, table: &Table, kept: &mut Vec<ColumnMention>) -> Vec<(String, usize)> {
    let mut taken = Vec::new();
    let start = lower.as_ptr() as usize;
    for word in lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let at = word.as_ptr() as usize - start;
        let is_free = !kept.iter().any(|named| at < named.at.end && named.at.start < at + word.len());
        let is_known = FILLERS.contains(&word) || AGGREGATES.iter().any(|(known, _)| known.split(' ').any(|part| part == word));
        let is_value = || table.columns.iter().any(|column| column.cells.iter().any(|cell| cell.to_ascii_lowercase() == word));
        if word.len() < 4 || !is_free || is_known || is_value() {
            continue;
        }
        let allowed = if word.len() > 6 { 2 } else { 1 };
        let near = table.columns.iter().enumerate().filter_map(|(column, one)| {
            let name = one.name.to_ascii_lowercase();
            let far = distance(word, &name);
            (far <= allowed && name.len() >= 4).then_some((far, column))
        });
        if let Some((_, column)) = near.min() {
            kept.push(ColumnMention { at: at..at + word.len(), column });
            taken.push((word.to_owned(), column));
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::csv;
    use super::*;

    fn check(header: &str, asked: &str, want: &[&str]) {
        let table = Table::new(csv::parse(&format!("{header}\n")));
        let (named, _) = find(asked, &table);
        let names: Vec<&str> = named.iter().map(|named| table.columns[named.column].name.as_str()).collect();
        assert_eq!(names, want, "{asked}");
    }

    #[test]
    fn columns_are_found_however_they_are_written() {
        check("City,unit_price,Amount", "average unit price by city", &["unit_price", "City"]);
        check("city,price", "prices of all cities", &["price", "city"]);
        check("城市,价格(元)", "每个城市的平均价格", &["城市", "价格(元)"]);
        check("region,sales", "总销售额按地区", &["sales", "region"]);
        check("地区,销售额", "total sales by region", &["销售额", "地区"]);
        check("price,unit price", "the unit price", &["unit price"]);
        check("salary,age", "average salry", &["salary"]);
        check("a,b", "a sum of b", &["b"]);
        check("country,count", "how many in each country", &["country"]);
    }
}
