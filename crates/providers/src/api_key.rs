//! A vendor's key: it can be sent, and by no other way does it leave this type.

use std::fmt;
use std::sync::Arc;

use polis_http::{HeaderMap, HeaderValue};
use polis_ports::ModelError;

/// A secret that is never printed, logged or stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: Arc<str>,
    bearer: HeaderValue,
}

/// A key that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is empty or contains characters that cannot be sent; copy it again, without spaces or line breaks inside")]
pub struct BadKey;

impl ApiKey {
    /// Takes a key as people paste it; blanks around it are dropped.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadKey);
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| BadKey)?;
        bearer.set_sensitive(true);
        Ok(Self { text: text.into(), bearer })
    }

    pub(crate) fn plain(&self) -> HeaderValue {
        let mut plain = HeaderValue::try_from(&*self.text).expect("it was checked when the key was taken");
        plain.set_sensitive(true);
        plain
    }

    /// Whether it is a token that an identity service signed.
    pub(crate) fn is_json_web_token(&self) -> bool {
        self.text.starts_with("eyJ") && self.text.matches('.').count() == 2
    }

    pub(crate) fn bearer(&self) -> HeaderValue {
        self.bearer.clone()
    }
}

/// Length of the shortest secret that is taken out of messages, in bytes.
const MIN_HIDDEN_BYTES: usize = 8;

/// Takes the key out of what a provider said: some repeat it in their errors.
pub(crate) fn hide(key: Option<&ApiKey>, error: ModelError) -> ModelError {
    match key {
        Some(key) => without(&key.text, error),
        None => error,
    }
}

/// The same for the values of headers.
pub(crate) fn hide_headers(headers: &HeaderMap, error: ModelError) -> ModelError {
    let values = headers.values().filter_map(|value| value.to_str().ok());
    let secrets = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    secrets.fold(error, |error, secret| without(secret, error))
}

fn without(secret: &str, mut error: ModelError) -> ModelError {
    use ModelError::{Adapted, Cut, Failed, Rejected, Resting, Throttled, Unreachable};
    match &mut error {
        Throttled { reason, .. } | Rejected { reason } | Adapted { reason } | Failed { reason, .. } | Cut { reason } => {
            // A short secret may be part of any word, and no vendor has such keys.
            if secret.len() >= MIN_HIDDEN_BYTES && reason.contains(secret) {
                *reason = reason.replace(secret, "***");
            }
        }
        Resting { .. } | Unreachable(_) => {}
    }
    error
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_in_no_debug_output() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        assert!(!format!("{key:?} {:?}", key.bearer()).contains("secret"));
        assert_eq!(key.bearer().as_bytes(), b"Bearer sk-secret");
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_refused() {
        for bad in ["", "  ", "two words", "line\nbreak", "schlüssel"] {
            assert_eq!(ApiKey::new(bad).unwrap_err(), BadKey, "{bad:?}");
        }
    }

    #[test]
    fn a_provider_that_repeats_the_key_is_not_quoted_with_it() {
        let key = ApiKey::new("sk-secret").unwrap();
        let error = ModelError::Rejected { reason: "bad key sk-secret!".to_owned() };
        assert_eq!(hide(Some(&key), error).to_string(), "the provider rejects the request: bad key ***!");
        let short = ApiKey::new("k").unwrap();
        let error = ModelError::Rejected { reason: "unknown key".to_owned() };
        assert_eq!(hide(Some(&short), error).to_string(), "the provider rejects the request: unknown key");
    }
}
