//! Many streams at once: nothing is lost or out of order, and no connection is left behind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use polis_domain::Finish;
use polis_ports::{Delta, DeltaStream, Model};
use polis_providers::{GuardedModel, HttpClient, Rate, RemoteModel, RemoteOptions};
use polis_testkit::hostile::{END, HostileServer, ServerAction, chunk, head};

use crate::server::{SSE, hello};

/// Both ends of each are in this process, and many systems give one no more than 1,024 files.
const STREAMS: usize = 250;
const DELTAS: usize = 80;
const DEADLINE: Duration = Duration::from_secs(60);

fn text(stream: usize, n: usize) -> String {
    format!("{stream}:{n} ")
}

/// Numbered deltas, each sent on its own.
fn numbered(stream: usize) -> Vec<ServerAction> {
    let event = |json: String| ServerAction::Send(chunk(format!("data: {json}\n\n").as_bytes()));
    let deltas = (0..DELTAS).map(|n| event(format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, text(stream, n))));
    let mut actions = vec![ServerAction::Send(head(200, SSE))];
    actions.extend(deltas);
    actions.push(event(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned()));
    actions.push(event("[DONE]".to_owned()));
    actions.push(ServerAction::Send(END.to_vec()));
    actions
}

async fn open(http: &HttpClient, server: &HostileServer, stream: usize) -> DeltaStream {
    let remote = RemoteModel::new(http.clone(), RemoteOptions::new("test", server.url(stream), "small")).unwrap();
    GuardedModel::new("test", Arc::new(remote), Rate::default()).stream(hello()).await.unwrap()
}

/// Reads to the end, or as far as `most` deltas of text.
async fn read(mut stream: DeltaStream, most: usize) -> (Vec<String>, Option<Finish>) {
    let (mut said, mut finish) = (Vec::new(), None);
    while said.len() < most
        && let Some(delta) = stream.next().await
    {
        match delta.unwrap() {
            Delta::Content(text) => said.push(text),
            Delta::Done(why) => finish = Some(why),
            _ => {}
        }
    }
    (said, finish)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_at_once_lose_nothing_keep_their_order_and_leave_no_connection() {
    let server = HostileServer::start(numbered).await.unwrap();
    let all = async {
        let http = HttpClient::default();
        let streams = join_all((0..STREAMS).map(|number| open(&http, &server, number))).await;
        assert_eq!(server.open_connections(), STREAMS, "all of them are open at once");
        // Every fifth is given up half-way.
        let limit = |number: usize| if number.is_multiple_of(5) { DELTAS / 2 } else { usize::MAX };
        let hands: Vec<_> =
            streams.into_iter().enumerate().map(|(number, stream)| tokio::spawn(read(stream, limit(number)))).collect();
        for (number, hand) in hands.into_iter().enumerate() {
            let (said, finish) = hand.await.unwrap();
            let count = DELTAS.min(limit(number));
            assert_eq!(said, (0..count).map(|n| text(number, n)).collect::<Vec<_>>(), "stream {number}");
            assert_eq!(finish, (count == DELTAS).then_some(Finish::Stop), "stream {number}");
        }
    };
    tokio::time::timeout(DEADLINE, all).await.expect("all of them end");
    assert!(server.is_left_alone(DEADLINE).await, "{} connections are left", server.open_connections());
}
