//! What an agent of others tells: its tasks and messages, as far as somebody here needs them.

use serde_json::Value;

use super::{fields, text};

/// Most of a text that is taken over, in bytes.
const MOST: usize = 200 << 10;

/// What came of sending: a task that is under way, or an answer at once.
pub(super) fn sent(result: &Value) -> Option<Value> {
    if let Some(task) = result.get("task").filter(|task| task.is_object()) {
        let id = text(task, "id")?.to_owned();
        let context = text(task, "contextId").map(str::to_owned);
        return Some(fields([("taskId", Some(id)), ("contextId", context), ("", None), ("", None), ("", None)]));
    }
    let message = result.get("message").filter(|message| message.is_object())?;
    let context = text(message, "contextId").map(str::to_owned);
    Some(fields([("answer", Some(words(&message["parts"]))), ("contextId", context), ("", None), ("", None), ("", None)]))
}

/// Where a task stands that is over, or whose turn is ours; nothing while it is worked on.
pub(super) fn rests(task: &Value) -> Option<Value> {
    let state = match text(&task["status"], "state")? {
        "TASK_STATE_COMPLETED" => "completed",
        "TASK_STATE_FAILED" => "failed",
        "TASK_STATE_CANCELED" => "canceled",
        "TASK_STATE_REJECTED" => "rejected",
        "TASK_STATE_INPUT_REQUIRED" => "input_required",
        "TASK_STATE_AUTH_REQUIRED" => "auth_required",
        _ => return None,
    };
    let said = &task["status"]["message"];
    let made: Vec<String> = task["artifacts"].as_array().into_iter().flatten().map(|it| words(&it["parts"])).collect();
    let mut answer = if state == "completed" { made.join("\n\n") } else { String::new() };
    if answer.trim().is_empty() {
        answer = words(&said["parts"]);
    }
    if answer.trim().is_empty() {
        let mut history = task["history"].as_array().into_iter().flatten();
        answer = history.rfind(|it| it["role"] == "ROLE_AGENT").map(|it| words(&it["parts"])).unwrap_or_default();
    }
    let approval = text(&said["metadata"], "approvalId").map(str::to_owned);
    let context = text(task, "contextId").map(str::to_owned);
    Some(fields([
        ("state", Some(state.to_owned())),
        ("text", Some(answer)),
        ("contextId", context),
        ("approvalId", approval),
        ("", None),
    ]))
}

/// Parts in words. Data is JSON; of a file it is said where it lies.
fn words(parts: &Value) -> String {
    let part = |part: &Value| {
        let name = text(part, "filename").unwrap_or("file");
        if let Some(words) = text(part, "text") {
            Some(words.to_owned())
        } else if let Some(data) = part.get("data").filter(|data| !data.is_null()) {
            Some(data.to_string())
        } else if let Some(url) = text(part, "url") {
            Some(format!("[{name}: {url}]"))
        } else {
            text(part, "raw").map(|raw| format!("[{name}: {} bytes that were not taken over]", raw.len() / 4 * 3))
        }
    };
    let mut words = parts.as_array().into_iter().flatten().filter_map(part).collect::<Vec<_>>().join("\n");
    if words.len() > MOST {
        words.truncate(words.floor_char_boundary(MOST));
        words.push_str("\n[The rest was too long.]");
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_told_once_it_rests() {
        let task = |state: &str| json!({ "id": "t", "contextId": "c", "status": { "state": state } });
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED", "TASK_STATE_NEW"] {
            assert_eq!(rests(&task(state)), None, "{state}");
        }
        let mut done = task("TASK_STATE_COMPLETED");
        done["artifacts"] = json!([{ "parts": [{ "text": "a" }, { "data": { "b": 1 } }] }, { "parts": [{ "url": "http://h", "filename": "f" }] }]);
        done["status"]["message"] = json!({ "parts": [{ "text": "not this" }] });
        let told = json!({ "state": "completed", "text": "a\n{\"b\":1}\n\n[f: http://h]", "contextId": "c" });
        assert_eq!(rests(&done), Some(told));
        let mut plain = task("TASK_STATE_COMPLETED");
        plain["history"] =
            json!([{ "role": "ROLE_AGENT", "parts": [{ "text": "said" }] }, { "role": "ROLE_USER", "parts": [] }]);
        assert_eq!(rests(&plain).unwrap()["text"], json!("said"));
        let mut asking = task("TASK_STATE_INPUT_REQUIRED");
        asking["status"]["message"] = json!({ "parts": [{ "text": "which?" }], "metadata": { "approvalId": "9.1" } });
        let told = json!({ "state": "input_required", "text": "which?", "contextId": "c", "approvalId": "9.1" });
        assert_eq!(rests(&asking), Some(told));
    }

    #[test]
    fn an_answer_may_come_at_once() {
        let message = json!({ "message": { "messageId": "1", "parts": [{ "text": "hi" }], "contextId": "" } });
        assert_eq!(sent(&message), Some(json!({ "answer": "hi" })));
        assert_eq!(sent(&json!({ "task": { "id": "t", "contextId": "c" } })), Some(json!({ "taskId": "t", "contextId": "c" })));
        assert_eq!(sent(&json!({ "task": {} })), None);
        assert_eq!(sent(&json!({})), None);
    }
}
