//! A browser whose person agrees to everything: it opens an address and follows where it is sent.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Most places that it is sent to.
const MAX_HOPS: usize = 5;

/// Opens an address on this machine.
pub(in crate::mcp) async fn open(mut address: String) {
    for _ in 0..MAX_HOPS {
        let Some(next) = visit(&address).await else { return };
        address = next;
    }
}

async fn visit(address: &str) -> Option<String> {
    let rest = address.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut server = TcpStream::connect(host).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    server.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let mut lines = answer.lines().take_while(|line| !line.is_empty());
    lines.find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location"))?.1.to_owned().into())
}
