//! Rules about calls, against the plain way of applying them: the first that fits decides, whatever the arguments look like. Lines are
//! rules (`then tool server arguments`); the last is a call (`tool arguments`).

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{AgentId, CallResult, EffectClass, Ruling, TaskId};
use polis_ports::{CallContext, Caller, ToolError, ToolOrigin, ToolSpec, Toolbox};
use polis_tools::{PolicyToolbox, Rule, RuleAction};
use serde_json::{Map, Value, json};

use super::{fits_plainly, text};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "policy",
    run,
    words: &[
        "allow ",
        "ask ",
        "deny ",
        "run_command",
        "git__push",
        "write_file",
        " - ",
        " * ",
        "{\"path\":\"",
        "*rm -rf*",
        "\\u0072",
        "git",
        "..",
        "{\"command\":\"ls\"}",
        "\n",
    ],
};

struct Tools;

const TOOLS: [(&str, EffectClass); 5] = [
    ("read_file", EffectClass::Read),
    ("write_file", EffectClass::Write),
    ("run_command", EffectClass::Write),
    ("git__status", EffectClass::Read),
    ("git__push", EffectClass::Write),
];

#[async_trait]
impl Toolbox for Tools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let spec = |(name, class): (&str, EffectClass)| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({}),
            class,
            volatile: false,
        };
        TOOLS.map(spec).into()
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        let tool = tool.strip_prefix("git__")?.to_owned();
        Some(ToolOrigin { server: "git".to_owned(), tool })
    }

    async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        Err(ToolError::Unknown(tool.to_owned()))
    }
}

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (rules, call) = text.rsplit_once('\n').unwrap_or(("", text));
    let rules: Vec<Rule> = rules.lines().filter_map(rule).collect();
    let (tool, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
    let (agent, task) = (AgentId::from("a"), TaskId::from("t"));
    let who = Caller { agent: &agent, role: None, task: &task, chosen: polis_ports::Chosen::default() };
    let ruled = PolicyToolbox::new(Arc::new(Tools), rules.clone());
    let said = word(&ruled.ruling(tool, arguments, &who));
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return;
    };
    // The same call in other words is judged the same.
    let spelled = serde_json::to_string_pretty(&fields).expect("JSON");
    assert_eq!(word(&ruled.ruling(tool, &spelled, &who)), said, "{spelled}");
    if said == "allow" {
        assert!(may(&rules, tool, fields), "{text:?}");
    }
}

fn rule(line: &str) -> Option<Rule> {
    let mut words = line.splitn(4, ' ');
    let then = match words.next()? {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        "deny" => RuleAction::Deny,
        _ => return None,
    };
    let mut next = || words.next().filter(|word| !word.is_empty() && *word != "-").map(str::to_owned);
    let (tool, server, arguments) = (next(), next(), next());
    Some(Rule { tool, server, arguments, then, ..Rule::default() })
}

/// Whether a call may be made unasked, by the plain reading: no rule that asks or denies fits before one that allows.
fn may(rules: &[Rule], tool: &str, fields: Map<String, Value>) -> bool {
    let origin = Tools.origin(tool);
    let mut value = Value::Object(fields);
    value.sort_all_objects();
    let plain = value.to_string();
    for rule in rules {
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| fits_plainly(pattern, text));
        let server = origin.as_ref().map_or("", |origin| &origin.server);
        // By its listed name, which the operator chose the beginning of.
        let fits = is(&rule.tool, tool) && is(&rule.server, server) && is(&rule.arguments, &plain);
        match rule.then {
            RuleAction::Deny | RuleAction::Ask if fits => return false,
            RuleAction::Allow if fits || rule.server.is_some() || rule.arguments.is_some() => return true,
            _ => {}
        }
    }
    let usual = TOOLS.iter().find(|(name, _)| *name == tool);
    usual.is_some_and(|(name, class)| *class != EffectClass::Write || *name == "write_file")
}

fn word(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Allow | Ruling::Approved => "allow",
        Ruling::Ask(_) | Ruling::AskEach(_) => "ask",
        Ruling::Deny(_) => "deny",
        _ => "something else",
    }
}
