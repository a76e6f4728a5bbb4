//! Figures of a table, worked out a second way: exact, in decimals, from records that were never a file. And those that a report shows.

use std::collections::BTreeMap;

/// A table as the test knows it.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) names: Vec<String>,
    pub(crate) records: Vec<Vec<String>>,
}

/// Count, sum, mean, minimum and maximum.
pub(crate) type Figures = [f64; 5];

impl Table {
    pub(crate) fn new(names: &[&str], records: &[&[&str]]) -> Self {
        let own = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        Self { names: own(names), records: records.iter().map(|record| own(record)).collect() }
    }

    /// The file: every cell in quotes where it must be, and `end` after each line.
    pub(crate) fn written(&self, mark: char, end: &str) -> String {
        let cell = |text: &String| {
            let quote = text.contains([mark, '"', '\n', '\r']) || text.starts_with(' ');
            if quote { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.clone() }
        };
        let line = |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(&mark.to_string()) + end;
        std::iter::once(&self.names).chain(&self.records).map(line).collect()
    }

    /// The figures of a column, of all records or of those with a value in another one.
    pub(crate) fn figures(&self, column: usize, of: Option<(usize, &str)>) -> Figures {
        let records = self.records.iter().filter(|record| of.is_none_or(|(column, value)| record[column].trim() == value));
        let cells: Vec<&str> = records.map(|record| record[column].trim()).filter(|cell| !cell.is_empty()).collect();
        // In millionths, so that nothing is rounded.
        let millionths = |cell: &str| -> i128 {
            let (sign, cell) = cell.strip_prefix('-').map_or((1, cell), |rest| (-1, rest));
            let (whole, part) = cell.split_once('.').unwrap_or((cell, ""));
            sign * format!("{whole}{part:0<6}").parse::<i128>().unwrap()
        };
        let numbers: Vec<i128> = cells.iter().map(|cell| millionths(cell)).collect();
        let sum: i128 = numbers.iter().sum();
        let real = |millionths: i128| millionths as f64 / 1e6;
        let (least, most) = (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap());
        [numbers.len() as f64, real(sum), real(sum) / numbers.len() as f64, real(least), real(most)]
    }
}

/// The cells of each row of a report, as text.
pub(crate) fn rows(html: &str) -> Vec<Vec<String>> {
    let cells = |row: &str| {
        let cells = row.split("</t").filter_map(|part| part.rsplit_once('>').map(|(_, text)| plain(text)));
        cells.take(row.matches("</t").count()).collect::<Vec<_>>()
    };
    html.split("<tr>").skip(1).filter_map(|part| Some(cells(part.split_once("</tr>")?.0))).collect()
}

/// The figures of each column that a report shows, by its name; those of groups by group and name.
pub(crate) fn shown(html: &str) -> BTreeMap<Vec<String>, Figures> {
    let number = |cell: &String| cell.parse::<f64>().ok();
    let all = rows(html).into_iter().filter_map(|row| {
        let figures: Vec<f64> = match row.len() {
            // The column with its empty cells, or the group and the column.
            7 if row[1].parse::<f64>().is_ok() => [1, 3, 4, 5, 6].iter().filter_map(|at| number(&row[*at])).collect(),
            7 => row[2..].iter().filter_map(number).collect(),
            _ => return None,
        };
        let key = if row[1].parse::<f64>().is_ok() { vec![row[0].clone()] } else { row[..2].to_vec() };
        Some((key, figures.try_into().ok()?))
    });
    all.collect()
}

fn plain(html: &str) -> String {
    let text = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&")
}
