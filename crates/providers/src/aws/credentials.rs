//! Where the keys of an Amazon account come from, in the order of Amazon's own programs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polis_http::{Bytes, HeaderName, HeaderValue, HttpClient, Method, Request};
use serde_json::Value;

use super::Profile;
use super::profile::ProfileKeys;
use crate::login::{LoginError, Proof, Secret, ask};
use crate::vendors::{Lookup, filled, is_plain_http};
use crate::{KeyCommand, KeySource, percent, utc};

/// Where containers of Amazon's services ask for their keys.
const CONTAINER_HOST: &str = "http://169.254.170.2";

/// The other addresses at which a container may ask without encryption.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Where a machine of EC2 asks.
const INSTANCE_HOST: &str = "http://169.254.169.254";

/// How long a service of the machine itself may take.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the service may take that exchanges tokens.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The two keys that sign requests, and the token of keys that expire.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AwsKeys {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) session_token: Option<String>,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKeys(***)")
    }
}

/// Where keys of Amazon come from. They are read when they are needed, and again before they expire.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsCredentials(Origin);

#[derive(Clone, PartialEq, Eq)]
enum Origin {
    Variables(AwsKeys),
    Profile(Profile),
    /// A signed token in a file, as pods of Kubernetes have it, which is exchanged for keys.
    WebIdentity {
        token_file: PathBuf,
        role: String,
        service: String,
    },
    Container {
        address: String,
        token: Option<String>,
        token_file: Option<PathBuf>,
    },
    Instance {
        host: String,
    },
}

impl AwsCredentials {
    /// The first origin that is there. A profile that the settings name goes before everything else.
    pub(crate) fn find(profile: Option<&str>, region: &str, variable: Lookup<'_>) -> Option<Self> {
        let of_profile = || {
            let profile = Profile::new(profile, variable);
            (profile.keys() != ProfileKeys::None).then_some(Origin::Profile(profile))
        };
        let named = || profile.and_then(|_| of_profile());
        let origins: [&dyn Fn() -> Option<Origin>; 6] = [
            &named,
            &|| of_variables(variable),
            &|| of_web_identity(region, variable),
            &of_profile,
            &|| of_container(variable),
            &|| of_instance(variable),
        ];
        origins.into_iter().find_map(|origin| origin()).map(Self)
    }

    pub(crate) async fn read(&self, http: &HttpClient) -> Result<Secret, LoginError> {
        match &self.0 {
            Origin::Variables(keys) => Ok(Secret::new(Proof::Aws(keys.clone()))),
            Origin::Profile(profile) => read_profile(profile.clone(), http).await,
            Origin::WebIdentity { token_file, role, service } => exchange(token_file, role, service, http).await,
            Origin::Container { address, token, token_file } => {
                let token = match token_file {
                    Some(file) => Some(read_text(file).await?),
                    None => token.clone(),
                };
                let mut request = get(address)?;
                if let Some(token) = token {
                    let value = HeaderValue::try_from(token.trim())
                        .map_err(|_| refused("the token of the container cannot be sent"))?;
                    request.headers_mut().insert(polis_http::header::AUTHORIZATION, value);
                }
                keys_of(&ask(http, request, LOCAL_TIMEOUT).await?)
            }
            Origin::Instance { host } => of_machine(host, http).await,
        }
    }
}

fn of_variables(variable: Lookup<'_>) -> Option<Origin> {
    let value = |name: &str| filled(variable, name).map(|value| value.trim().to_owned());
    let (access_key, secret_key) = (value("AWS_ACCESS_KEY_ID")?, value("AWS_SECRET_ACCESS_KEY")?);
    Some(Origin::Variables(AwsKeys { access_key, secret_key, session_token: value("AWS_SESSION_TOKEN") }))
}

fn of_web_identity(region: &str, variable: Lookup<'_>) -> Option<Origin> {
    let token_file = filled(variable, "AWS_WEB_IDENTITY_TOKEN_FILE")?.into();
    let service = filled(variable, "AWS_ENDPOINT_URL_STS");
    let service = service.unwrap_or_else(|| format!("https://sts.{region}.{}", super::domain(region)));
    Some(Origin::WebIdentity { token_file, role: filled(variable, "AWS_ROLE_ARN")?, service })
}

/// A container asks at an address of Amazon's, or at one of this machine, or over https.
fn of_container(variable: Lookup<'_>) -> Option<Origin> {
    let relative = filled(variable, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{CONTAINER_HOST}{path}"));
    let address = relative.or_else(|| filled(variable, "AWS_CONTAINER_CREDENTIALS_FULL_URI"))?;
    let host = address.parse::<polis_http::Uri>().ok()?.host()?.trim_matches(['[', ']']).to_owned();
    if is_plain_http(&address) && !CONTAINER_HOSTS.contains(&&*host) {
        return None;
    }
    let token = filled(variable, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    let token_file = filled(variable, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(PathBuf::from);
    Some(Origin::Container { address, token, token_file })
}

/// A machine of EC2 says so in its firmware; nobody else is asked.
fn of_instance(variable: Lookup<'_>) -> Option<Origin> {
    if filled(variable, "AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        return None;
    }
    if let Some(host) = filled(variable, "AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        return Some(Origin::Instance { host: host.trim_end_matches('/').to_owned() });
    }
    let vendor = std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    (vendor.trim() == "Amazon EC2").then(|| Origin::Instance { host: INSTANCE_HOST.to_owned() })
}

async fn read_profile(profile: Profile, http: &HttpClient) -> Result<Secret, LoginError> {
    let name = profile.name.clone();
    let keys = tokio::task::spawn_blocking(move || profile.keys()).await;
    match keys.map_err(|error| LoginError::Failed(error.to_string()))? {
        ProfileKeys::Static(keys) => Ok(Secret::new(Proof::Aws(keys))),
        ProfileKeys::Process(words) => {
            let command = KeySource::Command(KeyCommand { words, folder: None, environment: None, guard: None });
            Box::pin(command.read(http)).await
        }
        ProfileKeys::Foreign(how) => Err(LoginError::Refused(format!(
            "the AWS profile `{name}` {how}, which only Amazon's own program can do; set in [providers.bedrock] \
             key_command = [\"aws\", \"configure\", \"export-credentials\", \"--profile\", \"{name}\"]"
        ))),
        ProfileKeys::None => Err(refused(&format!("the AWS profile `{name}` has no keys any more"))),
    }
}

/// Exchanges the token of a pod for keys.
async fn exchange(token_file: &Path, role: &str, service: &str, http: &HttpClient) -> Result<Secret, LoginError> {
    let token = read_text(token_file).await?;
    let form = percent::form(&[
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        ("RoleSessionName", "polis"),
        ("WebIdentityToken", token.trim()),
    ]);
    let mut request = get(service)?.map(|_| Bytes::from(form));
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers
        .insert(polis_http::header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"));
    // Otherwise the answer is XML.
    headers.insert(polis_http::header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = ask(http, request, TOKEN_TIMEOUT).await?;
    let json: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let mut keys = json["AssumeRoleWithWebIdentityResponse"]["AssumeRoleWithWebIdentityResult"]["Credentials"].clone();
    // In this answer alone the time is a number.
    if let Some(seconds) = keys["Expiration"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        let secret = keys_of(keys.to_string().as_bytes())?;
        return Ok(Secret { expires: std::time::UNIX_EPOCH.checked_add(seconds), ..secret });
    }
    keys_of(keys.take().to_string().as_bytes())
}

/// The keys of the role of a machine: a token first, which no request that was smuggled through this machine can get.
async fn of_machine(host: &str, http: &HttpClient) -> Result<Secret, LoginError> {
    let mut request = get(&format!("{host}/latest/api/token"))?;
    *request.method_mut() = Method::PUT;
    let ttl = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    request.headers_mut().insert(ttl, HeaderValue::from_static("300"));
    let token = ask(http, request, LOCAL_TIMEOUT).await?;
    let token = HeaderValue::from_bytes(&token).map_err(|_| refused("the token of the machine cannot be sent"))?;
    let with_token = |address: String| {
        let mut request = get(&address)?;
        request.headers_mut().insert(HeaderName::from_static("x-aws-ec2-metadata-token"), token.clone());
        Ok::<_, LoginError>(request)
    };
    let roles = format!("{host}/latest/meta-data/iam/security-credentials/");
    let role = ask(http, with_token(roles.clone())?, LOCAL_TIMEOUT).await?;
    let role = String::from_utf8_lossy(&role).lines().next().unwrap_or_default().trim().to_owned();
    if role.is_empty() {
        return Err(refused("this machine has no IAM role"));
    }
    keys_of(&ask(http, with_token(format!("{roles}{role}"))?, LOCAL_TIMEOUT).await?)
}

fn get(address: &str) -> Result<Request<Bytes>, LoginError> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = address.trim().parse().map_err(|_| refused(&format!("{address} is no address")))?;
    Ok(request)
}

fn refused(reason: &str) -> LoginError {
    LoginError::Refused(format!("no AWS credentials: {reason}"))
}

async fn read_text(path: &Path) -> Result<String, LoginError> {
    let (path, shown) = (path.to_owned(), path.display().to_string());
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
    let read = read.map_err(|error| LoginError::Failed(error.to_string()))?;
    read.map_err(|error| refused(&format!("{shown} cannot be read: {error}")))
}

fn keys_of(answer: &[u8]) -> Result<Secret, LoginError> {
    keys_in(&String::from_utf8_lossy(answer)).ok_or_else(|| refused("the answer has no keys"))
}

/// The keys in the JSON that Amazon's services and programs print.
pub(crate) fn keys_in(text: &str) -> Option<Secret> {
    let json: Value = serde_json::from_str(text.trim()).ok()?;
    let field = |name: &str| json[name].as_str().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
    let (access_key, secret_key) = (field("AccessKeyId")?, field("SecretAccessKey")?);
    let session_token = field("SessionToken").or_else(|| field("Token"));
    let keys = AwsKeys { access_key, secret_key, session_token };
    Some(Secret { expires: field("Expiration").and_then(|time| utc::parse(&time)), ..Secret::new(Proof::Aws(keys)) })
}

impl fmt::Display for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Variables(_) => f.write_str("AWS_ACCESS_KEY_ID"),
            Origin::Profile(profile) => write!(f, "the AWS profile `{}`", profile.name),
            Origin::WebIdentity { role, .. } => write!(f, "the role {role}"),
            Origin::Container { .. } => f.write_str("this container's role"),
            Origin::Instance { .. } => f.write_str("this machine's role"),
        }
    }
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AwsCredentials({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_origin_that_is_there_counts() {
        let check = |set: &[(&str, &str)], want: Option<&str>| {
            // Whether the tests run on a machine of Amazon's does not matter.
            let off = ("AWS_EC2_METADATA_DISABLED", "true");
            let lookup =
                |name: &str| set.iter().chain([&off]).find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            let found = AwsCredentials::find(None, "us-east-1", &lookup);
            assert_eq!(found.map(|found| found.to_string()).as_deref(), want, "{set:?}");
        };
        check(&[], None);
        check(&[("AWS_ACCESS_KEY_ID", "a")], None);
        let pod = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "arn:r")];
        check(&[&pod[..], &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")]].concat(), Some("AWS_ACCESS_KEY_ID"));
        check(&pod, Some("the role arn:r"));
        check(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")], Some("this container's role"));
        check(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1")], Some("this container's role"));
        check(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://[fd00:ec2::23]/v1")], Some("this container's role"));
        check(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example/v1")], None);
        let host = [("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h")];
        check(&host, Some("this machine's role"));
        check(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h")], None);
    }

    #[test]
    fn keys_are_read_from_json_and_shown_nowhere() {
        let text = r#"{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"topsecret","SessionToken":"tok","Expiration":"2026-11-18T05:00:00Z"}"#;
        let secret = keys_in(text).unwrap();
        assert_eq!(secret.expires, utc::parse("2026-11-18T05:00:00Z"));
        assert!(!format!("{secret:?}").contains("topsecret"));
        assert!(keys_in("{}").is_none() && keys_in("sk-key").is_none());
    }
}
