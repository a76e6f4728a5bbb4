//! Reads what a reviewer wrote.

use polis::workflow::{RoleReply, TaskJudgement};
use serde_json::{Map, Value};

/// A verdict with its remarks, or everything that is wrong with it.
pub(crate) fn read(reply: &Map<String, Value>) -> Result<RoleReply, Vec<String>> {
    let text = |value: &Value, name: &str| value[name].as_str().map(str::trim).unwrap_or_default().to_owned();
    let remarks = reply.get("remarks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let verdict = reply.get("verdict").and_then(Value::as_str).unwrap_or_default();
    let mut problems = Vec::new();
    let mut tasks = Vec::new();
    for (place, remark) in remarks.iter().enumerate() {
        let (id, feedback) = (text(remark, "task"), text(remark, "remark"));
        if id.is_empty() || feedback.is_empty() {
            problems.push(format!("remarks[{place}]: must be an object with a task and a remark"));
        }
        tasks.push(TaskJudgement { id, completed: false, feedback, evidence: Vec::new() });
    }
    match (verdict, tasks.is_empty()) {
        ("keeps", true) => {}
        ("breaks", false) => {}
        ("keeps", false) => problems.push("verdict: is \"keeps\", but there are remarks; make them agree".to_owned()),
        ("breaks", true) => problems.push("remarks: is empty; with \"breaks\" it must say what to write instead".to_owned()),
        _ => problems.push("verdict: must be \"keeps\" or \"breaks\"".to_owned()),
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let text = if tasks.is_empty() { "The house style is kept.".to_owned() } else { "The house style is broken.".to_owned() };
    Ok(RoleReply { text, improvements: Vec::new(), tasks })
}
