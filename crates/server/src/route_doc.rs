//! The documentation of a route, for the generated contract.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The documentation of a route. A row of the table has one; what it does not say is free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteDoc {
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// The external protocol that it speaks, whose schemas are described elsewhere.
    pub(crate) protocol: Option<&'static str>,
    /// Whether a body that is not JSON is taken as well.
    pub(crate) any_body: bool,
    /// Whether a repeat with the same `Idempotency-Key` gets the first answer.
    pub(crate) once: bool,
    /// The query, the body and the answer.
    pub(crate) query: Option<SchemaOf>,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Option<SchemaOf>,
    /// The kind of the answer, where it is not JSON.
    pub(crate) media: Option<&'static str>,
    /// What can go wrong here beside what can go wrong everywhere.
    pub(crate) problems: &'static [(u16, &'static str)],
}

impl RouteDoc {
    /// A route that does this.
    pub(crate) const fn new(summary: &'static str) -> Self {
        Self {
            summary,
            protocol: None,
            any_body: false,
            once: false,
            query: None,
            body: None,
            answer: None,
            media: None,
            problems: &[],
        }
    }

    /// It speaks an external protocol, such as `AG-UI 1.0`; errors of the request itself have that protocol's shape.
    pub(crate) const fn speaks(self, protocol: &'static str) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// It takes a body of any kind.
    pub(crate) const fn takes_anything(self) -> Self {
        Self { any_body: true, ..self }
    }

    /// It changes something, and a repeat with the same `Idempotency-Key` changes nothing more.
    pub(crate) const fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Its query has this shape.
    pub(crate) const fn asks<T: JsonSchema>(self) -> Self {
        Self { query: Some(shape::<T>), ..self }
    }

    /// Its body has this shape.
    pub(crate) const fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(shape::<T>), ..self }
    }

    /// Its answer has this shape.
    pub(crate) const fn gives<T: JsonSchema>(self) -> Self {
        Self { answer: Some(shape::<T>), ..self }
    }

    /// Its answer is not JSON but this.
    pub(crate) const fn media(self, media: &'static str) -> Self {
        Self { media: Some(media), ..self }
    }

    /// This can go wrong.
    pub(crate) const fn fails(self, problems: &'static [(u16, &'static str)]) -> Self {
        Self { problems, ..self }
    }
}

fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
