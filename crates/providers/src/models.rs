//! Several vendors behind one port: the `vendor/name` of a request says which one is asked, and what it costs is filled in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use polis_domain::Usage;
use polis_ports::{ChatMessage, Delta, DeltaStream, MediaKind, Model, ModelError, ModelRequest, collect};
use tokio::time::Instant;

use crate::prices::window;
use crate::vendors::{self, OpenError};
use crate::{EmulatedTools, GuardedModel, Price, Prices, Rate, RemoteModel};

/// What a check may write: some vendors refuse to be asked for less.
const CHECK_TOKENS: u32 = 16;

/// All models that can be asked, by vendor.
pub struct Models {
    default: Arc<str>,
    vendors: BTreeMap<&'static str, Result<Arc<dyn Model>, OpenError>>,
    remotes: BTreeMap<&'static str, Arc<RemoteModel>>,
    prices: Arc<Prices>,
}

/// A model that a vendor offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// Its `vendor/name`.
    pub model: String,
    /// Tokens that it sees at once, if that is known.
    pub window: Option<u64>,
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
    /// `default` answers the requests that name no model; each vendor is there, or there is the reason why it is not.
    pub(crate) fn new(
        default: impl Into<Arc<str>>,
        vendors: BTreeMap<&'static str, Result<Arc<dyn Model>, OpenError>>,
        remotes: BTreeMap<&'static str, Arc<RemoteModel>>,
    ) -> Self {
        Self { default: default.into(), vendors, remotes, prices: Arc::default() }
    }

    /// The same models at other prices.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices: Arc::new(prices), ..self }
    }

    /// The same models, each of these vendors asked no faster than this.
    pub fn with_rates(mut self, rates: impl IntoIterator<Item = (String, Rate)>) -> Result<Self, OpenError> {
        for (vendor, rate) in rates {
            let name = vendors::vendor_name(&vendor)?;
            if let Some(remote) = self.remotes.get(name) {
                self.vendors.insert(name, Ok(Arc::new(GuardedModel::new(name, remote.clone(), rate))));
            }
        }
        Ok(self)
    }

    /// What models cost.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The same models, of which those that are like one of these have no tools of their own and are lent ours; `*` stands
    /// for anything after the vendor's name, as in `ollama/smollm2*`.
    pub fn with_emulated_tools(mut self, patterns: &[String]) -> Result<Self, OpenError> {
        for pattern in patterns {
            let (vendor, pattern) = vendors::resolve(pattern)?;
            if let Some(opened) = self.vendors.get_mut(vendor) {
                let emulated = |model: Arc<dyn Model>| Arc::new(EmulatedTools::only(model, [&*pattern])) as Arc<dyn Model>;
                *opened = opened.clone().map(emulated);
            }
        }
        Ok(self)
    }

    /// The model for requests that name none, as `vendor/name`.
    pub fn default_name(&self) -> &Arc<str> {
        &self.default
    }

    /// The same models, with the offline one at this pace.
    #[cfg(feature = "offline")]
    pub fn with_pace(mut self, pace: crate::Pace) -> Self {
        self.vendors.insert(vendors::OFFLINE, Ok(Arc::new(crate::Offline { pace })));
        self
    }

    /// Whether nobody but the offline model answers where no model is named.
    pub fn is_offline(&self) -> bool {
        &*self.default == vendors::OFFLINE
    }

    /// The vendor of a model, if it can be asked; else what to set.
    pub fn find(&self, model: &str) -> Result<&'static str, OpenError> {
        let (vendor, _) = self.resolve(model)?;
        match self.vendors.get(vendor) {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(_)) | None => Ok(vendor),
        }
    }

    /// Whether a vendor can be asked; else what to set.
    pub fn vendor(&self, vendor: &str) -> Result<(), OpenError> {
        match self.vendors.get(vendors::vendor_name(vendor)?) {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// All vendors by name: set up, or what to set.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, Option<&OpenError>)> {
        self.vendors.iter().map(|(name, opened)| (*name, opened.as_ref().err()))
    }

    /// Where a vendor is asked, if it can be.
    pub fn address(&self, vendor: &str) -> Option<&str> {
        self.remotes.get(vendor).map(|remote| remote.base_url())
    }

    /// Asks a vendor which models it has.
    pub async fn list(&self, vendor: &str) -> Result<Vec<ListedModel>, ModelError> {
        let name = vendors::vendor_name(vendor).map_err(|error| rejected(&error))?;
        if name == vendors::OFFLINE {
            return Ok(vec![self.describe(name.to_owned(), None)]);
        }
        let models = match (self.remotes.get(name), self.vendors.get(name)) {
            (Some(remote), _) => remote.list().await?,
            (None, Some(Err(error))) => return Err(rejected(error)),
            (None, _) => Vec::new(),
        };
        Ok(models.into_iter().map(|(model, window)| self.describe(format!("{name}/{model}"), window)).collect())
    }

    /// Asks a model for a word, to see whether it answers. This costs a little.
    pub async fn check(&self, model: &str) -> Result<ModelCheck, ModelError> {
        let request = ModelRequest {
            model: model.into(),
            messages: vec![ChatMessage::user("Say ok.")],
            max_tokens: Some(CHECK_TOKENS),
            ..ModelRequest::default()
        };
        let started = Instant::now();
        let reply = collect(self.stream(request).await?).await?;
        Ok(ModelCheck { model: reply.model, usage: reply.usage, took: started.elapsed() })
    }

    fn describe(&self, model: String, reported_window: Option<u64>) -> ListedModel {
        ListedModel { window: reported_window.or_else(|| window(&model)), price: self.prices.of(&model).copied(), model }
    }

    /// The vendor that a request means, and the whole name of its model.
    fn resolve(&self, model: &str) -> Result<(&'static str, Arc<str>), OpenError> {
        vendors::resolve(if model.is_empty() { &self.default } else { model })
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
        let deltas = match self.vendors.get(vendor) {
            Some(Ok(model)) => model.stream(request).await?,
            Some(Err(error)) => return Err(rejected(error)),
            None => return Err(rejected(&OpenError::Unknown { model: request.model.to_string() })),
        };
        let prices = self.prices.clone();
        Ok(Box::pin(deltas.map(move |delta| match delta {
            Ok(Delta::Usage(usage)) => Ok(Delta::Usage(prices.priced(&full, usage))),
            delta => delta,
        })))
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        let usage = request.estimate();
        match self.resolve(&request.model) {
            Ok((_, model)) => self.prices.priced(&model, usage),
            Err(_) => usage,
        }
    }

    fn name(&self, model: &str) -> Arc<str> {
        self.resolve(model).map_or_else(|_| model.into(), |(_, full)| full)
    }

    fn refuses(&self, model: &str) -> Option<String> {
        self.resolve(model).err().map(|error| error.to_string())
    }

    fn window(&self, model: &str) -> Option<u64> {
        let (vendor, model) = self.resolve(model).ok()?;
        let opened = self.vendors.get(vendor).and_then(|opened| opened.as_ref().ok());
        opened.and_then(|opened| opened.window(&model)).or_else(|| window(&model))
    }

    fn takes(&self, model: &str, kind: MediaKind) -> Option<bool> {
        let (vendor, model) = self.resolve(model).ok()?;
        self.vendors.get(vendor)?.as_ref().ok()?.takes(&model, kind)
    }
}
