//! `polis deploy`: which versions of agents' code the open turns need, and which of them this program has.

use polis_api::{BehaviourVersion, Deployment, Paging};
use polis_domain::SocietyId;
use serde_json::json;

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

/// Shows all societies, because code can only be removed when none of them needs it.
pub(crate) async fn deploy(config: &Config, as_json: bool) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    for society in societies(config).await? {
        let transport = Transport::open(&config.of(&society), Purpose::Read).await?;
        let Deployment { versions } = transport.api().deployment().await?;
        transport.close(false).await;
        all.push((society, versions));
    }
    let is_behind = all.iter().any(|(_, versions)| versions.iter().any(BehaviourVersion::is_behind));
    let exit = if is_behind { Exit::Failed } else { Exit::Done };
    if as_json {
        let societies: Vec<_> =
            all.iter().map(|(society, versions)| json!({ "society": society, "versions": versions })).collect();
        return out::line(&json!({ "societies": societies, "done": !is_behind }).to_string()).map(|()| exit);
    }
    for (society, versions) in &all {
        for it in versions {
            out::line(&describe(society, it))?;
        }
    }
    if is_behind {
        out::note(
            "polis: turns with old code are open; keep its versions registered until they have ended (--json lists the turns)",
        );
    }
    Ok(exit)
}

/// All societies of the data directory.
async fn societies(config: &Config) -> Result<Vec<SocietyId>, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let (mut names, mut paging) = (Vec::new(), Paging::default());
    loop {
        let listed = transport.api().societies(&paging).await?;
        names.extend(listed.societies.into_iter().map(|society| society.name));
        match listed.next {
            Some(next) => paging.after = Some(next),
            None => break,
        }
    }
    transport.close(false).await;
    Ok(names)
}

fn describe(society: &SocietyId, it: &BehaviourVersion) -> String {
    let BehaviourVersion { behaviour, version, registered, newest, removable, turns } = it;
    let state = match (registered, newest, removable) {
        (false, ..) => "not registered: register it, then they continue",
        (_, true, _) => "new turns begin with it",
        (_, _, true) => "can be removed",
        (_, _, false) => "old; needed",
    };
    let open = out::count(turns.len(), "open turn");
    format!("{:<16} {:<24} version {version:<4} {open:>14}  {state}", society.as_str(), behaviour.as_str())
}
