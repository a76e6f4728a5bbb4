//! Several vendors behind one port: the `vendor/name` of a request says which one is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use polis_ports::{DeltaStream, Model, ModelError, ModelRequest};

use crate::Emulated;
use crate::vendors::{self, OpenError};

/// All models that can be asked, by vendor.
pub struct Models {
    default: Arc<str>,
    vendors: BTreeMap<&'static str, Result<Arc<dyn Model>, OpenError>>,
}

impl Models {
    /// `default` answers the requests that name no model; each vendor is there, or there is the reason why it is not.
    pub(crate) fn new(
        default: impl Into<Arc<str>>,
        vendors: BTreeMap<&'static str, Result<Arc<dyn Model>, OpenError>>,
    ) -> Self {
        Self { default: default.into(), vendors }
    }

    /// The same models, of which those that are like one of these have no tools of their own and are lent ours; `*` stands
    /// for anything after the vendor's name, as in `ollama/smollm2*`.
    pub fn with_emulated_tools(mut self, patterns: &[String]) -> Result<Self, OpenError> {
        for pattern in patterns {
            let (vendor, pattern) = vendors::resolve(pattern)?;
            if let Some(opened) = self.vendors.get_mut(vendor) {
                let lent = |model: Arc<dyn Model>| Arc::new(Emulated::only(model, [&*pattern])) as Arc<dyn Model>;
                *opened = opened.clone().map(lent);
            }
        }
        Ok(self)
    }

    /// The model for requests that name none, as `vendor/name`.
    pub fn default_name(&self) -> &Arc<str> {
        &self.default
    }

    /// Whether nobody but the offline model answers where no model is named.
    pub fn is_offline(&self) -> bool {
        &*self.default == vendors::OFFLINE
    }
}

#[async_trait]
impl Model for Models {
    async fn stream(&self, mut request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let rejected = |error: &OpenError| ModelError::Rejected { reason: error.to_string() };
        if request.model.is_empty() {
            request.model = self.default.clone();
        }
        let (vendor, full) = vendors::resolve(&request.model).map_err(|error| rejected(&error))?;
        request.model = full;
        match self.vendors.get(vendor) {
            Some(Ok(model)) => model.stream(request).await,
            Some(Err(error)) => Err(rejected(error)),
            None => Err(rejected(&OpenError::Unknown { model: request.model.to_string() })),
        }
    }
}
