//! Media of a model request. Agents name artifacts; the bytes are read when the request is sent, and a model that does not take
//! a kind of media gets a line in its place. None of this is logged: the log has the references, and a second run of the turn
//! that finds the reply in the log reads no bytes.

use std::collections::HashMap;

use polis_domain::{Artifact, ArtifactId};
use polis_ports::{Artifacts, MAX_MEDIA_BYTES, Media, ModelRequest};

use super::Turn;

impl Turn {
    /// Puts the bytes of artifacts, or lines, in the place of the media that a request names. The person is told which of
    /// their files the model is not shown.
    pub(super) async fn show_media(&self, request: &mut ModelRequest, read: &mut ReadMedia) {
        let ports = &self.start.shared.ports;
        let known = ports.model.description(&request.model).capabilities;
        for media in request.messages.iter().flat_map(|message| message.media()) {
            let is_taken = media.kind().is_some_and(|kind| known.takes(kind) != Some(false));
            if let (Media::Stored(artifact), true) = (media, is_taken) {
                read.read(&*ports.artifacts, artifact).await;
            }
        }
        for message in &mut request.messages {
            if message.media().is_empty() {
                continue;
            }
            *message = message.clone().with_media(|media| {
                let refused = media.kind().filter(|kind| known.takes(*kind) == Some(false));
                let shown = match (&media, refused) {
                    (_, Some(kind)) => Err(format!("this model takes no {}", kind.plural())),
                    (Media::Stored(artifact), None) => read.found(artifact),
                    (Media::Url(_), None) if known.image_urls == Some(false) => {
                        Err("this model takes no addresses of pictures".to_owned())
                    }
                    (Media::Inline { .. } | Media::Url(_), None) => return Ok(media),
                };
                shown.map_err(|why| {
                    self.publish_not_shown(&media, &why);
                    media.not_shown(&why)
                })
            });
        }
    }

    pub(super) fn publish_not_shown(&self, media: &Media, why: &str) {
        let name = match media {
            Media::Stored(artifact) => &artifact.name,
            Media::Inline { name, .. } => name,
            Media::Url(url) => url,
        };
        if let Some(sink) = self.step_sink() {
            sink.publish("model", Media::NOT_SHOWN, Some(&format!("{name}: {why}")), None);
        }
    }
}

/// The contents that a model call has read: its attempts read each of them once.
#[derive(Default)]
pub(super) struct ReadMedia(HashMap<ArtifactId, Result<Media, String>>);

impl ReadMedia {
    async fn read(&mut self, store: &dyn Artifacts, artifact: &Artifact) {
        if self.0.contains_key(&artifact.id) {
            return;
        }
        let read = match store.read(&artifact.id, 0, MAX_MEDIA_BYTES as usize + 1).await {
            Ok(window) if window.total > MAX_MEDIA_BYTES => Err("it is too long".to_owned()),
            Ok(window) => Media::read(artifact, &window.bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.0.insert(artifact.id, read);
    }

    fn found(&self, artifact: &Artifact) -> Result<Media, String> {
        self.0.get(&artifact.id).cloned().unwrap_or_else(|| Err("it was not read".to_owned()))
    }
}
