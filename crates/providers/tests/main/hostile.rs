//! Every dialect against a server that breaks its stream at every byte: a correct reply or a typed error, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use polis_domain::Reply;
use polis_ports::{Model, ModelError};
use polis_providers::{HttpClient, RemoteModel, RemoteOptions};
use polis_testkit::hostile::{BodyFault, END, HostileServer, ServerAction, chunk, faulty_response, head};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixtures::{FIXTURES, Fixture};
use crate::server::hello;

/// Far more than any case needs; whoever takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long a stream may stand still here.
const IDLE: Duration = Duration::from_millis(50);

/// How many are asked at once.
const AT_ONCE: usize = 64;

/// How long a model of these tests waits.
#[derive(Clone, Copy)]
struct Waits {
    first: Duration,
    idle: Duration,
}

const PATIENT: Waits = Waits { first: DEADLINE, idle: DEADLINE };

fn model(http: &HttpClient, server: &HostileServer, number: usize, fixture: &Fixture, waits: Waits) -> RemoteModel {
    let mut options = RemoteOptions::new("test", server.url(number), "small");
    (options.dialect, options.first_timeout, options.idle_timeout) = (fixture.dialect, waits.first, waits.idle);
    RemoteModel::new(http.clone(), options).unwrap()
}

async fn ask(model: RemoteModel, what: &str) -> Result<Reply, ModelError> {
    let whole = async { polis_ports::collect(model.stream(hello()).await?).await };
    tokio::time::timeout(DEADLINE, whole).await.unwrap_or_else(|_| panic!("{what} hangs"))
}

/// Does `actions` to a request for each number and gives what came of it to `judge`; no connection may be left behind.
async fn sweep(
    fixture: &'static Fixture,
    count: usize,
    waits: Waits,
    actions: impl Fn(usize) -> Vec<ServerAction> + Send + Sync + 'static,
    judge: impl Fn(usize, Result<Reply, ModelError>),
) {
    let server = Arc::new(HostileServer::start(actions).await.unwrap());
    {
        let http = HttpClient::default();
        let asked = stream::iter(0..count).map(|number| {
            let model = model(&http, &server, number, fixture, waits);
            async move { (number, ask(model, &format!("{:?} {number}", fixture.dialect)).await) }
        });
        let mut asked = std::pin::pin!(asked.buffer_unordered(AT_ONCE));
        while let Some((number, got)) = asked.next().await {
            judge(number, got);
        }
    }
    assert!(server.is_left_alone(DEADLINE).await, "{:?}: {} connections are left", fixture.dialect, server.open_connections());
}

/// Does a deed before every byte of every fixture, and at the end.
async fn everywhere(body_fault: BodyFault, waits: Waits, judge: impl Fn(&Fixture, usize, Result<Reply, ModelError>)) {
    for fixture in FIXTURES {
        let actions = move |at| faulty_response(fixture.media, fixture.body.as_bytes(), at, body_fault);
        sweep(fixture, fixture.body.len() + 1, waits, actions, |at, got| judge(fixture, at, got)).await;
    }
}

/// The reply as far as it must be whole: what follows the reason to stop may be missing.
fn said(reply: &Reply) -> impl PartialEq + std::fmt::Debug + use<> {
    (reply.text.clone(), reply.reasoning.clone(), reply.tool_calls.clone(), reply.finish.clone())
}

fn whole_or_cut(fixture: &Fixture, at: usize, got: Result<Reply, ModelError>) {
    match got {
        Ok(reply) => assert_eq!(said(&reply), said(&fixture.reply()), "{:?} at {at}", fixture.dialect),
        Err(ModelError::Cut { .. }) => assert!(at < fixture.body.len(), "{:?} at {at}", fixture.dialect),
        Err(other) => panic!("{:?} at {at}: {other}", fixture.dialect),
    }
}

/// The body is complete as far as HTTP can tell. Some servers never say why the model stopped, so that the end of the body has to
/// do; what came before it is used, but no call that is not whole.
#[tokio::test]
async fn a_stream_that_ends_anywhere_is_whole_or_cut() {
    everywhere(BodyFault::End, PATIENT, |fixture, at, got| match got {
        Err(ModelError::Failed { reason, .. }) if at == 0 => assert!(reason.starts_with("the answer is empty"), "{reason}"),
        Ok(reply) => {
            let want = fixture.reply();
            assert!(want.text.starts_with(&reply.text) && want.tool_calls.starts_with(&reply.tool_calls), "at {at}: {reply:?}");
        }
        got => whole_or_cut(fixture, at, got),
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_closed_anywhere_is_whole_or_cut() {
    everywhere(BodyFault::Close, PATIENT, |fixture, at, got| match got {
        // The end of the body is missing even where the reply is not.
        Err(ModelError::Cut { .. }) => {}
        got => whole_or_cut(fixture, at, got),
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_reset_anywhere_is_whole_or_cut() {
    everywhere(BodyFault::Reset, PATIENT, |fixture, at, got| match got {
        // What was sent last may be lost with the connection.
        Err(ModelError::Cut { .. }) => {}
        got => whole_or_cut(fixture, at, got),
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_stalls_anywhere_is_whole_or_cut_and_never_waited_for_in_vain() {
    everywhere(BodyFault::Stall, Waits { first: IDLE, idle: IDLE }, |fixture, at, got| match got {
        // On a busy machine even the beginning may come too late.
        Err(ModelError::Cut { .. }) => {}
        got => whole_or_cut(fixture, at, got),
    })
    .await;
}

#[tokio::test]
async fn garbage_anywhere_is_survived_or_reported() {
    for garbage in [b"\xFF\x00\"".as_slice(), b"}\n\nnull{"] {
        everywhere(BodyFault::Insert(garbage), PATIENT, |fixture, at, got| match got {
            // Inside a text nobody can tell it from the text.
            Ok(_) => {}
            Err(ModelError::Failed { .. } | ModelError::Cut { .. } | ModelError::Rejected { .. }) => {}
            Err(other) => panic!("{:?} {garbage:?} at {at}: {other}", fixture.dialect),
        })
        .await;
    }
}

#[tokio::test]
async fn an_error_event_anywhere_is_an_error_or_comes_too_late() {
    for fixture in FIXTURES {
        let seams: Vec<_> = fixture.seams().collect();
        let actions = move |at| {
            faulty_response(fixture.media, fixture.body.as_bytes(), at, BodyFault::Insert(fixture.overloaded.as_bytes()))
        };
        sweep(fixture, fixture.body.len() + 1, PATIENT, actions, |at, got| match got {
            Err(ModelError::Failed { reason, .. }) => {
                assert!(!seams.contains(&at) || reason.contains("overloaded"), "{:?} at {at}: {reason}", fixture.dialect);
            }
            Err(ModelError::Cut { .. }) => assert!(!seams.contains(&at), "{:?} at {at}", fixture.dialect),
            Ok(_) => assert!(!seams.contains(&at), "{:?} at {at}: the error is lost", fixture.dialect),
            Err(other) => panic!("{:?} at {at}: {other}", fixture.dialect),
        })
        .await;
    }
}

#[tokio::test]
async fn nulls_unknown_events_and_keep_alives_between_events_change_nothing() {
    for fixture in FIXTURES {
        for extra in [fixture.nulls, fixture.unknown, fixture.between, "\n: keep-alive\n\n"] {
            if extra.starts_with("\n:") && fixture.between == "\n" {
                continue;
            }
            let seams: Vec<_> = fixture.seams().collect();
            let count = seams.len();
            let actions = move |place: usize| {
                faulty_response(fixture.media, fixture.body.as_bytes(), seams[place], BodyFault::Insert(extra.as_bytes()))
            };
            sweep(fixture, count, PATIENT, actions, |place, got| {
                assert_eq!(got.unwrap(), fixture.reply(), "{:?} {extra:?} at {place}", fixture.dialect);
            })
            .await;
        }
    }
}

#[tokio::test]
async fn what_only_keeps_the_connection_alive_does_not_keep_us_waiting_for_ever() {
    for fixture in FIXTURES {
        let seams: Vec<_> = fixture.seams().chain([fixture.body.len()]).collect();
        let (count, places) = (seams.len(), seams.clone());
        let extra = if fixture.between == "\n" { "\n" } else { ": keep-alive\n\n" };
        let actions = move |place: usize| {
            faulty_response(fixture.media, fixture.body.as_bytes(), places[place], BodyFault::Repeat(extra.as_bytes()))
        };
        sweep(fixture, count, Waits { first: IDLE, idle: IDLE }, actions, |place, got| match got {
            Err(ModelError::Cut { .. }) => {}
            got => whole_or_cut(fixture, seams[place], got),
        })
        .await;
    }
}

#[tokio::test]
async fn a_stream_that_drips_or_calls_itself_something_else_is_read_right() {
    for fixture in FIXTURES {
        let media = ["text/event-stream", "application/json", "text/plain", "application/x-ndjson", "nonsense"];
        let actions = move |number: usize| faulty_response(media[number], fixture.body.as_bytes(), 0, BodyFault::Drip);
        sweep(fixture, media.len(), PATIENT, actions, |number, got| {
            assert_eq!(got.unwrap(), fixture.reply(), "{:?} as {}", fixture.dialect, media[number]);
        })
        .await;
    }
}

#[tokio::test]
async fn heads_that_refuse_never_end_or_make_no_sense_are_typed_errors() {
    let cases: &[(&[ServerAction], &[&str])] = &[
        (&[ServerAction::Send([head(429, "text/plain"), END.to_vec()].concat())], &["model_throttled"]),
        (&[ServerAction::Send([head(500, "text/plain"), END.to_vec()].concat())], &["model_failed"]),
        (&[ServerAction::Send([head(503, "text/plain"), END.to_vec()].concat())], &["model_failed"]),
        (&[ServerAction::Send([head(529, "text/plain"), END.to_vec()].concat())], &["model_failed"]),
        (&[ServerAction::Send([head(401, "text/plain"), END.to_vec()].concat())], &["model_rejected"]),
        (&[ServerAction::Send(head(500, "text/plain")), ServerAction::Close], &["model_failed"]),
        (&[ServerAction::Send(head(429, "text/plain")), ServerAction::Reset], &["model_throttled"]),
        (&[ServerAction::Close], &["model_cut"]),
        (&[ServerAction::Reset], &["model_cut"]),
        (
            &[ServerAction::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), ServerAction::Repeat(b"x-more: and more\r\n".to_vec())],
            &["model_cut"],
        ),
        (&[ServerAction::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec()), ServerAction::Repeat(vec![b'x'; 1000])], &["model_cut"]),
        (&[ServerAction::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), ServerAction::Close], &["model_cut"]),
        (
            &[
                ServerAction::Send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzzz\r\n".to_vec()),
                ServerAction::Close,
            ],
            &["model_cut"],
        ),
        (
            &[ServerAction::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata:".to_vec()), ServerAction::Close],
            &["model_cut"],
        ),
        (
            &[ServerAction::Send([head(200, "text/html"), chunk(b"<html>hello</html>"), END.to_vec()].concat())],
            &["model_rejected"],
        ),
        (
            &[ServerAction::Send(head(200, "text/event-stream")), ServerAction::Repeat(chunk(&[b'x'; 60_000]))],
            &["model_failed"],
        ),
        (
            &[
                ServerAction::Send([head(200, "application/json"), chunk(b"{\"a\":\"")].concat()),
                ServerAction::Repeat(chunk(&[b'x'; 60_000])),
            ],
            &["model_failed"],
        ),
        (&[ServerAction::Send([head(200, "application/json"), chunk(&[b'['; 60_000]), END.to_vec()].concat())], &["model_cut"]),
        (
            &[ServerAction::Send([head(200, "x"), chunk(&b"{\"a\":".repeat(60_000)), END.to_vec()].concat())],
            &["model_cut", "model_failed"],
        ),
        (&[ServerAction::Send(head(200, "x")), ServerAction::Repeat(chunk(&[b' '; 10_000]))], &["model_failed"]),
    ];
    check_heads(cases, PATIENT).await;
}

#[tokio::test]
async fn heads_that_never_come_are_not_waited_for_in_vain() {
    let cases: &[(&[ServerAction], &[&str])] = &[
        (&[ServerAction::Stall], &["model_cut"]),
        (&[ServerAction::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), ServerAction::Stall], &["model_cut"]),
        (&[ServerAction::Send(head(200, "text/event-stream")), ServerAction::Stall], &["model_cut"]),
    ];
    check_heads(cases, Waits { first: IDLE, idle: IDLE }).await;
}

async fn check_heads(cases: &[(&[ServerAction], &[&'static str])], waits: Waits) {
    let cases: Vec<_> = cases.iter().map(|(actions, want)| (actions.to_vec(), want.to_vec())).collect();
    let cases = Arc::new(cases);
    let sweeps = FIXTURES.iter().map(|fixture| {
        let (script, cases) = (cases.clone(), cases.clone());
        let actions = move |number: usize| script[number].0.clone();
        sweep(fixture, cases.len(), waits, actions, move |number, got| {
            let (actions, want) = &cases[number];
            let code = got.as_ref().map_or_else(ModelError::code, |_| "no error");
            assert!(want.contains(&code), "{:?} {number}: {got:?} after {:?}", fixture.dialect, actions.last());
        })
    });
    join_all(sweeps).await;
}

#[tokio::test]
async fn dropping_a_stream_anywhere_leaves_no_connection() {
    for fixture in FIXTURES {
        let seams: Vec<_> = fixture.seams().collect();
        let count = seams.len();
        let actions =
            move |place: usize| faulty_response(fixture.media, fixture.body.as_bytes(), seams[place], BodyFault::Stall);
        let server = HostileServer::start(actions).await.unwrap();
        let http = HttpClient::default();
        for place in 0..count {
            let mut deltas = model(&http, &server, place, fixture, PATIENT).stream(hello()).await.unwrap();
            deltas.next().await.unwrap().unwrap();
            drop(deltas);
        }
        assert!(server.is_left_alone(DEADLINE).await, "{:?}: {} are open", fixture.dialect, server.open_connections());
    }
}

#[test]
fn however_a_stream_is_cut_the_reply_is_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for fixture in FIXTURES {
        let crlf = fixture.body.replace('\n', "\r\n");
        let mut runner = TestRunner::new(Config { cases: 100, failure_persistence: None, ..Config::default() });
        let cuts = (any::<bool>(), proptest::collection::vec(1usize..60, 1..200));
        let checked = runner.run(&cuts, |(is_crlf, sizes)| {
            let mut left = if is_crlf { crlf.as_bytes() } else { fixture.body.as_bytes() };
            let mut wire = head(200, fixture.media);
            for size in sizes.into_iter().cycle() {
                let (piece, rest) = left.split_at(size.min(left.len()));
                wire.extend(chunk(piece));
                left = rest;
                if left.is_empty() {
                    break;
                }
            }
            wire.extend(END);
            let got = runtime.block_on(async {
                let server = HostileServer::start(move |_| vec![ServerAction::Send(wire.clone())]).await.unwrap();
                ask(model(&HttpClient::default(), &server, 0, fixture, PATIENT), "a cut stream").await
            });
            prop_assert_eq!(got.unwrap(), fixture.reply());
            Ok(())
        });
        checked.unwrap_or_else(|error| panic!("{:?}: {error}", fixture.dialect));
    }
}
