//! `[tools]`: which tools may touch the machine or the network.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use polis_domain::VendorTool;
use polis_tools::SearchService;
use serde::Deserialize;

use super::withheld;

/// `[tools]`: which tools may touch the machine, and their limits.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsSection {
    #[serde(default)]
    pub(crate) commands: bool,
    /// Whether commands may ask for the network.
    #[serde(default)]
    pub(crate) network: bool,
    /// Folders that commands may read beside those of the system.
    #[serde(default)]
    pub(crate) readable: Vec<PathBuf>,
    /// Environment variables that commands get.
    #[serde(default)]
    pub(crate) environment: Vec<String>,
    pub(crate) seconds: Option<NonZeroU32>,
    pub(crate) memory_mb: Option<NonZeroU32>,
    pub(crate) file_mb: Option<NonZeroU32>,
    /// How much a command may write in total.
    pub(crate) written_mb: Option<NonZeroU32>,
    /// How much of each output of a command is stored.
    pub(crate) output_mb: Option<NonZeroU32>,
    pub(crate) processes: Option<NonZeroU32>,
    #[serde(default)]
    pub(crate) fetch: bool,
    #[serde(default)]
    pub(crate) fetch_allow: Vec<String>,
    /// The tools that vendors of models run themselves.
    #[serde(default)]
    pub(crate) vendor: BTreeSet<VendorTool>,
    /// The search service that `web_search` asks.
    pub(crate) search: Option<SearchSection>,
}

/// `search = "brave"`, or a table with more than the service. It is one value, so that a folder's address never meets a key that the
/// user's own file names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "SearchValue")]
pub(crate) struct SearchSection {
    pub(crate) service: SearchService,
    /// Another address than the service's own.
    url: Option<String>,
    /// Another variable with the key than the usual one.
    key_variable: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "search is \"brave\", \"tavily\", \"exa\", \"serper\" or \"searxng\", or a table with such a `service`, and `url` and `key_variable` if they are not the usual ones"
)]
enum SearchValue {
    Name(SearchService),
    Table(SearchTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchTable {
    service: SearchService,
    url: Option<String>,
    key_variable: Option<String>,
}

impl From<SearchValue> for SearchSection {
    fn from(value: SearchValue) -> Self {
        let SearchTable { service, url, key_variable } = match value {
            SearchValue::Name(service) => SearchTable { service, url: None, key_variable: None },
            SearchValue::Table(table) => table,
        };
        Self { service, url, key_variable }
    }
}

impl SearchSection {
    /// Where requests go, if that is known.
    pub(crate) fn address(&self) -> Option<&str> {
        self.url.as_deref().or(self.service.address())
    }

    /// The variable with the key, if the service has one.
    pub(crate) fn key_variable(&self) -> Option<&str> {
        self.key_variable.as_deref().or(self.service.key_variable())
    }
}

impl ToolsSection {
    /// Drops what would give secret variables of the user to commands or to a search service; `table` is the same section as the
    /// file has it.
    pub(super) fn withhold(&mut self, table: Option<&mut toml::Table>, is_withheld: impl Fn(&String) -> bool) {
        let (given, kept_back): (Vec<_>, _) =
            std::mem::take(&mut self.environment).into_iter().partition(|name| !is_withheld(name));
        kept_back.iter().for_each(|name| withheld("[tools] environment", name));
        self.environment = given;
        let key_variable = self.search.as_ref().and_then(SearchSection::key_variable).map(str::to_owned);
        if let Some(name) = key_variable.filter(|name| is_withheld(name)) {
            withheld("[tools] search", &name);
            self.search = None;
        }
        let Some(table) = table else { return };
        table.insert("environment".to_owned(), self.environment.clone().into());
        if self.search.is_none() {
            table.remove("search");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config_file::parse;

    fn error(text: &str) -> String {
        parse(text, Path::new("polis.toml")).unwrap_err().to_string()
    }

    #[test]
    fn tools_that_touch_the_machine_are_offered_only_where_it_is_written() {
        let tools = parse("model = \"a/x\"\n", Path::new("x")).unwrap().tools;
        assert!(!tools.commands && !tools.network && !tools.fetch);
        let tools =
            parse("[tools]\ncommands = true\nseconds = 9\nfetch_allow = [\"10.0.0.0/8\"]\n", Path::new("x")).unwrap().tools;
        assert_eq!((tools.commands, tools.seconds.map(NonZeroU32::get), tools.fetch_allow.len()), (true, Some(9), 1));
        let vendor = parse("[tools]\nvendor = [\"web_search\"]\n", Path::new("x")).unwrap().tools.vendor;
        assert_eq!(vendor.into_iter().collect::<Vec<_>>(), [VendorTool::WebSearch]);
        assert!(error("[tools]\nvendor = [\"web\"]\n").contains("expected one of `web_search`, `web_fetch`"));
        assert!(error("[tools]\nshell = true\n").contains("unknown field `shell`"));
        assert!(error("[tools]\nseconds = 0\n").contains("line 2, column"));
    }

    #[test]
    fn a_search_service_is_a_name_or_a_table() {
        let search = |text: &str| parse(text, Path::new("x")).unwrap().tools.search.unwrap();
        let brave = search("[tools]\nsearch = \"brave\"\n");
        assert_eq!((brave.address(), brave.key_variable()), (Some("https://api.search.brave.com"), Some("BRAVE_API_KEY")));
        let own = search("[tools]\nsearch = { service = \"searxng\", url = \"http://s\", key_variable = \"K\" }\n");
        assert_eq!((own.address(), own.key_variable()), (Some("http://s"), Some("K")));
        let bare = search("[tools]\nsearch = \"searxng\"\n");
        assert_eq!((bare.address(), bare.key_variable()), (None, None));
        assert!(error("[tools]\nsearch = \"google\"\n").contains("search is \"brave\", \"tavily\""));
    }
}
