//! The society of this program: the store, the model, the tool that reads files, and the agent.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use article_creation::{ArticleCreationAgent, OfflineAuthor, sources};
use polis::Model;
use polis::domain::MessageKind;
use polis::prelude::*;
use polis_providers::vendors;
use polis_store_local::{ArtifactLimits, LocalArtifacts, LocalLog};

use crate::{progress, tell};

const OFFLINE: &str = "article_creation: no model is set, so rules answer that quote your files and know nothing else.
article_creation: for a written article set a vendor's key, for example OPENAI_API_KEY, or POLIS_MODEL=vendor/name.";

/// Writes the article, or goes on with it, or finds that it is there.
pub(crate) async fn article(topic: &str) -> Result<String, Box<dyn Error>> {
    let data = std::env::var_os("ARTICLE_DATA").map_or_else(|| PathBuf::from(".article-data"), PathBuf::from);
    let ports = Ports {
        model: model().await?,
        ..Ports::new(LocalLog::open(&data)?)
            .with_tools(sources::tools(Path::new("."))?)
            .with_artifacts(LocalArtifacts::open(&data, ArtifactLimits::default())?)
    };
    let cast = Cast::new().with("article_creation", ArticleCreationAgent);
    let root = Role::new("root", "article_creation");
    let society = Society::open("main".into(), ports, cast, Options::new(getrandom::u64()?, root)).await?;
    let mut watch = society.watch(society.log().head(society.id()).await?);
    // The topic is the key: a second start goes on with the same request.
    let sent = society.submit_once(topic, topic).await?;
    let envelope = tokio::select! {
        envelope = society.answer(&sent) => envelope?,
        error = progress::tell_of(&mut watch) => return Err(error.into()),
    };
    society.stop(Duration::from_secs(1)).await;
    match &envelope.kind {
        MessageKind::Failure(failure) => Err(failure.to_string().into()),
        MessageKind::Answer | MessageKind::Message => Ok(envelope.payload.text.to_string()),
    }
}

async fn model() -> Result<Arc<dyn Model>, Box<dyn Error>> {
    let chosen = std::env::var("POLIS_MODEL").ok();
    let models = vendors::open(chosen.as_deref(), &|name| std::env::var(name).ok()).await?;
    if models.is_offline() {
        tell(OFFLINE);
        return Ok(Arc::new(OfflineAuthor));
    }
    tell(&format!("article_creation: {} answers", models.default_name()));
    Ok(Arc::new(models))
}
