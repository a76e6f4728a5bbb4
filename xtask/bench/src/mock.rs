//! A model server that answers at once: first with a tool call, then, when it is given the result, with an answer.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const CALL: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"noop","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}"#,
    "\n\ndata: [DONE]\n\n",
);

const ANSWER: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"It is"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":" done."}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":3}}"#,
    "\n\ndata: [DONE]\n\n",
);

/// A mock server in a process of its own, so that its CPU is not counted; it ends with the guard.
pub(crate) struct Mock {
    process: Child,
    pub(crate) url: String,
}

impl Mock {
    /// Starts the server that the program is when it is called with `model NAME`.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?).args(["model", name]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("it prints")?).read_line(&mut line)?;
        Ok(Self { process, url: line.trim().to_owned() })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a server says to the body of a request: a stream of events.
pub(crate) type Reply = fn(&[u8]) -> Bytes;

/// Serves until it is killed; the first line it prints is its address.
pub(crate) fn serve(reply: Reply) -> Result<()> {
    crate::world::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service_fn(move |request| answer(request, reply));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn answer(request: Request<Incoming>, reply: Reply) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let response = Response::builder().header("content-type", "text/event-stream").body(Full::new(reply(&body)));
    Ok(response.unwrap_or_default())
}

/// A call at first, then the answer.
pub(crate) fn run(body: &[u8]) -> Bytes {
    let told = body.windows(9).any(|window| window == b"\"call_1\",") || body.windows(9).any(|window| window == b"\"call_1\"}");
    Bytes::from_static(if told { ANSWER } else { CALL }.as_bytes())
}
