//! Ids. Every id is a newtype; ids that Polis makes end in a unique, time-ordered part (D06).

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(#[serde(deserialize_with = "names::read")] Arc<str>);

        impl $name {
            /// Wraps a name unchanged.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name as shared text.
            pub fn shared(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }
    )+};
}

/// Interning of names while a large value is deserialised: equal names share one allocation.
pub(crate) mod names {
    use std::cell::RefCell;
    use std::fmt;
    use std::sync::Arc;

    use rustc_hash::FxHashSet;
    use serde::{Deserializer, de};

    thread_local! {
        static KNOWN: RefCell<Option<FxHashSet<Arc<str>>>> = const { RefCell::new(None) };
    }

    /// Runs a deserialisation with interning.
    pub(crate) fn sharing<T>(read: impl FnOnce() -> T) -> T {
        KNOWN.set(Some(FxHashSet::default()));
        let was_read = read();
        KNOWN.set(None);
        was_read
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        struct Name;

        impl de::Visitor<'_> for Name {
            type Value = Arc<str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Arc<str>, E> {
                Ok(KNOWN.with_borrow_mut(|known| match known {
                    None => name.into(),
                    Some(known) => match known.get(name) {
                        Some(known) => known.clone(),
                        None => {
                            let name = Arc::<str>::from(name);
                            known.insert(name.clone());
                            name
                        }
                    },
                }))
            }
        }

        deserializer.deserialize_str(Name)
    }
}

text_ids! {
    /// Names a society: all agents, threads and budgets behind one log.
    SocietyId,
    /// Names an agent; `user` is the person's endpoint, `root` the entry point.
    AgentId,
    /// Names a role.
    RoleId,
    /// Names a thread. An agent's main thread has the agent's own name.
    ThreadId,
    /// Names a message of a thread or a message between agents.
    MessageId,
    /// Names what a person asked for; everything done for it carries this.
    TaskId,
    /// Names the code that runs a turn.
    Behaviour,
    /// Names a person.
    PersonId,
    /// Names a memory.
    MemoryId,
    /// Names a text of a memory in the store; not used again for another text.
    MemoryTextId,
}

impl AgentId {
    /// The endpoint of the person.
    pub const USER: &'static str = "user";
    /// The agent that takes what a person submits.
    pub const ROOT: &'static str = "root";

    /// The endpoint of the person.
    pub fn user() -> Self {
        static USER: LazyLock<AgentId> = LazyLock::new(|| AgentId::from(AgentId::USER));
        USER.clone()
    }

    /// The agent that takes what a person submits.
    pub fn root() -> Self {
        static ROOT: LazyLock<AgentId> = LazyLock::new(|| AgentId::from(AgentId::ROOT));
        ROOT.clone()
    }

    /// Whether this is the endpoint of the person.
    pub fn is_user(&self) -> bool {
        self.as_str() == Self::USER
    }

    /// The one thread that this agent manages (R011).
    pub fn main_thread(&self) -> ThreadId {
        ThreadId(self.0.clone())
    }
}

impl PersonId {
    /// The person who runs the society, and who acts in its own process.
    pub const OWNER: &'static str = "owner";

    /// The person who runs the society.
    pub fn owner() -> Self {
        static OWNER: LazyLock<PersonId> = LazyLock::new(|| PersonId::from(PersonId::OWNER));
        OWNER.clone()
    }
}

impl TaskId {
    /// The thread that holds what a person and the society said to each other about this task. No agent can have its name.
    pub fn thread(&self) -> ThreadId {
        ThreadId(["task:", &self.0].concat().into())
    }
}

impl ThreadId {
    /// Whether it holds what was said about a request; see [`TaskId::thread`].
    pub fn is_of_task(&self) -> bool {
        self.0.starts_with("task:")
    }
}

/// The position of an event in its society's log; the first event is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The next position.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Milliseconds since 1970, as the clock port tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The id of a turn: the position of the event that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TurnId(pub Seq);

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of an effect, written `turn.n`. It identifies a call, a wait or an approval permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId {
    /// The turn that declared it.
    pub turn: TurnId,
    /// Its number within the turn, from 0.
    pub n: u32,
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.n)
    }
}

/// An effect id is two numbers with a dot between them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an effect id; write it as turn.number, for example 12.3")]
pub struct BadEffectId(pub(crate) String);

impl FromStr for EffectId {
    type Err = BadEffectId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadEffectId(text.to_owned());
        let (turn, n) = text.split_once('.').ok_or_else(bad)?;
        let turn = TurnId(Seq(turn.parse().map_err(|_| bad())?));
        Ok(Self { turn, n: n.parse().map_err(|_| bad())? })
    }
}

impl Serialize for EffectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EffectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The unique, time-ordered part of an id: a UUID version 7 whose random part is derived from `seed` and `draw`.
///
/// The same arguments always give the same value, so a turn that is run again makes the same ids.
pub fn unique(seed: u64, at: Timestamp, draw: u64) -> String {
    tail(seed, at, draw).encode_lower(&mut [0; TAIL_BYTES]).to_owned()
}

/// An id that Polis makes: `<prefix>_<unique>`, see [`unique`].
pub fn unique_id<T: for<'a> From<&'a str>>(prefix: &str, seed: u64, at: Timestamp, draw: u64) -> T {
    let (mut room, mut tail_room) = ([0; ID_BYTES], [0; TAIL_BYTES]);
    let tail = tail(seed, at, draw).encode_lower(&mut tail_room);
    // Built on the stack, because an id is made for every message.
    let (start, end) = (prefix.len() + 1, prefix.len() + 1 + TAIL_BYTES);
    if let Some(id) = room.get_mut(..end) {
        id[..prefix.len()].copy_from_slice(prefix.as_bytes());
        id[prefix.len()] = b'_';
        id[start..].copy_from_slice(tail.as_bytes());
        if let Ok(id) = std::str::from_utf8(id) {
            return id.into();
        }
    }
    [prefix, "_", tail].concat().as_str().into()
}

/// The buffer size for ids of the usual length.
const ID_BYTES: usize = 64;

const TAIL_BYTES: usize = uuid::fmt::Hyphenated::LENGTH;

fn tail(seed: u64, at: Timestamp, draw: u64) -> uuid::fmt::Hyphenated {
    let high = mix(seed ^ mix(draw));
    let low = mix(high ^ draw);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&high.to_be_bytes());
    random[8..].copy_from_slice(&low.to_be_bytes()[..2]);
    uuid::Builder::from_unix_timestamp_millis(at.0, &random).into_uuid().hyphenated()
}

/// Spreads every input bit over all output bits (the finaliser of SplitMix64).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A 64-bit digest that is the same on every machine and in every version. It is not cryptographic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Digest(
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    u64,
);

/// 64 bits as text, because many JSON parsers keep only 53 bits of a number.
pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bits: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{bits:016x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(de::Error::custom)
    }
}

impl Digest {
    /// The digest of `parts`; their boundaries count.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digesting = Digesting::default();
        digesting.parts(parts);
        digesting.digest()
    }

    /// Its bits.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// A digest in progress.
#[derive(Debug, Default)]
pub struct Digesting(pub(crate) u64);

impl Digesting {
    /// Adds a part.
    pub fn part(&mut self, part: &str) {
        self.0 = digested(self.0, part);
    }

    /// Adds several parts.
    pub fn parts<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) {
        parts.into_iter().for_each(|part| self.part(part));
    }

    /// The digest of all parts.
    pub fn digest(self) -> Digest {
        Digest(self.0)
    }
}

/// The state of a digest after one more part.
pub(crate) fn digested(mut state: u64, part: &str) -> u64 {
    let (words, rest) = part.as_bytes().as_chunks::<8>();
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = mix(state ^ u64::from_le_bytes(last));
    mix(state ^ part.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_drawn_later_sort_later_and_ids_drawn_again_are_equal() {
        let early = unique(7, Timestamp(1_000), 0);
        assert_eq!(early, unique(7, Timestamp(1_000), 0));
        assert_ne!(early, unique(7, Timestamp(1_000), 1));
        assert_ne!(early, unique(8, Timestamp(1_000), 0));
        assert!(early < unique(7, Timestamp(1_001), 0));
        for prefix in ["", "msg", "长", &"long".repeat(6), &"long".repeat(7), &"long".repeat(70)] {
            assert_eq!(unique_id::<String>(prefix, 7, Timestamp(1_000), 0), format!("{prefix}_{early}"));
        }
    }

    #[test]
    fn names_that_are_read_together_are_kept_once_and_others_apart() {
        let both = || serde_json::from_str::<(AgentId, Vec<ThreadId>)>(r#"["a", ["b", "a"]]"#).unwrap();
        let is_shared = |(agent, threads): &(AgentId, Vec<ThreadId>)| Arc::ptr_eq(&agent.0, &threads[1].0);
        let (first, second) = names::sharing(|| (both(), both()));
        assert_eq!(first, both());
        assert!(is_shared(&first) && Arc::ptr_eq(&first.1[0].0, &second.1[0].0));
        assert!(!is_shared(&both()), "nothing is kept when they are read");
        assert!(serde_json::from_str::<AgentId>("7").is_err());
    }

    #[test]
    fn an_effect_id_is_read_back_as_it_was_written() {
        let id = EffectId { turn: TurnId(Seq(12)), n: 3 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("12".parse::<EffectId>().is_err());
        assert!("a.b".parse::<EffectId>().is_err());
    }

    #[test]
    fn a_digest_depends_on_where_one_part_ends_and_is_written_as_text() {
        let written = serde_json::to_value(Digest(1)).unwrap();
        assert_eq!(written, "0000000000000001");
        assert_eq!(serde_json::from_value::<Digest>(written).unwrap(), Digest(1));
        assert_ne!(Digest::of(["ab", "c"]), Digest::of(["a", "bc"]));
    }
}
