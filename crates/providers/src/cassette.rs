//! Recorded models: what a model was asked and what it answered, in a file, and a model that answers from that file.
//!
//! A cassette is lines of JSON: a header with the version, then one interaction a line, written when it ends. A key is
//! never in it, since no request holds one; pictures are there as digests. Everything that a model can see belongs to a
//! request's identity: model, system, messages, tools with their schemas, format and numbers. Who asks does not, nor
//! what repeating a tool's call would mean.
//!
//! ```
//! use std::sync::Arc;
//!
//! use polis_ports::{ChatMessage, Model, ModelRequest, collect};
//! use polis_providers::{Offline, Recorder, Replayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("hello.jsonl");
//! let hello = ModelRequest { messages: vec![ChatMessage::user("hello")], ..ModelRequest::default() };
//! let recorder = Recorder::open(Arc::new(Offline::default()), &file)?;
//! let said = collect(recorder.stream(hello.clone()).await?).await?;
//!
//! // In a test, without any model:
//! let replayer = Replayer::open(&file)?;
//! assert_eq!(collect(replayer.stream(hello.clone()).await?).await?, said);
//! assert!(replayer.unused().is_empty());
//!
//! let other = ModelRequest { system: "Be brief.".into(), ..hello };
//! let refused = replayer.stream(other).await.err().map(|error| error.to_string());
//! assert!(refused.is_some_and(|why| why.contains("+ system: Be brief.")));
//! # Ok(())
//! # }
//! ```

mod diff;
mod format;
mod recorder;
mod replayer;

use std::path::{Path, PathBuf};

pub use recorder::Recorder;
pub use replayer::Replayer;

/// What the first line says.
const VERSION: u32 = 1;

/// A file that is no cassette of ours, or cannot be used as one.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("the cassette {}: {error}", file.display())]
    Io {
        /// The file of the cassette.
        file: PathBuf,
        /// The error of the file system.
        #[source]
        error: std::io::Error,
    },
    /// A line cannot be understood.
    #[error("the cassette {} line {line}: {why}", file.display())]
    Unreadable {
        /// The file of the cassette.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The interactions of a file with their line numbers, and how many bytes are whole lines: a process that was killed while it
/// wrote leaves half a line at the end, which counts for nothing.
fn read(file: &Path) -> Result<(Vec<(usize, format::Interaction)>, usize), CassetteError> {
    let bytes = std::fs::read(file).map_err(|error| CassetteError::Io { file: file.to_owned(), error })?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let unreadable = |line, why| CassetteError::Unreadable { file: file.to_owned(), line, why };
    let mut lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..);
    match lines.next().map(|(line, _)| serde_json::from_slice::<format::Header>(line)) {
        None if bytes.is_empty() => return Ok((Vec::new(), 0)),
        Some(Ok(header)) if header.cassette == VERSION => {}
        Some(Ok(header)) => {
            let why = format!("it has version {}, but this Polis reads version {VERSION}", header.cassette);
            return Err(unreadable(1, why));
        }
        None | Some(Err(_)) => {
            return Err(unreadable(1, "this is not a cassette: it does not begin with {\"cassette\":1}".to_owned()));
        }
    }
    let interactions = lines.filter(|(line, _)| !line.trim_ascii().is_empty()).map(|(line, number)| {
        serde_json::from_slice(line).map(|it| (number, it)).map_err(|error| unreadable(number, error.to_string()))
    });
    Ok((interactions.collect::<Result<_, _>>()?, whole))
}
