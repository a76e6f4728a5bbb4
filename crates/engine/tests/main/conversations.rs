//! Conversations: any number side by side; none waits for another, and each is there again after a restart.

use std::sync::{Arc, Mutex};

use polis_domain::{
    AgentId, Conversation, ConversationChange, ConversationPlace, ConversationSettings, Digest, IdempotencyKey, Message, Meta,
    ModelSettings, OpenKind, Outcome, Request, Resolution, Role, Sender, Task, Timestamp, Verdict,
};
use polis_engine::{ConversationStart, Ports, Sent, Society, replay};
use polis_testkit::{Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply};
use serde_json::{Map, json};

use crate::bed::*;

fn think(text: &str) -> Op {
    Op::Think(text.to_owned())
}

async fn converse(society: &Society, ops: Vec<Op>) -> Sent {
    society.converse(ConversationStart::default(), &Program(ops).text(), None, Map::new()).await.unwrap()
}

async fn conversation(society: &Society) -> Conversation {
    society.look(|spine| spine.conversation(&AgentId::from("trip")).cloned()).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_waits_holds_up_no_other_and_all_go_on_after_a_restart() {
    let bed = Bed::new();
    let society = bed.open().await;
    let waiting = converse(&society, vec![Op::Approve("may I?".to_owned())]).await;
    let approval = open_effect(&society, |kind, _| matches!(kind, OpenKind::Approval(_))).await;
    for n in 0..8 {
        let sent = converse(&society, vec![think(&format!("thought {n}"))]).await;
        assert_ne!(sent.to, waiting.to);
        assert!(answer(&society, &sent).await.unwrap().contains(&format!("thought {n}")));
    }
    assert!(ask(&society, vec![think("root too")]).await.unwrap().contains("root too"));
    let again = converse(&society, vec![Op::Approve("and I?".to_owned())]).await;
    until(&society, |spine| (spine.turns.len() == 2).then_some(())).await;
    society.stop(PATIENCE).await;

    let society = bed.open().await;
    let count = society.look(|spine| spine.conversations.len()).await.unwrap();
    assert_eq!(count, 3, "root, and two that wait, are in memory");
    let idle = society.idle_conversations(ConversationPlace::START, 20).await.unwrap();
    assert_eq!(idle.len(), 8, "those that are done are not");
    let (done, entry) = idle[3].clone();
    let messages = entry.head().unwrap().messages;
    let sent = society.send(done.clone(), &Program(vec![think("once more")]).text(), None).await.unwrap();
    assert!(answer(&society, &sent).await.unwrap().contains("once more"));
    let now = society.look(move |spine| spine.threads[&done.main_thread()].messages).await.unwrap();
    assert_eq!(now, 2 * messages, "an idle one goes on where it was");
    let yes = Outcome::Verdict(Verdict::yes());
    society.resolve(approval, Resolution::Outcome(yes)).await.unwrap();
    assert!(answer(&society, &waiting).await.is_ok());
    assert!(society.look(move |spine| spine.agents[&again.to].turn.is_some()).await.unwrap(), "the other still waits");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_start_is_the_same_conversation() {
    let bed = Bed::new();
    let society = bed.open().await;
    let request = Request { key: IdempotencyKey::of(["k"]), fingerprint: Digest::of(["x"]) };
    let first = converse(&society.once(request), vec![think("one")]).await;
    let repeat = converse(&society.once(request), vec![think("one")]).await;
    assert_eq!(first, repeat);
    assert_eq!(society.look(|spine| spine.conversations.len()).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_model_is_called_with_settings_of_the_request_over_the_conversation_over_the_role() {
    let mut bed = Bed::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let model = ScriptedModel::new(move |request| {
        noted.lock().unwrap().push(request.settings.clone());
        ScriptedReply::text("fine")
    });
    let settings = |pairs: &[(&str, &str)]| {
        let mut settings = ModelSettings::default();
        pairs.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
        settings
    };
    let of_role = settings(&[("effort", "low"), ("temperature", "1"), ("cache", "long"), ("max_tokens", "5")]);
    bed.options.role = Arc::new(Role { settings: of_role, ..Role::clone(&bed.options.role) });
    let ports = Ports { model: Arc::new(model), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    let model_settings = settings(&[("temperature", "0.5"), ("seed", "7"), ("effort", "high")]);
    let start = ConversationStart {
        settings: ConversationSettings { model_settings, ..ConversationSettings::default() },
        ..ConversationStart::default()
    };
    let asked = json!(settings(&[("temperature", "0.2")]));
    let meta = Map::from_iter([(Task::MODEL_SETTINGS.to_owned(), asked)]);
    let sent = society.converse(start, &Program(vec![think("x")]).text(), None, meta).await.unwrap();
    answer(&society, &sent).await.unwrap();
    let want = settings(&[("temperature", "0.2"), ("seed", "7"), ("effort", "high"), ("cache", "long")]);
    let max_tokens = Some(ProgrammedAgent::REPLY_TOKENS);
    assert_eq!(*heard.lock().unwrap(), [ModelSettings { max_tokens, ..want }], "the agent's own limit counts over the role's");
    let change = ConversationChange { settings: Some(ConversationSettings::default()), ..ConversationChange::default() };
    society.change_conversation(sent.to.clone(), change).await.unwrap();
    let replayed = replay(society.id(), &bed.ports(bed.log.clone()), &bed.cast).await.unwrap();
    assert!(replayed.divergences.is_empty(), "other settings by now are no divergence: {replayed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_has_its_person_its_title_its_past_and_its_model() {
    let bed = Bed::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let models = asked.clone();
    let model = ScriptedModel::new(move |request| {
        models.lock().unwrap().push(request.model.to_string());
        ScriptedReply::text("fine")
    });
    let ports = Ports { model: Arc::new(model), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    let past = |sender, text: &str| {
        let (id, timestamp) = (text.into(), Timestamp(1));
        Arc::new(Message { id, sender, text: text.to_owned(), timestamp, meta: Meta::new() })
    };
    let start = ConversationStart {
        id: Some("trip".into()),
        settings: ConversationSettings { model: Some("small/model".into()), ..ConversationSettings::default() },
        messages: vec![past(Sender::User, "hello"), past(Sender::Bot, "hi")],
        ..ConversationStart::default()
    };
    let text = Program(vec![think("where to?")]).text();
    let ann = society.for_person("ann".into());
    let sent = ann.converse(start, &text, None, Map::new()).await.unwrap();
    answer(&society, &sent).await.unwrap();
    let thread = society.thread(&"trip".into(), &"".parse().unwrap()).await.unwrap();
    let texts: Vec<_> = thread.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts[..3], ["hello", "hi", text.as_str()]);
    let envelopes = society.messages(&sent.task_id).await.unwrap();
    assert_eq!(envelopes[0].1.person, Some("ann".into()));

    let trip = conversation(&society).await;
    assert_eq!((trip.person.as_str(), trip.title.starts_with("[")), ("ann", true), "{trip:?}");
    let change = ConversationChange {
        title: Some("Rome".into()),
        settings: Some(ConversationSettings::default()),
        ..ConversationChange::default()
    };
    society.change_conversation("trip".into(), change).await.unwrap();
    assert_eq!(&*conversation(&society).await.title, "Rome");
    let sent = society.send("trip".into(), &text, None).await.unwrap();
    answer(&society, &sent).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["small/model", ""]);
    let taken = ConversationStart { id: Some("trip".into()), ..ConversationStart::default() };
    assert_eq!(society.start_conversation(taken).await.unwrap_err().code(), "name_taken");
}
