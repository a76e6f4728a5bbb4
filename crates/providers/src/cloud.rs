//! Vendors that are part of a cloud: their address follows from an account's region or project, and their credentials are those of
//! the cloud, found as its own programs find them.

use crate::aws::{self, AwsCredentials, Profile};
use crate::bedrock;
use crate::endpoint::Endpoint;
use crate::google::GoogleCredentials;
use crate::key_source::KeySource;
use crate::vendors::{Lookup, OpenError, filled};
use crate::vertex;

/// The clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Google,
}

/// What a configuration says about an account at a cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudSettings {
    /// The region of Amazon's.
    pub region: Option<String>,
    /// The profile in the files of Amazon's command line.
    pub profile: Option<String>,
    /// The project of Google's.
    pub project: Option<String>,
    /// The location of Google's.
    pub location: Option<String>,
}

/// Where an endpoint in a cloud is asked, and with which credentials.
pub(crate) struct CloudAccess {
    pub(crate) address: String,
    pub(crate) region: Option<String>,
    /// The credentials of the cloud; none where the environment has none.
    pub(crate) credentials: Option<KeySource>,
}

/// The variables that tell whose account at a cloud counts.
pub const ACCOUNT_VARIABLES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "GCLOUD_PROJECT",
    "CLOUDSDK_CONFIG",
    "GCE_METADATA_HOST",
    "APPDATA",
    "HOME",
    "USERPROFILE",
];

impl Cloud {
    /// The settings that count in this cloud.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &["region", "profile"],
            Self::Google => &["project", "location"],
        }
    }

    /// What to do where there are no credentials.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Aws => {
                "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile with \
                 keys in ~/.aws/credentials"
            }
            Self::Google => {
                "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account"
            }
        }
    }

    /// Resolves an endpoint. `address` is what the user has set.
    pub(crate) fn access(
        self,
        endpoint: &Endpoint,
        address: Option<&str>,
        variable: Lookup<'_>,
    ) -> Result<CloudAccess, OpenError> {
        let vendor = &endpoint.name;
        match self {
            Self::Aws => {
                let profile = endpoint.cloud.profile.as_deref();
                let region = endpoint.cloud.region.clone().or_else(|| address.and_then(region_in));
                let region =
                    region.or_else(|| filled(variable, "AWS_REGION")).or_else(|| filled(variable, "AWS_DEFAULT_REGION"));
                let region = region.or_else(|| Profile::new(profile, variable).region()).ok_or_else(|| OpenError::NoPlace {
                    vendor: vendor.clone(),
                    what: "region",
                    advice: "set AWS_REGION, for example to us-east-1",
                })?;
                let region = checked(vendor, "region", region.trim())?;
                let address = address.map(str::to_owned);
                Ok(CloudAccess {
                    address: address.unwrap_or_else(|| format!("https://bedrock-runtime.{region}.{}", aws::domain(&region))),
                    credentials: AwsCredentials::find(profile, &region, variable).map(KeySource::Aws),
                    region: Some(region),
                })
            }
            Self::Google => {
                let credentials = GoogleCredentials::find(variable);
                let whole = address.filter(|address| address.contains("/projects/"));
                if let Some(address) = whole {
                    let credentials = credentials.map(KeySource::Google);
                    return Ok(CloudAccess { address: address.to_owned(), region: None, credentials });
                }
                let variables = |names: &[&str]| names.iter().find_map(|name| filled(variable, name));
                let project = endpoint.cloud.project.clone();
                let project = project.or_else(|| variables(&["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"]));
                let project = project.or_else(|| credentials.as_ref()?.project()).ok_or_else(|| OpenError::NoPlace {
                    vendor: vendor.clone(),
                    what: "project",
                    advice: "set GOOGLE_CLOUD_PROJECT to the id of your project",
                })?;
                let location = endpoint.cloud.location.clone().or_else(|| address.and_then(location_in));
                let location = location.or_else(|| variables(&["GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"]));
                let location = checked(vendor, "location", location.as_deref().unwrap_or("global").trim())?;
                let project = checked(vendor, "project", project.trim())?;
                let below = format!("projects/{project}/locations/{location}");
                let address = match address.map(|address| address.trim_end_matches('/')) {
                    Some(address) if has_path(address) => format!("{address}/{below}"),
                    Some(address) => format!("{address}/v1/{below}"),
                    None => format!("https://{}/v1/{below}", vertex_host(&location)),
                };
                Ok(CloudAccess { address, region: None, credentials: credentials.map(KeySource::Google) })
            }
        }
    }
}

/// The maker of a model that a cloud offers and the maker's own name for it, under which its price and what it can do are known.
pub(crate) fn makers_name<'a>(vendor: &str, model: &'a str) -> Option<(&'static str, &'a str)> {
    match vendor {
        "bedrock" => {
            let name = bedrock::without_regions(model);
            let of_anthropic = name.strip_prefix("anthropic.").map(|name| ("anthropic", name));
            of_anthropic.or_else(|| (name != model).then_some(("bedrock", name)))
        }
        "vertex" if vertex::is_claude(model) => Some(("anthropic", model)),
        "vertex" if model.starts_with("gemini") => Some(("gemini", model)),
        _ => None,
    }
}

/// The host of a location. Two of them stand for several regions.
fn vertex_host(location: &str) -> String {
    match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        location => format!("{location}-aiplatform.googleapis.com"),
    }
}

fn has_path(address: &str) -> bool {
    address.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

/// The region in an address of Bedrock.
fn region_in(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://bedrock-runtime")?;
    let (region, _) = rest.trim_start_matches("-fips").strip_prefix('.')?.split_once(".amazonaws.com")?;
    Some(region.to_owned())
}

/// The location in an address of Vertex AI.
fn location_in(address: &str) -> Option<String> {
    let (_, host) = address.split_once("://")?;
    let (location, _) = host.split_once("-aiplatform.googleapis.com")?;
    Some(location.to_owned())
}

/// A name that becomes part of a host or a path.
fn checked(vendor: &str, what: &str, text: &str) -> Result<String, OpenError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(OpenError::BadSettings(format!("the {what} of {vendor} is no name of letters, digits and hyphens"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendors;

    fn address(vendor: &str, cloud: CloudSettings, base_url: Option<&str>, set: &[(&str, &str)]) -> Result<String, String> {
        let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let vendor = vendors::find(vendor).unwrap();
        let endpoint = Endpoint { cloud, ..Endpoint::new(vendor.name, vendor) };
        let access = vendor.cloud.unwrap().access(&endpoint, base_url, &lookup).map_err(|error| error.to_string())?;
        Ok(format!("{}{}", access.address, access.region.map(|region| format!(" {region}")).unwrap_or_default()))
    }

    #[test]
    fn the_address_of_bedrock_follows_from_the_region() {
        let set = |region: &str| CloudSettings { region: Some(region.to_owned()), ..CloudSettings::default() };
        let none = CloudSettings::default();
        let ask = |cloud, base_url, variables: &[(&str, &str)]| address("bedrock", cloud, base_url, variables);
        let usual = Ok("https://bedrock-runtime.eu-west-1.amazonaws.com eu-west-1".to_owned());
        assert_eq!(ask(none.clone(), None, &[("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "x")]), usual);
        assert_eq!(ask(set("eu-west-1"), None, &[("AWS_REGION", "x")]), usual);
        let china = "https://bedrock-runtime.cn-north-1.amazonaws.com.cn cn-north-1".to_owned();
        assert_eq!(ask(set("cn-north-1"), None, &[]), Ok(china));
        let own = Some("https://bedrock-runtime-fips.us-west-2.amazonaws.com");
        let fips = "https://bedrock-runtime-fips.us-west-2.amazonaws.com us-west-2".to_owned();
        assert_eq!(ask(none.clone(), own, &[("AWS_REGION", "x")]), Ok(fips));
        assert_eq!(ask(none, None, &[]), Err("bedrock needs a region; set AWS_REGION, for example to us-east-1".to_owned()));
        let bad = "the region of bedrock is no name of letters, digits and hyphens".to_owned();
        assert_eq!(ask(set("evil.example/"), None, &[]), Err(bad));
    }

    #[test]
    fn the_address_of_vertex_follows_from_project_and_location() {
        let ask = |base_url, variables: &[(&str, &str)]| address("vertex", CloudSettings::default(), base_url, variables);
        let project = ("GOOGLE_CLOUD_PROJECT", "my-project");
        let at = |location| [project, ("GOOGLE_CLOUD_LOCATION", location)];
        let path = |location: &str| format!("/v1/projects/my-project/locations/{location}");
        assert_eq!(ask(None, &[project]), Ok(format!("https://aiplatform.googleapis.com{}", path("global"))));
        let regional = format!("https://europe-west4-aiplatform.googleapis.com{}", path("europe-west4"));
        assert_eq!(ask(None, &at("europe-west4")), Ok(regional));
        assert_eq!(ask(None, &at("us")), Ok(format!("https://aiplatform.us.rep.googleapis.com{}", path("us"))));
        assert_eq!(ask(Some("http://127.0.0.1:1/"), &[project]), Ok(format!("http://127.0.0.1:1{}", path("global"))));
        assert_eq!(ask(Some("https://g/vertex/v1"), &[project]), Ok(format!("https://g/vertex{}", path("global"))));
        let own = "https://us-east5-aiplatform.googleapis.com";
        assert_eq!(ask(Some(own), &at("europe-west4")), Ok(format!("{own}{}", path("us-east5"))));
        let whole = "https://h/v1/projects/p/locations/l";
        assert_eq!(ask(Some(whole), &[]), Ok(whole.to_owned()));
        let error = "vertex needs a project; set GOOGLE_CLOUD_PROJECT to the id of your project".to_owned();
        assert_eq!(ask(None, &[]), Err(error));
    }
}
