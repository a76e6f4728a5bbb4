//! Nodes that share a log in PostgreSQL, on this machine: runs with one, two and three of them, and what societies cost a node in which
//! nothing happens. Model, database, nodes and clients share the processors, so three nodes are not three times as fast; CPU says
//! what they cost.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use polis_engine::{Branch, SystemClock, fork};
use polis_store_postgres::{Options, PostgresLog};
use polis_testkit::postgres::Server;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::figures::{Figures, Goal};
use crate::mock::Mock;
use crate::product::{Follower, Program, request, whole};
use crate::world;

/// Societies that are at work.
const SOCIETIES: usize = 12;

/// Requests that are made in each of them, one after another, by each of its clients.
const EACH: usize = 10;
const CLIENTS: usize = 4;

/// Societies in which nothing happens.
const IDLE: usize = 10_000;

/// How long a node that has nothing to do is looked at.
const QUIET: Duration = Duration::from_secs(20);

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let Some(server) = Server::own("bench nodes") else { return Ok(()) };
    let runtime = world::runtime()?;
    let mock = Mock::start("product")?;
    let mut loads = Vec::new();
    for count in 1..=3 {
        loads.push(runtime.block_on(load(&server, &mock.url, count))?);
    }
    let [one, two, three] = [&loads[0], &loads[1], &loads[2]];
    let detail = format!(
        "{:.0}, {:.0} and {:.0} runs/s; {:.2}, {:.2} and {:.2} ms CPU of the nodes for each, and {:.1} kB in the database",
        one.rate, two.rate, three.rate, one.cpu_ms, two.cpu_ms, three.cpu_ms, one.stored_kb
    );
    figures.add("nodes: CPU of a run with three against one", three.cpu_ms / one.cpu_ms, Goal::AtMost(1.5), detail);
    let few = runtime.block_on(idle(&server, &mock.url, 1))?;
    let many = runtime.block_on(idle(&server, &mock.url, IDLE))?;
    let detail = format!(
        "{:.1} MB against {:.1}; {:.2} ms CPU in a second against {:.2}; the list of all in {:.0} ms; {:.1} kB in the database for each",
        many.resident,
        few.resident,
        many.cpu_ms,
        few.cpu_ms,
        many.list_ms,
        (many.stored_kb - few.stored_kb) / IDLE as f64
    );
    figures.add(
        "nodes: memory with 10,000 idle societies against one",
        many.resident / few.resident,
        Goal::AtMost(1.2),
        detail,
    );
    Ok(())
}

/// Nodes of a fresh schema.
fn start(server: &Server, schema: &str, model: &str, count: usize) -> Result<Vec<Program>> {
    let url = server.url(schema);
    let node = |_| {
        Program::start_with(model, |command| {
            command.args(["--node-listen", "127.0.0.1:0"]).env("POLIS_STORE", &url).env("POLIS_TOKEN", "bench".repeat(8));
        })
    };
    (0..count).map(node).collect()
}

struct Cost {
    /// Runs per second.
    rate: f64,
    /// CPU milliseconds of all nodes for a run.
    cpu_ms: f64,
    /// What the database is longer by for a run.
    stored_kb: f64,
}

/// The length of all tables of a schema with their indexes, in kB.
fn stored_kb(server: &Server, schema: &str) -> Result<f64> {
    let sum = format!(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = '{schema}' AND c.relkind = 'r'"
    );
    Ok(server.psql(&sum).parse::<f64>().context("the server says how long they are")? / 1e3)
}

async fn load(server: &Server, model: &str, count: usize) -> Result<Cost> {
    let schema = server.fresh_schema();
    let nodes = start(server, &schema, model, count)?;
    let names: Vec<String> = (0..SOCIETIES).map(|n| format!("team-{n}")).collect();
    for name in &names {
        post(&nodes[0], "/api/fork", &json!({ "name": name })).await?;
    }
    // Opens the societies, each at its node.
    run(&nodes, &names, 2).await?;
    let cpu = || nodes.iter().map(|node| world::cpu_of(node.id())).sum::<Result<Duration>>();
    let (before, stored, began) = (cpu()?, stored_kb(server, &schema)?, world::now());
    run(&nodes, &names, EACH).await?;
    let runs = (SOCIETIES * CLIENTS * EACH) as f64;
    let rate = runs / (world::now() - began).as_secs_f64();
    let cpu_ms = (cpu()? - before).as_secs_f64() * 1e3 / runs;
    Ok(Cost { rate, cpu_ms, stored_kb: (stored_kb(server, &schema)? - stored) / runs })
}

/// Has the clients of each society ask so often, each at the next node.
async fn run(nodes: &[Program], societies: &[String], each: usize) -> Result<()> {
    let mut clients = JoinSet::new();
    for (n, society) in societies.iter().enumerate() {
        let follower = Follower::start(&nodes[n % nodes.len()], &format!("/s/{society}")).await?;
        for client in 0..CLIENTS {
            let node = &nodes[(n + client) % nodes.len()];
            let (mut connection, token, answers) = (node.connect().await?, node.token().to_owned(), follower.answers.clone());
            let target = format!("/s/{society}/api/submit");
            clients.spawn(async move {
                for _ in 0..each {
                    connection.ready().await?;
                    let body = json!({ "text": "Is it done?", "strategy": "simple" }).to_string();
                    let sent = connection.send_request(request("POST", &target, &token, &body)?).await?;
                    let sent: Value = serde_json::from_slice(&whole(sent).await?)?;
                    let answer = answers.wait_for(sent["taskId"].as_str().context("a request has an id")?).await;
                    ensure!(answer == "It is done.", "it answered {answer:?}");
                }
                anyhow::Ok(())
            });
        }
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}

/// What a node costs that has nothing to do.
struct Idle {
    /// MB.
    resident: f64,
    /// CPU milliseconds in a second.
    cpu_ms: f64,
    list_ms: f64,
    stored_kb: f64,
}

async fn idle(server: &Server, model: &str, societies: usize) -> Result<Idle> {
    let schema = server.fresh_schema();
    // A node makes the first one.
    let mut nodes = start(server, &schema, model, 1)?;
    run(&nodes, &["main".to_owned()], 1).await?;
    nodes.clear();
    let log = PostgresLog::open(Options::parse(&server.url(&schema))?).await?;
    for n in 1..societies {
        let to = format!("idle-{n}").into();
        let branch = Branch { from: "main".into(), at: None, to, aside: None, request: None };
        fork(&log, &SystemClock, &branch, n as u64).await?;
    }
    drop(log);
    let nodes = start(server, &schema, model, 1)?;
    let before = world::cpu_of(nodes[0].id())?;
    tokio::time::sleep(QUIET).await;
    let cpu_ms = (world::cpu_of(nodes[0].id())? - before).as_secs_f64() * 1e3 / QUIET.as_secs_f64();
    let began = world::now();
    let mut connection = nodes[0].connect().await?;
    let listed = connection.send_request(request("GET", "/api/societies", nodes[0].token(), "")?).await?;
    let listed: Value = serde_json::from_slice(&whole(listed).await?)?;
    let list_ms = (world::now() - began).as_secs_f64() * 1e3;
    let count = listed["societies"].as_array().map_or(0, Vec::len);
    ensure!(count == societies, "{count} societies are listed");
    let (resident, stored_kb) = (world::resident_of(nodes[0].id())? as f64 / 1e6, stored_kb(server, &schema)?);
    Ok(Idle { resident, cpu_ms, list_ms, stored_kb })
}

async fn post(node: &Program, target: &str, body: &Value) -> Result<Value> {
    let mut connection = node.connect().await?;
    let sent = connection.send_request(request("POST", target, node.token(), &body.to_string())?).await?;
    Ok(serde_json::from_slice(&whole(sent).await?)?)
}
