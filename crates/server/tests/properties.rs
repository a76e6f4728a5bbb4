//! What the documents promise of the routes, over random requests (P4, P5).

use polis_domain::{AgentId, Envelope, MessageKind, ReplyTo, Seq, TaskId};
use polis_testkit::{Op, Program, expected};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Rig, society};

/// One request: to whom, what is done for it, and whether it belongs to the one before.
type Asked = (usize, Vec<Op>, bool);

const NAMES: [&str; 3] = ["root", "ann", "bob"];

fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let op = prop_oneof![3 => "[a-z][a-z ]{0,7}".prop_map(Op::Tell), 1 => "[a-z]{1,3}".prop_map(Op::Say)];
    prop::collection::vec((0..NAMES.len(), prop::collection::vec(op, 1..4), any::<bool>()), 1..3)
}

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })
}

/// A runtime and a server with all agents, for all cases.
fn rig() -> (tokio::runtime::Runtime, Rig) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rig = runtime.block_on(async {
        let rig = Rig::start().await;
        for name in &NAMES[1..] {
            rig.society.spawn((*name).into(), "worker".into(), AgentId::root()).await.unwrap();
        }
        rig
    });
    (runtime, rig)
}

/// The message at a place of the log.
fn envelope_at(rig: &Rig, seq: u64) -> Envelope {
    let events = rig.log.events(&society());
    Envelope::clone(events[seq as usize - 1].event.envelope().unwrap())
}

/// Waits for the answer to what was said at a place.
async fn answered(rig: &Rig, task: &TaskId, seq: u64) {
    let mut watch = rig.society.watch(Seq(seq));
    loop {
        let recorded = watch.next_event().await.unwrap().unwrap();
        let ends =
            |envelope: &Envelope| envelope.to.is_user() && envelope.task_id == *task && envelope.kind != MessageKind::Message;
        if recorded.event.envelope().is_some_and(|envelope| ends(envelope)) {
            return;
        }
    }
}

/// P4: what comes over HTTP is sent on as what a person types, and the ids that are given back are those of the message.
#[test]
fn what_comes_over_http_is_sent_on_like_what_is_typed() {
    let (runtime, rig) = rig();
    let case = |asked: Vec<Asked>| {
        runtime.block_on(async {
            for (to, ops, _) in &asked {
                let (name, text) = (NAMES[*to], Program(ops.clone()).text());
                let accepted = match *to {
                    0 => rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok(),
                    _ => rig.post("/api/send", json!({ "agentId": name, "text": text })).await.ok(),
                };
                let came = envelope_at(&rig, accepted["seq"].as_u64().unwrap());
                assert_eq!((json!(came.id), json!(came.task_id)), (accepted["messageId"].clone(), accepted["taskId"].clone()));
                answered(&rig, &came.task_id, accepted["seq"].as_u64().unwrap()).await;

                let sent = rig.society.send(name.into(), &text, None).await.unwrap();
                let typed = envelope_at(&rig, sent.seq.0);
                answered(&rig, &sent.task_id, sent.seq.0).await;
                assert_ne!((&came.id, &came.task_id), (&typed.id, &typed.task_id));
                assert_eq!(came.reply_to, ReplyTo::User);
                assert_eq!(Envelope { id: typed.id.clone(), task_id: typed.task_id.clone(), ..came }, typed);
            }
        });
        Ok(())
    };
    runner().run(&requests(), case).unwrap();
}

/// P5: what is asked for by its task is everything that the person was told about it, in that order.
#[test]
fn everything_that_the_person_was_told_is_listed_in_order() {
    let (runtime, rig) = rig();
    let case = |asked: Vec<Asked>| {
        runtime.block_on(async {
            let mut told: Vec<(Value, Vec<(String, String)>)> = Vec::new();
            for (to, ops, goes_on) in &asked {
                let (name, program) = (NAMES[*to], Program(ops.clone()));
                let task = told.last().filter(|_| *goes_on).map(|(task, _)| task.clone());
                let body = json!({ "agentId": name, "text": program.text(), "taskId": task });
                let accepted = rig.post("/api/send", body).await.ok();
                let task = accepted["taskId"].clone();
                answered(&rig, &task.as_str().unwrap().into(), accepted["seq"].as_u64().unwrap()).await;
                let texts = ops.iter().filter_map(|op| match op {
                    Op::Tell(text) => Some(text.clone()),
                    _ => None,
                });
                let all: Vec<_> = texts.chain(expected(&program)).map(|text| (name.to_owned(), text)).collect();
                match told.last_mut().filter(|(known, _)| *known == task) {
                    Some((_, known)) => known.extend(all),
                    None => told.push((task, all)),
                }
            }
            for (task, all) in told {
                let listed = rig.get(&format!("/api/messages/{}", task.as_str().unwrap())).await.ok();
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let listed = listed["messages"].as_array().unwrap().iter();
                let listed: Vec<_> = listed.map(|it| (text(&it["from"]), text(&it["payload"]["text"]))).collect();
                assert_eq!(listed, all);
            }
        });
        Ok(())
    };
    runner().run(&requests(), case).unwrap();
}
