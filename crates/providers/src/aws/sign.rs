//! Signature Version 4: a request that proves the knowledge of a secret key without sending it.

use std::fmt::Write as _;
use std::time::SystemTime;

use polis_http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use polis_http::{Bytes, HeaderName, HeaderValue, Request, Uri};
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::AwsKeys;
use crate::percent::encoded;
use crate::utc;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const SESSION_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Signs a request as it stands; its method, address, content type and body may not change any more.
pub(crate) fn sign(request: &mut Request<Bytes>, keys: &AwsKeys, region: &str, service: &str, now: SystemTime) {
    let time = utc::basic(now);
    let date = &time[..8];
    let headers = request.headers_mut();
    headers.insert(DATE, HeaderValue::try_from(&time).expect("a time has digits and letters"));
    if let Some(token) = keys.session_token.as_deref().and_then(|token| HeaderValue::try_from(token).ok()) {
        headers.insert(SESSION_TOKEN, token);
    }
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let (canonical, signed) = canonical(request);
    let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));
    let first = format!("AWS4{}", keys.secret_key).into_bytes();
    let key = [date, region, service, "aws4_request"].into_iter().fold(first, |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &to_sign));
    let access_key = &keys.access_key;
    let text = format!("{ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={signed}, Signature={signature}");
    if let Ok(mut value) = HeaderValue::try_from(text) {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

/// The request in the form that is signed, and the names of the headers in it.
fn canonical(request: &Request<Bytes>) -> (String, String) {
    let uri = request.uri();
    let mut headers = vec![(HOST, host(uri))];
    for name in [CONTENT_TYPE, DATE, SESSION_TOKEN] {
        let value = request.headers().get(&name).and_then(|value| value.to_str().ok());
        headers.extend(value.map(|value| (name, value.split_whitespace().collect::<Vec<_>>().join(" "))));
    }
    headers.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let mut text = format!("{}\n{}\n{}\n", request.method(), encoded(uri.path(), b"/"), query(uri));
    for (name, value) in &headers {
        let _ = writeln!(text, "{name}:{value}");
    }
    let _ = write!(text, "\n{names}\n{}", hex(digest(&SHA256, request.body()).as_ref()));
    (text, names)
}

/// The value of `Host` as the HTTP client sends it.
fn host(uri: &Uri) -> String {
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    let host = uri.host().unwrap_or_default();
    match uri.port_u16() {
        Some(port) if port != usual => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

/// The parameters in order. They are encoded already.
fn query(uri: &Uri) -> String {
    let parts = uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
    let mut pairs: Vec<_> = parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use polis_http::Method;

    use super::*;

    fn signature(method: Method, address: &str, content_type: &str, body: &str, token: Option<&str>) -> String {
        let keys = AwsKeys {
            access_key: "AKIDEXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: token.map(str::to_owned),
        };
        let mut request = Request::new(Bytes::copy_from_slice(body.as_bytes()));
        *request.method_mut() = method;
        *request.uri_mut() = address.parse().unwrap();
        if !content_type.is_empty() {
            request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        sign(&mut request, &keys, "us-east-1", "service", utc::parse("2015-08-30T12:36:00Z").unwrap());
        assert_eq!(request.headers()[DATE], "20150830T123600Z");
        let value = request.headers()[AUTHORIZATION].to_str().unwrap().to_owned();
        let start = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=";
        value.strip_prefix(start).unwrap().replace(", Signature=", " ")
    }

    /// The cases of Amazon's published test suite that can occur here.
    #[test]
    fn signatures_are_those_of_the_published_test_suite() {
        let host = "https://example.amazonaws.com";
        let check = |method: Method, path: &str, content_type: &str, body: &str, token, want: &str| {
            assert_eq!(signature(method, &format!("{host}{path}"), content_type, body, token), want, "{path} {body}");
        };
        let plain = "host;x-amz-date";
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        check(Method::GET, "/", "", "", None, &format!("{plain} {vanilla}"));
        let ordered = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        check(Method::GET, "/?Param2=value2&Param1=value1", "", "", None, &format!("{plain} {ordered}"));
        let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        check(Method::POST, "/", "", "", None, &format!("{plain} {post}"));
        let form = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        let want = format!("content-type;{plain} {form}");
        check(Method::POST, "/", "application/x-www-form-urlencoded", "Param1=value1", None, &want);
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        let with_token = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead";
        check(Method::POST, "/", "", "", Some(token), &format!("{plain};x-amz-security-token {with_token}"));
    }

    #[test]
    fn a_model_in_the_path_is_encoded_for_the_address_and_once_more_for_the_signature() {
        let path = format!("http://h:8080/model/{}/converse-stream", encoded("a.b-v1:0", b""));
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = path.parse().unwrap();
        let (text, _) = canonical(&request);
        assert!(text.starts_with("GET\n/model/a.b-v1%253A0/converse-stream\n\nhost:h:8080\n"), "{text}");
    }
}
