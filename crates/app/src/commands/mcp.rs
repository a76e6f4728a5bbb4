//! `polis mcp`: the society as an MCP server on stdio, one message a line. Each is handed to the route `/mcp` of the polis that
//! runs, or of the one in this process, and what comes back is written as lines.

use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, stream};
use polis_client::Sse;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::lines::{Line, Lines};
use crate::trouble::{Exit, Trouble};
use crate::{out, signals, wiring};

/// How long answers under way may take once nobody writes to us any more.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Lines that wait to be written.
const QUEUED: usize = 64;

const PARSE_ERROR: i64 = -32700;
const INTERNAL_ERROR: i64 = -32603;

pub(crate) async fn mcp(config: &Config) -> Result<Exit, Trouble> {
    let stop = signals::watch();
    let door = Door::open(config, Purpose::Work).await?;
    door.announce(config);
    let session = format!("{:016x}{:016x}", wiring::entropy()?, wiring::entropy()?);
    let target = format!("/mcp?via=stdio&session={session}");
    let (say, mut said) = mpsc::channel::<Value>(QUEUED);
    let mut lines = Lines::start();
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
            Some(message) = said.recv() => out::line(&message.to_string())?,
            Some(()) = running.next() => {}
            line = lines.next(), if ending.is_none() => match line {
                None => ending = Some(tokio::time::Instant::now() + LAST_ANSWERS),
                Some(Line::Garbled) => out::line(&fault(&Value::Null, PARSE_ERROR, "that line is not UTF-8").to_string())?,
                Some(Line::Text(line)) if line.trim().is_empty() => {}
                Some(Line::Text(line)) => running.push(hand_on(&door, &target, line, say.clone())),
            },
            () = last_answers => break Exit::Done,
        }
        if ending.is_some() && running.is_empty() && said.is_empty() {
            break Exit::Done;
        }
    };
    drop(running);
    door.close(true).await;
    Ok(exit)
}

/// Hands a message on and says what comes back. Only a request has to hear of trouble.
async fn hand_on(door: &Door, target: &str, line: String, say: mpsc::Sender<Value>) {
    let id = serde_json::from_str::<Value>(&line).ok().and_then(|mut message| Some(message.get_mut("id")?.take()));
    if let (Err(trouble), Some(id)) = (exchange(door, target, line, &say).await, &id) {
        let _ = say.send(fault(id, INTERNAL_ERROR, &trouble.to_string())).await;
    }
}

async fn exchange(door: &Door, target: &str, line: String, say: &mpsc::Sender<Value>) -> Result<(), Trouble> {
    let gone = |error: std::io::Error| Trouble::new("server_gone", format!("the answer is incomplete: {error}"));
    let strange = |error: serde_json::Error| Trouble::new("strange_answer", format!("the answer cannot be parsed: {error}"));
    let mut body = door.post_raw(target, line).await?.body;
    let Some(first) = body.next().await else { return Ok(()) };
    let first = first.map_err(gone)?;
    if first.starts_with(b"{") {
        let mut whole = first.to_vec();
        while let Some(chunk) = body.next().await {
            whole.extend_from_slice(&chunk.map_err(gone)?);
        }
        let message: Value = serde_json::from_slice(&whole).map_err(strange)?;
        if message.get("jsonrpc").is_none() {
            let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
            return Err(Trouble::new(text("code"), text("detail")));
        }
        let _ = say.send(message).await;
        return Ok(());
    }
    let mut events = Sse::new(Box::pin(stream::iter([Ok(first)]).chain(body)));
    while let Some(event) = events.next().await? {
        let _ = say.send(serde_json::from_str(&event.data).map_err(strange)?).await;
    }
    Ok(())
}

fn fault(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
