//! Questions in both languages against small tables, and random tables against plain arithmetic.

use proptest::prelude::*;

use super::answer::answer;
use super::columns::{Aggregate, Table};
use super::csv;
use super::question::{self, Misunderstanding};
use crate::language::{self, Language};

const SALES: &str = "\
date,city,product,price,qty
2024-01-05,Paris,Tea,10.50,2
2024-01-20,London,Coffee,20,1
2024-02-03,Paris,Coffee,30.25,
2024-02-11,Rome,Tea,\"1,000.25\",4
2024-03-01,London,Tea,5,10
";

const 销售: &str = "\
日期,地区,产品,销售额,数量
2024-01-05,华东,茶,100.5,2
2024-01-20,华北,咖啡,200,1
2024-02-03,华东,咖啡,300.25,3
2024-02-11,华南,茶,50,4
";

fn ask(text: &str, asked: &str) -> String {
    let table = Table::new(csv::parse(text));
    match question::parse(asked, &table) {
        Ok(question) => answer(language::of(asked), "t.csv", &table, &question).unwrap_or_else(|refusal| refusal),
        Err(puzzle) => format!("{puzzle:?}"),
    }
}

fn check(text: &str, asked: &str, wants: &[&str]) {
    let got = ask(text, asked);
    for want in wants {
        assert!(got.contains(want), "{asked}\nshould have: {want}\n{got}");
    }
}

#[test]
fn an_overview_tells_every_column() {
    check(
        SALES,
        "analyse",
        &[
            "5 rows and 5 columns",
            "| price | 5 | 0 | 1066 | 213.2 | 20 | 5 | 1000.25 |",
            "| qty | 4 | 1 | 17 | 4.25 | 3 | 1 | 10 |",
            "| city | text | 3 | 0 | London (2), Paris (2), Rome (1) |",
            "| date | date | 5 | 0 | 2024-01-05 to 2024-03-01 |",
            "Checked: 5 numbers and 0 cells without one make 5 rows; `price` adds up to 1066 from either end.",
        ],
    );
    check(销售, "分析", &["4 行、5 列", "| 销售额 | 4 | 0 | 650.75 | 162.6875 | 150.25 | 50 | 300.25 |", "核对"]);
}

#[test]
fn single_figures_are_given() {
    check(SALES, "what is the average price?", &["average of price: 213.2"]);
    check(SALES, "total qty", &["sum of qty: 17"]);
    check(SALES, "median and maximum of price", &["median of price: 20", "maximum of price: 1000.25"]);
    check(SALES, "how many rows are there?", &["number of rows: 5"]);
    check(SALES, "how many rows in total", &["number of rows: 5"]);
    check(SALES, "how many different cities", &["number of different values of city: 3"]);
    check(SALES, "average salary", &["NoColumn(\"salary\")"]);
    check(SALES, "average of city", &["`city` holds no numbers"]);
    check(销售, "平均销售额是多少", &["销售额的平均值：162.6875"]);
    check(销售, "一共有多少条记录", &["行数：4"]);
    check(销售, "总销售额", &["销售额的总和：650.75"]);
}

#[test]
fn groups_are_made_and_add_up() {
    check(
        SALES,
        "average price by city",
        &[
            "| Rome | 1 | 1000.25 |",
            "| Paris | 2 | 20.375 |",
            "| London | 2 | 12.5 |",
            "Checked: 2 + 2 + 1 = 5 rows, and 5 were to be grouped; the sums of `price` by group add up to the whole, 1066.",
        ],
    );
    check(SALES, "count by city", &["| London | 2 |", "| Rome | 1 |"]);
    check(SALES, "how many per product?", &["| Tea | 3 |", "| Coffee | 2 |"]);
    check(SALES, "price by product", &["| Tea | 3 | 1015.75 |", "| Coffee | 2 | 50.25 |"]);
    check(SALES, "total price for each city and product", &["| London | Tea | 1 | 5 |"]);
    check(SALES, "total price by month", &["| 2024-01 | 2 | 30.5 |\n| 2024-02 | 2 | 1030.5 |\n| 2024-03 | 1 | 5 |"]);
    check(SALES, "average by country", &["NoColumn(\"country\")"]);
    check(SALES, "total price by citty", &["| Rome | 1 | 1000.25 |", "I took `citty` for the column `city`."]);
    check(销售, "总销售额按地区", &["| 华东 | 2 | 400.75 |", "| 华北 | 1 | 200 |", "等于总和 650.75"]);
    check(销售, "每个产品的平均数量", &["| 咖啡 | 2 | 2 |", "| 茶 | 2 | 3 |"]);
    check(销售, "按月统计销售额", &["| 2024-01 | 2 | 300.5 |"]);
    check(销售, "各地区有多少条", &["| 华东 | 2 |"]);
    check(销售, "按国家统计", &["NoColumn(\"国家\")"]);
    check(销售, "total sales by region", &["| 华东 | 2 | 400.75 |"]);
}

#[test]
fn conditions_hold_for_every_row_that_counts() {
    check(SALES, "average price where qty > 1", &["3 of 5 rows where qty > 1", "average of price: 338.583333"]);
    check(SALES, "total price in Paris", &["2 of 5 rows where city = Paris", "sum of price: 40.75"]);
    check(SALES, "total price in Paris and London", &["4 of 5 rows", "sum of price: 65.75"]);
    check(
        SALES,
        "rows where price >= 20 and product is tea",
        &["1 of 5 rows where price ≥ 20 and product = Tea", "| 2024-02-11 | Rome |"],
    );
    check(SALES, "how many rows with price less than 1,000", &["number of rows: 4"]);
    check(SALES, "how many have a price over 15?", &["number of rows: 3"]);
    check(SALES, "sum of price where date >= 2024-02-01", &["3 of 5 rows", "sum of price: 1035.5"]);
    check(SALES, "show rows where city contains \"on\"", &["2 of 5 rows where city ~ on"]);
    check(SALES, "show rows over 7", &["Compared(\"over 7\")"]);
    check(SALES, "rows where price > 5 or qty > 3", &["Or"]);
    check(销售, "销售额大于100的有多少条", &["4 行，其中 3 行", "行数：3"]);
    check(销售, "华东的平均销售额", &["销售额的平均值：200.375"]);
    check(销售, "地区是华北的总销售额", &["销售额的总和：200"]);
    check(销售, "数量不少于3的平均销售额", &["销售额的平均值：175.125"]);
}

#[test]
fn what_is_left_out_does_not_count() {
    for words in [
        "excluding Paris",
        "not in Paris",
        "without Paris",
        "except Paris",
        "except for the city Paris",
        "without the city Paris",
        "except in Paris",
        "where city is not in Paris",
        "for all cities but Paris",
        "other than Paris",
        "where city is not Paris",
        "where city != Paris",
    ] {
        check(SALES, &format!("total price {words}"), &["3 of 5 rows where city ≠ Paris", "sum of price: 1025.25"]);
    }
    check(SALES, "total price excluding Paris and London", &["city ≠ Paris and city ≠ London", "sum of price: 1000.25"]);
    check(SALES, "total price in Paris without Coffee", &["city = Paris and product ≠ Coffee", "sum of price: 10.5"]);
    for words in
        ["华东以外的销售额总和", "除了华东的总销售额", "不含华东的总销售额", "不包括华东的总销售额", "除华东外的总销售额"]
    {
        check(销售, words, &["地区 ≠ 华东", "销售额的总和：250"]);
    }
    check(销售, "除了华东和华北以外的总销售额", &["地区 ≠ 华东 且 地区 ≠ 华北", "销售额的总和：50"]);
    check(SALES, "total price excluding Tokyo", &["Words(\"excluding Tokyo\")"]);
    check(销售, "除了深圳的总销售额", &["Words("]);
}

#[test]
fn is_is_a_condition_even_where_no_row_meets_it() {
    check(SALES, "total price where city is Tokyo", &["0 of 5 rows where city = tokyo"]);
    check(SALES, "total price where qty is 99", &["0 of 5 rows where qty = 99"]);
    check(SALES, "how many rows where qty is 4", &["1 of 5 rows where qty = 4"]);
    check(销售, "地区是深圳的总销售额", &["共 4 行，其中 0 行满足 地区 = 深圳"]);
    check(销售, "数量是99的总销售额", &["其中 0 行满足 数量 = 99"]);
}

#[test]
fn ranges_beginnings_and_dates_are_conditions() {
    check(SALES, "total price where city starts with P", &["2 of 5 rows where city ^ p", "sum of price: 40.75"]);
    check(SALES, "total price where city does not contain on", &["3 of 5 rows where city !~ on"]);
    check(SALES, "how many rows have a price between 5 and 20", &["3 of 5 rows where price ≥ 5 and price ≤ 20"]);
    check(SALES, "total qty where price is between 5 and 20", &["price ≥ 5 and price ≤ 20", "sum of qty: 13"]);
    check(SALES, "total price after 2024-02-03", &["2 of 5 rows where date > 2024-02-03", "sum of price: 1005.25"]);
    check(SALES, "total price where date is before 2024-02-01", &["2 of 5 rows where date < 2024-02-01", "sum of price: 30.5"]);
    check(SALES, "total price after 2024-02", &["1 of 5 rows where date > 2024-02", "sum of price: 5"]);
    check(SALES, "total price of 2024-01", &["2 of 5 rows where date = 2024-01", "sum of price: 30.5"]);
    check(SALES, "total price before 2024-02", &["2 of 5 rows where date < 2024-02"]);
    check(SALES, "total price before 2024", &["0 of 5 rows where date < 2024"]);
    check(SALES, "total price with at least 3 qty", &["2 of 5 rows where qty ≥ 3", "sum of price: 1005.25"]);
    check(SALES, "total price where city is either Paris or Rome", &["3 of 5 rows where city = Paris or Rome"]);
    check(SALES, "total price in 2023", &["0 of 5 rows where date = 2023"]);
    check(SALES, "total price from 2024-01-20 to 2024-02-03", &["2 of 5 rows", "sum of price: 50.25"]);
    check(SALES, "show rows between 1 and 3", &["Compared(\"between 1 and 3\")"]);
    check(销售, "2024年2月的总销售额", &["日期 = 2024-02", "销售额的总和：350.25"]);
    check(销售, "2024-02-01之后的总销售额", &["日期 > 2024-02-01", "销售额的总和：350.25"]);
}

#[test]
fn words_that_may_be_a_condition_are_never_passed_over() {
    for (asked, words) in [
        ("total price for Tokyo", "Tokyo"),
        ("total price in February", "February"),
        ("total price after lunch", "after lunch"),
        ("total price where city ends with s", "ends with s"),
        ("15% of the total price", "15%"),
        ("standard deviation of price", "standard deviation"),
        ("compare   and b.csv", "compare and b.csv"),
        ("total price for grade A", "grade A"),
        ("total price of the first 3 rows", "first 3"),
        ("total price not over 5", "not"),
        ("prices above average", "above"),
        ("sum of price divided by qty", "divided"),
        ("total price last year", "last year"),
    ] {
        check(SALES, asked, &[&format!("Words(\"{words}\")")]);
    }
    check(销售, "深圳的总销售额", &["Words(\"深圳\")"]);
    check(销售, "销售额的标准差", &["Words(\"标准差\")"]);
    check(销售, "上个月的总销售额", &["Words("]);
    check(SALES, "total price where price > 5 or in Paris", &["Or"]);
}

#[test]
fn empty_cells_and_different_values_are_counted() {
    check(SALES, "how many rows have no qty", &["1 of 5 rows where qty is empty", "number of rows: 1"]);
    check(SALES, "how many rows where qty is missing", &["number of rows: 1"]);
    check(SALES, "how many rows where qty is not empty", &["number of rows: 4"]);
    check(SALES, "how many cities", &["number of different values of city: 3"]);
    check(SALES, "number of cities per product", &["| Tea | 3 | 3 |"]);
    check(销售, "有多少个地区", &["地区的不同值个数：3"]);
    check(销售, "没有数量的有多少条", &["其中 0 行满足 数量 为空"]);
}

#[test]
fn a_column_with_some_cells_that_are_no_numbers_is_still_reckoned_with() {
    let mixed = "city,amount\nParis,1\nRome,2\nOslo,tbd\nBern,4\n";
    check(mixed, "total amount", &["sum of amount: 7", "of 4 filled cells of `amount` 1 held no number and stayed out"]);
    check(mixed, "total amount by city", &["| Bern | 1 | 4 |", "of 4 filled cells of `amount` 1 held no number"]);
    check("a,code\nx,1\ny,b\nz,c\n", "sum of code", &["Of 3 filled cells of `code` only 1 held a number"]);
}

#[test]
fn questions_as_they_are_documented_are_understood() {
    for asked in [
        "analyse",
        "average price by city in",
        "top 5 in   by price where qty > 3",
        "average price by city in   where qty > 3",
        "What is the average price by city in  ?",
        "Please show me the total price and the maximum for each city, thanks!",
        "find   and see how large it is",
        "里按城市的平均价格",
        "里数量大于 3 的平均价格，按城市",
        "价格大于 100 的有多少条",
        "价格前 5 名",
        "请帮我分析一下这个表格",
        "哪个城市的总价格最高？",
    ] {
        let got = ask(SALES, asked);
        assert!(got.contains("t.csv"), "{asked}: {got}");
    }
}

#[test]
fn orders_and_winners_are_found() {
    check(
        SALES,
        "top 2 by price",
        &["The 2 with the highest price:", "| 2024-02-11 | Rome | Tea | 1,000.25 | 4 |\n| 2024-02-03"],
    );
    check(SALES, "the 2 cheapest products", &["The 2 with the lowest price:", "| 2024-03-01 | London | Tea | 5 | 10 |"]);
    check(SALES, "which city has the highest average price?", &["It is Rome, with 1000.25."]);
    check(SALES, "which city has the lowest total price", &["It is London, with 25."]);
    check(SALES, "which product has the highest price", &["The 1 with the highest price:", "| Rome | Tea |"]);
    check(SALES, "top 2 cities by total price", &["| Rome | 1 | 1000.25 |\n| Paris | 2 | 40.75 |\n"]);
    check(SALES, "which city has the most rows", &["| London | 2 |"]);
    check(SALES, "top 3 where city = London sorted by price", &["2 of 5 rows", "The 2 with the highest price"]);
    check(SALES, "most expensive product", &["The 1 with the highest price", "| Rome | Tea |"]);
    check(销售, "销售额前2名", &["销售额最高的 2 行", "| 华东 | 咖啡 | 300.25 |"]);
    check(销售, "哪个地区的总销售额最高", &["答案是华东：400.75"]);
    check(销售, "销售额最低的三条", &["销售额最低的 3 行"]);
    check(销售, "数量大于1的前2名", &["数量最高的 2 行"]);
    check(销售, "按销售额排序", &["销售额最高的 4 行"]);
}

#[test]
fn a_question_that_cannot_be_is_a_puzzle() {
    let table = Table::new(csv::parse(SALES));
    assert_eq!(question::parse("sum by nothing", &table), Err(Misunderstanding::NoColumn("nothing".to_owned())));
    assert_eq!(question::parse("", &table).map(|question| question.filters.len()), Ok(0));
    assert!(ask("a,b\n", "average of b").contains("0 rows"));
    assert_eq!(language::of("总销售额按地区"), Language::Chinese);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Sums and means of random tables, whole and by group, are those of plain integers.
    #[test]
    fn random_tables_come_out_right(rows in prop::collection::vec((0_usize..4, prop::option::of(-10_000_000_i64..10_000_000)), 1..60), crlf: bool, semicolon: bool) {
        let (end, delimiter) = (if crlf { "\r\n" } else { "\n" }, if semicolon { ';' } else { ',' });
        let money = |cents: i64| format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
        let mut text = format!("\u{feff}place{delimiter}amount{end}");
        for (place, cents) in &rows {
            text.push_str(&format!("\"P{place}, x\"{delimiter}{}{end}", cents.map(money).unwrap_or_default()));
        }
        let table = Table::new(csv::parse(&text));
        prop_assert_eq!(table.rows, rows.len());
        for place in 0..4 {
            let chosen: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].0 == place).collect();
            let cents: Vec<i64> = chosen.iter().filter_map(|&row| rows[row].1).collect();
            let figure = |aggregate| table.columns[1].figure(aggregate, &chosen).map(|figure| figure.to_string());
            if cents.is_empty() {
                prop_assert_eq!(figure(Aggregate::Sum), None);
                continue;
            }
            let sum: i64 = cents.iter().sum();
            let near = |text: Option<String>, want: f64| text.is_some_and(|text| (text.parse::<f64>().unwrap() - want).abs() < 1e-6);
            let sum_text = figure(Aggregate::Sum).unwrap();
            let scaled: f64 = sum_text.parse::<f64>().unwrap() * 100.0;
            prop_assert_eq!(scaled.round() as i64, sum);
            prop_assert!(sum_text.split('.').nth(1).is_none_or(|places| places.len() <= 2), "no noise: {}", sum_text);
            prop_assert!(near(figure(Aggregate::Mean), sum as f64 / cents.len() as f64 / 100.0));
            prop_assert_eq!(figure(Aggregate::Max).unwrap().parse::<f64>().unwrap(), *cents.iter().max().unwrap() as f64 / 100.0);
            let mut sorted = cents.clone();
            sorted.sort_unstable();
            let middle = sorted.len() / 2;
            let median = if sorted.len() % 2 == 1 { sorted[middle] as f64 } else { (sorted[middle - 1] + sorted[middle]) as f64 / 2.0 };
            prop_assert!(near(figure(Aggregate::Median), median / 100.0));
        }
    }

    /// No question and no table makes it panic.
    #[test]
    fn anything_may_be_asked_of_anything(text in "[a-c,;\"\n\r0-9. x银-]{0,80}", asked in "(sum|average|top|by|where|without|excluding|between| and |from| to |after|no|2024-01|2024年|从|到|除|以外|之后|前|按|总|>|is|a|b|c|银|3|100|,|的| |[^\\x00]){0,20}") {
        let _ = ask(&text, &asked);
    }
}
