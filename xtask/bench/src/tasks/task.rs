//! What a task is: a workspace, tools, what the person says, and how a model that follows its instructions does it.

use std::collections::{BTreeMap, BTreeSet};

use polis_domain::EffectClass;
use serde_json::{Value, json};

/// What a task is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    Files,
    Tools,
    Agents,
    Conversations,
    Plans,
}

/// One task. Facts have the form `key=value`. Their true values are those in the files, in the tools' results and in what the
/// person says, so each key has one value in a task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) area: Area,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) tools: Vec<TaskTool>,
    /// What the person asks, in order.
    pub(crate) turns: Vec<Ask>,
    /// What agents ask each other, and the todos of plans.
    pub(crate) jobs: Vec<Ask>,
    pub(crate) files_after: Vec<(String, String)>,
    /// Whether independent calls are made in one reply.
    pub(crate) is_parallel: bool,
}

/// A request, and the instructions of the model for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) says: String,
    pub(crate) steps: Vec<Step>,
    /// The answer, with facts in braces.
    pub(crate) answer: String,
    /// The todos of its plan: the place of the job in [`Task::jobs`], and the places of those that it depends on.
    pub(crate) todos: Vec<(usize, Vec<usize>)>,
    /// Whether it is one part of work that a later request finishes.
    pub(crate) is_partial: bool,
    /// Whether the person chooses the workflow.
    pub(crate) is_planned: bool,
}

/// One call that a request needs.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) tool: String,
    /// The arguments, with facts in braces.
    pub(crate) arguments: Value,
    pub(crate) result: StepResult,
    /// How often it is tried.
    pub(crate) tries: usize,
}

/// How one sees that a step is done.
#[derive(Debug, Clone)]
pub(crate) enum StepResult {
    /// A fact is known.
    Fact(String),
    /// A call whose arguments contain this text was made without an error.
    Done(String),
}

/// A tool of the task's world.
#[derive(Debug, Clone)]
pub(crate) struct TaskTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) class: EffectClass,
    pub(crate) gives: Gives,
}

/// What a tool returns.
#[derive(Debug, Clone)]
pub(crate) enum Gives {
    Always(String),
    /// The text at the first call, an error later.
    Once(String),
    /// So many errors, then the text.
    AfterErrors(usize, String),
    /// The text whose key is in the arguments, or an error.
    For(Vec<(String, String)>),
    /// An error with this text unless the arguments contain the first text; then the second one.
    Needs {
        argument: String,
        error: String,
        text: String,
    },
}

impl Gives {
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Always(text) | Self::Once(text) | Self::AfterErrors(_, text) => vec![text],
            Self::For(texts) => texts.iter().map(|(_, text)| text.as_str()).collect(),
            Self::Needs { error, text, .. } => vec![error, text],
        }
    }
}

impl Task {
    pub(crate) fn new(area: Area, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            area,
            files: Vec::new(),
            tools: Vec::new(),
            turns: Vec::new(),
            jobs: Vec::new(),
            files_after: Vec::new(),
            is_parallel: false,
        }
    }

    pub(crate) fn file(mut self, path: &str, content: impl Into<String>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    pub(crate) fn file_after(mut self, path: &str, content: impl Into<String>) -> Self {
        self.files_after.push((path.to_owned(), content.into()));
        self
    }

    pub(crate) fn tool(mut self, name: &str, class: EffectClass, description: &str, gives: Gives) -> Self {
        self.tools.push(TaskTool { name: name.to_owned(), description: description.to_owned(), class, gives });
        self
    }

    pub(crate) fn reading(self, name: &str, text: &str) -> Self {
        self.tool(name, EffectClass::Read, &format!("Returns what {name} knows."), Gives::Always(text.to_owned()))
    }

    pub(crate) fn writing(self, name: &str) -> Self {
        self.tool(name, EffectClass::Write, &format!("Does {name} for an id."), Gives::Always("done".to_owned()))
    }

    /// Tools of servers that the task does not need.
    pub(crate) fn with_other_tools(mut self, count: usize) -> Self {
        for n in 0..count {
            let (server, what) = [("crm", "customers"), ("mail", "messages"), ("git", "commits"), ("shop", "orders")][n % 4];
            let name = format!("{server}__report_{n}");
            let description = format!(
                "Makes report number {n} about {what} of a period. The report has one line for each of the {what}, newest first, \
                 with the columns that were asked for. Long reports are cut, and the last line then says where to go on."
            );
            self = self.tool(&name, EffectClass::Read, &description, Gives::Always(format!("report {n}: no entries")));
        }
        self
    }

    pub(crate) fn turn(mut self, ask: Ask) -> Self {
        self.turns.push(ask);
        self
    }

    pub(crate) fn job(mut self, ask: Ask) -> Self {
        self.jobs.push(ask);
        self
    }

    pub(crate) fn parallel(self) -> Self {
        Self { is_parallel: true, ..self }
    }

    pub(crate) fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.turns.iter().chain(&self.jobs)
    }

    /// The true values of all facts.
    pub(crate) fn truth(&self) -> Facts {
        let files = self.files.iter().map(|(_, content)| content.as_str());
        let tools = self.tools.iter().flat_map(|tool| tool.gives.texts());
        let said = self.turns.iter().map(|ask| ask.says.as_str());
        files.chain(tools).chain(said).fold(Facts::default(), |facts, text| facts.with(text))
    }

    /// The writes that the task needs, each once: tool and arguments.
    pub(crate) fn writes(&self) -> BTreeSet<(String, String)> {
        let truth = self.truth();
        let own: BTreeSet<&str> =
            self.tools.iter().filter(|tool| tool.class == EffectClass::Write).map(|tool| tool.name.as_str()).collect();
        let steps = self.asks().flat_map(|ask| &ask.steps);
        let writes =
            steps.filter(|step| own.contains(step.tool.as_str()) || ["write_file", "edit_file"].contains(&&*step.tool));
        writes.filter_map(|step| Some((step.tool.clone(), truth.fill(&step.arguments.to_string())?))).collect()
    }
}

impl Ask {
    pub(crate) fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), ..Self::default() }
    }

    /// A remark that needs no work.
    pub(crate) fn remark(says: impl Into<String>) -> Self {
        Self::new(says).answer("Noted.")
    }

    pub(crate) fn answer(self, text: &str) -> Self {
        Self { answer: text.to_owned(), ..self }
    }

    pub(crate) fn step(mut self, tool: &str, arguments: Value, result: StepResult) -> Self {
        self.steps.push(Step { tool: tool.to_owned(), arguments, result, tries: 1 });
        self
    }

    pub(crate) fn fact(self, tool: &str, arguments: Value, key: &str) -> Self {
        self.step(tool, arguments, StepResult::Fact(key.to_owned()))
    }

    pub(crate) fn done(self, tool: &str, arguments: Value, mark: &str) -> Self {
        // A second time if the first one failed.
        self.step(tool, arguments, StepResult::Done(mark.to_owned())).tried(2)
    }

    pub(crate) fn read(self, path: &str, key: &str) -> Self {
        self.fact("read_file", json!({ "path": path }), key)
    }

    pub(crate) fn write(self, path: &str, content: &str) -> Self {
        self.done("write_file", json!({ "path": path, "content": content }), path)
    }

    /// The newest step, tried so often.
    pub(crate) fn tried(mut self, tries: usize) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.tries = tries;
        }
        self
    }

    pub(crate) fn todo(mut self, job: usize, after: &[usize]) -> Self {
        self.todos.push((job, after.to_vec()));
        self
    }

    pub(crate) fn partial(self) -> Self {
        Self { is_partial: true, ..self }
    }

    pub(crate) fn planned(self) -> Self {
        Self { is_planned: true, ..self }
    }

    /// The words by which it is recognised: those before the first fact in braces.
    pub(crate) fn cue(&self) -> &str {
        self.says.split('{').next().unwrap_or_default().trim()
    }

    /// The facts that its answer has.
    pub(crate) fn keys(&self) -> Vec<&str> {
        placeholders(&self.answer)
    }
}

/// Facts that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts(pub(crate) BTreeMap<String, String>);

impl Facts {
    /// These facts and those in a text; the later one counts.
    pub(crate) fn with(mut self, text: &str) -> Self {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for (at, _) in text.match_indices('=') {
            let key_start = text[..at].rfind(|c| !is_part(c)).map_or(0, |end| end + 1);
            // The letter of an escaped line end belongs to no key.
            let key = &text[key_start..at];
            let key = if text[..key_start].ends_with('\\') { key.trim_start_matches(['n', 't']) } else { key };
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| !is_part(c) && c != '-').unwrap_or(rest.len());
            let starts_well = key.starts_with(|c: char| c.is_ascii_lowercase());
            if starts_well && end > 0 {
                self.0.insert(key.to_owned(), rest[..end].to_owned());
            }
        }
        self
    }

    /// A text with all its facts; none if one of them is not known.
    pub(crate) fn fill(&self, text: &str) -> Option<String> {
        let keys = placeholders(text);
        keys.iter().all(|key| self.0.contains_key(*key)).then(|| self.fill_known(text))
    }

    /// A text with the facts that are known.
    pub(crate) fn fill_known(&self, text: &str) -> String {
        let fill =
            |text: String, key: &&str| text.replace(&format!("{{{key}}}"), self.0.get(*key).map_or("unknown", String::as_str));
        placeholders(text).iter().fold(text.to_owned(), fill)
    }
}

/// The keys in braces.
fn placeholders(text: &str) -> Vec<&str> {
    let is_key = |key: &&str| !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let after_brace = text.split('{').skip(1);
    after_brace.filter_map(|part| part.split_once('}').map(|(key, _)| key)).filter(is_key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_in_text_and_in_json_and_filled_in() {
        let facts = Facts::default().with("port=80-a, x\nname=Ann.").with(r#"{"content":"port=81\nlast=Zed"}"#);
        let all: Vec<_> = facts.0.iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(all, ["last Zed", "name Ann", "port 81"]);
        assert_eq!(facts.fill(r#"{"a":"{name} {port}"}"#).unwrap(), r#"{"a":"Ann 81"}"#);
        assert_eq!((facts.fill("{none}"), facts.fill_known("{none} {last}")), (None, "unknown Zed".to_owned()));
    }
}
