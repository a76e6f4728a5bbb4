//! A tool that the vendor of a model runs itself. It is listed with the others, so that roles and rules can name it; it is never
//! called here.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow, VendorTool};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde_json::json;

use crate::results::failed;

/// One tool of vendors.
#[derive(Debug, Clone, Copy)]
pub struct OfVendor(pub VendorTool);

#[async_trait]
impl Tool for OfVendor {
    fn spec(&self) -> ToolSpec {
        let description = match self.0 {
            VendorTool::WebSearch => "Searches the web, at the vendor of the model.",
            VendorTool::WebFetch => "Reads web pages, at the vendor of the model.",
            VendorTool::CodeExecution => "Runs code in a sandbox of the vendor of the model, without files of the workspace.",
            VendorTool::FileSearch => "Searches files that were uploaded to the vendor of the model.",
        };
        ToolSpec {
            name: self.0.tool_name().into(),
            description: description.to_owned(),
            parameters: json!({ "type": "object", "properties": {} }),
            class: EffectClass::Read,
            volatile: true,
        }
    }

    /// Queries and addresses are chosen by the model and leave the vendor.
    fn flow(&self, _: &str) -> Flow {
        let outside = self.0.reads_web().then(|| "the web".into());
        Flow { sends: outside.is_some(), outside, private: self.0 == VendorTool::FileSearch, ..Flow::default() }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        Ok(failed(format_args!("{} is run by the vendor of the model and cannot be called", self.0.tool_name())))
    }
}
