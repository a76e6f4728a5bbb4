//! `polis new agent`: the folder of an agent, its sub-threads, prompts and a test that passes.

use std::path::{Path, PathBuf};

use super::NewFiles;
use super::ScaffoldError;
use super::destination::{Destination, Library, missing};
use crate::check::naming::{self, Abbreviations, Fault};

/// Longest name, in characters: files carry it with an ending.
const MAX_NAME: usize = 60;

/// Crates that the new code uses. A module of such a name would shadow them.
const CRATES: &[&str] = &["alloc", "polis", "polis_testkit", "tokio"];

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("templates/", $name, ".txt"))
    };
}

/// The agent's name and those of its sub-threads, in `snake_case`, by the rules.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentNames {
    agent: String,
    sub_threads: Vec<String>,
}

impl AgentNames {
    /// Takes names as people type them.
    pub fn new(agent: &str, sub_threads: &[String]) -> Result<Self, ScaffoldError> {
        let agent = name(agent)?;
        let mut named = Vec::new();
        for typed in sub_threads {
            let sub_thread = name(typed)?;
            if sub_thread == agent || named.contains(&sub_thread) {
                let message = format!("`{sub_thread}` is named twice; each agent and sub-thread needs its own name");
                return Err(ScaffoldError::usage("bad_business_name", message));
            }
            named.push(sub_thread);
        }
        Ok(Self { agent, sub_threads: named })
    }
}

/// The files of a new agent in this folder: modules of the crate around it, else a project.
pub fn agent(
    names: &AgentNames,
    folder: &Path,
    library: impl FnOnce() -> Result<Library, ScaffoldError>,
) -> Result<NewFiles, ScaffoldError> {
    let mut draft = NewFiles::default();
    let name = &names.agent;
    match Destination::of(folder)? {
        Destination::Crate { modules, manifest } => {
            if let Some(agent) = agent_of(&modules) {
                let message = format!(
                    "{} is the folder of an agent; create a new agent next to it, or add a sub-thread to it by hand",
                    agent.display()
                );
                return Err(ScaffoldError::usage("bad_folder", message));
            }
            let parent = ["lib.rs", "main.rs", "mod.rs"].map(|file| modules.join(file)).into_iter().find(|file| file.is_file());
            let parent = parent.map_or("the module above it".to_owned(), |parent| parent.display().to_string());
            draft.advice.push(format!("write `mod {name};` into {parent}"));
            let needed = [("dependencies", "polis"), ("dev-dependencies", "polis-testkit"), ("dev-dependencies", "tokio")];
            let missing = missing(&manifest, &needed);
            if !missing.is_empty() {
                draft.advice.push(format!("{} needs {}", manifest.display(), missing.join(", ")));
            }
            modules_in(&mut draft, names, &modules.join(name));
        }
        Destination::Open(folder) => {
            let library = library()?;
            let project = folder.join(name);
            let manifest = filled(template!("Cargo.toml"), names)
                .replace("__served__", &library.dependency("polis").replace(" }", ", features = [\"serve\"] }"))
                .replace("__testkit__", &library.dependency("testkit"));
            draft.files.push((project.join("Cargo.toml"), manifest));
            draft.files.extend(library.versions().map(|versions| (project.join("Cargo.lock"), versions)));
            draft.files.push((project.join(".gitignore"), "/target\n".to_owned()));
            draft.files.push((project.join("src/lib.rs"), filled(template!("lib.rs"), names)));
            draft.files.push((project.join("src/main.rs"), filled(template!("main.rs"), names)));
            modules_in(&mut draft, names, &project.join("src").join(name));
            draft.advice.push(format!("cd {} && cargo test, then cargo run to use it in the browser", project.display()));
        }
    }
    Ok(draft)
}

/// The folder at or above this one that is an agent's, as far as the crate goes.
fn agent_of(modules: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(modules).ok()?;
    let is_agents = |folder: &&Path| {
        let own = folder.file_name().and_then(|name| name.to_str());
        own.is_some_and(|own| folder.join(format!("{own}_agent.rs")).is_file())
    };
    whole.ancestors().take_while(|folder| !folder.join("Cargo.toml").is_file()).find(is_agents).map(Path::to_owned)
}

fn modules_in(draft: &mut NewFiles, names: &AgentNames, folder: &Path) {
    let AgentNames { agent: name, sub_threads } = names;
    let mut add = |path: String, text: String| draft.files.push((folder.join(path), text));
    let modules: String = sub_threads.iter().map(|sub_thread| format!("mod {sub_thread};\n")).collect();
    let (agent, handlers) = match &sub_threads[..] {
        [] => (template!("agent.rs"), template!("state_handlers.rs")),
        [_] => (template!("agent_with_sub_thread.rs"), template!("state_handlers_with_sub_thread.rs")),
        _ => (template!("agent_with_sub_threads.rs"), template!("state_handlers_with_sub_thread.rs")),
    };
    add(
        "mod.rs".to_owned(),
        filled(template!("mod.rs"), names).replace("__modules__\n", &format!("{modules}\n")).replace("\n\n\n", "\n\n"),
    );
    add(format!("{name}_agent.rs"), filled(agent, names));
    add(format!("{name}_state_handlers.rs"), filled(handlers, names));
    add("tests.rs".to_owned(), filled(template!("tests.rs"), names).replace("__expected__", &expected(sub_threads)));
    let title = name.replace('_', " ");
    let ask = format!(
        "You are responsible for {title}. Ask for what you still need to know, one question at a time, and say what you will do then.\n"
    );
    add("prompt/initial_phase_system_prompt.md".to_owned(), ask);
    if sub_threads.is_empty() {
        let deliver = format!(
            "You are responsible for {title}. You know what is needed. Deliver it, whole, and say where you are not sure.\n"
        );
        add("prompt/result_delivery_system_prompt.md".to_owned(), deliver);
    }
    for sub_thread in sub_threads {
        let title = sub_thread.replace('_', " ");
        let sub = |text: &str| for_sub_thread(&filled(text, names), sub_thread);
        add(format!("{sub_thread}/mod.rs"), sub(template!("sub_mod.rs")));
        add(format!("{sub_thread}/{sub_thread}_agent.rs"), sub(template!("sub_agent.rs")));
        add(format!("{sub_thread}/{sub_thread}_interaction_units.rs"), sub(template!("sub_interaction_units.rs")));
        add(format!("{sub_thread}/{sub_thread}_state_handlers.rs"), sub(template!("sub_state_handlers.rs")));
        let plan = format!(
            "You are responsible for {title}. Plan how it is done for what you are asked: one step a line, nothing else.\n"
        );
        add(format!("prompt/{sub_thread}_planning_system_prompt.md"), plan);
        let complete = format!(
            "You are responsible for {title}. The plan stands. Carry it out and give the result, and nothing beside it.\n"
        );
        add(format!("prompt/{sub_thread}_completion_system_prompt.md"), complete);
    }
}

/// What the test expects of the second answer: the text of the last agents.
fn expected(sub_threads: &[String]) -> String {
    let prompt = |phase: &str| format!("include_str!(\"prompt/{phase}_system_prompt.md\")");
    let last: Vec<_> = sub_threads.iter().map(|sub_thread| prompt(&format!("{sub_thread}_completion"))).collect();
    match &last[..] {
        [] => prompt("result_delivery"),
        [only] => only.clone(),
        several => format!("[{}].join(\"\\n\\n\")", several.join(", ")),
    }
}

/// The names in the places that a template has for them.
fn filled(template: &str, names: &AgentNames) -> String {
    let each = |line: &dyn Fn(&String) -> String| names.sub_threads.iter().map(line).collect::<Vec<_>>();
    let imports = each(&|sub_thread| format!("use super::{sub_thread}::{}Agent;\n", naming::camel(sub_thread))).concat();
    let declared =
        each(&|sub_thread| format!("            .with(\"{sub_thread}\", {}Agent)", naming::camel(sub_thread))).join("\n");
    let text = template
        .replace("__business__", &names.agent)
        .replace("__Business__", &naming::camel(&names.agent))
        .replace("__imports__\n", &format!("{imports}\n"))
        .replace("__declared__", &declared);
    match &names.sub_threads[..] {
        [only] => for_sub_thread(&text, only),
        _ => text,
    }
}

fn for_sub_thread(text: &str, sub_thread: &str) -> String {
    text.replace("__sub__", sub_thread).replace("__Sub__", &naming::camel(sub_thread))
}

/// A name by the rules, without the ending that some people type.
pub(super) fn name(typed: &str) -> Result<String, ScaffoldError> {
    let refused = |why: String| ScaffoldError::usage("bad_business_name", format!("{why}; see docs/naming.md"));
    let bare =
        typed.strip_suffix("_agent").or_else(|| typed.strip_suffix("Agent")).filter(|bare| !bare.is_empty()).unwrap_or(typed);
    if !bare.is_empty() && !naming::is_snake(bare) && !naming::is_camel(bare) {
        let written = naming::snake(typed);
        let is_good = naming::is_snake(&written) && name(&written).is_ok();
        let advice =
            if is_good { format!("write `{written}`") } else { "name the work it does, such as order_tracking".to_owned() };
        return Err(refused(format!("`{typed}` is neither in snake_case nor in CamelCase; {advice}")));
    }
    match naming::judge(bare, &Abbreviations::new()) {
        Some(Fault::Empty { wrong, remedy } | Fault::Short { wrong, remedy }) => {
            return Err(refused(format!("{wrong}; {remedy}")));
        }
        Some(Fault::Style { remedy }) => return Err(refused(remedy)),
        None => {}
    }
    let name = naming::snake(bare);
    if !name.is_ascii() {
        let why = format!("`{typed}`: phases and module files need ASCII names; say in English what it does");
        return Err(refused(why));
    }
    if CRATES.contains(&name.as_str()) {
        return Err(refused(format!("`{typed}` is a crate that the agent uses; name the work it does")));
    }
    if naming::is_given(&name) || name.chars().count() > MAX_NAME || syn::parse_str::<syn::Ident>(&name).is_err() {
        return Err(refused(format!(
            "`{typed}` cannot be the name of a module; name the work it does in at most {MAX_NAME} characters"
        )));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_both_styles_and_refused_with_the_reason() {
        for typed in ["order_tracking", "OrderTracking", "OrderTrackingAgent", "order_tracking_agent"] {
            assert_eq!(name(typed).unwrap(), "order_tracking", "{typed}");
        }
        for (typed, why) in [
            ("helper", "`helper` could be anything"),
            ("Agent", "technical term"),
            ("sub_thread", "technical term"),
            ("data", "does not say what is done"),
            ("order_mgmt", "`mgmt` is an abbreviation; write `management`"),
            ("order-tracking", "write `order_tracking`"),
            ("../order", "neither in snake_case"),
            ("My_Flow", "in CamelCase; name the work it does"),
            ("match", "name of a module"),
            ("completed", "name of a module"),
            ("", "technical term"),
            ("订单跟踪", "need ASCII names"),
            ("émission_suivi", "need ASCII names"),
            ("polis", "a crate that the agent uses"),
            ("Tokio", "a crate that the agent uses"),
            ("polis_testkit", "a crate that the agent uses"),
        ] {
            let ScaffoldError::Usage { code, message } = name(typed).unwrap_err() else { panic!("{typed}") };
            assert!(message.contains(why), "{typed}: {message}");
            assert_eq!(code, "bad_business_name");
        }
        assert!(AgentNames::new("order_tracking", &["OrderTracking".to_owned()]).is_err());
    }
}
