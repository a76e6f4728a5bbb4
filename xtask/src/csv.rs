//! Rows and fields of a CSV file (RFC 4180), and nothing about what they mean.

use anyhow::{Result, bail};

/// One row and the line it starts on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) fields: Vec<String>,
}

/// Reads all rows; blank lines are passed over.
pub(crate) fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() {
        let start = line;
        let mut fields = Vec::new();
        loop {
            let mut field = String::new();
            if chars.next_if_eq(&'"').is_some() {
                loop {
                    match chars.next() {
                        Some('"') if chars.next_if_eq(&'"').is_some() => field.push('"'),
                        Some('"') => break,
                        Some(c) => {
                            line += usize::from(c == '\n');
                            field.push(c);
                        }
                        None => bail!("line {start}: a quoted field is never closed"),
                    }
                }
            } else {
                while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '\n' | '\r')) {
                    field.push(c);
                }
            }
            fields.push(field);
            chars.next_if_eq(&'\r');
            match chars.next() {
                Some(',') => {}
                Some('\n') => {
                    line += 1;
                    break;
                }
                None => break,
                Some(c) => bail!("line {line}: `{c}` after a closing quote"),
            }
        }
        if fields.iter().any(|field| !field.is_empty()) {
            rows.push(Row { line: start, fields });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, &[&str])]) {
        let expected: Vec<Row> = expected
            .iter()
            .map(|(line, fields)| Row { line: *line, fields: fields.iter().map(|&field| field.to_owned()).collect() })
            .collect();
        assert_eq!(rows(text).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn rows_are_read_with_and_without_quotes() {
        check("", &[]);
        check("a,b\n", &[(1, &["a", "b"])]);
        check("a,b\r\nc,", &[(1, &["a", "b"]), (2, &["c", ""])]);
        check("a,\"b,\"\"c\"\"\nd\"\n\ne,f", &[(1, &["a", "b,\"c\"\nd"]), (4, &["e", "f"])]);
    }

    #[test]
    fn a_broken_quote_names_its_line() {
        assert_eq!(rows("a\n\"b").unwrap_err().to_string(), "line 2: a quoted field is never closed");
        assert_eq!(rows("a\n\"b\"c").unwrap_err().to_string(), "line 2: `c` after a closing quote");
    }
}
