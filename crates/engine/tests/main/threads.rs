//! The thread repository: what a turn writes is one append, what it reads is the tree (R001-R026, R105-R123).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polis_domain::{
    Event, Failure, Message, MessagePatch, Meta, MetaPath, Phase, Response, Sender, Seq, Settings, SubThreadPath, Task,
    Timestamp,
};
use polis_engine::{Agent, BatchUpdate, Cast, NewMessage, Ports, Society, ThreadPatch, Turn};
use polis_ports::{Clock, Log};
use serde_json::{Map, Value, json};

use crate::bed::{Bed, answer, ask, submit};
use polis_testkit::crash::CommitEnds;
use polis_testkit::{ManualClock, MemoryLog, Op, Program};

/// Runs one test's code as an agent.
macro_rules! scene {
    ($name:ident, |$turn:ident| $body:block) => {
        struct $name;
        impl Agent for $name {
            async fn execute_task(&self, $turn: &mut Turn) -> Result<Response, Failure> $body
        }
    };
}

async fn play(agent: impl Agent) -> (Bed, Society, Result<String, String>) {
    let bed = Bed { cast: Cast::new().with("programmed", agent), ..Bed::new() };
    let society = bed.open().await;
    let sent = submit(&society, vec![]).await;
    let told = answer(&society, &sent).await;
    (bed, society, told)
}

async fn tree(society: &Society) -> Value {
    serde_json::to_value(society.tree(&"root".into(), &SubThreadPath::main()).await.unwrap()).unwrap()
}

scene!(Nests, |turn| {
    let depth = turn.path().segments().len();
    if depth == 3 {
        return Ok(Response::new("the deepest"));
    }
    let path = turn.path();
    let holder = turn.say(format!("level {depth}")).await?;
    let below = turn.open_sub_thread(&path, &holder.id).await?;
    let task = Task::action(turn.task().id.clone(), "ProcessNestedSubThread", "");
    let text = turn.run_unit(&below, &"programmed".into(), task).await?;
    turn.update_message(&path, &holder.id, MessagePatch { text: Some(text.to_string()), ..MessagePatch::default() }).await?;
    Ok(Response::silent())
});

#[tokio::test(start_paused = true)]
async fn sub_threads_nest_in_the_meta_of_messages_and_results_float_up() {
    let (_, society, told) = play(Nests).await;
    assert_eq!(told.unwrap(), "the deepest");
    let tree = tree(&society).await;
    let mut path = SubThreadPath::create(1);
    for depth in 1..=3 {
        let sub = path.find(&tree).unwrap();
        assert_eq!(sub["settings"]["briefStatus"]["phase"], "initial_phase");
        assert_eq!(sub["messages"][0]["text"], "the deepest", "at depth {depth}");
        assert_eq!(sub["messages"][0]["sender"], "bot");
        let prefix = if depth == 1 { "sub_root_" } else { "nested_" };
        assert!(sub["id"].as_str().unwrap().starts_with(prefix), "{}", sub["id"]);
        path = path.child(0);
    }
    let alone = society.thread(&"root".into(), &"messages[1].meta._thread".parse().unwrap()).await.unwrap();
    assert_eq!(alone.messages.len(), 1);
    let nowhere = society.thread(&"root".into(), &"messages[7].meta._thread".parse().unwrap()).await.unwrap_err();
    assert_eq!(nowhere.code(), "unknown_thread");
}

scene!(GoesOn, |turn| {
    let said = |text: &str| NewMessage { sender: Sender::Bot, text: text.to_owned(), meta: Meta::new() };
    let main = turn.path();
    turn.add_messages(vec![said("one")], Vec::new()).await?;
    let second = turn.add_messages(vec![said("two")], Vec::new()).await?;
    turn.sleep(Duration::from_secs(1)).await?;
    // Where they stand is known without reading the thread, and what was changed is seen by whoever reads it next.
    let patch = MessagePatch { text: Some("second".to_owned()), ..MessagePatch::default() };
    let change = BatchUpdate::UpdateMessage { path: main.clone(), message: second[0].clone(), patch };
    turn.add_messages(Vec::new(), vec![change]).await?;
    let texts: Vec<_> = turn.thread(&main).await?.messages.iter().map(|message| message.text.clone()).collect();
    let refused = turn.add_messages(vec![said(&"x".repeat(300_000))], Vec::new()).await.unwrap_err();
    let last = turn.conclude(vec![said(&format!("{:?}, {}", &texts[1..], refused.code))], None).await?;
    Ok(Response::standing_in(last.id.clone(), &*last.text))
});

#[tokio::test(start_paused = true)]
async fn a_change_that_nothing_can_stand_against_goes_into_the_log_with_what_follows_it() {
    let bed = Bed { cast: Cast::new().with("programmed", GoesOn), ..Bed::new() };
    let ends = CommitEnds::default();
    let society = bed.open_on(ends.of(bed.log.clone())).await;
    let sent = submit(&society, vec![]).await;
    assert_eq!(answer(&society, &sent).await.unwrap(), r#"["one", "second"], text_too_long"#);
    let events = bed.events();
    assert!(
        !events.iter().any(|recorded| matches!(recorded.event, Event::TurnCrashed { .. })),
        "it is told that it is refused"
    );
    let place = |wanted: fn(&Event) -> bool| events.iter().rposition(|recorded| wanted(&recorded.event)).unwrap() as u64 + 1;
    let commit_of = |place: u64| ends.all().into_iter().find(|end| end.0 >= place).unwrap();
    let slept = place(|event| matches!(event, Event::EffectStarted { .. }));
    assert_eq!(commit_of(slept - 1), commit_of(slept), "the messages and the sleep that follows them");
    let settled = place(|event| matches!(event, Event::TurnSettled { .. }));
    assert_eq!(commit_of(settled - 1), commit_of(settled), "the last words and the end");
}

/// A clock that moves whenever somebody looks at it.
struct Restless(ManualClock, AtomicU64);

#[async_trait::async_trait]
impl Clock for Restless {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.now().0 + self.1.fetch_add(1, Ordering::Relaxed))
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.0.sleep_until(until).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_run_draws_the_same_ids_after_a_change_that_the_first_did_not_wait_for() {
    let bed = Bed { cast: Cast::new().with("programmed", GoesOn), ..Bed::new() };
    let open = async |log: Arc<MemoryLog>| {
        let clock = Restless(ManualClock::at(Timestamp(1_700_000_000_000)), AtomicU64::new(0));
        let ports = Ports { clock: Arc::new(clock), ..bed.ports(log) };
        Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
    };
    let society = open(bed.log.clone()).await;
    let sent = submit(&society, vec![]).await;
    let told = answer(&society, &sent).await.unwrap();
    society.stop(Duration::ZERO).await;
    let whole = bed.log.events(&"main".into());
    let changes =
        whole.iter().filter(|recorded| matches!(recorded.event, Event::MessageAdded { .. } | Event::MessageUpdated { .. }));
    let changes: Vec<_> = changes.map(|recorded| recorded.seq).collect();
    assert_eq!(changes.len(), 4, "each is a request of its own");
    for end in changes {
        let log = Arc::new(MemoryLog::new());
        log.append(&"main".into(), Seq(0), &whole[..end.0 as usize]).await.unwrap();
        let second = open(log).await;
        // One that has diverged stands still for ever.
        let answered = tokio::time::timeout(Duration::from_secs(3_600), answer(&second, &sent)).await;
        assert_eq!(answered, Ok(Ok(told.clone())), "stopped after event {end}");
    }
}

scene!(Writes, |turn| {
    let main = turn.path();
    let before = turn.thread(&main).await?;
    let first = turn.say("first").await?;
    turn.update_message(
        &main,
        &first.id,
        MessagePatch {
            meta: Map::from_iter([("kept".to_owned(), json!(1)), ("gone".to_owned(), json!(2))]).into(),
            ..MessagePatch::default()
        },
    )
    .await?;
    turn.update_message(
        &main,
        &first.id,
        MessagePatch { text: Some("changed".to_owned()), meta: Map::from_iter([("gone".to_owned(), Value::Null)]).into() },
    )
    .await?;
    let mut settings = turn.thread_settings(&main).await?;
    settings.rest.insert("colour".to_owned(), json!("blue"));
    turn.update_thread_settings(&main, settings).await?;
    let after = turn.thread(&main).await?;
    let told = json!({ "before": before.messages.len(), "message": after.messages.last(), "settings": after.settings });
    Ok(Response::new(told.to_string()))
});

#[tokio::test(start_paused = true)]
async fn an_update_changes_the_named_fields_and_no_other() {
    let (_, _, told) = play(Writes).await;
    let told: Value = serde_json::from_str(&told.unwrap()).unwrap();
    assert_eq!(told["before"], 1, "the user's message");
    assert_eq!(told["message"]["text"], "changed");
    assert_eq!(told["message"]["meta"], json!({ "kept": 1 }));
    assert_eq!(told["settings"], json!({ "briefStatus": { "phase": "initial_phase" }, "colour": "blue" }));
    assert!(told["message"]["id"].as_str().unwrap().starts_with("bot_"));
}

scene!(Batches, |turn| {
    let main = turn.path();
    let first = turn.say("first").await?;
    let sub = turn.open_sub_thread(&main, &first.id).await?;
    let settings = Settings { rest: Map::from_iter([("note".to_owned(), json!("n"))]).into(), ..Settings::default() };
    turn.batch_update(vec![
        BatchUpdate::UpdateMessage {
            path: main.clone(),
            message: first.id.clone(),
            patch: MessagePatch { text: Some("one".to_owned()), ..MessagePatch::default() },
        },
        BatchUpdate::AddMessage { path: sub.clone(), sender: Sender::User, text: "two".to_owned() },
        BatchUpdate::UpdateSubThread { path: sub.clone(), updates: ThreadPatch { settings: Some(settings), messages: None } },
    ])
    .await?;
    let wrong = turn
        .batch_update(vec![
            BatchUpdate::AddMessage { path: main.clone(), sender: Sender::Bot, text: "never".to_owned() },
            BatchUpdate::AddMessage { path: main.clone(), sender: Sender::Bot, text: "x".repeat(300_000) },
        ])
        .await;
    Ok(Response::new(wrong.unwrap_err().code.to_string()))
});

#[tokio::test(start_paused = true)]
async fn a_batch_is_one_append_or_none() {
    let (bed, society, told) = play(Batches).await;
    assert_eq!(told.unwrap(), "text_too_long");
    let tree = tree(&society).await;
    let texts: Vec<_> = tree["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    assert_eq!(texts, ["[]", "one", "text_too_long"]);
    let sub = &tree["messages"][1]["meta"]["_thread"];
    assert_eq!(sub["messages"][0]["text"], "two");
    assert!(sub["messages"][0]["id"].as_str().unwrap().starts_with("sub_user_"));
    assert_eq!(sub["settings"]["note"], "n");
    let together = bed.events().into_iter().filter(|recorded| recorded.event.effect().is_some_and(|id| id.n == 2));
    assert_eq!(together.count(), 4, "three changes and the mark in the turn's own thread");
}

scene!(BatchOfSubThread, |turn| {
    let main = turn.path();
    let first = turn.say("first").await?;
    let sub = turn.open_sub_thread(&main, &first.id).await?;
    turn.add_message(&sub, Sender::Bot, "old").await?;
    turn.suggest_phase_in(&sub, Phase::new("text_correction").unwrap()).await?;
    let mut messages = turn.thread(&sub).await?.messages;
    Arc::make_mut(&mut messages[0]).text = "new".to_owned();
    let (id, timestamp) = (turn.new_id("sub_user").into(), turn.now());
    let added = Message { id, sender: Sender::User, text: "more".to_owned(), timestamp, meta: Map::new().into() };
    messages.push(added.into());
    let update =
        |messages| BatchUpdate::UpdateSubThread { path: sub.clone(), updates: ThreadPatch { messages, settings: None } };
    turn.batch_update(vec![update(Some(messages))]).await?;
    let removed = turn.batch_update(vec![update(Some(Vec::new()))]).await.unwrap_err();
    Ok(Response::new(removed.code.to_string()))
});

#[tokio::test(start_paused = true)]
async fn a_batch_changes_any_field_of_a_sub_thread_and_leaves_the_others() {
    let (_, society, told) = play(BatchOfSubThread).await;
    assert_eq!(told.unwrap(), "not_saved");
    let tree = tree(&society).await;
    let sub = &tree["messages"][1]["meta"]["_thread"];
    let texts: Vec<_> = sub["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    assert_eq!(texts, ["new", "more"]);
    assert_eq!(
        sub["settings"]["_phaseUpdateSuggestion"]["phase"], "text_correction",
        "settings that were not named stay: {sub}"
    );
}

scene!(Saves, |turn| {
    let main = turn.path();
    let mut thread = turn.thread(&main).await?;
    Arc::make_mut(&mut thread.messages[0]).meta.insert("seen".to_owned(), json!(true));
    let id = turn.new_id("bot").into();
    let (text, timestamp) = ("added".to_owned(), turn.now());
    thread.messages.push(Message { id, sender: Sender::Bot, text, timestamp, meta: Map::new().into() }.into());
    thread.settings.rest.insert("saved".to_owned(), json!(1));
    turn.save_thread(&main, &thread).await?;
    turn.save_thread(&main, &thread).await?;
    thread.messages.remove(0);
    let removed = turn.save_thread(&main, &thread).await.unwrap_err();
    Ok(Response::new(removed.code.to_string()))
});

#[tokio::test(start_paused = true)]
async fn saving_a_changed_thread_appends_what_differs_and_nothing_else() {
    let (bed, society, told) = play(Saves).await;
    assert_eq!(told.unwrap(), "not_saved");
    let tree = tree(&society).await;
    assert_eq!(tree["messages"][0]["meta"]["seen"], true);
    assert_eq!(tree["messages"][1]["text"], "added");
    assert_eq!(tree["settings"]["saved"], 1);
    let changes = bed.events().into_iter().filter(|recorded| recorded.event.effect().is_some()).count();
    assert_eq!(changes, 3, "an update, an addition, the settings; once");
}

scene!(Slots, |turn| {
    let main = turn.path();
    let holder = turn.say("…").await?;
    let analysis = MetaPath::new("meta.threads.analysis").unwrap();
    let settings = Settings {
        brief_status: polis_domain::BriefStatus { phase: Phase::new("data_analysis").unwrap(), ..Default::default() },
        ..Default::default()
    };
    let meta = Map::from_iter([("dataSource".to_owned(), json!("a.csv"))]);
    let path = turn.open_sub_thread_at(&main, &holder.id, analysis.clone(), settings, meta.into()).await?;
    turn.add_message(&path, Sender::Bot, "inside").await?;
    let again = turn.open_sub_thread_at(&main, &holder.id, analysis, Settings::default(), Map::new().into()).await.unwrap_err();
    let missing = turn.thread(&main.child(9)).await.unwrap_err();
    Ok(Response::new(format!("{path} {} {}", again.code, missing.code)))
});

#[tokio::test(start_paused = true)]
async fn a_sub_thread_may_hang_anywhere_in_the_meta_but_only_once() {
    let (_, society, told) = play(Slots).await;
    assert_eq!(told.unwrap(), "messages[1].meta.threads.analysis slot_taken no_such_thread");
    let tree = tree(&society).await;
    let sub = &tree["messages"][1]["meta"]["threads"]["analysis"];
    assert_eq!(sub["settings"]["briefStatus"]["phase"], "data_analysis");
    assert_eq!(sub["meta"]["dataSource"], "a.csv");
    assert_eq!(sub["messages"][0]["text"], "inside");
}

#[tokio::test(start_paused = true)]
async fn units_run_at_once_and_a_failure_stays_the_result_of_its_own_unit() {
    let bed = Bed::new();
    let society = bed.open().await;
    let units =
        vec![Program(vec![Op::Sleep(50)]), Program(vec![Op::Fail("broken".into())]), Program(vec![Op::Think("x".into())])];
    assert_eq!(ask(&society, vec![Op::Units(units)]).await.unwrap(), "{slept} {!broken} {thought(x)}");
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_runs_next_and_answers_in_the_end() {
    let bed = Bed::new();
    let society = bed.open().await;
    let ops = vec![Op::Say("…".into()), Op::Then(Program(vec![Op::Think("more".into())]))];
    let first = submit(&society, ops).await;
    let second = submit(&society, vec![Op::Say("later".into())]).await;
    assert_eq!(answer(&society, &first).await.unwrap(), "thought(more)");
    assert_eq!(answer(&society, &second).await.unwrap(), "said:later");
    let order: Vec<_> = bed
        .events()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::TurnStarted { task, .. } => Some(task.name.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["message", "ContinueProcessing", "message"]);
}

scene!(Remembers, |turn| {
    let recent = turn.recent(3).await?;
    let texts: Vec<_> = recent.iter().map(|(index, message)| format!("{index}:{}", message.text)).collect();
    turn.say("aside").await?;
    Ok(Response::new(texts.join(",")))
});

#[tokio::test(start_paused = true)]
async fn a_turn_sees_the_newest_messages_with_their_true_places() {
    let bed = Bed { cast: Cast::new().with("programmed", Remembers), ..Bed::new() };
    let society = bed.open().await;
    for _ in 0..40 {
        let sent = society.submit("hello").await.unwrap();
        society.answer(&sent).await.unwrap();
    }
    let sent = society.submit("last").await.unwrap();
    let told = answer(&society, &sent).await.unwrap();
    assert!(told.starts_with("118:aside,119:") && told.ends_with(",120:last"), "{told}");
}

scene!(SeesAll, |turn| {
    let context = turn.context(200).await?;
    let first = turn.first_message().await;
    Ok(Response::new(format!("{} {first}", context.messages.len())))
});

#[tokio::test(start_paused = true)]
async fn a_turn_reads_from_the_log_only_what_is_not_in_memory() {
    let bed = Bed { cast: Cast::new().with("programmed", SeesAll), ..Bed::new() };
    let society = bed.open().await;
    let mut told = String::new();
    for n in 0..60 {
        let sent = society.submit(&format!("hello {n}")).await.unwrap();
        told = answer(&society, &sent).await.unwrap();
    }
    assert_eq!(told, "119 hello 0");
    let before = bed.log.thread_events_read();
    let next = async |society: &polis_engine::Society| {
        let sent = society.submit("next").await.unwrap();
        answer(society, &sent).await.unwrap()
    };
    assert_eq!(next(&society).await, "121 hello 0");
    assert_eq!(bed.log.thread_events_read() - before, 0, "a warm thread is in memory");
    society.stop(std::time::Duration::ZERO).await;

    let society = bed.open().await;
    let before = bed.log.thread_events_read();
    assert_eq!(next(&society).await, "123 hello 0");
    let cold = bed.log.thread_events_read() - before;
    assert!(cold >= 123, "a cold one is read once: {cold}");
    assert_eq!(next(&society).await, "125 hello 0");
    assert_eq!(bed.log.thread_events_read() - before - cold, 0);
}
