//! What a reviewer does to a workflow.

use polis::ports::{ChatMessage, ModelRequest};
use polis::{Event, Seq, WatchEvent};
use polis_testkit::crash::at_every_commit;
use polis_testkit::{ScriptedReply, ask};
use serde_json::json;

use super::bed::{Told, cast, model, said, society, strict};

fn roles(told: &Told) -> Vec<&'static str> {
    told.lock().unwrap().iter().map(|(role, ..)| *role).collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_reviewer_objects_to_is_done_again_before_anybody_verifies() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reviewer.md"), "Words are short.").unwrap();
    let told = Told::default();
    let society = society(folder.path(), model(strict, &told)).await;
    assert_eq!(ask(&society, "Greet me").await.unwrap(), "Hello.");
    let team = ["planner", "executor", "reviewer", "planner", "executor", "reviewer", "verifier"];
    assert_eq!(roles(&told), team);
    let told = told.lock().unwrap();
    assert!(told[2].1.contains("## House style\n\nWords are short.\n"), "its core template with the business context");
    assert!(told[2].2.contains("## greet\n\nSalutations."), "{}", told[2].2);
    assert!(told[3].2.contains("- greet: Write a shorter word."), "the planner hears of it: {}", told[3].2);
    assert!(told[6].2.contains("[m4] the reviewer said: The house style is kept."), "and the verifier: {}", told[6].2);
}

#[tokio::test(start_paused = true)]
async fn it_works_in_a_sub_thread_of_its_own_and_is_seen_there() {
    let folder = tempfile::tempdir().unwrap();
    let society = society(folder.path(), model(strict, &Told::default())).await;
    let mut watch = society.watch(Seq(0));
    let sent = society.submit("Greet me").await.unwrap();
    let mut seen = Vec::new();
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Step(chunk) if &*chunk.agent_type == "reviewer" => seen.push(chunk.path.to_string()),
            WatchEvent::Event(recorded) => match &recorded.event {
                Event::MessageSent { envelope, .. } if envelope.to.is_user() && envelope.task_id == sent.task_id => break,
                _ => {}
            },
            _ => {}
        }
    }
    let path = "messages[1].meta._thread.messages[3].meta._thread";
    assert_eq!(seen.first().map(String::as_str), Some(path));
    let thread = society.thread(&"root".into(), &path.parse().unwrap()).await.unwrap();
    assert_eq!(thread.messages.last().unwrap().text, "The house style is broken.");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_cannot_be_read_is_asked_for_again_with_the_reasons() {
    fn clumsy(request: &ModelRequest) -> ScriptedReply {
        match request.messages.last() {
            Some(ChatMessage::User { text, .. }) if text.contains("could not be used") => {
                assert!(text.contains("- remarks: is empty; with \"breaks\""), "{text}");
                ScriptedReply::text("Here:\n```json\n{\"verdict\":\"keeps\",\"remarks\":[],}\n```")
            }
            _ => said("reviewer-response", json!({ "verdict": "breaks", "remarks": [] })),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let told = Told::default();
    let society = society(folder.path(), model(clumsy, &told)).await;
    assert_eq!(ask(&society, "Greet me").await.unwrap(), "Salutations.");
    assert_eq!(roles(&told), ["planner", "executor", "reviewer", "reviewer", "verifier"]);
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_who_says_nothing_of_use_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let told = Told::default();
    let society = society(folder.path(), model(|_| ScriptedReply::text("Fine by me!"), &told)).await;
    assert_eq!(ask(&society, "Greet me").await.unwrap(), "Salutations.");
    let verifier = told.lock().unwrap().last().unwrap().2.clone();
    assert!(verifier.contains("the reviewer said: the reviewer-response cannot be read after 3 tries"), "{verifier}");
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_commit_it_comes_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let survived = at_every_commit(&cast(folder.path()), || model(strict, &Told::default()), &["Greet me"]).await.unwrap();
    assert!(survived.stops > 30, "{}", survived.stops);
}
