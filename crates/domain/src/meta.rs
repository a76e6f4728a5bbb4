//! Free data about a message, a thread or a task.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, OnceLock};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A JSON object that is copied from event to event and rarely read. Copies share it until one of them is changed, an empty
/// one allocates nothing, and one that was made [of](Meta::of) a value stays serialised text until the map is needed. It
/// derefs to the map.
#[derive(Clone, Default)]
pub struct Meta(Option<Arc<Object>>);

/// An object as text, as a map, or as both.
#[derive(Clone)]
enum Object {
    Map(Map<String, Value>),
    /// The map is parsed on first use.
    Text(Box<RawValue>, OnceLock<Map<String, Value>>),
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl Meta {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value as a JSON object; empty if it is not an object.
    pub fn of(value: &impl Serialize) -> Self {
        let text = serde_json::value::to_raw_value(value).ok();
        let text = text.filter(|text| text.get().starts_with('{') && text.get() != "{}");
        Self(text.map(|text| Arc::new(Object::Text(text, OnceLock::new()))))
    }

    /// Parses it as another type; unknown fields are ignored.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.0.as_deref() {
            Some(Object::Text(text, ..)) => serde_json::from_str(text.get()),
            _ => T::deserialize(&**self),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        if self.lacks(key) { None } else { Map::get(self, key) }
    }

    /// Whether it has a key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.as_deref().is_none_or(|object| matches!(object, Object::Map(map) if map.is_empty()))
    }

    /// Its size in bytes, roughly.
    pub fn weight(&self) -> usize {
        match self.0.as_deref() {
            None => 0,
            Some(Object::Map(map)) => map_weight(map),
            Some(Object::Text(text, map)) => text.get().len() + map.get().map_or(0, map_weight),
        }
    }

    /// Whether a patch sets all of its keys, so that nothing of it remains.
    pub(crate) fn is_replaced_by(&self, patch: &Self) -> bool {
        let patch = patch.top();
        patch.values().all(|is_set| *is_set) && self.top().keys().all(|key| patch.contains_key(key))
    }

    /// Its keys, and whether each value is not null.
    fn top(&self) -> BTreeMap<&str, bool> {
        if let Some(Object::Text(text, map)) = self.0.as_deref()
            && map.get().is_none()
            && let Ok(top) = serde_json::from_str::<BTreeMap<&str, Option<IgnoredAny>>>(text.get())
        {
            return top.into_iter().map(|(key, value)| (key, value.is_some())).collect();
        }
        self.iter().map(|(key, value)| (key.as_str(), !value.is_null())).collect()
    }

    /// Serialises its entries into another object (for `serde(flatten)`).
    pub(crate) fn entries<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }

    /// Whether the serialised text cannot contain a key, without parsing it.
    fn lacks(&self, key: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match self.0.as_deref() {
            Some(Object::Text(text, map)) => map.get().is_none() && key.bytes().all(is_plain) && !text.get().contains(key),
            _ => false,
        }
    }
}

fn map_weight(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| key.len() + value_weight(value)).sum()
}

/// The size of a value in bytes, roughly.
pub fn value_weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_weight).sum(),
        Value::Object(map) => map_weight(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

fn parsed(text: &RawValue) -> Map<String, Value> {
    serde_json::from_str(text.get()).unwrap_or_default()
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        match object {
            Object::Map(map) => map,
            Object::Text(text, map) => map.into_inner().unwrap_or_else(|| parsed(&text)),
        }
    }
}

impl Deref for Meta {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        match self.0.as_deref() {
            None => &EMPTY,
            Some(Object::Map(map)) => map,
            Some(Object::Text(text, map)) => map.get_or_init(|| parsed(text)),
        }
    }
}

impl DerefMut for Meta {
    fn deref_mut(&mut self) -> &mut Map<String, Value> {
        if let Some(Object::Text(..)) | None = self.0.as_deref() {
            let map = std::mem::take(self).into();
            self.0 = Some(Arc::new(Object::Map(map)));
        }
        match self.0.as_mut().map(Arc::make_mut) {
            Some(Object::Map(map)) => map,
            _ => unreachable!("it was made a map"),
        }
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(map: Map<String, Value>) -> Self {
        Self((!map.is_empty()).then(|| Arc::new(Object::Map(map))))
    }
}

impl From<Meta> for Map<String, Value> {
    fn from(meta: Meta) -> Self {
        meta.0.map(|object| Arc::unwrap_or_clone(object).into()).unwrap_or_default()
    }
}

impl From<Meta> for Value {
    fn from(meta: Meta) -> Self {
        Self::Object(meta.into())
    }
}

impl FromIterator<(String, Value)> for Meta {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Self {
        Map::from_iter(entries).into()
    }
}

impl IntoIterator for Meta {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Map::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Meta {
    type Item = (&'a String, &'a Value);
    type IntoIter = serde_json::map::Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// As JSON.
impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_deref() {
            Some(Object::Text(text, ..)) => f.write_str(text.get()),
            _ => f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?),
        }
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_deref() {
            Some(Object::Text(text, ..)) => text.serialize(serializer),
            _ => (**self).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Meta {
    fn inline_schema() -> bool {
        Map::<String, Value>::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Map::<String, Value>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Map::<String, Value>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_the_same_as_the_map() {
        let value = json!({ "a": 1, "b": { "c": [null, "é\n"] } });
        let (text, map) = (Meta::of(&value), serde_json::from_value::<Meta>(value.clone()).unwrap());
        assert_eq!(serde_json::to_string(&text).unwrap(), value.to_string());
        assert_eq!(serde_json::to_value(&text).unwrap(), value);
        assert_eq!((text.get("c"), text.get("b"), text.contains_key("a")), (None, map.get("b"), true));
        assert_eq!(text, map);
        for meta in [&text, &map] {
            #[derive(Deserialize)]
            struct Some {
                a: u8,
            }
            assert_eq!(meta.read::<Some>().unwrap().a, 1);
            assert!(meta.read::<Vec<u8>>().is_err());
            let mut changed = meta.clone();
            changed.insert("a".to_owned(), json!(2));
            assert_eq!(json!(changed), json!({ "a": 2, "b": { "c": [null, "é\n"] } }));
            assert_eq!(json!(meta), value, "the other one stays");
        }
        for nothing in [json!({}), json!(1), json!("{"), json!(null)] {
            assert!(Meta::of(&nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn settings_keep_their_fields_beside_each_other() {
        let settings = crate::Settings { rest: Meta::of(&json!({ "a": 1 })), ..crate::Settings::default() };
        assert_eq!(serde_json::to_value(settings).unwrap()["a"], 1);
    }

    #[test]
    fn a_copy_is_changed_alone_and_an_emptied_one_is_empty() {
        let mut meta = Meta::new();
        meta.insert("a".to_owned(), json!(1));
        let copy = meta.clone();
        meta.insert("b".to_owned(), json!(2));
        assert_eq!(json!(copy), json!({ "a": 1 }));
        assert_eq!(json!(meta), json!({ "a": 1, "b": 2 }));
        meta.clear();
        assert_eq!(meta, Meta::default());
        assert_eq!(serde_json::from_str::<Meta>("{}").unwrap(), meta);
    }
}
