//! A team that writes a greeting, and a reviewer who does not like long words.

use std::sync::{Arc, Mutex};

use house_style::Reviewer;
use polis::ports::{ChatMessage, ModelRequest};
use polis::prelude::*;
use polis::workflow::{Language, PromptManager, Workflow};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply};
use serde_json::{Value, json};

/// Which of a team a request is for.
pub(crate) fn role(request: &ModelRequest) -> &'static str {
    ["planner", "executor", "verifier", "reviewer"]
        .into_iter()
        .find(|role| request.system.contains(&format!("`\"{role}-response\"`")))
        .expect("every request has the prompt of a role")
}

/// What somebody is told first.
pub(crate) fn told(request: &ModelRequest) -> &str {
    match request.messages.first() {
        Some(ChatMessage::User { text, .. }) => text,
        _ => "",
    }
}

/// What somebody was told: who, the system message, the first message.
pub(crate) type Told = Arc<Mutex<Vec<(&'static str, String, String)>>>;

/// A team whose reviewer says what `review` says, with a note of what each is told.
pub(crate) fn model(review: fn(&ModelRequest) -> ScriptedReply, noted: &Told) -> ScriptedModel {
    let noted = noted.clone();
    ScriptedModel::new(move |request| {
        noted.lock().unwrap().push((role(request), request.system.to_string(), told(request).to_owned()));
        line(request, review)
    })
}

fn line(request: &ModelRequest, review: fn(&ModelRequest) -> ScriptedReply) -> ScriptedReply {
    match role(request) {
        "planner" => {
            let what = if told(request).contains("shorter") { "Write a shorter greeting." } else { "Write a greeting." };
            let todos = json!([{ "id": "greet", "title": "Greet", "description": what, "priority": 1 }]);
            said("planner-response", json!({ "summary": "One greeting.", "needsMorePlanning": false, "todos": todos }))
        }
        "executor" => {
            let text = if told(request).contains("shorter") { "Hello." } else { "Salutations." };
            let todos = json!([{ "id": "greet", "status": "completed" }]);
            said(
                "executor-response",
                json!({ "summary": text, "taskCompleted": true, "nextAction": "complete", "todos": todos }),
            )
        }
        "verifier" => {
            let is_last = told(request).contains("Hello.");
            let text = if is_last { "Hello." } else { "Salutations." };
            let evidence = json!([if is_last { "m3" } else { "m1" }]);
            let tasks = json!([{ "id": "greet", "completed": true, "feedback": "it is there", "evidence": evidence }]);
            said(
                "verifier-response",
                json!({ "allCompleted": true, "userNeedsSatisfied": true, "overallFeedback": "good", "summary": text,
                        "improvements": [], "tasks": tasks }),
            )
        }
        _ => review(request),
    }
}

/// Objects to the long word and to nothing else.
pub(crate) fn strict(request: &ModelRequest) -> ScriptedReply {
    let remarks = match told(request).contains("Salutations.") {
        true => json!([{ "task": "greet", "remark": "Write a shorter word." }]),
        false => json!([]),
    };
    let verdict = if remarks == json!([]) { "keeps" } else { "breaks" };
    said("reviewer-response", json!({ "verdict": verdict, "remarks": remarks }))
}

pub(crate) fn said(component: &str, mut fields: Value) -> ScriptedReply {
    fields["type"] = "component".into();
    fields["component"] = component.into();
    ScriptedReply::text(&fields.to_string())
}

/// A society with a reviewer whose business contexts lie in a folder.
pub(crate) fn cast(folder: &std::path::Path) -> Cast {
    let prompts = PromptManager::new(Language::En).with_folder(folder);
    let engine = Reviewer::new().unwrap().joining(prompts).unwrap();
    Cast::new().with("root", Workflow::new(engine))
}

pub(crate) async fn society(folder: &std::path::Path, model: ScriptedModel) -> Society {
    polis_testkit::open(cast(folder), Ports::new(MemoryLog::new()).with_model(model)).await
}
