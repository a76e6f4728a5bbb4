//! Tables that mean harm: what is in them is data to every part, and no part takes it for anything else.

use polis_testkit::ScriptedModel;

use crate::place::Place;
use crate::table::{Table, rows};

/// Cells that are code to somebody.
const CELLS: [&str; 12] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</td></table><h1>owned</h1>",
    "&lt;b&gt; &amp; '",
    "=HYPERLINK(\"http://x\",\"y\")",
    "+1+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "a\\nb\\\\c %s %n {0} & \\& \\1",
    "awk '{system(\"touch pwned\")}' ; \u{1}\u{7f} \"",
];

#[tokio::test]
async fn what_is_in_a_table_is_text_to_the_shell_to_awk_and_to_html() {
    let Some(place) = Place::new("what_is_in_a_table_is_text_to_the_shell_to_awk_and_to_html").await else { return };
    for column in [false, true] {
        // As cells to group by, and as names of columns of numbers.
        let table = if column {
            Table::new(&CELLS, &[&["1"; 12], &["2"; 12]])
        } else {
            let records: Vec<_> = CELLS.iter().chain(&CELLS).map(|cell| [*cell, "1"]).collect();
            Table::new(&["kind", "amount"], &records.iter().map(|record| &record[..]).collect::<Vec<_>>())
        };
        std::fs::write(place.workspace().join("table.csv"), table.written(',', "\n")).unwrap();
        let outcome = place.ask("Analyse table.csv", ScriptedModel::saying("No.")).await;
        let page = outcome.page();
        let firsts: Vec<String> = rows(page).into_iter().map(|mut row| row.remove(0)).collect();
        for cell in CELLS {
            let shown = cell.replace(['\u{1}', '\u{7f}'], "?");
            assert!(firsts.contains(&shown), "{shown} is not in {firsts:#?}");
        }
        for tag in ["<script", "<img", "<h1>owned", "<b>"] {
            assert!(!page.contains(tag), "{tag} is in {page}");
        }
        assert_eq!(page.matches("<h1>").count(), 1);
        for (tool, arguments) in &outcome.calls {
            let is_clean =
                tool != "run_command" || !["pwned", "script", "calc", "owned"].iter().any(|word| arguments.contains(word));
            assert!(is_clean, "{arguments}");
        }
    }
    assert!(!pwned(&place));
}

#[tokio::test]
async fn a_name_of_a_file_reaches_the_shell_as_one_word() {
    let Some(place) = Place::new("a_name_of_a_file_reaches_the_shell_as_one_word").await else { return };
    for name in [
        "x'; touch pwned; '.csv",
        "$(touch pwned).csv",
        "-n.csv",
        "a b  c.csv",
        "x\" && touch pwned && \".csv",
        "销售 & 数据.csv",
    ] {
        std::fs::write(place.workspace().join(name), "city,amount\nA,1\nB,2\n").unwrap();
        let outcome = place.ask(&format!("Analyse `{name}`"), ScriptedModel::saying("No.")).await;
        let title = rows(&outcome.page().replace("<h1>", "<tr><th>").replace("</h1>", "</th></tr>")).remove(0).remove(0);
        assert!(title.ends_with(name), "{title}");
    }
    // A link that leads out is followed by nobody.
    std::os::unix::fs::symlink(place.secret(), place.workspace().join("link.csv")).unwrap();
    let outcome = place.ask("Analyse link.csv", ScriptedModel::saying("No.")).await;
    assert!(outcome.answer.as_ref().unwrap().starts_with("This came to nothing: "));
    assert!(!outcome.texts().concat().contains("the secret"));
    assert!(!pwned(&place));
}

fn pwned(place: &Place) -> bool {
    let mut folders = vec![place.workspace()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_name() == "pwned" {
                return true;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}
