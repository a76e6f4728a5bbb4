//! A model server that streams at a pace: `/COUNT/MICROS` before the path of a request says how many deltas, and how far apart.
//! Each says its number and when it was sent. It is raw TCP, so that the server takes as little of the machine as it can.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::world;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

const END: &str = concat!(
    r#"data: {"id":"chatcmpl-9f2d","object":"chat.completion.chunk","created":1762000000,"model":"mock","system_fingerprint":"fp_4470","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"id":"chatcmpl-9f2d","object":"chat.completion.chunk","created":1762000000,"model":"mock","system_fingerprint":"fp_4470","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}"#,
    "\n\ndata: [DONE]\n\n",
);

/// Serves until it is killed; the first line it prints is its address.
pub(crate) fn serve() -> Result<()> {
    world::raise_open_files()?;
    world::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        for guest in 0_u32.. {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(reply(stream, guest));
        }
        Ok(())
    })
}

/// The address of a stream of so many deltas, so far apart.
pub(crate) fn url(server: &str, count: u64, apart: Duration) -> String {
    format!("{server}/{count}/{}", apart.as_micros())
}

async fn reply(mut stream: TcpStream, guest: u32) -> Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    while let Some((count, apart)) = request(&mut stream, &mut bytes).await? {
        stream.write_all(HEAD).await?;
        // Those who ask at the same moment are not all answered at the same moment.
        let offset = apart.mul_f64((f64::from(guest) * 0.618_034).fract());
        let mut ticks = tokio::time::interval_at(Instant::now() + apart + offset, apart);
        for n in 0..count {
            ticks.tick().await;
            let data = format!(
                r#"data: {{"id":"chatcmpl-9f2d","object":"chat.completion.chunk","created":1762000000,"model":"mock","system_fingerprint":"fp_4470","choices":[{{"index":0,"delta":{{"content":"{n}@{} "}},"logprobs":null,"finish_reason":null}}]}}"#,
                world::now().as_nanos()
            );
            chunk(&mut out, &[&data, "\n\n"]);
            stream.write_all(&out).await?;
        }
        chunk(&mut out, &[END]);
        out.extend_from_slice(b"0\r\n\r\n");
        stream.write_all(&out).await?;
    }
    Ok(())
}

/// Puts one chunk of a body in place of what `out` holds.
fn chunk(out: &mut Vec<u8>, parts: &[&str]) {
    out.clear();
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    out.extend_from_slice(b"\r\n");
}

/// What the next request asks for; none when the client is gone.
async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<Option<(u64, Duration)>> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0").parse()?;
            if body.len() >= length {
                bytes.clear();
                let mut parts = head.split('/').skip(1);
                let mut next = || parts.next().context("the path says how many, and how far apart");
                return Ok(Some((next()?.parse()?, Duration::from_micros(next()?.parse()?))));
            }
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}
