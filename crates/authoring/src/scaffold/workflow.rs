//! `polis new workflow`: a project with the modules of document 003, or the prompt that has a model write such a project in another
//! language.

use std::collections::BTreeMap;
use std::path::Path;

use polis_agents::workflow::{
    BUSINESS_CONTEXT, EXECUTOR_CORE_TEMPLATE, Language, MOST_CONTEXT_BYTES, PLANNER_CORE_TEMPLATE, Template,
    VERIFIER_CORE_TEMPLATE,
};

use super::agent::name;
use super::destination::Library;
use super::{NewFiles, ScaffoldError};

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("templates/", $name, ".txt"))
    };
}

/// The files of a project, and where they go.
const FILES: &[(&str, &str)] = &[
    (".gitignore", "/target\n"),
    ("README.md", template!("workflow_README.md")),
    ("src/lib.rs", template!("workflow_lib.rs")),
    ("src/main.rs", template!("workflow_main.rs")),
    ("src/tests.rs", template!("workflow_tests.rs")),
    ("src/engine/mod.rs", template!("workflow_engine.rs")),
    ("src/prompts/mod.rs", template!("workflow_prompts.rs")),
    ("src/prompts/planner.md", template!("workflow_planner.md")),
    ("src/prompts/executor.md", template!("workflow_executor.md")),
    ("src/prompts/verifier.md", template!("workflow_verifier.md")),
    ("src/backend/mod.rs", template!("workflow_backend.rs")),
    ("src/tools/mod.rs", template!("workflow_tools.rs")),
    ("src/types/mod.rs", template!("workflow_types.rs")),
];

/// The files of a new project of this name in this folder.
pub fn workflow(typed: &str, folder: &Path, library: &Library) -> Result<NewFiles, ScaffoldError> {
    let name = name(typed)?;
    let project = folder.join(&name);
    let filled = |text: &str| text.replace("__business__", &name).replace("__words__", &name.replace('_', " "));
    let polis = library.dependency("polis").replace(" }", ", features = [\"offline\"] }");
    let manifest = filled(template!("workflow_Cargo.toml")).replace("__polis__", &polis);
    let mut draft = NewFiles::default();
    draft.files.push((project.join("Cargo.toml"), manifest));
    draft.files.extend(library.versions().map(|versions| (project.join("Cargo.lock"), versions)));
    draft.files.extend(FILES.iter().map(|(path, text)| (project.join(path), filled(text))));
    draft.advice.push("describe your business in src/prompts/*.md and add tools in src/tools/mod.rs".to_owned());
    draft.advice.push(format!("cd {} && cargo run -- \"What is 12 * 12?\"", project.display()));
    Ok(draft)
}

/// What the prompt for another language is about.
#[derive(Debug, Clone)]
pub struct CodegenOptions {
    /// The programming language.
    pub language: String,
    /// The platform or framework.
    pub platform: String,
    /// The business context; in Chinese it gives a Chinese prompt.
    pub business_context: String,
    /// The provider of models, if one is wanted.
    pub provider: Option<String>,
}

/// The prompt that has a model write such a project. Every place is filled or it is an error.
pub fn codegen_prompt(options: &CodegenOptions) -> Result<String, ScaffoldError> {
    let CodegenOptions { language, platform, business_context, provider } = options;
    let spoken = Language::of(business_context);
    let (template, any_provider) = match spoken {
        Language::En => (template!("codegen.en.md"), "any API that is compatible with OpenAI's chat completions"),
        Language::Zh => (template!("codegen.zh.md"), "任何兼容 OpenAI chat completions 的接口"),
    };
    let core = |texts: &[(Language, &'static str); 2]| {
        let text = texts.iter().find(|(language, _)| *language == spoken).map(|(_, text)| *text);
        text.unwrap_or_default().to_owned()
    };
    let business_context = business_context.trim();
    if business_context.len() > MOST_CONTEXT_BYTES {
        let message = format!("the business context has more than {MOST_CONTEXT_BYTES} bytes; shorten it");
        return Err(ScaffoldError::usage("bad_template_variable", message));
    }
    let provider = provider.clone().unwrap_or_else(|| any_provider.to_owned());
    let own = [
        ("LANGUAGE", language.as_str()),
        ("PLATFORM", platform),
        ("BUSINESS_CONTEXT", business_context),
        ("AI_PROVIDER", &provider),
    ];
    if let Some((name, _)) = own.iter().find(|(_, value)| value.trim().is_empty()) {
        return Err(ScaffoldError::usage("bad_template_variable", format!("{{{{{name}}}}} is empty; say what it is")));
    }
    let mut values: BTreeMap<String, String> =
        own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    values.extend([
        ("PLANNER_CORE_TEMPLATE".to_owned(), core(&PLANNER_CORE_TEMPLATE)),
        ("EXECUTOR_CORE_TEMPLATE".to_owned(), core(&EXECUTOR_CORE_TEMPLATE)),
        ("VERIFIER_CORE_TEMPLATE".to_owned(), core(&VERIFIER_CORE_TEMPLATE)),
        // A place of the core templates, which the generated program fills.
        (BUSINESS_CONTEXT.to_owned(), format!("{{{{{BUSINESS_CONTEXT}}}}}")),
    ]);
    let failed =
        |error: polis_agents::workflow::TemplateError| ScaffoldError::failed("bad_template_variable", error.to_string());
    Template::new(template).map_err(failed)?.fill(&values).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(business_context: &str) -> CodegenOptions {
        CodegenOptions {
            language: "Go".to_owned(),
            platform: "Gin".to_owned(),
            business_context: business_context.to_owned(),
            provider: None,
        }
    }

    #[test]
    fn the_prompt_has_every_variable_and_the_three_core_templates_in_the_language_of_the_business() {
        for (business, at, language) in [
            ("We sell tea. {{LANGUAGE}}", "in **Go** for **Gin**", Language::En),
            ("我们卖茶。", "使用 **Go** 语言在 **Gin** 平台", Language::Zh),
        ] {
            let prompt = codegen_prompt(&options(business)).unwrap();
            assert!(prompt.contains(at) && prompt.contains(business) && prompt.contains("OpenAI"), "{prompt}");
            for texts in [PLANNER_CORE_TEMPLATE, EXECUTOR_CORE_TEMPLATE, VERIFIER_CORE_TEMPLATE] {
                let core = texts.iter().find(|(spoken, _)| *spoken == language).unwrap().1;
                assert!(prompt.contains(core.trim()), "{core}");
            }
            for module in ["`engine/`", "`prompts/`", "`backend/`", "`tools/`", "`types/`", "`main`"] {
                assert!(prompt.contains(module), "{module}");
            }
            for place in ["{{PLATFORM}}", "{{BUSINESS_CONTEXT}}", "{{AI_PROVIDER}}", "_CORE_TEMPLATE}}"] {
                assert!(!prompt.contains(place), "{place}");
            }
        }
        let named = CodegenOptions { provider: Some("Azure OpenAI".to_owned()), ..options("tea") };
        assert!(codegen_prompt(&named).unwrap().contains("Azure OpenAI"));
    }

    #[test]
    fn a_variable_that_is_missing_is_named() {
        let long = "x".repeat(MOST_CONTEXT_BYTES + 1);
        for (options, name) in [
            (CodegenOptions { language: " ".to_owned(), ..options("tea") }, "{{LANGUAGE}}"),
            (CodegenOptions { platform: String::new(), ..options("tea") }, "{{PLATFORM}}"),
            (options(" \n"), "{{BUSINESS_CONTEXT}}"),
            (CodegenOptions { provider: Some(String::new()), ..options("tea") }, "{{AI_PROVIDER}}"),
            (options(&long), "shorten"),
        ] {
            let error = codegen_prompt(&options).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    /// The names of document 003, so that what is generated in other languages has them.
    #[test]
    fn the_prompt_names_every_method_and_type() {
        let prompt = codegen_prompt(&options("tea")).unwrap();
        for name in [
            "set_business_context",
            "get_prompt",
            "chat_completion",
            "execute_tool(server_name, tool_name, args, context)",
            "save_message(message, chat_id)",
            "listen_to_stream",
            "on_content",
            "on_tool_calls",
            "on_reasoning",
            "on_done",
            "on_error",
            "AIMessage",
            "ToolCall",
            "PlannerResponse",
            "ExecutorResponse",
            "VerifierResponse",
        ] {
            assert!(prompt.contains(name), "{name}");
        }
    }
}
