//! Where documents of models are shown: pages with an origin that is nobody's, which can reach nothing. The page around them
//! hands the document over by message. In the static one only our own script runs, known by its hash; in the live one the
//! document's scripts run too, and that one is off unless the operator turned it on.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;
use crate::state::SocietyState;

/// Takes a document, shows it without its scripts, and says how high it is.
const STATIC: &str = r#"(()=>{
addEventListener('message',({source,data,ports:[port]})=>{
if(source!==parent||!port||typeof data?.html!=='string')return
const page=new DOMParser().parseFromString(data.html,'text/html')
document.head.replaceChildren(...page.head.querySelectorAll('style'))
document.body.replaceChildren(...page.body.childNodes)
new ResizeObserver(()=>port.postMessage({height:document.documentElement.scrollHeight})).observe(document.body)
},{once:true})
parent.postMessage('polis-frame','*')
})()"#;

/// Takes a document, becomes it, and says how high it is and what it wants done.
const LIVE: &str = r#"(()=>{
addEventListener('message',({source,data,ports:[port]})=>{
if(source!==parent||!port||typeof data?.html!=='string')return
for(const name of ['RTCPeerConnection','webkitRTCPeerConnection','RTCDataChannel'])delete globalThis[name]
document.open()
document.write(data.html)
document.close()
globalThis.polis={act:(action,payload)=>port.postMessage({action:String(action),data:JSON.parse(JSON.stringify(payload??null))})}
new ResizeObserver(()=>port.postMessage({height:document.documentElement.scrollHeight})).observe(document.documentElement)
},{once:true})
parent.postMessage('polis-frame','*')
})()"#;

/// The hash is the one of [`STATIC`].
const STATIC_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
     script-src 'sha256-r1L52gL8U0KnYDxwOS5Jx9kdeVVNGqr1AZEcOimytE4='; style-src 'unsafe-inline'; img-src data:; \
     form-action 'none'; base-uri 'none'; frame-src 'none'; connect-src 'none'";

const LIVE_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data: blob:; form-action 'none'; base-uri 'none'; frame-src 'none'; connect-src 'none'";

const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(), payment=(), usb=(), \
     fullscreen=(), display-capture=()";

/// A document without its scripts.
pub(crate) async fn fixed() -> Response {
    frame(STATIC, STATIC_POLICY)
}

/// A document with its scripts.
pub(crate) async fn live(State(state): State<SocietyState>) -> Response {
    if state.page.live_html {
        return frame(LIVE, LIVE_POLICY);
    }
    let detail = "live HTML documents are off; set `live_html = true` under `[page]` in polis.toml to allow them";
    Problem::new(StatusCode::FORBIDDEN, "live_html_off", detail).into_response()
}

fn frame(script: &str, policy: &'static str) -> Response {
    let body =
        format!("<!doctype html><html><head><meta charset=\"utf-8\"></head><body><script>{script}</script></body></html>");
    let plain = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let headers = [
        plain(CONTENT_TYPE, "text/html; charset=utf-8"),
        plain(CONTENT_SECURITY_POLICY, policy),
        plain(REFERRER_POLICY, "no-referrer"),
        plain(HeaderName::from_static("permissions-policy"), PERMISSIONS),
        plain(CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}
