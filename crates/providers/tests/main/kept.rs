//! Connections that are kept for the next request, and servers that do not keep them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use polis_providers::vendors;

use crate::server::{SSE, ask, events, response};

/// llama.cpp's server does this after each stream, and promises the contrary.
#[tokio::test]
async fn a_kept_connection_that_ends_when_it_is_used_again_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::with_capacity(65_536)).await.unwrap();
            stream.write_all(&response(200, SSE, hi.as_bytes(), 999)).await.unwrap();
            // The next request comes in and finds nobody.
            stream.read_buf(&mut Vec::with_capacity(65_536)).await.unwrap();
        }
    });
    let set = |name: &str| (name == "OPENAI_COMPATIBLE_BASE_URL").then(|| address.clone());
    let models = vendors::open(Some("openai-compatible/m"), &set).await.unwrap();
    for number in 0..5 {
        let reply = ask(&models).await.unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_eq!(reply.text, "hi");
    }
}
