//! The figures in the report are those of the table, whatever the table looks like.

use std::collections::BTreeSet;

use polis_testkit::ScriptedModel;

use crate::place::Place;
use crate::table::{Table, rows, shown};

/// Asks for a report on the table and compares every figure in it.
async fn check(place: &Place, table: &Table, file: &str, numbers: &[usize], group: Option<usize>) {
    std::fs::write(place.workspace().join("table.csv"), file).unwrap();
    let outcome = place.ask("Analyse table.csv", ScriptedModel::saying("I cannot write code.")).await;
    let page = outcome.page();
    let shown = shown(page);
    let mut want = Vec::new();
    for column in numbers {
        want.push((vec![table.names[*column].clone()], table.figures(*column, None)));
        if let Some(group) = group {
            let values: BTreeSet<&str> = table.records.iter().map(|record| record[group].trim()).collect();
            let of = |value: &str| {
                (vec![value.to_owned(), table.names[*column].clone()], table.figures(*column, Some((group, value))))
            };
            want.extend(values.into_iter().map(of));
        }
    }
    assert_eq!(shown.keys().cloned().collect::<BTreeSet<_>>(), want.iter().map(|(key, _)| key.clone()).collect(), "{page}");
    for (key, figures) in want {
        for (is, should) in shown[&key].iter().zip(figures) {
            assert!((is - should).abs() <= 1e-11 * should.abs().max(1.0), "{key:?}: {:?} should be {figures:?}", shown[&key]);
        }
    }
    assert!(page.contains(&format!("Records: {}, columns: {}", table.records.len(), table.names.len())), "{page}");
}

#[tokio::test]
async fn the_figures_of_the_report_are_those_of_the_table() {
    let Some(place) = Place::new("the_figures_of_the_report_are_those_of_the_table").await else { return };
    let plain = Table::new(
        &["city", "amount", "price"],
        &[&["Lisbon", "3", "4.50"], &["Porto", "2", "-6.2"], &["Lisbon", "10", "0.1"], &["Porto", "-7", "0.2"]],
    );
    check(&place, &plain, &plain.written(',', "\n"), &[1, 2], Some(0)).await;
    // Windows writes a mark at the beginning, semicolons and its own line ends; the last line may have none.
    let windows = format!("\u{feff}{}", plain.written(';', "\r\n"));
    check(&place, &plain, windows.trim_end(), &[1, 2], Some(0)).await;
    let quoted = Table::new(
        &["name, or so", "the \"size\"", "note"],
        &[
            &["a, b", "1.25", "two\nlines"],
            &["a, b", "2.5", "a \"word\""],
            &["c|d", "", "back\\slash, \\n and tab\there"],
            &["c|d", "1000000.75", ""],
        ],
    );
    check(&place, &quoted, &quoted.written(',', "\n"), &[1], Some(0)).await;
    check(&place, &quoted, &quoted.written('\t', "\r\n"), &[1], Some(0)).await;
    let unicode = Table::new(
        &["城市", "数量", "Größe (€)"],
        &[&["北京", "1", "0.000001"], &["上海 🏙", "2", "99999999.999999"], &["北京", "", "1"], &["上海 🏙", "4", ""]],
    );
    check(&place, &unicode, &unicode.written(',', "\n"), &[1, 2], Some(0)).await;
}

#[tokio::test]
async fn empty_cells_count_nowhere_and_words_make_a_column_of_texts() {
    let Some(place) = Place::new("empty_cells_count_nowhere_and_words_make_a_column_of_texts").await else { return };
    // Nothing is written as nothing, in words or with spaces; a record of nothing is none; short and long records fit in.
    let file = "a,b,c,d,\nx,null, 1 ,5\n, ,N/A,\n,,,\ny,2,3,0x10,9,more\nz,NaN,,1e400\n";
    std::fs::write(place.workspace().join("table.csv"), file).unwrap();
    let outcome = place.ask("Analyse table.csv", ScriptedModel::saying("No.")).await;
    let page = outcome.page();
    let rows = rows(page);
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    for want in [
        row(&["b", "1", "2", "2", "2", "2", "2"]),
        row(&["c", "2", "1", "4", "2", "1", "3"]),
        row(&["a", "3", "0", "3"]),
        row(&["d", "3", "0", "3"]),
        row(&["column 5", "1", "2", "9", "9", "9", "9"]),
    ] {
        assert!(rows.contains(&want), "{want:?} is not in {rows:?}");
    }
    assert!(
        outcome.texts()[1].contains("records read: 5, empty ones left out: 2, with more cells than columns: 1"),
        "{:?}",
        outcome.texts()[1]
    );
}

#[tokio::test]
async fn ten_thousand_records_are_summed_to_the_last_digit() {
    let Some(place) = Place::new("ten_thousand_records_are_summed_to_the_last_digit").await else { return };
    let mut seed = 7_u64;
    let mut roll = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let records = (0..10_000).map(|at| {
        let amount = format!("{}{}.{:02}", if roll(2) == 0 { "-" } else { "" }, roll(10_000_000), roll(100));
        vec![
            at.to_string(),
            format!("group \"{}\"", roll(7)),
            amount,
            if roll(10) == 0 { String::new() } else { roll(50).to_string() },
        ]
    });
    let records: Vec<_> = records.collect();
    let table = Table { names: ["order_id", "kind", "amount", "pieces"].map(str::to_owned).to_vec(), records };
    check(&place, &table, &table.written(',', "\r\n"), &[0, 2, 3], Some(1)).await;
}

#[tokio::test]
async fn a_table_in_the_request_will_do_and_chinese_is_answered_in_chinese() {
    let Some(place) = Place::new("a_table_in_the_request_will_do_and_chinese_is_answered_in_chinese").await else { return };
    let outcome = place.ask("请分析：\n城市,数量\n北京,3\n上海,4\n北京,5\n上海,6\n", ScriptedModel::saying("不会。")).await;
    assert_eq!(shown(outcome.page())[&vec!["数量".to_owned()]], [4.0, 18.0, 4.5, 3.0, 6.0]);
    let answer = outcome.answer.unwrap();
    assert!(
        answer.starts_with("数据流水线已全部执行，最终报告已生成。\n- formatter.sh: exit status 0\n- 记录数: 4\n"),
        "{answer}"
    );
    assert!(answer.contains("- 数量：个数 4，总和 18，平均值 4.5，最小值 3，最大值 6\n"), "{answer}");
    assert!(answer.contains("- 使用内置脚本，原因: 模型没有写代码\n"), "{answer}");
    let marks = [
        "我已生成数据准备代码：",
        "执行结果：",
        "基于预处理结果",
        "转换完成：",
        "现在需要对转换后的数据进行分析",
        "分析完成：",
        "最后需要将分析结果格式化为报告",
        "处理完成：",
    ];
    for (message, mark) in outcome.rounds.iter().zip(marks) {
        assert!(message.text.contains(mark), "{mark}: {}", message.text);
    }
    assert_eq!(outcome.rounds.len(), marks.len());
}

#[tokio::test]
async fn what_is_no_table_is_told_with_the_reason() {
    let Some(place) = Place::new("what_is_no_table_is_told_with_the_reason").await else { return };
    std::fs::write(place.workspace().join("open.csv"), "a,b\n1,\"x\n2,y\n").unwrap();
    std::fs::write(place.workspace().join("empty.csv"), "\n\n").unwrap();
    std::fs::write(place.workspace().join("gbk.csv"), b"city,amount\n\xb1\xb1\xbe\xa9,3\n").unwrap();
    std::fs::write(place.workspace().join("wide.csv"), b"\xff\xfec\0,\0a\0\n\0").unwrap();
    for (request, why) in [
        ("Analyse missing.csv", "missing.csv"),
        ("Analyse ../secret.csv", "outside of the workspace"),
        ("Hello!", "the request has no table"),
        ("Analyse open.csv", "a quoted cell that begins in line 2 is never closed"),
        ("Analyse empty.csv", "there is no line with the names of the columns"),
        ("Analyse gbk.csv", "line 2 is no text in UTF-8; save the table in that encoding"),
        ("Analyse wide.csv", "line 1 is no text in UTF-8; save the table in that encoding"),
    ] {
        let outcome = place.ask(request, ScriptedModel::saying("No.")).await;
        let answer = outcome.answer.unwrap();
        assert!(answer.starts_with("This came to nothing: ") && answer.contains(why), "{request}: {answer}");
        assert_eq!(outcome.report, None);
    }
}
