//! What a model can do, as far as that is known.

use std::sync::Arc;

use crate::MediaKind;

use polis_domain::{Effort, VendorTool};
use serde::{Deserialize, Serialize};

/// What is known about a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelDescription {
    /// The context window in tokens, if it is known. Turns decide by it, so it must be the same in every run: it may depend on
    /// the model's name and on settings, and on nothing that a vendor says meanwhile.
    pub window: Option<u64>,
    /// How often a failed call is repeated, if the settings say so.
    pub retries: Option<u32>,
    /// What the model can do, as far as it is known. This may change over time, so only what is sent may depend on it.
    pub capabilities: Capabilities,
}

impl ModelDescription {
    /// A model with this context window, of which nothing else is known.
    pub fn of_window(window: Option<u64>) -> Self {
        Self { window, retries: None, capabilities: Capabilities { window, ..Capabilities::default() } }
    }
}

/// What a model can do. Nothing is said about a field that is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Capabilities {
    /// Tokens that it sees at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Tokens that it can write in one reply.
    #[serde(alias = "max_output", skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Whether it calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it makes several calls in one reply.
    #[serde(alias = "parallel_calls", skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// Whether it takes images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it takes addresses of images, which its vendor fetches.
    #[serde(alias = "image_urls", skip_serializing_if = "Option::is_none")]
    pub image_urls: Option<bool>,
    /// Whether it takes PDF files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<bool>,
    /// Whether it takes audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// The degrees of reasoning that it knows; none of them for a model that does not reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Arc<[Effort]>>,
    /// Whether it keeps a JSON schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<bool>,
    /// Whether the beginning of a request is cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching: Option<bool>,
    /// The tools that its vendor runs itself.
    #[serde(alias = "vendor_tools", skip_serializing_if = "Option::is_none")]
    pub vendor_tools: Option<Arc<[VendorTool]>>,
}

impl Capabilities {
    /// Whether the model takes media of this kind, if that is known.
    pub fn takes(&self, kind: MediaKind) -> Option<bool> {
        match kind {
            MediaKind::Image => self.images,
            MediaKind::Document => self.pdf,
            MediaKind::Audio => self.audio,
        }
    }

    /// Whether the vendor of the model runs this tool.
    pub fn has_vendor_tool(&self, tool: VendorTool) -> bool {
        self.vendor_tools.as_ref().is_some_and(|tools| tools.contains(&tool))
    }

    /// The same for a model that takes no media of this kind.
    #[must_use]
    pub fn without(mut self, kind: MediaKind) -> Self {
        match kind {
            MediaKind::Image => self.images = Some(false),
            MediaKind::Document => self.pdf = Some(false),
            MediaKind::Audio => self.audio = Some(false),
        }
        self
    }

    /// These, and others where they say nothing.
    #[must_use]
    pub fn over(self, lower: &Self) -> Self {
        Self {
            window: self.window.or(lower.window),
            max_output: self.max_output.or(lower.max_output),
            tools: self.tools.or(lower.tools),
            parallel_calls: self.parallel_calls.or(lower.parallel_calls),
            images: self.images.or(lower.images),
            image_urls: self.image_urls.or(lower.image_urls),
            pdf: self.pdf.or(lower.pdf),
            audio: self.audio.or(lower.audio),
            efforts: self.efforts.or_else(|| lower.efforts.clone()),
            structured: self.structured.or(lower.structured),
            caching: self.caching.or(lower.caching),
            vendor_tools: self.vendor_tools.or_else(|| lower.vendor_tools.clone()),
        }
    }
}
