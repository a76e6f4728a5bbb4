//! `[network]`: proxies and certificates for everything that goes out. What it does not set comes from the environment.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use polis_http::{BadProxy, Environment, HttpOptions, Identity, Trust};
use polis_tools::mcp::{variable_names, variables, variables_written};
use serde::{Deserialize, Deserializer};

/// Proxies and certificates, of everything or of one provider.
#[derive(Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkSection {
    /// A PEM file with certificates to trust beside the system's.
    #[serde(default, deserialize_with = "path_from_home")]
    pub(super) ca: Option<PathBuf>,
    #[serde(default, deserialize_with = "path_from_home")]
    pub(super) client_certificate: Option<PathBuf>,
    #[serde(default, deserialize_with = "path_from_home")]
    pub(super) client_key: Option<PathBuf>,
    /// The address of a proxy, or `none`. It may name variables, for a password.
    pub(super) proxy: Option<String>,
    /// Hosts that are reached without the proxy.
    #[serde(default)]
    pub(super) no_proxy: Vec<String>,
}

/// The proxy may hold a password.
impl fmt::Debug for NetworkSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkSection").finish_non_exhaustive()
    }
}

/// The value of `proxy` for a direct connection.
const NO_PROXY: &str = "none";

impl NetworkSection {
    pub(super) fn is_empty(&self) -> bool {
        let Self { ca, client_certificate, client_key, proxy, no_proxy } = self;
        ca.is_none() && client_certificate.is_none() && client_key.is_none() && proxy.is_none() && no_proxy.is_empty()
    }

    /// What is wrong with it, as far as that is known without the environment.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.client_certificate.is_some() != self.client_key.is_some() {
            return Err("`client_certificate` and `client_key` belong together; set both".to_owned());
        }
        match self.proxy.as_deref().filter(|proxy| !proxy.contains("${")) {
            Some(proxy) => self.check_proxy(proxy),
            None => Ok(()),
        }
    }

    fn check_proxy(&self, proxy: &str) -> Result<(), String> {
        if proxy.trim() == NO_PROXY {
            return Ok(());
        }
        let checked = Environment::default().with_proxy(proxy).map(drop);
        checked.map_err(|bad: BadProxy| format!("`proxy` {bad}, or \"none\""))
    }

    /// The variables that it names.
    pub(super) fn variables(&self) -> Vec<String> {
        self.proxy.iter().flat_map(|proxy| variable_names(proxy)).collect()
    }

    /// The files with certificates to trust or to present, and the private key.
    pub(super) fn certificate_files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.ca, &self.client_certificate, &self.client_key].into_iter().flatten()
    }

    /// The private key, which no agent may read.
    pub(crate) fn private_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.client_key.iter()
    }

    /// Has its relative paths begin in the folder of its file.
    pub(super) fn set_folder(&mut self, folder: &Path) {
        for path in [&mut self.ca, &mut self.client_certificate, &mut self.client_key].into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }

    /// Each setting of this one, and of the other what this one does not set.
    pub(super) fn over(self, other: Self) -> Self {
        let has_identity = self.client_certificate.is_some() || self.client_key.is_some();
        let (client_certificate, client_key) = match has_identity {
            true => (self.client_certificate, self.client_key),
            false => (other.client_certificate, other.client_key),
        };
        Self {
            ca: self.ca.or(other.ca),
            client_certificate,
            client_key,
            proxy: self.proxy.or(other.proxy),
            no_proxy: if self.no_proxy.is_empty() { other.no_proxy } else { self.no_proxy },
        }
    }

    /// The options for connections: this section, and `usual` for what it does not set.
    pub(crate) fn apply(&self, usual: HttpOptions) -> Result<HttpOptions, String> {
        let mut options = usual;
        if let Some(proxy) = &self.proxy {
            let proxy = with_variables(proxy).map_err(|what| format!("`proxy`: {what}"))?;
            self.check_proxy(&proxy)?;
            options.environment = match proxy.trim() {
                NO_PROXY => options.environment.without_proxies(),
                proxy => options.environment.with_proxy(proxy).map_err(|bad| bad.to_string())?,
            };
        }
        if !self.no_proxy.is_empty() {
            options.environment.no_proxy = Some(self.no_proxy.join(","));
        }
        if let Some(ca) = &self.ca {
            options.trust = match options.trust {
                Trust::SystemAnd(mut files) => {
                    files.push(ca.clone());
                    Trust::SystemAnd(files)
                }
                Trust::System | Trust::Only(_) => Trust::SystemAnd(vec![ca.clone()]),
            };
        }
        if let (Some(certificates), Some(key)) = (self.client_certificate.clone(), self.client_key.clone()) {
            options.identity = Some(Identity { certificates, key });
        }
        Ok(options)
    }
}

/// Reads a path. `~/` is the person's own folder, as in a shell.
pub(super) fn path_from_home<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = Option::<PathBuf>::deserialize(deserializer)?;
    Ok(path.map(|path| match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => path,
    }))
}

/// What a user name or a password may have in an address as it is.
const IN_LOGIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a proxy with its variables. Those in the login may hold any characters; one that is the whole address, or part of
/// the host, is put in as it is.
fn with_variables(proxy: &str) -> Result<String, String> {
    let (login, host) = match proxy.rsplit_once('@') {
        Some((login, host)) if login.contains("://") => (login, format!("@{host}")),
        _ => return variables(proxy),
    };
    Ok(variables_written(login, &in_login)? + &variables(&host)?)
}

/// A value as it may be part of a login; one that is encoded already stays as it is.
fn in_login(value: String) -> String {
    let is_plain = |part: &str| utf8_percent_encode(part, IN_LOGIN).to_string() == part;
    let is_code = |part: &str| part.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let mut parts = value.split('%');
    let is_encoded = parts.next().is_none_or(is_plain) && parts.all(|part| is_code(part) && is_plain(part));
    if is_encoded { value } else { utf8_percent_encode(&value, IN_LOGIN).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_a_proxy_may_have_any_characters() {
        for (value, want) in [
            ("plain-1.2_3~", "plain-1.2_3~"),
            ("p@ss:w/rd#", "p%40ss%3Aw%2Frd%23"),
            ("p%40ss", "p%40ss"),
            ("50%", "50%25"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(in_login(value.to_owned()), want);
        }
        // Every process has this variable, and its value has slashes.
        let path = std::env::var("PATH").unwrap();
        assert_eq!(with_variables("${PATH}").unwrap(), path);
        let login = with_variables("http://me:${PATH}@${POLIS_TEST_UNSET:-p}:1").unwrap();
        assert_eq!(login, format!("http://me:{}@p:1", in_login(path)));
        assert!(!login[7..login.len() - 4].contains('/'), "{login}");
    }

    #[test]
    fn a_path_may_begin_in_the_persons_folder() {
        let home = std::env::home_dir().unwrap();
        let section = section("ca = \"~/ca.pem\"\nclient_key = \"a/~/k.pem\"\n");
        assert_eq!((section.ca, section.client_key), (Some(home.join("ca.pem")), Some("a/~/k.pem".into())));
    }

    fn section(text: &str) -> NetworkSection {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn settings_count_before_the_environment_and_the_rest_stays() {
        let set = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://env:1".to_owned()),
            "NO_PROXY" => Some("env.example".to_owned()),
            _ => None,
        };
        let usual = || HttpOptions::new(Environment::from_variables(set));
        let applied = |text: &str| section(text).apply(usual()).unwrap();
        assert_eq!(applied("").environment, usual().environment);
        let own = applied("proxy = \"http://own:2\"\nca = \"a.pem\"\n");
        assert_eq!(own.environment.https_proxy.as_deref(), Some("http://own:2"));
        assert_eq!(own.environment.http_proxy.as_deref(), Some("http://own:2"));
        assert_eq!(own.environment.no_proxy.as_deref(), Some("env.example"));
        assert_eq!(own.trust, Trust::SystemAnd(vec!["a.pem".into()]));
        let both = section("ca = \"b.pem\"\nno_proxy = [\"x\", \"y\"]\n").apply(own).unwrap();
        assert_eq!(both.trust, Trust::SystemAnd(vec!["a.pem".into(), "b.pem".into()]));
        assert_eq!(both.environment.no_proxy.as_deref(), Some("x,y"));
        assert_eq!(applied("proxy = \"none\"\n").environment, Environment::default());
        let unset = section("proxy = \"http://u:${POLIS_TEST_UNSET}@p:1\"\n").apply(usual()).unwrap_err();
        assert_eq!(unset, "`proxy`: the variable POLIS_TEST_UNSET is not set");
    }
}
