//! How models are called, as requests, conversations and clients of OpenAI's API set it.

use std::sync::{Arc, Mutex};

use polis_ports::ModelSettings;
use polis_testkit::{MemoryLog, Op, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::openai::{CHAT, error, program, user};
use crate::support::Rig;

type Heard = Arc<Mutex<Vec<ModelSettings>>>;

/// A server whose model notes the settings that it is called with.
async fn listening() -> (Rig, Heard) {
    let heard = Heard::default();
    let noted = heard.clone();
    let model = ScriptedModel::new(move |request| {
        // The programmed agent sets this one itself.
        noted.lock().unwrap().push(ModelSettings { max_tokens: None, ..request.settings.clone() });
        ScriptedReply::text("a thought")
    });
    (Rig::on(Arc::new(MemoryLog::new()), model, ScriptedTools::new()).await, heard)
}

fn last(heard: &Heard) -> Value {
    json!(heard.lock().unwrap().last().expect("the model was asked"))
}

fn think() -> String {
    program(vec![Op::Think("x".into())])
}

#[tokio::test]
async fn clients_of_openai_set_how_models_are_called() {
    let (rig, heard) = listening().await;
    let chat = json!({ "model": "polis", "messages": [user(&think())], "temperature": 0.2, "top_p": 0.9, "stop": ["END"],
        "seed": 7, "reasoning_effort": "high", "service_tier": "flex" });
    rig.post(CHAT, chat).await.ok();
    let want = json!({ "temperature": 0.2, "topP": 0.9, "stop": "END", "seed": 7, "effort": "high", "serviceTier": "flex" });
    assert_eq!(last(&heard), want);

    let response = json!({ "model": "polis", "input": think(), "temperature": 0.1, "max_output_tokens": 50,
        "reasoning": { "effort": "none" } });
    let given = rig.post("/v1/responses", response).await.ok();
    assert_eq!(last(&heard), json!({ "temperature": 0.1, "effort": "none" }));
    let again = rig.get(&format!("/v1/responses/{}", given["id"].as_str().unwrap())).await.ok();
    for object in [given, again] {
        let echoed = (&object["temperature"], &object["max_output_tokens"], &object["reasoning"]["effort"]);
        assert_eq!(echoed, (&json!(0.1), &json!(50), &json!("none")));
    }

    let bad = json!({ "model": "polis", "messages": [user("hi")], "reasoning_effort": "much" });
    assert_eq!(error(&rig.post(CHAT, bad).await), (400, "bad_setting".to_owned(), json!("reasoning_effort")));
}

#[tokio::test]
async fn a_request_is_done_with_its_own_settings_over_those_of_its_conversation() {
    let (rig, heard) = listening().await;
    let first = json!({ "text": think(), "settings": { "effort": "low", "temperature": 1 } });
    let accepted = rig.post("/api/submit", first).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    assert_eq!(last(&heard), json!({ "effort": "low", "temperature": 1.0 }));
    let path = format!("/api/conversations/{}", accepted["conversation"].as_str().unwrap());
    assert_eq!(rig.get(&path).await.ok()["settings"], json!({ "effort": "low", "temperature": 1.0 }), "a new one keeps them");

    let second = json!({ "text": think(), "conversation": accepted["conversation"], "settings": { "temperature": 0 } });
    let accepted = rig.post("/api/submit", second).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    assert_eq!(last(&heard), json!({ "effort": "low", "temperature": 0.0 }));

    let changed = rig.post(&path, json!({ "settings": { "effort": "max" } })).await.ok();
    assert_eq!(changed["settings"], json!({ "effort": "max" }));
    let third = json!({ "agentId": accepted["conversation"], "text": think(), "settings": { "seed": 3 } });
    let accepted = rig.post("/api/send", third).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    assert_eq!(last(&heard), json!({ "effort": "max", "seed": 3 }));

    for (path, body) in [
        ("/api/submit", json!({ "text": "hi", "settings": { "temperature": 3 } })),
        ("/api/send", json!({ "agentId": "root", "text": "hi", "settings": { "maxTokens": 0 } })),
        ("/api/conversations", json!({ "settings": { "topP": 2 } })),
    ] {
        let refused = rig.post(path, body).await;
        assert_eq!(refused.problem(), (400, "bad_setting".to_owned()), "{path}");
    }
}
