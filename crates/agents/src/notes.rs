//! What the program tells a model while it works on a turn, in both languages. The language is that of the conversation, so that it
//! never changes within one.

use crate::workflow::Language;

pub(crate) struct Notes {
    pub(crate) rejected: fn(&str) -> String,
    pub(crate) stopped: fn(&str) -> String,
    pub(crate) failed: fn(&str) -> String,
    pub(crate) rounds_left: fn(usize) -> String,
    pub(crate) empty_reply: &'static str,
    pub(crate) conclude: &'static str,
    pub(crate) cut_before_text: &'static str,
    pub(crate) cut_call: fn(&str) -> String,
    pub(crate) excess_calls: fn(usize) -> String,
    pub(crate) write_notes: &'static str,
    pub(crate) own_notes: &'static str,
    pub(crate) kept_result: fn(&str, &str, &str) -> String,
    pub(crate) more_bytes: fn(usize, Option<&str>) -> String,
    pub(crate) too_long: fn(&str) -> String,
    pub(crate) nearly_full: fn(u64, &str) -> String,
    pub(crate) limit: fn(usize, Option<u64>) -> String,
}

impl Language {
    pub(crate) fn notes(self) -> &'static Notes {
        match self {
            Self::En => &ENGLISH,
            Self::Zh => &CHINESE,
        }
    }
}

const ENGLISH: Notes = Notes {
    rejected: |why| format!("[polis] You rejected this request: \"{why}\""),
    stopped: |why| format!("[polis] Your turn was stopped here, before you had answered: {why}. What its calls did is done."),
    failed: |why| format!("[polis] Your turn failed here, before you had answered: {why}. What its calls did is done."),
    rounds_left: |rounds| {
        format!("[polis] Tools can be used in {rounds} more rounds of this turn. Do what matters most first.")
    },
    empty_reply: "[polis] Your reply was empty. Answer, or call a tool.",
    conclude: "[polis] No more tools can be used in this turn. Answer now with what you have: what is done, what you found, and what \
               is still to do. The person can ask you to go on.",
    cut_before_text: "[polis] Your reply reached the limit of tokens before it said anything. Answer briefly, or call a tool with \
                      less.",
    cut_call: |tool| {
        format!(
            "[polis] Your reply reached the limit of tokens within a call of {tool}, so this call was not made. Make it again with \
             shorter arguments, or in several parts."
        )
    },
    excess_calls: |most| {
        format!(
            "[polis] Your reply had more than {most} calls. Those after the first {most} were dropped and not made. Make fewer calls at \
             a time, and only those that you need."
        )
    },
    write_notes: "[polis] This turn has become too long to show you all of it. Write notes for yourself now; they take the place of \
                  your calls so far: what you found, with names, numbers, paths and ids word for word, which files you changed and \
                  how, what is still to do. Answer with the notes alone.",
    own_notes: "[polis] Your notes on what you did in this turn so far. The calls themselves are no longer shown.",
    kept_result: |tool, artifact, begin| format!("[{tool} gave {artifact}, which get_artifact reads. It begins: {begin}]"),
    more_bytes: |bytes, id| match id {
        Some(id) => format!("[… {bytes} more bytes; get_artifact with the id {id} reads them]"),
        None => format!("[… {bytes} more bytes; call the tool again if you need them]"),
    },
    too_long: |limit| {
        format!(
            "This conversation is longer than its limit ({limit}) and could not be summarised. Compress it with `compress_context`, \
             or finish soon."
        )
    },
    nearly_full: |percent, limit| {
        format!(
            "This conversation has reached {percent} % of its limit ({limit}). Beyond the limit the older messages are summarised \
             for you; call `compress_context` first if you want to choose what is kept."
        )
    },
    limit: |messages, tokens| match tokens {
        Some(tokens) => format!("{messages} messages or about {tokens} tokens"),
        None => format!("{messages} messages"),
    },
};

const CHINESE: Notes = Notes {
    rejected: |why| format!("[polis] 你拒绝了这个请求：“{why}”"),
    stopped: |why| format!("[polis] 你的这一回合在回答之前被停止：{why}。已经完成的调用仍然有效。"),
    failed: |why| format!("[polis] 你的这一回合在回答之前失败：{why}。已经完成的调用仍然有效。"),
    rounds_left: |rounds| format!("[polis] 这一回合还可以调用 {rounds} 轮工具。先做最重要的。"),
    empty_reply: "[polis] 你的回复是空的。请回答，或者调用工具。",
    conclude: "[polis] 这一回合不能再使用工具。请根据已有的内容回答：完成了什么，发现了什么，还要做什么。用户可以让你继续。",
    cut_before_text: "[polis] 你的回复还没有内容就达到了 token 上限。请简短地回答，或者调用工具时少写一些。",
    cut_call: |tool| {
        format!(
            "[polis] 你的回复在调用 {tool} 的中途达到了 token 上限，这次调用没有执行。请用更短的参数重新调用，或者分成几次。"
        )
    },
    excess_calls: |most| {
        format!(
            "[polis] 你的回复中的调用超过了 {most} 个，前 {most} 个之后的已被丢弃，没有执行。请每次少调用一些，只调用需要的。"
        )
    },
    write_notes: "[polis] 这一回合太长，无法再全部显示。请现在为自己写笔记，它会代替到目前为止的调用：你的发现（名称、数字、路径和 id \
                  逐字写出），改了哪些文件、怎么改的，还要做什么。只输出笔记。",
    own_notes: "[polis] 以下是你对这一回合到目前为止所做工作的笔记，调用本身不再显示。",
    kept_result: |tool, artifact, begin| format!("[{tool} 的结果是 {artifact}，用 get_artifact 读取。开头：{begin}]"),
    more_bytes: |bytes, id| match id {
        Some(id) => format!("[……另有 {bytes} 字节，用 get_artifact 按 id {id} 读取]"),
        None => format!("[……另有 {bytes} 字节，需要时请重新调用该工具]"),
    },
    too_long: |limit| format!("这个会话超过了上限（{limit}），而且没能生成摘要。请用 `compress_context` 压缩，或者尽快结束。"),
    nearly_full: |percent, limit| {
        format!(
            "这个会话已达到上限（{limit}）的 {percent} %。超过上限后，较早的消息会由摘要代替；如果想自己选择保留什么，请先调用 \
             `compress_context`。"
        )
    },
    limit: |messages, tokens| match tokens {
        Some(tokens) => format!("{messages} 条消息或约 {tokens} 个 token"),
        None => format!("{messages} 条消息"),
    },
};
