//! Several vendors behind one port: the `vendor/name` of a request says which one is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use polis_ports::{DeltaStream, Model, ModelError, ModelRequest};

use crate::vendors::{self, OpenError};
use crate::{Offline, Pace};

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

    /// The model for requests that name none, as `vendor/name`.
    pub fn default_name(&self) -> &Arc<str> {
        &self.default
    }

    /// The same models, with the offline one at this pace.
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.vendors.insert(vendors::OFFLINE, Ok(Arc::new(Offline { pace })));
        self
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
