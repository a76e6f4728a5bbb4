//! Asking a society's routes without a network: no token, no `Host`, the same handlers.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use futures_util::{Stream, TryStreamExt};
use polis_api::Caller;
use tower_service::Service;

use crate::routes;
use crate::state::SocietyState;

/// An answer that was got in the same process.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, as it comes.
    pub body: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
}

impl SocietyState {
    /// Asks without a network: no token, no `Host`, the same routes. `target` is a path with its query; a body makes it a
    /// `POST`.
    pub async fn ask(&self, target: &str, body: Option<String>) -> io::Result<Answer> {
        self.ask_for(Caller::owner(), target, body).await
    }

    /// The same on behalf of somebody who may do less.
    pub(crate) async fn ask_for(&self, caller: Caller, target: &str, body: Option<String>) -> io::Result<Answer> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(CONTENT_TYPE, "application/json")
            .extension(caller)
            .body(body.map_or_else(Body::empty, Body::from))
            .map_err(io::Error::other)?;
        let answered: Result<_, Infallible> = self.router().call(request).await;
        let Ok(response) = answered;
        let status = response.status().as_u16();
        let body = response.into_body().into_data_stream().map_err(io::Error::other);
        Ok(Answer { status, body: Box::pin(body) })
    }

    /// The routes, without the checks of who asks.
    pub(crate) fn router(&self) -> Router {
        routes::router(self).with_state(self.clone())
    }
}
