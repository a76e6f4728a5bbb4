//! What the documents say of contexts, over random conversations (P9, P10).

use std::sync::{Arc, Mutex};

use polis_agents::society::with_society_tools;
use polis_agents::{ContextLimits, Converse};
use polis_domain::Role;
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, ask};
use proptest::prelude::*;

const PROMPT: &str = "Be kind.";
const ANSWER: &str = "an answer that is long enough for a summary to be shorter than it";

type Asked = Arc<Mutex<Vec<ModelRequest>>>;

async fn open(limits: ContextLimits, asked: Asked, keep: usize) -> Society {
    let model = ScriptedModel::new(move |request| {
        asked.lock().unwrap().push(request.clone());
        match request.messages.last() {
            Some(ChatMessage::User { text, .. }) if &**text == "compress" => {
                let arguments = format!(r#"{{"summary":"the gist","keepRecentCount":{keep}}}"#);
                ScriptedReply::call("c", "compress_context", &arguments)
            }
            _ => ScriptedReply::text(ANSWER),
        }
    });
    let cast = with_society_tools(Cast::new().with("root", Converse { context: limits, ..Converse::default() }), "root");
    let clock = Arc::new(ManualClock::at(polis_domain::Timestamp(1_700_000_000_000)));
    let ports = Ports { clock, ..Ports::new(MemoryLog::new()).with_model(model) };
    let role = Role::new("root", "root").with_prompt(PROMPT);
    Society::open("main".into(), ports, cast, Options::new(1, role)).await.unwrap()
}

/// The requests of a conversation with so many rounds before `last`.
fn talk(rounds: usize, last: &str, limits: ContextLimits, keep: usize) -> Vec<ModelRequest> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let asked = Asked::default();
        let society = open(limits, asked.clone(), keep).await;
        for n in 0..rounds {
            ask(&society, &format!("question {n}")).await.unwrap();
        }
        asked.lock().unwrap().clear();
        ask(&society, last).await.unwrap();
        std::mem::take(&mut *asked.lock().unwrap())
    })
}

fn texts(request: &ModelRequest) -> Vec<String> {
    let text = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.to_string(),
        ChatMessage::Tool { content, .. } => content.to_string(),
    };
    request.messages.iter().map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// P9: the system prompt, the newest messages and the summary stay; where there are no more than to keep, nothing changes.
    #[test]
    fn a_compression_keeps_the_prompt_the_summary_and_the_newest_messages(rounds in 0_usize..9, keep in 0_usize..14) {
        let asked = talk(rounds, "compress", ContextLimits::default(), keep);
        let [before, after] = &asked[..] else { return Err(TestCaseError::fail(format!("{} requests", asked.len()))) };
        let (before, shown) = (texts(before), texts(after));
        prop_assert_eq!(&*after.system, PROMPT);
        let has_summary = shown[0] == "[历史摘要] the gist";
        // A question stays with its answer, so an odd one more may be kept.
        let gone = (rounds * 2).saturating_sub(keep) / 2 * 2;
        prop_assert_eq!(has_summary, gone > 0);
        let shown = &shown[usize::from(has_summary)..];
        let kept = shown.len() - 3;
        prop_assert_eq!(kept, rounds * 2 - gone);
        prop_assert_eq!(&shown[..=kept], &before[before.len() - 1 - kept..]);
    }

    /// P10: an agent is warned when its conversation has more messages than are wise, and not before.
    #[test]
    fn an_agent_is_warned_when_its_conversation_is_too_long(rounds in 0_usize..9, max in 1_usize..16) {
        let limits = ContextLimits { max_context_messages: max, compress: false, ..ContextLimits::default() };
        let asked = talk(rounds, "and now?", limits, 0);
        let count = rounds * 2 + 1;
        let texts = texts(&asked[0]);
        let told = texts.iter().any(|text| text.contains(&format!("is longer than its limit ({max} messages)")));
        prop_assert_eq!(told, count > max, "{:?}", texts);
        prop_assert_eq!(&*asked[0].system, PROMPT);
    }
}
