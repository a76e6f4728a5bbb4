//! Which node a request is for. One that another node owns is passed on; while a society changes hands, the request waits.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polis_api::local::Registry;
use polis_domain::SocietyId;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::links::{Asked, AskedBody, MOVED, Passed};
use super::place::Place;
use super::{Nodes, lock};
use crate::access::peer;
use crate::problem::Problem;
use crate::registry::Societies;
use crate::{idempotency, routes};

/// A request that another node has passed on. It is passed on no further.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromNode;

/// An answer of another node, which is complete as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedOn;

/// How long to wait before it is asked again where a society is.
const AGAIN: Duration = Duration::from_millis(100);

/// The longest body that is held, so that it can be sent to another node if the first one does not own the society.
const MAX_HELD: u64 = 1 << 20;

impl Societies {
    /// Answers a request for a society: here, or by the node that owns it. `uri` is the address as the client has it.
    pub(crate) async fn answer(&self, nodes: &Nodes, society: &SocietyId, uri: Uri, request: Request) -> Response {
        let is_passed_on = request.extensions().get::<FromNode>().is_some();
        let client = peer(&request);
        let (parts, body) = request.into_parts();
        let body = AskedBody::Stream(Some(body));
        let is_once = parts.headers.contains_key(idempotency::HEADER) && routes::is_once(&parts.method, parts.uri.path());
        let is_repeatable = is_once || matches!(parts.method, Method::GET | Method::HEAD);
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        let mut asked = Asked { method, uri, headers, client, body, is_repeatable };
        let until = Instant::now() + nodes.patience();
        loop {
            let why = match self.place(nodes, society, is_passed_on).await {
                Err(error) => return Problem::from(error).into_response(),
                Ok(Place::Here(entry)) => return self.answer_here(entry.router, parts, asked.body).await,
                // The other node asks again where it is.
                Ok(Place::At(_) | Place::Nowhere(_)) if is_passed_on => {
                    return (StatusCode::MISDIRECTED_REQUEST, [(MOVED, "1")]).into_response();
                }
                Ok(Place::Nowhere(why)) => why,
                Ok(Place::At(node)) => {
                    if let Err(problem) = hold(&mut asked.body).await {
                        return problem.into_response();
                    }
                    let passed = nodes.links.pass(&nodes.key, &node, &mut asked).await;
                    let failed = match passed {
                        Passed::Answered(mut response) => {
                            response.headers_mut().remove("cross-origin-resource-policy");
                            response.extensions_mut().insert(PassedOn);
                            return response;
                        }
                        Passed::Unknown(error) if !asked.is_repeatable || asked.is_spent() => {
                            tracing::warn!(node = node.name, %error, "a node was lost while it answered");
                            lock(&nodes.owners).remove(society);
                            return lost(society, &node.name).into_response();
                        }
                        Passed::NotTaken(error) | Passed::Unknown(error) => error,
                    };
                    lock(&nodes.owners).remove(society);
                    format!("{}: {failed}", node.name)
                }
            };
            if Instant::now() >= until || asked.is_spent() {
                let detail = format!("the society {society} is changing hands ({why}); try again");
                return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "society_moving", detail).into_response();
            }
            sleep(AGAIN).await;
        }
    }

    /// Answers a request for a society that this node owns.
    async fn answer_here(&self, mut router: axum::Router, parts: Parts, body: AskedBody) -> Response {
        let body = match body {
            AskedBody::Whole(bytes) => Body::from(bytes),
            AskedBody::Stream(body) => body.unwrap_or_default(),
        };
        let mut request = Request::from_parts(parts, body);
        request.extensions_mut().insert(Arc::new(self.clone()) as Arc<dyn Registry>);
        let Ok(response) = router.call(request).await;
        response
    }
}

/// Holds a body that is short enough.
async fn hold(body: &mut AskedBody) -> Result<(), Problem> {
    let AskedBody::Stream(stream) = body else { return Ok(()) };
    let is_short = |body: &mut Body| body.size_hint().exact().is_some_and(|length| length <= MAX_HELD);
    if let Some(short) = stream.take_if(is_short) {
        let read = to_bytes(short, MAX_HELD as usize).await;
        let broken = |_| Problem::bad_request("bad_body", "the body of the request ended before its length");
        *body = AskedBody::Whole(read.map_err(broken)?);
    }
    Ok(())
}

fn lost(society: &SocietyId, node: &str) -> Problem {
    let detail = format!(
        "{node}, which owned the society {society}, was lost while it answered, and may have done what was asked; look before you \
         repeat it. A request with an Idempotency-Key is repeated for you"
    );
    Problem::new(StatusCode::BAD_GATEWAY, "node_lost", detail)
}

/// Whether a request asks how the node is, which each answers itself.
pub(crate) fn is_health(method: &Method, path: &str) -> bool {
    path == crate::access::HEALTH && matches!(*method, Method::GET | Method::HEAD)
}
