//! The reply to everything else: what this model is, what it can do, and how to configure a real one.

use super::conversation::Conversation;
use super::language::{Language, tell};

pub(super) fn introduction(conversation: &Conversation<'_>) -> String {
    let begin = match (conversation.language, asks_who(conversation.asked)) {
        (Language::English, true) => "Hello. No language model is set, so you talk to ",
        (Language::English, false) => "No language model is set, so I cannot answer that: I am ",
        (Language::Chinese, true) => "您好。没有设置语言模型，回答您的是 ",
        (Language::Chinese, false) => "没有设置语言模型，所以我回答不了这个问题：我是 ",
    };
    format!("{begin}{}", rest(conversation.language))
}

/// That a part of a request is left out.
pub(super) fn not_understood(language: Language, part: &str) -> String {
    tell!(
        language,
        "I did not understand the part “{part}” and left it out; a real model may know.",
        "我没有听懂“{part}”这部分，没有做；真正的模型也许可以。"
    )
}

/// Whether somebody only says hello, or asks who answers here.
pub(super) fn asks_who(asked: &str) -> bool {
    let asked = asked.trim().to_lowercase();
    let asked = asked.trim_end_matches(['?', '!', '.', '？', '！', '。', '~']);
    let greetings = ["hello", "hi", "hey", "hello there", "good morning", "help", "你好", "您好", "嗨", "在吗", "帮助"];
    let questions = ["what can you", "who are you", "what are you", "你是谁", "你能做什么", "你会什么", "你会做什么"];
    greetings.contains(&asked) || questions.iter().any(|question| asked.starts_with(question))
}

fn rest(language: Language) -> &'static str {
    match language {
        Language::English => "\
the offline model of Polis, a set of rules without a network. This I can do with the tools here, in English or Chinese:
- analyse a CSV file: `analyse sales.csv`, `average price by city in sales.csv`, `top 5 in sales.csv by amount where amount > 100`
- count or summarise: `how many files are in docs`, `how many lines in src`, `how often does \"milk\" occur`, `summarise README.md`
- reckon: `(12.5 + 3) * 4`, `15% of 240`, `2^100`
- tell the time: `what time is it in Tokyo`
- read and write files: `read FILE`, `write FILE: text`

For real answers set a vendor's key, for example OPENAI_API_KEY, or write model = \"vendor/name\" into polis.toml.",
        Language::Chinese => "\
Polis 的离线模型，它只有一套规则，不连网络。用这里的工具，能用中文或英文做这些：
- 分析 CSV 文件：`分析 sales.csv`、`sales.csv 里按城市的平均价格`、`sales.csv 里金额大于 100 的前 5 名`
- 统计或概括：`docs 目录有多少文件`、`src 有多少行`、`“牛奶”出现了几次`、`总结 README.md`
- 算术：`(12.5 + 3) * 4`、`240 的 15%`、`2 的 100 次方`
- 报时：`东京现在几点`
- 读写文件：`读 文件名`、`写 文件名: 文字`

想要真正的回答，请设置某个厂商的密钥，例如 OPENAI_API_KEY，或者在 polis.toml 里写 model = \"厂商/模型名\"。",
    }
}
