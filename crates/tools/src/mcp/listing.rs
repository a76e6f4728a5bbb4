//! Reads a server's lists, page by page, without believing that they end.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most pages of one list.
const MAX_PAGES: usize = 64;

/// Most entries of one list.
const MAX_ENTRIES: usize = 512;

/// Most bytes of one list; whoever has more to say has its rest left out.
const MAX_LIST_BYTES: usize = 16 << 20;

/// How long one page may take.
const PAGE: Duration = Duration::from_secs(30);

/// Something that a server lets be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its type.
    pub mime_type: Option<String>,
}

/// Addresses of resources, with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The addresses: `{name}` is a place to fill in.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// What they are.
    pub description: Option<String>,
    /// Their type.
    pub mime_type: Option<String>,
}

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes, as the protocol says it.
    #[serde(default)]
    pub arguments: Vec<Value>,
}

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// All entries of a list, as the server wrote them: one that is no good must not spoil the others.
pub(super) async fn entries(peer: &Peer<RoleClient>, list: List) -> Result<Vec<Value>, ServiceError> {
    let (mut entries, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..MAX_PAGES {
        let request = list.page(cursor.clone());
        let handle = peer.send_request_with_option(request, PeerRequestOptions::with_timeout(PAGE)).await?;
        let mut page = serde_json::to_value(handle.await_response().await?).unwrap_or_default();
        let Value::Array(more) = page[list.field()].take() else { return Err(ServiceError::UnexpectedResponse) };
        bytes += more.iter().map(|entry| entry.to_string().len()).sum::<usize>();
        if bytes > MAX_LIST_BYTES {
            tracing::warn!("a server lists more than {MAX_LIST_BYTES} bytes of {}; the rest is left out", list.field());
            break;
        }
        entries.extend(more);
        let next = page["nextCursor"].as_str().map(str::to_owned);
        if entries.len() >= MAX_ENTRIES || next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    if entries.len() > MAX_ENTRIES {
        tracing::warn!("a server lists more than {MAX_ENTRIES} {}; the rest is left out", list.field());
        entries.truncate(MAX_ENTRIES);
    }
    Ok(entries)
}

impl List {
    fn page(self, cursor: Option<String>) -> ClientRequest {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest { params, ..Default::default() }),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() }),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest { params, ..Default::default() })
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() }),
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}
