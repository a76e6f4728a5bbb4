//! A client for a polis that runs elsewhere: the operations of [`Api`] over HTTP, and its events.
//!
//! ```no_run
//! use polis_client::api::{Api, Submit};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = polis_client::Client::new("http://127.0.0.1:3000", Some("the token".to_owned()))?;
//! let accepted = client.submit(Submit { text: "read README.md".to_owned(), ..Submit::default() }).await?;
//! let mut events = client.events(accepted.seq).await?;
//! while let Some(event) = events.next().await? {
//!     println!("{} {}", event.name, event.data);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Api`]: polis_api::Api

mod events;
mod exchange;
mod mcp;
mod operations;

pub use events::{Sse, SseEvent};
pub use exchange::{Client, ClientError};
pub use mcp::McpMessages;
pub use polis_api as api;
