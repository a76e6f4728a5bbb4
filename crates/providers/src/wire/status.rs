//! What a status means to the caller, and how long it is to wait.

use std::time::Duration;

use polis_http::header::{DATE, RETRY_AFTER};
use polis_http::{HeaderMap, StatusCode};
use polis_ports::ModelError;

/// What an unsuccessful status means to the caller (D09).
pub(super) fn to_error(status: StatusCode, headers: &HeaderMap, reason: String) -> ModelError {
    match status.as_u16() {
        429 => ModelError::Throttled { reason, retry_after: retry_after(headers) },
        408 | 409 | 424 | 425 | 500.. => ModelError::Failed { reason, retry_after: retry_after(headers) },
        _ => ModelError::Rejected { reason },
    }
}

/// How long the provider wants us to wait. A date is compared with the response's own, so no clock is needed.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok();
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let wait = text(RETRY_AFTER.as_str())?;
    number(wait, 1.0).or_else(|| {
        let until = httpdate::parse_http_date(wait).ok()?;
        let now = httpdate::parse_http_date(text(DATE.as_str())?).ok()?;
        Some(until.duration_since(now).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use polis_http::{HeaderName, HeaderValue};

    use super::*;

    fn wait(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        retry_after(&headers.iter().map(pair).collect())
    }

    #[test]
    fn a_wait_is_read_in_every_form_that_providers_use() {
        assert_eq!(wait(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
        assert_eq!(wait(&[("retry-after", " 0.25 ")]), Some(Duration::from_millis(250)));
        assert_eq!(wait(&[("retry-after", "9"), ("retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
        let (now, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(wait(&[("date", now), ("retry-after", later)]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[("date", later), ("retry-after", now)]), Some(Duration::ZERO));
    }

    #[test]
    fn a_wait_that_cannot_be_read_is_none() {
        for bad in ["", "soon", "-1", "inf", "NaN", "1e300", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(wait(&[("retry-after", bad)]), None, "{bad:?}");
        }
        assert_eq!(wait(&[]), None);
    }
}
