//! `Idempotency-Key`: a request with a key happens once. The society decides that from its log; here the key is only read.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polis_domain::{Digest, IdempotencyKey};
use polis_engine::Society;
use ring::digest::{Context, SHA256};

use crate::body;
use crate::caller::caller_of;
use crate::problem::Problem;
use crate::state::SocietyState;

pub(crate) const HEADER: &str = "idempotency-key";

/// Longest key.
const MAX_KEY_BYTES: usize = 255;

/// Passes a request on. If it has a key, its extensions get a handle of the society for this request alone, which
/// [`crate::extract::CallerApi`] uses.
pub(crate) async fn with_key(state: &SocietyState, request: Request, next: Next) -> Response {
    match keyed(state, request).await {
        Ok((society, request)) => {
            let mut response = next.run(request).await;
            if society.is_some_and(|society| society.is_replay()) {
                response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
            }
            response
        }
        Err(problem) => problem.into_response(),
    }
}

async fn keyed(state: &SocietyState, request: Request) -> Result<(Option<Society>, Request), Problem> {
    let Some(key) = key(request.headers())? else { return Ok((None, request)) };
    let caller = caller_of(request.extensions());
    let key = digest(&[caller.name(), state.society.id().as_str(), key]);
    let declared = body::declared_bytes(request.headers());
    let (mut parts, body) = request.into_parts();
    let body = body::read_with_timeout(body, declared, body::max_bytes(parts.uri.path())).await?;
    let fingerprint = Digest::of([&*parts.uri.to_string(), &*String::from_utf8_lossy(&body)]);
    let society = state.society.once(polis_domain::Request { key, fingerprint });
    parts.extensions.insert(society.clone());
    Ok((Some(society), Request::from_parts(parts, Body::from(body))))
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let plain = |text: &&str| {
        !text.is_empty() && text.len() <= MAX_KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    let text = value.to_str().ok().map(str::trim).filter(plain);
    let bad = || {
        let detail = format!("Idempotency-Key is 1 to {MAX_KEY_BYTES} plain characters, for example a UUID");
        Problem::bad_request("bad_idempotency_key", detail)
    };
    text.map(Some).ok_or_else(bad)
}

/// The keys of different callers must not meet, whatever they choose: a digest that cannot be steered.
fn digest(parts: &[&str]) -> IdempotencyKey {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&part.len().to_le_bytes());
        context.update(part.as_bytes());
    }
    let digest = context.finish();
    let (half, _) = digest.as_ref().split_first_chunk().expect("SHA-256 has 32 bytes");
    IdempotencyKey(u128::from_be_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_callers_or_societies_are_not_the_same() {
        let keys =
            [["a", "main", "k"], ["b", "main", "k"], ["a", "other", "k"], ["a", "mai", "nk"]].map(|parts| digest(&parts));
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[n + 1..].contains(key), "{n}");
        }
    }
}
