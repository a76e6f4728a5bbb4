//! Tables as text: quoted fields, any line end, a byte-order mark, and commas, semicolons, tabs or bars between the fields.

/// A table as it stands in its file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) delimiter: char,
    /// The first row held numbers only, so the columns were given names.
    pub(super) is_nameless: bool,
    /// Rows that had more or fewer fields than the header.
    pub(super) ragged: usize,
    /// A quotation mark was never closed.
    pub(super) is_open: bool,
}

const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

/// Takes a text apart.
pub(super) fn parse(text: &str) -> Sheet {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // What spreadsheets write to name the delimiter.
    let (named, text) = match text.split_once('\n') {
        Some((first, rest)) if first.trim_end().len() == 5 && first.starts_with("sep=") => (first.chars().nth(4), rest),
        _ => (None, text),
    };
    let delimiter = named.unwrap_or_else(|| likely(text));
    let (mut records, is_open) = records(text, delimiter);
    if records.is_empty() {
        return Sheet { delimiter, is_open, ..Sheet::default() };
    }
    let is_number = |cell: &String| cell.trim().parse::<f64>().is_ok();
    let is_nameless = !records[0].is_empty() && records[0].iter().all(is_number);
    let header: Vec<String> = match is_nameless {
        true => (1..=records[0].len()).map(|n| format!("column{n}")).collect(),
        false => records.remove(0).iter().enumerate().map(|(n, name)| named_or(name, n)).collect(),
    };
    let width = header.len();
    let ragged = records.iter().filter(|record| record.len() != width).count();
    for record in &mut records {
        record.resize(width, String::new());
    }
    Sheet { header, rows: records, delimiter, is_nameless, ragged, is_open }
}

fn named_or(name: &str, n: usize) -> String {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() { format!("column{}", n + 1) } else { name }
}

/// The delimiter that gives the first lines the same number of fields, and the most of them.
fn likely(text: &str) -> char {
    let sample: String = text.split_inclusive('\n').take(20).collect();
    let fits = DELIMITERS.map(|delimiter| {
        let widths: Vec<usize> = records(&sample, delimiter).0.iter().map(Vec::len).collect();
        let first = widths.first().copied().unwrap_or(1);
        let same = widths.iter().filter(|&&width| width == first).count();
        let score = if first < 2 { 0 } else { same * 100 / widths.len().max(1) * 10 + first.min(9) };
        (score, delimiter)
    });
    fits.into_iter()
        .rev()
        .max_by_key(|(score, _)| *score)
        .filter(|(score, _)| *score > 0)
        .map_or(',', |(_, delimiter)| delimiter)
}

/// Every record that is not blank, and whether a quotation mark was left open.
fn records(text: &str, delimiter: char) -> (Vec<Vec<String>>, bool) {
    let mut records = Vec::new();
    let (mut record, mut field) = (Vec::new(), String::new());
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_quoted {
            match c {
                '"' if chars.peek() == Some(&'"') => {
                    chars.next();
                    field.push('"');
                }
                '"' => is_quoted = false,
                c => field.push(c),
            }
        } else if c == '"' && field.trim().is_empty() && !was_quoted {
            field.clear();
            (is_quoted, was_quoted) = (true, true);
        } else if c == delimiter {
            record.push(taken(&mut field, was_quoted));
            was_quoted = false;
        } else if c == '\n' || c == '\r' {
            if c == '\r' && chars.peek() == Some(&'\n') {
                chars.next();
            }
            finish(&mut records, &mut record, &mut field, was_quoted);
            was_quoted = false;
        } else if !(was_quoted && c.is_whitespace()) {
            field.push(c);
        }
    }
    finish(&mut records, &mut record, &mut field, was_quoted);
    (records, is_quoted)
}

fn taken(field: &mut String, was_quoted: bool) -> String {
    let field = std::mem::take(field);
    if was_quoted { field } else { field.trim().to_owned() }
}

fn finish(records: &mut Vec<Vec<String>>, record: &mut Vec<String>, field: &mut String, was_quoted: bool) {
    let is_blank = record.is_empty() && field.trim().is_empty() && !was_quoted;
    let last = taken(field, was_quoted);
    if !is_blank {
        record.push(last);
        records.push(std::mem::take(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, delimiter: char, want: &[&[&str]]) {
        let sheet = parse(text);
        let mut got = vec![sheet.header.clone()];
        got.extend(sheet.rows.clone());
        assert_eq!(
            (got, sheet.delimiter),
            (want.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect(), delimiter),
            "{text:?}"
        );
    }

    #[test]
    fn every_usual_way_of_writing_a_table_is_read() {
        check("a,b\n1,2\n", ',', &[&["a", "b"], &["1", "2"]]);
        check("\u{feff}a;b\r\n1,5;2\r\n", ';', &[&["a", "b"], &["1,5", "2"]]);
        check("a\tb\n1\t2", '\t', &[&["a", "b"], &["1", "2"]]);
        check("a|b\n1|2\n", '|', &[&["a", "b"], &["1", "2"]]);
        check("a,b\n\"x, \"\"y\"\"\nz\", 2 \n", ',', &[&["a", "b"], &["x, \"y\"\nz", "2"]]);
        check("a , b\n\"1,234\" ,\"\"\n", ',', &[&["a", "b"], &["1,234", ""]]);
        check("sep=;\na;b\n1;2\n", ';', &[&["a", "b"], &["1", "2"]]);
        check("a,b\n\n1,2\n  \n3,4\n\n", ',', &[&["a", "b"], &["1", "2"], &["3", "4"]]);
        check("name\nAnna\nBob\n", ',', &[&["name"], &["Anna"], &["Bob"]]);
        check("a,b\r1,2\r3,4", ',', &[&["a", "b"], &["1", "2"], &["3", "4"]]);
        check("a,,c\n1,2,3\n", ',', &[&["a", "column2", "c"], &["1", "2", "3"]]);
        check("1,2\n3,4\n", ',', &[&["column1", "column2"], &["1", "2"], &["3", "4"]]);
        check("名称,价格\n苹果,3.5\n", ',', &[&["名称", "价格"], &["苹果", "3.5"]]);
        check("height 5\" x,b\n1,2\n", ',', &[&["height 5\" x", "b"], &["1", "2"]]);
    }

    #[test]
    fn what_is_wrong_with_a_table_is_noticed() {
        let sheet = parse("a,b\n1\n1,2,3\n1,2\n");
        assert_eq!(
            (sheet.ragged, sheet.rows),
            (2, vec![vec!["1".to_owned(), String::new()], vec!["1".into(), "2".into()], vec!["1".into(), "2".into()]])
        );
        assert!(parse("a,b\n\"1,2\n").is_open);
        assert!(parse("").header.is_empty() && parse("\n\n").header.is_empty());
        assert!(parse("a,b\n").rows.is_empty());
    }
}
