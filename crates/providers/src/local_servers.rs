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

/// A model that was found.
#[derive(Debug, PartialEq)]
pub(crate) struct FoundModel {
    pub(crate) vendor: &'static str,
    /// As `vendor/name`.
    pub(crate) model: Arc<str>,
    /// Why it and no other, for the user.
    pub(crate) reason: String,
    /// All models that the vendor has.
    pub(crate) listed: Vec<VendorModel>,
}

/// Looks for all of these at the same time and chooses a model: one that calls tools, else one of which that is not known.
pub(crate) async fn find(servers: Vec<(&'static str, Arc<RemoteModel>)>) -> Option<FoundModel> {
    let lists = servers.into_iter().map(|(name, remote)| async move {
        let listed = tokio::time::timeout(2 * PROBE_TIMEOUT, model_list::list(&remote, PROBE_TIMEOUT)).await;
        (name, listed.ok().and_then(Result::ok).unwrap_or_default())
    });
    choose(join_all(lists).await)
}

fn choose(servers: Vec<(&'static str, Vec<VendorModel>)>) -> Option<FoundModel> {
    let can_talk = |model: &&VendorModel| !model.name.contains("embed");
    let all = servers
        .iter()
        .enumerate()
        .flat_map(|(place, (name, models))| models.iter().filter(can_talk).map(move |model| (place, *name, model)));
    let rank = |model: &VendorModel| match model.capabilities.tools {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    let (place, vendor, model) = all.min_by_key(|(place, _, model)| (rank(model), *place))?;
    let reason = match model.capabilities.tools {
        Some(true) => "it runs on this machine and can call tools",
        None => "it runs on this machine",
        Some(false) => "it runs on this machine; it cannot call tools, which are described to it in words",
    };
    let (model, reason) = (format!("{vendor}/{}", model.name).into(), reason.to_owned());
    let listed = servers.into_iter().nth(place).map(|(_, models)| models).unwrap_or_default();
    Some(FoundModel { vendor, model, reason, listed })
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
        let chosen = |servers| choose(servers).map(|found: FoundModel| (found.model.to_string(), found.reason));
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
