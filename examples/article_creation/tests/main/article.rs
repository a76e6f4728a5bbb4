//! An article with a scripted editor: its threads, its parallel research, its review, its failures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use article_creation::ArticleCreationAgent;
use polis::domain::Sender;
use polis::prelude::*;
use polis::{Event, Recorded};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ask, crash, open, society};

use crate::editor;

fn model() -> ScriptedModel {
    ScriptedModel::new(|request| editor::answer(request, |_, _| Duration::ZERO))
}

async fn texts(society: &Society, path: &str) -> Vec<String> {
    let path = if path.is_empty() { polis::SubThreadPath::main() } else { path.parse().unwrap() };
    let thread = society.thread(&"root".into(), &path).await.unwrap();
    let name = |sender| if sender == Sender::Bot { "bot" } else { "user" };
    thread.messages.iter().map(|message| format!("{}: {}", name(message.sender), message.text)).collect()
}

const ARTICLE: &str = "# Fish\n\n## breathing\n## swimming\n## sleeping\n\nThick.";

#[tokio::test(start_paused = true)]
async fn an_article_is_researched_from_files_drafted_and_sent_back_until_it_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    editor::write_sources(folder.path()).unwrap();
    let tools = article_creation::sources::tools(folder.path()).unwrap();
    let cast = Cast::new().with("root", ArticleCreationAgent);
    let society = open(cast, polis::Ports::new(MemoryLog::new()).with_model(model()).with_tools(tools)).await;
    assert_eq!(ask(&society, editor::TOPIC).await.unwrap(), ARTICLE);

    assert_eq!(texts(&society, "").await, ["user: fish".to_owned(), format!("bot: {ARTICLE}")]);
    let writing = "messages[1].meta._thread";
    assert_eq!(
        texts(&society, writing).await,
        [
            "bot: 1. breathing\n2. swimming\n3. sleeping",
            "user: 3 aspects: breathing; swimming; sleeping",
            "bot: All that is known of breathing.",
            "bot: All that is known of swimming.",
            "bot: All that is known of sleeping.",
            "bot: ## breathing\n\nAll that is known of breathing.\n\n## swimming\n\nAll that is known of swimming.\n\n## sleeping\n\nAll that is known of sleeping.",
            "user: 3 aspects are researched, 0 are missing.",
            "bot: # Fish\n\n## breathing\n\nThin.",
            "user: The draft has 5 words in 1 sections.",
            "bot: revise: more about swimming",
            "user: The draft is sent back.",
            &format!("bot: {ARTICLE}"),
            "user: The draft has 9 words in 3 sections.",
            "bot: accept",
            "user: The draft is accepted.",
            &format!("bot: {ARTICLE}"),
        ]
    );
    // Two levels down: what was searched for, what the files really say, what was made of it.
    assert_eq!(
        texts(&society, &format!("{writing}.messages[3].meta._thread")).await,
        ["bot: fins @ anatomy.md", "user: anatomy.md:2: Fish have fins to swim with.", "bot: All that is known of swimming."]
    );
    assert_eq!(
        texts(&society, &format!("{writing}.messages[9].meta._thread")).await,
        [
            "bot: Nothing is wrong.",
            "user: The draft has 5 words and does not name: swimming; sleeping.",
            "bot: revise: more about swimming"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_aspects_are_researched_at_the_same_time() {
    // Whatever is about an aspect takes an hour.
    let (open_now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = most.clone();
    let model = ScriptedModel::new(move |request| {
        if editor::asked(request).0 == "source_search" {
            let open = open_now.fetch_add(1, Ordering::Relaxed) + 1;
            counted.fetch_max(open, Ordering::Relaxed);
        } else if editor::asked(request).0 == "finding_summary" {
            open_now.fetch_sub(1, Ordering::Relaxed);
        }
        editor::answer(request, |_, aspect| Duration::from_secs(if aspect.is_empty() { 0 } else { 3_600 }))
    });
    let society = society(ArticleCreationAgent, model).await;
    let start = tokio::time::Instant::now();
    assert_eq!(ask(&society, editor::TOPIC).await.unwrap(), ARTICLE);
    assert_eq!(most.load(Ordering::Relaxed), 3, "three searches were under way at once");
    let hours = start.elapsed().as_secs() / 3_600;
    assert_eq!(hours, 2, "two rounds of an hour each, not six");
}

#[tokio::test(start_paused = true)]
async fn a_research_that_fails_is_named_in_the_article_and_stops_nothing() {
    let society = society(ArticleCreationAgent, model()).await;
    let article = ask(&society, "fish with scales").await.unwrap();
    assert!(article.starts_with(&format!("{ARTICLE}\n\n---\n\n")), "{article}");
    assert!(
        article.contains("Missing, because its research failed: scales (") && article.contains("no word about scales"),
        "{article}"
    );
    let writing = texts(&society, "messages[1].meta._thread").await;
    assert!(writing[3].starts_with("bot: This came to nothing: "), "{writing:?}");
    assert_eq!(writing[5], "user: 1 aspects are researched, 1 are missing.");

    // When nothing at all could be researched, there is no article, and the conversation goes on.
    let none = ask(&society, "nothing but scales").await.unwrap();
    assert!(none.starts_with("This came to nothing: ") && none.contains("no aspect could be researched"), "{none}");
    assert_eq!(ask(&society, editor::TOPIC).await.unwrap(), ARTICLE);
}

#[tokio::test(start_paused = true)]
async fn a_draft_is_sent_back_twice_at_most_and_then_goes_out_with_the_objection() {
    let drafts = Arc::new(Mutex::new(Vec::new()));
    let noted = drafts.clone();
    let model = ScriptedModel::new(move |request| match editor::asked(request) {
        ("draft_writing", text) => {
            noted.lock().unwrap().push(text.to_owned());
            ScriptedReply::text("# Fish")
        }
        ("verdict_forming", _) => ScriptedReply::text("Revise.\nNot good enough."),
        _ => editor::answer(request, |_, _| Duration::ZERO),
    });
    let society = society(ArticleCreationAgent, model).await;
    let article = ask(&society, "fish").await.unwrap();
    assert_eq!(article, "# Fish\n\n---\n\nThe last review still asks for changes: Not good enough.\n");
    let drafts = drafts.lock().unwrap();
    assert_eq!(drafts.len(), 3);
    assert!(!drafts[0].contains("<changes>") && drafts[1].contains("<changes>\nNot good enough.\n</changes>"), "{drafts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_review_that_fails_leaves_the_article_and_says_so_in_the_language_of_the_topic() {
    let model = ScriptedModel::new(|request| match editor::asked(request).0 {
        "claim_comparison" => ScriptedReply::error(polis::ports::ModelError::Rejected { reason: "no glasses".to_owned() }),
        _ => editor::answer(request, |_, _| Duration::ZERO),
    });
    let society = society(ArticleCreationAgent, model).await;
    let article = ask(&society, "鱼").await.unwrap();
    assert!(article.starts_with("# Fish\n\n## breathing\n\nThin.\n\n---\n\n这一稿没有审阅结论："), "{article}");
    assert!(article.contains("no glasses"), "{article}");
}

#[tokio::test(start_paused = true)]
async fn stopped_after_every_commit_it_goes_on_and_no_finished_unit_is_run_again() {
    // Each search takes far longer than the one before: else any might be the first to end.
    let hours = |phase: &str, aspect: &str| match (phase, aspect) {
        ("source_search", "swimming") => 1,
        ("source_search", "sleeping") => 10,
        _ => 0,
    };
    let model = || {
        let delay = move |phase: &str, aspect: &str| Duration::from_secs(3_600 * hours(phase, aspect));
        ScriptedModel::new(move |request| editor::answer(request, delay))
    };
    let cast = Cast::new().with("root", ArticleCreationAgent);
    let survived = crash::at_every_commit(&cast, model, &[editor::TOPIC]).await.unwrap();
    assert!(survived.stops > 80, "{} stops", survived.stops);
    let is_unit = |recorded: &&Recorded| matches!(&recorded.event, Event::TurnStarted { behaviour, .. } if behaviour.to_string().contains('/'));
    // Outline, research, two drafts, two reviews, the end; three researches and two reviews of two units each.
    assert_eq!(survived.log.iter().filter(is_unit).count(), 7 + 3 * 2 + 2 * 2);
}
