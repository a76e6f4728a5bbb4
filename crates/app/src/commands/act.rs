//! `polis send`, `polis cancel`, `polis terminate` and `polis compress`: telling the society something, whether it runs now or later.

use serde_json::{Value, json};

use crate::address::encoded;
use crate::cli::{Cancel, Children, Compress, Send, Terminate};
use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};
use polis_api::Accepted;

pub(crate) async fn send(config: &Config, args: &Send) -> Result<Exit, Trouble> {
    let mut body = json!({ "agentId": args.agent, "text": args.text.join(" ") });
    if let Some(task) = &args.task {
        body["taskId"] = json!(task);
    }
    let Accepted { task_id, message_id, seq } = tell(config, "/api/send", &body).await?;
    if args.json {
        let sent = json!({ "messageId": message_id, "taskId": task_id, "seq": seq });
        out::line(&sent.to_string())?;
    } else {
        out::line(&format!("sent {message_id} for task {task_id}"))?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn cancel(config: &Config, args: &Cancel) -> Result<Exit, Trouble> {
    let target = format!("/api/tasks/{}/cancel", encoded(&args.task));
    tell::<Value>(config, &target, &json!({ "reason": args.reason.join(" ") })).await?;
    out::note(&format!("polis: task {} cancelled", args.task));
    Ok(Exit::Done)
}

pub(crate) async fn terminate(config: &Config, args: &Terminate) -> Result<Exit, Trouble> {
    let target = format!("/api/agents/{}/terminate", encoded(&args.agent));
    let children = match args.children {
        Children::Cascade => "cascade",
        Children::Detach => "detach",
        Children::Refuse => "refuse",
    };
    let body = json!({ "reason": args.reason.join(" "), "children": children, "now": args.now });
    let told: Value = tell(config, &target, &body).await?;
    let how = if told["ok"] == true { "is terminated" } else { "terminates when it has finished its queue" };
    out::note(&format!("polis: {} {how}", args.agent));
    Ok(Exit::Done)
}

pub(crate) async fn compress(config: &Config, args: &Compress) -> Result<Exit, Trouble> {
    let target = format!("/api/agents/{}/compress", encoded(&args.agent));
    let told: Value = tell(config, &target, &json!({ "undo": args.undo })).await?;
    match told["taskId"].as_str() {
        Some(task) => out::note(&format!("polis: {} compresses its conversation as its next task, {task}", args.agent)),
        None => out::note(&format!("polis: the last compression of {} is undone", args.agent)),
    }
    Ok(Exit::Done)
}

pub(super) async fn tell<T: serde::de::DeserializeOwned>(config: &Config, target: &str, body: &Value) -> Result<T, Trouble> {
    let door = Door::open(config, Purpose::Tell).await?;
    let told = door.post(target, body).await;
    if let (Door::Here(_), Ok(_)) = (&door, &told) {
        out::note(
            "polis: recorded in the log; no society is running, so it is handled at the next start (polis serve, polis chat)",
        );
    }
    door.close(false).await;
    told
}
