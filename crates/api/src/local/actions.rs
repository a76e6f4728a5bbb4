//! Carrying out what a person did with a component.

use polis_domain::Verdict;
use serde_json::{Map, json};

use super::{Local, settle};
use crate::{Acted, ApiError, ComponentAction, Decision, Scope};

/// Longest data of an action.
const MAX_DATA_BYTES: usize = 64 << 10;

impl Local {
    /// Sends a message to the agent of a component, or answers what waits.
    pub async fn act(&self, request: ComponentAction) -> Result<Acted, ApiError> {
        self.caller.needs(Scope::Send)?;
        check(&request)?;
        if let Some(id) = request.approval_id {
            self.caller.needs(Scope::Approve)?;
            let verdict = Verdict { answer: Some(request.data).filter(|data| !data.is_null()), ..Verdict::yes() };
            settle(&self.society, &id, Decision::Verdict(verdict)).await?;
            return Ok(Acted { message: None, approval_id: Some(id) });
        }
        self.check_named_task(request.task_id.as_ref()).await?;
        let text = format!("[{} {}] {}", request.component, request.action, request.data);
        let action = json!({ "component": request.component, "action": request.action, "data": request.data });
        let meta = Map::from_iter([("_component_action".to_owned(), action)]);
        let sent = self.society.send_with_meta(request.agent_id, &text, request.task_id, meta).await?;
        Ok(Acted { message: Some(sent.into()), approval_id: None })
    }
}

/// Both names go into a message, so they must not be able to look like anything else.
fn check(request: &ComponentAction) -> Result<(), ApiError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && name.bytes().all(plain);
    if !is_name(&request.component) || !is_name(&request.action) {
        let detail = "`component` and `action` are names of 1 to 64 letters, digits, - and _";
        return Err(ApiError::bad_request("bad_action", detail));
    }
    if request.data.to_string().len() > MAX_DATA_BYTES {
        let detail = format!("`data` is longer than {MAX_DATA_BYTES} bytes; store it as an artifact and refer to that");
        return Err(ApiError::new(413, "body_too_large", detail));
    }
    Ok(())
}
