//! Detects summaries without content. It does not judge truth or use: it only finds texts that say of the work that it is done
//! and nothing else, by what is left when such words are taken away. Whether a task is done is never read from words.

/// Most characters of a text without anything in it. A longer one says something, if only by its length.
const MOST_CHARS: usize = 120;

/// English words of which texts without content are made.
const ENGLISH: &[&str] = &[
    "a",
    "accomplished",
    "achieved",
    "all",
    "already",
    "and",
    "answered",
    "are",
    "as",
    "asked",
    "been",
    "complete",
    "completed",
    "completely",
    "completion",
    "correctly",
    "done",
    "everything",
    "executed",
    "finished",
    "for",
    "fulfilled",
    "fully",
    "goal",
    "handled",
    "has",
    "have",
    "i",
    "is",
    "it",
    "its",
    "job",
    "met",
    "need",
    "needs",
    "now",
    "of",
    "ok",
    "okay",
    "our",
    "performed",
    "plan",
    "planned",
    "processed",
    "properly",
    "ready",
    "request",
    "requested",
    "requests",
    "requirement",
    "requirements",
    "result",
    "results",
    "s",
    "satisfied",
    "served",
    "step",
    "steps",
    "success",
    "successful",
    "successfully",
    "task",
    "tasks",
    "that",
    "the",
    "this",
    "to",
    "todo",
    "todos",
    "user",
    "users",
    "was",
    "we",
    "well",
    "were",
    "what",
    "with",
    "work",
    "works",
    "you",
    "your",
];

/// The same in Chinese, longer ones first where one holds another.
const CHINESE: &[&str] = &[
    "用户", "需求", "要求", "请求", "任务", "工作", "计划", "步骤", "目标", "结果", "事情", "一切", "所有", "全部", "全都",
    "已经", "成功", "顺利", "圆满", "完成", "完毕", "结束", "执行", "处理", "满足", "达成", "实现", "做好", "搞定", "办好",
    "每个", "各项", "以上", "上述", "本次", "这个", "该", "均", "都", "已", "被", "并", "了", "的", "地", "得", "我", "您",
    "你", "们", "好", "完", "做", "项", "个", "所", "有",
];

/// Whether a text says that something is done, and nothing else.
pub(super) fn says_nothing(text: &str) -> bool {
    if text.chars().nth(MOST_CHARS).is_some() {
        return false;
    }
    let lower = text.to_lowercase();
    let chinese = if lower.is_ascii() { &[] } else { CHINESE };
    let bare = chinese.iter().fold(lower, |text, word| text.replace(word, " "));
    bare.split(|c: char| !c.is_alphanumeric()).all(|word| word.is_empty() || ENGLISH.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_says_that_it_is_done_says_nothing() {
        for text in [
            "",
            " … ",
            "Done",
            "ok",
            "**Done!**",
            "All tasks have been completed successfully.",
            "Everything is done.",
            "The tasks were completed.",
            "Completed successfully",
            "The request has been fulfilled.",
            "The work is finished.",
            "I have completed the task.",
            "User's needs satisfied",
            "任务已全部完成",
            "任务已完成。",
            "所有任务均已成功完成",
            "用户需求已满足",
            "任务已完成，需求已满足！",
            "已经做好了",
        ] {
            assert!(says_nothing(text), "{text}");
        }
    }

    #[test]
    fn a_text_that_names_anything_says_something() {
        for text in [
            "Yes.",
            "No.",
            "42",
            "All 3 tasks are done.",
            "Done: side.txt is written.",
            "The file was deleted.",
            "是的",
            "不需要",
            "共 128 个订单",
            "已写入 out.txt",
            "任务没有完成",
            "No file was found.",
            "Berlin",
        ] {
            assert!(!says_nothing(text), "{text}");
        }
        assert!(!says_nothing(&"done ".repeat(30)));
    }
}
