//! The options in brackets at the end of a step, in plain words: timeout, what to do on failure, what runs in parallel.

use super::addressed;
use crate::role::plan::OnFailure;

/// The options of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StepOptions {
    pub(super) timeout_ms: Option<u64>,
    pub(super) on_failure: Vec<OnFailure>,
    pub(super) together: bool,
}

const UNITS: &[(&[&str], u64)] = &[
    (&["seconds", "second", "secs", "sec", "s", "秒钟", "秒"], 1),
    (&["minutes", "minute", "mins", "min", "分钟", "分"], 60),
    (&["hours", "hour", "h", "个小时", "小时"], 3_600),
    (&["days", "day", "天"], 86_400),
];

/// Longest wait that can be written.
const MAX_SECONDS: u64 = 30 * 86_400;

/// The step without its brackets, and what they say. Brackets in which nothing is understood are part of the step; the error is
/// what is not understood beside something that is.
pub(super) fn read(step: &str) -> Result<(&str, StepOptions), String> {
    let Some((text, clauses)) = bracket(step) else { return Ok((step, StepOptions::default())) };
    let mut options = StepOptions::default();
    let mut strange = Vec::new();
    let mut understood = 0;
    for clause in clauses.split([';', '；']).map(str::trim).filter(|clause| !clause.is_empty()) {
        match one(clause, &mut options) {
            Ok(true) => understood += 1,
            Ok(false) => strange.push(clause),
            Err(wrong) => return Err(wrong),
        }
    }
    match (understood, strange.first()) {
        (0, _) => Ok((step, StepOptions::default())),
        (_, Some(strange)) => Err(format!("`{strange}` is not understood")),
        (_, None) => Ok((text.trim_end(), options)),
    }
}

fn bracket(step: &str) -> Option<(&str, &str)> {
    let inner = step.trim_end().trim_end_matches(['.', '。']);
    let inner = inner.strip_suffix(')').or_else(|| inner.strip_suffix('）'))?;
    let open = inner.rfind(['(', '（'])?;
    let (text, clauses) = inner.split_at(open);
    Some((text, clauses.trim_start_matches(['(', '（'])))
}

/// Takes one clause in; false when it says nothing that is known.
fn one(clause: &str, options: &mut StepOptions) -> Result<bool, String> {
    let lower = clause.to_lowercase();
    if ["at the same time", "together", "同时"].contains(&&*lower) {
        options.together = true;
        return Ok(true);
    }
    let stripped = |words: &[&str]| words.iter().find_map(|word| lower.strip_prefix(word).map(|_| &clause[word.len()..]));
    if let Some(rest) = stripped(&["if it fails", "on failure", "如果失败", "失败时", "失败后"]) {
        let rest = rest.trim_start_matches([':', '：', ',', '，', ' ']);
        options.on_failure = policies(rest)?;
        return Ok(true);
    }
    let time = stripped(&["within", "限时"]).map(str::to_owned);
    let time = time.or_else(|| lower.strip_suffix('内').map(|rest| rest.trim_end_matches("之").to_owned()));
    match time {
        Some(time) => {
            options.timeout_ms = Some(seconds(&time)? * 1_000);
            Ok(true)
        }
        None => Ok(false),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{}` is no time; write for example `within 10 minutes` or `10 分钟内`", text.trim());
    let text = text.trim().to_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let unit = UNITS.iter().find(|(names, _)| names.contains(&text[end..].trim())).ok_or_else(wrong)?;
    let seconds = number.saturating_mul(unit.1);
    if seconds == 0 || seconds > MAX_SECONDS {
        Err(format!("`{text}` is too short or too long; 1 second to 30 days"))
    } else {
        Ok(seconds)
    }
}

fn policies(text: &str) -> Result<Vec<OnFailure>, String> {
    let parts = text.split([',', '，', '、']).flat_map(|part| part.split(" then ")).flat_map(|part| part.split("然后"));
    let mut policies = Vec::new();
    for part in parts {
        let part = part.trim().trim_start_matches("then ").trim();
        if !part.is_empty() {
            policies.push(policy(part)?);
        }
    }
    if policies.is_empty() { Err("what to do when it fails is missing".to_owned()) } else { Ok(policies) }
}

fn policy(text: &str) -> Result<OnFailure, String> {
    let lower = text.to_lowercase();
    if ["stop", "fail", "give up", "停止", "放弃"].contains(&&*lower) {
        return Ok(OnFailure::Fail);
    }
    if ["do it yourself", "do it myself", "do it oneself", "自己做", "自行完成"].contains(&&*lower) {
        return Ok(OnFailure::Myself);
    }
    for word in ["retry", "try again", "重试"] {
        if let Some(times) = lower.strip_prefix(word) {
            return times_of(times.trim()).map(OnFailure::Retry).ok_or_else(|| unknown(text));
        }
    }
    let asked = ["ask ", "请", "问", "找"].iter().find_map(|word| lower.strip_prefix(word).map(|_| text[word.len()..].trim()));
    match addressed(asked.unwrap_or(text)) {
        Some((name, "")) => Ok(OnFailure::Another(name)),
        _ => Err(unknown(text)),
    }
}

fn times_of(text: &str) -> Option<u32> {
    let word = text.trim_end_matches("times").trim_end_matches('次').trim();
    match word {
        "" | "once" | "一" => Some(1),
        "twice" | "两" | "二" => Some(2),
        "three" | "三" => Some(3),
        number => number.parse().ok().filter(|times| (1..=10).contains(times)),
    }
}

fn unknown(text: &str) -> String {
    format!(
        "`{text}` is not understood; write stop, retry twice, ask @name or do it yourself (停止, 重试两次, 请 @name, 自己做)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_say_how_long_and_what_then() {
        let editor = || OnFailure::Another("editor".into());
        for (step, text, options) in [
            ("Write it.", "Write it.", StepOptions::default()),
            ("Write it (see the handbook).", "Write it (see the handbook).", StepOptions::default()),
            ("Write it (within 10 minutes)", "Write it", StepOptions { timeout_ms: Some(600_000), ..StepOptions::default() }),
            (
                "Write it. (within 2 h; if it fails: retry twice, then ask @editor, then do it yourself; at the same time)",
                "Write it.",
                StepOptions {
                    timeout_ms: Some(7_200_000),
                    on_failure: vec![OnFailure::Retry(2), editor(), OnFailure::Myself],
                    together: true,
                },
            ),
            (
                "写草稿（10 分钟内；失败时：重试两次，然后请 @editor；同时）",
                "写草稿",
                StepOptions { timeout_ms: Some(600_000), on_failure: vec![OnFailure::Retry(2), editor()], together: true },
            ),
            ("写（失败时：停止）", "写", StepOptions { on_failure: vec![OnFailure::Fail], ..StepOptions::default() }),
            ("写（30秒内）。", "写", StepOptions { timeout_ms: Some(30_000), ..StepOptions::default() }),
        ] {
            assert_eq!(read(step), Ok((text, options)), "{step}");
        }
    }

    #[test]
    fn what_is_half_understood_is_said() {
        for bad in [
            "Write (within ten minutes)",
            "Write (within 0 minutes)",
            "Write (within 10 parsecs)",
            "Write (if it fails: cry)",
            "Write (if it fails: retry often)",
            "Write (if it fails: ask editor)",
            "Write (if it fails:)",
            "Write (within 10 minutes; quickly)",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
