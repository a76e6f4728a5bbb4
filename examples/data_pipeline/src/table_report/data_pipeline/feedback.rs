//! What people are told about a run: the model's words where they keep to the facts, ours where they do not; the facts always.

use std::collections::HashSet;

use polis::prelude::*;

use super::said::{Said, Tongue};
use super::stage::Stage;

/// How freely a report is worded (R151).
const TEMPERATURE: f64 = 0.3;

/// The report on a phase that went well.
pub(super) async fn report(stage: &Stage, tongue: Tongue, facts: &str, turn: &mut Turn) -> String {
    let mark = tongue.say(stage.mark);
    let prompt = format!(
        "{}\n{facts}",
        tongue
            .say(Said {
                en: "A program was run. Report to a person in one to three sentences what came of it. Begin with \"{mark}\" and use \
                     no number that is not here:",
                zh: "程序已执行。请用一到三句话向用户报告结果，以“{mark}”开头，只使用下面出现的数字：",
            })
            .replace("{mark}", mark.trim_end())
    );
    let request = ModelRequest { settings: ModelSettings::at_temperature(TEMPERATURE), ..prompt.into() };
    let words = turn.generate(request).await.ok().and_then(|reply| kept_to_the_facts(&reply, mark.trim_end(), facts));
    let words = words.unwrap_or_else(|| {
        let space = if tongue == Tongue::English && !mark.ends_with('\n') { " " } else { "" };
        format!("{mark}{space}{}", tongue.say(stage.done))
    });
    format!("{words}\n{facts}")
}

/// A reply that begins as it should and has no number of its own.
fn kept_to_the_facts(reply: &str, mark: &str, facts: &str) -> Option<String> {
    let rest = reply.trim().strip_prefix(mark)?.trim();
    let known = numbers(facts);
    let keeps = !rest.is_empty() && numbers(rest).is_subset(&known);
    keeps.then(|| format!("{mark}\n{rest}"))
}

fn numbers(text: &str) -> HashSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | ',')));
    let words = words.map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| word.contains(|c: char| c.is_numeric())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_used_only_if_all_its_numbers_are_known() {
        let facts = "- records: 12\n- amount: sum 229.7";
        let kept = |reply: &str| kept_to_the_facts(reply, "Done:", facts);
        assert_eq!(kept(" Done: 12 records, 229.7 in all. ").as_deref(), Some("Done:\n12 records, 229.7 in all."));
        for reply in
            ["Done: 13 records.", "Done: 229.70", "Done: 12 of 100 %", "12 records.", "Done:", "(offline model) Done: 12"]
        {
            assert_eq!(kept(reply), None, "{reply}");
        }
    }
}
