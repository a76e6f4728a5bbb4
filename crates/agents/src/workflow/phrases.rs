//! What the workflow itself says to models and people, in both languages.

use super::Language;

/// The workflow's own words.
pub(super) struct Phrases {
    pub(super) plan_on: &'static str,
    pub(super) work_on: &'static str,
    pub(super) begin_again: &'static str,
    pub(super) retried: &'static str,
    pub(super) person_says: &'static str,
    pub(super) refused_proof: &'static str,
    pub(super) planning: &'static str,
    pub(super) verifying: &'static str,
    pub(super) plan: &'static str,
    pub(super) agree: &'static str,
    pub(super) bad_edit: &'static str,
    pub(super) not_agreed: &'static str,
    pub(super) needs_more: &'static str,
    pub(super) partial: &'static str,
    pub(super) done: &'static str,
    pub(super) missing: &'static str,
    pub(super) not_accepted: &'static str,
    pub(super) unverified: &'static str,
    pub(super) nothing_done: &'static str,
    pub(super) before: &'static str,
    pub(super) context: &'static str,
    pub(super) out_of_rounds: fn(usize) -> String,
    pub(super) out_of_cycles: fn(usize) -> String,
}

const ENGLISH: Phrases = Phrases {
    plan_on: "You said that the plan is not whole yet. Nobody can tell you more just now: go on planning with sensible assumptions, state them, and answer with the whole object again.",
    work_on: "Go on with the current task.",
    begin_again: "You wanted to begin the task anew. This is the new beginning; there will be no other. What you said about the first attempt:",
    retried: "it asked to begin again a second time",
    person_says: "The user says meanwhile (this comes before the plan):",
    refused_proof: "Your judgement is refused.",
    planning: "Planning …",
    verifying: "Checking the results …",
    plan: "The plan",
    agree: "May the plan be carried out? To change it, agree with other todos in its place.",
    bad_edit: "The changed plan cannot be used",
    not_agreed: "The plan was not agreed to, so nothing was done",
    needs_more: "I need to know more before I can plan this",
    partial: "I could not do everything that was asked.",
    done: "What was done:",
    missing: "What is missing:",
    not_accepted: "What there was, and was not accepted:",
    unverified: "This answer could not be verified:",
    nothing_done: "(nothing)",
    before: "What was said before",
    context: "Context",
    out_of_rounds: |rounds| format!("not done after {rounds} rounds"),
    out_of_cycles: |cycles| format!("not accepted after {cycles} plans"),
};

const CHINESE: Phrases = Phrases {
    plan_on: "你说计划还不完整。现在没有人能告诉你更多：请作出合理的假设并写明，继续规划，重新输出完整的对象。",
    work_on: "请继续当前任务。",
    begin_again: "你要求从头再来。现在重新开始，这是最后一次机会。你对第一次尝试的说明：",
    retried: "它又一次要求从头再来",
    person_says: "用户在此期间说（优先于计划）：",
    refused_proof: "你的判断被退回。",
    planning: "正在规划……",
    verifying: "正在检查结果……",
    plan: "计划",
    agree: "可以执行这个计划吗？要修改它，请在同意时给出别的任务。",
    bad_edit: "修改后的计划不能用",
    not_agreed: "计划没有得到同意，所以什么也没有做",
    needs_more: "我需要知道更多才能规划",
    partial: "没有能完成全部需求。",
    done: "已完成：",
    missing: "还缺少：",
    not_accepted: "已有但没有被接受的结果：",
    unverified: "这个回答没有通过验证：",
    nothing_done: "（没有）",
    before: "之前说过的话",
    context: "上下文",
    out_of_rounds: |rounds| format!("{rounds} 轮之后仍未完成"),
    out_of_cycles: |cycles| format!("{cycles} 次计划之后仍未通过"),
};

/// The workflow's words in a language.
pub(super) fn phrases(language: Language) -> &'static Phrases {
    match language {
        Language::En => &ENGLISH,
        Language::Zh => &CHINESE,
    }
}
