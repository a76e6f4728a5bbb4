//! The code in `docs/workflow.md` and in the README of this example, word for word, so that it is compiled.

use house_style::Reviewer;
use polis::Cast;
use polis::workflow::{AgentType, AgentWorkflowEngine, Language, PromptManager, Workflow};

#[rustfmt::skip]
#[test]
fn the_code_in_the_documents_makes_a_workflow_with_a_reviewer() -> Result<(), Box<dyn std::error::Error>> {
    let (mut prompts, reviewer) = (PromptManager::new(Language::En), AgentType::new("reviewer")?);
    prompts.set_core_template_in(reviewer.clone(), Language::En, "You review …\n\n{{businessContext}}\n\nAnswer with …")?;
    let engine = AgentWorkflowEngine::new(prompts).with_role(Reviewer::new()?);
    assert!(Cast::new().with("engine", Workflow::new(engine)).check().is_ok());

    let prompts = PromptManager::new(Language::En).with_folder("prompts");   // prompts/reviewer.md: your house style
    let cast = Cast::new().with("writing", Workflow::new(Reviewer::new()?.joining(prompts)?));
    assert!(cast.check().is_ok());
    Ok(())
}
