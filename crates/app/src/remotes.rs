//! Remote A2A agents as members of the society: `[a2a.NAME]` in `polis.toml`. Each has a role and an agent of its name below root.

use std::time::Duration;

use polis_domain::{AgentId, Role, RoleId};
use polis_engine::Society;
use polis_ports::Tool;
use polis_tools::a2a::RemoteAgent;
use polis_tools::{HttpOptions, is_plain_http};
use serde::Deserialize;

use crate::error::CliError;
use crate::out;

/// The code that sends messages on to them.
pub(crate) const BEHAVIOUR: &str = "a2a";

/// How long one may be out of reach where nobody says, and at most, in seconds.
const PATIENCE: f64 = 600.0;
const MOST_PATIENCE: f64 = 86_400.0;

/// One `[a2a.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteSection {
    url: String,
    token_env: Option<String>,
    description: Option<String>,
    timeout_seconds: Option<f64>,
    enabled: Option<bool>,
}

/// Its address may hold a secret.
impl std::fmt::Debug for RemoteSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSection").finish_non_exhaustive()
    }
}

/// A member that lives elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    agent: RemoteAgent,
    /// Its description for other agents.
    description: Option<String>,
}

/// What is wrong with a section, and the error code.
pub(crate) struct BadRemote {
    pub(crate) code: &'static str,
    pub(crate) what: String,
}

impl From<&str> for BadRemote {
    fn from(what: &str) -> Self {
        Self { code: "bad_config", what: what.to_owned() }
    }
}

impl Remote {
    pub(crate) fn name(&self) -> &str {
        &self.agent.name
    }

    /// The variable whose value it is sent.
    pub(crate) fn token_variable(&self) -> Option<&String> {
        self.agent.token_env.as_ref()
    }
}

impl RemoteSection {
    /// The remote agent, or what is wrong with the section; none if it is disabled.
    pub(crate) fn into_remote(self, name: &str) -> Result<Option<Remote>, BadRemote> {
        let Self { url, token_env, description, timeout_seconds, enabled } = self;
        let is_plain =
            |envelope: char| envelope.is_ascii_lowercase() || envelope.is_ascii_digit() || matches!(envelope, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) || matches!(name, "root" | "user") {
            return Err("needs a name of a-z, 0-9, _ and -, at most 64 of them, other than `root` and `user`".into());
        }
        let seconds = timeout_seconds.unwrap_or(PATIENCE);
        if seconds.is_nan() || seconds <= 0.0 || seconds > MOST_PATIENCE {
            return Err("has a `timeout_seconds` that is not above 0 and at most 86400".into());
        }
        if token_env.is_some() && is_plain_http(&url) {
            let what = "has a `url` of plain http, which would send its token unencrypted; use https".to_owned();
            return Err(BadRemote { code: "plain_http", what });
        }
        let agent = RemoteAgent { name: name.to_owned(), url, token_env, patience: Duration::from_secs_f64(seconds) };
        // A bad address is reported now, not when the agent is first called.
        polis_tools::a2a::tools(std::slice::from_ref(&agent), &HttpOptions::default())
            .map_err(|_| "needs a `url` that begins with http:// or https://")?;
        Ok(enabled.unwrap_or(true).then_some(Remote { agent, description }))
    }
}

/// The tools by which they are spoken with.
pub(crate) fn tools(remotes: &[Remote], network: &HttpOptions) -> Result<Vec<Box<dyn Tool>>, CliError> {
    let agents: Vec<RemoteAgent> = remotes.iter().map(|remote| remote.agent.clone()).collect();
    polis_tools::a2a::tools(&agents, network).map_err(|what| CliError::usage("bad_config", what))
}

/// Creates missing members. A failure is reported, and the society continues without that member.
pub(crate) async fn apply(society: &Society, remotes: &[Remote]) {
    for remote in remotes {
        if let Err(what) = join(society, remote).await {
            out::note(&format!("polis: the A2A agent {} was not added: {what} (bad_remote)", remote.agent.name));
        }
    }
}

async fn join(society: &Society, Remote { agent, description }: &Remote) -> Result<(), String> {
    let about = description.clone().unwrap_or_else(|| "A remote agent, reached over A2A.".to_owned());
    let role = Role::new(agent.name.as_str(), BEHAVIOUR).with_prompt(about).with_tools([format!("_a2a_*__{}", agent.name)]);
    let (role_id, agent_id) = (RoleId::from(agent.name.as_str()), AgentId::from(agent.name.as_str()));
    let (id, who) = (role_id.clone(), agent_id.clone());
    let known =
        society.look(move |spine| (spine.roles.get(&id).cloned(), spine.agents.get(&who).map(|agent| agent.role.clone())));
    let (known, holds) = known.await.map_err(|error| error.to_string())?;
    match known {
        None => society.create_role(role).await.map_err(|error| error.to_string())?,
        Some(known) if known.behaviour.as_str() != BEHAVIOUR => return Err(format!("there is another role `{}`", known.id)),
        Some(known) if *known == role => {}
        Some(_) => society.change_role(role).await.map_err(|error| error.to_string())?,
    }
    match holds {
        None => society.spawn(agent_id, role_id, AgentId::root()).await.map_err(|error| error.to_string()),
        Some(held) if held == role_id => Ok(()),
        Some(_) => Err(format!("there is another agent `{agent_id}`")),
    }
}
