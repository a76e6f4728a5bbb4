//! Prompts in two layers: a core template that makes the workflow work, and a business context that says what it is about.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use polis_domain::Text;
use polis_ports::FileGuard;

use super::context::{self, ContextError};
use super::template::{BUSINESS_CONTEXT, Template, TemplateError};
use super::{AgentType, Component, ExecutorResponse, Language, PlannerResponse, SummaryResponse, TodoList, VerifierResponse};

/// The core template of the planner.
pub const PLANNER_CORE_TEMPLATE: [(Language, &str); 2] =
    [(Language::En, include_str!("../../prompts/planner.en.md")), (Language::Zh, include_str!("../../prompts/planner.zh.md"))];

/// The core template of the executor.
pub const EXECUTOR_CORE_TEMPLATE: [(Language, &str); 2] = [
    (Language::En, include_str!("../../prompts/executor.en.md")),
    (Language::Zh, include_str!("../../prompts/executor.zh.md")),
];

/// The core template of the verifier.
pub const VERIFIER_CORE_TEMPLATE: [(Language, &str); 2] = [
    (Language::En, include_str!("../../prompts/verifier.en.md")),
    (Language::Zh, include_str!("../../prompts/verifier.zh.md")),
];

/// The core template of the role that answers without a plan.
pub const FALLBACK_CORE_TEMPLATE: [(Language, &str); 2] = [
    (Language::En, include_str!("../../prompts/fallback.en.md")),
    (Language::Zh, include_str!("../../prompts/fallback.zh.md")),
];

/// Makes the system messages of agents. The files of business contexts are looked at for each prompt, so a change counts at once;
/// while nothing has changed, the text is the one that was made before.
#[derive(Debug, Clone)]
pub struct PromptManager {
    language: Language,
    cores: BTreeMap<(AgentType, Language), Template>,
    contexts: BTreeMap<AgentType, String>,
    folders: Vec<PathBuf>,
    guard: FileGuard,
    system_context: Option<String>,
    /// What was made last for each template.
    cache: Arc<Mutex<BTreeMap<(AgentType, Language), CachedPrompt>>>,
}

/// A prompt, and what it was made for and of.
#[derive(Debug)]
struct CachedPrompt {
    options: PromptOptions,
    context: String,
    prompt: Prompt,
}

/// A system message, and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: Text,
    /// Whose it is.
    pub agent: AgentType,
    /// The language of the core template.
    pub language: Language,
    /// Where the business context came from.
    pub context: ContextSource,
    /// What whoever wrote the business context should look at.
    pub warnings: Vec<String>,
}

/// Where a business context came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextSource {
    /// It was set for this agent.
    Set,
    /// A file.
    File(PathBuf),
    /// It was set for all agents.
    System,
    /// There is none.
    None,
}

/// What a prompt is made for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptOptions {
    /// The language; the manager's own if not set.
    pub language: Option<Language>,
    /// What the executor can use, as the planner is told; one line each.
    pub tools: Option<String>,
    /// How many rounds the executor has; 10 if not set.
    pub max_rounds: Option<usize>,
    /// What fills other places, by their names.
    pub places: BTreeMap<String, String>,
    /// What the agent is told after everything else.
    pub more: String,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// No core template for this type of agent.
    #[error("there is no core template for `{0}`; set one with set_core_template")]
    NoTemplate(AgentType),
    /// The core template cannot be used.
    #[error("the core template of `{agent}`: {error}")]
    Template {
        /// Whose template.
        agent: AgentType,
        /// What is wrong with it.
        error: TemplateError,
    },
    /// The file with the business context cannot be used.
    #[error("the business context of `{agent}`: {error}")]
    Context {
        /// Whose context.
        agent: AgentType,
        /// What is wrong with it.
        error: ContextError,
    },
}

impl PromptError {
    /// The error's code, which stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoTemplate(_) => "no_template",
            Self::Template { .. } => "bad_template",
            Self::Context { .. } => "bad_business_context",
        }
    }
}

impl Default for PromptManager {
    fn default() -> Self {
        Self::new(Language::default())
    }
}

impl PromptManager {
    /// Our own core templates, and no business context.
    pub fn new(language: Language) -> Self {
        let ours = [
            (AgentType::PLANNER, PLANNER_CORE_TEMPLATE),
            (AgentType::EXECUTOR, EXECUTOR_CORE_TEMPLATE),
            (AgentType::VERIFIER, VERIFIER_CORE_TEMPLATE),
            (AgentType::FALLBACK, FALLBACK_CORE_TEMPLATE),
        ];
        let cores = ours.into_iter().flat_map(|(agent, texts)| {
            texts.map(|(language, text)| {
                ((agent.clone(), language), Template::core(text).expect("our own templates are checked by tests"))
            })
        });
        Self {
            language,
            cores: cores.collect(),
            contexts: BTreeMap::new(),
            folders: Vec::new(),
            guard: FileGuard::default(),
            system_context: None,
            cache: Arc::default(),
        }
    }

    /// Takes business contexts from the Markdown files of a folder, such as `prompts/planner.md`, where none is set. Of several
    /// folders the first that has one counts.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Takes business contexts only from files whose content the guard admits.
    #[must_use]
    pub fn with_guard(self, guard: FileGuard) -> Self {
        Self { guard, ..self }
    }

    /// The files that business contexts come from, each with what whoever wrote it should look at, if anything: as they stand now.
    pub fn files(&self) -> Vec<(String, Vec<String>)> {
        let mut files: Vec<(String, Vec<String>)> = Vec::new();
        for (agent, language) in self.cores.keys() {
            let options = PromptOptions { language: Some(*language), ..PromptOptions::default() };
            let found = match self.prompt(agent, &options) {
                Ok(Prompt { context: ContextSource::File(path), warnings, .. }) => (path.display().to_string(), warnings),
                Ok(_) => continue,
                Err(error) => (format!("{agent}"), vec![error.to_string()]),
            };
            if !files.contains(&found) {
                files.push(found);
            }
        }
        files
    }

    /// Sets the business context of one type of agent.
    pub fn set_business_context(&mut self, agent: AgentType, context: impl Into<String>) {
        self.contexts.insert(agent, context.into());
    }

    /// Sets several business contexts.
    pub fn set_all_business_contexts(&mut self, contexts: impl IntoIterator<Item = (AgentType, String)>) {
        self.contexts.extend(contexts);
    }

    /// Sets the business context of all agents that have none of their own.
    pub fn set_system_context(&mut self, context: impl Into<String>) {
        self.system_context = Some(context.into());
    }

    /// Puts another core template in place of ours, or adds one for a new type of agent; for all languages.
    pub fn set_core_template(&mut self, agent: AgentType, text: &str) -> Result<(), PromptError> {
        for language in [Language::En, Language::Zh] {
            self.set_core_template_in(agent.clone(), language, text)?;
        }
        Ok(())
    }

    /// The same for one language.
    pub fn set_core_template_in(&mut self, agent: AgentType, language: Language, text: &str) -> Result<(), PromptError> {
        let template = Template::core(text).map_err(|error| PromptError::Template { agent: agent.clone(), error })?;
        self.cores.insert((agent, language), template);
        self.cache = Arc::default();
        Ok(())
    }

    /// Another name for [`PromptManager::set_core_template`].
    pub fn set_template(&mut self, agent: AgentType, text: &str) -> Result<(), PromptError> {
        self.set_core_template(agent, text)
    }

    /// The types of agents that there are templates for.
    pub fn agents(&self) -> Vec<&AgentType> {
        let mut agents: Vec<&AgentType> = self.cores.keys().map(|(agent, _)| agent).collect();
        agents.dedup();
        agents
    }

    /// The system message of an agent: its core template with its business context.
    pub fn get_prompt(&self, agent: &AgentType) -> Result<Prompt, PromptError> {
        self.prompt(agent, &PromptOptions::default())
    }

    /// The same, for a language and a time of its own.
    pub fn prompt(&self, agent: &AgentType, options: &PromptOptions) -> Result<Prompt, PromptError> {
        let language = options.language.unwrap_or(self.language);
        let core = [language, self.language, Language::En, Language::Zh]
            .into_iter()
            .find_map(|language| Some((language, self.cores.get(&(agent.clone(), language))?)));
        let (language, core) = core.ok_or_else(|| PromptError::NoTemplate(agent.clone()))?;
        let (context, source) = self.context(agent, language)?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let last = cache.get(&(agent.clone(), language));
        if let Some(last) =
            last.filter(|last| last.prompt.context == source && last.context == context && last.options == *options)
        {
            return Ok(last.prompt.clone());
        }
        let warnings = warnings(&context);
        let mut values = options.places.clone();
        let tools = options.tools.clone().filter(|tools| !tools.trim().is_empty());
        values.insert("tools".to_owned(), tools.unwrap_or_else(|| no_tools(language).to_owned()));
        values.insert("maxRounds".to_owned(), options.max_rounds.unwrap_or(10).to_string());
        values.insert(BUSINESS_CONTEXT.to_owned(), context.clone());
        let mut text = core.fill(&values).map_err(|error| PromptError::Template { agent: agent.clone(), error })?;
        let more = options.more.trim();
        if !more.is_empty() {
            text.truncate(text.trim_end().len());
            text.extend(["\n\n", more]);
        }
        let prompt = Prompt { text: text.into(), agent: agent.clone(), language, context: source, warnings };
        cache.insert((agent.clone(), language), CachedPrompt { options: options.clone(), context, prompt: prompt.clone() });
        Ok(prompt)
    }

    fn context(&self, agent: &AgentType, language: Language) -> Result<(String, ContextSource), PromptError> {
        if let Some(context) = self.contexts.get(agent) {
            return Ok((context.clone(), ContextSource::Set));
        }
        let files = self.folders.iter().map(|folder| context::read(folder, agent, language, &self.guard));
        let file = files.filter_map(Result::transpose).next().transpose();
        match file.map_err(|error| PromptError::Context { agent: agent.clone(), error })? {
            Some(file) if !file.text.trim().is_empty() => Ok((file.text, ContextSource::File(file.path))),
            _ => Ok(match &self.system_context {
                Some(context) => (context.clone(), ContextSource::System),
                None => (no_context(language).to_owned(), ContextSource::None),
            }),
        }
    }
}

fn no_context(language: Language) -> &'static str {
    match language {
        Language::En => "None is given. Rely on the user's request.",
        Language::Zh => "没有提供。以用户的需求为准。",
    }
}

fn no_tools(language: Language) -> &'static str {
    match language {
        Language::En => {
            "The Executor is told its tools by the system. They are not listed here; say what is needed, not which tool to use."
        }
        Language::Zh => "系统会告诉执行者有哪些工具，这里没有列出。写明需要什么，不要指定用哪个工具。",
    }
}

/// A business context says what things are; what an answer looks like is the core template's to say.
fn warnings(context: &str) -> Vec<String> {
    let names = [PlannerResponse::NAME, ExecutorResponse::NAME, VerifierResponse::NAME, TodoList::NAME, SummaryResponse::NAME];
    let named = names.into_iter().filter(|name| context.contains(name));
    named.map(|name| format!("the business context names `{name}`; leave the form of answers to the core template")).collect()
}

#[cfg(test)]
mod tests;
