//! Servers of models on this machine: which of them run, and which of their models answers where nobody has chosen one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::model_list::{self, VendorModel};
use crate::{RemoteModel, vendors};

/// How long the servers of this machine are looked for, and how long each may take to say more about its models.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The vendors whose servers are looked for; of models that are equally good the first counts.
pub(crate) const SERVERS: [&str; 4] = [vendors::OLLAMA, vendors::LM_STUDIO, vendors::LLAMA_CPP, vendors::VLLM];

/// The variable that keeps us from looking, with the value `off`.
pub const SWITCH: &str = "POLIS_LOCAL_MODELS";

/// Of these, the servers that say whether a model calls tools.
pub(crate) const TELLING_SERVERS: [&str; 3] = [vendors::OLLAMA, vendors::LM_STUDIO, vendors::LLAMA_CPP];

/// A model that was found.
#[derive(Debug, PartialEq)]
pub(crate) struct FoundModel {
    pub(crate) vendor: &'static str,
    /// As `vendor/name`.
    pub(crate) model: Arc<str>,
    /// Why it and no other, for the user.
    pub(crate) reason: String,
}

/// Asks all of these for their models at the same time; one that does not run has none.
pub(crate) async fn list(servers: Vec<(&'static str, Arc<RemoteModel>)>) -> Vec<(&'static str, Vec<VendorModel>)> {
    let lists = servers.into_iter().map(|(name, remote)| async move {
        let listed = tokio::time::timeout(2 * PROBE_TIMEOUT, model_list::list(&remote, PROBE_TIMEOUT)).await;
        (name, listed.ok().and_then(Result::ok).unwrap_or_default())
    });
    join_all(lists).await
}

/// Chooses a model: one that calls tools, else one of which that is not known.
pub(crate) fn choose(servers: &[(&'static str, Vec<VendorModel>)]) -> Option<FoundModel> {
    let can_talk = |model: &&VendorModel| !model.name.contains("embed");
    let all = servers.iter().flat_map(|(name, models)| models.iter().filter(can_talk).map(move |model| (*name, model)));
    let rank = |model: &VendorModel| match model.capabilities.tools {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    let (vendor, model) = all.min_by_key(|(_, model)| rank(model))?;
    let reason = match model.capabilities.tools {
        Some(true) => "it runs on this machine and can call tools",
        None => "it runs on this machine",
        Some(false) => "it runs on this machine; it cannot call tools, which are described to it in words",
    };
    Some(FoundModel { vendor, model: format!("{vendor}/{}", model.name).into(), reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use polis_ports::Capabilities;

    use super::*;

    fn model(name: &str, tools: Option<bool>) -> VendorModel {
        let capabilities = Capabilities { tools, ..Capabilities::default() };
        VendorModel { name: name.to_owned(), capabilities, price: None }
    }

    #[test]
    fn a_model_that_calls_tools_is_preferred() {
        let chosen = |servers: Vec<(&'static str, Vec<VendorModel>)>| {
            choose(&servers).map(|found| (found.model.to_string(), found.reason))
        };
        let ollama = || vec![model("embed-text", None), model("gemma3:1b", Some(false)), model("qwen3:4b", Some(true))];
        let (name, reason) = chosen(vec![("ollama", ollama())]).unwrap();
        assert_eq!((&*name, &*reason), ("ollama/qwen3:4b", "it runs on this machine and can call tools"));
        let small = || vec![model("gemma3:1b", Some(false))];
        let studio = || vec![model("q", None)];
        assert_eq!(chosen(vec![("ollama", small()), ("lmstudio", studio())]).unwrap().0, "lmstudio/q");
        let (name, reason) = chosen(vec![("ollama", small())]).unwrap();
        assert!(name == "ollama/gemma3:1b" && reason.contains("described to it in words"), "{reason}");
        assert_eq!(chosen(vec![("ollama", vec![model("nomic-embed", None)]), ("vllm", Vec::new())]), None);
    }
}
