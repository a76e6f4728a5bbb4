//! What a route says about itself, for the contract that is generated from the table.

/// The documentation of a route. A row of the table has one; what it does not say is free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doc {
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// The protocol of others that it speaks, whose shapes are described elsewhere.
    pub(crate) protocol: Option<&'static str>,
    /// Whether a body that is not JSON is taken as well.
    pub(crate) any_body: bool,
}

impl Doc {
    /// A route that does this.
    pub(crate) const fn new(summary: &'static str) -> Self {
        Self { summary, protocol: None, any_body: false }
    }

    /// It speaks a protocol of others, such as `AG-UI 1.0`; errors of the request itself have that protocol's shape.
    pub(crate) const fn speaks(self, protocol: &'static str) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// It takes a body of any kind.
    pub(crate) const fn takes_anything(self) -> Self {
        Self { any_body: true, ..self }
    }
}
