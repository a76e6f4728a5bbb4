//! What a configuration says about an endpoint (`[providers.NAME]`), and how an endpoint is opened: a vendor of the table with
//! its usual settings, the same with other ones, or an endpoint with a name of its own that is like a vendor.

use std::time::Duration;

use polis_http::{HeaderMap, HttpClient, HttpOptions};

use crate::cloud::CloudSettings;
use crate::key_source::KeySource;
use crate::remote_model::{Dialect, RemoteModel, RemoteOptions};
use crate::vendors::{Lookup, OpenError, Vendor, base_url_variable, filled, is_plain_http};
use crate::{ApiKey, Rate};

/// The settings of one endpoint. What is not set is as usual for its vendor.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What it is called in `NAME/model`: the vendor's own name, or another.
    pub name: String,
    /// The vendor that it is, or is like.
    pub vendor: &'static Vendor,
    /// Its address. An endpoint with a name of its own needs one.
    pub base_url: Option<String>,
    /// The language of its interface.
    pub dialect: Option<Dialect>,
    /// The variable that holds its key. An endpoint with a name of its own never takes the vendor's key unasked.
    pub key_variable: Option<String>,
    /// Where its key comes from, if not from a variable.
    pub key_source: Option<KeySource>,
    /// Further headers of every request. Their values are secret.
    pub headers: HeaderMap,
    /// How long things may take.
    pub timeouts: EndpointTimeouts,
    /// How often a failed call is repeated.
    pub retries: Option<u32>,
    /// How fast it may be asked.
    pub rate: Rate,
    /// The account of a vendor that is part of a cloud.
    pub cloud: CloudSettings,
    /// Its own proxies and certificates.
    pub network: Option<HttpOptions>,
    /// The stores at the vendor whose files its file search reads.
    pub file_stores: Vec<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// How long an endpoint may take for what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointTimeouts {
    /// Until the connection is open.
    pub connect: Option<Duration>,
    /// Until the reply begins.
    pub first_token: Option<Duration>,
    /// Until the reply goes on.
    pub between_tokens: Option<Duration>,
    /// Until the reply has ended.
    pub whole: Option<Duration>,
}

impl Endpoint {
    /// An endpoint of this name with nothing set.
    pub fn new(name: impl Into<String>, vendor: &'static Vendor) -> Self {
        Self {
            name: name.into(),
            vendor,
            base_url: None,
            dialect: None,
            key_variable: None,
            key_source: None,
            headers: HeaderMap::new(),
            timeouts: EndpointTimeouts::default(),
            retries: None,
            rate: Rate::default(),
            cloud: CloudSettings::default(),
            network: None,
            file_stores: Vec::new(),
            problem: None,
        }
    }

    /// Whether it is no vendor of the table.
    pub(crate) fn has_own_name(&self) -> bool {
        self.name != self.vendor.name
    }

    /// The variable that holds the key of an endpoint with a name of its own where the configuration names none.
    pub fn usual_key_variable(name: &str) -> String {
        base_url_variable(name).replace("_BASE_URL", "_API_KEY")
    }

    /// Its key and the variable that holds it, if one does.
    pub(crate) fn key(&self, variable: Lookup<'_>) -> Option<(String, String)> {
        match &self.key_variable {
            Some(name) => Some((name.clone(), filled(variable, name)?)),
            None if self.has_own_name() => {
                let name = Self::usual_key_variable(&self.name);
                Some((name.clone(), filled(variable, &name)?))
            }
            None => self.vendor.key(variable).map(|(name, key)| (name.to_owned(), key)),
        }
    }

    /// Its address, where it is set, and whether that is an address of the user's own.
    fn address(&self, variable: Lookup<'_>) -> Result<(String, String, bool), OpenError> {
        let name = base_url_variable(&self.name);
        let of_settings = self.base_url.clone().map(|address| (format!("base_url of [providers.{}]", self.name), address));
        let set = match self.has_own_name() {
            true => filled(variable, &name).map(|address| (name.clone(), address)).or(of_settings),
            false => self.vendor.address(variable).or(of_settings).or_else(|| self.vendor.foreign_address(variable)),
        };
        if let Some((name, address)) = set {
            return Ok((name, address, true));
        }
        match self.vendor.base_url.filter(|_| !self.has_own_name()) {
            Some(address) => Ok((name, address.to_owned(), false)),
            None => Err(OpenError::NoAddress { vendor: self.name.clone(), variable: name }),
        }
    }

    /// Opens it over `http`, or over connections of its own where its settings ask for that.
    pub(crate) fn open(&self, http: &HttpClient, usual: &HttpOptions, variable: Lookup<'_>) -> Result<RemoteModel, OpenError> {
        if let Some(what) = &self.problem {
            return Err(OpenError::BadSettings(what.clone()));
        }
        let key = if self.key_source.is_some() { None } else { self.key(variable) };
        let mut address = self.address(variable);
        let (mut key_source, mut region) = (self.key_source.clone(), None);
        if let Some(cloud) = self.vendor.cloud {
            let set = address.as_ref().ok().map(|(_, address, _)| address.as_str());
            let access = cloud.access(self, set, variable)?;
            // The credentials of the account go to the cloud itself, or to where the user has moved the vendor.
            let may_have_them = !self.has_own_name() || self.vendor.is_known_address(&access.address);
            if key.is_none() && key_source.is_none() && self.key_variable.is_none() && may_have_them {
                key_source = access.credentials;
            }
            region = access.region;
            address = match address {
                Ok((name, _, is_own)) => Ok((name, access.address, is_own)),
                Err(_) => Ok((base_url_variable(&self.name), access.address, false)),
            };
        }
        // An address of one's own is most often a local server, which wants no key.
        let needs_key = self.key_variable.is_some() || !(self.vendor.keyless || address.as_ref().is_ok_and(|(_, _, own)| *own));
        if needs_key && key.is_none() && key_source.is_none() {
            let vendor = self.name.clone();
            return Err(match (&self.key_variable, self.vendor.cloud) {
                (None, Some(cloud)) => OpenError::NoCredentials { vendor, advice: cloud.advice() },
                (Some(variable), _) => OpenError::NoKey { vendor, variable: variable.clone() },
                (None, None) => OpenError::NoKey { vendor, variable: self.vendor.key_variable.to_owned() },
            });
        }
        let (address_variable, base_url, _) = address?;
        let secret = match (&key, &key_source, self.headers.keys().next()) {
            (Some((variable, _)), _, _) => Some(format!("the key in {variable}")),
            (None, Some(source), _) => Some(format!("the key of {source}")),
            (None, None, Some(header)) => Some(format!("the header {header}")),
            (None, None, None) => None,
        };
        if let Some(secret) = secret.filter(|_| is_plain_http(&base_url)) {
            return Err(OpenError::PlainHttp { variable: address_variable, address: base_url, secret });
        }
        let key =
            key.map(|(variable, key)| ApiKey::new(&key).map_err(|bad| OpenError::BadKey { variable, bad })).transpose()?;
        let EndpointTimeouts { connect, first_token, between_tokens, whole } = self.timeouts;
        let http = match (&self.network, connect) {
            (None, None) => http.clone(),
            (network, connect) => {
                let mut options = network.as_ref().unwrap_or(usual).clone();
                options.timeouts.connect = connect.unwrap_or(options.timeouts.connect);
                HttpClient::new(options)
            }
        };
        let usual = RemoteOptions::new(self.name.clone(), base_url, "");
        let options = RemoteOptions {
            dialect: self.dialect.unwrap_or(self.vendor.dialect),
            key,
            key_source,
            region,
            headers: self.headers.clone(),
            quirks: self.vendor.quirks,
            first_timeout: first_token.unwrap_or(usual.first_timeout),
            idle_timeout: between_tokens.unwrap_or(usual.idle_timeout),
            whole_timeout: whole,
            start_hint: self.vendor.start_hint,
            key_header: self.vendor.key_header,
            file_stores: self.file_stores.clone(),
            ..usual
        };
        RemoteModel::new(http, options).map_err(|bad| OpenError::BadAddress { variable: address_variable, bad })
    }
}
