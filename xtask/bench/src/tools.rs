//! What a tool call costs on our side: one that does nothing, here; and one of an MCP server over stdio that does nothing, against
//! the same lines through the same pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use polis_domain::{AgentId, CallResult, EffectClass, EffectId, Failure, Response, Seq, SubThreadPath, ToolCall, TurnId};
use polis_engine::{Agent, Cast, Society, Turn};
use polis_ports::{CallContext, Toolbox};
use polis_testkit::{ScriptedModel, ScriptedTools};
use polis_tools::mcp::{McpOptions, McpServers, ServerSettings, ServerTransport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

/// Turns that call at once.
const AT_ONCE: usize = 64;
/// Calls of each.
const EACH: usize = 100;
/// Calls of a server, one after another.
const CALLS: usize = 2_000;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    for (name, kind, goal) in
        [("tool call, memory log: µs CPU", Kind::Memory, 50.0), ("tool call, durable: µs CPU", Kind::Durable, 150.0)]
    {
        let measured = (0..3).map(|_| world::runtime()?.block_on(local(kind))).collect::<Result<Vec<_>>>()?;
        let cost = world::median(measured);
        figures.add(name, cost, Goal::AtMost(goal), format!("a call that does nothing, {AT_ONCE} turns at once"));
    }
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        floors.push(bare()?);
        ours.push(world::runtime()?.block_on(mcp())?);
    }
    let (floor, ours) = (world::median(floors), world::median(ours));
    let detail = format!("{ours:.3} ms a call against {floor:.3} for the same line through bare pipes");
    figures.add("MCP call over stdio: ms added", ours - floor, Goal::AtMost(0.3), detail);
    Ok(())
}

/// Calls as often as its task says, and tells when it has: nobody needs to watch the society.
struct Calls {
    done: mpsc::Sender<()>,
}

impl Agent for Calls {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let count: usize = turn.task().message.parse().unwrap_or_default();
        for n in 0..count {
            let arguments = format!(r#"{{"n":{n}}}"#).into();
            let result = turn.call_tool(ToolCall { id: "c".into(), name: "noop".into(), arguments }).await;
            if result.is_error {
                return Err(Failure::new("failed", &*result.content));
            }
        }
        let _ = self.done.send(()).await;
        Ok(Response::new("done"))
    }
}

/// CPU microseconds of one call.
async fn local(kind: Kind) -> Result<f64> {
    let (log, _guard) = world::log(kind)?;
    let tools = ScriptedTools::new().with("noop", EffectClass::Read, |_, _| CallResult::good("ok"));
    let ports = world::ports(log, Arc::new(ScriptedModel::saying("yes")), Arc::new(tools));
    let (done, mut all) = mpsc::channel(AT_ONCE);
    let cast = Cast::new().with("calls", Calls { done });
    let society = Society::open("main".into(), ports, cast, world::options("calls")).await?;
    for n in 0..AT_ONCE {
        society.spawn(format!("a{n}").into(), "bench".into(), AgentId::root()).await?;
    }
    turns(&society, 0, &mut all).await?;
    let before = world::cpu();
    turns(&society, 0, &mut all).await?;
    let idle = world::cpu() - before;
    let before = world::cpu();
    turns(&society, EACH, &mut all).await?;
    let used = (world::cpu() - before).saturating_sub(idle);
    society.stop(Duration::ZERO).await;
    Ok(used.as_secs_f64() * 1e6 / (AT_ONCE * EACH) as f64)
}

/// One turn in every agent, with as many calls.
async fn turns(society: &Society, calls: usize, done: &mut mpsc::Receiver<()>) -> Result<()> {
    for n in 0..AT_ONCE {
        society.send(format!("a{n}").into(), &calls.to_string(), None).await?;
    }
    for _ in 0..AT_ONCE {
        done.recv().await.context("the society goes on")?;
    }
    Ok(())
}

/// Milliseconds of one call of a server, all told.
async fn mcp() -> Result<f64> {
    let own = std::env::current_exe()?;
    let server = ServerSettings::new("bench", ServerTransport::command(own.to_string_lossy(), ["mcp"]));
    let servers = McpServers::open([server], McpOptions::default());
    servers.settled(Duration::from_secs(10)).await;
    let context = CallContext {
        society: "main".into(),
        effect: EffectId { turn: TurnId(Seq(1)), n: 0 },
        agent: AgentId::root(),
        thread: "root".into(),
        task: "task".into(),
        path: SubThreadPath::main(),
        resource: None,
        application: Default::default(),
        seed: 0,
        artifacts: polis_ports::ArtifactStore::none(),
        host: None,
    };
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        let result = servers.call("bench__noop", "{}", &context).await?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
        ensure!(&*result.content == "ok", "it said {}", result.content);
    }
    servers.close().await;
    Ok(world::median(took))
}

/// Milliseconds of the same without a client: a line there, a line back.
fn bare() -> Result<f64> {
    let own = std::env::current_exe()?;
    let mut server = Command::new(own).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = server.stdin.take().context("it hears")?;
    let mut from = BufReader::new(server.stdout.take().context("it speaks")?);
    let mut took = Vec::with_capacity(CALLS);
    let mut line = String::new();
    for n in 0..CALLS {
        let start = Instant::now();
        let params = json!({ "name": "noop", "arguments": {} });
        // In one piece: the pipe has no buffer of its own.
        let request = format!("{}\n", json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params }));
        to.write_all(request.as_bytes())?;
        line.clear();
        from.read_line(&mut line)?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
    }
    drop(to);
    server.wait()?;
    Ok(world::median(took))
}

/// A server whose one tool does nothing.
pub(crate) fn serve() -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let result = match message["method"].as_str() {
            Some("ping") => json!({}),
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "bench", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{ "name": "noop", "inputSchema": { "type": "object" } }] }),
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": "ok" }] }),
            _ => Value::Null,
        };
        let answer = match (&message["id"], result) {
            (Value::Null, _) => continue,
            (id, Value::Null) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } })
            }
            (id, result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
