//! What the program does: reads its arguments, opens a society on its data folder, asks, and shows what came of it.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use data_pipeline::{DataPipelineAgent, Interpreter, TableReportAgent, tools};
use polis::domain::MessageKind;
use polis::ports::Hasher;
use polis::prelude::*;
use polis::providers::vendors;
use polis::store_local::{ArtifactLimits, LocalArtifacts, LocalLog};
use polis::tools::sandbox::Sandbox;
use polis::{Envelope, Event, Recorded, Sent, Seq, SubThreadPath};

const USAGE: &str = "usage: data_pipeline [TABLE.csv] [--ask TEXT] [--data DIR] [--model VENDOR/NAME] [--interpreter PROGRAM]
  TABLE.csv      the table; without one, an unfinished request goes on
  --ask          what to say to the agent, {} for the table (Analyse {}.)
  --data         where log, workspace and reports are (.data_pipeline)
  --model        as for polis; without it, POLIS_MODEL, else the first vendor with a key, else the offline model
  --interpreter  what runs the model's code: sh, python3, node, perl or ruby";

/// Events that are read at once.
const PAGE: usize = 512;

/// Longest report that is written out.
const MAX_REPORT_BYTES: usize = 64 << 20;

/// What was typed.
struct Typed {
    table: Option<PathBuf>,
    ask: String,
    data: PathBuf,
    model: Option<String>,
    interpreter: Interpreter,
}

pub(crate) fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Some(typed) = Typed::read(std::env::args().skip(1))? else {
        writeln!(std::io::stdout(), "{USAGE}")?;
        return Ok(ExitCode::SUCCESS);
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work(typed))
}

async fn work(typed: Typed) -> Result<ExitCode, Box<dyn Error>> {
    let workspace = typed.data.join("workspace");
    std::fs::create_dir_all(&workspace)?;
    let society = open(&typed, &workspace).await?;
    let unfinished = unfinished(&society).await?;
    let sent = match &typed.table {
        Some(table) => {
            let request = typed.ask.replace("{}", &format!("`{}`", take_in(table, &workspace)?));
            match unfinished.into_iter().find(|(_, text)| *text == request) {
                Some((sent, _)) => go_on(sent, &request)?,
                None => society.submit(&request).await?,
            }
        }
        None => match unfinished.into_iter().next() {
            Some((sent, text)) => go_on(sent, &text)?,
            None => return Err(USAGE.into()),
        },
    };
    let envelope = society.answer(&sent).await?;
    let report = show(&society, &envelope, &typed.data).await?;
    society.stop(Duration::from_secs(1)).await;
    Ok(if report { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn open(typed: &Typed, workspace: &Path) -> Result<Society, Box<dyn Error>> {
    let sandbox = Sandbox::default();
    let features = sandbox.features().await?;
    if !features.may_run_unattended() {
        return Err(format!("this machine holds commands too loosely to run them unattended: {features}").into());
    }
    let model = vendors::open(typed.model.as_deref(), &|name| std::env::var(name).ok()).await?;
    writeln!(std::io::stderr(), "data_pipeline: {} answers", model.default_name())?;
    let log = typed.data.join("log");
    let ports = Ports::new(LocalLog::open(&log)?).with_model(model).with_tools(tools(workspace, sandbox)?);
    let ports = ports.with_artifacts(LocalArtifacts::open(&log, ArtifactLimits::default())?);
    let pipeline = DataPipelineAgent { interpreter: typed.interpreter };
    let cast = Cast::new().with("table_report", TableReportAgent { pipeline });
    let options = Options::new(getrandom::u64()?, Role::new("root", "table_report"));
    Ok(Society::open("main".into(), ports, cast, options).await?)
}

/// Copies the table into the workspace, in a folder that its content names, and gives its path there. A table that has
/// changed is another one.
fn take_in(table: &Path, workspace: &Path) -> Result<String, Box<dyn Error>> {
    let content = std::fs::read(table).map_err(|error| format!("{}: {error}", table.display()))?;
    let name = table.file_stem().and_then(|name| name.to_str()).unwrap_or("table").replace('`', "_");
    let folder = format!("tables/{}", &Hasher::id_of(&content).to_string()[..16]);
    let path = format!("{folder}/{name}.csv");
    std::fs::create_dir_all(workspace.join(&folder))?;
    let part = workspace.join(&folder).join("part");
    std::fs::write(&part, content)?;
    std::fs::rename(part, workspace.join(&path))?;
    Ok(path)
}

/// Requests of the person that nobody has answered, in order.
async fn unfinished(society: &Society) -> Result<Vec<(Sent, String)>, Box<dyn Error>> {
    let (mut open, mut after) = (Vec::<(Sent, String)>::new(), Seq(0));
    loop {
        let page: Vec<Recorded> = society.log().read(society.id(), after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(open) };
        after = last.seq;
        for recorded in &page {
            let Event::MessageSent { envelope, .. } = &recorded.event else { continue };
            if envelope.from.is_user() {
                let sent = Sent {
                    message_id: envelope.id.clone(),
                    to: envelope.to.clone(),
                    task_id: envelope.task_id.clone(),
                    seq: recorded.seq,
                };
                open.push((sent, envelope.payload.text.to_string()));
            } else if envelope.to.is_user() && envelope.kind != MessageKind::Message {
                open.retain(|(sent, _)| sent.task_id != envelope.task_id);
            }
        }
    }
}

fn go_on(sent: Sent, request: &str) -> Result<Sent, Box<dyn Error>> {
    writeln!(std::io::stderr(), "data_pipeline: going on with: {request}")?;
    Ok(sent)
}

/// Prints the answer, and where the report is. Gives whether there is one.
async fn show(society: &Society, envelope: &Arc<Envelope>, data: &Path) -> Result<bool, Box<dyn Error>> {
    let mut out = std::io::stdout();
    if let MessageKind::Failure(failure) = &envelope.kind {
        return Err(failure.to_string().into());
    }
    writeln!(out, "{}", envelope.payload.text)?;
    let main = society.thread(&envelope.from.main_thread(), &SubThreadPath::main()).await?;
    let said = main.messages.iter().rev().find(|message| message.text == *envelope.payload.text);
    let Some(Artifact { id, .. }) = said.and_then(|message| Artifact::attached(&message.meta).pop()) else { return Ok(false) };
    let window = society.artifacts().read(&id, 0, MAX_REPORT_BYTES).await?;
    std::fs::create_dir_all(data.join("reports"))?;
    let path = data.join("reports").join(format!("{id}.html"));
    std::fs::write(&path, window.bytes)?;
    writeln!(out, "\nReport: {}", path.display())?;
    Ok(true)
}

impl Typed {
    /// Nothing when help is wanted.
    fn read(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, Box<dyn Error>> {
        let model = std::env::var("POLIS_MODEL").ok();
        let (data, interpreter) = (PathBuf::from(".data_pipeline"), Interpreter::SHELL);
        let mut typed = Self { table: None, ask: "Analyse {}.".to_owned(), data, model, interpreter };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--ask" => typed.ask = value()?,
                "--data" => typed.data = value()?.into(),
                "--model" => typed.model = Some(value()?),
                "--interpreter" => {
                    let name = value()?;
                    typed.interpreter = Interpreter::find(&name).ok_or_else(|| format!("{name} is not known\n{USAGE}"))?;
                }
                _ if word.starts_with('-') || typed.table.is_some() => {
                    return Err(format!("{word}: what is that?\n{USAGE}").into());
                }
                _ => typed.table = Some(word.into()),
            }
        }
        Ok(Some(typed))
    }
}
