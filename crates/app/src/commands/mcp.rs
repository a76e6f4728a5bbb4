//! `polis mcp`: the society as an MCP server on stdio, one message a line. Each is handed to the polis that runs, over HTTP, or
//! to the society in this process, and what comes back is written as lines.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::stdin_lines::{Line, StdinLines};
use crate::transport::Transport;
use crate::{out, signals, wiring};

/// How long answers under way may take once nobody writes to us any more.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Lines that wait to be written.
const QUEUED: usize = 64;

const PARSE_ERROR: i64 = -32700;
const INTERNAL_ERROR: i64 = -32603;

pub(crate) async fn mcp(config: &Config) -> Result<Exit, CliError> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Run).await?;
    transport.announce(config);
    let session = format!("{:016x}{:016x}", wiring::entropy()?, wiring::entropy()?);
    let (replies, mut outgoing) = mpsc::channel::<Value>(QUEUED);
    let mut lines = StdinLines::start();
    let mut running = FuturesUnordered::new();
    let mut ending = None;
    let exit = loop {
        let last_answers = async {
            match ending {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break Exit::Stopped,
            Some(message) = outgoing.recv() => out::line(&message.to_string())?,
            Some(()) = running.next() => {}
            line = lines.next(), if ending.is_none() => match line {
                None => ending = Some(tokio::time::Instant::now() + LAST_ANSWERS),
                Some(Line::Garbled) => out::line(&fault(&Value::Null, PARSE_ERROR, "that line is not UTF-8").to_string())?,
                Some(Line::Text(line)) if line.trim().is_empty() => {}
                Some(Line::Text(line)) => running.push(forward(&transport, &session, line, replies.clone())),
            },
            () = last_answers => break Exit::Done,
        }
        if ending.is_some() && running.is_empty() && outgoing.is_empty() {
            break Exit::Done;
        }
    };
    drop(running);
    transport.close(true).await;
    Ok(exit)
}

/// Forwards a message and writes the reply. Only a request gets an error back.
async fn forward(transport: &Transport, session: &str, line: String, replies: mpsc::Sender<Value>) {
    let id = serde_json::from_str::<Value>(&line).ok().and_then(|mut message| Some(message.get_mut("id")?.take()));
    if let (Err(error), Some(id)) = (exchange(transport, session, &line, &replies).await, &id) {
        let _ = replies.send(fault(id, INTERNAL_ERROR, &error.to_string())).await;
    }
}

async fn exchange(transport: &Transport, session: &str, line: &str, replies: &mpsc::Sender<Value>) -> Result<(), CliError> {
    match transport {
        Transport::Http(client) => {
            let mut messages = client.mcp(session, line).await?;
            while let Some(message) = messages.next().await? {
                let _ = replies.send(message).await;
            }
        }
        Transport::InProcess(here) => {
            let mut messages = here.opened.state.mcp(session, line).await;
            while let Some(message) = messages.next().await {
                let _ = replies.send(message).await;
            }
        }
    }
    Ok(())
}

fn fault(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
