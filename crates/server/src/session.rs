//! The page's cookie: got for a token, signed with it, and worth nothing without this server.
//!
//! A cookie goes to every server of the same host name, whatever its port. So it does not hold the token but a word that is
//! signed with its hash and ends; and it counts only where the browser says that our own page asks.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use ring::hmac;

use crate::tokens::{AcceptedToken, Tokens, hex};

/// How long the page may go on without the token.
const LIFETIME_S: u64 = 30 * 24 * 3_600;

/// Whose cookies these are: those of one port are not those of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sessions {
    pub(crate) port: u16,
    /// Whether the cookie is never to be sent in the open.
    pub(crate) is_secure: bool,
    /// Whether browsers say here which page asks: they do to this machine, and where it is encrypted.
    pub(crate) browsers_say: bool,
}

impl Sessions {
    /// The token in `GET /?token=…`, which is to become a cookie.
    pub(crate) fn requested(method: &Method, uri: &Uri) -> Option<String> {
        let query = uri.query().filter(|_| *method == Method::GET && uri.path() == "/")?;
        query.split('&').find_map(|part| part.strip_prefix("token=")).map(str::to_owned)
    }

    /// The header that begins a session.
    pub(crate) fn cookie(self, known: &AcceptedToken, now_s: u64) -> String {
        let until = now_s + LIFETIME_S;
        let word = format!("{}.{until}", known.name);
        let signature = hex(hmac::sign(&known.hash.key(), self.signed(&word).as_bytes()).as_ref());
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={word}.{signature}; Path=/; HttpOnly; SameSite=Strict; Max-Age={LIFETIME_S}{secure}", self.name())
    }

    /// Whose session a request belongs to.
    pub(crate) fn token_of_cookie(
        self,
        method: &Method,
        headers: &HeaderMap,
        tokens: &Tokens,
        now_s: u64,
    ) -> Option<AcceptedToken> {
        if !self.is_of_our_page(method, headers) {
            return None;
        }
        let name = format!("{}=", self.name());
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let cookie = cookies.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix(&name))?;
        let (word, signature) = cookie.rsplit_once('.')?;
        let (name, until) = word.rsplit_once('.')?;
        let known = tokens.find_by_name(name)?;
        let signature: Vec<u8> = signature
            .as_bytes()
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok())
            .collect::<Option<_>>()?;
        hmac::verify(&known.hash.key(), self.signed(word).as_bytes(), &signature).ok()?;
        (until.parse::<u64>().ok()? > now_s).then_some(known)
    }

    /// Whether the browser says that our page asks, or gives its origin. Where it cannot say so, one that says nothing may look.
    fn is_of_our_page(self, method: &Method, headers: &HeaderMap) -> bool {
        match (headers.get("sec-fetch-site"), headers.get(ORIGIN)) {
            (Some(site), _) => site == "same-origin" || site == "none",
            (None, Some(origin)) => is_own(origin, headers),
            (None, None) => !self.browsers_say && (*method == Method::GET || *method == Method::HEAD),
        }
    }

    fn name(self) -> String {
        format!("polis_{}", self.port)
    }

    fn signed(self, word: &str) -> String {
        format!("polis page session {} {word}", self.port)
    }
}

/// Whether an origin is the server that is asked.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let page = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, page)| page);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    page.is_some_and(|page| host.is_some_and(|host| host.eq_ignore_ascii_case(page)))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tokens::Token;

    #[test]
    fn a_cookie_is_good_for_its_port_its_time_and_our_page_alone() {
        let tokens = Tokens::new(&Token::of_bits([1; 32]), None);
        let others = Tokens::new(&Token::of_bits([2; 32]), None);
        let sessions = Sessions { port: 3000, is_secure: false, browsers_say: true };
        let owner = tokens.find_by_name("owner").unwrap();
        let cookie = sessions.cookie(&owner, 100);
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains("Secure"), "{cookie}");
        assert!(!cookie.contains(&"01".repeat(32)), "the token itself stays here");
        let pair = cookie.split(';').next().unwrap();
        let held = |sessions: Sessions, tokens: &Tokens, now, method: &Method, site: Option<&'static str>, pair: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}")).unwrap());
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            sessions.token_of_cookie(method, &headers, tokens, now).is_some()
        };
        let (get, post) = (&Method::GET, &Method::POST);
        assert!(held(sessions, &tokens, 100, get, Some("same-origin"), pair));
        assert!(held(sessions, &tokens, 100, post, Some("same-origin"), pair));
        assert!(!held(sessions, &tokens, 100, get, None, pair), "a program that the browser sent the cookie to");
        let abroad = Sessions { browsers_say: false, ..sessions };
        assert!(held(abroad, &tokens, 100, get, None, pair), "browsers say nothing to other machines in the open");
        assert!(!held(abroad, &tokens, 100, post, None, pair));
        assert!(!held(sessions, &tokens, 100, post, None, pair), "a form of nobody knows where");
        assert!(!held(sessions, &tokens, 100, get, Some("same-site"), pair), "another port of this machine");
        assert!(!held(sessions, &tokens, 100 + LIFETIME_S, get, Some("same-origin"), pair), "too late");
        assert!(!held(sessions, &others, 100, get, Some("same-origin"), pair), "another token");
        let elsewhere = pair.replace("polis_3000", "polis_3001");
        assert!(!held(Sessions { port: 3001, ..sessions }, &tokens, 100, get, Some("same-origin"), &elsewhere));
        let longer = pair.replace(&(100 + LIFETIME_S).to_string(), &(200 + LIFETIME_S).to_string());
        assert!(!held(sessions, &tokens, 100, get, Some("same-origin"), &longer), "a longer life is not signed");
    }
}
