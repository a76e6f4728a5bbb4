//! The words of questions about tables, in both languages, and where they stand.

use std::ops::Range;

use super::columns::Aggregate;

/// A condition on a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    AtLeast,
    AtMost,
    More,
    Less,
    Is,
    IsNot,
    Contains,
    ContainsNot,
    Begins,
    Empty,
    Filled,
}

/// The spellings of each relation; of two that begin alike the longer one first.
pub(super) const RELATIONS: &[(&str, Relation)] = &[
    ("is greater than or equal to", Relation::AtLeast),
    ("greater than or equal to", Relation::AtLeast),
    ("is less than or equal to", Relation::AtMost),
    ("less than or equal to", Relation::AtMost),
    ("is not less than", Relation::AtLeast),
    ("not less than", Relation::AtLeast),
    ("is not more than", Relation::AtMost),
    ("not more than", Relation::AtMost),
    ("no less than", Relation::AtLeast),
    ("no more than", Relation::AtMost),
    ("is at least", Relation::AtLeast),
    ("at least", Relation::AtLeast),
    ("is at most", Relation::AtMost),
    ("at most", Relation::AtMost),
    ("is greater than", Relation::More),
    ("is more than", Relation::More),
    ("is larger than", Relation::More),
    ("is higher than", Relation::More),
    ("is above", Relation::More),
    ("is over", Relation::More),
    ("greater than", Relation::More),
    ("more than", Relation::More),
    ("larger than", Relation::More),
    ("bigger than", Relation::More),
    ("higher than", Relation::More),
    ("exceeds", Relation::More),
    ("above", Relation::More),
    ("over", Relation::More),
    ("is less than", Relation::Less),
    ("is lower than", Relation::Less),
    ("is below", Relation::Less),
    ("is under", Relation::Less),
    ("less than", Relation::Less),
    ("lower than", Relation::Less),
    ("smaller than", Relation::Less),
    ("fewer than", Relation::Less),
    ("below", Relation::Less),
    ("under", Relation::Less),
    ("is not equal to", Relation::IsNot),
    ("not equal to", Relation::IsNot),
    ("is not", Relation::IsNot),
    ("isn't", Relation::IsNot),
    ("is equal to", Relation::Is),
    ("equal to", Relation::Is),
    ("equals", Relation::Is),
    ("containing", Relation::Contains),
    ("contains", Relation::Contains),
    ("does not contain", Relation::ContainsNot),
    ("doesn't contain", Relation::ContainsNot),
    ("not containing", Relation::ContainsNot),
    ("starts with", Relation::Begins),
    ("starting with", Relation::Begins),
    ("begins with", Relation::Begins),
    ("beginning with", Relation::Begins),
    ("is after", Relation::More),
    ("is before", Relation::Less),
    ("later than", Relation::More),
    ("earlier than", Relation::Less),
    ("after", Relation::More),
    ("before", Relation::Less),
    ("since", Relation::AtLeast),
    ("until", Relation::AtMost),
    ("is", Relation::Is),
    ("大于或等于", Relation::AtLeast),
    ("大于等于", Relation::AtLeast),
    ("不小于", Relation::AtLeast),
    ("不少于", Relation::AtLeast),
    ("不低于", Relation::AtLeast),
    ("至少", Relation::AtLeast),
    ("小于或等于", Relation::AtMost),
    ("小于等于", Relation::AtMost),
    ("不大于", Relation::AtMost),
    ("不超过", Relation::AtMost),
    ("不高于", Relation::AtMost),
    ("不多于", Relation::AtMost),
    ("至多", Relation::AtMost),
    ("不等于", Relation::IsNot),
    ("不是", Relation::IsNot),
    ("大于", Relation::More),
    ("超过", Relation::More),
    ("高于", Relation::More),
    ("多于", Relation::More),
    ("小于", Relation::Less),
    ("低于", Relation::Less),
    ("少于", Relation::Less),
    ("不到", Relation::Less),
    ("等于", Relation::Is),
    ("不包含", Relation::ContainsNot),
    ("不包括", Relation::ContainsNot),
    ("不含", Relation::ContainsNot),
    ("晚于", Relation::More),
    ("早于", Relation::Less),
    ("包含", Relation::Contains),
    ("含有", Relation::Contains),
    ("是", Relation::Is),
    ("为", Relation::Is),
    (">=", Relation::AtLeast),
    ("=>", Relation::AtLeast),
    ("≥", Relation::AtLeast),
    ("<=", Relation::AtMost),
    ("≤", Relation::AtMost),
    ("!=", Relation::IsNot),
    ("<>", Relation::IsNot),
    ("≠", Relation::IsNot),
    (">", Relation::More),
    ("＞", Relation::More),
    ("<", Relation::Less),
    ("＜", Relation::Less),
    ("==", Relation::Is),
    ("=", Relation::Is),
    ("＝", Relation::Is),
];

/// Relations that only dates have.
pub(super) const TEMPORAL: &[&str] =
    &["is after", "is before", "later than", "earlier than", "after", "before", "since", "until", "晚于", "早于"];

/// Words before a value that leave it out, the longer first, and words behind it.
pub(super) const EXCLUDING: &[&str] = &[
    "excluding",
    "exclude",
    "except for",
    "except in",
    "except",
    "without",
    "not counting",
    "leaving out",
    "apart from",
    "aside from",
    "other than",
    "outside of",
    "outside",
    "but not",
    "but",
    "not in",
    "not for",
    "not from",
    "not of",
    "not",
    "除去",
    "除了",
    "除开",
    "除",
    "不包括",
    "不包含",
    "不含",
    "不算",
    "不计",
    "不要",
    "排除",
    "剔除",
    "去掉",
    "不在",
    "不是",
    "非",
];
pub(super) const EXCLUDED: &[&str] = &["以外", "之外", "除外", "外"];

/// Words before a column that want it empty, words behind it that do, and words behind it that want the opposite.
pub(super) const LACKING: &[&str] = &["no", "without", "missing", "lacking", "没有", "缺少", "缺"];
pub(super) const EMPTY: &[&str] = &["is empty", "is missing", "is blank", "are empty", "are missing", "为空", "是空", "缺失"];
pub(super) const FILLED: &[&str] = &["is not empty", "is not missing", "is not blank", "is filled", "不为空", "不是空"];

/// Words that ask for a figure.
pub(super) const AGGREGATES: &[(&str, Aggregate)] = &[
    ("how many", Aggregate::Count),
    ("number of", Aggregate::Count),
    ("count", Aggregate::Count),
    ("counts", Aggregate::Count),
    ("多少条", Aggregate::Count),
    ("多少行", Aggregate::Count),
    ("多少个", Aggregate::Count),
    ("多少笔", Aggregate::Count),
    ("几条", Aggregate::Count),
    ("几行", Aggregate::Count),
    ("几个", Aggregate::Count),
    ("条数", Aggregate::Count),
    ("行数", Aggregate::Count),
    ("个数", Aggregate::Count),
    ("次数", Aggregate::Count),
    ("计数", Aggregate::Count),
    ("总数", Aggregate::Count),
    ("sum", Aggregate::Sum),
    ("total", Aggregate::Sum),
    ("totals", Aggregate::Sum),
    ("总和", Aggregate::Sum),
    ("总计", Aggregate::Sum),
    ("合计", Aggregate::Sum),
    ("总额", Aggregate::Sum),
    ("求和", Aggregate::Sum),
    ("累计", Aggregate::Sum),
    ("一共", Aggregate::Sum),
    ("总", Aggregate::Sum),
    ("average", Aggregate::Mean),
    ("averages", Aggregate::Mean),
    ("mean", Aggregate::Mean),
    ("avg", Aggregate::Mean),
    ("平均", Aggregate::Mean),
    ("均值", Aggregate::Mean),
    ("median", Aggregate::Median),
    ("中位", Aggregate::Median),
    ("minimum", Aggregate::Min),
    ("min", Aggregate::Min),
    ("lowest", Aggregate::Min),
    ("smallest", Aggregate::Min),
    ("cheapest", Aggregate::Min),
    ("least", Aggregate::Min),
    ("fewest", Aggregate::Min),
    ("youngest", Aggregate::Min),
    ("最小", Aggregate::Min),
    ("最低", Aggregate::Min),
    ("最少", Aggregate::Min),
    ("最便宜", Aggregate::Min),
    ("maximum", Aggregate::Max),
    ("max", Aggregate::Max),
    ("highest", Aggregate::Max),
    ("largest", Aggregate::Max),
    ("biggest", Aggregate::Max),
    ("greatest", Aggregate::Max),
    ("most", Aggregate::Max),
    ("oldest", Aggregate::Max),
    ("最大", Aggregate::Max),
    ("最高", Aggregate::Max),
    ("最多", Aggregate::Max),
    ("最贵", Aggregate::Max),
    ("distinct", Aggregate::Distinct),
    ("unique", Aggregate::Distinct),
    ("different", Aggregate::Distinct),
    ("不同", Aggregate::Distinct),
    ("多少种", Aggregate::Distinct),
    ("几种", Aggregate::Distinct),
];

/// Words after which a column says how the rows are grouped.
pub(super) const GROUPING: &[&str] = &[
    "by",
    "per",
    "each",
    "every",
    "across",
    "按照",
    "按",
    "每一个",
    "每个",
    "每种",
    "每位",
    "每",
    "各个",
    "各种",
    "各",
    "根据",
    "分",
];

/// Words after which a column is the one that is asked for.
pub(super) const WHICH: &[&str] = &["which", "what", "哪一个", "哪个", "哪种", "哪些", "哪位", "哪"];

/// Names of columns that mean about the same, so that a question in one language finds a table in the other.
pub(super) const SYNONYMS: &[&[&str]] = &[
    &["price", "unit price", "价格", "单价", "售价", "expensive", "cheapest", "贵", "便宜"],
    &["city", "town", "城市"],
    &["region", "area", "地区", "区域", "大区"],
    &["country", "国家"],
    &["province", "state", "省份", "省"],
    &["sales", "revenue", "turnover", "amount", "销售额", "营业额", "收入", "金额", "数额"],
    &["quantity", "qty", "units", "数量", "件数"],
    &["product", "item", "产品", "商品"],
    &["category", "类别", "分类", "品类"],
    &["customer", "client", "客户", "顾客"],
    &["name", "姓名", "名称", "名字"],
    &["department", "dept", "部门"],
    &["salary", "wage", "工资", "薪水", "薪资"],
    &["age", "年龄"],
    &["gender", "sex", "性别"],
    &["score", "grade", "分数", "成绩"],
    &["date", "day", "日期"],
    &["month", "月份"],
    &["year", "年份"],
    &["cost", "成本", "费用"],
    &["profit", "利润"],
    &["order", "订单"],
    &["status", "状态"],
    &["weight", "重量"],
    &["height", "身高", "高度"],
];

/// Words that name no column wherever they stand.
pub(super) const FILLERS: &[&str] = &[
    "of", "the", "a", "an", "in", "for", "and", "or", "value", "values", "is", "are", "was", "were", "to", "from", "with",
    "all", "column", "columns", "number", "numbers", "what", "that", "which", "where", "when", "rows", "row", "records",
    "record", "lines", "data", "table", "file", "entries", "on", "at", "it", "them", "there", "please", "show", "give", "me",
    "over", "has", "have", "do", "does", "each", "every", "per", "by", "far", "default", "top", "its", "their", "as", "most",
    "this", "than", "more", "less", "figures", "csv", "items", "across",
];

/// Where a word stands in a text that is in lower case; English words stand alone.
pub(super) fn places(lower: &str, word: &str) -> Vec<Range<usize>> {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_apart = |at: usize| {
        let apart = |outside: Option<char>, inside: Option<char>| !(joins(outside) && joins(inside));
        apart(lower[..at].chars().next_back(), word.chars().next())
            && apart(lower[at + word.len()..].chars().next(), word.chars().next_back())
    };
    lower.match_indices(word).map(|(at, _)| at).filter(|&at| is_apart(at)).map(|at| at..at + word.len()).collect()
}

pub(super) fn has(lower: &str, words: &[&str]) -> bool {
    words.iter().any(|word| !places(lower, word).is_empty())
}

/// Whether a text ends with a word that stands alone; what comes before it.
pub(super) fn ends_with<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let before = text.strip_suffix(word)?;
    let joined = word.starts_with(|c: char| c.is_ascii_alphanumeric()) && before.ends_with(|c: char| c.is_ascii_alphanumeric());
    (!joined).then_some(before)
}

/// Whether a text begins with a word that stands alone.
pub(super) fn begins_with(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_ascii_alphanumeric();
    text.strip_prefix(word).is_some_and(|behind| !(word.ends_with(joins) && behind.starts_with(joins)))
}
