//! The checks of the page by name, as tests of the record: `page::…` for a check in a browser, `page/unit::…` for one in Node. The
//! names are those that the sources declare and that a run prints; what is not a letter or a digit becomes `_`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::record::{Record, Verdict};

/// How a runner says that a check has passed, and what stands before its name in the record.
struct Runner {
    folder: &'static str,
    mark: &'static str,
    prefix: &'static str,
}

const RUNNERS: [Runner; 2] = [
    Runner { folder: "test/page", mark: "ok: ", prefix: "page::" },
    Runner { folder: "test/unit", mark: "✔ ", prefix: "page/unit::" },
];

/// All checks that the sources below `web` declare.
pub(super) fn declared(web: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for Runner { folder, prefix, .. } in RUNNERS {
        let folder = web.join(folder);
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let text = std::fs::read_to_string(entry?.path())?;
            found.extend(names(&text).map(|name| format!("{prefix}{}", slug(name))));
        }
    }
    ensure!(!found.is_empty(), "no check of the page was found below {}", web.display());
    Ok(found)
}

/// Notes what a run printed. Each declared check must have passed in it, or the step shows less than it says.
pub(super) fn note(record: &mut Record, declared: &BTreeSet<String>, said: &str) -> Result<()> {
    let passed = passed(said);
    let silent: Vec<&str> = declared.difference(&passed).map(String::as_str).collect();
    ensure!(silent.is_empty(), "these checks of the page did not say that they passed: {}", silent.join(", "));
    for check in passed {
        record.ran(&check);
        record.note(check, Verdict::Passed);
    }
    Ok(())
}

fn passed(said: &str) -> BTreeSet<String> {
    let of = |line: &str| {
        let runner = RUNNERS.iter().find(|runner| line.starts_with(runner.mark))?;
        let (name, _duration) = line[runner.mark.len()..].rsplit_once(" (")?;
        Some(format!("{}{}", runner.prefix, slug(name)))
    };
    said.lines().filter_map(of).collect()
}

/// The names in a source: `test('…', () =>`, or the first line of an entry of `checks`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = |line: &'_ str| -> Option<(usize, usize)> {
        let begin = line.find('\'')? + 1;
        Some((begin, begin + line[begin..].find("',")?))
    };
    let lines = text.lines().zip(std::iter::once("").chain(text.lines()));
    lines.filter_map(move |(line, before)| {
        let is_name = line.starts_with("test('") || (before == "  [" && line.starts_with("    '"));
        quoted(line).filter(|_| is_name).map(|(begin, end)| &line[begin..end])
    })
}

fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_one_name_in_its_source_and_in_what_a_run_prints() {
        let source = "export const checks = [\n  [\n    'a reply streams: apart, and it\\'s whole',\n    async () => {},\n  ],\n  ['task-1', 'no']\n";
        let unit = "  test('inner', () => {})\ntest('half a text is shown', () => {\n";
        assert_eq!(names(source).map(slug).collect::<Vec<_>>(), ["a_reply_streams_apart_and_it_s_whole"]);
        assert_eq!(names(unit).collect::<Vec<_>>(), ["half a text is shown"]);
        let said = "ok: a reply streams: apart, and it's whole (210 ms)\n✔ half a text is shown (0.3ms)\nred: another (3 ms)\n";
        let expected = ["page/unit::half_a_text_is_shown", "page::a_reply_streams_apart_and_it_s_whole"];
        assert_eq!(passed(said), expected.map(str::to_owned).into());
    }

    #[test]
    fn a_check_that_says_nothing_is_missed() {
        let declared = ["page::a".to_owned(), "page::b".to_owned()].into();
        let mut record = Record::default();
        record.note("page::a".to_owned(), Verdict::Skipped);
        assert!(note(&mut record, &declared, "ok: a (1 ms)\n").unwrap_err().to_string().ends_with("passed: page::b"));
        note(&mut record, &declared, "ok: a (1 ms)\nok: b (2 ms)\n").unwrap();
        assert_eq!((record.passed.len(), record.skipped.len()), (2, 0));
    }

    #[test]
    fn the_page_of_this_project_has_checks_of_both_kinds() {
        let declared = declared(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../web")).unwrap();
        for prefix in ["page::", "page/unit::"] {
            assert!(declared.iter().filter(|name| name.starts_with(prefix)).count() > 20, "{prefix}");
        }
    }
}
