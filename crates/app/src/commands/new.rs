//! `polis new`: generates a new agent, role, SOP, skill, tool or workflow, and says how to continue.

use std::path::Path;

use polis_authoring::scaffold::{self, AgentNames, CodegenOptions, Library, ScaffoldError};

use super::ready_tools::SettingsFile;
use crate::cli::{Cli, New, NewAgent, NewRole, NewSkill, NewSop, NewTool, NewWorkflow};
use crate::error::{CliError, Exit};
use crate::out;

pub(crate) fn new(cli: &Cli, options: &New) -> Result<Exit, CliError> {
    let draft = match options {
        New::Agent(NewAgent { name, sub, dir, polis }) => {
            let names = AgentNames::new(name, sub)?;
            let folder = dir.as_deref().unwrap_or(Path::new("."));
            scaffold::agent(&names, folder, || Library::find(polis.as_deref()))?
        }
        New::Sop(NewSop { name, dir }) => scaffold::sop(name, dir.as_deref().unwrap_or(Path::new(".")))?,
        New::Role(NewRole { name, dir }) => scaffold::role(name, dir.as_deref().unwrap_or(Path::new(".")))?,
        New::Skill(NewSkill { name, dir }) => scaffold::skill(name, dir.as_deref().unwrap_or(Path::new(".")))?,
        New::Tool(NewTool { name }) => scaffold::tool(name)?,
        New::Workflow(options) => match &options.name {
            Some(name) => {
                let folder = options.dir.as_deref().unwrap_or(Path::new("."));
                scaffold::workflow(name, folder, &Library::find(options.polis.as_deref())?)?
            }
            None => return codegen_prompt(options),
        },
    };
    let section = match options {
        New::Tool(NewTool { name }) => {
            let section = scaffold::tool_section(name);
            Some(SettingsFile::open(cli, false)?.with_section(name, &section, "choose another name")?)
        }
        _ => None,
    };
    draft.write()?;
    let here = Path::new(".");
    let trusted = match options {
        New::Sop(NewSop { dir, .. }) | New::Role(NewRole { dir, .. }) | New::Skill(NewSkill { dir, .. }) => {
            Some(dir.as_deref().unwrap_or(here))
        }
        New::Tool(_) => Some(here),
        New::Agent(_) | New::Workflow(_) => None,
    };
    if let Some(folder) = trusted {
        crate::trust::trust_written(folder, &draft.files)?;
    }
    if let Some((file, text)) = section {
        file.write(&text)?;
    }
    for (path, _) in &draft.files {
        out::line(&path.strip_prefix(".").unwrap_or(path).display().to_string())?;
    }
    draft.advice.iter().for_each(|advice| out::note(&format!("polis: {advice}")));
    Ok(Exit::Done)
}

/// Prints the prompt that has a model write a workflow.
fn codegen_prompt(options: &NewWorkflow) -> Result<Exit, CliError> {
    let business = options.business.as_deref().unwrap_or(Path::new(""));
    let business_context = std::fs::read_to_string(business).map_err(|error| {
        CliError::usage("bad_template_variable", format!("{{{{BUSINESS_CONTEXT}}}}: {}: {error}", business.display()))
    })?;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let options = CodegenOptions {
        language: text(&options.language),
        platform: text(&options.platform),
        business_context,
        provider: options.provider.clone(),
    };
    out::text(&scaffold::codegen_prompt(&options)?)?;
    Ok(Exit::Done)
}

impl From<ScaffoldError> for CliError {
    fn from(error: ScaffoldError) -> Self {
        match error {
            ScaffoldError::Usage { code, message } => Self::usage(code, message),
            ScaffoldError::Failed { code, message } => Self::new(code, message),
        }
    }
}
