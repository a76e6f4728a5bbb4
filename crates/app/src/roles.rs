//! Roles that people write in `roles/*.md`: brought into the society at its start, and when a file changes. A file counts only
//! while exactly its content is trusted; a role that was brought in stays as it is until then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use polis_agents::{BadRoleFile, ROLES_FOLDER, read_role, role_files};
use polis_domain::{Role, RoleId};
use polis_engine::Society;

use crate::out;
use crate::trust::{Stamp, Trust};
use crate::wiring::ROLE;

/// How often the folder is looked at.
const EVERY: Duration = Duration::from_secs(2);

/// Reads one file.
fn read(path: &Path, text: &str) -> Result<Role, BadRoleFile> {
    read_role(path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(), text, ROLE)
}

/// The folders with roles, first the user's own, then the working directory's.
fn folders(trust: &Trust) -> Vec<PathBuf> {
    trust.user().map(|user| user.join(ROLES_FOLDER)).into_iter().chain([ROLES_FOLDER.into()]).collect()
}

/// Makes the society's roles what the files say. What is wrong with a file is told, and the society goes on without it; a file
/// that is gone changes nothing.
pub(crate) async fn apply(society: &Society, trust: &Trust) {
    let mut seen = BTreeSet::new();
    for path in folders(trust).iter().flat_map(|folder| role_files(folder)) {
        let report = |what: String| out::note(&format!("polis: {}: {what} (bad_role)", path.display()));
        let text = match trust.read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                report(error.to_string());
                continue;
            }
        };
        match read(&path, &text) {
            Ok(role) if !seen.insert(role.id.clone()) => report(format!("another file already defines the role `{}`", role.id)),
            Ok(role) => {
                if let Err(error) = upsert_role(society, role).await {
                    report(error);
                }
            }
            Err(BadRoleFile { line, wrong, remedy }) => {
                out::note(&format!("polis: {}:{line}: {wrong}; {remedy} (bad_role)", path.display()));
            }
        }
    }
}

/// Creates one role, or changes it. The behaviour of an existing role stays.
async fn upsert_role(society: &Society, role: Role) -> Result<(), String> {
    let id: RoleId = role.id.clone();
    let known = society.look(move |spine| spine.roles.get(&id).cloned()).await.map_err(|error| error.to_string())?;
    let done = match known {
        None => society.create_role(role).await,
        Some(known) => {
            let role = Role { behaviour: known.behaviour.clone(), ..role };
            if *known == role {
                return Ok(());
            }
            out::note(&format!("polis: role {} updated from its file; open turns keep the previous version", role.id));
            society.change_role(role).await
        }
    };
    done.map_err(|error| error.to_string())
}

/// Detects changes of the files, or of what is trusted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RoleFiles {
    stamp: Stamp,
    files: BTreeMap<PathBuf, (Option<SystemTime>, u64)>,
}

/// Looks at the folders, and at what is trusted, again and again, for ever. `before` is how they were when the roles were last
/// brought in.
pub(crate) async fn watch(society: impl Fn() -> Option<Society>, trust: &Trust, mut before: RoleFiles) {
    loop {
        tokio::time::sleep(EVERY).await;
        let now = state(trust);
        if now != before {
            before = now;
            // One that is not open here gets them when it is opened.
            if let Some(society) = society() {
                apply(&society, trust).await;
            }
        }
    }
}

/// How the files of roles are now.
pub(crate) fn state(trust: &Trust) -> RoleFiles {
    let of = |path: PathBuf| {
        let about = std::fs::metadata(&path).ok()?;
        Some((path, (about.modified().ok(), about.len())))
    };
    let files = folders(trust).iter().flat_map(|folder| role_files(folder)).filter_map(of).collect();
    RoleFiles { stamp: trust.stamp(), files }
}
