//! Tools that the vendor of a model runs itself, while the model writes. A role has them like other tools. No call of them passes
//! through here, so policy decides about the offer: what may not be called without approval is not offered.

use polis_domain::{Ruling, Spine, VendorTool};
use polis_ports::{Caller, Capabilities, ModelRequest, ToolSpec};

use super::{Turn, TurnStart};

/// Whether a request may use tools of a vendor.
pub(super) fn has_vendor_tools(request: &ModelRequest) -> bool {
    request.tools.iter().any(is_vendor_tool)
}

fn is_vendor_tool(tool: &ToolSpec) -> bool {
    VendorTool::of_tool_name(&tool.name).is_some()
}

/// Takes the tools that a vendor runs out of those that we run.
pub(super) fn split_vendor_tools(request: &mut ModelRequest) {
    if has_vendor_tools(request) {
        request.vendor_tools = request.tools.iter().filter_map(|tool| VendorTool::of_tool_name(&tool.name)).collect();
        request.tools = request.tools.iter().filter(|tool| !is_vendor_tool(tool)).cloned().collect();
    }
}

impl Turn {
    /// Leaves those tools in a request that its model's vendor has and that policy allows. Returns what to tell the model about the
    /// others; the person is told once in a turn.
    pub(super) async fn keep_allowed_vendor_tools(
        &mut self,
        request: &mut ModelRequest,
        known: &Capabilities,
    ) -> Option<String> {
        let mut notes = Vec::new();
        for tool in std::mem::take(&mut request.vendor_tools) {
            match self.vendor_tool_refusal(tool, &request.model, known).await {
                None => request.vendor_tools.push(tool),
                Some(why) => {
                    if !self.told_vendor_tools.contains(&tool) {
                        self.told_vendor_tools.push(tool);
                        self.publish_not_offered(tool, &why);
                    }
                    notes.push(format!("`{}` ({why})", tool.tool_name()));
                }
            }
        }
        let notes = notes.join(", ");
        (!notes.is_empty()).then(|| format!("[Tools] Not available: {notes}. If you need one of them, say so in your answer."))
    }

    /// Why a tool is not offered; none if it is.
    async fn vendor_tool_refusal(&self, tool: VendorTool, model: &str, known: &Capabilities) -> Option<String> {
        let ports = &self.start.shared.ports;
        if !known.has_vendor_tool(tool) {
            return Some(format!("the vendor of {} does not run it", ports.model.name(model)));
        }
        let TurnStart { agent, role, chosen, .. } = &*self.start;
        let who = Caller { agent, role: role.as_ref().map(|role| &role.id), task: &self.task.id, chosen: *chosen };
        match ports.toolbox.ruling(tool.tool_name(), "{}", &who) {
            Ruling::Allow | Ruling::Approved => {}
            Ruling::Deny(why) | Ruling::Stop(why) => return Some(format!("policy denies it: {why}")),
            Ruling::Refuse(failure) => return Some(failure.message),
            Ruling::Ask(_) | Ruling::AskEach(_) | Ruling::Person(_) => {
                return Some("policy demands approval, but the vendor makes the calls itself".to_owned());
            }
        }
        let flow = ports.toolbox.flow(tool.tool_name(), "{}", &who);
        let (agent, task) = (agent.clone(), self.task.id.clone());
        let sources = match flow.is_sensitive() {
            true => self.start.shared.look(move |spine: &Spine| spine.trails.exposes(&agent, &task, &flow)).await,
            false => None,
        };
        let sources = sources.unwrap_or_default().join(", ");
        (!sources.is_empty())
            .then(|| format!("it sends data out, and this request has read private data and content from outside: {sources}"))
    }

    fn publish_not_offered(&self, tool: VendorTool, why: &str) {
        if let Some(sink) = self.step_sink() {
            sink.publish("model", VendorTool::NOT_OFFERED, Some(&format!("{}: {why}", tool.tool_name())), None);
        }
    }
}
