//! `put_artifact`: keeps a text or a file of the workspace for whoever wants it later.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{Artifact, CallResult, EffectClass, Flow};
use polis_ports::{Artifacts, CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::media::media_type;
use crate::results::{arguments, failed, good};
use crate::workspace::{RelativePath, Workspace};

/// Keeps contents.
#[derive(Debug)]
pub struct PutArtifact {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Option<String>,
    content: Option<String>,
    path: Option<String>,
    #[serde(rename = "mediaType")]
    media_type: Option<String>,
}

impl PutArtifact {
    /// Takes files from `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for PutArtifact {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "put_artifact".into(),
            description:
                "Keeps a text, or a file of the workspace as it is now, as an artifact that the person can download and \
                          other agents can read. Gives its id."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "What it is called, for example report.md; the file's name if left out with path" },
                    "content": { "type": "string", "description": "The whole text; leave it out with path" },
                    "path": { "type": "string", "description": "A file of the workspace to keep instead, of any kind" },
                    "mediaType": { "type": "string", "description": "What kind it is, for example text/csv; told from the name if left out" },
                },
            }),
            class: EffectClass::Idempotent,
            volatile: false,
        }
    }

    fn is_deferred(&self) -> bool {
        true
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { recalls: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { name, content, path, media_type: given_type } = arguments(text)?;
        let bad = |why: &str| Err(ToolError::BadArguments(why.to_owned()));
        let store = context.artifacts.store.clone();
        let kept = match (content, path) {
            (Some(content), None) => {
                let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return bad("name is missing") };
                let bytes = content.len() as u64;
                let kept = store.put(content.as_bytes().into()).await.map_err(failed);
                kept.map(|id| Artifact::new(id, &name, given_type.as_deref().unwrap_or(media_type(&name, true)), bytes))
            }
            (None, Some(path)) => {
                let path = RelativePath::new(&path)?;
                let name = name.unwrap_or_else(|| path.name().to_owned());
                let workspace = self.workspace.clone();
                let kept = tokio::task::spawn_blocking(move || copied(&workspace, &path, &name, given_type.as_deref(), &store));
                kept.await.unwrap_or_else(|stopped| Err(failed(stopped)))
            }
            _ => return bad("give either content or path"),
        };
        Ok(kept.map_or_else(|failure| failure, |artifact| good(format!("kept {artifact}")).with_artifacts(vec![artifact])))
    }
}

/// Keeps a file as it is now.
pub(crate) fn copied(
    workspace: &Workspace,
    path: &RelativePath,
    name: &str,
    given_type: Option<&str>,
    store: &Arc<dyn Artifacts>,
) -> Result<Artifact, CallResult> {
    let mut file = workspace.read(path).map_err(failed)?;
    let mut draft = store.draft().map_err(failed)?;
    let (mut buffer, mut is_text) = (vec![0; 256 << 10], true);
    loop {
        let read = file.read(&mut buffer).map_err(|error| failed(path.refused(error)))?;
        if read == 0 {
            break;
        }
        is_text &= super::media::text_of(&buffer[..read]).is_some();
        draft.write(&buffer[..read]).map_err(failed)?;
    }
    let (id, bytes) = draft.keep().map_err(failed)?;
    Ok(Artifact::new(id, name, given_type.unwrap_or(media_type(name, is_text)), bytes))
}
