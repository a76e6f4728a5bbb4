//! Views: what a user interface shows first, whatever the length of the history.

use polis_testkit::{Op, Program};
use serde_json::{Value, json};

use crate::support::Rig;

fn list<'a>(view: &'a Value, key: &str) -> &'a [Value] {
    view[key].as_array().unwrap_or_else(|| panic!("{key}: {view}"))
}

fn find<'a>(view: &'a Value, key: &str, id: &Value) -> &'a Value {
    list(view, key).iter().find(|record| record["id"] == *id).unwrap_or_else(|| panic!("no {id} in {key}: {view}"))
}

fn turns_of_thread(view: &Value, thread: &str) -> Vec<u64> {
    let items = list(find(view, "threads", &json!(thread)), "items");
    items.iter().filter(|item| item["kind"] == "turn").map(|item| item["turn"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn pages_of_a_conversation_put_together_are_the_conversation() {
    let rig = Rig::start().await;
    for n in 0..45 {
        rig.run(vec![Op::Say(format!("saying {n}"))]).await;
    }
    let mut seen: Vec<u64> = Vec::new();
    let (mut before, mut pages) = (String::new(), 0);
    loop {
        let view = rig.get(&format!("/api/views/conversation/root?limit=20{before}")).await.ok();
        assert_eq!(view["seq"], json!(rig.last()));
        let mut page = turns_of_thread(&view, "root");
        assert!(page.len() <= 20);
        page.extend(&seen);
        seen = page;
        pages += 1;
        match find(&view, "threads", &json!("root"))["earlier"].as_u64() {
            Some(earlier) => before = format!("&before={earlier}"),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages), (45, 3));
    assert!(seen.is_sorted());
}

#[tokio::test]
async fn a_page_begins_at_the_request_that_is_wanted_and_says_what_follows() {
    let rig = Rig::start().await;
    let mut tasks = Vec::new();
    for _ in 0..9 {
        tasks.push(rig.run(vec![Op::Say("x".into())]).await.0);
    }
    let view = rig.get(&format!("/api/views/conversation/root?task={}&limit=3", tasks[4])).await.ok();
    let turns = turns_of_thread(&view, "root");
    let of = |turn: u64| find(&view, "turns", &json!(turn))["task"]["id"].clone();
    assert_eq!(turns.iter().map(|turn| of(*turn)).collect::<Vec<_>>(), [4, 5, 6].map(|n| json!(tasks[n])));
    let root = find(&view, "threads", &json!("root"));
    assert_eq!(root["earlier"], json!(turns[0]));
    let next = rig.get(&format!("/api/views/turn/{}", root["later"])).await.ok();
    assert_eq!(find(&next, "turns", &root["later"])["task"]["id"], json!(tasks[7]));
    let missing = rig.get("/api/views/conversation/root?task=nobody").await;
    assert_eq!(missing.problem(), (404, "unknown_task".to_owned()));
    assert_eq!(rig.get("/api/views/conversation/nobody").await.problem(), (404, "unknown_agent".to_owned()));
    assert_eq!(rig.get("/api/views/turn/1").await.problem(), (404, "unknown_turn".to_owned()));
    assert_eq!(rig.get("/api/views/turn/x").await.problem(), (400, "bad_id".to_owned()));
}

#[tokio::test]
async fn the_first_request_of_a_conversation_has_nothing_before_it() {
    let rig = Rig::start().await;
    let program = polis_testkit::Program(vec![Op::Say("x".into())]).text();
    let accepted = rig.post("/api/submit", json!({ "text": program })).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    let id = accepted["conversation"].as_str().unwrap();
    let view = rig.get(&format!("/api/views/conversation/{id}?task={}", accepted["taskId"].as_str().unwrap())).await.ok();
    assert_eq!((turns_of_thread(&view, id).len(), &find(&view, "threads", &json!(id))["earlier"]), (1, &Value::Null));
}

#[tokio::test]
async fn a_settled_turn_is_brief_with_its_delegations_and_its_view_has_the_steps() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let unit =
        Program(vec![Op::Call(vec![("note".into(), "a".into())]), Op::Units(vec![Program(vec![Op::Think("deep".into())])])]);
    let asked = Program(vec![Op::Think("for root".into())]);
    let long = "long ".repeat(200);
    let ops = vec![
        Op::Call(vec![("note".into(), long.clone())]),
        Op::Units(vec![unit]),
        Op::Ask { agent: "bob".into(), program: asked, patience_ms: 10_000 },
    ];
    let (task, _) = rig.run(ops).await;
    let view = rig.get("/api/views/conversation/root").await.ok();
    let id = turns_of_thread(&view, "root").last().copied().unwrap();
    let turn = find(&view, "turns", &json!(id));
    assert_eq!((&turn["task"]["id"], &turn["settlement"], &turn["brief"]), (&json!(task), &json!("done"), &json!(true)));
    // Two tools and two model calls: its own, those of the unit and of the unit below, and bob's.
    assert_eq!((&turn["tools"], &turn["spent"]["requests"]), (&json!(2), &json!(2)), "{turn}");
    let kinds: Vec<&str> = list(turn, "effects").iter().map(|id| kind(find(&view, "effects", id))).collect();
    assert_eq!(kinds, ["unit", "ask"], "only delegations are listed");
    assert_eq!(turn["omitted"], json!(1));
    for delegation in list(turn, "effects") {
        let child = &find(&view, "effects", delegation)["children"][0];
        assert_eq!(find(&view, "turns", child)["parent"], *delegation);
    }
    let whole = rig.get(&format!("/api/views/turn/{id}")).await.ok();
    let turn = find(&whole, "turns", &json!(id));
    assert_eq!((&turn["brief"], &turn["omitted"]), (&json!(false), &json!(0)));
    let tool = find(&whole, "effects", &list(turn, "effects")[0]);
    assert!(tool["effect"]["tool"]["arguments"].as_str().unwrap().contains(&long), "{tool}");

    let tree = rig.get(&format!("/api/views/task/{task}")).await.ok();
    let mut agents: Vec<&str> = list(&tree, "turns").iter().map(|turn| turn["agent"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["bob", "root", "root", "root"], "the turn, its unit, the unit below, and bob");
    assert_eq!(find(&tree, "requests", &json!(task))["spent"]["requests"], json!(2));
    assert_eq!(rig.get("/api/views/task/nobody").await.problem(), (404, "unknown_task".to_owned()));
    let trace = rig.get("/api/views/trace").await.ok();
    assert_eq!(find(&trace, "requests", &json!(task))["spent"]["requests"], json!(2));
    assert_eq!(list(&trace, "costs").len(), 2);
}

fn kind(effect: &Value) -> &str {
    effect["effect"].as_object().unwrap().keys().next().unwrap()
}

#[tokio::test]
async fn a_view_has_what_waits_and_the_open_turn_with_its_steps() {
    let rig = Rig::start().await;
    rig.post(
        "/api/submit",
        json!({ "conversation": "root", "text": Program(vec![Op::Think("x".into()), Op::Approve("may I?".into())]).text() }),
    )
    .await
    .ok();
    while rig.get("/api/approvals").await.ok()["approvals"].as_array().unwrap().is_empty() {}
    let view = rig.get("/api/views/conversation/root").await.ok();
    let [waiting] = list(&view, "waiting") else { panic!("{view}") };
    assert_eq!((&waiting["what"]["kind"], &waiting["what"]["question"]), (&json!("approval"), &json!("may I?")));
    assert_eq!(view["waitingCount"], json!(1));
    let [turn] = list(&view, "turns") else { panic!("{view}") };
    assert_eq!((&turn["brief"], list(turn, "effects").len()), (&json!(false), 2));
    assert_eq!(list(&view, "requests")[0]["open"], json!([turn["id"]]));
    assert_eq!(rig.get("/api/views/inbox").await.ok()["waiting"], view["waiting"]);
    rig.post(&format!("/api/approvals/{}", waiting["id"].as_str().unwrap()), json!({ "approved": true })).await.ok();
    while !rig.get("/api/tasks").await.ok()["tasks"].as_array().unwrap().is_empty() {}
    let after = rig.get("/api/views/inbox").await.ok();
    assert_eq!((list(&after, "waiting").len(), &after["waitingCount"]), (0, &json!(0)));
}

#[tokio::test]
async fn requests_are_listed_from_the_newest_on_and_found_by_their_words() {
    let rig = Rig::start().await;
    let mut tasks = Vec::new();
    for n in 0..7 {
        tasks.insert(0, json!(rig.run(vec![Op::Say(format!("Number {n}"))]).await.0));
    }
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let view = rig.get(&format!("/api/views/requests?limit=3{before}")).await.ok();
        seen.extend(list(&view, "requests").iter().map(|request| request["id"].clone()));
        match view["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, tasks);
    let found = rig.get("/api/views/requests?find=NUMBER%203").await.ok();
    let [request] = list(&found, "requests") else { panic!("{found}") };
    assert_eq!((&request["id"], &found["next"]), (&tasks[3], &Value::Null));
    assert!(request["endedAt"].is_u64());
}

#[tokio::test]
async fn the_organisation_is_shown_as_it_is_and_as_it_was() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("ann".into())]).await;
    let then = rig.last();
    rig.run(vec![Op::Spawn("bob".into()), Op::Terminate("ann".into(), 10)]).await;
    let names = |view: &Value| -> Vec<String> {
        list(view, "agents")
            .iter()
            .filter(|agent| agent["terminatedAt"].is_null())
            .map(|agent| agent["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let now = rig.get("/api/views/organisation").await.ok();
    assert_eq!(names(&now), ["root", "bob"]);
    assert_eq!(list(&now, "agents").len(), 3, "those that were terminated are listed as such");
    let past = rig.get(&format!("/api/views/organisation?at={then}")).await.ok();
    assert_eq!((names(&past), &past["seq"]), (vec!["root".to_owned(), "ann".to_owned()], &json!(then)));
    assert!(past["event"]["name"].is_string() && past["event"]["at"].is_u64());
    let late = rig.get("/api/views/organisation?at=99999").await;
    assert_eq!(late.problem(), (409, "no_such_event".to_owned()));
    let first = rig.get("/api/views/organisation?limit=1").await.ok();
    let after = first["next"].as_str().unwrap().replace('~', "%7E");
    let rest = rig.get(&format!("/api/views/organisation?limit=9&after={after}")).await.ok();
    assert_eq!([list(&first, "agents"), list(&rest, "agents")].concat(), list(&now, "agents"));
}

#[tokio::test]
async fn a_view_is_as_large_after_many_requests_as_after_some() {
    let rig = Rig::start().await;
    let sizes = async |rounds: usize| {
        for _ in 0..rounds {
            rig.run(vec![Op::Think("x".into()), Op::Call(vec![("note".into(), "a".into())])]).await;
        }
        let mut sizes = Vec::new();
        for target in ["conversation/root", "trace", "inbox", "organisation", "requests"] {
            sizes.push(rig.get(&format!("/api/views/{target}")).await.body.len() as f64);
        }
        sizes
    };
    let (some, many) = (sizes(60).await, sizes(340).await);
    for (before, after) in some.iter().zip(&many) {
        assert!((after / before - 1.0).abs() < 0.1, "{some:?} {many:?}");
    }
}

#[tokio::test]
async fn a_turn_that_is_longer_than_a_view_reads_is_still_in_its_conversation() {
    let rig = Rig::start().await;
    let (task, _) = rig.run(vec![Op::Say("x".into()); 9_000]).await;
    let view = rig.get("/api/views/conversation/root").await.ok();
    let [turn] = list(&view, "turns") else { panic!("{}", list(&view, "turns").len()) };
    assert_eq!((&turn["task"]["id"], &turn["settlement"]), (&json!(task), &json!("done")));
    assert!(list(find(&view, "threads", &json!("root")), "items").len() > 1_000);
}
