//! What vendors say about their models in their own lists.

use std::time::Duration;

use futures_util::future::join_all;
use polis_http::{Bytes, Method};
use polis_ports::{Capabilities, Effort, ModelError};
use serde_json::{Value, json};

use crate::remote_model::{Dialect, RemoteModel};
use crate::{Price, bedrock, vendors};

/// How many models of an Ollama are asked about one by one.
const MAX_SHOWN: usize = 64;

/// How long what is said beside the list may take.
pub(crate) const DETAILS_TIMEOUT: Duration = Duration::from_secs(5);

/// A model as its vendor lists it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VendorModel {
    /// The vendor's name for it.
    pub name: String,
    /// What it can do, as far as the vendor says.
    pub capabilities: Capabilities,
    /// What it costs, if the vendor says so.
    pub price: Option<Price>,
}

/// Asks a vendor for its models. What it says beside its list may take this long; after that it is left out.
pub(crate) async fn list(remote: &RemoteModel, details: Duration) -> Result<Vec<VendorModel>, ModelError> {
    match (remote.dialect(), remote.vendor()) {
        (Dialect::Ollama, _) => {
            let mut models = read(&remote.ask(Method::GET, "/api/tags", Bytes::new()).await?);
            let shown = models.iter_mut().take(MAX_SHOWN).map(|model| async {
                let body = Bytes::from(json!({ "model": model.name }).to_string());
                if let Ok(shown) = remote.ask(Method::POST, "/api/show", body).await {
                    model.capabilities = of_ollama(&shown).over(&model.capabilities);
                }
            });
            let _ = tokio::time::timeout(details, join_all(shown)).await;
            Ok(models)
        }
        (Dialect::Bedrock, _) => bedrock_models(remote, details).await,
        (Dialect::Vertex, _) => vertex_models(remote, details).await,
        (Dialect::Gemini, _) => Ok(read(&remote.ask(Method::GET, "/models?pageSize=1000", Bytes::new()).await?)),
        (Dialect::Anthropic, _) => Ok(read(&remote.ask(Method::GET, "/models?limit=1000", Bytes::new()).await?)),
        (_, vendors::LM_STUDIO) => {
            // Its own list says more, and an older one does not have it.
            let own = tokio::time::timeout(details, remote.ask_root("/api/v0/models")).await;
            match own.ok().and_then(Result::ok).map(|json| read(&json)).filter(|models| !models.is_empty()) {
                Some(models) => Ok(models),
                None => Ok(read(&remote.ask(Method::GET, "/models", Bytes::new()).await?)),
            }
        }
        (_, vendors::LLAMA_CPP) => {
            let mut models = read(&remote.ask(Method::GET, "/models", Bytes::new()).await?);
            if let Ok(Ok(props)) = tokio::time::timeout(details, remote.ask_root("/props")).await {
                let served = of_llama_cpp(&props);
                models.iter_mut().for_each(|model| model.capabilities = served.clone().over(&model.capabilities));
            }
            Ok(models)
        }
        _ => Ok(read(&remote.ask(Method::GET, "/models", Bytes::new()).await?)),
    }
}

/// The models of a region: those that it offers itself, and those that it offers together with others. The list is at another
/// host than the models.
async fn bedrock_models(remote: &RemoteModel, details: Duration) -> Result<Vec<VendorModel>, ModelError> {
    let start = remote.start().replacen("://bedrock-runtime", "://bedrock", 1);
    let listed = remote.ask_from(start.clone(), "/foundation-models?byOutputModality=TEXT").await?;
    let summaries: Vec<&Value> = listed["modelSummaries"].as_array().into_iter().flatten().collect();
    let capabilities = |id: &str| {
        let base = summaries.iter().find(|summary| summary["modelId"] == *bedrock::without_regions(id));
        let inputs = base.and_then(|base| base["inputModalities"].as_array());
        let images = inputs.map(|inputs| inputs.iter().any(|input| input == "IMAGE"));
        Capabilities { images, ..Capabilities::default() }
    };
    let named = |id: &str| VendorModel { name: id.to_owned(), capabilities: capabilities(id), price: None };
    let is_offered = |summary: &&&Value| {
        let types = summary["inferenceTypesSupported"].as_array();
        types.is_none_or(|types| types.iter().any(|kind| kind == "ON_DEMAND"))
    };
    let ids = summaries.iter().filter(is_offered).filter_map(|summary| summary["modelId"].as_str());
    let mut models: Vec<VendorModel> = ids.map(named).collect();
    let profiles = remote.ask_from(start, "/inference-profiles?maxResults=1000");
    // Not everybody may see them.
    if let Ok(Ok(profiles)) = tokio::time::timeout(details, profiles).await {
        let profiles = profiles["inferenceProfileSummaries"].as_array().into_iter().flatten();
        models.extend(profiles.filter_map(|profile| profile["inferenceProfileId"].as_str()).map(named));
    }
    Ok(models)
}

/// The models of Google and those of Anthropic, which are listed without a project.
async fn vertex_models(remote: &RemoteModel, details: Duration) -> Result<Vec<VendorModel>, ModelError> {
    let start = remote.start().split("/projects/").next().unwrap_or_default();
    let start = format!("{}/v1beta1", start.trim_end_matches("/v1"));
    let of = |maker: &str| format!("/publishers/{maker}/models?pageSize=300");
    let names = |json: &Value, prefix: &str| -> Vec<VendorModel> {
        let listed = json["publisherModels"].as_array().into_iter().flatten();
        let names = listed.filter_map(|model| model["name"].as_str()?.rsplit('/').next());
        let named = |name: &str| VendorModel { name: name.to_owned(), ..VendorModel::default() };
        names.filter(|name| name.starts_with(prefix)).map(named).collect()
    };
    let mut models = names(&remote.ask_from(start.clone(), &of("google")).await?, "gemini");
    let others = tokio::time::timeout(details, remote.ask_from(start, &of("anthropic"))).await;
    models.extend(others.ok().and_then(Result::ok).map(|json| names(&json, "claude")).unwrap_or_default());
    Ok(models)
}

/// The models in a list, whatever its dialect.
fn read(json: &Value) -> Vec<VendorModel> {
    let models = ["data", "models"].iter().find_map(|key| json[key].as_array()).or(json.as_array());
    models.into_iter().flatten().filter_map(model).collect()
}

fn model(json: &Value) -> Option<VendorModel> {
    let name = ["id", "name", "model"].iter().find_map(|key| json[key].as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name).to_owned();
    let number = |keys: &[&str]| keys.iter().find_map(|key| json[key].as_u64());
    let window = number(&[
        "loaded_context_length",
        "context_length",
        "context_window",
        "inputTokenLimit",
        "max_model_len",
        "max_context_length",
        "max_input_tokens",
    ]);
    let max_output = number(&["outputTokenLimit", "max_completion_tokens", "max_output_tokens"])
        .or_else(|| json["top_provider"]["max_completion_tokens"].as_u64());
    let mut capabilities = Capabilities { window, max_output, ..Capabilities::default() };
    // OpenRouter.
    if let Some(parameters) = json["supported_parameters"].as_array() {
        let has = |name: &str| Some(parameters.iter().any(|parameter| parameter == name));
        capabilities.tools = has("tools");
        capabilities.structured = has("structured_outputs");
        if has("reasoning") == Some(false) {
            capabilities.efforts = Some([].into());
        }
    }
    if let Some(inputs) = json["architecture"]["input_modalities"].as_array() {
        let has = |name: &str| Some(inputs.iter().any(|input| input == name));
        (capabilities.images, capabilities.pdf, capabilities.audio) = (has("image"), has("file"), has("audio"));
    }
    // LM Studio, Ollama: a list of words. Mistral, Anthropic: an object.
    match &json["capabilities"] {
        Value::Array(words) => capabilities = of_words(words).over(&capabilities),
        Value::Object(_) => capabilities = of_object(&json["capabilities"]).over(&capabilities),
        _ => {}
    }
    // LM Studio.
    match json["type"].as_str() {
        Some("vlm") => capabilities.images = Some(true),
        Some("llm") => capabilities.images = Some(false),
        _ => {}
    }
    // Gemini.
    if json["thinking"] == false {
        capabilities.efforts = Some([].into());
    }
    Some(VendorModel { name, capabilities, price: price(&json["pricing"]) })
}

/// Capabilities as a list of words: one that is missing is said not to be there.
fn of_words(words: &[Value]) -> Capabilities {
    let has = |names: &[&str]| Some(words.iter().any(|word| names.iter().any(|name| word == name)));
    let thinks = has(&["thinking", "reasoning"]) == Some(true);
    Capabilities {
        tools: has(&["tools", "tool_use"]),
        // LM Studio says it elsewhere, and says it only there.
        images: has(&["vision"]).filter(|has| *has),
        audio: has(&["audio"]).filter(|has| *has),
        efforts: (!thinks && has(&["completion"]) == Some(true)).then(|| [].into()),
        ..Capabilities::default()
    }
}

/// Capabilities as an object of switches, each a truth value or an object with `supported`.
fn of_object(json: &Value) -> Capabilities {
    let switch = |names: &[&str]| {
        let value = names.iter().map(|name| &json[name]).find(|value| !value.is_null())?;
        value.as_bool().or_else(|| value["supported"].as_bool())
    };
    let efforts = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];
    let known = efforts.into_iter().filter(|effort| json["effort"][effort.as_str()]["supported"] == true);
    let known: Vec<Effort> = [Effort::None].into_iter().chain(known).collect();
    Capabilities {
        tools: switch(&["function_calling"]),
        images: switch(&["vision", "image_input"]),
        pdf: switch(&["pdf_input"]),
        audio: switch(&["audio", "audio_input"]),
        structured: switch(&["structured_outputs"]),
        efforts: (known.len() > 1).then(|| known.into()),
        ..Capabilities::default()
    }
}

/// What Ollama shows about one model.
fn of_ollama(json: &Value) -> Capabilities {
    let mut capabilities = json["capabilities"].as_array().map(|words| of_words(words)).unwrap_or_default();
    if json["capabilities"].is_array() {
        // The list is complete.
        capabilities.images.get_or_insert(false);
        capabilities.pdf = Some(false);
    }
    let facts = json["model_info"].as_object();
    let trained = facts.and_then(|facts| facts.iter().find(|(name, _)| name.ends_with(".context_length"))?.1.as_u64());
    // What it is started with counts over what it was trained for.
    let started = json["parameters"].as_str().and_then(|parameters| {
        let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
        line.trim().parse().ok()
    });
    capabilities.window = started.or(trained);
    capabilities
}

/// What llama.cpp says about the model that it serves.
fn of_llama_cpp(json: &Value) -> Capabilities {
    Capabilities {
        window: json["default_generation_settings"]["n_ctx"].as_u64(),
        tools: json["chat_template_caps"]["supports_tools"].as_bool(),
        parallel_calls: json["chat_template_caps"]["supports_parallel_tool_calls"].as_bool(),
        images: json["modalities"]["vision"].as_bool(),
        audio: json["modalities"]["audio"].as_bool(),
        ..Capabilities::default()
    }
}

/// OpenRouter's prices, as text in dollars for one token.
fn price(json: &Value) -> Option<Price> {
    let dollars = |name: &str| {
        let price: f64 = json[name].as_str()?.parse().ok()?;
        (price.is_finite() && price >= 0.0).then(|| (price * 1e12).round() / 1e6)
    };
    Some(Price {
        input: dollars("prompt")?,
        cached: dollars("input_cache_read"),
        cache_write: dollars("input_cache_write"),
        output: dollars("completion")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(json: Value) -> VendorModel {
        read(&json).pop().unwrap()
    }

    fn named(name: &str, capabilities: Capabilities) -> VendorModel {
        VendorModel { name: name.to_owned(), capabilities, price: None }
    }

    #[test]
    fn a_list_of_models_is_read_in_every_dialect() {
        let window = |window| Capabilities { window, ..Capabilities::default() };
        assert_eq!(one(json!({ "object": "list", "data": [{ "id": "gpt-x" }] })), named("gpt-x", window(None)));
        assert_eq!(
            read(&json!({ "data": [{ "id": "a/b", "context_length": 9 }, { "odd": 1 }] })),
            [named("a/b", window(Some(9)))]
        );
        let gemini =
            json!({ "models": [{ "name": "models/g", "inputTokenLimit": 5, "outputTokenLimit": 3, "thinking": false }] });
        let known = Capabilities { max_output: Some(3), efforts: Some([].into()), ..window(Some(5)) };
        assert_eq!(one(gemini), named("g", known));
        let ollama = json!({ "models": [{ "name": "qwen3:4b", "model": "qwen3:4b", "size": 1 }] });
        assert_eq!(one(ollama), named("qwen3:4b", window(None)));
        assert_eq!(one(json!({ "data": [{ "id": "v", "max_model_len": 4096 }] })), named("v", window(Some(4096))));
        assert_eq!(read(&json!([{ "id": "t" }])), [named("t", window(None))]);
        assert_eq!(read(&json!({ "error": null })), []);
    }

    #[test]
    fn openrouter_says_parameters_inputs_and_prices() {
        let listed = one(json!({ "data": [{
            "id": "anthropic/claude-x", "context_length": 200_000, "top_provider": { "max_completion_tokens": 64_000 },
            "architecture": { "input_modalities": ["text", "image", "file"] },
            "supported_parameters": ["tools", "max_tokens", "structured_outputs"],
            "pricing": { "prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003", "image": "0" },
        }] }));
        let capabilities = Capabilities {
            window: Some(200_000),
            max_output: Some(64_000),
            tools: Some(true),
            structured: Some(true),
            images: Some(true),
            pdf: Some(true),
            audio: Some(false),
            efforts: Some([].into()),
            ..Capabilities::default()
        };
        assert_eq!(listed.capabilities, capabilities);
        assert_eq!(listed.price, Some(Price { input: 3.0, cached: Some(0.3), cache_write: None, output: 15.0 }));
    }

    #[test]
    fn servers_of_ones_own_say_what_their_models_can_do() {
        let studio = one(json!({ "data": [{ "id": "q", "type": "vlm", "max_context_length": 9, "loaded_context_length": 4,
            "capabilities": ["tool_use"] }] }));
        let seen = studio.capabilities;
        assert_eq!((seen.tools, seen.images, seen.window), (Some(true), Some(true), Some(4)));
        let shown = of_ollama(&json!({ "capabilities": ["completion", "vision"], "parameters": "stop \"a\"\nnum_ctx    8192",
            "model_info": { "general.architecture": "gemma3", "gemma3.context_length": 32_768 } }));
        assert_eq!((shown.tools, shown.images, shown.window), (Some(false), Some(true), Some(8192)));
        assert_eq!(shown.efforts.as_deref(), Some(&[][..]));
        let thinking = of_ollama(&json!({ "capabilities": ["completion", "tools", "thinking"],
            "model_info": { "qwen3.context_length": 40_960 } }));
        assert_eq!((thinking.tools, thinking.window, thinking.efforts), (Some(true), Some(40_960), None));
        let served = of_llama_cpp(&json!({ "default_generation_settings": { "n_ctx": 2048 },
            "modalities": { "vision": false, "audio": false }, "chat_template_caps": { "supports_tools": true } }));
        assert_eq!((served.tools, served.images, served.window), (Some(true), Some(false), Some(2048)));
    }

    #[test]
    fn capabilities_are_also_read_as_switches() {
        let mistral = one(json!({ "data": [{ "id": "m", "max_context_length": 131_072,
            "capabilities": { "completion_chat": true, "function_calling": true, "vision": false } }] }));
        assert_eq!((mistral.capabilities.tools, mistral.capabilities.images), (Some(true), Some(false)));
        let anthropic = one(json!({ "data": [{ "id": "c", "max_input_tokens": 5, "capabilities": {
            "image_input": { "supported": true }, "pdf_input": { "supported": true },
            "effort": { "supported": true, "low": { "supported": true }, "max": { "supported": true } } } }] }));
        let seen = anthropic.capabilities;
        assert_eq!((seen.images, seen.pdf, seen.window), (Some(true), Some(true), Some(5)));
        assert_eq!(seen.efforts.as_deref(), Some(&[Effort::None, Effort::Low, Effort::Max][..]));
    }
}
