//! The root agent's role: what it is told, in each language.

use polis_domain::{AgentId, Role};

use crate::workflow::Language;

/// What root is told about itself. A thread takes the language of its first message.
pub const ROOT_PROMPT: [(Language, &str); 2] =
    [(Language::En, include_str!("../prompts/root.en.md")), (Language::Zh, include_str!("../prompts/root.zh.md"))];

/// The role of root, run by this code.
pub fn root_role(behaviour: &str) -> Role {
    let [(_, english), others @ ..] = ROOT_PROMPT;
    let role = Role { name: "Root".into(), ..Role::new(AgentId::ROOT, behaviour) }.with_prompt(english.trim());
    others.into_iter().fold(role, |role, (language, text)| role.in_language(language.name(), text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_the_same_duties_in_both_languages() {
        let tools = ["plan", "list_roles", "list_agents", "request_collaboration", "terminate_agent", "compress_context"];
        for (language, text) in ROOT_PROMPT {
            for tool in tools {
                assert!(text.contains(&format!("`{tool}`")), "{} does not name {tool}", language.name());
            }
            assert_eq!(Language::of(text), language);
        }
        let role = root_role("converse");
        assert!(role.prompt_in("zh").starts_with("你是 Root") && role.prompt_in("fr").starts_with("You are Root"));
    }
}
