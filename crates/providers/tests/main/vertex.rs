//! Vertex AI over loopback: tokens are exchanged, checked, kept and replaced, and each model is asked in its maker's dialect.

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use polis_ports::{Model, ModelError, ModelRequest, collect};
use polis_providers::vendors::{self, OpenError, Setup};
use polis_providers::{CloudSettings, Endpoint, KeySource, Models};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::routes::{Asked, Routes};
use crate::server::{SSE, events, hello, response};

const JSON: &str = "application/json";

/// A key that was made for this test, and its public half.
const KEY: &str = include_str!("../keys/service_account.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("../keys/service_account.pub.der");

const GEMINI: &str = "vertex/gemini-2.5-pro";
const GEMINI_PATH: &str =
    "/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
const CLAUDE_PATH: &str =
    "/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict";

fn says_hi(asked: &Asked) -> Vec<u8> {
    let data: &[&str] = match asked.target.contains("/anthropic/") {
        _ if asked.target.ends_with("/chat/completions") => {
            &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]
        }
        true => &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        false => &[r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#],
    };
    response(200, SSE, events(data).as_bytes(), 999)
}

/// A token that is valid for so many seconds.
fn token(name: &str, seconds: u64) -> Vec<u8> {
    let body = json!({ "access_token": name, "expires_in": seconds, "token_type": "Bearer" });
    response(200, JSON, body.to_string().as_bytes(), 999)
}

async fn open(set: &[(&str, &str)], endpoints: Vec<Endpoint>) -> Result<Models, OpenError> {
    let usual = [("POLIS_LOCAL_MODELS", "off")];
    let lookup = |name: &str| {
        let set = set.iter().chain(&usual).find(|(key, _)| *key == name);
        set.map(|(_, value)| (*value).to_owned())
    };
    vendors::open_with(None, &lookup, Setup { endpoints, ..Setup::default() }).await
}

async fn ask(models: &Models, model: &str) -> Result<String, ModelError> {
    Ok(collect(models.stream(ModelRequest { model: model.into(), ..hello() }).await?).await?.text)
}

fn service_account(server: &Routes) -> String {
    let file = json!({
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "key-1",
        "private_key": KEY,
        "client_email": "polis@my-project.iam.gserviceaccount.com",
        "token_uri": format!("{}/token", server.origin),
    });
    file.to_string()
}

/// The fields of a form.
fn form(asked: &Asked) -> Vec<(String, String)> {
    let text = String::from_utf8(asked.body.clone()).unwrap();
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap();
        (name.to_owned(), value.replace("%3A", ":").replace("%2F", "/"))
    };
    text.split('&').map(pair).collect()
}

/// The claims of a token that a service account signed, after a check with its public key.
fn claims(assertion: &str) -> Value {
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, PUBLIC_KEY);
    key.verify(signed.as_bytes(), &decode(signature)).expect("the signature is that of the service account");
    let (head, claims) = signed.split_once('.').unwrap();
    let head: Value = serde_json::from_slice(&decode(head)).unwrap();
    assert_eq!(head, json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" }));
    serde_json::from_slice(&decode(claims)).unwrap()
}

#[tokio::test]
async fn a_service_account_signs_for_a_token_that_is_kept() {
    let server =
        Routes::start(|asked| if asked.target == "/token" { token("ya29.first", 3_600) } else { says_hi(asked) }).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("account.json");
    std::fs::write(&file, service_account(&server)).unwrap();
    let set = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()), ("VERTEX_BASE_URL", &server.origin)];
    let models = open(&set, Vec::new()).await.unwrap();
    assert_eq!(ask(&models, GEMINI).await.unwrap(), "hi");
    assert_eq!(ask(&models, "vertex/claude-sonnet-4-5@20250929").await.unwrap(), "hi");
    assert_eq!(ask(&models, "vertex/meta/llama-4-scout-maas").await.unwrap(), "hi");
    let asked = server.asked();
    let targets: Vec<&str> = asked.iter().map(|asked| asked.target.as_str()).collect();
    let others = "/v1/projects/my-project/locations/global/endpoints/openapi/chat/completions";
    assert_eq!(
        targets,
        ["/token", GEMINI_PATH, CLAUDE_PATH, others],
        "the project is that of the account, and the token is kept"
    );
    let [(_, grant), (_, assertion)] = &form(&asked[0])[..] else { panic!("{:?}", asked[0]) };
    assert_eq!(grant, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let claims = claims(assertion);
    assert_eq!(claims["iss"], "polis@my-project.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], format!("{}/token", server.origin));
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3_600);
    for asked in &asked[1..] {
        assert_eq!(asked.header("authorization"), Some("Bearer ya29.first"));
        assert_eq!((asked.header("x-goog-api-key"), asked.header("x-goog-user-project")), (None, None));
    }
    let body = asked[2].json();
    assert_eq!(
        (body.get("model"), &body["anthropic_version"], &body["stream"]),
        (None, &json!("vertex-2023-10-16"), &json!(true))
    );
    assert!(asked[1].json()["contents"].is_array());
    assert_eq!(asked[3].json()["model"], "meta/llama-4-scout-maas");
}

#[tokio::test]
async fn a_login_of_gcloud_is_refreshed_before_its_token_expires_and_counts_for_its_project() {
    let given = AtomicUsize::new(0);
    let server = Routes::start(move |asked| match asked.target.as_str() {
        "/token" => match given.fetch_add(1, Ordering::Relaxed) {
            0 => token("ya29.short", 120),
            _ => token("ya29.long", 3_600),
        },
        _ => says_hi(asked),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let login = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "1//r",
        "quota_project_id": "my-project", "token_uri": format!("{}/token", server.origin),
    });
    std::fs::create_dir_all(folder.path().join(".config/gcloud")).unwrap();
    std::fs::write(folder.path().join(".config/gcloud/application_default_credentials.json"), login.to_string()).unwrap();
    let set = [("HOME", folder.path().to_str().unwrap()), ("VERTEX_BASE_URL", &server.origin)];
    let models = open(&set, Vec::new()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&models, GEMINI).await.unwrap(), "hi");
    }
    assert_eq!(server.count("/token"), 2, "the second token is good for long");
    let asked = server.asked();
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let refresh = [
        field("grant_type", "refresh_token"),
        field("client_id", "id"),
        field("client_secret", "s"),
        field("refresh_token", "1//r"),
    ];
    assert_eq!(form(&asked[0]), refresh);
    let models: Vec<&Asked> = asked.iter().filter(|asked| asked.target == GEMINI_PATH).collect();
    let tokens: Vec<_> = models.iter().map(|asked| asked.header("authorization").unwrap()).collect();
    assert_eq!(tokens, ["Bearer ya29.short", "Bearer ya29.long", "Bearer ya29.long"]);
    assert!(models.iter().all(|asked| asked.header("x-goog-user-project") == Some("my-project")), "{models:?}");
}

#[tokio::test]
async fn a_machine_asks_its_metadata_server_and_a_ready_token_is_sent_as_it_is() {
    let server = Routes::start(|asked| match asked.target.as_str() {
        "/computeMetadata/v1/instance/service-accounts/default/token" if asked.header("metadata-flavor") == Some("Google") => {
            token("ya29.machine", 3_600)
        }
        _ => says_hi(asked),
    })
    .await;
    let host = server.origin.strip_prefix("http://").unwrap();
    let set = [("GOOGLE_CLOUD_PROJECT", "my-project"), ("VERTEX_BASE_URL", &*server.origin)];
    let machine = open(&[&set[..], &[("GCE_METADATA_HOST", host)]].concat(), Vec::new()).await.unwrap();
    assert_eq!(ask(&machine, GEMINI).await.unwrap(), "hi");
    let ready = open(&[&set[..], &[("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.ready")]].concat(), Vec::new()).await.unwrap();
    assert_eq!(ask(&ready, GEMINI).await.unwrap(), "hi");
    let asked = server.asked();
    assert_eq!(asked[1].header("authorization"), Some("Bearer ya29.machine"));
    assert_eq!(asked[2].header("authorization"), Some("Bearer ya29.ready"));
}

#[tokio::test]
async fn a_key_file_may_be_that_of_a_service_account() {
    let server = Routes::start(|asked| if asked.target == "/token" { token("ya29.file", 3_600) } else { says_hi(asked) }).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("account.json");
    std::fs::write(&file, service_account(&server)).unwrap();
    let vertex = vendors::find("vertex").unwrap();
    let cloud =
        CloudSettings { project: Some("p2".to_owned()), location: Some("us-east5".to_owned()), ..CloudSettings::default() };
    let endpoint = Endpoint {
        base_url: Some(server.origin.clone()),
        key_source: Some(KeySource::File(file.clone().into())),
        cloud,
        ..Endpoint::new("vertex", vertex)
    };
    let models = open(&[], vec![endpoint.clone()]).await.unwrap();
    assert_eq!(ask(&models, GEMINI).await.unwrap(), "hi");
    let asked = server.asked();
    assert!(asked[1].target.starts_with("/v1/projects/p2/locations/us-east5/publishers/google/"), "{asked:?}");
    assert_eq!(asked[1].header("authorization"), Some("Bearer ya29.file"));
    for (text, want) in [
        (r#"{"type":"external_account"}"#.to_owned(), "Polis does not know credentials of the type `external_account`"),
        (service_account(&server).replace("PRIVATE KEY-----\\nM", "PRIVATE KEY-----\\nN"), "is no RSA key"),
        (r#"{"type":"authorized_user","token_uri":"http://h/t"}"#.to_owned(), "would send the credentials unencrypted"),
    ] {
        std::fs::write(&file, text).unwrap();
        let models = open(&[], vec![endpoint.clone()]).await.unwrap();
        let error = ask(&models, GEMINI).await.unwrap_err();
        assert!(error.code() == "model_rejected" && error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn a_refused_exchange_says_why_and_an_endpoint_elsewhere_gets_no_token_unasked() {
    let refusal = br#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#;
    let server =
        Routes::start(|asked| if asked.target == "/token" { response(400, JSON, refusal, 999) } else { says_hi(asked) }).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("account.json");
    std::fs::write(&file, service_account(&server)).unwrap();
    let set = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()), ("VERTEX_BASE_URL", &server.origin)];
    let gateway =
        Endpoint { base_url: Some(server.origin.clone()), ..Endpoint::new("gateway", vendors::find("vertex").unwrap()) };
    let models = open(&set, vec![gateway]).await.unwrap();
    let error = ask(&models, GEMINI).await.unwrap_err();
    assert_eq!(error.code(), "model_rejected");
    assert!(
        error.to_string().ends_with("/token: 400 Bad Request: invalid_grant: Token has been expired or revoked."),
        "{error}"
    );
    assert_eq!(ask(&models, "gateway/gemini-2.5-pro").await.unwrap(), "hi");
    assert_eq!(server.asked().last().unwrap().header("authorization"), None);
}

#[tokio::test]
async fn models_of_both_makers_are_listed_and_known_under_their_makers_names() {
    let server = Routes::start(|asked| {
        let names = |maker: &str, names: &[&str]| {
            let models: Vec<_> =
                names.iter().map(|name| json!({ "name": format!("publishers/{maker}/models/{name}") })).collect();
            response(200, JSON, json!({ "publisherModels": models }).to_string().as_bytes(), 999)
        };
        match asked.target.starts_with("/v1beta1/publishers/google/models?") {
            true => names("google", &["gemini-2.5-pro", "imagen-4"]),
            false => names("anthropic", &["claude-sonnet-4-5"]),
        }
    })
    .await;
    let set = [
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.ready"),
        ("GOOGLE_CLOUD_PROJECT", "my-project"),
        ("VERTEX_BASE_URL", &*server.origin),
    ];
    let models = open(&set, Vec::new()).await.unwrap();
    let listed = models.list("vertex").await.unwrap();
    let names: Vec<&str> = listed.iter().map(|model| model.model.as_str()).collect();
    assert_eq!(names, ["vertex/gemini-2.5-pro", "vertex/claude-sonnet-4-5"]);
    assert!(listed.iter().all(|model| model.price.is_some()), "{listed:?}");
    assert_eq!(models.description("vertex/claude-sonnet-4-5@20250929").window, Some(200_000));
}
