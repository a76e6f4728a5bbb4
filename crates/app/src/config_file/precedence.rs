//! Which settings count where both the user's own `polis.toml` and a folder's speak: a folder's can add, but never weaken.
//!
//! | setting | what counts |
//! |---|---|
//! | `model`, `workspace`, `emulated_tools` | the folder's, else the user's |
//! | `[[policy]]` | the user's rules are matched first, then the folder's |
//! | `[budget]`, also of societies | of each number the smaller |
//! | `[mcp.NAME]`, `[a2a.NAME]` | of one name, the user's |
//! | `[providers.NAME]` | address, key, headers and certificates together from one file, the user's if it sets any; numbers as below |
//! | `[telemetry]`, `[store]`, `[cluster]` | the user's whole section, if it has one |
//! | `[trust]` | the user's |
//! | everything else | each key that the user's file sets; the folder's for the others |

use std::collections::BTreeMap;

use polis_providers::ModelLine;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::{BudgetEntry, BudgetSection, BudgetTable, ConfigFile, Limit, SocietySection};
use crate::error::CliError;

/// Combines both files.
pub(super) fn combined(user: ConfigFile, folder: ConfigFile) -> Result<ConfigFile, CliError> {
    let table = merged(&user.table, &folder.table);
    let (own_servers, own_remotes) = (names(&user.table, "mcp"), names(&user.table, "a2a"));
    let mut society = folder.society;
    for (name, section) in &mut society {
        let users = user.society.get(name);
        let limit = users.and_then(|users| users.budget.clone()).unwrap_or_else(|| user.budget.clone());
        section.budget = section.budget.take().map(|budget| smaller(budget, limit));
    }
    for (name, users) in user.society {
        let SocietySection { model, workspace, budget, keys } = society.remove(&name).unwrap_or_default();
        let budget = match (budget, users.budget) {
            (Some(folders), Some(users)) => Some(smaller(folders, users)),
            (folders, users) => users.or(folders),
        };
        let merged = SocietySection {
            model: if model.is_empty() { users.model } else { model },
            workspace: workspace.or(users.workspace),
            budget,
            keys: users.keys.or(keys),
        };
        society.insert(name, merged);
    }
    let mut providers = folder.providers;
    for (name, users) in user.providers {
        let folders = providers.remove(&name);
        let merged = match folders {
            None => users,
            Some(folders) => users.over(folders),
        };
        providers.insert(name, merged);
    }
    let mut servers = user.servers;
    servers.extend(folder.servers.into_iter().filter(|it| !own_servers.contains(&it.name)));
    let mut remotes = user.remotes;
    remotes.extend(folder.remotes.into_iter().filter(|it| own_remotes.iter().all(|name| name != it.name())));
    Ok(ConfigFile {
        model: if folder.model.is_empty() { user.model } else { folder.model },
        workspace: folder.workspace.or(user.workspace),
        emulated_tools: if folder.emulated_tools.is_empty() { user.emulated_tools } else { folder.emulated_tools },
        listen: user.listen.or(folder.listen),
        prices: user.prices.or(folder.prices),
        model_settings: user.model_settings.over(&folder.model_settings),
        models: merged_models(user.models, folder.models),
        policy: user.policy.into_iter().chain(folder.policy).collect(),
        budget: smaller(user.budget, folder.budget),
        providers,
        network: match (user.network, folder.network) {
            (Some(users), Some(folders)) => {
                let span = users.span();
                Some(Spanned::new(span, users.into_inner().over(folders.into_inner())))
            }
            (users, folders) => users.or(folders),
        },
        tools: section(&table, "tools")?,
        workflow: section(&table, "workflow")?,
        artifacts: section(&table, "artifacts")?,
        backup: section(&table, "backup")?,
        retention: section(&table, "retention")?,
        cluster: if user.table.contains_key("cluster") { user.cluster } else { folder.cluster },
        store: if user.table.contains_key("store") { user.store } else { folder.store },
        memory: section(&table, "memory")?,
        embeddings: section(&table, "embeddings")?,
        server: section(&table, "server")?,
        page: section(&table, "page")?,
        telemetry: if user.table.contains_key("telemetry") { user.telemetry } else { folder.telemetry },
        society,
        mcp: Default::default(),
        servers,
        a2a: Default::default(),
        remotes,
        trust: user.trust,
        table,
    })
}

/// The lines of both; of one name and field the user's counts.
fn merged_models(user: BTreeMap<String, ModelLine>, mut folder: BTreeMap<String, ModelLine>) -> BTreeMap<String, ModelLine> {
    for (name, line) in user {
        let below = folder.remove(&name).unwrap_or_default();
        let line = ModelLine {
            capabilities: line.capabilities.over(&below.capabilities),
            price: line.price.or(below.price),
            vendor_tools: line.vendor_tools.or(below.vendor_tools),
            settings: line.settings.over(&below.settings),
        };
        folder.insert(name, line);
    }
    folder
}

/// The names in a section.
fn names(table: &toml::Table, section: &str) -> Vec<String> {
    table.get(section).and_then(toml::Value::as_table).into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// The sections of both, in each of which a key of the user's counts before the folder's.
fn merged(user: &toml::Table, folder: &toml::Table) -> toml::Table {
    let mut all = folder.clone();
    for (name, users) in user {
        match (all.get_mut(name), users) {
            (Some(toml::Value::Table(folders)), toml::Value::Table(users)) => folders.extend(users.clone()),
            _ => {
                all.insert(name.clone(), users.clone());
            }
        }
    }
    all
}

fn section<T: DeserializeOwned + Default>(table: &toml::Table, name: &str) -> Result<T, CliError> {
    let bad = |error: toml::de::Error| CliError::usage("bad_config", format!("[{name}]: {}", error.message()));
    table.get(name).cloned().map(|value| value.try_into().map_err(bad)).transpose().map(Option::unwrap_or_default)
}

/// The smaller of each pair of limits. A file without limits and one that is silent give no limits.
fn smaller(a: BudgetSection, b: BudgetSection) -> BudgetSection {
    match (a, b) {
        (BudgetSection::None, BudgetSection::None) => BudgetSection::None,
        (BudgetSection::None, BudgetSection::Table(table)) | (BudgetSection::Table(table), BudgetSection::None) => {
            if *table == BudgetTable::default() {
                return BudgetSection::None;
            }
            // A limit that one file lifts is not restored by the default.
            BudgetSection::Table(Box::new(BudgetTable { task: smallest(table.task, BudgetEntry::NO_LIMITS), ..*table }))
        }
        (BudgetSection::Table(a), BudgetSection::Table(b)) => BudgetSection::Table(Box::new(smaller_table(*a, *b))),
    }
}

fn smaller_table(a: BudgetTable, b: BudgetTable) -> BudgetTable {
    let mut roles = a.roles;
    for (role, budget) in b.roles {
        let least = roles.remove(&role).map_or(budget, |known| smallest(known, budget));
        roles.insert(role, least);
    }
    BudgetTable {
        tokens: least(a.tokens, b.tokens),
        usd: least(a.usd, b.usd),
        requests: least(a.requests, b.requests),
        minutes: least(a.minutes, b.minutes),
        task: smallest(a.task, b.task),
        agent: smallest(a.agent, b.agent),
        call: smallest(a.call, b.call),
        roles,
    }
}

fn smallest(a: BudgetEntry, b: BudgetEntry) -> BudgetEntry {
    BudgetEntry {
        tokens: least(a.tokens, b.tokens),
        usd: least(a.usd, b.usd),
        requests: least(a.requests, b.requests),
        minutes: least(a.minutes, b.minutes),
    }
}

/// A number counts before no limit, and the smaller of two. One that is no number is refused later, so it must not be lost here.
fn least<T: PartialOrd>(a: Option<Limit<T>>, b: Option<Limit<T>>) -> Option<Limit<T>> {
    match (a, b) {
        (Some(Limit::Number(a)), Some(Limit::Number(b))) => {
            let is_b = b < a || b.partial_cmp(&b).is_none();
            Some(Limit::Number(if is_b { b } else { a }))
        }
        (Some(Limit::Word(_)), Some(b)) => Some(b),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use polis_domain::Budgets;

    use super::*;
    use crate::config_file::parse;

    fn both(user: &str, folder: &str) -> ConfigFile {
        let read = |text: &str| parse(text, Path::new("polis.toml")).unwrap_or_else(|error| panic!("{text}: {error}"));
        combined(read(user), read(folder)).unwrap()
    }

    fn table(budgets: &BudgetSection) -> &BudgetTable {
        match budgets {
            BudgetSection::Table(table) => table,
            BudgetSection::None => panic!("nothing is limited"),
        }
    }

    /// One setting in both files, and the expected result.
    #[test]
    fn a_folder_can_add_but_never_weaken() {
        type Look = fn(ConfigFile) -> String;
        let cases: &[(&str, &str, &str, Look, &str)] = &[
            ("model: the folder's", "model = \"a/x\"", "model = \"b/y\"", |it| it.model.join(","), "b/y"),
            ("model: else the user's", "model = \"a/x\"", "", |it| it.model.join(","), "a/x"),
            (
                "workspace: the folder's",
                "workspace = \"u\"",
                "workspace = \"f\"",
                |it| format!("{:?}", it.workspace),
                "Some(\"f\")",
            ),
            ("listen: the user's", "listen = \"u\"", "listen = \"f\"", |it| it.listen.unwrap(), "u"),
            ("listen: else the folder's", "", "listen = \"f\"", |it| it.listen.unwrap(), "f"),
            (
                "model_settings: the user's, key by key",
                "model_settings = { temperature = 0.1 }",
                "model_settings = { temperature = 0.9, seed = 7 }",
                |it| format!("{:?} {:?}", it.model_settings.temperature, it.model_settings.seed),
                "Some(0.1) Some(7)",
            ),
            (
                "models: the user's, field by field",
                "models.'a/b' = { tools = false }",
                "models.'a/b' = { tools = true, window = 9 }",
                |it| format!("{:?} {:?}", it.models["a/b"].capabilities.tools, it.models["a/b"].capabilities.window),
                "Some(false) Some(9)",
            ),
            ("prices: the user's", "prices = \"u\"", "prices = \"f\"", |it| format!("{:?}", it.prices), "Some(\"u\")"),
            (
                "policy: the user's first",
                "[[policy]]\ntool = \"u\"\nthen = \"deny\"",
                "[[policy]]\ntool = \"f\"\nthen = \"allow\"",
                |mut it| it.rules().iter().map(|rule| rule.tool.clone().unwrap()).collect::<Vec<_>>().join(","),
                "u,f",
            ),
            (
                "budget: the smaller",
                "[budget]\nusd = 1\ntokens = 5\n[budget.task]\nminutes = 2",
                "[budget]\nusd = 9\ntokens = 3\n[budget.task]\nrequests = 4\nminutes = 9",
                |it| {
                    let it = table(&it.budget);
                    format!("{:?} {:?} {:?} {:?}", it.usd, it.tokens, it.task.minutes, it.task.requests)
                },
                "Some(Number(1.0)) Some(Number(3)) Some(Number(2.0)) Some(Number(4))",
            ),
            (
                "budget of roles: the smaller",
                "[budget.roles.a]\ntokens = 5",
                "[budget.roles.a]\ntokens = 9\n[budget.roles.b]\ntokens = 1",
                |it| format!("{:?}", table(&it.budget).roles.values().map(|budget| budget.tokens).collect::<Vec<_>>()),
                "[Some(Number(5)), Some(Number(1))]",
            ),
            (
                "budget: a folder cannot lift what the user sets",
                "[budget.task]\nusd = 1",
                "[budget.task]\nusd = \"none\"",
                |it| format!("{:?}", table(&it.budget).task.usd),
                "Some(Number(1.0))",
            ),
            ("budget: none of the user's stays", "budget = \"none\"", "", |it| format!("{:?}", it.budget), "None"),
            (
                "budget: a folder can limit what the user does not",
                "budget = \"none\"",
                "[budget.task]\nrequests = 4",
                |it| format!("{:?} {:?}", table(&it.budget).task.requests, table(&it.budget).task.tokens),
                "Some(Number(4)) Some(Word(None))",
            ),
            (
                "budget of a society: not above the user's",
                "[budget]\ntokens = 5",
                "[society.main.budget]\ntokens = 50",
                |it| format!("{:?}", table(it.society.values().next().unwrap().budget.as_ref().unwrap()).tokens),
                "Some(Number(5))",
            ),
            (
                "society: keys of the user's",
                "[society.main]\nkeys = \"U_\"",
                "[society.main]\nkeys = \"F_\"\nmodel = \"a/x\"",
                |it| {
                    format!(
                        "{:?}",
                        it.society.values().map(|one| (one.keys.clone().unwrap(), one.model.len())).collect::<Vec<_>>()
                    )
                },
                "[(\"U_\", 1)]",
            ),
            (
                "providers: the user's address",
                "[providers.openai]\nbase_url = \"https://u\"",
                "[providers.openai]\nbase_url = \"https://f\"\nrequests_per_minute = 3\n[providers.groq]\nbase_url = \"https://g\"",
                |it| {
                    format!(
                        "{:?}",
                        it.providers
                            .values()
                            .map(|one| (one.base_url.clone().unwrap(), one.requests_per_minute))
                            .collect::<Vec<_>>()
                    )
                },
                "[(\"https://g\", None), (\"https://u\", Some(3))]",
            ),
            (
                "providers: the folder adds no proxy to the user's key",
                "[providers.corp]\nbase_url = \"https://u\"\nlike = \"openai\"",
                "[providers.corp]\nbase_url = \"https://f\"\nlike = \"openai\"\nproxy = \"http://f:1\"\nca = \"f.pem\"\nretries = 1",
                |it| {
                    let corp = it.providers.into_values().next().unwrap();
                    let endpoint = corp.endpoint("corp", &polis_http::HttpOptions::default()).unwrap();
                    format!("{:?} {} {:?}", endpoint.base_url, endpoint.network.is_some(), endpoint.retries)
                },
                "Some(\"https://u\") false Some(1)",
            ),
            (
                "network: each key of the user's",
                "[network]\nproxy = \"http://u:1\"",
                "[network]\nproxy = \"http://f:1\"\nca = \"f.pem\"",
                |it| {
                    let options = it.network.unwrap().into_inner().apply(polis_http::HttpOptions::default()).unwrap();
                    format!("{:?} {:?}", options.environment.https_proxy, options.trust)
                },
                "Some(\"http://u:1\") SystemAnd([\"f.pem\"])",
            ),
            (
                "tools: each key of the user's",
                "[tools]\ncommands = false\nseconds = 5",
                "[tools]\ncommands = true\nseconds = 500\nfetch = true",
                |it| format!("{} {:?} {}", it.tools.commands, it.tools.seconds, it.tools.fetch),
                "false Some(5) true",
            ),
            (
                "server: each key of the user's",
                "[server]\ncors = []",
                "[server]\ncors = [\"https://f\"]\nhosts = [\"f\"]",
                |it| format!("{:?} {:?}", it.server.cors, it.server.hosts),
                "[] [\"f\"]",
            ),
            (
                "page: the user's",
                "[page]\nlive_html = false",
                "[page]\nlive_html = true",
                |it| it.page.live_html.to_string(),
                "false",
            ),
            (
                "telemetry: the user's whole section",
                "[telemetry]\nendpoint = \"https://u\"",
                "[telemetry]\nendpoint = \"https://f\"\nheaders = { a = \"${X}\" }",
                |it| format!("{:?}", it.telemetry.variables()),
                "[]",
            ),
            (
                "mcp: of one name the user's, and first",
                "[mcp.a]\ncommand = \"u\"\nenabled = false",
                "[mcp.a]\ncommand = \"f\"\n[mcp.b]\ncommand = \"g\"",
                |it| it.servers.iter().map(|one| format!("{}={}", one.name, one.transport)).collect::<Vec<_>>().join(","),
                "a=u,b=g",
            ),
            (
                "a2a: of one name the user's, also one that is switched off",
                "[a2a.a]\nurl = \"https://u\"\nenabled = false",
                "[a2a.a]\nurl = \"https://f\"\n[a2a.b]\nurl = \"https://g\"",
                |it| it.remotes.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>().join(","),
                "b",
            ),
            (
                "trust: the user's alone",
                "[trust]\nvariables = [\"U\"]",
                "[trust]\nvariables = [\"F\"]",
                |it| it.trust.variables.join(","),
                "U",
            ),
            ("trust: never the folder's", "", "[trust]\nvariables = [\"F\"]", |it| it.trust.variables.join(","), ""),
        ];
        for (what, user, folder, look, want) in cases {
            assert_eq!(look(both(user, folder)), *want, "{what}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_not_lost() {
        let budget = both("[budget]\nusd = 1\n", "[budget]\nusd = nan\n").budget;
        assert!(Budgets::try_from(budget).is_err());
    }
}
