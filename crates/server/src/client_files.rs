//! Files that clients of other protocols send inside their messages, in base64: pictures, PDFs, audio and any other. Each becomes an
//! artifact that the message names.

use std::sync::Arc;

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use polis_domain::{Artifact, ArtifactId};
use polis_engine::Society;
use polis_ports::{ArtifactError, Hasher, MAX_MEDIA_BYTES, MAX_REQUEST_MEDIA, MediaKind, media_type_of};

/// What stands for the words of a message that has files alone.
pub(crate) const NO_WORDS: &str = "See the attachments.";

/// A file inside a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFile {
    name: String,
    media_type: String,
    bytes: Arc<[u8]>,
}

/// A file that is refused: an error code, and what to do.
pub(crate) type BadFile = (&'static str, String);

impl ClientFile {
    /// A file in base64, with or without padding. `name` may be empty.
    pub(crate) fn from_base64(name: &str, media_type: &str, data: &str) -> Result<Self, BadFile> {
        let bad = |error| ("bad_attachment", format!("the data of `{}` is not base64: {error}", shown(name)));
        let bytes = LENIENT.decode(data.trim()).map_err(bad)?;
        Self::new(name, media_type, bytes)
    }

    /// A file in a `data:` URL; none if the URL is another one.
    pub(crate) fn from_data_url(name: &str, url: &str) -> Option<Result<Self, BadFile>> {
        let rest = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).map(|_| &url[5..])?;
        let read = match rest.split_once(',') {
            Some((kind, data)) => match kind.strip_suffix(";base64") {
                Some(media_type) => Self::from_base64(name, media_type, data),
                None => Err(("bad_attachment", format!("write the data: URL of `{}` in base64", shown(name)))),
            },
            None => Err(("bad_attachment", format!("the data: URL of `{}` has no data", shown(name)))),
        };
        Some(read)
    }

    pub(crate) fn new(name: &str, media_type: &str, bytes: Vec<u8>) -> Result<Self, BadFile> {
        let media_type = match media_type.trim() {
            "" | "application/octet-stream" => media_type_of(&bytes).unwrap_or("application/octet-stream"),
            given => given,
        };
        if MediaKind::of(media_type).is_some() && bytes.len() as u64 > MAX_MEDIA_BYTES {
            let most = MAX_MEDIA_BYTES >> 20;
            let message = format!("`{}` has {} bytes; a model is shown files of up to {most} MB", shown(name), bytes.len());
            return Err(("attachment_too_large", message));
        }
        let name = if name.is_empty() { default_name(media_type) } else { name.to_owned() };
        Ok(Self { name, media_type: media_type.to_owned(), bytes: bytes.into() })
    }

    /// The id that its artifact has.
    pub(crate) fn id(&self) -> ArtifactId {
        Hasher::id_of(&self.bytes)
    }
}

/// The result of a call that a client made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientResult {
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) text: String,
    pub(crate) files: Vec<ClientFile>,
}

/// Refuses more files than a request to a model has room for.
pub(crate) fn check_count(files: &[ClientFile]) -> Result<(), BadFile> {
    if files.len() > MAX_REQUEST_MEDIA {
        let message = format!("the message has {} files; at most {MAX_REQUEST_MEDIA} are allowed", files.len());
        return Err(("too_many_attachments", message));
    }
    Ok(())
}

/// Stores files, for a message to name.
pub(crate) async fn store_files(society: &Society, files: &[ClientFile]) -> Result<Vec<Artifact>, ArtifactError> {
    let mut artifacts = Vec::new();
    for ClientFile { name, media_type, bytes } in files {
        let id = society.artifacts().put(bytes.clone()).await?;
        artifacts.push(Artifact::new(id, name, media_type, bytes.len() as u64));
    }
    Ok(artifacts)
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "the attachment" } else { name }
}

fn default_name(media_type: &str) -> String {
    let ending = media_type.split_once('/').and_then(|(_, kind)| kind.split(['+', ';']).next()).unwrap_or_default();
    let stem = match MediaKind::of(media_type) {
        Some(MediaKind::Image) => "picture",
        Some(MediaKind::Document) => "document",
        Some(MediaKind::Audio) => "audio",
        None => "file",
    };
    if ending.is_empty() || ending == "octet-stream" { stem.to_owned() } else { format!("{stem}.{ending}") }
}

const LENIENT: GeneralPurpose = {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&base64::alphabet::STANDARD, config)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_url_is_a_file_and_any_other_address_is_not() {
        let read = |url: &str| ClientFile::from_data_url("", url).map(|read| read.map_err(|(code, _)| code));
        let file = read("data:image/png;base64,QUJD").unwrap().unwrap();
        assert_eq!((&*file.name, &*file.media_type, &*file.bytes), ("picture.png", "image/png", &b"ABC"[..]));
        assert_eq!(read("DATA:;base64,QUI").unwrap().unwrap().name, "file");
        assert_eq!(read("https://h/i.png"), None);
        assert_eq!(read("数据"), None);
        for bad in ["data:image/png;base64,!", "data:image/png,abc", "data:"] {
            assert_eq!(read(bad), Some(Err("bad_attachment")), "{bad}");
        }
    }

    #[test]
    fn what_no_model_could_be_shown_is_refused() {
        let file = |media_type: &str, bytes: usize| ClientFile::new("a", media_type, vec![0; bytes]).map_err(|(code, _)| code);
        let limit = MAX_MEDIA_BYTES as usize;
        assert!(file("image/png", limit).is_ok() && file("text/csv", limit + 1).is_ok());
        assert_eq!(file("image/png", limit + 1), Err("attachment_too_large"));
        let many = vec![file("image/png", 1).unwrap(); MAX_REQUEST_MEDIA + 1];
        assert_eq!(check_count(&many).map_err(|(code, _)| code), Err("too_many_attachments"));
        assert!(check_count(&many[1..]).is_ok());
    }
}
