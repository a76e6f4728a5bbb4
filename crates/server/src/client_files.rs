//! Files that clients of other protocols send inside their messages, in base64: pictures, PDFs, audio and any other. Each becomes an
//! artifact that the message names. Pictures may also be named by an address, which is not fetched here but given to the vendor.

use std::sync::Arc;

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use polis_domain::{Artifact, ArtifactId};
use polis_engine::Society;
use polis_ports::{ArtifactError, Hasher, MAX_MEDIA_BYTES, MAX_REQUEST_MEDIA, Media, MediaKind, is_fetched, media_type_of};
use serde_json::{Map, Value};

/// What stands for the words of a message that has files alone.
pub(crate) const NO_WORDS: &str = "See the attachments.";

/// A file inside a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientFile {
    Content {
        name: String,
        media_type: String,
        bytes: Arc<[u8]>,
    },
    /// A picture by its address. The text of the message names it too, for models that take no addresses and for people.
    PictureAt(String),
}

/// A file that is refused: an error code, and what to do.
pub(crate) type BadFile = (&'static str, String);

impl ClientFile {
    /// A file in base64, with or without padding. `name` may be empty.
    pub(crate) fn from_base64(name: &str, media_type: &str, data: &str) -> Result<Self, BadFile> {
        let bad = |error| ("bad_attachment", format!("the data of {} is not base64: {error}", shown(name)));
        let bytes = LENIENT.decode(data.trim()).map_err(bad)?;
        Self::new(name, media_type, bytes)
    }

    /// A file in a `data:` URL; none if the URL is another one.
    pub(crate) fn from_data_url(name: &str, url: &str) -> Option<Result<Self, BadFile>> {
        let rest = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).map(|_| &url[5..])?;
        let read = match rest.split_once(',') {
            Some((kind, data)) => match kind.strip_suffix(";base64") {
                Some(media_type) => Self::from_base64(name, media_type, data),
                None => Err(("bad_attachment", format!("write the data: URL of {} in base64", shown(name)))),
            },
            None => Err(("bad_attachment", format!("the data: URL of {} has no data", shown(name)))),
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
            let message = format!("{} has {} bytes; a model is shown files of up to {most} MB", shown(name), bytes.len());
            return Err(("attachment_too_large", message));
        }
        let name = if name.is_empty() { default_name(media_type) } else { name.to_owned() };
        Ok(Self::Content { name, media_type: media_type.to_owned(), bytes: bytes.into() })
    }

    /// A picture at this address, if vendors fetch it.
    pub(crate) fn picture_at(url: &str) -> Option<Self> {
        is_fetched(url).then(|| Self::PictureAt(url.to_owned()))
    }

    /// Whether it is more than an address, which the text names.
    pub(crate) fn has_content(&self) -> bool {
        matches!(self, Self::Content { .. })
    }

    /// The id that its artifact has.
    pub(crate) fn id(&self) -> Option<ArtifactId> {
        match self {
            Self::Content { bytes, .. } => Some(Hasher::id_of(bytes)),
            Self::PictureAt(_) => None,
        }
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
    for file in files {
        let ClientFile::Content { name, media_type, bytes } = file else { continue };
        let id = society.artifacts().put(bytes.clone()).await?;
        artifacts.push(Artifact::new(id, name, media_type, bytes.len() as u64));
    }
    Ok(artifacts)
}

/// Stores files and has a message's meta name them.
pub(crate) async fn attach_files(
    society: &Society,
    files: &[ClientFile],
    meta: &mut Map<String, Value>,
) -> Result<(), ArtifactError> {
    Artifact::attach(meta, &store_files(society, files).await?);
    let pictures = files.iter().filter_map(|file| match file {
        ClientFile::PictureAt(url) => Some(&**url),
        ClientFile::Content { .. } => None,
    });
    Media::attach_addresses(meta, pictures);
    Ok(())
}

fn shown(name: &str) -> String {
    if name.is_empty() { "the attachment".to_owned() } else { format!("`{name}`") }
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
        let file = |name: &str, media_type: &str, bytes: &[u8]| ClientFile::Content {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes: bytes.into(),
        };
        assert_eq!(read("data:image/png;base64,QUJD"), Some(Ok(file("picture.png", "image/png", b"ABC"))));
        assert_eq!(read("DATA:;base64,QUI"), Some(Ok(file("file", "application/octet-stream", b"AB"))));
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
