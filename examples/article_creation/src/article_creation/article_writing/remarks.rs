//! What an article says about itself, in the language of its topic: what it lacks, and what the review still holds against it.

use super::verdict::Verdict;

/// The remarks below an article; empty when there is nothing to say.
pub(super) fn remarks(topic: &str, missing: &[String], review: &str) -> String {
    let is_chinese = topic.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}'));
    let say = |english: &str, chinese: &str| if is_chinese { chinese.to_owned() } else { english.to_owned() };
    let mut remarks: Vec<String> = missing
        .iter()
        .map(|what| format!("{}{what}", say("Missing, because its research failed: ", "缺少（调查失败）：")))
        .collect();
    match Verdict::read(review) {
        Verdict::Accept => {}
        Verdict::Revise(why) => {
            remarks.push(format!("{}{why}", say("The last review still asks for changes: ", "最后一次审阅仍要求修改：")));
        }
        Verdict::Unclear => {
            remarks.push(format!("{}{review}", say("There is no verdict on this draft: ", "这一稿没有审阅结论：")));
        }
    }
    if remarks.is_empty() { String::new() } else { format!("\n\n---\n\n{}\n", remarks.join("\n\n")) }
}
