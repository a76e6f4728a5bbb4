//! Reads the tasks and messages that a remote agent returns.

use serde_json::Value;

use super::{fields, text};

/// Longest text that is taken over, in bytes.
const MAX_TEXT_BYTES: usize = 200 << 10;

/// The result of sending a message: a running task, or an immediate answer.
pub(super) fn read_send_result(result: &Value) -> Option<Value> {
    if let Some(task) = result.get("task").filter(|task| task.is_object()) {
        let id = text(task, "id")?.to_owned();
        let context = text(task, "contextId").map(str::to_owned);
        return Some(fields([("taskId", Some(id)), ("contextId", context), ("", None), ("", None), ("", None)]));
    }
    let message = result.get("message").filter(|message| message.is_object())?;
    let context = text(message, "contextId").map(str::to_owned);
    Some(fields([
        ("answer", Some(parts_to_text(&message["parts"]))),
        ("contextId", context),
        ("", None),
        ("", None),
        ("", None),
    ]))
}

/// The state of a task that has ended or needs input; none while it is running.
pub(super) fn read_settled_task(task: &Value) -> Option<Value> {
    let state = match text(&task["status"], "state")? {
        "TASK_STATE_COMPLETED" => "completed",
        "TASK_STATE_FAILED" => "failed",
        "TASK_STATE_CANCELED" => "canceled",
        "TASK_STATE_REJECTED" => "rejected",
        "TASK_STATE_INPUT_REQUIRED" => "input_required",
        "TASK_STATE_AUTH_REQUIRED" => "auth_required",
        _ => return None,
    };
    let status_message = &task["status"]["message"];
    let artifacts: Vec<String> =
        task["artifacts"].as_array().into_iter().flatten().map(|it| parts_to_text(&it["parts"])).collect();
    let mut answer = if state == "completed" { artifacts.join("\n\n") } else { String::new() };
    if answer.trim().is_empty() {
        answer = parts_to_text(&status_message["parts"]);
    }
    if answer.trim().is_empty() {
        let mut history = task["history"].as_array().into_iter().flatten();
        answer = history.rfind(|it| it["role"] == "ROLE_AGENT").map(|it| parts_to_text(&it["parts"])).unwrap_or_default();
    }
    let approval = text(&status_message["metadata"], "approvalId").map(str::to_owned);
    let context = text(task, "contextId").map(str::to_owned);
    Some(fields([
        ("state", Some(state.to_owned())),
        ("text", Some(answer)),
        ("contextId", context),
        ("approvalId", approval),
        ("", None),
    ]))
}

/// Message parts as text. Data becomes JSON, a file its name and address.
fn parts_to_text(parts: &Value) -> String {
    let part = |part: &Value| {
        let name = text(part, "filename").unwrap_or("file");
        if let Some(parts_to_text) = text(part, "text") {
            Some(parts_to_text.to_owned())
        } else if let Some(data) = part.get("data").filter(|data| !data.is_null()) {
            Some(data.to_string())
        } else if let Some(url) = text(part, "url") {
            Some(format!("[{name}: {url}]"))
        } else {
            text(part, "raw").map(|raw| format!("[{name}: {} bytes that were not taken over]", raw.len() / 4 * 3))
        }
    };
    let mut parts_to_text = parts.as_array().into_iter().flatten().filter_map(part).collect::<Vec<_>>().join("\n");
    if parts_to_text.len() > MAX_TEXT_BYTES {
        parts_to_text.truncate(parts_to_text.floor_char_boundary(MAX_TEXT_BYTES));
        parts_to_text.push_str("\n[The rest was too long.]");
    }
    parts_to_text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_told_once_it_rests() {
        let task = |state: &str| json!({ "id": "t", "contextId": "c", "status": { "state": state } });
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED", "TASK_STATE_NEW"] {
            assert_eq!(read_settled_task(&task(state)), None, "{state}");
        }
        let mut done = task("TASK_STATE_COMPLETED");
        done["artifacts"] = json!([{ "parts": [{ "text": "a" }, { "data": { "b": 1 } }] }, { "parts": [{ "url": "http://h", "filename": "f" }] }]);
        done["status"]["message"] = json!({ "parts": [{ "text": "not this" }] });
        let expected = json!({ "state": "completed", "text": "a\n{\"b\":1}\n\n[f: http://h]", "contextId": "c" });
        assert_eq!(read_settled_task(&done), Some(expected));
        let mut plain = task("TASK_STATE_COMPLETED");
        plain["history"] =
            json!([{ "role": "ROLE_AGENT", "parts": [{ "text": "said" }] }, { "role": "ROLE_USER", "parts": [] }]);
        assert_eq!(read_settled_task(&plain).unwrap()["text"], json!("said"));
        let mut asking = task("TASK_STATE_INPUT_REQUIRED");
        asking["status"]["message"] = json!({ "parts": [{ "text": "which?" }], "metadata": { "approvalId": "9.1" } });
        let expected = json!({ "state": "input_required", "text": "which?", "contextId": "c", "approvalId": "9.1" });
        assert_eq!(read_settled_task(&asking), Some(expected));
    }

    #[test]
    fn an_answer_may_come_at_once() {
        let message = json!({ "message": { "messageId": "1", "parts": [{ "text": "hi" }], "contextId": "" } });
        assert_eq!(read_send_result(&message), Some(json!({ "answer": "hi" })));
        assert_eq!(
            read_send_result(&json!({ "task": { "id": "t", "contextId": "c" } })),
            Some(json!({ "taskId": "t", "contextId": "c" }))
        );
        assert_eq!(read_send_result(&json!({ "task": {} })), None);
        assert_eq!(read_send_result(&json!({})), None);
    }
}
