//! `put_artifact`, `get_artifact` and `list_artifacts`: what is kept outside the conversation, by name of its content.

mod get;
mod list;
mod media;
mod put;

pub use get::GetArtifact;
pub use list::ListArtifacts;
#[cfg(target_os = "linux")]
pub(crate) use media::is_text;
pub use media::media_type;
pub use put::PutArtifact;
pub(crate) use put::copied;
