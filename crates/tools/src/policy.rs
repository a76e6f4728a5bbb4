//! Which calls may be made, which need a person's word, and which are denied. Rules first, in order; then what is usual.
//!
//! Usual is: what only reads or may be repeated is allowed, and so is writing inside the workspace; everything else that writes,
//! runs programs or reaches the network is asked about.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Ruling, fits as matches};
use polis_ports::{CallContext, Caller, ToolOrigin, ToolError, ToolServer, ToolSpec, Toolbox};

/// The tools that change only the workspace.
const WITHIN: &[&str] = &["write_file", "edit_file"];

/// The tools that reach the network although they change nothing.
const BEYOND: &[&str] = &["fetch_url"];

/// What parts the name of a server from the name of its tool.
const PARTS: &str = "__";

/// What rules call the words of a model that a server asks for.
const SAMPLING: &str = "sampling";

/// One rule. What it does not name fits anything; `*` in a pattern stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// The tool.
    pub tool: Option<String>,
    /// The server that the tool comes from.
    pub server: Option<String>,
    /// The agent that calls.
    pub agent: Option<String>,
    /// Its role.
    pub role: Option<String>,
    /// The arguments, as JSON text.
    pub arguments: Option<String>,
    /// What holds then.
    pub then: Then,
    /// Why, for whoever reads it.
    pub why: String,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Then {
    /// The call is made.
    Allow,
    /// A person is asked.
    #[default]
    Ask,
    /// The call is not made.
    Deny,
}

/// A toolbox whose calls are judged first.
pub struct Ruled {
    toolbox: Arc<dyn Toolbox>,
    rules: Vec<Rule>,
    /// What turns do themselves; no toolbox lists it.
    own: Vec<Arc<str>>,
}

impl Ruled {
    /// The same tools under these rules.
    pub fn new(toolbox: Arc<dyn Toolbox>, rules: Vec<Rule>) -> Self {
        Self { toolbox, rules, own: Vec::new() }
    }

    /// The same, with these names known as tools that turns do themselves.
    #[must_use]
    pub fn with_own(self, own: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { own: own.into_iter().collect(), ..self }
    }

    fn usual(&self, tool: &str) -> Ruling {
        let specs = self.toolbox.tools();
        let Some(spec) = specs.iter().find(|spec| &*spec.name == tool) else {
            let is_own = self.own.iter().any(|own| &**own == tool);
            // It may come back before it is called, and do anything.
            return if is_own { Ruling::Allow } else { Ruling::Ask("It is not known what it does.".to_owned()) };
        };
        match spec.class {
            _ if BEYOND.contains(&tool) => Ruling::Ask("It reaches the network.".to_owned()),
            EffectClass::Read | EffectClass::Idempotent => Ruling::Allow,
            EffectClass::Write if WITHIN.contains(&tool) => Ruling::Allow,
            EffectClass::Write => Ruling::Ask("It may change things outside the workspace.".to_owned()),
        }
    }
}

#[async_trait]
impl Toolbox for Ruled {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.toolbox.tools()
    }

    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        self.toolbox.listed(tool)
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        self.toolbox.origin(tool)
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        let origin = self.toolbox.origin(tool);
        let (server, own) = origin.as_ref().map_or(("", tool), |origin| (&origin.server, &origin.tool));
        let wish = Wish { tool, server, own, arguments };
        let ruled = self.rules.iter().find(|rule| rule.fits(&wish, who)).map(Rule::ruling);
        // A question to the person needs nobody's word; it can only be denied.
        match (self.toolbox.ruling(tool, arguments, who), ruled) {
            (_, Some(denied @ Ruling::Deny(_))) => denied,
            (question @ Ruling::Person(_), _) => question,
            (_, ruled) => ruled.unwrap_or_else(|| self.usual(tool)),
        }
    }

    fn lending(&self, server: &str, who: &Caller<'_>) -> Ruling {
        let name = format!("{server}{PARTS}{SAMPLING}");
        // A rule that lets a server's tools be used does not lend it a model unless it says so.
        let means_it = |rule: &&Rule| rule.tool.is_some() || rule.then == Then::Deny;
        let wish = Wish { tool: &name, server, own: SAMPLING, arguments: "" };
        let ruled = self.rules.iter().filter(means_it).find(|rule| rule.fits(&wish, who)).map(Rule::ruling);
        ruled.unwrap_or_else(|| self.toolbox.lending(server, who))
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.toolbox.call(tool, arguments, context).await
    }

    fn servers(&self) -> Vec<ToolServer> {
        self.toolbox.servers()
    }
}

/// A call as rules see it.
struct Wish<'a> {
    /// The tool, as it is listed.
    tool: &'a str,
    /// The server that it comes from, by the name that the operator gave it; nothing for our own.
    server: &'a str,
    /// Its name there.
    own: &'a str,
    arguments: &'a str,
}

impl Rule {
    fn ruling(&self) -> Ruling {
        match self.then {
            Then::Allow => Ruling::Allow,
            Then::Ask => Ruling::Ask(self.why.clone()),
            Then::Deny if self.why.is_empty() => Ruling::Deny("a rule of polis.toml says so".to_owned()),
            Then::Deny => Ruling::Deny(self.why.clone()),
        }
    }

    fn fits(&self, wish: &Wish<'_>, who: &Caller<'_>) -> bool {
        let Wish { tool, server, own, arguments } = *wish;
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| matches(pattern, text));
        let named = self.tool.as_ref().is_none_or(|pattern| matches(pattern, tool) || matches(pattern, own));
        named
            && is(&self.server, server)
            && is(&self.agent, who.agent.as_str())
            && is(&self.role, who.role.map_or("", |role| role.as_str()))
            && self.arguments.as_ref().is_none_or(|pattern| matches(pattern, &canonical(arguments)))
    }
}

/// The same arguments written in another way are the same text. What is no JSON stays as it is.
fn canonical(arguments: &str) -> String {
    serde_json::from_str::<serde_json::Value>(arguments).map_or_else(|_| arguments.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use polis_domain::{AgentId, Question, RoleId, TaskId};
    use serde_json::json;

    use super::*;

    struct Tools;

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
            let write = EffectClass::Write;
            let named = [
                ("read_file", EffectClass::Read),
                ("fetch_url", EffectClass::Read),
                ("git__status", EffectClass::Read),
                ("git__push", write),
                ("a_b__read_file_7fc2edc0", EffectClass::Read),
                ("c__d__push_7fc2edc0", EffectClass::Read),
                ("write_file", write),
                ("run_command", write),
            ];
            named.map(spec).into()
        }

        fn origin(&self, tool: &str) -> Option<ToolOrigin> {
            let of = |server: &str, tool: &str| Some(ToolOrigin { server: server.to_owned(), tool: tool.to_owned() });
            match tool {
                "a_b__read_file_7fc2edc0" => of("a b", "read/file"),
                "c__d__push_7fc2edc0" => of("c__d", "push"),
                _ => tool.strip_prefix("git__").and_then(|own| of("git", own)),
            }
        }

        fn ruling(&self, tool: &str, _: &str, _: &Caller<'_>) -> Ruling {
            if tool == "ask_person" { Ruling::Person(Question::words("which?", Vec::new())) } else { Ruling::Allow }
        }

        fn lending(&self, server: &str, _: &Caller<'_>) -> Ruling {
            if server == "trusted" { Ruling::Allow } else { Ruling::Ask(String::new()) }
        }

        async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
            Err(ToolError::Unknown(tool.to_owned()))
        }
    }

    fn ruling(rules: &[Rule], tool: &str, arguments: &str) -> &'static str {
        said(rules, |ruled, who| ruled.ruling(tool, arguments, who))
    }

    fn lending(rules: &[Rule], server: &str) -> &'static str {
        said(rules, |ruled, who| ruled.lending(server, who))
    }

    fn said(rules: &[Rule], ask: impl Fn(&Ruled, &Caller<'_>) -> Ruling) -> &'static str {
        let (agent, role, task) = (AgentId::from("scribe1"), RoleId::from("scribe"), TaskId::from("t"));
        let who = Caller { agent: &agent, role: Some(&role), task: &task };
        match ask(&Ruled::new(Arc::new(Tools), rules.to_vec()).with_own(["plan".into()]), &who) {
            Ruling::Allow | Ruling::Approved => "allow",
            Ruling::Ask(_) => "ask",
            Ruling::AskEach(_) => "ask each",
            Ruling::Refuse(_) => "refuse",
            Ruling::Deny(_) | Ruling::Stop(_) => "deny",
            Ruling::Person(_) => "person",
        }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn what_reads_or_stays_in_the_workspace_is_allowed_and_the_rest_is_asked_about() {
        let usual = |tool| ruling(&[], tool, "{}");
        assert_eq!(["read_file", "git__status", "write_file", "plan"].map(usual), ["allow"; 4]);
        assert_eq!(["fetch_url", "git__push", "run_command", "nothing", "push"].map(usual), ["ask"; 5]);
    }

    #[test]
    fn a_server_is_known_by_the_name_that_the_operator_gave_it() {
        for (server, tool) in [("a b", "a_b__read_file_7fc2edc0"), ("c__d", "c__d__push_7fc2edc0"), ("git", "git__push")] {
            let rule = Rule { server: some(server), then: Then::Deny, ..Rule::default() };
            assert_eq!(ruling(&[rule], tool, "{}"), "deny", "{server}");
        }
        let wrong = |server| ruling(&[Rule { server: some(server), then: Then::Deny, ..Rule::default() }], "c__d__push_7fc2edc0", "{}");
        assert_eq!(["c", "a_b", "git"].map(wrong), ["allow"; 3]);
        let own = Rule { tool: some("read/file"), then: Then::Deny, ..Rule::default() };
        assert_eq!(ruling(&[own], "a_b__read_file_7fc2edc0", "{}"), "deny");
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rule = |tool: &str, then| Rule { tool: some(tool), then, ..Rule::default() };
        let rules = [
            Rule { arguments: some("*rm -rf*"), ..rule("run_command", Then::Deny) },
            Rule { agent: some("scribe*"), role: some("scribe"), ..rule("run_command", Then::Allow) },
            Rule { server: some("git"), then: Then::Allow, ..Rule::default() },
            rule("*", Then::Deny),
        ];
        assert_eq!(ruling(&rules, "run_command", r#"{ "command" : "rm -rf x" }"#), "deny");
        assert_eq!(ruling(&rules, "run_command", "{}"), "allow");
        assert_eq!(ruling(&rules, "git__push", "{}"), "allow");
        assert_eq!(ruling(&rules, "read_file", "{}"), "deny");
        let others = [Rule { role: some("editor"), ..rule("read_file", Then::Deny) }, rule("push", Then::Deny)];
        assert_eq!([ruling(&others, "read_file", "{}"), ruling(&others, "git__push", "{}")], ["allow", "deny"]);
    }

    #[test]
    fn a_question_to_the_person_needs_no_word_and_can_only_be_denied() {
        let with = |then| ruling(&[Rule { tool: some("ask_*"), then, ..Rule::default() }], "ask_person", "{}");
        assert_eq!(ruling(&[], "ask_person", "{}"), "person");
        assert_eq!([Then::Allow, Then::Ask, Then::Deny].map(with), ["person", "person", "deny"]);
    }

    #[test]
    fn a_model_is_lent_to_servers_that_are_trusted_or_that_a_rule_names_for_it() {
        let rule = |then| Rule { server: some("git"), then, ..Rule::default() };
        let named = |then| Rule { tool: some("sampling"), ..rule(then) };
        assert_eq!(["trusted", "git"].map(|server| lending(&[], server)), ["allow", "ask"]);
        let with = |rule: Rule| lending(&[rule], "git");
        assert_eq!([Then::Allow, Then::Ask, Then::Deny].map(|then| with(named(then))), ["allow", "ask", "deny"]);
        // Rules about all its tools: they do not lend a model, but they can keep it back.
        assert_eq!([Then::Allow, Then::Deny].map(|then| with(rule(then))), ["ask", "deny"]);
        assert_eq!(lending(&[named(Then::Deny)], "trusted"), "allow");
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in
            [("", ""), ("*", ""), ("*", "ab"), ("a*", "ab"), ("*b", "ab"), ("a*c*", "abcd"), ("a", "a"), ("*a*a*", "aa")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*", "ba"), ("*b", "ba"), ("a*a", "a"), ("*a*a*", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
