//! `polis doctor`: checks that everything the society needs is there, and says how to fix what is not.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use polis_agents::INSTRUCTIONS_FILE;
use polis_agents::role::Sops;
use polis_api::{Health, HealthStatus, Paging, ToolServer, ToolServerState};
use polis_engine::SystemClock;
use polis_http::{HttpClient, Trust};
use polis_ports::{Clock, EmbeddingPurpose, ModelError};
use polis_providers::vendors::VENDORS;
use serde_json::{Value, json};

use crate::cli::Doctor;
use crate::config::{Config, FILE};
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{backups, file_limit, machine_tools, out, retention, sops, telemetry, wiring};

/// One check, and its result.
struct Finding {
    what: &'static str,
    found: Result<String, String>,
}

pub(crate) async fn doctor(config: &Config, args: &Doctor) -> Result<Exit, CliError> {
    let (found, standing) = store(config).await;
    let mut findings = vec![Finding { what: "store", found }];
    findings.push(Finding { what: "folder", found: folder(config) });
    findings.push(Finding { what: "workspace", found: workspace(config) });
    findings.push(Finding { what: "sandbox", found: machine_tools::sandbox(config).await });
    findings.push(Finding { what: "files", found: Ok(file_limit::describe(polis_server::MAX_CONNECTIONS)) });
    if let Err(wrong) = machine_tools::check(config) {
        findings.push(Finding { what: "tools", found: Err(wrong) });
    }
    match machine_tools::web_search(config) {
        Err(error) => findings.push(Finding { what: "search", found: Err(error.to_string()) }),
        Ok(Some(Err(missing))) => findings.push(Finding { what: "search", found: Err(missing) }),
        Ok(Some(Ok(_))) => findings.push(Finding { what: "search", found: Ok("web_search is offered".to_owned()) }),
        Ok(None) => {}
    }
    for (file, warnings) in wiring::prompts(&config.trust).files() {
        let found = if warnings.is_empty() { Ok(file) } else { Err(format!("{file}: {}", warnings.join("; "))) };
        findings.push(Finding { what: "prompts", found });
    }
    findings.extend(sops(config));
    findings.extend(skills(config));
    findings.extend(network(config).await);
    findings.extend(models(config, args.call).await);
    findings.push(Finding { what: "memory", found: memory(config, args.call).await });
    findings.extend(servers(config).await);
    findings.extend(collector(config).await);
    findings.extend(newest_backup(config).await);
    findings.extend(quota(config));
    let is_well = findings.iter().all(|finding| finding.found.is_ok());
    for Finding { what, found } in &findings {
        if args.json {
            continue;
        }
        match found {
            Ok(text) => out::line(&format!("ok   {what:<10} {text}"))?,
            Err(text) => out::line(&format!("BAD  {what:<10} {text}"))?,
        }
    }
    let next = next_step(config, &standing, &findings);
    if args.json {
        let one = |Finding { what, found }: &Finding| match found {
            Ok(text) => json!({ "what": what, "ok": true, "found": text }),
            Err(text) => json!({ "what": what, "ok": false, "found": text }),
        };
        let all: Vec<Value> = findings.iter().map(one).collect();
        out::line(&format!("{:#}", json!({ "ok": is_well, "findings": all, "next": next })))?;
    } else {
        out::line(&format!("\nTry this next: {next}"))?;
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

/// The one command that helps most now: what is wrong comes first, then what is not set up, then using it.
fn next_step(config: &Config, standing: &Standing, findings: &[Finding]) -> String {
    let is_bad = |what: &str| findings.iter().any(|finding| finding.what == what && finding.found.is_err());
    let remedies = [
        ("store", "verify"),
        ("folder", "trust"),
        ("AGENTS.md", "trust"),
        ("prompts", "check"),
        ("sops", "check"),
        ("skills", "skills"),
        ("model", "models"),
        ("provider", "models"),
        ("mcp", "tools"),
        ("backup", "backup FILE"),
    ];
    if let Some((_, command)) = remedies.into_iter().find(|(what, _)| is_bad(what)) {
        return config.command_line(command);
    }
    if findings.iter().any(|finding| finding.found.is_err()) {
        return "mend what is marked BAD above, then polis doctor".to_owned();
    }
    let is_offline =
        findings.iter().any(|it| it.what == "model" && it.found.as_ref().is_ok_and(|it| it.starts_with("offline:")));
    let has_settings = Path::new(FILE).exists() || config.data.join(FILE).exists();
    config.command_line(match standing {
        Standing::Here { waiting: 1.. } | Standing::Served { waiting: 1.. } => "approvals",
        Standing::New if !has_settings && config.models.is_empty() => "init",
        _ if is_offline => "models pull",
        Standing::Here { .. } => "serve",
        Standing::New | Standing::Served { .. } => "run \"what can you do here?\"",
    })
}

/// The instructions and skills that agents are told of, and why others are not used.
fn skills(config: &Config) -> Vec<Finding> {
    let file = config.workspace.join(INSTRUCTIONS_FILE);
    let instructions = std::fs::read(&file).ok().map(|bytes| match config.trust.admits(&file, &bytes) {
        true => Ok(format!("{INSTRUCTIONS_FILE} is told to all agents")),
        false => {
            Err(format!("{INSTRUCTIONS_FILE} is not trusted, so agents are not told of it; look at it and type polis trust"))
        }
    });
    let found = crate::skills::find(config);
    let used = found.iter().filter(|skill| skill.problems.is_empty()).count();
    let bad: Vec<_> = found.iter().flat_map(|skill| skill.problems.iter().cloned()).collect();
    let skills = match (found.is_empty(), bad.is_empty()) {
        (true, _) => None,
        (false, true) => Some(Ok(format!("{used} in use"))),
        (false, false) => Some(Err(format!("{used} in use; not used: {}", bad.join("; ")))),
    };
    let finding = |what, found: Option<_>| found.map(|found| Finding { what, found });
    [finding("AGENTS.md", instructions), finding("skills", skills)].into_iter().flatten().collect()
}

/// How far the society of the folder has come, with what waits for a person.
enum Standing {
    New,
    Here { waiting: usize },
    Served { waiting: usize },
}

async fn store(config: &Config) -> (Result<String, String>, Standing) {
    let transport = match Transport::open(config, Purpose::Read).await {
        Ok(transport) => transport,
        Err(error) if error.code == "no_data" => {
            let found = match &config.store {
                None => format!("{} does not exist yet; the first run creates it", config.data.display()),
                Some(address) => format!("{address} answers and has no society yet; the first run creates it"),
            };
            return (Ok(found), Standing::New);
        }
        Err(error) => return (Err(error.to_string()), Standing::New),
    };
    let found = health(config, &transport).await;
    let waiting = transport.api().approvals(&Paging::default()).await.map_or(0, |listed| listed.approvals.len());
    let standing = match &transport {
        Transport::Http(_) => Standing::Served { waiting },
        Transport::InProcess(_) => Standing::Here { waiting },
    };
    // The checks that follow open it again.
    transport.close(false).await;
    (found, standing)
}

async fn health(config: &Config, transport: &Transport) -> Result<String, String> {
    let Health { status, store, .. } = transport.api().health().await.map_err(|error| error.to_string())?;
    if status == HealthStatus::Down {
        let code = store.code.unwrap_or_default();
        return Err(format!("its log is out of order; it takes nothing on until that is settled ({code})"));
    }
    let place = match transport {
        Transport::Http(client) => format!("served at {}", client.url()),
        Transport::InProcess(_) => match &config.store {
            None => format!("in {}", config.data.display()),
            Some(address) => format!("in {address}, artifacts and memories in {}", config.data.display()),
        },
    };
    Ok(format!("{place}, {}", out::count(store.seq.unwrap_or_default().0 as usize, "event")))
}

fn workspace(config: &Config) -> Result<String, String> {
    let folder = config.workspace.display();
    match std::fs::read_dir(&config.workspace) {
        Ok(_) => Ok(format!("file tools work in {folder}")),
        Err(error) => Err(format!("{folder}: {error}; choose another with --workspace or in polis.toml")),
    }
}

/// Whether the files of the folder are trusted.
fn folder(config: &Config) -> Result<String, String> {
    let trust = &config.trust;
    trust.check_data().map_err(|error| error.to_string())?;
    let (count, pending) = (trust.contents().files.len(), trust.pending());
    match (trust.trusts_everything(), count, pending.len()) {
        (_, 0, _) => Ok("nothing to trust here: no polis.toml, .mcp.json, roles, SOPs or prompts".to_owned()),
        (true, ..) => Ok(format!("{} used without a check: POLIS_TRUST=all", out::count(count, "file"))),
        (false, 1, 0) => Ok("1 file trusted as it is now".to_owned()),
        (false, _, 0) => Ok(format!("{count} files trusted as they are now")),
        _ => Err(trust.explanation().replacen("polis: ", "", 1)),
    }
}

/// The SOPs that are there, and those that cannot be followed.
fn sops(config: &Config) -> Vec<Finding> {
    let folder = Path::new(wiring::SOPS);
    let finding = |found| Finding { what: "sops", found };
    let faults = sops::faults(folder, &config.trust);
    match Sops::files(folder).len() {
        0 => Vec::new(),
        count if faults.is_empty() => vec![finding(Ok(format!("{count} in {}", folder.display())))],
        _ => faults.into_iter().map(|fault| finding(Err(fault))).collect(),
    }
}

/// Whether agents remember, and how it is found. With `--call` the embedding model is asked for a vector.
async fn memory(config: &Config, call: bool) -> Result<String, String> {
    if !config.memory.is_enabled() {
        return Ok("off: agents remember nothing across conversations".to_owned());
    }
    let Some(embedder) = wiring::embedder(config).await.map_err(|error| error.to_string())? else {
        return Ok("on; found by words, because no embedding model is set in [embeddings]".to_owned());
    };
    let model = embedder.model();
    if !call {
        return Ok(format!("on; found by words and by meaning, with {model}"));
    }
    match embedder.embed(&["hello".into()], EmbeddingPurpose::Query).await {
        Ok(answer) => Ok(format!("on; {model} answers with {} numbers", answer.vectors.first().map_or(0, Vec::len))),
        Err(error) => Err(format!("{model} does not answer: {error}")),
    }
}

/// Each MCP server, which is started to see whether it comes up.
async fn servers(config: &Config) -> Vec<Finding> {
    let finding = |found| Finding { what: "mcp", found };
    if config.servers.is_empty() && config.url.is_none() {
        return Vec::new();
    }
    let listed = match super::tools::list_tools(config).await {
        Ok(listed) => listed,
        Err(error) => return vec![finding(Err(error.to_string()))],
    };
    let one = |ToolServer { name, state, detail, tools, .. }: &ToolServer| {
        finding(match state {
            ToolServerState::Connected => Ok(format!("{name}: {detail}, {}", out::count(*tools, "tool"))),
            ToolServerState::Off => Ok(format!("{name}: not enabled")),
            ToolServerState::Starting => Err(format!("{name}: not ready yet; check `polis tools` again")),
            ToolServerState::Down => Err(format!("{name}: {detail}; POLIS_LOG=polis_tools=debug shows what it says")),
        })
    };
    listed.servers.iter().map(one).collect()
}

/// The collector of telemetry, if there is one.
async fn collector(config: &Config) -> Option<Finding> {
    let found = match telemetry::open(config) {
        Ok(None) => return None,
        Ok(Some((endpoint, telemetry))) => match telemetry.check().await {
            Ok(()) => Ok(format!("spans and metrics go to {endpoint}, which answers")),
            Err(why) => Err(format!("{endpoint} does not accept data: {why}; OTLP over HTTP is usually at port 4318")),
        },
        Err(error) => Err(error.to_string()),
    };
    Some(Finding { what: "telemetry", found })
}

/// How much of `max_log_mb` the log takes. It is a fault before new requests are refused, so that there is time to do something.
fn quota(config: &Config) -> Option<Finding> {
    let (bytes, most) = (retention::log_bytes(config), retention::max_log_bytes(config)?);
    let text = format!("the log has {} of the {} MB that max_log_mb below [retention] allows", bytes >> 20, most >> 20);
    let is_near = bytes > most / 10 * 9;
    let advice = "at that size new requests are refused: archive, erase conversations, or allow more";
    Some(Finding { what: "quota", found: if is_near { Err(format!("{text}; {advice}")) } else { Ok(text) } })
}

/// How old the newest backup of `[backup]` is. One that is overdue although a server runs is a fault.
async fn newest_backup(config: &Config) -> Option<Finding> {
    // A log in PostgreSQL is backed up by other means.
    let to = config.backup.to.clone().filter(|_| config.store.is_none())?;
    let every = config.backup.every();
    let is_running = Transport::running(config).await.is_some();
    let shown = to.display().to_string();
    let read = move || {
        if !to.exists() {
            return Ok(None);
        }
        let Some(newest) = backups::all(&to)?.into_iter().next() else { return Ok(None) };
        let at = backups::made_at(&newest).map_err(|error| backups::about(&newest, error))?;
        Ok::<_, CliError>(Some((newest, at)))
    };
    let found = match backups::blocking(read).await {
        Err(error) | Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(None)) => Ok(format!("none in {shown} yet; `polis serve` makes one when it starts")),
        Ok(Ok(Some((newest, at)))) => {
            let age = Duration::from_millis(SystemClock.now().0.saturating_sub(at));
            let text = format!("{} is the newest, {} old", newest.display(), out::age(age));
            match is_running && age > every * 3 {
                true => Err(format!("{text}, although one is due every {}; see what the server reports", out::age(every))),
                false => Ok(text),
            }
        }
    };
    Some(Finding { what: "backup", found })
}

/// The proxies and certificates, where a setting or a variable names some.
async fn network(config: &Config) -> Option<Finding> {
    let found = match config.network() {
        Err(error) => Err(error.to_string()),
        Ok(options) => {
            let mut parts: Vec<String> =
                options.environment.proxies().into_iter().map(|(scheme, proxy)| format!("{scheme} through {proxy}")).collect();
            match &options.trust {
                Trust::System => {}
                Trust::SystemAnd(files) => parts.extend(files.iter().map(|file| format!("trusts {} too", file.display()))),
                Trust::Only(file) => parts.push(format!("trusts {} alone", file.display())),
            }
            parts.extend(options.identity.as_ref().map(|it| format!("presents {}", it.certificates.display())));
            match (HttpClient::new(options).check_certificates().await, parts.is_empty()) {
                (Ok(()), true) => return None,
                (Ok(()), false) => Ok(parts.join("; ")),
                (Err(error), _) => Err(error.to_string()),
            }
        }
    };
    Some(Finding { what: "network", found })
}

/// How long an endpoint may take to answer.
const MAX_ANSWER: Duration = Duration::from_secs(5);

/// Each endpoint of `[providers]` with a key file, certificates or a proxy of its own: it is asked for its models, to see whether
/// they can be used.
async fn providers(config: &Config, models: &polis_providers::Models) -> Vec<Finding> {
    let one = async |name: &String| {
        let place = models.address(name).unwrap_or_default();
        let found = match (models.vendor(name), tokio::time::timeout(MAX_ANSWER, models.list(name)).await) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(()), Ok(Ok(listed))) => Ok(format!("{name} answers at {place}: {}", out::count(listed.len(), "model"))),
            // Many gateways have no list.
            (Ok(()), Ok(Err(ModelError::Rejected { reason }))) if reason.starts_with("404") || reason.starts_with("405") => {
                Ok(format!("{name} answers at {place}, but has no list of models"))
            }
            (Ok(()), Ok(Err(error))) => Err(format!("{name} at {place}: {error}")),
            (Ok(()), Err(_)) => Err(format!("{name} at {place}: nothing came within {} s", MAX_ANSWER.as_secs())),
        };
        Finding { what: "provider", found }
    };
    let tried = config.providers.iter().filter(|(_, section)| section.has_own_files());
    join_all(tried.map(|(name, _)| one(name))).await
}

/// The models in the order in which they are called; each is really called only on request.
async fn models(config: &Config, call: bool) -> Vec<Finding> {
    let finding = |found| Finding { what: "model", found };
    if let Some(transport) = Transport::running(config).await {
        let found = transport.api().models().await.map(|listed| format!("{} answers there", listed.default));
        return vec![finding(found.map_err(|error| error.to_string()))];
    }
    let models = match wiring::models(config).await {
        Ok(models) => models,
        Err(error) => return vec![finding(Err(error.to_string()))],
    };
    let mut findings = providers(config, &models).await;
    if models.is_offline() && config.models.is_empty() {
        let mut keys: Vec<_> = VENDORS.iter().filter(|vendor| !vendor.keyless).map(|vendor| vendor.key_variable).collect();
        keys.dedup();
        keys.truncate(4);
        let advice = format!("set one of {} …, start Ollama, or choose with --model vendor/name", keys.join(", "));
        findings.push(finding(Ok(format!(
            "offline: needs no key, but understands only a few kinds of requests; for a real model {advice}"
        ))));
        return findings;
    }
    let default = [models.default_name().to_string()];
    let names = if config.models.is_empty() { &default[..] } else { &config.models };
    for name in names {
        let found = match call {
            false => {
                let vendor = models.find(name).unwrap_or_default();
                let at = models.address(&vendor).map(|address| format!(" at {address}")).unwrap_or_default();
                Ok(format!("{name} is set up{at}; `polis doctor --call` sends it a test request"))
            }
            true => match models.check(name).await {
                Ok(checked) => {
                    let cost = checked.usage.cost_nanos as f64 / 1e9;
                    Ok(format!("{name} answered in {:.1} s, for ${cost:.6}", checked.took.as_secs_f64()))
                }
                Err(error) => Err(format!("{name}: {error} ({})", error.code())),
            },
        };
        findings.push(finding(found));
        let ignored = models.ignored_settings(name);
        if !ignored.is_empty() {
            let found = Ok(format!("{name} is called without {}, which its vendor does not take", ignored.join(", ")));
            findings.push(Finding { what: "settings", found });
        }
    }
    findings
}
