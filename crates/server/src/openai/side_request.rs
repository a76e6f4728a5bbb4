//! Side requests of chat clients: a title, tags, follow-ups for a conversation. They are answered here, cheaply; no agent works.
//!
//! Only the wording of well-known clients is known, so that nobody's own request for a title is taken for one of these.

use serde_json::json;

/// What a chat client wants on the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SideRequest {
    /// A title in words.
    Title,
    /// A title as JSON.
    TitleObject,
    /// A title with its language, as JSON.
    TitleAndLanguage,
    Tags,
    FollowUps,
    Queries,
    Completion,
    ImagePrompt,
    Emoji,
}

/// Words in a title.
const TITLE_WORDS: usize = 6;

/// Characters in a title.
const TITLE_CHARS: usize = 48;

/// The answer to a side request; none where the text is anything else.
pub(super) fn answer(text: &str) -> Option<String> {
    let side = kind(text)?;
    let title = || title(about(text));
    Some(match side {
        SideRequest::Title => title(),
        SideRequest::TitleObject => json!({ "title": title() }).to_string(),
        SideRequest::TitleAndLanguage => json!({ "title": title(), "language": "unknown" }).to_string(),
        SideRequest::Tags => json!({ "tags": ["General"] }).to_string(),
        SideRequest::FollowUps => json!({ "follow_ups": [] }).to_string(),
        SideRequest::Queries => json!({ "queries": [] }).to_string(),
        SideRequest::Completion => json!({ "text": "" }).to_string(),
        SideRequest::ImagePrompt => json!({ "prompt": title() }).to_string(),
        SideRequest::Emoji => "💬".to_owned(),
    })
}

fn kind(text: &str) -> Option<SideRequest> {
    let has = |words: &str| text.contains(words);
    // Open WebUI: a template with its headings, and the conversation in tags.
    if text.trim_start().starts_with("### Task:") && (has("<chat_history>") || has("<text>")) {
        let object = |name: &str| has(&format!("\"{name}\":"));
        return match () {
            () if object("follow_ups") => Some(SideRequest::FollowUps),
            () if object("tags") => Some(SideRequest::Tags),
            () if object("queries") => Some(SideRequest::Queries),
            () if has("autocompletion system") => Some(SideRequest::Completion),
            () if object("prompt") && has("image") => Some(SideRequest::ImagePrompt),
            () if object("title") => Some(SideRequest::TitleObject),
            () if has("title") => Some(SideRequest::Title),
            () => None,
        };
    }
    if text.starts_with("Your task is to reflect the speaker's likely facial expression through a fitting emoji") {
        return Some(SideRequest::Emoji);
    }
    // LibreChat.
    if has("5-word-or-less title for the conversation")
        || has("Please generate a concise title (max 40 characters) for a conversation")
    {
        return Some(SideRequest::Title);
    }
    if has("Analyze this conversation and provide:") && has("concise title in the detected language") {
        return Some(SideRequest::TitleAndLanguage);
    }
    // NextChat and its descendants, in both of its languages.
    let next_chat =
        ["Please generate a four to five word title summarizing our conversation", "使用四到五个字直接返回这句话的简要主题"];
    next_chat.iter().any(|words| text.starts_with(words)).then_some(SideRequest::Title)
}

/// The topic of the conversation: its first user message.
fn about(text: &str) -> &str {
    let inside =
        text.split_once("<chat_history>").map_or(text, |(_, rest)| rest.split("</chat_history>").next().unwrap_or(rest));
    let inside = inside.split_once("Conversation:").map_or(inside, |(_, rest)| rest);
    let line = inside.lines().find_map(|line| {
        let line = line.trim();
        ["USER:", "User:", "user:", "Human:"].iter().find_map(|who| line.strip_prefix(who)).map(str::trim)
    });
    line.unwrap_or_default()
}

fn title(about: &str) -> String {
    let words: Vec<_> = about.split_whitespace().take(TITLE_WORDS).collect();
    let title: String = words.join(" ").chars().take(TITLE_CHARS).collect();
    let title = title.trim_matches(|c: char| c.is_ascii_punctuation() || c == '。' || c == '？').to_owned();
    if title.is_empty() { "Conversation".to_owned() } else { title }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A template of Open WebUI in outline.
    fn open_web_ui(task: &str, output: &str) -> String {
        format!(
            "### Task:\n{task}\n### Guidelines:\n- …\n### Output:\nJSON format: {output}\n### Chat History:\n<chat_history>\n\
             USER: How do I bake bread without any yeast at home?\nASSISTANT: With soda.\n</chat_history>"
        )
    }

    #[test]
    fn side_requests_of_known_clients_are_answered_in_their_shape() {
        let title = "How do I bake bread without";
        for (text, want) in [
            (open_web_ui("Generate a concise, 3-5 word title", "{ \"title\": \"…\" }"), json!({ "title": title }).to_string()),
            (open_web_ui("Generate 1-3 broad tags", "{ \"tags\": [\"tag1\"] }"), json!({ "tags": ["General"] }).to_string()),
            (open_web_ui("Suggest follow-up questions", "{ \"follow_ups\": [] }"), json!({ "follow_ups": [] }).to_string()),
            (open_web_ui("Analyze the chat history", "{ \"queries\": [] }"), json!({ "queries": [] }).to_string()),
            (
                "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title \
                 itself.\n\nConversation:\nUser: hello there\nAI: hi"
                    .to_owned(),
                "hello there".to_owned(),
            ),
        ] {
            assert_eq!(answer(&text), Some(want), "{text}");
        }
    }

    #[test]
    fn a_persons_own_request_is_no_side_request() {
        for text in [
            "Generate a concise title for my essay about bread",
            "### Task: write a title\nfor the chat",
            "give me tags for this conversation",
            "Write a JSON object { \"title\": … }",
        ] {
            assert_eq!(answer(text), None, "{text}");
        }
    }
}
