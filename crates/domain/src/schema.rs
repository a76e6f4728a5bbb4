//! Schemas of what is written as text by hand. The others are derived.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{ArtifactId, BudgetScope, EffectId, InquiryId, SubThreadPath};

/// A name alone, or several.
pub(crate) struct OneOrMany;

impl JsonSchema for OneOrMany {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

macro_rules! written_as_text {
    ($($name:ident as $schema:literal: $about:literal),+ $(,)?) => {$(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $about })
            }
        }
    )+};
}

written_as_text! {
    ArtifactId as "ArtifactId": "Names a content by what it holds.",
    EffectId as "EffectId": "The n-th effect of a turn, written `turn.n`.",
    InquiryId as "InquiryId": "A question of a running call, written `turn.n.seq`.",
    BudgetScope as "Scope": "An account: `society`, `task:ID`, `agent:ID` or `role:ID`.",
    SubThreadPath as "SubThreadPath": "Where a sub-thread lies below a main thread, such as `messages[3].meta._thread`.",
}
