//! What whoever watches a society is told while a workflow runs (D07).

use polis_domain::{AgentId, Artifact, ArtifactId, Event, Seq};
use polis_engine::WatchEvent;
use polis_ports::ComponentChunk;

use super::bed::{engine, open, team};

#[tokio::test(start_paused = true)]
async fn chunks_come_with_their_address_before_the_reply_is_in_the_log() {
    let bed = open(&team(), engine()).await;
    let mut watch = bed.society.watch(Seq(0));
    let sent = bed.society.submit("a and b?").await.unwrap();
    let mut seen = Vec::new();
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Step(chunk) => seen.push(chunk),
            WatchEvent::Event(recorded) => match &recorded.event {
                Event::MessageSent { envelope, .. } if envelope.to.is_user() && envelope.task_id == sent.task_id => break,
                _ => {}
            },
            WatchEvent::Delta(_) => {}
        }
    }
    let of = |agent: &str, action: &str| {
        let found = seen.iter().find(|chunk| &*chunk.agent_type == agent && &*chunk.action == action);
        found.map(|chunk| chunk.path.to_string()).unwrap_or_default()
    };
    assert_eq!(of("planner", "planning"), "messages[1].meta._thread.messages[0].meta._thread");
    assert_eq!(of("executor", "calling_tool"), "messages[1].meta._thread.messages[2].meta._thread");
    assert_eq!(of("verifier", "summarizing"), "messages[1].meta._thread.messages[4].meta._thread");
    assert!(seen.iter().all(|chunk| chunk.task == sent.task_id));
    assert!(seen.iter().all(|chunk| chunk.todo.is_some() == (&*chunk.agent_type == "executor")));
    assert!(["a", "b"].iter().all(|todo| seen.iter().any(|chunk| chunk.todo.as_deref() == Some(*todo))));
    let ends: Vec<_> = seen.iter().filter(|chunk| chunk.duration_ms.is_some()).collect();
    let used = ends.iter().filter_map(|chunk| chunk.usage).map(|usage| usage.output_tokens).sum::<u64>();
    assert_eq!((ends.len(), used), (8, 6), "six replies and two calls end");
    assert!(ends.iter().any(|chunk| &*chunk.action == "calling_tool" && chunk.component.as_deref() == Some("look")));
    let todo = seen.iter().find_map(|chunk| match &chunk.chunk {
        Some(ComponentChunk::Item { field, index: 1, value }) if field == "todos" => Some(value["id"].clone()),
        _ => None,
    });
    assert_eq!(todo, Some("b".into()));
}

#[tokio::test(start_paused = true)]
async fn every_role_reads_the_names_of_the_files_that_came_with_the_request() {
    let bed = open(&team(), engine()).await;
    let picture = Artifact::new(ArtifactId::new([7; 32]), "cat.png", "image/png", 3);
    let mut meta = serde_json::Map::new();
    Artifact::attach(&mut meta, std::slice::from_ref(&picture));
    let sent = bed.society.send_with_meta(AgentId::root(), "what is this?", None, meta).await.unwrap();
    bed.society.answer(&sent).await.unwrap();
    for role in ["planner", "executor", "verifier"] {
        let heard = bed.heard(role);
        assert!(heard[0].first.contains(&format!("what is this?\n[sent along: {picture}]")), "{role}: {}", heard[0].first);
    }
}
