//! Parses a procedure from Markdown: front matter that says when it applies, and a list of steps. Reports all faults together.

use serde_json::{Map, Value};

use super::pattern::Pattern;
use super::step_options::{self, StepOptions};
use super::{Sop, SopFault, addressed};
use crate::role::action::WORK;
use crate::role::plan::InternalStep;

/// Most steps of a procedure.
const MAX_STEPS: usize = 50;

/// Words of the headings under which steps stand.
const HEADINGS: &[&str] = &["steps", "procedure", "步骤", "流程"];

/// A value of the front matter, with its line.
type Entry = (usize, String);

#[derive(Default)]
struct Front {
    name: Vec<Entry>,
    when: Vec<Entry>,
    roles: Vec<Entry>,
    /// The first line after it.
    end: usize,
}

struct Reader {
    faults: Vec<SopFault>,
}

pub(super) fn read(text: &str) -> Result<Sop, Vec<SopFault>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = Reader { faults: Vec::new() };
    let front = reader.front(&lines);
    let name = front.name.first().map(|(line, name)| reader.name(*line, name)).unwrap_or_default();
    let when: Vec<_> = front.when.iter().filter_map(|(line, text)| reader.pattern(*line, text)).collect();
    if front.name.is_empty() && front.end > 0 {
        reader.fault(1, "it has no `name`", "write for example `name: monthly_report` between the `---`");
    }
    if front.when.is_empty() && front.end > 0 {
        reader.fault(
            1,
            "it does not say `when` it applies",
            "write for example `when: [monthly report, 月报]` between the `---`",
        );
    }
    let steps = reader.steps(&lines, front.end, &when);
    let roles = front.roles.into_iter().map(|(_, role)| role.trim_start_matches('@').to_owned()).collect();
    if reader.faults.is_empty() { Ok(Sop { name, when, roles, steps }) } else { Err(reader.faults) }
}

impl Reader {
    fn fault(&mut self, line: usize, wrong: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(SopFault { line, wrong: wrong.into(), remedy: remedy.into() });
    }

    fn name(&mut self, line: usize, name: &str) -> String {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.chars().count() > 80 || !name.chars().all(plain) {
            self.fault(line, format!("`{name}` is no name"), "use letters, digits, `-` and `_`");
        }
        name.to_owned()
    }

    fn pattern(&mut self, line: usize, text: &str) -> Option<Pattern> {
        match Pattern::read(text) {
            Ok(pattern) => Some(pattern),
            Err(wrong) => {
                self.fault(line, wrong, "write words of the task, with * for anything and {name} for what the steps need");
                None
            }
        }
    }

    fn front(&mut self, lines: &[&str]) -> Front {
        let mut front = Front::default();
        let closing = lines.iter().skip(1).position(|line| line.trim_end() == "---").map(|place| place + 1);
        let (Some(&"---"), Some(closing)) = (lines.first().map(|line| line.trim_end()).as_ref(), closing) else {
            self.fault(1, "it has no front matter", "begin the file with `---`, then name, when and roles, then `---`");
            return front;
        };
        front.end = closing + 1;
        let mut key: Option<&str> = None;
        for (number, line) in (2..).zip(&lines[1..closing]) {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let (name, values) = match (trimmed.strip_prefix("- "), key) {
                (Some(item), Some(key)) => (key, vec![unquoted(item)]),
                (Some(_), None) => {
                    self.fault(number, "an item stands below nothing", "write `when:` or `roles:` above it");
                    continue;
                }
                (None, _) => {
                    let Some((name, value)) = trimmed.split_once(':').or_else(|| trimmed.split_once('：')) else {
                        self.fault(number, format!("`{trimmed}` is not understood"), "write `key: value`");
                        continue;
                    };
                    key = Some(name.trim());
                    (name.trim(), values(value))
                }
            };
            let entries = values.into_iter().map(|value| (number, value));
            match name {
                "name" | "名称" => front.name.extend(entries),
                "when" | "适用" => front.when.extend(entries),
                "roles" | "角色" => front.roles.extend(entries),
                _ => self.fault(number, format!("`{name}` is not known"), "use name, when and roles (名称, 适用, 角色)"),
            }
        }
        front
    }

    /// The items of the list under the heading; without such a heading, the numbered ones.
    fn steps(&mut self, lines: &[&str], from: usize, when: &[Pattern]) -> Vec<InternalStep> {
        let heading =
            |line: &str| line.trim_start().strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim().to_lowercase());
        let is_steps = |line: &str| heading(line).is_some_and(|words| HEADINGS.contains(&&*words));
        let section = lines.iter().skip(from).position(|line| is_steps(line)).map(|place| place + from + 1);
        let mut steps: Vec<(usize, String)> = Vec::new();
        for (number, line) in (1..).zip(lines).skip(section.unwrap_or(from)) {
            if section.is_some() && heading(line).is_some() {
                break;
            }
            match item(line, section.is_some()) {
                Some(text) => steps.push((number, text.trim().to_owned())),
                // A step that goes on in the next line is indented.
                None if line.starts_with([' ', '\t']) && !line.trim().is_empty() => {
                    if let Some((_, text)) = steps.last_mut() {
                        text.push(' ');
                        text.push_str(line.trim());
                    }
                }
                None => {}
            }
        }
        if steps.is_empty() {
            let line = section.unwrap_or(lines.len().max(1));
            self.fault(line, "it has no steps", "write a heading `## Steps` (`## 步骤`) and below it a list: 1. … 2. …");
        } else if steps.len() > MAX_STEPS {
            self.fault(steps[MAX_STEPS].0, format!("it has more than {MAX_STEPS} steps"), "split it into two");
        }
        (1..).zip(steps).filter_map(|(n, (line, text))| self.step(n, line, &text, when)).collect()
    }

    fn step(&mut self, n: usize, line: usize, text: &str, when: &[Pattern]) -> Option<InternalStep> {
        for place in places(text) {
            if place != "task" && !when.iter().all(|pattern| pattern.names().any(|name| name == place)) {
                let remedy = format!("write {{{place}}} into each pattern of `when`, or use {{task}} for the whole task");
                self.fault(line, format!("`{{{place}}}` is not in every pattern of `when`"), remedy);
            }
        }
        let (text, StepOptions { timeout_ms, on_failure, together }) = match step_options::read(text) {
            Ok(read) => read,
            Err(wrong) => {
                self.fault(line, wrong, "see the list of words in docs/sops.md");
                return None;
            }
        };
        let id = format!("step_{n}");
        let step = match (addressed(text), tool(text)) {
            (Some((_, "")), _) => {
                self.fault(line, "it does not say what is asked", "write it behind the name");
                return None;
            }
            (Some((target, what)), _) => InternalStep::collaboration(id, &target, what),
            (None, Some(Ok((tool, params)))) => InternalStep::tool(id, &tool, params),
            (None, Some(Err(wrong))) => {
                self.fault(line, wrong, "write for example: tool `read_file` {\"path\": \"notes.txt\"}");
                return None;
            }
            (None, None) => InternalStep::action(id, WORK, text),
        };
        if together && n == 1 {
            self.fault(line, "the first step has nothing to begin together with", "remove `at the same time`");
        }
        Some(InternalStep { timeout_ms, on_failure, together, ..step })
    }
}

/// The text of a list item: numbered, or with a dash or star where these are steps as well.
fn item(line: &str, dashes: bool) -> Option<&str> {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = (1..=3).contains(&digits).then(|| line[digits..].strip_prefix(['.', ')', '、', '．'])).flatten();
    let dashed = || line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).filter(|_| dashes);
    numbered.or_else(dashed).filter(|text| !text.trim().is_empty())
}

/// A tool's name and arguments.
type Named = (String, Map<String, Value>);

/// A call: tool `name` {…}.
fn tool(text: &str) -> Option<Result<Named, String>> {
    let lower = text.to_lowercase();
    let word = ["use tool `", "tool `", "使用工具 `", "工具 `", "工具`"].into_iter().find(|word| lower.starts_with(word))?;
    let (name, rest) = text[word.len()..].split_once('`')?;
    let rest = rest.trim();
    let params = if rest.is_empty() { Ok(Map::new()) } else { serde_json::from_str(rest) };
    Some(
        params
            .map(|params| (name.to_owned(), params))
            .map_err(|error| format!("the arguments of `{name}` are no JSON object: {error}")),
    )
}

/// The names in braces of a step; what looks like JSON has none.
fn places(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
        if end > 0 && after[end..].starts_with('}') {
            found.push(&after[..end]);
        }
        rest = after;
    }
    found
}

/// One value, or several in brackets.
fn values(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => inner.split([',', '，']).map(unquoted).filter(|value| !value.is_empty()).collect(),
        None => vec![unquoted(text)],
    }
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let quoted = |mark: char| text.strip_prefix(mark).and_then(|inner| inner.strip_suffix(mark));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Sops;
    use super::*;
    use crate::role::plan::{OnFailure, StepType};

    const REPORT: &str = "---\nname: monthly_report\nwhen:\n  - monthly report for {month}\n  - \"{month}的月报\"\nroles: [root]\n---\n\
        # Monthly report\n\nThis text is for people.\n\n## Steps\n\n1. average amount by city in sales.csv\n\
        2. @analyst Explain the figures of {month}\n   to a layman. (within 5 minutes; if it fails: do it yourself)\n\
        3. @reviewer Check {month}. (at the same time)\n4. tool `write_file` {\"path\": \"{month}.md\", \"content\": \"x\"}\n\
        \n## Notes\n\n1. not a step\n";

    #[test]
    fn a_procedure_is_read_as_people_write_it() {
        let sop = read(REPORT).unwrap();
        assert_eq!((&*sop.name, &*sop.roles), ("monthly_report", &["root".to_owned()][..]));
        let found = Sops::default().with(sop).find("root", "Please write the monthly report for May.").unwrap();
        assert_eq!(found.reason, "SOP `monthly_report` fits: `monthly report for {month}`");
        let told: Vec<_> = found.plan.steps.iter().map(|step| (step.kind, &*step.description, step.together)).collect();
        assert_eq!(
            told,
            [
                (StepType::ExecuteAction, "average amount by city in sales.csv", false),
                (StepType::RequestCollaboration, "Explain the figures of May to a layman.", false),
                (StepType::RequestCollaboration, "Check May.", true),
                (StepType::UseTool, "write_file {\"content\":\"x\",\"path\":\"May.md\"}", false),
            ]
        );
        let asked = &found.plan.steps[1];
        assert_eq!((asked.timeout_ms, &*asked.on_failure), (Some(300_000), &[OnFailure::Myself][..]));
        assert_eq!(found.plan.steps[3].params["path"], "May.md");
    }

    #[test]
    fn a_procedure_in_chinese_is_read_and_the_one_that_names_most_wins() {
        let chinese = "---\n名称: 月报\n适用: [月报]\n---\n## 步骤\n1、统计 sales.csv 的行数\n2、@分析员：解释结果（10 分钟内；失败时：自己做）\n";
        let more = chinese.replace("名称: 月报", "名称: 三月月报").replace("[月报]", "[三月的月报]");
        let sops = Sops::default().with(read(chinese).unwrap()).with(read(&more).unwrap());
        assert!(sops.find("root", "写二月的月报").unwrap().reason.contains("`月报`"));
        let found = sops.find("root", "写三月的月报").unwrap();
        assert!(found.reason.contains("`三月月报`"));
        assert_eq!(found.plan.steps[1].target.as_deref(), Some("分析员"));
        assert_eq!(found.plan.steps[1].description, "解释结果");
        assert!(sops.find("root", "hello").is_none());
        assert!(Sops::default().with(read(REPORT).unwrap()).find("writer", "monthly report for May").is_none());
    }

    #[test]
    fn whatever_is_wrong_is_told_with_its_line() {
        let lines = |text: &str| read(text).unwrap_err().into_iter().map(|fault| fault.line).collect::<Vec<_>>();
        for (text, expected) in [
            ("", vec![1, 1]),
            ("just text\n", vec![1, 1]),
            ("---\nname: x\n", vec![1, 2]),
            ("---\nname: x\nwhen: y\n---\n", vec![4]),
            ("---\nwhen: y\n---\n1. a\n", vec![1]),
            ("---\nname: x\n---\n1. a\n", vec![1]),
            ("---\nname: a b\nwhen: [\"*\"]\ncolour: red\nodd\n---\n1. a\n", vec![4, 5, 2, 3]),
            ("---\nname: x\nwhen: y\n---\n1. a\n2. do {z}\n", vec![6]),
            ("---\nname: x\nwhen: y\n---\n1. @ann\n2. b (within soon)\n3. tool `t` {no: 1}\n", vec![5, 6, 7]),
            ("---\nname: x\nwhen: y\n---\n1. a (together)\n", vec![5]),
            ("---\n- a\nname: x\nwhen: y\n---\n1. a\n", vec![2]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }
}
