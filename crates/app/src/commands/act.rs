//! `polis send`, `polis cancel`, `polis terminate` and `polis compress`: telling the society something, whether it runs now or later.

use polis_api::{Accepted, Api, ApiError};
use polis_domain::{AgentId, ModelSettings, TaskId};
use serde_json::json;

use crate::cli::{Cancel, Children, Compress, Send, Terminate};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{out, suggest};

pub(crate) async fn send(config: &Config, args: &Send) -> Result<Exit, CliError> {
    let request = polis_api::Send {
        agent_id: args.agent.as_str().into(),
        text: args.text.join(" "),
        task_id: args.task.as_deref().map(TaskId::from),
        settings: ModelSettings::default(),
        plan_approval: None,
        context: Default::default(),
        artifacts: Vec::new(),
    };
    let Accepted { task_id, message_id, seq, .. } = enqueue(config, &args.agent, async |api| api.send(request).await).await?;
    if args.json {
        let sent = json!({ "messageId": message_id, "taskId": task_id, "seq": seq });
        out::line(&sent.to_string())?;
    } else {
        out::line(&format!("sent {message_id} for task {task_id}"))?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn cancel(config: &Config, args: &Cancel) -> Result<Exit, CliError> {
    let task = TaskId::from(args.task.as_str());
    let request = polis_api::Cancel { reason: args.reason.join(" "), turn: None };
    enqueue(config, &args.task, async |api| api.cancel(&task, request).await).await?;
    out::note(&format!("polis: task {task} cancelled"));
    Ok(Exit::Done)
}

pub(crate) async fn terminate(config: &Config, args: &Terminate) -> Result<Exit, CliError> {
    let agent = AgentId::from(args.agent.as_str());
    let children = match args.children {
        Children::Cascade => polis_domain::Children::Cascade,
        Children::Detach => polis_domain::Children::Detach,
        Children::Refuse => polis_domain::Children::Refuse,
    };
    let request = polis_api::Terminate { children, reason: args.reason.join(" "), now: args.now };
    let terminated = enqueue(config, &args.agent, async |api| api.terminate(&agent, request).await).await?;
    let how = if terminated.ok { "is gone" } else { "terminates when it has finished its queue" };
    out::note(&format!("polis: {agent} {how}"));
    Ok(Exit::Done)
}

pub(crate) async fn compress(config: &Config, args: &Compress) -> Result<Exit, CliError> {
    let agent = AgentId::from(args.agent.as_str());
    let request = polis_api::Compress { undo: args.undo };
    let compressing = enqueue(config, &args.agent, async |api| api.compress(&agent, request).await).await?;
    match compressing.task_id {
        Some(task) => out::note(&format!("polis: {agent} compresses its conversation as its next task, {task}")),
        None => out::note(&format!("polis: the last compression of {agent} is undone")),
    }
    Ok(Exit::Done)
}

/// Calls an operation that changes something about what was named. If no society runs, the change is in the log for the next start.
async fn enqueue<T>(
    config: &Config,
    typed: &str,
    operation: impl AsyncFnOnce(&dyn Api) -> Result<T, ApiError>,
) -> Result<T, CliError> {
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let done = match operation(transport.api()).await {
        Ok(done) => Ok(done),
        Err(error) => Err(suggest::about_agent(error, transport.api(), typed).await),
    };
    if let (Transport::InProcess(_), Ok(_)) = (&transport, &done) {
        out::note(
            "polis: recorded in the log; no society is running, so it is handled at the next start (polis serve, polis chat)",
        );
    }
    transport.close(false).await;
    done
}
