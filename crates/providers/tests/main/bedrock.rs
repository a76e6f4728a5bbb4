//! Amazon Bedrock over loopback: the signature of each request is computed again, and replies come as bytes of the event stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polis_domain::{EffectClass, Finish, Reply, ToolCall, Usage};
use polis_ports::{Model, ModelError, ModelRequest, ToolSpec, collect};
use polis_providers::vendors::{self, OpenError, Setup};
use polis_providers::{CloudSettings, Dialect, Endpoint, KeyCommand, KeySource, Models};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::routes::{Asked, Routes};
use crate::server::{answer_in, chunks, head, hello, response};

const STREAM: &str = "application/vnd.amazon.eventstream";
const JSON: &str = "application/json";
const NOVA: &str = "us.amazon.nova-pro-v1:0";
const NOVA_PATH: &str = "/model/us.amazon.nova-pro-v1%3A0/converse-stream";

/// A message of the event stream, by its description.
fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, value) in headers {
        written.push(u8::try_from(name.len()).unwrap());
        written.extend_from_slice(name.as_bytes());
        written.push(7);
        written.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        written.extend_from_slice(value.as_bytes());
    }
    let total = u32::try_from(16 + written.len() + payload.len()).unwrap();
    let mut bytes = [total.to_be_bytes(), u32::try_from(written.len()).unwrap().to_be_bytes()].concat();
    bytes.extend_from_slice(&crc(&bytes).to_be_bytes());
    bytes.extend_from_slice(&written);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&crc(&bytes).to_be_bytes());
    bytes
}

/// CRC-32 bit by bit, as its standard describes it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, &payload.to_string())
}

fn exception(name: &str, payload: &Value) -> Vec<u8> {
    message(&[(":exception-type", name), (":message-type", "exception")], &payload.to_string())
}

fn delta(index: u32, delta: Value) -> Vec<u8> {
    event("contentBlockDelta", &json!({ "contentBlockIndex": index, "delta": delta, "p": "abc" }))
}

fn stop(index: u32) -> Vec<u8> {
    event("contentBlockStop", &json!({ "contentBlockIndex": index }))
}

/// A thought, a text and two calls.
fn rich() -> Vec<Vec<u8>> {
    let start = |index: u32, id: &str, name: &str| {
        let start = json!({ "toolUse": { "toolUseId": id, "name": name } });
        event("contentBlockStart", &json!({ "contentBlockIndex": index, "start": start }))
    };
    let usage = json!({ "inputTokens": 3, "outputTokens": 8, "totalTokens": 17, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 2 });
    vec![
        event("messageStart", &json!({ "role": "assistant" })),
        delta(0, json!({ "reasoningContent": { "text": "想" } })),
        delta(0, json!({ "reasoningContent": { "signature": "sealed" } })),
        stop(0),
        delta(1, json!({ "text": "你" })),
        delta(1, json!({ "text": "好" })),
        stop(1),
        start(2, "a", "add"),
        delta(2, json!({ "toolUse": { "input": "{\"x\"" } })),
        delta(2, json!({ "toolUse": { "input": ":1}" } })),
        stop(2),
        start(3, "b", "end"),
        stop(3),
        event("messageStop", &json!({ "stopReason": "tool_use" })),
        event("metadata", &json!({ "usage": usage, "metrics": { "latencyMs": 7 } })),
    ]
}

fn rich_reply() -> Reply {
    let call =
        |id: &str, name: &str, arguments: &str| ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
    let items = json!([
        { "reasoningContent": { "reasoningText": { "text": "想", "signature": "sealed" } } },
        { "text": "你好" },
        { "toolUse": { "toolUseId": "a", "name": "add", "input": { "x": 1 } } },
        { "toolUse": { "toolUseId": "b", "name": "end", "input": {} } },
    ]);
    Reply {
        text: "你好".to_owned(),
        reasoning: "想".to_owned(),
        tool_calls: vec![call("a", "add", "{\"x\":1}"), call("b", "end", "{}")],
        finish: Finish::ToolCalls,
        usage: Usage { input_tokens: 9, output_tokens: 8, cached_tokens: 4, cache_write_tokens: 2, ..Usage::default() },
        echo: Some(Arc::new(json!({ "dialect": "bedrock", "items": items }))),
        ..Reply::default()
    }
}

/// A reply that says `hi`.
fn hi() -> Vec<u8> {
    let said = [delta(0, json!({ "text": "hi" })), stop(0), event("messageStop", &json!({ "stopReason": "end_turn" }))];
    let usage = json!({ "usage": { "inputTokens": 1, "outputTokens": 1, "totalTokens": 2 } });
    response(200, STREAM, &[said.concat(), event("metadata", &usage)].concat(), 999)
}

async fn read(body: &[u8], size: usize) -> Result<Reply, ModelError> {
    answer_in(Dialect::Bedrock, response(200, STREAM, body, size)).await
}

#[tokio::test]
async fn a_reply_is_read_however_its_bytes_come() {
    let body = rich().concat();
    for size in [1, 7, 64, usize::MAX] {
        assert_eq!(read(&body, size).await.unwrap(), rich_reply(), "in chunks of {size}");
    }
}

#[tokio::test]
async fn a_count_that_is_no_number_costs_nothing_but_itself() {
    for number in ["1e400", "NaN", "-Infinity"] {
        let usage = format!(r#"{{"usage":{{"inputTokens":{number},"outputTokens":8}}}}"#);
        let said = [
            delta(0, json!({ "text": "hi" })),
            stop(0),
            event("messageStop", &json!({ "stopReason": "end_turn" })),
            message(&[(":event-type", "metadata"), (":message-type", "event")], &usage),
        ];
        let want = Reply { text: "hi".to_owned(), usage: Usage { output_tokens: 8, ..Usage::default() }, ..Reply::default() };
        assert_eq!(read(&said.concat(), 999).await.unwrap(), want, "{number}");
        let whole = format!(
            r#"{{"output":{{"message":{{"content":[{{"text":"hi"}}]}}}},"stopReason":"end_turn","usage":{{"inputTokens":{number},"outputTokens":8}}}}"#
        );
        let got = answer_in(Dialect::Bedrock, response(200, JSON, whole.as_bytes(), 999)).await;
        assert_eq!(got.unwrap(), want, "{number}");
    }
}

#[tokio::test]
async fn a_whole_answer_is_read_too() {
    let body = json!({
        "output": { "message": { "role": "assistant", "content": [
            { "reasoningContent": { "reasoningText": { "text": "想", "signature": "sealed" } } },
            { "text": "你好" },
            { "toolUse": { "toolUseId": "a", "name": "add", "input": { "x": 1 } } },
            { "toolUse": { "toolUseId": "b", "name": "end", "input": {} } },
        ] } },
        "stopReason": "tool_use",
        "usage": { "inputTokens": 3, "outputTokens": 8, "totalTokens": 17, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 2 },
        "metrics": { "latencyMs": 7 },
    });
    let got = answer_in(Dialect::Bedrock, response(200, JSON, body.to_string().as_bytes(), 64)).await;
    assert_eq!(got.unwrap(), rich_reply());
}

#[tokio::test]
async fn a_stream_that_ends_anywhere_is_whole_or_cut() {
    let (messages, want) = (rich(), rich_reply());
    let body = messages.concat();
    let mut ends: Vec<usize> = Vec::new();
    for message in &messages {
        ends.push(ends.last().copied().unwrap_or_default() + message.len());
    }
    let closes = [6, 10, 12].map(|message: usize| ends[message]);
    let is_near_end = |at: usize| ends.iter().any(|end| at.abs_diff(*end) <= 1);
    for at in (1..=body.len()).filter(|at| at % 7 == 0 || is_near_end(*at)) {
        let lost = answer_in(Dialect::Bedrock, [head(200, STREAM, ""), chunks(&body[..at], 999)].concat()).await;
        let has_finish = at >= ends[13];
        assert_eq!(lost.is_ok(), has_finish, "the connection breaks at {at}");
        let got = read(&body[..at], 999).await;
        let is_usable = closes.contains(&at) || has_finish;
        match got {
            Ok(reply) => {
                assert!(is_usable, "at {at}: {reply:?}");
                assert!(want.tool_calls.starts_with(&reply.tool_calls) && reply.text == want.text, "at {at}: {reply:?}");
            }
            Err(ModelError::Cut { .. }) => assert!(!is_usable, "at {at}"),
            Err(other) => panic!("at {at}: {other}"),
        }
    }
}

#[tokio::test]
async fn a_damaged_stream_is_an_error() {
    let body = rich().concat();
    for at in (0..body.len()).step_by(41) {
        let mut damaged = body.clone();
        damaged[at] ^= 0x40;
        let error = read(&damaged, 999).await.unwrap_err();
        assert!(matches!(error.code(), "model_failed" | "model_cut"), "at {at}: {error}");
    }
    let mut damaged = rich();
    let last = damaged[5].len() - 1;
    damaged[5][last] ^= 1;
    let error = read(&damaged.concat(), 999).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider failed: the stream is damaged: the checksum of a message is wrong");
}

#[tokio::test]
async fn reported_errors_are_of_the_same_kinds_as_those_of_other_vendors() {
    for (name, payload, want) in [
        (
            "throttlingException",
            json!({ "message": "so" }),
            "model_throttled: the provider asks us to slow down: throttlingException: so",
        ),
        (
            "validationException",
            json!({ "message": "so" }),
            "model_rejected: the provider rejects the request: validationException: so",
        ),
        (
            "internalServerException",
            json!({ "message": "so" }),
            "model_failed: the provider failed: internalServerException: so",
        ),
        ("serviceUnavailableException", json!({}), "model_failed: the provider failed: serviceUnavailableException: {}"),
        (
            "modelStreamErrorException",
            json!({ "originalMessage": "so", "originalStatusCode": 500 }),
            "model_failed: the provider failed: modelStreamErrorException: so",
        ),
        (
            "modelStreamErrorException",
            json!({ "message": "so", "originalStatusCode": 429 }),
            "model_throttled: the provider asks us to slow down: modelStreamErrorException: so",
        ),
    ] {
        let body = [delta(0, json!({ "text": "hi" })), exception(name, &payload)].concat();
        let error = read(&body, 999).await.unwrap_err();
        assert_eq!(format!("{}: {error}", error.code()), want);
    }
    let unnamed = message(&[(":message-type", "error"), (":error-code", "Internal"), (":error-message", "sorry")], "");
    let error = read(&unnamed, 999).await.unwrap_err();
    assert_eq!(format!("{}: {error}", error.code()), "model_failed: the provider failed: Internal: sorry");
    for (status, code) in [
        (400, "model_rejected"),
        (403, "model_rejected"),
        (424, "model_failed"),
        (429, "model_throttled"),
        (503, "model_failed"),
    ] {
        let error = answer_in(Dialect::Bedrock, response(status, JSON, br#"{"message":"so"}"#, 999)).await.unwrap_err();
        assert!(error.code() == code && error.to_string().contains("so"), "{status}: {error}");
    }
}

async fn open(set: &[(&str, &str)], endpoints: Vec<Endpoint>) -> Result<Models, OpenError> {
    let usual = [("POLIS_LOCAL_MODELS", "off"), ("AWS_REGION", "eu-central-1"), ("AWS_EC2_METADATA_DISABLED", "true")];
    let lookup = |name: &str| {
        let set = set.iter().chain(&usual).find(|(key, _)| *key == name);
        set.map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
    };
    vendors::open_with(None, &lookup, Setup { endpoints, ..Setup::default() }).await
}

async fn ask(models: &Models, model: &str) -> Result<String, ModelError> {
    Ok(collect(models.stream(ModelRequest { model: model.into(), ..hello() }).await?).await?.text)
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Computes the signature again from what has arrived.
fn check_signature(asked: &Asked, secret: &str, region: &str) {
    let header = |name: &str| asked.header(name).unwrap_or_else(|| panic!("no {name} in {asked:?}"));
    let given = header("authorization").strip_prefix("AWS4-HMAC-SHA256 Credential=").unwrap();
    let [credential, signed, signature] = given.split(", ").collect::<Vec<_>>()[..] else { panic!("{given}") };
    let (_, scope) = credential.split_once('/').unwrap();
    let signed = signed.strip_prefix("SignedHeaders=").unwrap();
    assert!(signed.split(';').any(|name| name == "host") && signed.split(';').any(|name| name == "x-amz-date"), "{signed}");
    let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", header(name))).collect();
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let path = path.replace('%', "%25");
    let body = hex(digest::digest(&digest::SHA256, &asked.body).as_ref());
    let canonical = format!("{}\n{path}\n{query}\n{headers}\n{signed}\n{body}", asked.method);
    let (time, hash) = (header("x-amz-date"), hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref()));
    assert_eq!(scope, format!("{}/{region}/bedrock/aws4_request", &time[..8]));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part));
    assert_eq!(signature, format!("Signature={}", hex(&mac(&key, &to_sign))), "{canonical}");
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKVARIABLES"), ("AWS_SECRET_ACCESS_KEY", "secret/of+variables")];

#[tokio::test]
async fn a_request_is_signed_and_its_model_encoded() {
    let server = Routes::start(|_| hi()).await;
    let at = ("BEDROCK_BASE_URL", &*server.origin);
    let models = open(&[&KEYS[..], &[at]].concat(), Vec::new()).await.unwrap();
    assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    let profile = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc";
    assert_eq!(ask(&models, &format!("bedrock/{profile}")).await.unwrap(), "hi");
    let temporary = [&KEYS[..], &[at, ("AWS_SESSION_TOKEN", "session=="), ("AWS_REGION", "us-gov-west-1")]].concat();
    assert_eq!(ask(&open(&temporary, Vec::new()).await.unwrap(), &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    let asked = server.asked();
    let paths: Vec<&str> = asked.iter().map(|asked| asked.target.as_str()).collect();
    let encoded =
        "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fabc/converse-stream";
    assert_eq!(paths, [NOVA_PATH, encoded, NOVA_PATH]);
    for (asked, region) in asked.iter().zip(["eu-central-1", "eu-central-1", "us-gov-west-1"]) {
        check_signature(asked, "secret/of+variables", region);
        assert!(!asked.headers.iter().any(|(_, value)| value.contains("secret/of")), "{asked:?}");
        assert_eq!(asked.json()["messages"][0]["content"][0]["text"], "hello");
    }
    assert_eq!([asked[0].header("x-amz-security-token"), asked[2].header("x-amz-security-token")], [None, Some("session==")]);
}

#[tokio::test]
async fn a_bearer_token_is_sent_as_it_is() {
    let server = Routes::start(|_| hi()).await;
    let set = [("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-1"), ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &*server.origin)];
    let models = open(&[&KEYS[..], &set].concat(), Vec::new()).await.unwrap();
    assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer bedrock-api-key-1"));
    assert_eq!(asked.header("x-amz-date"), None);
}

/// Keys of a container that are valid for so long.
fn container_keys(number: usize, expires: &str) -> Vec<u8> {
    let keys = json!({ "AccessKeyId": format!("AK{number}"), "SecretAccessKey": format!("secret{number}"), "Token": "t", "Expiration": expires });
    response(200, JSON, keys.to_string().as_bytes(), 999)
}

#[tokio::test]
async fn keys_that_expire_are_asked_for_again() {
    let given = AtomicUsize::new(0);
    let server = Routes::start(move |asked| match asked.target.as_str() {
        "/keys" => match given.fetch_add(1, Ordering::Relaxed) {
            0 => container_keys(0, "2020-01-01T00:00:00Z"),
            number => container_keys(number, "2120-01-01T00:00:00Z"),
        },
        _ => hi(),
    })
    .await;
    let keys = format!("{}/keys", server.origin);
    let set = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*keys),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-container"),
        ("BEDROCK_BASE_URL", &server.origin),
    ];
    let models = open(&set, Vec::new()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    }
    assert_eq!(server.count("/keys"), 2, "the second keys are good for long");
    let asked = server.asked();
    let signed: Vec<&Asked> = asked.iter().filter(|asked| asked.target == NOVA_PATH).collect();
    for (asked, secret) in signed.into_iter().zip(["secret0", "secret1", "secret1"]) {
        check_signature(asked, secret, "eu-central-1");
    }
    assert_eq!(asked[0].header("authorization"), Some("of-container"));
}

#[tokio::test]
async fn keys_that_are_refused_as_expired_are_asked_for_again() {
    let given = AtomicUsize::new(0);
    let server = Routes::start(move |asked| match asked.target.as_str() {
        "/keys" => container_keys(given.fetch_add(1, Ordering::Relaxed), "2120-01-01T00:00:00Z"),
        _ if asked.header("authorization").unwrap().contains("Credential=AK0/") => {
            response(403, JSON, br#"{"message":"The security token included in the request is expired"}"#, 999)
        }
        _ => hi(),
    })
    .await;
    let keys = format!("{}/keys", server.origin);
    let set = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*keys), ("BEDROCK_BASE_URL", &server.origin)];
    let models = open(&set, Vec::new()).await.unwrap();
    let error = ask(&models, &format!("bedrock/{NOVA}")).await.unwrap_err();
    assert!(matches!(error, ModelError::Adapted { .. }), "{error:?}");
    assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
}

#[tokio::test]
async fn a_machine_gets_the_keys_of_its_role_with_a_token() {
    let server = Routes::start(|asked| match (asked.method.as_str(), asked.target.as_str()) {
        ("PUT", "/latest/api/token") => response(200, "text/plain", b"imds-token", 999),
        _ if asked.target.starts_with("/model/") => hi(),
        _ if asked.header("x-aws-ec2-metadata-token") != Some("imds-token") => response(401, "text/plain", b"", 999),
        (_, "/latest/meta-data/iam/security-credentials/") => response(200, "text/plain", b"my-role", 999),
        (_, "/latest/meta-data/iam/security-credentials/my-role") => container_keys(7, "2120-01-01T00:00:00Z"),
        _ => response(404, "text/plain", b"", 999),
    })
    .await;
    let set = [
        ("AWS_EC2_METADATA_DISABLED", ""),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*server.origin),
        ("BEDROCK_BASE_URL", &server.origin),
    ];
    let models = open(&set, Vec::new()).await.unwrap();
    assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    check_signature(server.asked().last().unwrap(), "secret7", "eu-central-1");
}

#[tokio::test]
async fn a_pod_exchanges_its_token_for_the_keys_of_a_role() {
    let keys = r#"{"AssumeRoleWithWebIdentityResponse":{"AssumeRoleWithWebIdentityResult":{"Credentials":{"AccessKeyId":"AKPOD","SecretAccessKey":"podsecret","SessionToken":"podtoken","Expiration":4.7e9}}}}"#;
    let server = Routes::start(move |asked| match asked.target.as_str() {
        "/" => response(200, JSON, keys.as_bytes(), 999),
        _ => hi(),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "pod.jwt=\n").unwrap();
    let set = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ENDPOINT_URL_STS", &server.origin),
        ("BEDROCK_BASE_URL", &server.origin),
    ];
    let models = open(&set, Vec::new()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    }
    assert_eq!(server.count("/"), 1);
    let asked = server.asked();
    let form = String::from_utf8(asked[0].body.clone()).unwrap();
    assert!(form.contains("Action=AssumeRoleWithWebIdentity&") && form.ends_with("&WebIdentityToken=pod.jwt%3D"), "{form}");
    assert_eq!(asked[1].header("x-amz-security-token"), Some("podtoken"));
    check_signature(&asked[1], "podsecret", "eu-central-1");
}

#[cfg(unix)]
#[tokio::test]
async fn profiles_and_programs_give_keys() {
    let server = Routes::start(|_| hi()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".aws")).unwrap();
    let exported = r#"{"Version":1,"AccessKeyId":"AKPROCESS","SecretAccessKey":"processsecret"}"#;
    std::fs::write(folder.path().join("keys.json"), exported).unwrap();
    let keys = folder.path().join("keys.json");
    let config = format!(
        "[profile tool]\nregion = ap-south-1\ncredential_process = cat \"{}\"\n[profile sso]\nregion = ap-south-1\nsso_session = s\n",
        keys.display()
    );
    std::fs::write(folder.path().join(".aws/config"), config).unwrap();
    let home = [("HOME", folder.path().to_str().unwrap()), ("BEDROCK_BASE_URL", &server.origin), ("AWS_REGION", "")];
    let models = open(&[&home[..], &[("AWS_PROFILE", "tool")]].concat(), Vec::new()).await.unwrap();
    assert_eq!(ask(&models, &format!("bedrock/{NOVA}")).await.unwrap(), "hi");
    check_signature(&server.asked()[0], "processsecret", "ap-south-1");
    let models = open(&[&home[..], &[("AWS_PROFILE", "sso")]].concat(), Vec::new()).await.unwrap();
    let error = ask(&models, &format!("bedrock/{NOVA}")).await.unwrap_err().to_string();
    let advice = "the AWS profile `sso` logs in with a browser, which only Amazon's own program can do; set in [providers.bedrock] \
                  key_command = [\"aws\", \"configure\", \"export-credentials\", \"--profile\", \"sso\"]";
    assert!(error.contains(advice), "{error}");
    // The same program as a setting, for an endpoint with a name of its own, which never gets the account's keys unasked.
    let bedrock = vendors::find("bedrock").unwrap();
    let words = vec!["cat".to_owned(), keys.to_str().unwrap().to_owned()];
    let command = KeySource::Command(KeyCommand { words, folder: None, environment: None, guard: None });
    let cloud = CloudSettings { region: Some("sa-east-1".to_owned()), ..CloudSettings::default() };
    let own = Endpoint { base_url: Some(server.origin.clone()), cloud, ..Endpoint::new("south", bedrock) };
    let unasked = Endpoint { name: "unasked".to_owned(), ..own.clone() };
    let models = open(&KEYS, vec![Endpoint { key_source: Some(command), ..own }, unasked]).await.unwrap();
    assert_eq!(ask(&models, &format!("south/{NOVA}")).await.unwrap(), "hi");
    assert_eq!(ask(&models, &format!("unasked/{NOVA}")).await.unwrap(), "hi");
    let asked = server.asked();
    check_signature(&asked[1], "processsecret", "sa-east-1");
    assert_eq!(asked[2].header("authorization"), None);
}

#[tokio::test]
async fn a_model_that_does_not_stream_with_tools_is_asked_for_the_whole_answer() {
    let server = Routes::start(|asked| match asked.target.ends_with("/converse") {
        true => response(200, JSON, br#"{"output":{"message":{"content":[{"text":"whole"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}"#, 999),
        false => response(400, JSON, br#"{"message":"This model doesn't support tool use in streaming mode."}"#, 999),
    })
    .await;
    let models = open(&[&KEYS[..], &[("BEDROCK_BASE_URL", &*server.origin)]].concat(), Vec::new()).await.unwrap();
    let tool = ToolSpec {
        name: "read".into(),
        description: "Reads.".to_owned(),
        parameters: json!({ "type": "object" }),
        class: EffectClass::Read,
        volatile: false,
    };
    let request = ModelRequest { model: format!("bedrock/{NOVA}").into(), tools: [tool].into(), ..hello() };
    let Err(error) = models.stream(request.clone()).await else { panic!("it does not stream") };
    assert!(matches!(error, ModelError::Adapted { .. }), "{error:?}");
    let reply = collect(models.stream(request).await.unwrap()).await.unwrap();
    assert_eq!((&*reply.text, reply.finish), ("whole", Finish::Stop));
    assert_eq!(server.asked()[1].target, "/model/us.amazon.nova-pro-v1%3A0/converse");
    check_signature(&server.asked()[1], "secret/of+variables", "eu-central-1");
}

#[tokio::test]
async fn the_models_of_a_region_are_listed_with_their_profiles_and_known_under_the_names_of_their_makers() {
    let server = Routes::start(|asked| {
        let models = json!({ "modelSummaries": [
            { "modelId": "amazon.nova-pro-v1:0", "inputModalities": ["TEXT", "IMAGE"], "inferenceTypesSupported": ["ON_DEMAND"] },
            { "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0", "inputModalities": ["TEXT", "IMAGE"], "inferenceTypesSupported": ["INFERENCE_PROFILE"] },
        ] });
        let profiles = json!({ "inferenceProfileSummaries": [{ "inferenceProfileId": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0" }] });
        let answer = if asked.target.starts_with("/foundation-models?") { models } else { profiles };
        response(200, JSON, answer.to_string().as_bytes(), 999)
    })
    .await;
    let models = open(&[&KEYS[..], &[("BEDROCK_BASE_URL", &*server.origin)]].concat(), Vec::new()).await.unwrap();
    let listed = models.list("bedrock").await.unwrap();
    let names: Vec<&str> = listed.iter().map(|model| model.model.as_str()).collect();
    assert_eq!(names, ["bedrock/amazon.nova-pro-v1:0", "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"]);
    assert!(listed.iter().all(|model| model.capabilities.images == Some(true) && model.price.is_some()), "{listed:?}");
    assert_eq!(models.description("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0").window, Some(200_000));
    assert_eq!(models.description("bedrock/us.amazon.nova-pro-v1:0").window, Some(300_000));
    for asked in server.asked() {
        check_signature(&asked, "secret/of+variables", "eu-central-1");
    }
}
