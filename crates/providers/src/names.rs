//! The names that can stand before the `/` in `NAME/model`: vendors with their aliases, and endpoints of the configuration.

use std::sync::Arc;

use crate::endpoint::Endpoint;
use crate::vendors::{OFFLINE, OpenError};

/// All endpoints by name.
#[derive(Debug, Clone)]
pub(crate) struct EndpointNames(Vec<EndpointName>);

#[derive(Debug, Clone)]
struct EndpointName {
    name: Arc<str>,
    aliases: &'static [&'static str],
    default_model: Option<&'static str>,
}

impl EndpointNames {
    pub(crate) fn new(endpoints: &[Endpoint]) -> Self {
        let one = |endpoint: &Endpoint| {
            let (aliases, default_model) = match endpoint.has_own_name() {
                true => (&[][..], None),
                false => (endpoint.vendor.aliases, endpoint.vendor.default_model),
            };
            EndpointName { name: endpoint.name.as_str().into(), aliases, default_model }
        };
        Self(endpoints.iter().map(one).collect())
    }

    /// The endpoint's own name.
    pub(crate) fn name(&self, name: &str) -> Result<Arc<str>, OpenError> {
        if name == OFFLINE {
            return Ok(OFFLINE.into());
        }
        self.find(name).map(|found| found.name.clone()).ok_or_else(|| self.unknown(name))
    }

    /// The endpoint that a model string means, and the string with the endpoint's own name in front.
    pub(crate) fn resolve(&self, model: &str) -> Result<(Arc<str>, Arc<str>), OpenError> {
        let (prefix, model_name) = model.split_once('/').unwrap_or((model, ""));
        if prefix == OFFLINE {
            return Ok((OFFLINE.into(), OFFLINE.into()));
        }
        let found = self.find(prefix).ok_or_else(|| self.unknown(model))?;
        match Some(model_name).filter(|name| !name.is_empty()).or(found.default_model) {
            Some(model) => Ok((found.name.clone(), format!("{}/{model}", found.name).into())),
            None => Err(OpenError::NoName { vendor: found.name.to_string() }),
        }
    }

    pub(crate) fn unknown(&self, model: &str) -> OpenError {
        let names: Vec<_> = self.0.iter().map(|endpoint| &*endpoint.name).chain([OFFLINE]).collect();
        OpenError::Unknown { model: model.to_owned(), known: names.join(", ") }
    }

    fn find(&self, name: &str) -> Option<&EndpointName> {
        self.0.iter().find(|endpoint| *endpoint.name == *name || endpoint.aliases.contains(&name))
    }
}
