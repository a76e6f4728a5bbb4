//! The agent card: name, address and skills. It is public, so it contains no prompt.

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, ETAG, HOST};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use polis_domain::{AgentId, Digest, Org, OrgRole};
use serde_json::{Value, json};

use super::VERSION;
use crate::Societies;
use crate::access::Scheme;
use crate::problem::Problem;
use crate::state::SocietyState;

/// A message with an id that we know is not done twice: who declares this may be sent a message again.
pub(super) const KNOWS_MESSAGES: &str = "urn:polis:a2a:repeated-messages-are-known:v1";

/// The address under which a client reached this society.
pub(crate) struct Base(pub(super) String);

impl FromRequestParts<SocietyState> for Base {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Self::Rejection> {
        let named = parts.uri.authority().map(|authority| authority.as_str());
        let host = named.or_else(|| parts.headers.get(HOST).and_then(|value| value.to_str().ok())).unwrap_or("localhost");
        let society = state.society.id();
        let is_other = parts.extensions.get::<Societies>().is_some_and(|societies| societies.is_other(society));
        let prefix = if is_other { format!("/s/{society}") } else { String::new() };
        let scheme = parts.extensions.get::<Scheme>().map_or("http", |scheme| scheme.0);
        Ok(Self(format!("{scheme}://{host}{prefix}")))
    }
}

pub(crate) async fn card(State(state): State<SocietyState>, base: Base) -> Result<Response, Problem> {
    // Anybody reads the card, so it has only roles that persons created.
    let mut roles = state.society.look(Org::of).await?.roles;
    roles.retain(|role| role.created_by.is_user());
    let card = describe(&base, &roles);
    let digest = serde_json::to_value(Digest::of([&*card.to_string()]));
    let mut response = axum::Json(card).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    let tag = digest.ok().and_then(|digest| HeaderValue::from_str(&digest.to_string()).ok());
    headers.extend(tag.map(|tag| (ETAG, tag)));
    Ok(response)
}

fn describe(base: &Base, roles: &[OrgRole]) -> Value {
    let texts = ["text/plain", "application/json"];
    let general = json!({
        "id": AgentId::root().as_str(),
        "name": "Any request",
        "description": "Takes a request in words, plans, uses tools, asks other agents, checks the result and answers.",
        "tags": ["general", "planning", "tools", "collaboration"],
        "examples": ["average amount by city in sales.csv", "what is 15% of 240?"],
    });
    let role = |role: &OrgRole| {
        json!({
            "id": format!("role.{}", role.role.id),
            "name": &*role.role.name,
            "description": format!("What the role {} of this society does.", role.role.name),
            "tags": ["role"],
        })
    };
    let roles = roles.iter().filter(|role| role.role.id.as_str() != "root").map(role);
    let skills: Vec<Value> = std::iter::once(general).chain(roles).collect();
    json!({
        "name": "Polis",
        "description": "A durable team of AI agents. Requests survive a crash and continue; a person is asked where a decision is needed.",
        "supportedInterfaces": [{ "url": format!("{}/a2a", base.0), "protocolBinding": "JSONRPC", "protocolVersion": VERSION }],
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {
            "streaming": true,
            "pushNotifications": false,
            "extendedAgentCard": false,
            "extensions": [{
                "uri": KNOWS_MESSAGES,
                "description": "A message with the same messageId is processed once, also after a crash; a repeat returns the same task.",
                "required": false,
            }],
        },
        "securitySchemes": { "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer", "description": "The token of the server." } } },
        "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
        "defaultInputModes": texts,
        "defaultOutputModes": texts,
        "skills": skills,
    })
}
