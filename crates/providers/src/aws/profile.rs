//! The files that Amazon's command line keeps: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::AwsKeys;
use crate::vendors::{Lookup, filled};

/// Longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Which profile of which files counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) name: String,
    credentials: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// How a profile gives keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProfileKeys {
    /// They are written in it.
    Static(AwsKeys),
    /// A program prints them.
    Process(Vec<String>),
    /// In a way that only Amazon's own programs know.
    Foreign(&'static str),
    /// Not at all, or there is no such profile.
    None,
}

impl Profile {
    /// The profile of the environment, or the one of this name.
    pub(crate) fn new(name: Option<&str>, variable: Lookup<'_>) -> Self {
        let home = filled(variable, "HOME").or_else(|| filled(variable, "USERPROFILE"));
        let file = |name: &str, usual: &str| {
            let usual = || home.as_ref().map(|home| Path::new(home).join(".aws").join(usual));
            filled(variable, name).map(PathBuf::from).or_else(usual)
        };
        let of_environment = || filled(variable, "AWS_PROFILE").or_else(|| filled(variable, "AWS_DEFAULT_PROFILE"));
        Self {
            name: name.map(str::to_owned).or_else(of_environment).unwrap_or_else(|| "default".to_owned()),
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: file("AWS_CONFIG_FILE", "config"),
        }
    }

    /// The settings of the profile in both files; the file with the credentials goes first.
    fn settings(&self) -> BTreeMap<String, String> {
        let of_config = match self.name.as_str() {
            "default" => vec!["default".to_owned(), "profile default".to_owned()],
            name => vec![format!("profile {name}")],
        };
        let mut settings = read(self.config.as_deref(), &of_config);
        settings.extend(read(self.credentials.as_deref(), std::slice::from_ref(&self.name)));
        settings
    }

    pub(crate) fn region(&self) -> Option<String> {
        self.settings().remove("region")
    }

    pub(crate) fn keys(&self) -> ProfileKeys {
        let mut settings = self.settings();
        let mut take = |name: &str| settings.remove(name).filter(|value| !value.is_empty());
        if let (Some(access_key), Some(secret_key)) = (take("aws_access_key_id"), take("aws_secret_access_key")) {
            return ProfileKeys::Static(AwsKeys { access_key, secret_key, session_token: take("aws_session_token") });
        }
        if let Some(line) = take("credential_process") {
            return ProfileKeys::Process(words(&line));
        }
        if take("role_arn").is_some() {
            return ProfileKeys::Foreign("assumes a role");
        }
        match take("sso_session").or_else(|| take("sso_start_url")).or_else(|| take("login_session")) {
            Some(_) => ProfileKeys::Foreign("logs in with a browser"),
            None => ProfileKeys::None,
        }
    }
}

/// The settings in these sections of a file; none where it cannot be read.
fn read(file: Option<&Path>, sections: &[String]) -> BTreeMap<String, String> {
    let is_plain = |path: &&Path| std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= MAX_BYTES);
    let text = file.filter(is_plain).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let (mut settings, mut is_ours) = (BTreeMap::new(), false);
    for line in text.lines() {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let section = section.split_whitespace().collect::<Vec<_>>().join(" ");
            is_ours = sections.contains(&section);
        } else if let Some((name, value)) = line.split_once('=')
            // A line that is indented belongs to the setting before it; a comment begins with its mark.
            && is_ours
            && !line.starts_with([' ', '\t', '#', ';'])
        {
            let value = value.split(" #").next().unwrap_or_default();
            settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

/// The words of a command. Double quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut open, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                open.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(open.take()),
            c => open.get_or_insert_default().push(c),
        }
    }
    words.extend(open);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_both_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(".aws").join(name), text).unwrap();
        write(
            "credentials",
            "# mine\n[default]\naws_access_key_id = AKD\naws_secret_access_key=s/d+=\n\n[work]\naws_access_key_id=AKW\naws_secret_access_key=sw\naws_session_token = t==\n",
        );
        write(
            "config",
            "[default]\nregion = eu-west-1 # near\n[profile work]\ns3 =\n  region = nowhere\nregion=us-west-2\n[profile tool]\ncredential_process = \"/opt/my tool\" get \"a b\"\n[profile sso]\nsso_session = corp\n[profile role]\nrole_arn = arn:x\nsource_profile = work\n[sso-session corp]\nregion = x\n",
        );
        let home = folder.path().to_str().unwrap().to_owned();
        let profile = |name: Option<&str>, set: &[(&str, &str)]| {
            Profile::new(name, &|asked| match asked {
                "HOME" => Some(home.clone()),
                asked => set.iter().find(|(key, _)| *key == asked).map(|(_, value)| (*value).to_owned()),
            })
        };
        let keys = |access: &str, secret: &str, token: Option<&str>| {
            ProfileKeys::Static(AwsKeys {
                access_key: access.to_owned(),
                secret_key: secret.to_owned(),
                session_token: token.map(str::to_owned),
            })
        };
        assert_eq!(profile(None, &[]).keys(), keys("AKD", "s/d+=", None));
        assert_eq!(profile(None, &[]).region().as_deref(), Some("eu-west-1"));
        let work = profile(None, &[("AWS_PROFILE", "work")]);
        assert_eq!((work.keys(), work.region().as_deref()), (keys("AKW", "sw", Some("t==")), Some("us-west-2")));
        assert_eq!(profile(Some("tool"), &[("AWS_PROFILE", "work")]).keys(), {
            ProfileKeys::Process(vec!["/opt/my tool".to_owned(), "get".to_owned(), "a b".to_owned()])
        });
        assert_eq!(profile(Some("sso"), &[]).keys(), ProfileKeys::Foreign("logs in with a browser"));
        assert_eq!(profile(Some("role"), &[]).keys(), ProfileKeys::Foreign("assumes a role"));
        assert_eq!(profile(Some("nobody"), &[]).keys(), ProfileKeys::None);
        let elsewhere = [("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file"), ("AWS_CONFIG_FILE", "/no/such/file")];
        assert_eq!(profile(None, &elsewhere).keys(), ProfileKeys::None);
        assert_eq!(Profile::new(None, &|_| None).keys(), ProfileKeys::None);
    }
}
