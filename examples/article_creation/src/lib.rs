//! Writes an article: outlined, researched from the files of a folder, drafted, reviewed, and sent back where it must be.
//!
//! ```text
//! article_creation                 the conversation: a request, and in its answer
//!   article_writing                  topic_outline > aspect_research > draft_writing > draft_review > article_completion
//!     aspect_research                  one for each aspect, beside each other: source_search > finding_summary
//!     editorial_review                 claim_comparison > verdict_forming; sends the draft back, twice at most
//! ```
//! Each arrow is a durable turn. Killed at any moment and started again, it goes on where it was.

mod article_creation;
mod offline_author;
pub mod sources;
mod tagged;

pub use article_creation::ArticleCreationAgent;
pub use offline_author::OfflineAuthor;
