//! What the operator says about a server. Values that may be secret are never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polis_domain::EffectClass;

use super::oauth::OAuth;

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    /// The first part of its tools' names.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// Whether it is used at all.
    pub enabled: bool,
    /// Whether what it says about its own tools counts.
    pub trusted: bool,
    /// How long a call may stay without a sign of life.
    pub timeout: Duration,
    /// How long after its start a turn waits for its tools.
    pub start_wait: Duration,
    /// What the operator says of single tools, by the server's own names.
    pub effects: BTreeMap<String, EffectClass>,
    /// How we introduce ourselves when a person logs in there.
    pub oauth: OAuth,
    /// The tools of which the operator says whether their results change although nothing is written.
    pub volatile: BTreeMap<String, bool>,
    /// The folders that it is told about when it asks; without them those that its arguments name.
    pub roots: Option<Vec<PathBuf>>,
    /// Whether what it returns counts as outside content.
    pub outside: bool,
    /// Asked before each start of its program.
    pub start_guard: StartGuard,
}

type Check = dyn Fn() -> Result<(), String> + Send + Sync;

/// Decides, before each start of a program, whether it may be started; says why not.
#[derive(Clone, Default)]
pub struct StartGuard(Option<Arc<Check>>);

impl StartGuard {
    /// A guard that asks this function, which may read files.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Whether somebody is asked.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |check| check())
    }
}

impl fmt::Debug for StartGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartGuard")
    }
}

/// Who guards the start is no setting.
impl PartialEq for StartGuard {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// How a server is reached. All texts may hold `${VARIABLE}` or `${VARIABLE:-otherwise}`.
#[derive(Clone, PartialEq)]
pub enum ServerTransport {
    /// A program that we start.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// What its environment holds beside the little that every program needs.
        env: BTreeMap<String, String>,
        /// Where it works; ours when not given.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// What is sent with every request.
        headers: BTreeMap<String, String>,
    },
}

impl ServerSettings {
    /// How long a call may stay without a sign of life when nobody says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// How long after its start a turn waits for its tools when nobody says otherwise.
    pub const START_WAIT: Duration = Duration::from_secs(30);

    /// A server that is used, not trusted, with the usual time-out.
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        let (name, timeout, effects) = (name.into(), Self::TIMEOUT, BTreeMap::new());
        Self {
            name,
            transport,
            enabled: true,
            trusted: false,
            timeout,
            start_wait: Self::START_WAIT,
            effects,
            oauth: OAuth::default(),
            volatile: BTreeMap::new(),
            roots: None,
            outside: true,
            start_guard: StartGuard::default(),
        }
    }

    /// The folders that the server is told about when it asks for roots: those that the user names for it, else those that stand
    /// in its arguments. None that holds what is closed or lies in it.
    pub(super) fn roots(&self, closed: &[PathBuf]) -> Vec<PathBuf> {
        let named = match (&self.roots, &self.transport) {
            (Some(roots), _) => roots.clone(),
            (None, ServerTransport::Command { args, .. }) => {
                let folders = args.iter().filter_map(|argument| variables(argument).ok()).map(PathBuf::from);
                folders.filter(|folder| folder.is_absolute() && folder.is_dir()).collect()
            }
            (None, ServerTransport::Http { .. }) => Vec::new(),
        };
        let closed: Vec<PathBuf> =
            closed.iter().filter_map(|place| place.canonicalize().or_else(|_| std::path::absolute(place)).ok()).collect();
        let is_open = |root: &PathBuf| {
            let overlaps = closed.iter().find(|place| place.starts_with(root) || root.starts_with(place));
            if overlaps.is_some() {
                let name = &self.name;
                tracing::warn!(
                    server = name,
                    "{} is not offered to it as a root: it contains the data or the configuration of polis",
                    root.display()
                );
            }
            overlaps.is_none()
        };
        named.iter().filter_map(|root| root.canonicalize().ok()).filter(is_open).collect()
    }
}

impl ServerTransport {
    /// Everything that says how it is reached, secrets included: only for a digest.
    pub(super) fn full(&self) -> String {
        match self {
            Self::Command { command, args, env, cwd } => format!("{command:?} {args:?} {env:?} {cwd:?}"),
            Self::Http { url, headers } => format!("{url:?} {headers:?}"),
        }
    }

    /// A program without more.
    pub fn command(command: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::Command { command: command.into(), args, env: BTreeMap::new(), cwd: None }
    }
}

/// Names what it is without what may be secret: arguments, values, queries.
impl fmt::Display for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { command, .. } => write!(f, "{command}"),
            Self::Http { url, .. } => {
                let shown = url.split(['?', '#']).next().unwrap_or_default();
                match shown.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
                    Some((scheme, rest)) => write!(f, "{scheme}://{rest}"),
                    None => write!(f, "{shown}"),
                }
            }
        }
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { env, cwd, .. } => {
                write!(f, "Command({self}, {:?}, {cwd:?})", env.keys().collect::<Vec<_>>())
            }
            Self::Http { headers, .. } => write!(f, "Http({self}, {:?})", headers.keys().collect::<Vec<_>>()),
        }
    }
}

/// Puts the variables of the environment in: `${NAME}`, or `${NAME:-otherwise}`. One that is not set is an error.
pub fn variables(text: &str) -> Result<String, String> {
    expanded(text, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The same with each value as `write` makes it.
pub fn variables_written(text: &str, write: &dyn Fn(String) -> String) -> Result<String, String> {
    expanded(text, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()).map(write))
}

/// The names of the variables that [`variables`] would put into a text.
pub fn variable_names(text: &str) -> Vec<String> {
    let names = std::cell::RefCell::default();
    let note = |name: &str| {
        let mut names: std::cell::RefMut<'_, Vec<String>> = names.borrow_mut();
        names.push(name.to_owned());
        Some(String::new())
    };
    // The same reading, so that nothing is put in that was not named.
    let _ = expanded(text, &note);
    names.into_inner()
}

/// Puts variables in. One that is not set makes it an error: an empty key is never sent instead.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, behind) = after.split_once('}').ok_or_else(|| "a `${` is never closed by `}`".to_owned())?;
        if inner.contains("${") {
            return Err("a `${` is nested in another".to_owned());
        }
        let (name, otherwise) = match inner.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise.to_owned())),
            None => (inner, None),
        };
        let value = variable(name).or(otherwise).ok_or_else(|| format!("the variable {name} is not set"))?;
        whole.push_str(before);
        whole.push_str(&value);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_and_a_missing_one_is_an_error() {
        let set = |name: &str| (name == "KEY").then(|| "k-1".to_owned());
        let check = |text: &str| expanded(text, &set);
        assert_eq!(check("Bearer ${KEY}!"), Ok("Bearer k-1!".to_owned()));
        assert_eq!(check("${OTHER:-x}${KEY:-y}"), Ok("xk-1".to_owned()));
        assert_eq!(check("$KEY {KEY}"), Ok("$KEY {KEY}".to_owned()));
        assert_eq!(check("a ${OTHER}"), Err("the variable OTHER is not set".to_owned()));
        assert!(check("a ${KEY").is_err());
        for nested in ["${KEY:-${LANG}", "${KEY:-${}", "a${${KEY}}"] {
            assert!(check(nested).is_err(), "{nested}");
        }
        assert_eq!(variable_names("${OTHER:-x}a${KEY}$NO {NO} ${OPEN"), ["OTHER", "KEY"]);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let headers = BTreeMap::from([("Authorization".to_owned(), "secret".to_owned())]);
        let http = ServerTransport::Http { url: "https://me:secret@host/mcp?key=secret".to_owned(), headers };
        assert_eq!(http.to_string(), "https://host/mcp");
        let env = BTreeMap::from([("KEY".to_owned(), "secret".to_owned())]);
        let command = ServerTransport::Command { command: "npx".to_owned(), args: vec!["secret".to_owned()], env, cwd: None };
        assert_eq!(command.to_string(), "npx");
        for transport in [http, command] {
            assert!(!format!("{transport:?}").contains("secret"), "{transport:?}");
        }
    }
}
