//! One text is written as a string, several as a list.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(names: &[Arc<str>], serializer: S) -> Result<S::Ok, S::Error> {
    match names {
        [one] => one.serialize(serializer),
        many => many.serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<str>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(Arc<str>),
        Many(Vec<Arc<str>>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    })
}
