//! A type of agent that Polis does not have: its template, its business context, its reply as it streams.

use polis_agents::workflow::{AgentType, Chunk, ContextSource, PromptError, PromptManager, ReplyReader};

const TEMPLATE: &str = "# Reviewer\n\nYou review what the Executor wrote.\n\n## Business context\n\n{{businessContext}}\n\n\
                        ## Output\n\nOne JSON object with `component` \"reviewer-response\", `verdict` and `remarks`.\n";

#[test]
fn anybody_can_add_a_type_of_agent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reviewer.md"), "---\nagent: reviewer\n---\nWe write short sentences.").unwrap();
    let reviewer = AgentType::new("reviewer").unwrap();
    let mut prompts = PromptManager::default().with_folder(folder.path());
    assert!(matches!(prompts.get_prompt(&reviewer), Err(PromptError::NoTemplate(_))));

    prompts.set_core_template(reviewer.clone(), TEMPLATE).unwrap();
    let prompt = prompts.get_prompt(&reviewer).unwrap();
    assert_eq!(&*prompt.text, TEMPLATE.replace("{{businessContext}}", "We write short sentences."));
    assert_eq!(prompt.context, ContextSource::File(folder.path().join("reviewer.md")));
    let names: Vec<&str> = prompts.agents().into_iter().map(AgentType::name).collect();
    assert_eq!(names, ["executor", "fallback", "planner", "reviewer", "verifier"]);

    prompts.set_business_context(reviewer.clone(), "We write long ones.");
    assert!(prompts.get_prompt(&reviewer).unwrap().text.contains("We write long ones."));
}

#[test]
fn its_reply_is_shown_as_it_streams() {
    let mut reader = ReplyReader::new("reviewer-response");
    let mut shown = Vec::new();
    for chunk in ["Well: {\"component\":\"reviewer-re", "sponse\",\"verdict\":\"go", "od\",\"remarks\":[\"a\",", "\"b\"]} bye"]
    {
        reader.push(chunk, &mut |chunk| match chunk {
            Chunk::Text { field: "verdict", text } => shown.push(text.to_owned()),
            Chunk::Item { field: "remarks", value, .. } => shown.push(value.to_string()),
            _ => {}
        });
    }
    assert_eq!(shown, ["go", "od", "\"a\"", "\"b\""]);
}

/// The example that people copy must work as it is printed.
#[test]
fn the_sample_context_in_the_docs_is_one() {
    let docs = include_str!("../../../docs/workflow.md");
    let sample = docs.split("```markdown\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("planner.md"), sample).unwrap();
    let prompt = PromptManager::default().with_folder(folder.path()).get_prompt(&AgentType::PLANNER).unwrap();
    assert!(
        prompt.text.contains("transcription desk") && prompt.text.contains("`pending`, `running`, `completed` or `failed`")
    );
    assert!(!prompt.text.contains("title: "));
    assert_eq!(prompt.warnings, [""; 0]);
}
