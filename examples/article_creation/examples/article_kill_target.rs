//! An article that can be killed at any event: `article_kill_target DIR`. A scripted model writes it; the phases that
//! asked it in this life stand in `asked` of DIR, the files that are searched in `sources`.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use article_creation::ArticleCreationAgent;
use polis::domain::{Event, Seq};
use polis::prelude::*;
use polis::{Log, Sent};
use polis_store_local::{ArtifactLimits, LocalArtifacts, LocalLog};
use polis_testkit::kill::KillGate;
use polis_testkit::{GatedLog, ScriptedModel};

#[path = "../tests/main/editor.rs"]
mod editor;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("usage: article_kill_target DIR")?);
    let (data, sources, asked) = (dir.join("data"), dir.join("sources"), dir.join("asked"));
    editor::write_sources(&sources)?;
    fs::write(&asked, "")?;
    let model = ScriptedModel::new(move |request| {
        let (phase, _) = editor::asked(request);
        let noted = OpenOptions::new().append(true).open(&asked).and_then(|mut file| writeln!(file, "{phase}"));
        noted.expect("the model keeps notes");
        editor::answer(request, |_, _| Duration::from_millis(1))
    });
    let log: Arc<dyn Log> = Arc::new(GatedLog { log: Arc::new(LocalLog::open(&data)?), gate: KillGate::from_environment() });
    let artifacts = LocalArtifacts::open(&data, ArtifactLimits::default())?;
    let ports = Ports {
        log: log.clone(),
        ..Ports::new(polis_testkit::MemoryLog::new())
            .with_model(model)
            .with_tools(article_creation::sources::tools(&sources)?)
            .with_artifacts(artifacts)
    };
    let cast = Cast::new().with("article_creation", ArticleCreationAgent);
    let options = Options::new(u64::from(std::process::id()), Role::new("root", "article_creation"));
    let society = Society::open("main".into(), ports, cast, options).await?;
    let before = log.read(society.id(), Seq(0), usize::MAX).await?.into_iter().find_map(|recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } if envelope.from.is_user() => Some(Sent {
            message_id: envelope.id.clone(),
            to: envelope.to.clone(),
            task_id: envelope.task_id.clone(),
            seq: recorded.seq,
        }),
        _ => None,
    });
    let sent = match before {
        Some(sent) => sent,
        None => society.submit(editor::TOPIC).await?,
    };
    society.answer(&sent).await?;
    society.stop(Duration::ZERO).await;
    Ok(())
}
