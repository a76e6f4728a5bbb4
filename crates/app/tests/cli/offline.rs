//! What somebody sees who has no key: the offline model over the real tools.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};

use polis_domain::{Effect, Event};
use serde_json::Value;

use super::support::Home;

fn answer(home: &Home, request: &str) -> String {
    home.polis(&["run", request]).ok()
}

/// What it says to a request that it does not do.
fn refusal(home: &Home, request: &str) -> String {
    let done = home.polis(&["run", request]);
    assert_eq!(done.code, 4, "{}{}", done.stdout, done.stderr);
    done.stdout
}

fn has(text: &str, wants: &[&str]) {
    for want in wants {
        assert!(text.contains(want), "should have: {want}\n{text}");
    }
}

/// The tools that were called, with their arguments.
fn calls(home: &Home) -> Vec<(String, Value)> {
    let calls = home.log().into_iter().filter_map(|recorded| match recorded.event {
        Event::EffectStarted { effect: Effect::Tool(call), .. } if !call.is_environment() => {
            Some((call.tool.to_string(), serde_json::from_str(&call.arguments).unwrap()))
        }
        _ => None,
    });
    calls.collect()
}

/// Random orders, the file that holds them, and what they come to.
struct Orders {
    file: String,
    cents: Vec<i64>,
    by_city: BTreeMap<&'static str, Vec<i64>>,
}

impl Orders {
    fn new(count: usize, header: &str, cities: [&'static str; 3]) -> Self {
        let seed = RandomState::new().hash_one(count);
        std::eprintln!("seed {seed}");
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut orders = Self { file: format!("{header}\r\n"), cents: Vec::new(), by_city: BTreeMap::new() };
        for n in 0..count {
            let city = cities[(next() % 3) as usize];
            let cents = (next() % 2_000_000) as i64 - 500_000;
            orders.cents.push(cents);
            orders.by_city.entry(city).or_default().push(cents);
            let sign = if cents < 0 { "-" } else { "" };
            let (whole, rest) = (cents.abs() / 100, cents.abs() % 100);
            let whole = if whole >= 1000 { format!("{},{:03}", whole / 1000, whole % 1000) } else { whole.to_string() };
            write!(orders.file, "{n},\"{city}\",\"note, {n}\",\"{sign}{whole}.{rest:02}\"\r\n").unwrap();
        }
        orders
    }
}

/// Exactly as a person would write the amount.
fn money(cents: i64) -> String {
    let text = format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The mean to six places, away from zero in the middle.
fn mean(cents: &[i64]) -> String {
    let (sum, count) = (i128::from(cents.iter().sum::<i64>()) * 10_000, cents.len() as i128);
    let rounded = (sum + sum.signum() * count / 2) / count;
    let text = format!("{}{}.{:06}", if rounded < 0 { "-" } else { "" }, rounded.abs() / 1_000_000, rounded.abs() % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn largest(cents: &[i64]) -> i64 {
    cents.iter().copied().max().unwrap()
}

#[test]
fn a_question_about_a_csv_file_is_answered_with_numbers_that_are_right() {
    let home = Home::new();
    let orders = Orders::new(3_000, "order_id,city,note,amount", ["Oslo", "Rome", "New York"]);
    home.write("orders.csv", &orders.file);
    let by_city = answer(&home, "What is the average amount by city in orders.csv?");
    for (city, cents) in &orders.by_city {
        has(&by_city, &[&format!("| {city} | {} | {} |", cents.len(), mean(cents))]);
    }
    let total: i64 = orders.cents.iter().sum();
    has(&by_city, &["(offline model)", &format!("add up to the whole, {}.", money(total)), "as many as list_files says"]);
    let called = calls(&home);
    assert_eq!(called[0].0, "list_files");
    assert!(called[1..].iter().all(|(tool, _)| tool == "read_file") && called.len() > 3, "it reads on in parts: {called:?}");

    let overview = answer(&home, "analyse orders.csv");
    let numbers = orders.cents.len();
    has(
        &overview,
        &["3000 rows and 4 columns", &format!("| amount | {numbers} | 0 | {} | {} |", money(total), mean(&orders.cents))],
    );
    let rome: Vec<i64> = orders.by_city["Rome"].iter().copied().filter(|cents| *cents > 100_000).collect();
    let filtered = answer(&home, "total amount and maximum in orders.csv where amount > 1000 and city is Rome");
    has(
        &filtered,
        &[
            &format!("{} of 3000 rows where amount > 1000 and city = Rome", rome.len()),
            &format!("sum of amount: {}", money(rome.iter().sum())),
            &format!("maximum of amount: {}", money(largest(&rome))),
        ],
    );
}

#[test]
fn a_question_in_chinese_is_answered_in_chinese() {
    let home = Home::new();
    let orders = Orders::new(200, "编号,地区,备注,销售额", ["华东", "华北", "华南"]);
    home.write("销售.csv", &orders.file);
    let grouped = answer(&home, "销售.csv 里的总销售额按地区");
    for (region, cents) in &orders.by_city {
        has(&grouped, &[&format!("| {region} | {} | {} |", cents.len(), money(cents.iter().sum()))]);
    }
    has(&grouped, &["（离线模型）", "核对"]);
    // The next request names no file; the one before it did.
    has(
        &home.polis(&["run", "--continue", "华东的平均销售额是多少？"]).ok(),
        &[&format!("销售额的平均值：{}", mean(&orders.by_city["华东"]))],
    );
}

#[test]
fn a_folder_is_counted_and_summed_up() {
    let home = Home::new();
    for (name, text) in
        [("a.md", "one two\nthree\n"), ("b.md", "# Bees\n\nBees make honey from flowers.\n"), ("c.txt", "honey\n")]
    {
        home.write(name, text);
    }
    std::fs::create_dir(home.path().join("sub")).unwrap();
    home.write("sub/d.bin", "\0\0");
    // Neither the society's own data nor hidden files are counted.
    has(&answer(&home, "how many files are here?"), &["holds 4 files and 1 folder", "| .md | 2 |", "the kinds add up to 4"]);
    has(&answer(&home, "当前目录的文件一共有多少行？"), &["3 个文本文件共有 6 行", "核对"]);
    has(&answer(&home, "how often does honey occur in this folder?"), &["occurs 2 times", "| b.md | 1 |", "add up to 2"]);
    has(&answer(&home, "summarise b.md"), &["Its headings: Bees", "> Bees make honey from flowers."]);
    has(&answer(&home, "list the files"), &["- a.md (14 bytes)", "- sub/"]);
    let all = answer(&home, "search for token");
    assert!(all.contains("nowhere"), "{all}");
}

#[test]
fn arithmetic_the_time_and_a_request_that_is_not_understood() {
    let home = Home::new();
    assert_eq!(answer(&home, "(0.1 + 0.2) * 10"), "(offline model) (0.1 + 0.2) × 10 = 3\n");
    assert_eq!(answer(&home, "2的64次方是多少"), "（离线模型）2 ^ 64 = 18446744073709551616\n");
    assert_eq!(answer(&home, "7 / 0"), "(offline model) 7 ÷ 0 has no result: it divides by zero.\n");
    has(&answer(&home, "what time is it in Tokyo?"), &["In Tokyo it is ", "(Asia/Tokyo, UTC+09:00)"]);
    has(&answer(&home, "现在几点？"), &["（离线模型）现在是 20", "星期"]);
    has(&refusal(&home, "why is the sky blue?"), &["I cannot answer that", "OPENAI_API_KEY"]);
    has(&refusal(&home, "天空为什么是蓝色的？"), &["回答不了", "OPENAI_API_KEY"]);
}

#[test]
fn a_refusal_inside_an_answer_ends_with_the_exit_status_of_refusals() {
    let home = Home::new();
    home.write("sales.csv", "city,price\nOslo,3\nRome,5\n");
    for (request, says) in [
        ("read /etc/passwd", "I cannot read `/etc/passwd`: "),
        ("read nothing.txt", "There is no file `nothing.txt`"),
        ("summarise ../notes.txt", "I cannot "),
        ("write /etc/x: y", "I could not write `/etc/x`: "),
        ("sum of city in sales.csv", "`city` holds no numbers"),
        ("what time is it in Atlantis?", "Atlantis"),
        ("2^0.3", "I can only take powers with whole exponents"),
        ("10^100000", "too large"),
        ("2 + 3; read /etc/passwd", "2 + 3 = 5"),
    ] {
        has(&refusal(&home, request), &["(offline model)", says]);
    }
}

#[test]
fn a_question_without_a_file_is_about_the_only_table_of_the_folder() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("data")).unwrap();
    home.write("data/sales.tab", "city\tprice\nOslo\t3\nRome\t5\n");
    has(&answer(&home, "average price by city"), &["| Oslo | 1 | 3 |"]);
    has(&answer(&home, "average price"), &["`data/sales.tab`", "average of price: 4"]);
    has(&answer(&home, "which city has the highest price?"), &["Rome"]);
    has(&answer(&home, "平均 price"), &["price的平均值：4"]);
    // A word that the table does not know makes it a question for a real model.
    has(&refusal(&home, "what is the average rainfall?"), &["I cannot answer that"]);
    home.write("other.csv", "a,b\n1,2\n");
    has(&refusal(&home, "average price by city"), &["Which table do you mean?", "`data/sales.tab`", "`other.csv`"]);
    has(&refusal(&home, "average price"), &["I cannot answer that"]);
}

#[test]
fn the_data_directory_is_neither_listed_nor_searched_wherever_it_is() {
    let home = Home::new();
    home.write("a.txt", "polis\n");
    let data = home.path().join("state");
    let run = |request: &str| home.polis(&["--data", data.to_str().unwrap(), "run", request]);
    has(&run("how many files are here?").ok(), &["holds 1 file and 0 folders"]);
    has(&run("search for polis").ok(), &["- a.txt:1: polis"]);
    let refused = run("how many files are in state?");
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    has(&refused.stdout, &["which no agent may touch"]);
}
