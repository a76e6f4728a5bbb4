//! Tools that the vendor of a model runs itself while the model writes a reply: which there are, and what they did.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A tool that vendors run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VendorTool {
    /// Searches the web.
    WebSearch,
    /// Reads pages at given addresses.
    WebFetch,
    /// Runs code in a sandbox of the vendor.
    CodeExecution,
    /// Searches files that were uploaded to the vendor.
    FileSearch,
}

/// One use of such a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VendorCall {
    /// The tool.
    pub tool: VendorTool,
    /// The query, the address or the code, if the vendor tells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// What the code printed, or why the call failed; shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Citation>,
    /// How many uses the vendor charges for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uses: u32,
}

/// A page or a file by its title and address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Citation {
    /// The title.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub title: Arc<str>,
    /// The address; files may have none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub url: Arc<str>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl VendorTool {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::WebSearch, Self::WebFetch, Self::CodeExecution, Self::FileSearch];

    /// Begins the names by which roles and policy rules know them.
    pub const PREFIX: &str = "vendor:";

    /// The action of a live step that tells that a tool is not offered, and why.
    pub const NOT_OFFERED: &str = "tool_not_offered";

    /// Its name in settings.
    pub fn word(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
            Self::WebFetch => "web_fetch",
            Self::CodeExecution => "code_execution",
            Self::FileSearch => "file_search",
        }
    }

    /// Its name among the tools of an agent.
    pub fn tool_name(self) -> &'static str {
        match self {
            Self::WebSearch => "vendor:web_search",
            Self::WebFetch => "vendor:web_fetch",
            Self::CodeExecution => "vendor:code_execution",
            Self::FileSearch => "vendor:file_search",
        }
    }

    /// The tool of this name among the tools of an agent.
    pub fn of_tool_name(name: &str) -> Option<Self> {
        let word = name.strip_prefix(Self::PREFIX)?;
        Self::ALL.into_iter().find(|tool| tool.word() == word)
    }

    /// Whether its results are content from outside.
    pub fn reads_web(self) -> bool {
        matches!(self, Self::WebSearch | Self::WebFetch)
    }
}

impl VendorCall {
    /// A use that is charged once.
    pub fn new(tool: VendorTool, input: impl Into<String>) -> Self {
        Self { tool, input: input.into(), output: String::new(), found: Vec::new(), uses: 1 }
    }
}

impl Citation {
    /// The key of an answer's meta that lists its sources.
    pub const META: &str = "sources";

    /// A page or a file.
    pub fn new(title: impl Into<Arc<str>>, url: impl Into<Arc<str>>) -> Self {
        Self { title: title.into(), url: url.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_the_name_that_agents_know() {
        for tool in VendorTool::ALL {
            assert_eq!(VendorTool::of_tool_name(tool.tool_name()), Some(tool));
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.word());
        }
        assert_eq!(VendorTool::of_tool_name("web_search"), None);
        assert_eq!(VendorTool::of_tool_name("vendor:else"), None);
    }
}
