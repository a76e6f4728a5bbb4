//! Which calls may be made, which need a person's word, and which are denied. Rules first, in order; then what is usual.
//!
//! Usual is: what only reads or may be repeated is allowed, and so is writing inside the workspace; everything else that writes,
//! runs programs or reaches the network is asked about.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Failure, Flow, Ruling, fits as matches};
use polis_ports::{
    CallContext, Caller, ServerState, ServerWait, TextChange, ToolError, ToolIdentity, ToolOrigin, ToolServer, ToolSpec,
    Toolbox,
};
use serde_json::{Map, Value};

use crate::results::arguments as read;

/// The tools that change only the workspace.
const WITHIN: &[&str] = &["write_file", "edit_file"];

/// The tool that reads files.
const READ: &str = "read_file";

/// The tools that reach the network although they change nothing.
const BEYOND: &[&str] = &["fetch_url", "web_search"];

/// The tools whose `path` is a file or a folder of the workspace.
const FILES: &[&str] = &["read_file", "write_file", "edit_file", "list_files", "search_files", "put_artifact"];

/// Names that rules may have where nothing of that name is offered.
const OPTIONAL: &[&str] = &[
    COMMAND,
    "fetch_url",
    "web_search",
    "start_workflow",
    SAMPLING,
    "vendor:web_search",
    "vendor:web_fetch",
    "vendor:code_execution",
    "vendor:file_search",
];

/// The tool that runs commands.
const COMMAND: &str = "run_command";

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
    pub then: RuleAction,
    /// The reason, for people.
    pub why: String,
    /// Whether an allowance holds also after outside content was read.
    pub tainted: bool,
}

/// What happens to a call that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleAction {
    /// The call is made.
    Allow,
    /// A person is asked.
    #[default]
    Ask,
    /// The call is not made.
    Deny,
}

/// A toolbox whose calls must pass a policy.
pub struct PolicyToolbox {
    toolbox: Arc<dyn Toolbox>,
    rules: Vec<Rule>,
    /// What turns do themselves; no toolbox lists it.
    own: Vec<Arc<str>>,
}

impl PolicyToolbox {
    /// The same tools under these rules.
    pub fn new(toolbox: Arc<dyn Toolbox>, rules: Vec<Rule>) -> Self {
        Self { toolbox, rules, own: Vec::new() }
    }

    /// The same, with these names known as tools that turns do themselves.
    #[must_use]
    pub fn with_own(self, own: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { own: own.into_iter().collect(), ..self }
    }

    /// What is wrong with rules that can fit nothing. Tools of a server are known only while it is there.
    pub fn idle(&self) -> Vec<String> {
        let servers = self.toolbox.servers();
        let all_there = servers.iter().all(|server| matches!(server.state, ServerState::Connected | ServerState::Off));
        let mut names: Vec<String> = self.own.iter().map(ToString::to_string).collect();
        for spec in self.toolbox.tools().iter() {
            names.extend(self.toolbox.origin(&spec.name).map(|origin| origin.tool));
            names.push(spec.name.to_string());
        }
        names.extend(OPTIONAL.iter().map(|&name| name.to_owned()));
        names.extend(servers.iter().map(|server| format!("{}{PARTS}{SAMPLING}", server.name)));
        let lacks = |rule: &Rule| match (&rule.server, &rule.tool) {
            (Some(server), _) if !servers.iter().any(|it| matches(server, &it.name)) => {
                Some(format!("a rule of polis.toml names the server `{server}`, which is not set up"))
            }
            (_, Some(tool)) if all_there && !names.iter().any(|name| matches(tool, name)) => {
                Some(format!("a rule of polis.toml names the tool `{tool}`, which does not exist"))
            }
            _ => None,
        };
        self.rules.iter().filter_map(lacks).collect()
    }

    /// The first rule that fits a call.
    fn rule_for(&self, tool: &str, fields: Map<String, Value>, who: &Caller<'_>) -> Option<&Rule> {
        let origin = self.toolbox.origin(tool);
        let text = judged(fields, FILES.contains(&tool));
        let (server, own) = origin.as_ref().map_or(("", tool), |origin| (&origin.server, &origin.tool));
        let subject = Subject { tool, server, own, is_theirs: origin.is_some(), arguments: &text };
        self.rules.iter().find(|rule| rule.fits(&subject, who))
    }

    /// Why an agent cannot read a file without a decision; none if no rule says so.
    fn why_unread(&self, path: &str, who: &Caller<'_>) -> Option<String> {
        let fields = Map::from_iter([("path".to_owned(), Value::from(path))]);
        match self.rule_for(READ, fields, who)?.then {
            RuleAction::Allow => None,
            RuleAction::Ask => Some("a rule of polis.toml asks before this file is read".to_owned()),
            RuleAction::Deny => Some("a rule of polis.toml denies reading this file".to_owned()),
        }
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
impl Toolbox for PolicyToolbox {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.toolbox.tools()
    }

    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        self.toolbox.listed(tool)
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        self.toolbox.origin(tool)
    }

    fn is_deferred(&self, tool: &str) -> bool {
        self.toolbox.is_deferred(tool)
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        let fields: Map<String, Value> = match read(arguments) {
            Ok(fields) => fields,
            Err(error) => return Ruling::Refuse(Failure::new("bad_arguments", error.to_string())),
        };
        let has_network = tool == COMMAND && fields.get("network") == Some(&Value::Bool(true));
        let ruled = self.rule_for(tool, fields, who).map(Rule::ruling);
        // A question to the person needs nobody's word; it can only be denied.
        let ruling = match (self.toolbox.ruling(tool, arguments, who), ruled) {
            (_, Some(denied @ Ruling::Deny(_))) => denied,
            (certain @ (Ruling::Person(_) | Ruling::AskEach(_)), _) => certain,
            (_, Some(ruled)) => ruled,
            (asked @ Ruling::Ask(_), None) => asked,
            (_, None) => self.usual(tool),
        };
        match ruling {
            // A word for commands without the network does not give it to them.
            Ruling::Ask(why) | Ruling::AskEach(why) if has_network => {
                Ruling::AskEach(format!("It reaches the network. {why}").trim_end().to_owned())
            }
            ruling => ruling,
        }
    }

    fn flow(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Flow {
        let flow = self.toolbox.flow(tool, arguments, who);
        let is_exempt = |rule: &Rule| rule.then == RuleAction::Allow && rule.tainted;
        let exempt = read(arguments).is_ok_and(|fields| self.rule_for(tool, fields, who).is_some_and(is_exempt));
        Flow { exempt, ..flow }
    }

    fn identity(&self, tool: &str) -> Option<ToolIdentity> {
        self.toolbox.identity(tool)
    }

    fn sampling_ruling(&self, server: &str, who: &Caller<'_>) -> Ruling {
        let name = format!("{server}{PARTS}{SAMPLING}");
        // A rule that lets a server's tools be used does not lend it a model unless it says so.
        let means_it = |rule: &&Rule| rule.tool.is_some() || rule.then == RuleAction::Deny;
        let subject = Subject { tool: &name, server, own: SAMPLING, is_theirs: false, arguments: "" };
        let ruled = self.rules.iter().filter(means_it).find(|rule| rule.fits(&subject, who)).map(Rule::ruling);
        ruled.unwrap_or_else(|| self.toolbox.sampling_ruling(server, who))
    }

    async fn change(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Option<Result<TextChange, String>> {
        // Before it is compared: why it cannot be compared says something about the file too.
        let fields: Option<Map<String, Value>> = read(arguments).ok();
        let path = fields.as_ref().and_then(|fields| fields.get("path")).and_then(Value::as_str);
        if let Some(why) = path.filter(|_| WITHIN.contains(&tool)).and_then(|path| self.why_unread(path, who)) {
            return Some(Err(why));
        }
        let change = self.toolbox.change(tool, arguments, who).await?;
        Some(change.and_then(|change| self.why_unread(&change.path, who).map_or(Ok(change), Err)))
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.toolbox.call(tool, arguments, context).await
    }

    async fn wait_for_server(&self, server: &str, purpose: ServerWait) {
        self.toolbox.wait_for_server(server, purpose).await;
    }

    fn servers(&self) -> Vec<ToolServer> {
        self.toolbox.servers()
    }
}

/// A call as rules see it.
struct Subject<'a> {
    /// The tool, as it is listed.
    tool: &'a str,
    /// The server that it comes from, by the name that the operator gave it; nothing for our own.
    server: &'a str,
    /// Its name there.
    own: &'a str,
    /// Whether that name was chosen by the server.
    is_theirs: bool,
    arguments: &'a str,
}

impl Rule {
    fn ruling(&self) -> Ruling {
        match self.then {
            RuleAction::Allow => Ruling::Allow,
            RuleAction::Ask => Ruling::Ask(self.why.clone()),
            RuleAction::Deny => Ruling::Deny(self.denial()),
        }
    }

    /// Why a call is denied, for the model. A rule about some arguments does not forbid the tool.
    fn denial(&self) -> String {
        let why = if self.why.is_empty() { "polis.toml says so" } else { &self.why };
        if self.arguments.is_none() {
            return why.to_owned();
        }
        let end = if why.ends_with(['.', '!', '?', '。', '！', '？']) { "" } else { "." };
        format!("{why}{end} Other calls of it may be allowed.")
    }

    fn fits(&self, subject: &Subject<'_>, who: &Caller<'_>) -> bool {
        let Subject { tool, server, own, is_theirs, arguments } = *subject;
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| matches(pattern, text));
        // A server could give its tool any name that is let through; a rule that lets it through must say whose it is.
        let by_own = !is_theirs || self.then != RuleAction::Allow || self.server.is_some();
        let named = self.tool.as_ref().is_none_or(|pattern| matches(pattern, tool) || (by_own && matches(pattern, own)));
        // A model could give a role or an agent any name that is let through.
        let is_chosen = (self.agent.is_some() && who.chosen.agent) || (self.role.is_some() && who.chosen.role);
        named
            && !(is_chosen && self.then == RuleAction::Allow)
            && is(&self.server, server)
            && is(&self.agent, who.agent.as_str())
            && is(&self.role, who.role.map_or("", |role| role.as_str()))
            && self.arguments.as_ref().is_none_or(|pattern| matches(pattern, arguments) || matches(&tight(pattern), arguments))
    }
}

/// The arguments as rules see them: without white space between them, names in order, paths of files as plain as can be.
fn judged(mut fields: Map<String, Value>, of_file: bool) -> String {
    if let (true, Some(Value::String(path))) = (of_file, fields.get_mut("path")) {
        let root = if path.starts_with('/') { "/" } else { "" };
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        *path = format!("{root}{}", parts.join("/"));
    }
    let mut value = Value::Object(fields);
    value.sort_all_objects();
    value.to_string()
}

/// A pattern without the white space that people write between the names and values of JSON.
fn tight(pattern: &str) -> String {
    let mut kept = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find(char::is_whitespace) {
        let (before, after) = rest.split_at(at);
        let space = &after[..after.len() - after.trim_start().len()];
        rest = after.trim_start();
        kept.push_str(before);
        let follows = kept.ends_with("\":") || kept.ends_with(['{', '[']) || (kept.ends_with(',') && rest.starts_with('"'));
        let leads = kept.ends_with('"') && rest.starts_with([':', ',', '}', ']']);
        if !follows && !leads {
            kept.push_str(space);
        }
    }
    kept + rest
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
                ("web_search", EffectClass::Read),
                ("git__status", EffectClass::Read),
                ("git__push", write),
                ("far__read_resource", EffectClass::Read),
                ("weak", write),
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
            match tool {
                "ask_person" => Ruling::Person(Question::words("which?", Vec::new())),
                "far__read_resource" => Ruling::Ask("It reaches the network.".to_owned()),
                "weak" => Ruling::AskEach("Nothing holds it.".to_owned()),
                _ => Ruling::Allow,
            }
        }

        fn sampling_ruling(&self, server: &str, _: &Caller<'_>) -> Ruling {
            if server == "trusted" { Ruling::Allow } else { Ruling::Ask(String::new()) }
        }

        async fn change(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Option<Result<TextChange, String>> {
            let fields: Map<String, Value> = read(arguments).ok()?;
            let path = fields.get("path")?.as_str()?.to_owned();
            let change = TextChange { path, before: Some("the key".to_owned()), after: String::new() };
            Some(if tool == "edit_file" { Err("the key is in line 7".to_owned()) } else { Ok(change) })
        }

        async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
            Err(ToolError::Unknown(tool.to_owned()))
        }
    }

    fn ruling(rules: &[Rule], tool: &str, arguments: &str) -> &'static str {
        verdict(rules, |ruled, who| ruled.ruling(tool, arguments, who))
    }

    fn sampling_ruling(rules: &[Rule], server: &str) -> &'static str {
        verdict(rules, |ruled, who| ruled.sampling_ruling(server, who))
    }

    fn verdict(rules: &[Rule], ask: impl Fn(&PolicyToolbox, &Caller<'_>) -> Ruling) -> &'static str {
        said_to(polis_ports::Chosen::default(), rules, ask)
    }

    fn said_to(
        chosen: polis_ports::Chosen,
        rules: &[Rule],
        ask: impl Fn(&PolicyToolbox, &Caller<'_>) -> Ruling,
    ) -> &'static str {
        let (agent, role, task) = (AgentId::from("scribe1"), RoleId::from("scribe"), TaskId::from("t"));
        let who = Caller { agent: &agent, role: Some(&role), task: &task, chosen };
        match ask(&PolicyToolbox::new(Arc::new(Tools), rules.to_vec()).with_own(["plan".into()]), &who) {
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
        assert_eq!(["fetch_url", "web_search", "git__push", "run_command", "nothing", "push"].map(usual), ["ask"; 6]);
    }

    #[test]
    fn a_server_is_known_by_the_name_that_the_operator_gave_it() {
        for (server, tool) in [("a b", "a_b__read_file_7fc2edc0"), ("c__d", "c__d__push_7fc2edc0"), ("git", "git__push")] {
            let rule = Rule { server: some(server), then: RuleAction::Deny, ..Rule::default() };
            assert_eq!(ruling(&[rule], tool, "{}"), "deny", "{server}");
        }
        let wrong = |server| {
            ruling(&[Rule { server: some(server), then: RuleAction::Deny, ..Rule::default() }], "c__d__push_7fc2edc0", "{}")
        };
        assert_eq!(["c", "a_b", "git"].map(wrong), ["allow"; 3]);
        let own = Rule { tool: some("read/file"), then: RuleAction::Deny, ..Rule::default() };
        assert_eq!(ruling(&[own], "a_b__read_file_7fc2edc0", "{}"), "deny");
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rule = |tool: &str, then| Rule { tool: some(tool), then, ..Rule::default() };
        let rules = [
            Rule { arguments: some("*rm -rf*"), ..rule("run_command", RuleAction::Deny) },
            Rule { agent: some("scribe*"), role: some("scribe"), ..rule("run_command", RuleAction::Allow) },
            Rule { server: some("git"), then: RuleAction::Allow, ..Rule::default() },
            rule("*", RuleAction::Deny),
        ];
        assert_eq!(ruling(&rules, "run_command", r#"{ "command" : "rm -rf x" }"#), "deny");
        assert_eq!(ruling(&rules, "run_command", "{}"), "allow");
        assert_eq!(ruling(&rules, "git__push", "{}"), "allow");
        assert_eq!(ruling(&rules, "read_file", "{}"), "deny");
        let others = [Rule { role: some("editor"), ..rule("read_file", RuleAction::Deny) }, rule("push", RuleAction::Deny)];
        assert_eq!([ruling(&others, "read_file", "{}"), ruling(&others, "git__push", "{}")], ["allow", "deny"]);
    }

    #[test]
    fn a_name_that_a_model_chose_lets_nobody_through_and_holds_back_as_any_other() {
        let by_role = |then| Rule { tool: some("run_command"), role: some("scribe"), then, ..Rule::default() };
        let by_agent = |then| Rule { tool: some("run_command"), agent: some("scribe*"), then, ..Rule::default() };
        let (agent, role) = (true, true);
        for (rule, chosen, want) in [
            (by_role(RuleAction::Allow), polis_ports::Chosen { agent, role: false }, "allow"),
            (by_role(RuleAction::Allow), polis_ports::Chosen { agent: false, role }, "ask"),
            (by_agent(RuleAction::Allow), polis_ports::Chosen { agent: false, role }, "allow"),
            (by_agent(RuleAction::Allow), polis_ports::Chosen { agent, role: false }, "ask"),
            (by_role(RuleAction::Deny), polis_ports::Chosen { agent, role }, "deny"),
            (by_agent(RuleAction::Deny), polis_ports::Chosen { agent, role }, "deny"),
        ] {
            let ruled = said_to(chosen, std::slice::from_ref(&rule), |ruled, who| ruled.ruling("run_command", "{}", who));
            assert_eq!(ruled, want, "{rule:?} {chosen:?}");
        }
    }

    #[test]
    fn a_rule_about_some_arguments_does_not_forbid_the_tool_in_words() {
        let verdict = |arguments: Option<String>, why: &str| {
            let rule = Rule { arguments, why: why.to_owned(), then: RuleAction::Deny, ..Rule::default() };
            match rule.ruling() {
                Ruling::Deny(why) => why,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(verdict(None, "not today"), "not today");
        assert_eq!(verdict(None, ""), "polis.toml says so");
        assert_eq!(verdict(some("*rm*"), "not today"), "not today. Other calls of it may be allowed.");
        assert_eq!(verdict(some("*rm*"), "Not today!"), "Not today! Other calls of it may be allowed.");
    }

    #[test]
    fn a_server_is_let_through_by_no_rule_that_was_written_for_a_tool_of_the_same_name() {
        let rule = |tool: &str, then| Rule { tool: some(tool), then, ..Rule::default() };
        for (rule, ruled) in [
            (rule("push", RuleAction::Allow), "ask"),
            (rule("push", RuleAction::Deny), "deny"),
            (rule("git__push", RuleAction::Allow), "allow"),
            (rule("*push", RuleAction::Allow), "allow"),
            (Rule { server: some("git"), ..rule("push", RuleAction::Allow) }, "allow"),
        ] {
            assert_eq!(ruling(std::slice::from_ref(&rule), "git__push", "{}"), ruled, "{rule:?}");
        }
        assert_eq!(sampling_ruling(&[rule("sampling", RuleAction::Allow)], "git"), "allow");
    }

    #[test]
    fn arguments_are_judged_by_what_they_say_and_not_by_how_they_are_written() {
        let denied = |pattern: &str, tool, text| {
            ruling(&[Rule { arguments: some(pattern), then: RuleAction::Deny, ..Rule::default() }], tool, text)
        };
        for text in
            [r#"{"path":"secret"}"#, r#"{ "path" : "./secret" }"#, r#"{"path":".//./secret"}"#, r#"{"path":"\u0073ecret"}"#]
        {
            for pattern in [r#"*"path":"secret"*"#, r#"*"path": "secret"*"#, r#"{ "path": "secret" }"#] {
                assert_eq!(denied(pattern, "read_file", text), "deny", "{pattern} {text}");
            }
        }
        assert_eq!(denied(r#"*"path":"secret"*"#, "read_file", r#"{"path":"a/secret"}"#), "allow");
        let both = r#"{"content": "a, b", "path": "x"}"#;
        assert_eq!(denied(both, "write_file", r#"{"path":"x","content":"a, b"}"#), "deny");
        assert_eq!(denied(both, "write_file", r#"{"path":"x","content":"a,b"}"#), "allow");
        assert_eq!(denied("*rm -rf*", "run_command", r#"{"command":"rm -rf x"}"#), "deny");
        for text in [r#"["secret","v"]"#, "\"secret\"", "7", "{", "null"] {
            assert_eq!(ruling(&[], "write_file", text), "refuse", "{text}");
        }
        assert_eq!(ruling(&[], "write_file", ""), "allow");
    }

    #[tokio::test]
    async fn a_comparison_shows_nothing_of_a_file_that_the_agent_cannot_read_without_a_decision() {
        let on = |path: &str, then| Rule {
            tool: some("read_file"),
            arguments: Some(format!(r#"*"path":"{path}"*"#)),
            then,
            ..Rule::default()
        };
        let rules = vec![
            on("open", RuleAction::Allow),
            on("secret", RuleAction::Deny),
            on("asked", RuleAction::Ask),
            Rule { role: some("editor"), ..on("theirs", RuleAction::Deny) },
            Rule { tool: some("write_file"), ..Rule::default() },
            Rule { role: some("scribe"), ..on("ours", RuleAction::Deny) },
        ];
        let ruled = PolicyToolbox::new(Arc::new(Tools), rules);
        let (agent, role, task) = (AgentId::from("scribe1"), RoleId::from("scribe"), TaskId::from("t"));
        let who = Caller { agent: &agent, role: Some(&role), task: &task, chosen: polis_ports::Chosen::default() };
        for (tool, path, hidden) in [
            ("write_file", "open", None),
            ("write_file", "theirs", None),
            ("write_file", "other", None),
            ("write_file", "secret", Some("denies")),
            ("write_file", ".//secret", Some("denies")),
            ("write_file", "asked", Some("asks")),
            ("write_file", "ours", Some("denies")),
            ("edit_file", "secret", Some("denies")),
            ("edit_file", "asked", Some("asks")),
            ("git__push", "secret", Some("denies")),
        ] {
            let change = ruled.change(tool, &json!({ "path": path }).to_string(), &who).await.unwrap();
            match (&change, hidden) {
                (Ok(shown), None) => assert_eq!(shown.before.as_deref(), Some("the key"), "{tool} {path}"),
                (Err(why), Some(want)) => assert!(why.contains(want) && !why.contains("key"), "{tool} {path}: {why}"),
                (got, want) => panic!("{tool} {path}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn some_calls_are_asked_about_each_time() {
        let rule = |then| [Rule { then, ..Rule::default() }];
        let weak = |then| ruling(&rule(then), "weak", "{}");
        assert_eq!(ruling(&[], "weak", "{}"), "ask each");
        assert_eq!([RuleAction::Allow, RuleAction::Ask, RuleAction::Deny].map(weak), ["ask each", "ask each", "deny"]);
        let command = |rules: &[Rule], network: bool| ruling(rules, "run_command", &json!({ "network": network }).to_string());
        assert_eq!([command(&[], false), command(&[], true)], ["ask", "ask each"]);
        assert_eq!([command(&rule(RuleAction::Ask), true), command(&rule(RuleAction::Allow), true)], ["ask each", "allow"]);
    }

    #[test]
    fn a_tool_that_asks_for_a_word_itself_is_asked_about_unless_a_rule_says_otherwise() {
        assert_eq!(ruling(&[], "far__read_resource", "{}"), "ask");
        assert_eq!(ruling(&[Rule { then: RuleAction::Allow, ..Rule::default() }], "far__read_resource", "{}"), "allow");
    }

    #[test]
    fn a_question_to_the_person_needs_no_word_and_can_only_be_denied() {
        let with = |then| ruling(&[Rule { tool: some("ask_*"), then, ..Rule::default() }], "ask_person", "{}");
        assert_eq!(ruling(&[], "ask_person", "{}"), "person");
        assert_eq!([RuleAction::Allow, RuleAction::Ask, RuleAction::Deny].map(with), ["person", "person", "deny"]);
    }

    #[test]
    fn a_model_is_lent_to_servers_that_are_trusted_or_that_a_rule_names_for_it() {
        let rule = |then| Rule { server: some("git"), then, ..Rule::default() };
        let named = |then| Rule { tool: some("sampling"), ..rule(then) };
        assert_eq!(["trusted", "git"].map(|server| sampling_ruling(&[], server)), ["allow", "ask"]);
        let with = |rule: Rule| sampling_ruling(&[rule], "git");
        assert_eq!(
            [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny].map(|then| with(named(then))),
            ["allow", "ask", "deny"]
        );
        // Rules about all its tools: they do not lend a model, but they can keep it back.
        assert_eq!([RuleAction::Allow, RuleAction::Deny].map(|then| with(rule(then))), ["ask", "deny"]);
        assert_eq!(sampling_ruling(&[named(RuleAction::Deny)], "trusted"), "allow");
    }

    #[test]
    fn rules_that_can_fit_nothing_are_told() {
        let rule = |server: Option<&str>, tool: Option<&str>| Rule {
            server: server.map(str::to_owned),
            tool: tool.map(str::to_owned),
            ..Rule::default()
        };
        let told = |rule| PolicyToolbox::new(Arc::new(Tools), vec![rule]).with_own(["plan".into()]).idle().concat();
        for fine in ["read_file", "git__*", "push", "plan", "fetch_url", "sampling"] {
            assert_eq!(told(rule(None, Some(fine))), "");
        }
        assert!(told(rule(None, Some("raed_file"))).contains("the tool `raed_file`"));
        assert!(told(rule(Some("gti"), None)).contains("the server `gti`"));
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
