//! `put_artifact`, `get_artifact` and `list_artifacts`: what is kept outside the conversation, by name of its content.

mod get;
mod list;
mod media;
mod put;

pub use get::GetArtifact;
pub use list::ListArtifacts;
pub use media::media_type;
pub use put::PutArtifact;
pub(crate) use put::copied;
