//! Server-sent events over a connection, however they are cut.

use polis_http::sse::{SseReader, TooLong};
use polis_http::{HttpClient, HttpError};

use crate::servers::{Server, get, options};

const EVENTS: &str =
    ": alive\n\nid: 1.5f\r\nevent: a\r\ndata: {\"x\":1}\r\n\r\nevent: b\ndata: 一\ndata: 2\n\ndata: unfinished";

fn in_chunks(text: &str, size: usize) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in text.as_bytes().chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Id, name and data of each event that came whole, and why no more came.
async fn events(client: &HttpClient, server: &Server) -> (Vec<[String; 3]>, Option<HttpError>) {
    let mut body = client.send(get(&server.url())).await.unwrap().into_body();
    let (mut reader, mut events) = (SseReader::default(), Vec::new());
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) => {
                let take = |event: polis_http::sse::Event<'_>| events.push([event.id, event.name, event.data].map(Into::into));
                reader.push(&chunk, take).unwrap();
            }
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error)),
        }
    }
}

#[tokio::test]
async fn events_are_whole_however_the_bytes_come() {
    let server = Server::start(|number| Some(in_chunks(EVENTS, number))).await;
    let client = HttpClient::new(options(&[]));
    let want = [["1.5f", "a", "{\"x\":1}"], ["", "b", "一\n2"]].map(|event| event.map(str::to_owned));
    for _ in 0..EVENTS.len() {
        assert_eq!(events(&client, &server).await, (want.to_vec(), None));
    }
}

#[tokio::test]
async fn a_cut_stream_is_an_error_after_what_came() {
    let cut = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\nzz\r\n";
    let server = Server::start(|_| Some(cut.to_vec())).await;
    let (events, error) = events(&HttpClient::new(options(&[])), &server).await;
    assert_eq!(events, [["", "", "a"].map(str::to_owned)]);
    assert!(matches!(error, Some(HttpError::Cut { .. })), "{error:?}");
}

#[test]
fn an_event_has_a_limit() {
    let mut reader = SseReader::with_limits(64, 64);
    let long = format!("data: {}", "x".repeat(100));
    assert_eq!(reader.push(long.as_bytes(), |_| ()), Err(TooLong { max_bytes: 64 }));
}
