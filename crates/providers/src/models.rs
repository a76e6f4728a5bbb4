//! Several vendors behind one port: the `vendor/name` of a request says which one is asked, and what it costs is filled in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use polis_domain::Usage;
use polis_ports::{
    Capabilities, ChatMessage, Delta, DeltaStream, Model, ModelDescription, ModelError, ModelRequest, ModelSettings,
    VendorTool, collect,
};
use tokio::time::Instant;

use crate::cloud;
use crate::endpoint::Endpoint;
use crate::guarded_model::guarded;
use crate::model_list::VendorModel;
use crate::model_table::{ModelTable, known_effort};
use crate::names::EndpointNames;
use crate::rate_limit::{Limiter, Rate};
use crate::request_parts::thinking_budget;
use crate::vendor_tools::MAX_USES;
use crate::vendors::{self, OpenError};
use crate::{EmulatedTools, ModelLine, Price, Prices, RemoteModel};

/// What Claude may answer beside what it thinks, where nobody says how much.
const ANSWER_TOKENS: u32 = 16_384;

/// What a check may write: some vendors refuse to be asked for less.
const CHECK_TOKENS: u32 = 16;

/// All models that can be asked, by vendor.
pub struct Models {
    default: Arc<str>,
    names: EndpointNames,
    vendors: BTreeMap<Arc<str>, Result<Arc<dyn Model>, OpenError>>,
    remotes: BTreeMap<Arc<str>, Arc<RemoteModel>>,
    /// How often a failed call is repeated, where a configuration says so.
    retries: BTreeMap<Arc<str>, u32>,
    /// The limits of each endpoint's key, which all its models share.
    limiters: BTreeMap<Arc<str>, Arc<Limiter>>,
    /// The vendors that endpoints with names of their own are like.
    like: BTreeMap<Arc<str>, &'static str>,
    prices: Arc<Prices>,
    table: Arc<ModelTable>,
    /// Why the default answers, where nobody has chosen it.
    choice: Option<String>,
}

/// A model that a vendor offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// Its `vendor/name`.
    pub model: String,
    /// What it can do, as far as it is known.
    pub capabilities: Capabilities,
    /// What it costs, if that is known.
    pub price: Option<Price>,
}

/// The result of checking that a model answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCheck {
    /// The model that answered, as `vendor/name`.
    pub model: Arc<str>,
    /// What it cost.
    pub usage: Usage,
    /// How long it took.
    pub took: Duration,
}

impl Models {
    /// No models yet. `default` answers the requests that name none.
    pub(crate) fn new(default: Arc<str>, names: EndpointNames) -> Self {
        let (vendors, remotes, retries, limiters, like) = Default::default();
        let (prices, table) = (Arc::default(), Arc::default());
        Self { default, names, vendors, remotes, retries, limiters, like, prices, table, choice: None }
    }

    /// Adds an endpoint: opened, or the reason why it is not.
    pub(crate) fn insert(&mut self, opened: Result<Arc<RemoteModel>, OpenError>, endpoint: Endpoint) {
        let name: Arc<str> = endpoint.name.as_str().into();
        if endpoint.has_own_name() || endpoint.vendor.account.is_some() {
            self.like.insert(name.clone(), endpoint.vendor.account.unwrap_or(endpoint.vendor.name));
        }
        if let Ok(remote) = &opened {
            self.remotes.insert(name.clone(), remote.clone());
        }
        self.retries.extend(endpoint.retries.map(|retries| (name.clone(), retries)));
        let limiter = Arc::new(Limiter::new(endpoint.rate));
        self.limiters.insert(name.clone(), limiter.clone());
        let guarded = |remote: Arc<RemoteModel>| guarded(&name, remote, limiter);
        let opened = opened.map(guarded);
        self.vendors.insert(name, opened);
    }

    /// Adds a model of this process.
    pub(crate) fn insert_local(&mut self, name: &str, model: Result<Arc<dyn Model>, OpenError>) {
        self.vendors.insert(name.into(), model);
    }

    /// An endpoint that can be asked.
    pub(crate) fn remote(&self, vendor: &str) -> Option<Arc<RemoteModel>> {
        self.remotes.get(vendor).cloned()
    }

    /// The limits of an endpoint's key, for calls that are no chat.
    pub(crate) fn limiter_of(&self, vendor: &str) -> Arc<Limiter> {
        self.limiters.get(vendor).cloned().unwrap_or_else(|| Arc::new(Limiter::new(Rate::default())))
    }

    /// How often a failed call of an endpoint is repeated, where a configuration says so.
    pub(crate) fn retries_of(&self, vendor: &str) -> Option<u32> {
        self.retries.get(vendor).copied()
    }

    /// The price of a model, for calls that are no chat.
    pub(crate) fn price_of(&self, model: &str) -> Option<Price> {
        self.price(model)
    }

    /// Why an endpoint cannot be asked.
    pub(crate) fn error_of(&self, name: &str) -> Option<&OpenError> {
        self.vendors.get(name).and_then(|opened| opened.as_ref().err())
    }

    /// The same models, of which the default was found on this machine for this reason.
    #[must_use]
    pub(crate) fn found(self, choice: Option<String>) -> Self {
        Self { choice, ..self }
    }

    /// The same models with what these vendors say about theirs.
    #[must_use]
    pub(crate) fn told(self, listed: Vec<(&'static str, Vec<VendorModel>)>) -> Self {
        for (vendor, models) in listed {
            for VendorModel { name, capabilities, .. } in models {
                self.table.note(format!("{vendor}/{name}"), capabilities);
            }
        }
        self
    }

    /// Why the default answers, where nobody has chosen it.
    pub fn choice(&self) -> Option<&str> {
        self.choice.as_deref()
    }

    /// The same models with what the user says about them, by name, and with these settings for all of them.
    #[must_use]
    pub fn with_table(self, lines: BTreeMap<String, ModelLine>, settings: ModelSettings) -> Self {
        Self { table: Arc::new(self.table.with_lines(lines, settings)), ..self }
    }

    /// The price of a model: the user's, else the one of the table.
    fn price(&self, model: &str) -> Option<Price> {
        self.table.price(model).or_else(|| self.prices.of(&self.known_name(model)).copied())
    }

    /// What one use of a tool that the vendor runs costs, in billionths of a dollar.
    fn vendor_tool_nanos(&self, model: &str, tool: VendorTool) -> u64 {
        (self.table.vendor_tool_price(&self.known_name(model), tool) * 1e6).round() as u64
    }

    /// The same models at other prices.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices: Arc::new(prices), ..self }
    }

    /// What models cost.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The same models, of which those that are like one of these have no tools of their own and are lent ours; `*` stands
    /// for anything after the vendor's name, as in `ollama/smollm2*`.
    pub fn with_emulated_tools(mut self, patterns: &[String]) -> Result<Self, OpenError> {
        for pattern in patterns {
            let (vendor, pattern) = self.names.resolve(pattern)?;
            if let Some(opened) = self.vendors.get_mut(&vendor) {
                let emulated = |model: Arc<dyn Model>| Arc::new(EmulatedTools::only(model, [&*pattern])) as Arc<dyn Model>;
                *opened = opened.clone().map(emulated);
            }
        }
        Ok(self)
    }

    /// The settings of the configuration that a model's vendor is not sent.
    pub fn ignored_settings(&self, model: &str) -> Vec<&'static str> {
        let Ok((vendor, model)) = self.resolve(model) else { return Vec::new() };
        let remote = self.remotes.get(&vendor);
        remote.map(|remote| remote.ignored_settings(&model, &self.table.settings(&model))).unwrap_or_default()
    }

    /// The model for requests that name none, as `vendor/name`.
    pub fn default_name(&self) -> &Arc<str> {
        &self.default
    }

    /// The same models, with the offline one at this pace.
    #[cfg(feature = "offline")]
    pub fn with_pace(mut self, pace: crate::Pace) -> Self {
        self.insert_local(vendors::OFFLINE, Ok(Arc::new(crate::Offline { pace })));
        self
    }

    /// Whether nobody but the offline model answers where no model is named.
    pub fn is_offline(&self) -> bool {
        &*self.default == vendors::OFFLINE
    }

    /// The vendor of a model, if it can be asked; else what to set.
    pub fn find(&self, model: &str) -> Result<Arc<str>, OpenError> {
        let (vendor, _) = self.resolve(model)?;
        match self.error_of(&vendor) {
            Some(error) => Err(error.clone()),
            None => Ok(vendor),
        }
    }

    /// Whether a vendor can be asked; else what to set.
    pub fn vendor(&self, vendor: &str) -> Result<(), OpenError> {
        match self.error_of(&self.names.name(vendor)?) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// All vendors by name: set up, or what to set.
    pub fn all(&self) -> impl Iterator<Item = (&str, Option<&OpenError>)> {
        self.vendors.iter().map(|(name, opened)| (&**name, opened.as_ref().err()))
    }

    /// Where a vendor is asked, if it can be.
    pub fn address(&self, vendor: &str) -> Option<&str> {
        self.remotes.get(vendor).map(|remote| remote.base_url())
    }

    /// Asks a vendor which models it has.
    pub async fn list(&self, vendor: &str) -> Result<Vec<ListedModel>, ModelError> {
        let name = self.names.name(vendor).map_err(|error| rejected(&error))?;
        if &*name == vendors::OFFLINE {
            return Ok(vec![self.describe(name.to_string(), None)]);
        }
        let models = match (self.remotes.get(&name), self.vendors.get(&name)) {
            (Some(remote), _) => remote.list().await?,
            (None, Some(Err(error))) => return Err(rejected(error)),
            (None, _) => Vec::new(),
        };
        let describe = |VendorModel { name: model, capabilities, price }| {
            let model = format!("{name}/{model}");
            self.table.note(model.clone(), capabilities);
            self.describe(model, price)
        };
        Ok(models.into_iter().map(describe).collect())
    }

    /// Asks a model for a word, to see whether it answers. This costs a little.
    pub async fn check(&self, model: &str) -> Result<ModelCheck, ModelError> {
        let request = ModelRequest {
            model: model.into(),
            messages: vec![ChatMessage::user("Say ok.")],
            settings: ModelSettings { max_tokens: Some(CHECK_TOKENS), ..ModelSettings::default() },
            ..ModelRequest::default()
        };
        let started = Instant::now();
        let reply = collect(self.stream(request).await?).await?;
        Ok(ModelCheck { model: reply.model, usage: reply.usage, took: started.elapsed() })
    }

    fn describe(&self, model: String, reported: Option<Price>) -> ListedModel {
        let known = self.known_name(&model);
        let price = self.table.price(&model).or(reported).or_else(|| self.prices.of(&known).copied());
        ListedModel { capabilities: self.known_capabilities(&model), price, model }
    }

    /// What is known about a model under its own name, and as one of the vendor that its endpoint is like.
    fn known_capabilities(&self, model: &str) -> Capabilities {
        let (own, known) = (self.table.capabilities(model), self.known_name(model));
        if *known == *model { own } else { own.over(&self.table.capabilities(&known)) }
    }

    /// The name under which the price and the capabilities of a model are known: an endpoint of a vendor has those of the vendor, and
    /// a model in a cloud those of its maker, unless the table names it itself.
    fn known_name<'a>(&self, full: &'a str) -> Cow<'a, str> {
        let Some((endpoint, name)) = full.split_once('/').filter(|_| self.prices.of(full).is_none()) else {
            return full.into();
        };
        let vendor = self.like.get(endpoint).copied().unwrap_or(endpoint);
        match cloud::makers_name(vendor, name) {
            Some((maker, name)) => format!("{maker}/{name}").into(),
            None if vendor != endpoint => format!("{vendor}/{name}").into(),
            None => full.into(),
        }
    }

    /// A request with the settings of the configuration, as far as the model knows them.
    fn with_settings(&self, request: &mut ModelRequest) -> Capabilities {
        let capabilities = self.description(&request.model).capabilities;
        let lower = self.table.settings(&request.model);
        let is_internal = request.aside || request.format.is_some();
        let lower = if is_internal { lower.for_internal_call() } else { lower };
        request.settings = std::mem::take(&mut request.settings).over(&lower);
        request.settings.effort = request.settings.effort.and_then(|effort| known_effort(effort, &capabilities));
        if capabilities.efforts.as_ref().is_some_and(|known| known.is_empty()) {
            request.settings.thinking_budget = None;
        }
        if let Some(most) = capabilities.max_output.and_then(|most| u32::try_from(most).ok()) {
            limit(&mut request.settings, most, self.thinks_within_answer(&request.model));
        }
        capabilities
    }

    /// Whether what a model thinks counts as a part of its answer.
    fn thinks_within_answer(&self, model: &str) -> bool {
        let Ok((vendor, model)) = self.resolve(model) else { return false };
        self.remotes.get(&vendor).is_some_and(|remote| remote.thinks_within_answer(&model))
    }

    /// The vendor that a request means, and the whole name of its model.
    fn resolve(&self, model: &str) -> Result<(Arc<str>, Arc<str>), OpenError> {
        self.names.resolve(if model.is_empty() { &self.default } else { model })
    }
}

/// Keeps settings within the longest answer of a model.
fn limit(settings: &mut ModelSettings, most: u32, thinks_within: bool) {
    settings.max_tokens = settings.max_tokens.map(|tokens| tokens.min(most));
    settings.thinking_budget = settings.thinking_budget.map(|tokens| tokens.min(most));
    // Without a limit of its own, a request gets one that grows with the budget.
    if thinks_within && thinking_budget(settings).is_some_and(|budget| budget > most.saturating_sub(ANSWER_TOKENS)) {
        settings.max_tokens.get_or_insert(most);
    }
}

fn rejected(error: &OpenError) -> ModelError {
    ModelError::Rejected { reason: error.to_string() }
}

#[async_trait]
impl Model for Models {
    async fn stream(&self, mut request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let (vendor, full) = self.resolve(&request.model).map_err(|error| rejected(&error))?;
        request.model = full.clone();
        let capabilities = self.with_settings(&mut request);
        request.takes_effort = self.table.says_efforts(&full);
        let deltas = match self.vendors.get(&vendor) {
            // One that is known to have no tools is not asked in vain.
            Some(Ok(model)) if capabilities.tools == Some(false) && !request.tools.is_empty() => {
                EmulatedTools::new(model.clone()).stream(request).await?
            }
            Some(Ok(model)) => model.stream(request).await?,
            Some(Err(error)) => return Err(rejected(error)),
            None => return Err(rejected(&self.names.unknown(&request.model))),
        };
        let price = self.price(&full);
        let tool_price = VendorTool::ALL.map(|tool| self.vendor_tool_nanos(&full, tool));
        let mut of_tools = 0_u64;
        Ok(Box::pin(deltas.map(move |delta| {
            if let Ok(Delta::VendorCall(call)) = &delta {
                let place = VendorTool::ALL.iter().position(|tool| *tool == call.tool).unwrap_or_default();
                of_tools = of_tools.saturating_add(tool_price[place].saturating_mul(call.uses.into()));
            }
            match delta {
                Ok(Delta::Usage(usage)) => {
                    let of_tokens = price.map_or(0, |price| price.nanos(&usage));
                    Ok(Delta::Usage(Usage { cost_nanos: of_tokens.saturating_add(of_tools), ..usage }))
                }
                delta => delta,
            }
        })))
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        let usage = request.estimate();
        match self.resolve(&request.model) {
            Ok((_, model)) => {
                let of_tokens = self.price(&model).map_or(0, |price| price.nanos(&usage));
                let of_tools = request.vendor_tools.iter().map(|tool| self.vendor_tool_nanos(&model, *tool));
                let of_tools = of_tools.sum::<u64>().saturating_mul(MAX_USES.into());
                Usage { cost_nanos: of_tokens.saturating_add(of_tools), ..usage }
            }
            Err(_) => usage,
        }
    }

    fn name(&self, model: &str) -> Arc<str> {
        self.resolve(model).map_or_else(|_| model.into(), |(_, full)| full)
    }

    fn refuses(&self, model: &str) -> Option<String> {
        self.resolve(model).err().map(|error| error.to_string())
    }

    fn description(&self, model: &str) -> ModelDescription {
        let Ok((vendor, model)) = self.resolve(model) else { return ModelDescription::default() };
        let opened = self.vendors.get(&vendor).and_then(|opened| opened.as_ref().ok());
        // What the interface has no form for, or the vendor has refused, counts over the table.
        let of_vendor = opened.map(|opened| opened.description(&model).capabilities).unwrap_or_default();
        let mut capabilities = of_vendor.over(&self.known_capabilities(&model));
        let has = |tool: &&VendorTool| self.remotes.get(&vendor).is_some_and(|remote| remote.has_vendor_tool(**tool));
        capabilities.vendor_tools = capabilities.vendor_tools.map(|tools| tools.iter().filter(has).copied().collect());
        ModelDescription {
            window: self.table.window(&model).or_else(|| self.table.window(&self.known_name(&model))),
            retries: self.retries.get(&vendor).copied(),
            capabilities,
        }
    }
}
