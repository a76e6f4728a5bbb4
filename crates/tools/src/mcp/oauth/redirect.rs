//! The local address that the browser is redirected to after a login. It listens only while the login runs.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// Longest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;

const PATH: &str = "/callback";

/// Waits for a browser.
pub(super) struct RedirectListener {
    listener: TcpListener,
    /// The address that a browser is sent to.
    pub(super) address: String,
}

/// The query parameters of a callback.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Callback {
    pub(super) code: String,
    pub(super) state: String,
    pub(super) issuer: Option<String>,
}

impl RedirectListener {
    pub(super) async fn open(port: Option<u16>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let address = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(Self { listener, address })
    }

    /// The callback of the login with this state. A request with another state gets 404 and changes nothing.
    pub(super) async fn callback(&self, state: &str) -> Result<Callback, String> {
        loop {
            let Ok((mut browser, _)) = self.listener.accept().await else { continue };
            let Some(target) = target(&mut browser).await else { continue };
            let outcome = read(&self.address, &target).filter(|(found, _)| found == state).map(|(_, outcome)| outcome);
            let (status, text) = match &outcome {
                None => ("404 Not Found", "Nothing is here."),
                Some(Ok(_)) => ("200 OK", "You are logged in, as far as this page knows. Go back to the terminal."),
                Some(Err(_)) => ("200 OK", "The login was refused. Go back to the terminal."),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}", text.len());
            let answer = format!("{head}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{text}");
            let _ = browser.write_all(answer.as_bytes()).await;
            let _ = browser.shutdown().await;
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }
}

/// The path and query that a browser asks for.
async fn target(browser: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let reading = async {
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST_BYTES {
            if browser.read_buf(&mut request).await.is_ok_and(|count| count > 0) {
                continue;
            }
            break;
        }
    };
    // One that says nothing must not keep the next one waiting.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(5), reading).await;
    let text = String::from_utf8_lossy(&request);
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

/// The state that an address carries, and the code or the refusal.
fn read(base: &str, target: &str) -> Option<(String, Result<Callback, String>)> {
    let url = base.parse::<Url>().ok()?.join(target).ok()?;
    let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let state = value("state").filter(|_| url.path() == PATH)?;
    let outcome = match (value("code"), value("error")) {
        (Some(code), None) => Ok(Callback { code, state: state.clone(), issuer: value("iss") }),
        (None, None) => Err("the browser came back with nothing".to_owned()),
        (_, Some(error)) => Err(match value("error_description") {
            Some(why) => format!("the login was refused: {error}: {why}"),
            None => format!("the login was refused: {error}"),
        }),
    };
    Some((state, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_brings_is_read() {
        let base = "http://127.0.0.1:9/callback";
        let callback = |code: &str, issuer: Option<&str>| Callback {
            code: code.to_owned(),
            state: "s".to_owned(),
            issuer: issuer.map(str::to_owned),
        };
        let (state, outcome) = read(base, "/callback?code=a%20b&state=s&iss=https%3A%2F%2Fi").unwrap();
        assert_eq!((state.as_str(), outcome), ("s", Ok(callback("a b", Some("https://i")))));
        let refused = read(base, "/callback?error=access_denied&error_description=no&state=s").unwrap().1;
        assert_eq!(refused, Err("the login was refused: access_denied: no".to_owned()));
        for other in ["/callback?code=a", "/other?code=a&state=s", "/favicon.ico"] {
            assert_eq!(read(base, other), None);
        }
    }

    #[tokio::test]
    async fn a_stranger_with_another_state_changes_nothing() {
        let redirect = RedirectListener::open(None).await.unwrap();
        let port = redirect.listener.local_addr().unwrap().port();
        let visit = async |target: &str| {
            let mut browser = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            browser.write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            browser.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let browsers = async {
            let stranger = visit("/callback?code=evil&state=guess").await;
            assert!(stranger.starts_with("HTTP/1.1 404"), "{stranger}");
            visit("/callback?code=good&state=ours").await
        };
        let (callback, answer) = tokio::join!(redirect.callback("ours"), browsers);
        assert_eq!(callback.unwrap().code, "good");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
