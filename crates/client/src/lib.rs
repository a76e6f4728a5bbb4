//! A client for a polis that runs elsewhere: its routes with types, and its events.
//!
//! ```no_run
//! # async fn example() -> Result<(), polis_client::ClientError> {
//! let client = polis_client::Client::new("http://127.0.0.1:3000", Some("the token".to_owned()))?;
//! let accepted = client.submit("read README.md").await?;
//! let mut events = client.events(accepted.seq).await?;
//! while let Some(event) = events.next().await? {
//!     println!("{} {}", event.name, event.data);
//! }
//! # Ok(())
//! # }
//! ```

mod events;
mod exchange;

pub use events::{Sse, SseEvent};
pub use exchange::{Answer, Client, ClientError};
pub use polis_api as api;
