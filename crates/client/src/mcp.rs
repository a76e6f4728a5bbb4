//! Handing MCP messages on to a server: each is a `POST` to `/mcp`, and what comes back is one message or a stream of them.

use std::collections::VecDeque;

use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::events::{Body, Sse};
use crate::exchange::{Client, ClientError, problem, whole};

/// The messages that come back for one.
pub struct McpMessages {
    ready: VecDeque<Value>,
    events: Option<Sse>,
}

impl Client {
    /// Forwards a message of a client on stdio. `session` tells the requests of one process from those of another.
    pub async fn mcp(&self, session: &str, message: &str) -> Result<McpMessages, ClientError> {
        let bad = |error: serde_urlencoded::ser::Error| ClientError::BadUrl(error.to_string());
        let query = serde_urlencoded::to_string([("via", "stdio"), ("session", session)]).map_err(bad)?;
        let target = format!("/mcp?{query}");
        let response = self.call(&target, Some(("application/json", message.as_bytes().to_vec()))).await?;
        let (status, mut body) = (response.status, response.body);
        let Some(first) = body.next().await else { return Ok(McpMessages { ready: VecDeque::new(), events: None }) };
        let first = first.map_err(ClientError::Gone)?;
        let is_one = first.starts_with(b"{");
        let body: Body = Box::pin(stream::iter([Ok(first)]).chain(body));
        if !is_one {
            return Ok(McpMessages { ready: VecDeque::new(), events: Some(Sse::new(body)) });
        }
        let text = whole(body).await?;
        let message = parsed(&text)?;
        // An error of the transport is no message.
        if message.get("jsonrpc").is_none() {
            return Err(problem(status, &text));
        }
        Ok(McpMessages { ready: VecDeque::from([message]), events: None })
    }
}

impl McpMessages {
    /// The next message; none after the last one.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        if let Some(message) = self.ready.pop_front() {
            return Ok(Some(message));
        }
        let Some(events) = &mut self.events else { return Ok(None) };
        events.next().await?.map(|event| parsed(event.data.as_bytes())).transpose()
    }
}

fn parsed(text: &[u8]) -> Result<Value, ClientError> {
    serde_json::from_slice(text).map_err(|error| ClientError::Strange(format!("the answer cannot be parsed: {error}")))
}
