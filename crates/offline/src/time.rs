//! What time it is, here or elsewhere, by the tool `now`.

use serde_json::json;

use super::conversation::{Conversation, Step, Stop};
use super::language::{Language, tell};
use super::table;

/// A place that a person named, and its zone as far as we know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) zone: Option<&'static str>,
}

/// Where people ask about, by its names in both languages. The tool knows every zone's own city besides.
const ZONES: &[(&str, &[&str])] = &[
    (
        "Asia/Shanghai",
        &["china", "beijing", "shanghai", "shenzhen", "guangzhou", "hangzhou", "中国", "北京", "上海", "深圳", "广州", "杭州"],
    ),
    ("Asia/Hong_Kong", &["hong kong", "香港"]),
    ("Asia/Taipei", &["taipei", "台北"]),
    ("Asia/Tokyo", &["tokyo", "japan", "osaka", "kyoto", "东京", "日本", "大阪", "京都"]),
    ("Asia/Seoul", &["seoul", "korea", "south korea", "首尔", "韩国"]),
    ("Asia/Singapore", &["singapore", "新加坡"]),
    ("Asia/Kolkata", &["india", "delhi", "new delhi", "mumbai", "bangalore", "kolkata", "印度", "新德里", "孟买"]),
    ("Asia/Dubai", &["dubai", "迪拜"]),
    ("Asia/Bangkok", &["bangkok", "thailand", "曼谷", "泰国"]),
    ("Asia/Jakarta", &["jakarta", "雅加达"]),
    ("Asia/Manila", &["manila", "马尼拉"]),
    ("Asia/Ho_Chi_Minh", &["vietnam", "hanoi", "saigon", "越南", "河内"]),
    ("Asia/Jerusalem", &["israel", "jerusalem", "tel aviv", "以色列", "耶路撒冷"]),
    ("Europe/London", &["london", "uk", "england", "britain", "伦敦", "英国"]),
    ("Europe/Paris", &["paris", "france", "巴黎", "法国"]),
    ("Europe/Berlin", &["berlin", "germany", "munich", "hamburg", "frankfurt", "柏林", "德国", "慕尼黑", "法兰克福"]),
    ("Europe/Zurich", &["zurich", "switzerland", "geneva", "苏黎世", "瑞士", "日内瓦"]),
    ("Europe/Vienna", &["vienna", "austria", "维也纳", "奥地利"]),
    ("Europe/Rome", &["rome", "italy", "milan", "罗马", "意大利", "米兰"]),
    ("Europe/Madrid", &["madrid", "spain", "barcelona", "马德里", "西班牙", "巴塞罗那"]),
    ("Europe/Amsterdam", &["amsterdam", "netherlands", "阿姆斯特丹", "荷兰"]),
    ("Europe/Stockholm", &["stockholm", "sweden", "斯德哥尔摩", "瑞典"]),
    ("Europe/Moscow", &["moscow", "russia", "莫斯科", "俄罗斯"]),
    ("Europe/Istanbul", &["istanbul", "turkey", "伊斯坦布尔", "土耳其"]),
    ("Europe/Athens", &["athens", "greece", "雅典", "希腊"]),
    ("Africa/Cairo", &["cairo", "egypt", "开罗", "埃及"]),
    ("Africa/Johannesburg", &["johannesburg", "south africa", "cape town", "约翰内斯堡", "南非", "开普敦"]),
    ("Africa/Nairobi", &["nairobi", "kenya", "内罗毕", "肯尼亚"]),
    ("Africa/Lagos", &["lagos", "nigeria", "拉各斯"]),
    ("America/New_York", &["new york", "nyc", "boston", "washington", "miami", "纽约", "波士顿", "华盛顿", "美国东部"]),
    ("America/Chicago", &["chicago", "dallas", "houston", "austin", "芝加哥", "休斯敦"]),
    ("America/Denver", &["denver", "丹佛"]),
    (
        "America/Los_Angeles",
        &[
            "los angeles",
            "san francisco",
            "california",
            "seattle",
            "silicon valley",
            "洛杉矶",
            "旧金山",
            "加州",
            "西雅图",
            "硅谷",
        ],
    ),
    ("America/Toronto", &["toronto", "多伦多"]),
    ("America/Vancouver", &["vancouver", "温哥华"]),
    ("America/Mexico_City", &["mexico", "mexico city", "墨西哥"]),
    ("America/Sao_Paulo", &["brazil", "sao paulo", "são paulo", "rio", "巴西", "圣保罗"]),
    ("America/Argentina/Buenos_Aires", &["buenos aires", "argentina", "布宜诺斯艾利斯", "阿根廷"]),
    ("Australia/Sydney", &["sydney", "melbourne", "悉尼", "墨尔本"]),
    ("Australia/Perth", &["perth", "珀斯"]),
    ("Pacific/Auckland", &["auckland", "new zealand", "奥克兰", "新西兰"]),
    ("Pacific/Honolulu", &["hawaii", "honolulu", "夏威夷", "檀香山"]),
    ("UTC", &["utc", "gmt", "世界时", "协调世界时"]),
];

/// The places of a question about the time; none if it is no such question. An empty list means here.
pub(super) fn places(asked: &str) -> Option<Vec<Place>> {
    let lower = asked.to_lowercase();
    let asks = [
        "what time",
        "what's the time",
        "what is the time",
        "current time",
        "time is it",
        "time now",
        "the time in",
        "tell me the time",
        "what day is",
        "what date",
        "what's the date",
        "what is the date",
        "today's date",
        "current date",
        "which day is",
        "几点",
        "现在时间",
        "当前时间",
        "什么时间",
        "什么时候了",
        "星期几",
        "周几",
        "几号",
        "什么日子",
        "今天的日期",
        "今天日期",
        "的时间",
        "报时",
    ];
    if !asks.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let mut found: Vec<(usize, usize, Place)> = Vec::new();
    for (zone, names) in ZONES {
        for name in *names {
            for (at, _) in lower.match_indices(name) {
                let edge = |c: Option<char>| !(name.is_ascii() && c.is_some_and(|c| c.is_ascii_alphanumeric()));
                let is_apart = edge(lower[..at].chars().next_back()) && edge(lower[at + name.len()..].chars().next());
                // UTC+8 is a zone of its own.
                let is_offset = *zone == "UTC" && lower[at + name.len()..].trim_start().starts_with(['+', '-']);
                if is_apart && !is_offset {
                    let shown = asked.get(at..at + name.len()).unwrap_or(name);
                    found.push((at, name.len(), Place { name: shown.to_owned(), zone: Some(zone) }));
                }
            }
        }
    }
    // The longer name of two that stand in the same place: New Delhi, not Delhi.
    found.sort_by_key(|(at, len, _)| (*at, usize::MAX - len));
    let mut places: Vec<Place> = Vec::new();
    let mut end = 0;
    for (at, len, place) in found {
        if at >= end && !places.iter().any(|known| known.zone == place.zone) {
            end = at + len;
            places.push(place);
        }
    }
    if places.is_empty() {
        places.extend(unknown(asked).map(|name| Place { name, zone: None }));
    }
    Some(places)
}

/// The word of a question about the time that asks for another moment than now.
pub(super) fn other_moment(asked: &str) -> Option<&str> {
    let words = [
        "day after tomorrow",
        "day before yesterday",
        "tomorrow",
        "yesterday",
        "next",
        "last",
        "ago",
        "later",
        "from now",
        "hours",
        "days",
        "weeks",
        "months",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "明天",
        "后天",
        "昨天",
        "前天",
        "明年",
        "去年",
        "下周",
        "上周",
        "下个月",
        "上个月",
        "天后",
        "天前",
        "小时后",
        "小时前",
        "之后",
        "之前",
    ];
    let lower = asked.to_ascii_lowercase();
    asked.get(words.iter().find_map(|word| table::place_of(&lower, word))?)
}

/// What is said to a question for another moment.
pub(super) fn refusal(language: Language, words: &str) -> String {
    tell!(
        language,
        "I did not understand the part “{words}”: I can only say what time and day it is now, here or elsewhere.",
        "我没有听懂“{words}”这部分：我只会说现在的时间和日期。"
    )
}

/// A place that is in no table: what follows `in`, or stands before 现在.
fn unknown(asked: &str) -> Option<String> {
    let asked = asked.trim().trim_end_matches(['?', '？', '。', '.', '!']);
    let after = ["in ", "at "].iter().filter_map(|word| Some(asked.rfind(&format!(" {word}"))? + 1 + word.len())).max();
    if let Some(at) = after {
        let name = asked[at..].trim().trim_end_matches(" now").trim_end_matches(" right").trim_end_matches(" today");
        let is_place = !name.is_empty() && !["the moment", "this moment", "here", "my zone", "the office"].contains(&name);
        return is_place.then(|| name.to_owned());
    }
    let before = ["现在", "当前", "今天", "的时间", "几点"].iter().filter_map(|word| asked.find(word)).min()?;
    let name = asked[..before].trim().trim_start_matches("请问").trim_start_matches('在').trim();
    let is_place = !name.is_empty() && name.chars().count() <= 10 && !["那", "你", "我", "我们", "这里", "现"].contains(&name);
    is_place.then(|| name.trim_end_matches('的').to_owned())
}

pub(super) fn plan(language: Language, places: &[Place]) -> Vec<String> {
    let names: Vec<_> = places.iter().map(|place| place.name.as_str()).collect();
    let names = names.join(tell!(language, ", ", "、").as_str());
    match places.is_empty() {
        true => vec![tell!(language, "ask the clock", "看时钟")],
        false => vec![tell!(language, "ask the clock for {names}", "看{names}的时钟")],
    }
}

pub(super) fn tell(conversation: &mut Conversation<'_>, places: &[Place]) -> Step<String> {
    let language = conversation.language;
    conversation.think(tell!(
        language,
        "I know no time by myself, so I ask the tool now.",
        "我自己不知道时间，所以用工具 now 查询。"
    ));
    if places.is_empty() {
        let given = conversation.call("now", json!({}))?;
        return Ok(match LocalTime::parse(given.content).filter(|_| !given.is_error) {
            Some(told) => tell!(language, "It is {}.", "现在是 {}。", told.describe(language)),
            None => tell!(language, "The tool now says: {}", "工具 now 的回答是：{}", given.content),
        });
    }
    let arguments = places.iter().map(|place| json!({ "zone": place.zone.unwrap_or(&place.name) }));
    let given = conversation.call_all("now", arguments.collect())?;
    let mut is_all_told = true;
    let lines = places.iter().zip(given).map(|(place, given)| {
        let name = &place.name;
        match LocalTime::parse(given.content).filter(|_| !given.is_error) {
            Some(told) => tell!(language, "In {name} it is {}.", "{name}现在是 {}。", told.describe(language)),
            None => {
                is_all_told = false;
                tell!(
                    language,
                    "I cannot tell the time in {name}. The tool now says: {}",
                    "我说不出{name}的时间。工具 now 的回答是：{}",
                    given.content
                )
            }
        }
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    if is_all_told { Ok(lines) } else { Err(Stop::Say(lines)) }
}

/// `2023-11-15T07:13:20+09:00 Asia/Tokyo Wednesday`, taken apart.
struct LocalTime<'a> {
    date: &'a str,
    time: &'a str,
    offset: &'a str,
    zone: Option<&'a str>,
    weekday: &'a str,
}

impl<'a> LocalTime<'a> {
    fn parse(content: &'a str) -> Option<Self> {
        let words: Vec<&str> = content.split_whitespace().collect();
        let (moment, zone, weekday) = match words[..] {
            [moment, zone, weekday] => (moment, Some(zone), weekday),
            [moment, weekday] => (moment, None, weekday),
            _ => return None,
        };
        let (date, rest) = moment.split_once('T')?;
        let time = rest.get(..8)?;
        Some(Self { date, time, offset: &rest[8..], zone, weekday })
    }

    fn describe(&self, language: Language) -> String {
        let Self { date, time, offset, zone, weekday } = self;
        let zone = zone.map_or(format!("UTC{offset}"), |zone| format!("{zone}, UTC{offset}"));
        let short = time.get(..5).unwrap_or(time);
        let days = [
            ("Monday", "星期一"),
            ("Tuesday", "星期二"),
            ("Wednesday", "星期三"),
            ("Thursday", "星期四"),
            ("Friday", "星期五"),
            ("Saturday", "星期六"),
            ("Sunday", "星期日"),
        ];
        let day = days.iter().find(|(day, _)| day == weekday).map_or(*weekday, |(_, day)| day);
        match language {
            Language::English => format!("{short} on {weekday}, {date} ({zone})"),
            Language::Chinese => format!("{date} {day} {short}（{zone}）"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_moment_than_now_is_noticed() {
        for (asked, want) in [
            ("what is the date Tomorrow?", Some("Tomorrow")),
            ("what day is it in 3 days", Some("days")),
            ("what day is next Friday", Some("next")),
            ("what time was it 2 hours ago", Some("ago")),
            ("明天星期几", Some("明天")),
            ("what time is it", None),
            ("今天星期几", None),
        ] {
            assert_eq!(other_moment(asked), want, "{asked}");
        }
    }

    #[test]
    fn a_question_about_the_time_is_known_by_its_words_and_its_places() {
        for (asked, want) in [
            ("what time is it?", Some(&[][..])),
            ("What time is it in Tokyo?", Some(&[("Tokyo", Some("Asia/Tokyo"))])),
            (
                "what's the time in New Delhi and London",
                Some(&[("New Delhi", Some("Asia/Kolkata")), ("London", Some("Europe/London"))]),
            ),
            ("what time is it in Kathmandu now?", Some(&[("Kathmandu", None)])),
            ("what time is it in UTC+8", Some(&[("UTC+8", None)])),
            ("what day is it today", Some(&[])),
            ("现在几点", Some(&[])),
            ("东京现在几点？", Some(&[("东京", Some("Asia/Tokyo"))])),
            ("今天星期几", Some(&[])),
            ("加德满都现在几点", Some(&[("加德满都", None)])),
            ("how many times does it occur", None),
            ("hello", None),
        ] {
            let got = places(asked).map(|places| places.into_iter().map(|place| (place.name, place.zone)).collect::<Vec<_>>());
            let want = want.map(|places| places.iter().map(|(name, zone)| ((*name).to_owned(), *zone)).collect::<Vec<_>>());
            assert_eq!(got, want, "{asked}");
        }
    }
}
