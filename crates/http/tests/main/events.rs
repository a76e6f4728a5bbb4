//! Server-sent events over a connection, however they are cut.

use polis_http::sse::{Event, EventError, TooLong};
use polis_http::{EventStream, HttpClient, HttpError};

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

async fn stream(client: &HttpClient, server: &Server, max_event_bytes: usize) -> EventStream {
    EventStream::new(client.send(get(&server.url())).await.unwrap().into_body(), max_event_bytes)
}

#[tokio::test]
async fn events_are_whole_however_the_bytes_come() {
    let server = Server::start(|number| Some(in_chunks(EVENTS, number))).await;
    let client = HttpClient::new(options(&[]));
    for _ in 0..EVENTS.len() {
        let mut events = stream(&client, &server, 1 << 10).await;
        let event = |id: &'static str, name: &'static str, data: &'static str| {
            Some(Event { id: id.into(), name: name.into(), data: data.into() })
        };
        assert_eq!(events.next().await.unwrap(), event("1.5f", "a", "{\"x\":1}"));
        assert_eq!(events.next().await.unwrap(), event("", "b", "一\n2"));
        assert_eq!(events.next().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_event_without_end_and_a_cut_stream_are_errors() {
    let long = Server::start(|_| Some(in_chunks(&"x".repeat(100), 7))).await;
    let client = HttpClient::new(options(&[]));
    let error = stream(&client, &long, 64).await.next().await.unwrap_err();
    assert_eq!(error, EventError::TooLong(TooLong { max_bytes: 64 }));
    let cut =
        Server::start(|_| Some(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\nzz\r\n".to_vec()))
            .await;
    let mut events = stream(&client, &cut, 64).await;
    assert_eq!(events.next().await.unwrap().unwrap().data, "a");
    assert!(matches!(events.next().await, Err(EventError::Http(HttpError::Cut { .. }))));
    assert_eq!(events.next().await, Ok(None), "it is over");
}
