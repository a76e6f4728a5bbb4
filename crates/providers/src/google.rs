//! Access tokens of Google Cloud: from a service account, the login of `gcloud`, or the metadata server of a machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use polis_http::header::CONTENT_TYPE;
use polis_http::{Bytes, HeaderName, HeaderValue, HttpClient, Method, Request};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;

use crate::login::{LoginError, Proof, Secret, ask, now};
use crate::vendors::{Lookup, filled, is_plain_http};
use crate::{ApiKey, percent};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_ADDRESS: &str = "https://oauth2.googleapis.com/token";
const METADATA_HOST: &str = "169.254.169.254";

/// How long a token is asked for, and how long one is believed to be valid that does not say so, in seconds.
const TOKEN_SECONDS: u64 = 3_600;

/// How long the service of tokens may take.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the metadata server of the machine may take.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Where tokens of Google Cloud come from. They are asked for when they are needed, and again before they expire.
#[derive(Clone, PartialEq, Eq)]
pub struct GoogleCredentials(Origin);

#[derive(Clone, PartialEq, Eq)]
enum Origin {
    File(PathBuf),
    Metadata { host: String },
}

impl GoogleCredentials {
    /// The application default credentials, in Google's order.
    pub(crate) fn find(variable: Lookup<'_>) -> Option<Self> {
        if let Some(file) = filled(variable, "GOOGLE_APPLICATION_CREDENTIALS") {
            return Some(Self(Origin::File(file.trim().into())));
        }
        let below = |name: &str, path: &str| filled(variable, name).map(|folder| Path::new(&folder).join(path));
        let folder =
            below("CLOUDSDK_CONFIG", "").or_else(|| below("APPDATA", "gcloud")).or_else(|| below("HOME", ".config/gcloud"));
        let file = folder.map(|folder| folder.join("application_default_credentials.json")).filter(|file| file.is_file());
        if let Some(file) = file {
            return Some(Self(Origin::File(file)));
        }
        let host =
            filled(variable, "GCE_METADATA_HOST").or_else(|| is_of_google(variable).then(|| METADATA_HOST.to_owned()))?;
        Some(Self(Origin::Metadata { host }))
    }

    /// The project that the credentials themselves name.
    pub(crate) fn project(&self) -> Option<String> {
        let Origin::File(path) = &self.0 else { return None };
        let file: CredentialFile = serde_json::from_str(&read_file(path).ok()?).ok()?;
        file.project_id.or(file.quota_project_id)
    }

    pub(crate) async fn read(&self, http: &HttpClient) -> Result<Secret, LoginError> {
        match &self.0 {
            Origin::File(path) => {
                let (owned, shown) = (path.clone(), path.display().to_string());
                let read = tokio::task::spawn_blocking(move || read_file(&owned)).await;
                let read = read.map_err(|error| LoginError::Failed(error.to_string()))?;
                let text = read.map_err(|error| refused(&format!("{shown} cannot be read: {error}")))?;
                let token = token_of(&text, http).await;
                token.unwrap_or_else(|| Err(refused(&format!("{shown} is no file of credentials"))))
            }
            Origin::Metadata { host } => {
                let address = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
                let mut request = Request::new(Bytes::new());
                *request.uri_mut() = address.parse().map_err(|_| refused(&format!("{address} is no address")))?;
                request.headers_mut().insert(HeaderName::from_static("metadata-flavor"), HeaderValue::from_static("Google"));
                token_in(&ask(http, request, LOCAL_TIMEOUT).await?)
            }
        }
    }
}

/// Whether this is a machine or a container of Google's. Nobody else is asked for a token.
fn is_of_google(variable: Lookup<'_>) -> bool {
    let product = std::fs::read_to_string("/sys/class/dmi/id/product_name").unwrap_or_default();
    matches!(product.trim(), "Google" | "Google Compute Engine") || filled(variable, "K_SERVICE").is_some()
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() || about.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is no file of credentials"));
    }
    std::fs::read_to_string(path)
}

fn refused(reason: &str) -> LoginError {
    LoginError::Refused(format!("no Google credentials: {reason}"))
}

/// A file with credentials, whatever its type.
#[derive(Deserialize)]
struct CredentialFile {
    r#type: String,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
}

/// The token for the credentials in a text; none if it has no credentials of Google.
pub(crate) async fn token_of(text: &str, http: &HttpClient) -> Option<Result<Secret, LoginError>> {
    let file: CredentialFile = serde_json::from_str(text.trim()).ok()?;
    Some(exchange(file, http).await)
}

async fn exchange(file: CredentialFile, http: &HttpClient) -> Result<Secret, LoginError> {
    let address = file.token_uri.clone().unwrap_or_else(|| TOKEN_ADDRESS.to_owned());
    if is_plain_http(&address) {
        return Err(refused("`token_uri` is plain http, which would send the credentials unencrypted"));
    }
    let form = match file.r#type.as_str() {
        "service_account" => {
            let assertion = assertion(&file, &address, now())?;
            percent::form(&[("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &assertion)])
        }
        "authorized_user" => {
            let field = |value: &Option<String>, name: &str| {
                value.clone().ok_or_else(|| {
                    refused(&format!("the login has no `{name}`; log in again with `gcloud auth application-default login`"))
                })
            };
            let (id, secret) = (field(&file.client_id, "client_id")?, field(&file.client_secret, "client_secret")?);
            let token = field(&file.refresh_token, "refresh_token")?;
            percent::form(&[
                ("grant_type", "refresh_token"),
                ("client_id", &id),
                ("client_secret", &secret),
                ("refresh_token", &token),
            ])
        }
        other => {
            return Err(refused(&format!(
                "Polis does not know credentials of the type `{other}`; set in [providers.vertex] \
                 key_command = [\"gcloud\", \"auth\", \"application-default\", \"print-access-token\"]"
            )));
        }
    };
    let mut request = Request::new(Bytes::from(form));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.parse().map_err(|_| refused("`token_uri` is no address"))?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let secret = token_in(&ask(http, request, TOKEN_TIMEOUT).await?)?;
    // The quota of a person's login is that of a project; a service account has its own.
    Ok(Secret { quota_project: file.quota_project_id, ..secret })
}

/// What a service account signs to get a token: a JSON web token (RFC 7523).
fn assertion(file: &CredentialFile, audience: &str, at: SystemTime) -> Result<String, LoginError> {
    let (Some(email), Some(pem)) = (&file.client_email, &file.private_key) else {
        return Err(refused("the service account has no `client_email` or no `private_key`"));
    };
    let unfit = || refused("the `private_key` of the service account is no RSA key");
    let lines: String = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let key = STANDARD.decode(lines).ok().and_then(|der| RsaKeyPair::from_pkcs8(&der).ok()).ok_or_else(unfit)?;
    let issued = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let head = json!({ "alg": "RS256", "typ": "JWT", "kid": file.private_key_id });
    let claims = json!({ "iss": email, "scope": SCOPE, "aud": audience, "iat": issued, "exp": issued + TOKEN_SECONDS });
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(head.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).map_err(|_| unfit())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
    expires_in: Option<u64>,
}

fn token_in(answer: &[u8]) -> Result<Secret, LoginError> {
    let token: Token = serde_json::from_slice(answer).map_err(|_| refused("the answer has no access token"))?;
    let key = ApiKey::new(&token.access_token).map_err(|bad| refused(&bad.to_string()))?;
    let valid = Duration::from_secs(token.expires_in.unwrap_or(TOKEN_SECONDS).min(24 * TOKEN_SECONDS));
    Ok(Secret { expires: Some(now() + valid), ..Secret::new(Proof::Key(key)) })
}

impl fmt::Display for GoogleCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::File(path) => write!(f, "the credentials in {}", path.display()),
            Origin::Metadata { .. } => f.write_str("this machine's service account"),
        }
    }
}

impl fmt::Debug for GoogleCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoogleCredentials({self})")
    }
}
