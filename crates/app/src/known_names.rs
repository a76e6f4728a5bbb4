//! The names that roles and SOPs of a folder may use, beside those of the folder itself: what the program, the settings and the society
//! bring. Of settings only the names of their sections are read, so nothing has to be trusted for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_agents::memory::with_memory_tools;
use polis_agents::society::with_society_tools;
use polis_agents::{PlanTool, ROLES_FOLDER, SKILLS_FOLDER, Skill, Skills, read_role, role_files};
use polis_authoring::check::KnownNames;
use polis_domain::{OrgStatus, VendorTool};
use polis_engine::{Cast, SystemClock};
use polis_providers::vendors::{OFFLINE, VENDORS};
use polis_tools::{Workspace, built_ins};

use crate::cli::Cli;
use crate::config::{self, Config};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::trust::user_folder;
use crate::{mcp_servers, wiring};

/// Tools that settings or files turn on, and those that an agent has for some turns only.
const OTHER_TOOLS: [&str; 6] = ["run_command", "fetch_url", "web_search", "read_skill", "start_workflow", "reject_request"];

/// The vendors' own tools.
const VENDOR_TOOLS: [VendorTool; 4] =
    [VendorTool::WebSearch, VendorTool::WebFetch, VendorTool::CodeExecution, VendorTool::FileSearch];

/// The names that are known without a society. `own` are the agents of this program.
pub(crate) fn of_folder(cli: &Cli, own: &Cast, root: &Path) -> KnownNames {
    let cast = with_memory_tools(with_society_tools(Cast::new().with_tool(PlanTool), wiring::ROLE)).and(own.clone());
    let built_in = Workspace::open(root).map(|workspace| built_ins(&workspace, Arc::new(SystemClock))).unwrap_or_default();
    let tools = built_in.iter().map(|tool| tool.spec().name.to_string());
    let tools = tools.chain(cast.tools().into_iter().map(|tool| tool.name.to_string()));
    let vendors = VENDORS.iter().flat_map(|vendor| std::iter::once(vendor.name).chain(vendor.aliases.iter().copied()));
    let mut known = KnownNames {
        tools: tools
            .chain(OTHER_TOOLS.map(str::to_owned))
            .chain(VENDOR_TOOLS.map(|tool| tool.tool_name().to_owned()))
            .collect(),
        vendors: vendors.chain([OFFLINE]).map(str::to_owned).collect(),
        roles: vec!["root".to_owned()],
        agents: vec!["root".to_owned()],
        ..KnownNames::default()
    };
    let user = user_folder();
    let folders: Vec<PathBuf> = [Some(root.to_owned()), Some(config::data(cli)), user.clone()].into_iter().flatten().collect();
    let settings = folders.iter().map(|folder| folder.join(config::FILE)).chain(cli.config.clone());
    settings.for_each(|path| add_sections(&path, &mut known));
    folders.iter().for_each(|folder| add_servers(&folder.join(mcp_servers::FILE), &mut known));
    if let Some(user) = user {
        let roles = role_files(&user.join(ROLES_FOLDER)).into_iter().filter_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some(read_role(path.file_stem()?.to_str()?, &text, wiring::ROLE).ok()?.id.to_string())
        });
        known.roles.extend(roles);
        let skills = Skills::files(&user.join(SKILLS_FOLDER)).into_iter().filter_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some(Skill::read(Skills::folder_name(&path), &text).ok()?.name)
        });
        known.skills.extend(skills);
    }
    known
}

/// Adds the roles and agents of the society, if there is one.
pub(crate) async fn add_society(cli: &Cli, known: &mut KnownNames) {
    let Ok(config) = Config::resolve(cli) else { return };
    let Ok(transport) = Transport::open(&config, Purpose::Read).await else { return };
    if let Ok(org) = transport.api().org().await {
        known.roles.extend(org.roles.iter().map(|role| role.role.id.to_string()));
        let living = org.agents.iter().filter(|agent| agent.status == OrgStatus::Active);
        known.agents.extend(living.map(|agent| agent.id.to_string()));
    }
    transport.close(true).await;
}

/// The sections of a settings file that bring names. Faults in it are reported where it is used.
fn add_sections(path: &Path, known: &mut KnownNames) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let names = |section: &str| -> Vec<String> {
        table.get(section).and_then(toml::Value::as_table).map(|table| table.keys().cloned().collect()).unwrap_or_default()
    };
    known.servers.extend(names("mcp"));
    known.vendors.extend(names("providers"));
    // Each is a role and an agent.
    known.roles.extend(names("a2a"));
}

fn add_servers(path: &Path, known: &mut KnownNames) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let servers = mcp_servers::parse(&text, path).unwrap_or_default();
    known.servers.extend(servers.into_iter().map(|server| server.name));
}
